package jpeg

// plane is a grid of samples.
type plane struct {
	pix    []uint8
	stride int
}

// pixels returns the image's pixels [height][width][3] from the coefficients.
func (d *decoder) pixels() []uint8 {
	planes := make([]plane, len(d.components))
	for i := range d.components {
		c := &d.components[i]
		planes[i] = c.samples().upsample(c, d.maxH/c.h, d.maxV/c.v)
		c.coefs = nil
	}
	out := make([]uint8, 3*d.width*d.height)
	for y := range d.height {
		row := out[3*d.width*y:][:3*d.width]
		var p [4][]uint8
		for i := range planes {
			p[i] = planes[i].pix[y*planes[i].stride:][:d.width]
		}
		switch len(planes) {
		case 1:
			for x, v := range p[0] {
				row[3*x], row[3*x+1], row[3*x+2] = v, v, v
			}
		case 3:
			d.rgb(row, p)
		case 4:
			d.cmyk(row, p)
		}
	}
	return out
}

// samples returns the samples of a component, padded to whole MCUs.
func (c *component) samples() plane {
	p := plane{make([]uint8, 64*c.stride*c.rows), 8 * c.stride}
	for y := range c.high {
		for x := range c.wide {
			idct(p.pix[8*y*p.stride+8*x:], p.stride, c.coefs[64*(y*c.stride+x):][:64], c.quant)
		}
	}
	return p
}

// upsample returns the samples in the image's resolution, h times as many in a row and v times as many rows. It
// interpolates where libjpeg's "fancy" upsampling does and repeats samples elsewhere (jdsample.c).
func (p plane) upsample(c *component, h, v int) plane {
	w := c.width
	switch {
	case h == 1 && v == 1:
		return p
	case h == 2 && v == 1 && w > 2:
		return p.each(c, h, v, func(out []uint8, y int) { triangle(out, p.row(c, y)) })
	case h == 1 && v == 2:
		return p.each(c, h, v, func(out []uint8, y int) {
			near, far := p.pair(c, y)
			for x := range out {
				out[x] = uint8((3*int(near[x]) + int(far[x]) + 1 + y&1) >> 2)
			}
		})
	case h == 2 && v == 2 && w > 2:
		return p.each(c, h, v, func(out []uint8, y int) {
			near, far := p.pair(c, y)
			triangles(out, near, far)
		})
	}
	return p.each(c, h, v, func(out []uint8, y int) {
		row := p.row(c, y/v)
		for x := range out {
			out[x] = row[x/h]
		}
	})
}

// each makes a plane of v rows per row of p, each h times as long, by calling fill for every row.
func (p plane) each(c *component, h, v int, fill func(out []uint8, y int)) plane {
	u := plane{make([]uint8, h*c.width*v*c.height), h * c.width}
	for y := range v * c.height {
		fill(u.pix[y*u.stride:][:u.stride], y)
	}
	return u
}

// row returns row y without the padding.
func (p plane) row(c *component, y int) []uint8 { return p.pix[y*p.stride:][:c.width] }

// pair returns the row that row y of twice as many lies in, and the next nearest one, the same at an edge.
func (p plane) pair(c *component, y int) (near, far []uint8) {
	n, f := y/2, y/2-1
	if y%2 == 1 {
		f += 2
	}
	return p.row(c, n), p.row(c, min(max(f, 0), c.height-1))
}

// triangle sets out [2W] to row [W] with 3/4 of the nearer and 1/4 of the further sample. Ties round down and up in
// turn.
func triangle(out, row []uint8) {
	last := len(row) - 1
	for x, s := range row {
		v := 3 * int(s)
		out[2*x] = uint8((v + int(row[max(x-1, 0)]) + 1) >> 2)
		out[2*x+1] = uint8((v + int(row[min(x+1, last)]) + 2) >> 2)
	}
}

// triangles sets out [2W] to the same in both directions: near [W] counts three times as much as far [W].
func triangles(out, near, far []uint8) {
	column := func(x int) int { return 3*int(near[x]) + int(far[x]) }
	last := len(near) - 1
	left, this := column(0), column(0)
	for x := range near {
		right := column(min(x+1, last))
		out[2*x] = uint8((3*this + left + 8) >> 4)
		out[2*x+1] = uint8((3*this + right + 7) >> 4)
		left, this = this, right
	}
}

// isYCC reports whether the first three components are a brightness and two colour differences, as libjpeg guesses
// (default_decompress_parms of jdapimin.c).
func (d *decoder) isYCC() bool {
	ids := [3]uint8{}
	for i := range ids {
		ids[i] = d.components[i].id
	}
	switch {
	case len(d.components) == 4:
		return d.adobe && d.transform != 0
	case d.jfif:
		return true
	case d.adobe:
		return d.transform != 0
	}
	return ids != [3]uint8{'R', 'G', 'B'}
}

// rgb sets row [W][3] to the colours of three components.
func (d *decoder) rgb(row []uint8, p [4][]uint8) {
	if !d.isYCC() {
		for x := range p[0] {
			row[3*x], row[3*x+1], row[3*x+2] = p[0][x], p[1][x], p[2][x]
		}
		return
	}
	for x := range p[0] {
		row[3*x], row[3*x+1], row[3*x+2] = fromYCC(p[0][x], p[1][x], p[2][x])
	}
}

// cmyk sets row [W][3] to the colours of four components, which are inverted inks, as Adobe writes them and Pillow
// always takes them to be. Black darkens: Pillow's CMYK to RGB.
func (d *decoder) cmyk(row []uint8, p [4][]uint8) {
	ycc := d.isYCC()
	for x := range p[0] {
		c, m, y, k := p[0][x], p[1][x], p[2][x], p[3][x]
		if ycc {
			c, m, y = fromYCC(c, m, y)
			c, m, y = 255-c, 255-m, 255-y
		}
		row[3*x], row[3*x+1], row[3*x+2] = darken(255-c, k), darken(255-m, k), darken(255-y, k)
	}
}

// darken returns light less ink·light/255, rounded as Pillow does.
func darken(ink, light uint8) uint8 {
	t := int32(ink)*int32(light) + 128
	return clamp(int32(light) - (t>>8+t)>>8)
}

// fromYCC converts a colour with 16 fractional bits: R = Y + 1.402 Cr, G = Y - 0.34414 Cb - 0.71414 Cr,
// B = Y + 1.772 Cb (JFIF; jdcolor.c).
func fromYCC(y, cb, cr uint8) (r, g, b uint8) {
	l, u, v := int32(y), int32(cb)-128, int32(cr)-128
	return clamp(l + (91881*v+1<<15)>>16),
		clamp(l + (-22554*u-46802*v+1<<15)>>16),
		clamp(l + (116130*u+1<<15)>>16)
}
