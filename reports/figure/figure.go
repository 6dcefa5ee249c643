package figure

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"image/color"
	"image/png"
	"math"
	"regexp"
	"slices"
	"strings"

	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/font/liberation"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgsvg"
)

// ErrNoData is returned when a figure has no finite number to draw.
var ErrNoData = errors.New("nothing to draw")

// Figure is a drawn figure. The input must not change while it is in use: Render draws it
// again.
type Figure struct {
	Name    string // as in Head
	Title   string // as in Head, cleaned
	Caption Caption
	Alt     string // one line of plain text that describes the picture
	SVG     []byte // a whole document, text as text
	Data    any    // what was drawn, for encoding/json; numbers that are not finite become null

	picture picture
}

// Inline returns the SVG as an element for an HTML page, without the XML declaration. It
// has no ids, so one page can hold several.
func (f Figure) Inline() []byte {
	return f.SVG[max(0, bytes.Index(f.SVG, []byte("<svg"))):]
}

// Caption is the text below a figure. The zero value is an empty caption.
type Caption struct {
	About    string   // the caller's sentences on the content and the measurement
	Seeds    string   // seeds per arm
	Interval string   // what line, band and bars mean, with level and method
	Units    string   // what the axes count
	Notes    []string // missing or unexpected data, one sentence each
}

// String returns the caption as running text.
func (c Caption) String() string {
	parts := make([]string, 0, 4+len(c.Notes))
	for _, p := range append([]string{c.About, c.Seeds, c.Interval, c.Units}, c.Notes...) {
		if p = strings.TrimSpace(p); p == "" {
			continue
		}
		if !strings.ContainsAny(p[len(p)-1:], ".!?") {
			p += "."
		}
		parts = append(parts, p)
	}
	return strings.Join(parts, " ")
}

// Head holds the name, title and description of a figure.
type Head struct {
	Name  string // file name without number and suffix: lower-case letters, digits, hyphens
	Title string // drawn above the figure; a noun phrase
	About string // begins the caption: the content and the measurement

	// Order names the arms of the whole report. An arm's place here sets its style, so it
	// looks the same in every figure; other arms follow. nil: the order of this figure's
	// arms.
	Order []string

	// Focus names the arms whose bands are drawn in a figure of more than mostBands arms.
	Focus []string
}

// mostBands is the number of bands that can be told apart.
const mostBands = 4

// Heading returns the figure's name and title.
func (h Head) Heading() (name, title string) { return h.Name, h.Title }

// Estimate is a value with its interval. Without one, Lo and Hi are NaN or equal to
// Value.
type Estimate struct {
	Value, Lo, Hi float64
}

// Point is an estimate without interval.
func Point(v float64) Estimate {
	return Estimate{Value: v, Lo: math.NaN(), Hi: math.NaN()}
}

// interval reports whether e has an interval that can be drawn.
func (e Estimate) interval() bool {
	return drawable(e.Value) && drawable(e.Lo) && drawable(e.Hi) && e.Lo < e.Hi
}

// number is a float64 for JSON, null if it is not finite.
type number float64

// MarshalJSON writes the shortest text that reads back as the same float64.
func (n number) MarshalJSON() ([]byte, error) {
	if v := float64(n); math.IsNaN(v) || math.IsInf(v, 0) {
		return []byte("null"), nil
	}
	return json.Marshal(float64(n))
}

func numbers(xs []float64) []number {
	out := make([]number, len(xs))
	for i, x := range xs {
		out[i] = number(x)
	}
	return out
}

// estimateData is an Estimate in a figure's data.
type estimateData struct {
	Value number `json:"value"`
	Lo    number `json:"lo"`
	Hi    number `json:"hi"`
}

func (e Estimate) data() estimateData {
	return estimateData{number(e.Value), number(e.Lo), number(e.Hi)}
}

// enumerate joins parts for an alt text, which names no more than the first eight.
func enumerate(parts []string) string {
	const most = 8
	if n := len(parts) - most; n > 0 {
		parts = append(parts[:most:most], fmt.Sprintf("and %d more", n))
	}
	return strings.Join(parts, "; ")
}

// limit bounds drawable values: beyond it, and below its inverse, axis arithmetic could
// overflow float64.
const limit = 1e150

// drawable reports whether v has a place on a linear axis.
func drawable(v float64) bool { return math.Abs(v) <= limit } // false for NaN

var nameRE = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)

func (h Head) check() error {
	if !nameRE.MatchString(h.Name) {
		return fmt.Errorf("figure %q: a name has lower-case letters, digits and single hyphens only", h.Name)
	}
	return nil
}

// errorf is an error that names the figure.
func (h Head) errorf(format string, args ...any) error {
	return fmt.Errorf("figure "+h.Name+": "+format, args...)
}

func (h Head) noData(what string) error {
	return fmt.Errorf("figure %s: %w: %s", h.Name, ErrNoData, what)
}

// picture is the input of render, which calls draw once per format.
type picture struct {
	caption Caption
	alt     string
	data    any
	height  vg.Length // on a report's page, with room for rows of the legend
	rows    int       // 0: the height does not depend on the width
	legend  []entry   // more rows make the sheet higher
	draw    func(*sheet)
}

// render draws the figure for a report.
func (h Head) render(p picture) (f Figure, err error) {
	f = Figure{Name: h.Name, Title: clean(h.Title), Caption: p.caption, Alt: clean(p.alt), Data: p.data, picture: p}
	if f.SVG, err = f.svg(Report()); err != nil {
		return Figure{}, err
	}
	return f, nil
}

// sheet returns the sheet for a setting, without a canvas.
func (f Figure) sheet(s Setting) *sheet {
	const titleHeight = titleSize*1.25 + gap
	p := f.picture
	w, height := s.Width/vg.Length(s.Scale), p.height
	if p.rows > 0 { // as high as the width asks
		height *= vg.Length(math.Sqrt(float64(w / pageWidth)))
	}
	out := newSheet(nil, w, 0, font.NewCache(liberation.Collection()))
	if more := out.legendRows(p.legend) - p.rows; more > 0 {
		height += vg.Length(more) * rowHeight
	}
	if out.untitled = s.Untitled; s.Untitled {
		height -= titleHeight
	}
	out.h = height
	return out
}

func (f Figure) svg(s Setting) ([]byte, error) {
	sheet := f.sheet(s)
	svg := vgsvg.New(sheet.w, sheet.h)
	sheet.c = svg
	sheet.rect(0, 0, sheet.w, sheet.h, color.White)
	f.picture.draw(sheet)
	var b bytes.Buffer
	if _, err := svg.WriteTo(&b); err != nil {
		return nil, fmt.Errorf("figure %s: svg: %w", f.Name, err)
	}
	out, err := finishSVG(b.Bytes(), f.Title, f.Alt)
	if err != nil {
		return nil, fmt.Errorf("figure %s: svg: %w", f.Name, err)
	}
	const end = "</svg>"
	last := bytes.LastIndex(out, []byte(end))
	out = slices.Concat(out[:last], sheet.tipElements(), out[last:])
	if s.Scale != 1 {
		size := fmt.Sprintf(`<svg width="%.5gpt" height="%.5gpt"`, s.Scale*sheet.w.Points(), s.Scale*sheet.h.Points())
		out = svgSizeRE.ReplaceAll(out, []byte(size))
	}
	return out, nil
}

var svgSizeRE = regexp.MustCompile(`<svg width="[^"]*" height="[^"]*"`)

// png draws the figure with pngDPI dots per inch and without transparency. It takes some fifty times as long as svg.
func (f Figure) png(s Setting) ([]byte, error) {
	sheet := f.sheet(s)
	dpi := int(math.Round(pngDPI * s.Scale))
	img := vgimg.NewWith(vgimg.UseWH(sheet.w, sheet.h), vgimg.UseDPI(dpi)) // white
	sheet.c = img
	f.picture.draw(sheet)
	var b bytes.Buffer
	enc := png.Encoder{CompressionLevel: png.BestSpeed} // half the time, 4 % more bytes
	if err := enc.Encode(&b, img.Image()); err != nil {
		return nil, fmt.Errorf("figure %s: png: %w", f.Name, err)
	}
	return b.Bytes(), nil
}

// finishSVG adds what gonum's SVG lacks: a title and a description for screen
// readers, round joins (noisy curves grow spikes otherwise), and fonts of the same
// widths for machines without Liberation Sans.
func finishSVG(svg []byte, title, alt string) ([]byte, error) {
	const open = `xmlns:xlink="http://www.w3.org/1999/xlink">`
	at := bytes.Index(svg, []byte(open))
	if at < 0 {
		return nil, errors.New("canvas wrote no <svg> element")
	}
	var b bytes.Buffer
	b.Write(svg[:at+len(open)-1])
	fmt.Fprintf(&b, ` role="img" stroke-linejoin="round">`+"\n<title>%s</title>\n<desc>%s</desc>",
		html.EscapeString(title), html.EscapeString(alt))
	b.Write(svg[at+len(open):])
	return bytes.ReplaceAll(b.Bytes(), []byte(`style="font-family:Liberation Sans;`),
		[]byte(`style="font-family:Liberation Sans,Arial,Helvetica,sans-serif;`)), nil
}
