package figure

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
)

// Every kind of figure keeps its texts on the page, in each style and width.
func TestTextsStayOnThePage(t *testing.T) {
	for _, style := range Styles() {
		for columns := 1; columns <= 2; columns++ {
			s, err := Styled(style, columns)
			if err != nil {
				t.Fatal(err)
			}
			for _, sample := range samples() {
				t.Run(fmt.Sprintf("%s-%d-%s", style, columns, sample.name), func(t *testing.T) {
					f := drawn(t, sample)
					svg, err := f.Render("svg", s)
					if err != nil {
						t.Fatal(err)
					}
					doc := readSVG(t, svg)
					for _, text := range doc.texts {
						if text.x0 < -0.01 || text.x1 > doc.w+0.01 {
							t.Errorf("text %q from %.1f to %.1f leaves the page of %.1f", text.text, text.x0, text.x1, doc.w)
						}
					}
				})
			}
		}
	}
}

// The axis names the quantity where a figure has no title, and loses its unit, not its last
// letters, where the sheet is narrow.
func TestAxisTitle(t *testing.T) {
	curve := func(y Axis) Figure {
		f, err := Curve{Head: Head{Name: "c", Title: "Policy loss"}, X: Axis{Label: "training step"}, Y: y,
			Arms: []Arm{{Name: "a", Seeds: []Series{{Step: []float64{1, 2}, Y: []float64{0.3, 0.4}}}}}}.Draw()
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	long := strings.Repeat("per problem, 16 samples ", 3)
	for _, c := range []struct {
		y     Axis
		style string
		want  string
	}{
		{Axis{Label: "loss", Untitled: "policy loss"}, "paper", "policy loss"},
		{Axis{Label: "loss", Untitled: "policy loss"}, "report", "loss"},
		{Axis{Label: "right answers", Unit: long}, "slides", "right answers"},
		{Axis{Label: "right answers", Unit: "share"}, "slides", "right answers (share)"},
	} {
		s, err := Styled(c.style, 1)
		if err != nil {
			t.Fatal(err)
		}
		svg, err := curve(c.y).Render("svg", s)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Contains(svg, []byte(">"+c.want+"</text>")) {
			t.Errorf("%s: the axis is not called %q", c.style, c.want)
		}
	}
}

// A narrow forest plot puts the note of a row on a separate line.
func TestForestNote(t *testing.T) {
	f, err := Forest{Head: Head{Name: "f", Title: "t"}, X: Axis{Label: "difference"},
		Rows: []ForestRow{{Name: "suite", Diff: estimate(.123, .05), Note: "p / Holm 0.004"}}}.Draw()
	if err != nil {
		t.Fatal(err)
	}
	s, err := Styled("paper", 1)
	if err != nil {
		t.Fatal(err)
	}
	svg, err := f.Render("svg", s)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(svg, []byte(">p / Holm 0.004</text>")) {
		t.Error("the note is split or joined to the numbers")
	}
}

// Where no row differs, both sides have room for their labels.
func TestForestWithoutDifferences(t *testing.T) {
	f, err := Forest{Head: Head{Name: "f", Title: "t"}, X: Axis{Label: "difference"}, Less: "countdown-ppo higher",
		More: "countdown-flowrl higher", Rows: []ForestRow{{Name: "pass@1", Diff: Point(0)}}}.Draw()
	if err != nil {
		t.Fatal(err)
	}
	s, err := Styled("report", 1)
	if err != nil {
		t.Fatal(err)
	}
	svg, err := f.Render("svg", s)
	if err != nil {
		t.Fatal(err)
	}
	for _, label := range []string{"← countdown-ppo higher<", "→ countdown-flowrl higher<"} {
		if !bytes.Contains(svg, []byte(label)) {
			t.Errorf("%q is cut", label)
		}
	}
}
