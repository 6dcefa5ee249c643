package figure

import (
	"image/color"
	"strings"
	"unicode"

	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/vg"
)

// ink is how text is set.
type ink struct {
	size  vg.Length
	color color.Color
	bold  bool
}

// capHeight is the height of a capital letter or a digit of Liberation Sans, in
// units of the font size.
const capHeight = 0.71

// bold is WeightBold of golang.org/x/image/font, whose type the field has.
const bold = 3

// Where a text's position lies in it, from its left end.
const (
	left   = 0.0
	center = 0.5
	right  = 1.0
)

func (s *sheet) face(k ink) font.Face {
	f := font.Font{Typeface: "Liberation", Variant: "Sans"}
	if k.bold {
		f.Weight = bold
	}
	return s.fonts.Lookup(f, k.size)
}

// width is the length of a single line.
func (s *sheet) width(k ink, text string) vg.Length {
	face := s.face(k)
	return face.Width(text)
}

// text writes one line with its baseline at pt.
func (s *sheet) text(k ink, pt vg.Point, align float64, text string) {
	if text == "" {
		return
	}
	face := s.face(k)
	s.c.SetColor(k.color)
	s.c.FillString(face, vg.Point{X: pt.X - vg.Length(align)*face.Width(text), Y: pt.Y}, text)
}

// label writes one line vertically centred on pt.
func (s *sheet) label(k ink, pt vg.Point, align float64, text string) {
	s.text(k, vg.Point{X: pt.X, Y: pt.Y - k.size*capHeight/2}, align, text)
}

// clip cuts text to a width and marks the cut with an ellipsis. It returns "" if not even
// the ellipsis fits.
func (s *sheet) clip(k ink, text string, width vg.Length) string {
	if s.width(k, text) <= width {
		return text
	}
	runes := []rune(text)
	for n := len(runes) - 1; n >= 0; n-- {
		short := strings.TrimRight(string(runes[:n]), " ") + "…"
		if s.width(k, short) <= width {
			return short
		}
	}
	return ""
}

// wrap breaks text at spaces into at most rows lines of a width and cuts the rest.
func (s *sheet) wrap(k ink, text string, width vg.Length, rows int) []string {
	var lines []string
	words := strings.Fields(text)
	for len(words) > 0 {
		n := 1
		for n < len(words) && s.width(k, strings.Join(words[:n+1], " ")) <= width {
			n++
		}
		if len(lines) == rows-1 {
			n = len(words)
		}
		lines = append(lines, s.clip(k, strings.Join(words[:n], " "), width))
		words = words[n:]
	}
	return lines
}

// clean makes text safe for one line of any XML document: bytes that are not UTF-8
// become U+FFFD, and control characters become spaces.
func clean(text string) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == '\uFFFE' || r == '\uFFFF' {
			return ' '
		}
		return r
	}, text))
}
