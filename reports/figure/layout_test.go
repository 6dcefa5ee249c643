package figure

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"image/png"
	"io"
	"math/rand/v2"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/font/liberation"
	"gonum.org/v1/plot/vg"
)

// printed is a text of an SVG with the box it covers, y growing downwards.
type printed struct {
	text           string
	x0, y0, x1, y1 float64
}

// document holds what the tests read of an SVG.
type document struct {
	w, h  float64
	title string
	desc  string
	texts []printed
}

// corner matches a point of a path.
var corner = regexp.MustCompile(`[ML](-?[0-9.]+),(-?[0-9.]+)`)

// checkPath requires that a path stays on the page, whose size is known when the
// first path comes.
func checkPath(t *testing.T, d string, w, h float64) {
	t.Helper()
	for _, m := range corner.FindAllStringSubmatch(d, -1) {
		x, errX := strconv.ParseFloat(m[1], 64)
		y, errY := strconv.ParseFloat(m[2], 64)
		if errX != nil || errY != nil || x < -0.01 || x > w+0.01 || y < -0.01 || y > h+0.01 {
			t.Errorf("path point %s leaves the page of %v × %v", m[0], w, h)
			return
		}
	}
}

// notFinite matches a coordinate that is not a plain number.
var notFinite = regexp.MustCompile(`NaN|Inf|[0-9]e[+-]?[0-9]`)

// readSVG reads a document. It fails the test on XML that is not well-formed, on
// ids, and on coordinates that are not plain numbers.
func readSVG(t *testing.T, svg []byte) document {
	t.Helper()
	var doc document
	d := xml.NewDecoder(bytes.NewReader(svg))
	for {
		token, err := d.Token()
		if err == io.EOF {
			return doc
		}
		if err != nil {
			t.Fatalf("SVG is not XML: %v", err)
		}
		e, ok := token.(xml.StartElement)
		if !ok {
			continue
		}
		attr := map[string]string{}
		for _, a := range e.Attr {
			attr[a.Name.Local] = a.Value
		}
		if id, ok := attr["id"]; ok {
			t.Errorf("element %s has the id %q", e.Name.Local, id)
		}
		if bad := notFinite.FindString(attr["d"] + " " + attr["x"] + " " + attr["y"]); bad != "" {
			t.Errorf("element %s has %q among its coordinates: %.200s", e.Name.Local, bad, attr["d"])
		}
		switch e.Name.Local {
		case "svg":
			_, err = fmt.Sscanf(attr["viewBox"], "0 0 %g %g", &doc.w, &doc.h)
		case "path":
			checkPath(t, attr["d"], doc.w, doc.h)
		case "title":
			var text string
			if err = d.DecodeElement(&text, &e); doc.title == "" {
				doc.title = text // later ones are texts for the pointer
			}
		case "desc":
			err = d.DecodeElement(&doc.desc, &e)
		case "text":
			var text string
			err = d.DecodeElement(&text, &e)
			doc.texts = append(doc.texts, placed(t, text, attr, doc.h))
		}
		if err != nil {
			t.Fatalf("element %s: %v", e.Name.Local, err)
		}
	}
}

// placed computes the box of a text element on a page of height h.
func placed(t *testing.T, text string, attr map[string]string, h float64) printed {
	t.Helper()
	var x, y, size float64
	if _, err := fmt.Sscanf(attr["x"]+" "+attr["y"], "%g %g", &x, &y); err != nil {
		t.Fatal(err)
	}
	family, style, _ := strings.Cut(attr["style"], "font-size:")
	style, _, _ = strings.Cut(style, "px")
	if _, err := fmt.Sscanf(style, "%g", &size); err != nil {
		t.Fatalf("style %q: %v", attr["style"], err)
	}
	if !strings.Contains(family, "Liberation Sans,Arial,") {
		t.Errorf("text %q has no font to fall back on: %s", text, family)
	}
	s := newSheet(nil, 0, 0, font.NewCache(liberation.Collection()))
	k := ink{size: vg.Length(size), bold: strings.Contains(attr["style"], "font-weight:bold")}
	return printed{text, x, h + y - 0.73*size, x + float64(s.width(k, text)), h + y + 0.21*size}
}

// checkLayout requires that no text leaves the page or covers another text.
func checkLayout(t *testing.T, f Figure) {
	t.Helper()
	doc := readSVG(t, f.SVG)
	for i, a := range doc.texts {
		if a.x0 < 0 || a.y0 < 0 || a.x1 > doc.w || a.y1 > doc.h {
			t.Errorf("%s: text %q at [%.1f %.1f %.1f %.1f] leaves the page of %v × %v",
				f.Name, a.text, a.x0, a.y0, a.x1, a.y1, doc.w, doc.h)
		}
		for _, b := range doc.texts[:i] {
			if a.x0 < b.x1 && b.x0 < a.x1 && a.y0 < b.y1 && b.y0 < a.y1 {
				t.Errorf("%s: text %q covers %q at [%.1f %.1f %.1f %.1f]", f.Name, a.text, b.text, a.x0, a.y0, a.x1, a.y1)
			}
		}
	}
}

func TestLayout(t *testing.T) {
	for _, s := range samples() {
		t.Run(s.name, func(t *testing.T) {
			f := drawn(t, s)
			checkLayout(t, f)
			if inline := f.Inline(); !bytes.HasPrefix(inline, []byte("<svg ")) || !bytes.HasSuffix(f.SVG, inline) {
				t.Errorf("inline SVG begins with %.20q", inline)
			}
			doc := readSVG(t, f.SVG)
			if doc.title != f.Title || doc.desc != f.Alt {
				t.Errorf("title %q, desc %q; want %q and %q", doc.title, doc.desc, f.Title, f.Alt)
			}
			if len(doc.texts) == 0 || !strings.HasPrefix(f.Title, doc.texts[0].text) {
				t.Errorf("the first text is not the title %q", f.Title)
			}
			img, err := png.Decode(bytes.NewReader(pngOf(t, f)))
			if err != nil {
				t.Fatal(err)
			}
			want := fmt.Sprintf("%.0f × %.0f", doc.w*pngDPI/72, doc.h*pngDPI/72)
			if got := fmt.Sprintf("%d × %d", img.Bounds().Dx(), img.Bounds().Dy()); got != want {
				t.Errorf("PNG has %s pixels, want %s", got, want)
			}
			if f.Alt == "" || strings.ContainsAny(f.Alt, "\n\x00") {
				t.Errorf("alt text %q is not one line", f.Alt)
			}
			if _, err := json.Marshal(f.Data); err != nil {
				t.Errorf("data: %v", err)
			}
		})
	}
}

// Whatever the numbers and the names: no panic, no broken document, no text over
// another; the only error is that there is nothing to draw.
func TestOddFigures(t *testing.T) {
	rounds := 80
	if testing.Short() {
		rounds = 10
	}
	drawn := 0
	for seed := range uint64(rounds) {
		d := odd{rand.New(rand.NewPCG(seed, 0))}.figure()
		f, err := d.Draw()
		if errors.Is(err, ErrNoData) {
			continue
		}
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		drawn++
		checkLayout(t, f)
		if _, err := json.Marshal(f.Data); err != nil {
			t.Errorf("seed %d: data: %v", seed, err)
		}
		if t.Failed() {
			t.Fatalf("seed %d: %T", seed, d)
		}
	}
	if drawn < rounds/2 {
		t.Errorf("only %d of %d figures were drawn", drawn, rounds)
	}
}

// Panels of one column line up: equal widths, equal heights of the axes.
func TestPanelsLineUp(t *testing.T) {
	for _, n := range []int{1, 3, 4, 5, 8} {
		g := gridOf(n)
		s := newSheet(nil, pageWidth, g.height(), font.NewCache(liberation.Collection()))
		x := scale{axis: Axis{Label: "outcome"}, lo: 0, hi: 10, ticks: []tick{{0, "0"}}}
		y := scale{lo: 0, hi: 1, ticks: []tick{{0, "0"}}}
		var first frame
		var bottom vg.Length
		for i := range n {
			fr := g.frame(s, i, s.h-50, x)
			fr.title = []words{{text: "A"}}
			axes := fitY(x, y, fr)
			if i == 0 {
				first, bottom = fr, axes.from
				continue
			}
			firstAxes := fitY(x, y, first)
			if got, want := axes.to-axes.from, firstAxes.to-firstAxes.from; got-want > 1e-9 || want-got > 1e-9 {
				t.Errorf("panel %d of %d is %v high, the first %v", i, n, got, want)
			}
			if i%g.columns == 0 && (fr.area.Min.X != first.area.Min.X || fr.area.Max.X != first.area.Max.X) {
				t.Errorf("panel %d of %d stands at [%v, %v], the first at [%v, %v]", i, n,
					fr.area.Min.X, fr.area.Max.X, first.area.Min.X, first.area.Max.X)
			}
			if i%g.columns == 0 && fr.area.Max.Y > bottom {
				t.Errorf("panel %d of %d reaches into the one above it", i, n)
			}
			bottom = axes.from
			if fr.area.Min.Y < margin {
				t.Errorf("panel %d of %d leaves the page at %v", i, n, fr.area.Min.Y)
			}
		}
	}
}

// A name next to a marker covers no marker, bar or other name.
func TestScatterLabels(t *testing.T) {
	f := Scatter{Arms: []ScatterArm{
		{"A", estimate(1, .1), estimate(1, .1), [][2]float64{{1.02, 1.05}}},
		{"B", estimate(1.5, .3), estimate(1.2, .2), nil},
		{"C", estimate(1.1, .1), estimate(2, .1), nil},
	}}
	p := panel{
		sheet: newSheet(nil, pageWidth, pageHeight, font.NewCache(liberation.Collection())),
		x:     scale{lo: 0, hi: 3, from: 40, to: 440},
		y:     scale{lo: 0, hi: 3, from: 40, to: 240},
	}
	labels, ok := f.labels(p, looks(nil, []string{"A", "B", "C"}))
	if !ok || len(labels) != 3 {
		t.Fatalf("labels: %v, %d of 3", ok, len(labels))
	}
	taken := f.occupied(p)
	for _, l := range labels {
		box := vg.Rectangle{
			Min: vg.Point{X: l.at.X, Y: l.at.Y - textSize*capHeight/2},
			Max: vg.Point{X: l.at.X + p.width(l.ink, l.name), Y: l.at.Y + textSize*capHeight/2},
		}
		if overlapsAny(box, taken) {
			t.Errorf("label %s at %v covers something", l.name, l.at)
		}
		taken = append(taken, box)
	}
	crowded := Scatter{}
	for range 12 {
		crowded.Arms = append(crowded.Arms, ScatterArm{"a rather long name", Point(1), Point(1), nil})
	}
	if _, ok := crowded.labels(p, looks(nil, make([]string, 12))); ok {
		t.Error("twelve names found a place around one point")
	}
}
