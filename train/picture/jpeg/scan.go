package jpeg

import (
	"errors"
	"fmt"
)

// scanner is one scan: the components that it has and the coefficients that it codes.
type scanner struct {
	parts              []*component
	start, end         int // of the coefficients in zigzag order
	high, low          int // successive approximation: the bit position before and now
	across, down, most int // MCUs, and blocks of an MCU
}

// scan reads a scan header (T.81 B.2.3) and the data after it.
func (d *decoder) scan(s []byte) error {
	sc, err := d.scanHeader(s)
	if err != nil {
		return err
	}
	d.bits = bits{data: d.data, at: d.at}
	d.restart(sc)
	mcus, next := sc.across*sc.down, rst0
	for i := range mcus {
		if d.interval > 0 && i > 0 && i%d.interval == 0 {
			if err := d.restartMarker(next); err != nil {
				return err
			}
			d.restart(sc)
			next = rst0 + (next-rst0+1)%8
		}
		d.mcu(sc, i)
		switch {
		case d.bits.over:
			return fmt.Errorf("the file is cut off or corrupt: data for %d of %d blocks", i, mcus)
		case d.bits.err != nil:
			return fmt.Errorf("block %d of %d: %w", i, mcus, d.bits.err)
		}
	}
	for _, c := range sc.parts {
		c.scanned = true
	}
	d.at = d.bits.at
	return nil
}

// scanHeader reads a scan header and checks it.
func (d *decoder) scanHeader(s []byte) (*scanner, error) {
	if d.components == nil {
		return nil, errors.New("a scan before the frame header")
	}
	if len(s) < 1 || len(s) != 4+2*int(s[0]) {
		return nil, fmt.Errorf("a scan header of %d bytes", len(s))
	}
	n := int(s[0])
	tail := s[1+2*n:]
	sc := &scanner{start: int(tail[0]), end: int(tail[1]), high: int(tail[2] >> 4), low: int(tail[2] & 15)}
	if !d.progressive {
		sc.start, sc.end, sc.high, sc.low = 0, 63, 0, 0
	}
	if n < 1 || n > len(d.components) || sc.start > sc.end || sc.end > 63 || sc.low > 13 ||
		d.progressive && (sc.start == 0 && sc.end != 0 || sc.start > 0 && n > 1) ||
		sc.high > 0 && sc.high != sc.low+1 {
		return nil, fmt.Errorf("a malformed scan header: %d components, coefficients %d to %d, bits %d and %d",
			n, sc.start, sc.end, sc.high, sc.low)
	}
	for i := range n {
		if err := d.part(sc, s[1+2*i], s[2+2*i]); err != nil {
			return nil, err
		}
	}
	if n == 1 {
		sc.across, sc.down, sc.most = sc.parts[0].wide, sc.parts[0].high, 1
		return sc, nil
	}
	sc.across, sc.down = ceil(d.width, 8*d.maxH), ceil(d.height, 8*d.maxV)
	if sc.most > 10 {
		return nil, fmt.Errorf("%d blocks in an MCU, more than 10", sc.most)
	}
	return sc, nil
}

// part adds the component with an id to a scan.
func (d *decoder) part(sc *scanner, id, tables uint8) error {
	for i := range d.components {
		c := &d.components[i]
		if c.id != id {
			continue
		}
		for _, p := range sc.parts {
			if p == c {
				return fmt.Errorf("component %d is twice in a scan", id)
			}
		}
		if tables>>4 > 3 || tables&15 > 3 {
			return fmt.Errorf("component %d: no such Huffman table", id)
		}
		c.dc, c.ac = d.dc[tables>>4], d.ac[tables&15]
		if sc.start == 0 && sc.high == 0 && c.dc == nil || sc.end > 0 && c.ac == nil {
			return fmt.Errorf("component %d: its Huffman table is missing", id)
		}
		if c.quant == nil {
			if c.quant = d.quant[c.selector]; c.quant == nil {
				return fmt.Errorf("component %d: its quantization table is missing", id)
			}
		}
		if c.coefs == nil {
			c.coefs = make([]int16, 64*c.stride*c.rows)
		}
		sc.most += c.h * c.v
		sc.parts = append(sc.parts, c)
		return nil
	}
	return fmt.Errorf("a scan of component %d, which the frame does not have", id)
}

// restart resets what restart intervals do not share.
func (d *decoder) restart(sc *scanner) {
	d.eobRun = 0
	for _, c := range sc.parts {
		c.last = 0
	}
}

// restartMarker moves to the restart marker that is due.
func (d *decoder) restartMarker(want int) error {
	d.at = d.bits.at
	m, err := d.marker()
	if err != nil {
		return err
	}
	if int(m) != want {
		return fmt.Errorf("marker %02x where restart marker %02x is due", m, want)
	}
	d.bits = bits{data: d.data, at: d.at}
	return nil
}

// mcu reads MCU i of a scan.
func (d *decoder) mcu(sc *scanner, i int) {
	x, y := i%sc.across, i/sc.across
	if len(sc.parts) == 1 {
		c := sc.parts[0]
		d.block(sc, c, c.coefs[64*(y*c.stride+x):][:64])
		return
	}
	for _, c := range sc.parts {
		for v := range c.v {
			for h := range c.h {
				d.block(sc, c, c.coefs[64*((y*c.v+v)*c.stride+x*c.h+h):][:64])
			}
		}
	}
}

// block reads what a scan has of a block.
func (d *decoder) block(sc *scanner, c *component, b []int16) {
	switch {
	case !d.progressive:
		d.sequential(c, b)
	case sc.start == 0 && sc.high == 0:
		b[0] = int16(d.nextDC(c) << sc.low)
	case sc.start == 0:
		b[0] |= int16(d.bits.take(1) << sc.low)
	case sc.high == 0:
		d.firstAC(sc, c, b)
	default:
		d.refineAC(sc, c, b)
	}
}

// nextDC reads the difference of a DC coefficient and returns the coefficient.
func (d *decoder) nextDC(c *component) int32 {
	n := d.bits.code(c.dc)
	if n > 15 {
		d.bits.fail("a DC difference of %d bits", n)
		return 0
	}
	c.last += d.bits.extend(int(n))
	return c.last
}

// sequential reads a whole block, T.81 F.2.2.
func (d *decoder) sequential(c *component, b []int16) {
	b[0] = int16(d.nextDC(c))
	for k := 1; k < 64; k++ {
		rs := d.bits.code(c.ac)
		run, size := int(rs>>4), int(rs&15)
		if size == 0 {
			if run != 15 {
				return
			}
			k += 15
			continue
		}
		k += run
		if k > 63 {
			d.bits.fail("more than 64 coefficients")
			return
		}
		b[natural[k]] = int16(d.bits.extend(size))
	}
}

// firstAC reads the first bits of AC coefficients, T.81 G.1.2.2.
func (d *decoder) firstAC(sc *scanner, c *component, b []int16) {
	if d.eobRun > 0 {
		d.eobRun--
		return
	}
	for k := sc.start; k <= sc.end; k++ {
		rs := d.bits.code(c.ac)
		run, size := int(rs>>4), int(rs&15)
		switch {
		case size > 0:
			k += run
			if k > sc.end {
				d.bits.fail("coefficient %d in a scan up to %d", k, sc.end)
				return
			}
			b[natural[k]] = int16(d.bits.extend(size) << sc.low)
		case run == 15:
			k += 15
		default:
			d.eobRun = 1<<run - 1 + int(d.bits.take(run))
			return
		}
	}
}

// refineAC reads a further bit of AC coefficients, T.81 G.1.2.3.
func (d *decoder) refineAC(sc *scanner, c *component, b []int16) {
	k, bit := sc.start, int16(1)<<sc.low
	for d.eobRun == 0 && k <= sc.end {
		rs := d.bits.code(c.ac)
		run, size := int(rs>>4), int(rs&15)
		fresh := int16(0)
		switch {
		case size > 1:
			d.bits.fail("a fresh coefficient of %d bits in a refinement", size)
			return
		case size == 1:
			fresh = -bit
			if d.bits.take(1) == 1 {
				fresh = bit
			}
		case run != 15:
			d.eobRun = 1<<run + int(d.bits.take(run))
		}
		if d.eobRun > 0 {
			break
		}
		k = d.refine(b, k, sc.end, run, bit)
		if fresh != 0 {
			if k > sc.end {
				d.bits.fail("coefficient %d in a scan up to %d", k, sc.end)
				return
			}
			b[natural[k]] = fresh
		}
		k++
		if d.bits.over || d.bits.err != nil {
			return
		}
	}
	if d.eobRun > 0 {
		d.refine(b, k, sc.end, 64, bit)
		d.eobRun--
	}
}

// refine reads a bit for each coefficient from k on that is not zero, up to the zero after run other zeros. It returns
// the index of that zero, or end+1.
func (d *decoder) refine(b []int16, k, end, run int, bit int16) int {
	for ; k <= end; k++ {
		p := &b[natural[k]]
		if *p == 0 {
			if run == 0 {
				break
			}
			run--
			continue
		}
		if d.bits.take(1) == 0 || *p&bit != 0 {
			continue
		}
		if *p > 0 {
			*p += bit
		} else {
			*p -= bit
		}
	}
	return k
}
