package figure

import (
	"slices"
	"strings"
	"testing"
)

// No arm's marker looks like the start's.
func TestStartIsNoArm(t *testing.T) {
	if slices.Contains(shapes[:], startLook().shape) {
		t.Error("the start has the shape of an arm")
	}
}

// The values before training are in the picture, its data, its caption and its range.
func TestStart(t *testing.T) {
	axis := Axis{Label: "accuracy", Unit: "share", Share: true}
	point := func(k int, v float64) PassKPoint { return PassKPoint{k, Point(v)} }
	for _, f := range []interface {
		Draw() (Figure, error)
		Heading() (string, string)
	}{
		PassK{Head: Head{Name: "passk", Title: "t"}, Arms: []PassKArm{{"arm", 1, []PassKPoint{point(1, 0.6), point(2, 0.7)}}},
			Start: []PassKPoint{point(1, 0.1234), point(2, 0.9)}},
		Bar{Head: Head{Name: "bar", Title: "t"}, Y: axis, Groups: []string{"suite"},
			Arms: []ArmValues{{"arm", 1, []Estimate{Point(0.6)}}}, Start: []float64{0.1234}},
		Scatter{Head: Head{Name: "scatter", Title: "t"}, X: axis, Y: Axis{Label: "ways"},
			Arms: []ScatterArm{{Name: "arm", X: Point(0.6), Y: Point(2)}}, Start: &[2]float64{0.1234, 3}},
	} {
		name, _ := f.Heading()
		d, err := f.Draw()
		if err != nil {
			t.Fatal(err)
		}
		svg := string(d.SVG)
		for _, want := range []string{">start</text>", "0.123"} {
			if !strings.Contains(svg, want) {
				t.Errorf("%s lacks %q", name, want)
			}
		}
		if !strings.Contains(d.Caption.String(), "Grey: the weights before training") {
			t.Errorf("%s: caption %q", name, d.Caption)
		}
	}
	bad := Bar{Head: Head{Name: "bar"}, Groups: []string{"a"}, Arms: []ArmValues{{"arm", 1, []Estimate{Point(1)}}}, Start: []float64{1, 2}}
	if _, err := bad.Draw(); err == nil {
		t.Error("two starts of one group are accepted")
	}
}

// The reference of a curve can be a value at step 0, which the axis then holds.
func TestReferenceAtZero(t *testing.T) {
	f := Curve{Head: Head{Name: "c", Title: "t"}, X: Axis{Label: "step"}, Y: Axis{Label: "y"},
		Arms:      []Arm{{Name: "a", Seeds: []Series{{Step: []float64{10, 20}, Y: []float64{0.3, 0.4}}}}},
		Reference: &Reference{Name: "start", Value: 0.1, First: true}}
	for first, want := range map[bool]int{true: 1, false: 0} {
		f.Reference.First = first
		d, err := f.Draw()
		if err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(string(d.SVG), "<title>start at 0: 0.100</title>"); n != want {
			t.Errorf("first %v: %d markers at 0, want %d", first, n, want)
		}
	}
}

// Values can be read with the pointer, and their texts are escaped.
func TestTips(t *testing.T) {
	f, err := Curve{Head: Head{Name: "c", Title: "t"}, X: Axis{Label: "step"}, Y: Axis{Label: "y"},
		Arms: []Arm{{Name: "a<b", Seeds: []Series{{Step: []float64{40}, Y: []float64{0.31}}, {Step: []float64{40}, Y: []float64{0.33}}}}}}.Draw()
	if err != nil {
		t.Fatal(err)
	}
	if want := `<title>a&lt;b at 40: 0.320 [0.310, 0.330]</title></rect>`; !strings.Contains(string(f.SVG), want) {
		t.Errorf("no %s", want)
	}
}

// A share's axis stays in [0,1], also where its interval does not, and where all is zero.
func TestShareAxis(t *testing.T) {
	share := Axis{Share: true, Zero: true}
	for _, e := range []Estimate{{0.02, -0.3, 0.34}, {0.99, 0.7, 1.28}, Point(0), {0.5, 0, 1}} {
		var x extent
		x.addEstimate(share, e)
		if s := newScale(share, x, 0.06); s.lo < 0 || s.hi > 1 {
			t.Errorf("%v: axis from %v to %v", e, s.lo, s.hi)
		}
	}
}

// With many arms only those in focus keep their bands, and the caption says which.
func TestFocus(t *testing.T) {
	f := Curve{Head: Head{Name: "c", Title: "t", Focus: []string{"b", "c"}}}
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		f.Arms = append(f.Arms, Arm{Name: name, Seeds: []Series{{Step: []float64{1, 2}, Y: []float64{1, 2}},
			{Step: []float64{1, 2}, Y: []float64{2, 4}}}})
	}
	bands := func() int {
		d, err := f.Draw()
		if err != nil {
			t.Fatal(err)
		}
		if said := strings.Contains(d.Caption.String(), "Bands only of b, c: more would hide the lines"); said != (len(f.Arms) > mostBands) {
			t.Errorf("%d arms: %s", len(f.Arms), d.Caption)
		}
		return strings.Count(string(d.SVG), "fill-opacity:0.2")
	}
	if n := bands(); n != 2 {
		t.Errorf("%d bands of 5 arms, want 2", n)
	}
	f.Arms = f.Arms[:4]
	if n := bands(); n != 4 {
		t.Errorf("%d bands of 4 arms, want 4", n)
	}
}
