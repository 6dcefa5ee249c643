package picture

import (
	"bytes"
	"encoding/binary"
	"regexp"
	"strconv"
	"sync"
)

// turn is an orientation of EXIF (TIFF tag 274): where row 0 and column 0 of the file lie in the upright image. 1, and
// any number not between 1 and 8: top and left.
type turn int

// swaps reports whether rows become columns.
func (t turn) swaps() bool { return t >= 5 && t <= 8 }

// apply returns the upright image, as Pillow's ImageOps.exif_transpose.
func (t turn) apply(m bitmap) bitmap {
	if t < 2 || t > 8 {
		return m
	}
	out := newBitmap(m.width, m.height)
	if t.swaps() {
		out = newBitmap(m.height, m.width)
	}
	for y := range out.height {
		dst := out.row(y)
		for x := range out.width {
			fx, fy := x, y
			if t.swaps() {
				fx, fy = y, x
			}
			if t == 2 || t == 3 || t == 7 || t == 8 {
				fx = m.width - 1 - fx
			}
			if t == 3 || t == 4 || t == 6 || t == 7 {
				fy = m.height - 1 - fy
			}
			copy(dst[3*x:3*x+3], m.pix[3*(fy*m.width+fx):])
		}
	}
	return out
}

// turn returns how the image of a file lies, from EXIF or, if that does not say, from XMP, as Pillow reads it.
func (f format) turn(encoded []byte) turn {
	if f.notes == nil {
		return 1
	}
	exif, xmp := f.notes(encoded)
	if t, ok := fromEXIF(exif); ok {
		return t
	}
	if found := inXMP().FindSubmatch(xmp); found != nil {
		n, _ := strconv.Atoi(string(found[1]))
		return turn(n)
	}
	return 1
}

var inXMP = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`tiff:Orientation(?:="|>)([0-9])`)
})

// fromEXIF returns tag 274 of the first directory of TIFF data.
func fromEXIF(data []byte) (turn, bool) {
	for bytes.HasPrefix(data, []byte("Exif\x00\x00")) {
		data = data[6:]
	}
	if len(data) < 8 {
		return 0, false
	}
	var order binary.ByteOrder = binary.LittleEndian
	if string(data[:2]) == "MM" {
		order = binary.BigEndian
	}
	at := order.Uint32(data[4:])
	if uint64(at)+2 > uint64(len(data)) {
		return 0, false
	}
	entries := data[at+2:]
	for range order.Uint16(data[at:]) {
		if len(entries) < 12 {
			break
		}
		count := order.Uint32(entries[4:])
		if v, ok := wholeNumber(order, entries); ok && order.Uint16(entries) == 274 && count == 1 {
			return v, true
		}
		entries = entries[12:]
	}
	return 0, false
}

// wholeNumber returns the value of a directory's entry of one of the types that Pillow makes whole numbers, though
// EXIF has only the first for orientations: SHORT and SSHORT, LONG and SLONG, SBYTE.
func wholeNumber(order binary.ByteOrder, entry []byte) (v turn, ok bool) {
	switch order.Uint16(entry[2:]) {
	case 3, 8:
		return turn(order.Uint16(entry[8:])), true
	case 4, 9:
		return turn(order.Uint32(entry[8:])), true
	case 6:
		return turn(entry[8]), true
	}
	return 0, false
}

// notesJPEG returns the EXIF and XMP segments before the first scan.
func notesJPEG(data []byte) (exif, xmp []byte) {
	const app1, sos = 0xe1, 0xda
	for data = data[2:]; len(data) >= 4 && data[0] == 0xff && data[1] != sos; {
		if data[1] == 0xff { // a fill byte
			data = data[1:]
			continue
		}
		n := int(binary.BigEndian.Uint16(data[2:]))
		if n < 2 || len(data) < 2+n {
			return exif, xmp
		}
		s := data[4 : 2+n]
		if data[1] == app1 {
			if bytes.HasPrefix(s, []byte("Exif\x00\x00")) && exif == nil {
				exif = s
			}
			if text, ok := bytes.CutPrefix(s, []byte("http://ns.adobe.com/xap/1.0/\x00")); ok {
				xmp = text
			}
		}
		data = data[2+n:]
	}
	return exif, xmp
}

// notesPNG returns the chunks with EXIF and with XMP, unless that is compressed.
func notesPNG(data []byte) (exif, xmp []byte) {
	for data = data[8:]; len(data) >= 12; {
		n := uint64(binary.BigEndian.Uint32(data))
		if n+12 > uint64(len(data)) {
			break
		}
		s := data[8 : 8+n]
		switch string(data[4:8]) {
		case "eXIf":
			exif = s
		case "iTXt":
			if text, ok := bytes.CutPrefix(s, []byte("XML:com.adobe.xmp\x00\x00")); ok {
				xmp = text
			}
		}
		data = data[12+n:]
	}
	return exif, xmp
}

// notesWebP returns the chunks with EXIF and XMP.
func notesWebP(data []byte) (exif, xmp []byte) {
	for data = data[12:]; len(data) >= 8; {
		n := uint64(binary.LittleEndian.Uint32(data[4:]))
		if n+8 > uint64(len(data)) {
			break
		}
		switch string(data[:4]) {
		case "EXIF":
			exif = data[8 : 8+n]
		case "XMP ":
			xmp = data[8 : 8+n]
		}
		data = data[min(8+n+n%2, uint64(len(data))):]
	}
	return exif, xmp
}
