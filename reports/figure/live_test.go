package figure

import (
	"encoding/xml"
	"errors"
	"io"
	"math"
	"slices"
	"strings"
	"testing"
)

// liveElements returns the elements of an SVG, each with its class, and fails for markup
// that is not well-formed or that a strict content security policy refuses.
func liveElements(t *testing.T, svg []byte) (list []string) {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(string(svg)))
	for {
		token, err := d.Token()
		if err == io.EOF {
			return list
		}
		if err != nil {
			t.Fatalf("%v in\n%s", err, svg)
		}
		e, ok := token.(xml.StartElement)
		if !ok {
			continue
		}
		name := e.Name.Local
		for _, a := range e.Attr {
			if a.Name.Local == "style" || strings.HasPrefix(a.Name.Local, "on") {
				t.Errorf("attribute %s in\n%s", a.Name.Local, svg)
			}
			if a.Name.Local == "class" {
				name += " " + a.Value
			}
		}
		list = append(list, name)
	}
}

func TestLive(t *testing.T) {
	nan := math.NaN()
	f := Curve{Head: Head{Name: "x", Title: "X", Order: []string{"b", "<a>"}}, X: Axis{Label: "step"}, Y: Axis{Label: "y"},
		Arms: []Arm{
			{Name: "<a>", Seeds: []Series{{Step: []float64{1, 2, 3}, Y: []float64{1, nan, 3}, Min: []float64{0, nan, 2}, Max: []float64{2, nan, 8}}}},
			{Name: "b", Seeds: []Series{{Step: []float64{1, 2}, Y: []float64{1, 2}}, {Step: []float64{1, 2}, Y: []float64{2, 4}}}},
		}, Reference: &Reference{Name: "start", Value: 1}}
	l, err := f.Live(200)
	if err != nil {
		t.Fatal(err)
	}
	elements := liveElements(t, l.SVG)
	for _, want := range []string{"svg plot", "path range c1 d0", "path band c0 d0", "path reference", "path point c1 d0", "path line c0 d0"} {
		if !slices.Contains(elements, want) {
			t.Errorf("no %s in %q", want, elements)
		}
	}
	svg := string(l.SVG)
	for _, want := range []string{`data-x="1 3"`, `data-y="0 8"`, `data-log="false"`, `aria-label="Line chart of y against step: &lt;a&gt; goes`,
		`d="M0 875h0M1000 625h0"`} { // y = 1 and y = 3, a gap between them
		if !strings.Contains(svg, want) {
			t.Errorf("no %s in\n%s", want, svg)
		}
	}
	if a := l.Data.(curveData).Arms[1]; a.Mean[1] != 3 || a.Lo[1] != 2 || a.Hi[1] != 4 {
		t.Errorf("data %+v", a)
	}
	if !strings.Contains(svg, `d="M0 750l500-250l0 250l-500 125Z"`) {
		t.Errorf("no band from 1 and 2 to 2 and 4 in\n%s", svg)
	}
	f.Y.Log = true
	if l, err = f.Live(200); err != nil || !strings.Contains(string(l.SVG), `data-log="true"`) {
		t.Errorf("logarithmic: %v", err)
	}
	liveElements(t, l.SVG)
	f.Arms[0].Seeds[0].Max = nil
	if _, err := f.Live(200); err == nil {
		t.Error("a range without an end: no error")
	}
	if _, err := (Curve{Head: f.Head}).Live(200); !errors.Is(err, ErrNoData) {
		t.Errorf("nothing to draw: %v", err)
	}
}

// A band that reaches below lines of positive values ends at 0, and of many arms only the chosen ones
// have bands.
func TestLiveBands(t *testing.T) {
	f := Curve{Head: Head{Name: "x", Title: "X", Focus: []string{"b"}}, Band: TInterval, X: Axis{Label: "step"}, Y: Axis{Label: "y"}}
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		f.Arms = append(f.Arms, Arm{Name: name, Seeds: []Series{{Step: []float64{1, 2}, Y: []float64{1, 1}}, {Step: []float64{1, 2}, Y: []float64{3, 3}}}})
	}
	l, err := f.Live(200)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(l.SVG), `class="band`); n != 1 || !strings.Contains(l.Note, "Bands only of b") {
		t.Errorf("%d bands, note %q", n, l.Note)
	}
	if !strings.Contains(string(l.SVG), `data-y="0 `) {
		t.Errorf("the axis does not begin at 0: %s", l.SVG)
	}
	if lo := l.Data.(curveData).Arms[1].Lo[0]; !(lo < 0) {
		t.Errorf("the values say that the interval begins at %v", lo)
	}
}
