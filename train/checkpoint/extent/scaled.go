package extent

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"os"
)

// Values are what codes stand for. Equal names mean equal values.
type Values struct {
	Name string
	Of   [256]float32
}

// Integers returns codes that stand for themselves less an offset, or, if signed, for two's complements.
func Integers(offset int, signed bool) *Values {
	v := Values{Name: fmt.Sprint(offset, signed)}
	for b := range v.Of {
		if v.Of[b] = float32(b - offset); signed {
			v.Of[b] = float32(int(int8(b)) - offset)
		}
	}
	return &v
}

// Scaling describes a matrix of quantized numbers. The element in row r and column c is, with g the column's group,
//
//	round((Values[Codes[r,c]] - ZeroValues[Zeros[r,g]]) · Scales[r,g]) · Factor + Offset
//
// in float32, where round is to the type of the scales; the result is rounded to Type. All roundings are to nearest,
// ties to even.
type Scaling struct {
	Codes  Extent // [Rows,Cols], a byte each; the last row may be shorter
	Cols   int
	Levels int // codes are below it; 0 means 256
	Values *Values

	Scales    Extent // [Rows,Groups]
	ScaleType string // F32, F16, BF16, or F8_E4M3 as F32
	Groups    int
	GroupCols int    // columns of a group; 0 if Index has them
	Index     Extent // I32 [Cols]: the group of each column. Anything below zero in it means GroupCols, if not 0

	Zeros      Extent // [Rows,Groups], a byte each; empty if there are none
	ZeroValues *Values

	Factor  float32 // 0 means 1
	Divisor float32 // of each scale, before anything else; 0 means 1
	Offset  float32
	Type    string // of the result: F32, F16 or BF16
}

// scaled is a matrix of quantized numbers, multiplied out.
type scaled struct {
	Scaling
	scaleSize, size int64 // bytes of a scale, and of an element
	plain           bool  // whether elements are nothing but products, rounded once
	rows            int64
	groups          *groupList // nil without Index
}

// Scaled returns the elements of a matrix of quantized numbers. It panics if the parts do not fit each other, or if it
// does not know a type.
func Scaled(s Scaling) Extent {
	if s.Cols < 1 || s.Groups < 1 || s.Codes.size < 1 || s.Index.size == 0 && s.GroupCols < 1 {
		panic("extent: an empty matrix or group")
	}
	if s.Levels == 0 {
		s.Levels = 256
	}
	x := scaled{Scaling: s, rows: (s.Codes.size + int64(s.Cols) - 1) / int64(s.Cols)}
	x.scaleSize, x.size = floatSize(s.ScaleType), floatSize(s.Type)
	if x.scaleSize < 1 || x.size < 2 {
		panic("extent: scales of type " + s.ScaleType + " for elements of type " + s.Type)
	}
	x.plain = s.Factor == 0 && s.Offset == 0 &&
		(s.ScaleType == s.Type || s.ScaleType == "F32" || s.ScaleType == "F8_E4M3")
	n := x.rows * int64(s.Groups)
	if s.Scales.size != n*x.scaleSize || s.Zeros.size != 0 && s.Zeros.size != n {
		panic("extent: not one scale, or zero point, for each group of a row")
	}
	if s.Index.size != 0 {
		if s.Index.size != 4*int64(s.Cols) {
			panic("extent: not one group for each column")
		}
		x.groups = &groupList{of: s.Index, cols: s.Cols, groups: s.Groups, even: s.GroupCols}
	} else if (s.Cols+s.GroupCols-1)/s.GroupCols > s.Groups {
		panic("extent: more columns than the groups have")
	}
	return Extent{x, s.Codes.size * x.size}
}

// floatSize returns the bytes of a number, 0 for an unknown type.
func floatSize(kind string) int64 {
	switch kind {
	case "F32":
		return 4
	case "F16", "BF16":
		return 2
	case "F8_E4M3":
		return 1
	}
	return 0
}

// Grain returns how many bytes of e are best read at once, 0 if any number will do.
func (e Extent) Grain() int64 { return grainOf(e.node) }

// grainOf returns it for scattered codes: pieces that lie together in a file are longer the more rows are read.
func grainOf(n node) int64 {
	switch x := n.(type) {
	case scaled:
		if u, ok := x.Codes.node.(unpacked); ok && u.RowBytes == 0 {
			return 8 * scratchBytes * x.size // a word has integers of several rows
		}
		return 2 * scratchBytes * x.size
	case slice:
		return grainOf(x.of)
	}
	return 0
}

func (x scaled) read(p []byte, off int64) error {
	atOnce := grainOf(x) / x.size // codes
	codes, wide := make([]byte, min(int64(len(p))/x.size+2, atOnce)), []byte(nil)
	d := scaledRows{scaled: &x, width: x.GroupCols, row: -1}
	if x.groups != nil {
		var err error
		if d.list, d.width, err = x.groups.read(); err != nil {
			return err
		}
	}
	for len(p) > 0 {
		first, skip := off/x.size, off%x.size
		n := min((skip+int64(len(p))+x.size-1)/x.size, atOnce)
		if whole := (first + n) / int64(x.Cols) * int64(x.Cols); n == atOnce && whole > first {
			n = whole - first // so that the next read begins with a row
		}
		if err := x.Codes.node.read(codes[:n], first); err != nil {
			return err
		}
		if err := d.fetch(first/int64(x.Cols), (first+n-1)/int64(x.Cols)+1); err != nil {
			return err
		}
		if skip == 0 && int64(len(p)) >= x.size*n {
			d.scale(p[:x.size*n], codes[:n], first)
			p, off = p[x.size*n:], off+x.size*n
			continue
		}
		wide = append(wide[:0], make([]byte, x.size*n)...)
		d.scale(wide, codes[:n], first)
		done := copy(p, wide[skip:])
		p, off = p[done:], off+int64(done)
	}
	return nil
}

// scaledRows has the scales and zero points of some rows.
type scaledRows struct {
	*scaled
	width         int     // columns of a group, if list is nil
	list          []int32 // group of each column
	top           int64   // the first row
	scales, zeros []byte
	row           int64    // whose table it is; -1: none
	tables        []uint32 // [Groups,Levels] elements
	made          []bool   // [Groups]
}

// fetch reads the scales and zero points of rows.
func (d *scaledRows) fetch(top, bottom int64) error {
	d.top = top
	groups, n := int64(d.Groups), bottom-top
	read := func(e Extent, had []byte, size int64) ([]byte, error) {
		if e.size == 0 {
			return nil, nil
		}
		if int64(cap(had)) < n*groups*size {
			had = make([]byte, n*groups*size)
		}
		had = had[:n*groups*size]
		return had, e.node.read(had, top*groups*size)
	}
	var err error
	if d.scales, err = read(d.Scales, d.scales, d.scaleSize); err != nil {
		return err
	}
	d.zeros, err = read(d.Zeros, d.zeros, 1)
	return err
}

// scale sets dst to the elements of codes from an element on.
func (d *scaledRows) scale(dst, codes []byte, first int64) {
	for len(codes) > 0 {
		row, col := first/int64(d.Cols), int(first%int64(d.Cols))
		n := min(d.Cols-col, len(codes))
		if d.row != row {
			d.row = row
			clear(d.made)
		}
		if d.list != nil {
			d.listed(dst, codes[:n], row, d.list[col:])
		} else {
			d.even(dst, codes[:n], row, col)
		}
		codes, dst, first = codes[n:], dst[int64(n)*d.size:], first+int64(n)
	}
}

// even does so within a row whose groups are columns in order.
func (d *scaledRows) even(dst, codes []byte, row int64, col int) {
	for len(codes) > 0 {
		g := col / d.width
		n := min((g+1)*d.width-col, len(codes))
		if d.Levels > n { // sooner multiplied than looked up
			zero, scale := d.of(row, g)
			d.direct(dst, codes[:n], zero, scale)
		} else {
			d.lookUp(dst, codes[:n], d.table(row, g))
		}
		codes, dst, col = codes[n:], dst[int64(n)*d.size:], col+n
	}
}

// lookUp sets dst to the elements of codes in a table.
func (d *scaledRows) lookUp(dst, codes []byte, table []uint32) {
	if d.size == 4 {
		for i, c := range codes {
			binary.LittleEndian.PutUint32(dst[4*i:4*i+4], table[c])
		}
		return
	}
	for i, c := range codes {
		binary.LittleEndian.PutUint16(dst[2*i:2*i+2], uint16(table[c]))
	}
}

// direct sets dst to the elements of codes in a group.
func (d *scaledRows) direct(dst, codes []byte, zero, scale float32) {
	of := &d.Values.Of
	switch {
	case d.plain && d.Type == "F16":
		for i, c := range codes {
			binary.LittleEndian.PutUint16(dst[2*i:2*i+2], nearHalf(float32(of[c]-zero)*scale))
		}
	case d.plain && d.Type == "BF16":
		for i, c := range codes {
			binary.LittleEndian.PutUint16(dst[2*i:2*i+2], BF16(float32(of[c]-zero)*scale))
		}
	default:
		for i, c := range codes {
			d.put(dst, i, d.element(c, zero, scale))
		}
	}
}

// listed does so within a row with the groups of columns.
func (d *scaledRows) listed(dst, codes []byte, row int64, list []int32) {
	small := d.Levels*d.Groups <= 4*d.Cols
	for i, c := range codes {
		g := int(list[i])
		if small {
			d.put(dst, i, d.table(row, g)[c])
			continue
		}
		zero, scale := d.of(row, g)
		d.put(dst, i, d.element(c, zero, scale))
	}
}

func (d *scaledRows) put(dst []byte, i int, element uint32) {
	if d.size == 2 {
		binary.LittleEndian.PutUint16(dst[2*i:], uint16(element))
	} else {
		binary.LittleEndian.PutUint32(dst[4*i:], element)
	}
}

// table returns the elements of all codes in a group of a row.
func (d *scaledRows) table(row int64, g int) []uint32 {
	if d.tables == nil { // no more elements than some rows have
		d.tables, d.made = make([]uint32, d.Groups*d.Levels), make([]bool, d.Groups)
	}
	table := d.tables[g*d.Levels : (g+1)*d.Levels]
	if !d.made[g] {
		d.made[g] = true
		zero, scale := d.of(row, g)
		of := d.Values.Of[:len(table)]
		switch {
		case d.plain && d.Type == "F16":
			for c, v := range of {
				table[c] = uint32(nearHalf(float32(v-zero) * scale))
			}
		case d.plain && d.Type == "BF16":
			for c, v := range of {
				table[c] = uint32(BF16(float32(v-zero) * scale))
			}
		default:
			for c := range table {
				table[c] = d.element(byte(c), zero, scale)
			}
		}
	}
	return table
}

// of returns the zero point and the scale of a group of a row.
func (d *scaledRows) of(row int64, g int) (zero, scale float32) {
	at := (row-d.top)*int64(d.Groups) + int64(g)
	if d.zeros != nil {
		zero = d.ZeroValues.Of[d.zeros[at]]
	}
	scale = floatOf(d.ScaleType, d.scales[at*d.scaleSize:])
	if d.Divisor != 0 {
		scale /= d.Divisor
	}
	return zero, scale
}

// floatOf returns the number that some bytes have.
func floatOf(kind string, b []byte) float32 {
	switch kind {
	case "F16":
		return Half(binary.LittleEndian.Uint16(b))
	case "BF16":
		return math.Float32frombits(uint32(binary.LittleEndian.Uint16(b)) << 16)
	case "F8_E4M3":
		return e4m3[b[0]]
	}
	return math.Float32frombits(binary.LittleEndian.Uint32(b))
}

// rounded returns the bits of a number in a type, and the number that they are.
func rounded(kind string, v float32) (uint32, float32) {
	switch kind {
	case "F16":
		h, _ := F16(v)
		return uint32(h), Half(h)
	case "BF16":
		h := BF16(v)
		return uint32(h), math.Float32frombits(uint32(h) << 16)
	}
	return math.Float32bits(v), v
}

// element returns the bits of an element. The conversions to float32 forbid fused operations.
func (x *scaled) element(code byte, zero, scale float32) uint32 {
	v := float32(x.Values.Of[code] - zero)
	_, v = rounded(x.ScaleType, float32(v*scale))
	if x.Factor != 0 {
		v = float32(v * x.Factor)
	}
	if x.Offset != 0 {
		v = float32(v + x.Offset)
	}
	bits, _ := rounded(x.Type, v)
	return bits
}

func (x scaled) visit(off, n int64, f func(file *os.File, at, n int64) bool) bool {
	first, last := off/x.size, (off+n-1)/x.size
	row := first / int64(x.Cols) * int64(x.Groups)
	rows := (last/int64(x.Cols)+1)*int64(x.Groups) - row
	return x.Codes.node.visit(first, last+1-first, f) && x.Scales.node.visit(row*x.scaleSize, rows*x.scaleSize, f) &&
		(x.Zeros.size == 0 || x.Zeros.node.visit(row, rows, f)) &&
		(x.Index.size == 0 || x.Index.node.visit(0, x.Index.size, f))
}

func (x scaled) describe(w io.Writer, number func(*os.File) int) {
	fmt.Fprintf(w, "scaled(%d,%d,%d,%d,%s,%s,%x,%x,%x,%s,", x.Cols, x.Levels, x.Groups, x.GroupCols, x.ScaleType,
		x.Type, x.Factor, x.Divisor, x.Offset, x.Values.Name)
	if x.ZeroValues != nil {
		fmt.Fprintf(w, "%s,", x.ZeroValues.Name)
	}
	for _, e := range []Extent{x.Codes, x.Scales, x.Zeros, x.Index} {
		e.Describe(w, number)
		io.WriteString(w, ",")
	}
	io.WriteString(w, ")")
}
