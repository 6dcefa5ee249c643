package jpeg

import (
	"errors"
	"fmt"
)

// Image holds RGB pixels.
type Image struct {
	Width, Height int
	Pix           []uint8 // [Height][Width][3]
}

// Markers, ITU-T T.81 table B.1.
const (
	sof0  = 0xc0 // baseline
	sof1  = 0xc1 // extended sequential
	sof2  = 0xc2 // progressive
	dht   = 0xc4
	jpg   = 0xc8
	dac   = 0xcc
	sof15 = 0xcf
	rst0  = 0xd0
	rst7  = 0xd7
	soi   = 0xd8
	eoi   = 0xd9
	sos   = 0xda
	dqt   = 0xdb
	dnl   = 0xdc
	dri   = 0xdd
	app0  = 0xe0
	app14 = 0xee
	tem   = 0x01
)

var (
	errShort = errors.New("the file is cut off")
	errNoEnd = errors.New("the file is cut off: no end-of-image marker")
)

// Size returns the width and the height in pixels, from the header.
func Size(data []byte) (width, height int, err error) {
	d := decoder{data: data}
	if err := d.segments(true); err != nil {
		return 0, 0, fmt.Errorf("jpeg: %w", err)
	}
	return d.width, d.height, nil
}

// Decode decodes a file. It does not limit the size of images: see Size.
func Decode(data []byte) (Image, error) {
	d := decoder{data: data}
	if err := d.segments(false); err != nil {
		return Image{}, fmt.Errorf("jpeg: %w", err)
	}
	return Image{d.width, d.height, d.pixels()}, nil
}

// decoder is the state of decoding one file.
type decoder struct {
	data          []byte
	at            int // of the next byte
	width, height int
	progressive   bool
	components    []component
	maxH, maxV    int
	quant         [4]*[64]uint16 // in natural order
	dc, ac        [4]*huffman
	interval      int // restart interval in MCUs; 0: none
	jfif, adobe   bool
	transform     uint8 // of Adobe's segment
	bits          bits
	eobRun        int // blocks of a progressive AC scan that have no more coefficients
}

// component is one colour component of the frame.
type component struct {
	id            uint8
	h, v          int   // sampling factors
	selector      uint8 // of the quantization table
	quant         *[64]uint16
	width, height int     // in samples
	wide, high    int     // in blocks, without the padding to whole MCUs
	stride, rows  int     // in blocks, with it
	coefs         []int16 // [rows][stride][64] in natural order
	dc, ac        *huffman
	last          int32 // DC predictor
	scanned       bool
}

// segments reads markers up to the last scan, or up to the frame header only.
func (d *decoder) segments(header bool) error {
	if len(d.data) < 2 || d.data[0] != 0xff || d.data[1] != soi {
		return errors.New("no start-of-image marker")
	}
	d.at = 2
	for {
		m, err := d.marker()
		if err != nil {
			return err
		}
		if m == eoi {
			return d.complete(header)
		}
		if m >= rst0 && m <= soi || m == tem { // they have no segment
			continue
		}
		s, err := d.segment()
		if err != nil {
			return err
		}
		if err := d.read(m, s); err != nil {
			return err
		}
		if header && d.components != nil {
			return nil
		}
		if m == sos && !d.progressive && d.all() {
			return nil // what follows can change nothing
		}
	}
}

// complete reports the parts that are missing at the end of the file.
func (d *decoder) complete(header bool) error {
	switch {
	case d.components == nil:
		return errors.New("no frame header")
	case !header && !d.all():
		return errors.New("a colour component has no data")
	}
	return nil
}

// all reports whether every component was in a scan.
func (d *decoder) all() bool {
	for i := range d.components {
		if !d.components[i].scanned {
			return false
		}
	}
	return true
}

// marker finds the next marker and returns its code. It skips other bytes as libjpeg does.
func (d *decoder) marker() (uint8, error) {
	for d.at < len(d.data) {
		c := d.data[d.at]
		d.at++
		if c != 0xff {
			continue
		}
		for d.at < len(d.data) && d.data[d.at] == 0xff {
			d.at++
		}
		if d.at == len(d.data) {
			break
		}
		m := d.data[d.at]
		d.at++
		if m != 0 {
			return m, nil
		}
	}
	return 0, errNoEnd
}

// segment returns the contents of the segment at d.at.
func (d *decoder) segment() ([]byte, error) {
	if len(d.data)-d.at < 2 {
		return nil, errShort
	}
	n := int(d.data[d.at])<<8 | int(d.data[d.at+1])
	if n < 2 {
		return nil, fmt.Errorf("a segment of %d bytes", n)
	}
	if len(d.data)-d.at < n {
		return nil, errShort
	}
	s := d.data[d.at+2 : d.at+n]
	d.at += n
	return s, nil
}

// read reads segment s of marker m.
func (d *decoder) read(m uint8, s []byte) error {
	switch {
	case m == sof0 || m == sof1 || m == sof2:
		d.progressive = m == sof2
		return d.frame(s)
	case m == dht:
		return d.huffmanTables(s)
	case m == dqt:
		return d.quantTables(s)
	case m == dri:
		if len(s) != 2 {
			return fmt.Errorf("a restart segment of %d bytes", len(s))
		}
		d.interval = int(s[0])<<8 | int(s[1])
	case m == sos:
		return d.scan(s)
	case m == dac || m >= 0xc9 && m <= sof15:
		return errors.New("arithmetic coding is not supported")
	case m > sof2 && m < jpg:
		return errors.New("lossless and hierarchical files are not supported")
	case m == dnl:
		return errors.New("the height is not in the frame header: not supported")
	case m == app0 && len(s) >= 12 && string(s[:5]) == "JFIF\x00":
		d.jfif = true
	case m == app14 && len(s) >= 12 && string(s[:5]) == "Adobe":
		d.adobe, d.transform = true, s[11]
	}
	return nil
}

// frame reads a frame header, T.81 B.2.2.
func (d *decoder) frame(s []byte) error {
	if d.components != nil {
		return errors.New("two frame headers")
	}
	if len(s) < 6 || len(s) != 6+3*int(s[5]) {
		return fmt.Errorf("a frame header of %d bytes", len(s))
	}
	if s[0] != 8 {
		return fmt.Errorf("%d bits a sample: only 8 are supported", s[0])
	}
	d.height, d.width = int(s[1])<<8|int(s[2]), int(s[3])<<8|int(s[4])
	if d.height == 0 || d.width == 0 {
		return fmt.Errorf("a size of %d×%d pixels", d.width, d.height)
	}
	n := int(s[5])
	if n != 1 && n != 3 && n != 4 {
		return fmt.Errorf("%d colour components", n)
	}
	cs := make([]component, n)
	for i := range cs {
		c := s[6+3*i:]
		cs[i] = component{id: c[0], h: int(c[1] >> 4), v: int(c[1] & 15), selector: c[2]}
		if cs[i].h < 1 || cs[i].h > 4 || cs[i].v < 1 || cs[i].v > 4 || c[2] > 3 {
			return fmt.Errorf("component %d: sampling %d×%d, quantization table %d", c[0], cs[i].h, cs[i].v, c[2])
		}
		d.maxH, d.maxV = max(d.maxH, cs[i].h), max(d.maxV, cs[i].v)
	}
	across, down := ceil(d.width, 8*d.maxH), ceil(d.height, 8*d.maxV)
	for i := range cs {
		c := &cs[i]
		if d.maxH%c.h != 0 || d.maxV%c.v != 0 {
			return fmt.Errorf("component %d: sampling %d×%d of %d×%d is not supported", c.id, c.h, c.v, d.maxH, d.maxV)
		}
		c.width, c.height = ceil(d.width*c.h, d.maxH), ceil(d.height*c.v, d.maxV)
		c.wide, c.high = ceil(c.width, 8), ceil(c.height, 8)
		c.stride, c.rows = across*c.h, down*c.v
	}
	d.components = cs
	return nil
}

// quantTables reads quantization tables, T.81 B.2.4.1.
func (d *decoder) quantTables(s []byte) error {
	for len(s) > 0 {
		size, id := 1+int(s[0]>>4), s[0]&15
		if size > 2 || id > 3 || len(s) < 1+64*size {
			return errors.New("a malformed quantization table")
		}
		s = s[1:]
		t := new([64]uint16)
		for i := range t {
			if size == 1 {
				t[natural[i]] = uint16(s[i])
			} else {
				t[natural[i]] = uint16(s[2*i])<<8 | uint16(s[2*i+1])
			}
		}
		d.quant[id] = t
		s = s[64*size:]
	}
	return nil
}

func ceil(a, b int) int { return (a + b - 1) / b }

// natural maps an index in zigzag order to row·8 + column.
var natural = [64]uint8{
	0, 1, 8, 16, 9, 2, 3, 10,
	17, 24, 32, 25, 18, 11, 4, 5,
	12, 19, 26, 33, 40, 48, 41, 34,
	27, 20, 13, 6, 7, 14, 21, 28,
	35, 42, 49, 56, 57, 50, 43, 36,
	29, 22, 15, 23, 30, 37, 44, 51,
	58, 59, 52, 45, 38, 31, 39, 46,
	53, 60, 61, 54, 47, 55, 62, 63,
}
