package figure

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// drawings are the samples, each drawn once: several tests look at them.
var drawings = sync.OnceValue(func() map[string]Figure {
	out := map[string]Figure{}
	for _, s := range samples() {
		if f, err := s.Draw(); err == nil {
			out[s.name] = f
		}
	}
	return out
})

func drawn(t *testing.T, s sample) Figure {
	t.Helper()
	f, ok := drawings()[s.name]
	if !ok {
		_, err := s.Draw()
		t.Fatalf("not drawn: %v", err)
	}
	return f
}

// pngOf draws a figure as PNG for a report.
func pngOf(t *testing.T, f Figure) []byte {
	t.Helper()
	b, err := f.Render("png", Report())
	if err != nil {
		t.Error(err)
	}
	return b
}

// Equal inputs give equal bytes, one after the other and at once, and drawing
// leaves the input as it was.
func TestDeterminism(t *testing.T) {
	seen := map[string]bool{}
	for i, s := range samples() {
		kind := fmt.Sprintf("%T", s.drawer)
		if seen[kind] {
			continue // one of each kind
		}
		seen[kind] = true
		t.Run(s.name, func(t *testing.T) {
			want := drawn(t, s)
			wantPNG := pngOf(t, want)
			got, pngs := make([]Figure, 2), make([][]byte, 2)
			var wg sync.WaitGroup
			for j := range got {
				wg.Go(func() {
					got[j], _ = s.Draw()
					pngs[j] = pngOf(t, got[j])
				})
			}
			wg.Wait()
			if d := cmp.Diff(samples()[i].drawer, s.drawer, cmpopts.EquateNaNs()); d != "" {
				t.Errorf("drawing changed its input (-before +after):\n%s", d)
			}
			for j, g := range got {
				if !bytes.Equal(g.SVG, want.SVG) || !bytes.Equal(pngs[j], wantPNG) {
					t.Errorf("drawing %d at once gave other bytes", j)
				}
				if g.Alt != want.Alt || g.Caption.String() != want.Caption.String() {
					t.Errorf("drawing %d at once gave another caption or alt text", j)
				}
			}
		})
	}
}

func TestErrors(t *testing.T) {
	h := Head{Name: "reward"}
	series := func(y ...float64) Series {
		s := Series{Y: y}
		for i := range y {
			s.Step = append(s.Step, float64(i))
		}
		return s
	}
	bad := Series{Step: []float64{2, 1}, Y: []float64{0, 0}}
	half := []float64{.5, .5}
	tests := []struct {
		name   string
		figure drawer
		noData bool
		want   string
	}{
		{"curve: no arms", Curve{Head: h}, true, "figure reward: nothing to draw"},
		{"curve: no finite value", Curve{Head: h, Arms: []Arm{{"A", []Series{series(nan, math.Inf(1))}}}}, true, "no arm has a finite value"},
		{"curve: nothing positive", Curve{Head: h, Y: Axis{Log: true}, Arms: []Arm{{"A", []Series{series(0, -1)}}}}, true, "figure reward"},
		{"curve: order", Curve{Head: h, Arms: []Arm{{"A", []Series{series(1), bad}}}}, false, `figure reward: arm "A", seed 1: point 1`},
		{"curve: even window", Curve{Head: h, Smooth: 4}, false, "smoothing over 4 points: want an odd number"},
		{"curve: no name", Curve{}, false, `figure ""`},
		{"curve: name with a path", Curve{Head: Head{Name: "../x"}}, false, `figure "../x"`},
		{"pass@k: no arms", PassK{Head: h}, true, "figure reward"},
		{"pass@k: k of zero", PassK{Head: h, Arms: []PassKArm{{"A", 1, []PassKPoint{{0, Point(1)}}}}}, false, `arm "A": k = 0 at point 0`},
		{"pass@k: order", PassK{Head: h, Arms: []PassKArm{{"A", 1, []PassKPoint{{2, Point(1)}, {2, Point(1)}}}}}, false, `k = 2 at point 1`},
		{"bar: no arms", Bar{Head: h, Groups: []string{"a"}}, true, "figure reward"},
		{"bar: lengths", Bar{Head: h, Groups: []string{"a", "b"}, Arms: []ArmValues{{"A", 1, []Estimate{Point(1)}}}}, false, `arm "A" has 1 values for 2 groups`},
		{"bar: log", Bar{Head: h, Y: Axis{Log: true}}, false, "logarithmic"},
		{"bar: too many groups", Bar{Head: h, Groups: make([]string, 25)}, false, "want at most 24"},
		{"scatter: no arms", Scatter{Head: h}, true, "figure reward"},
		{"scatter: half a point", Scatter{Head: h, Arms: []ScatterArm{{"A", Point(1), Point(nan), nil}}}, true, "figure reward"},
		{"phases: no rows", Phases{Head: h}, true, "figure reward"},
		{"phases: no time", Phases{Head: h, Phases: []string{"a"}, Rows: []PhaseRow{{"A", []float64{0}}}}, true, "no phase took any time"},
		{"phases: lengths", Phases{Head: h, Phases: []string{"a"}, Rows: []PhaseRow{{"A", nil}}}, false, `row "A" has 0 times for 1 phases`},
		{"phases: negative", Phases{Head: h, Phases: []string{"a"}, Rows: []PhaseRow{{"A", []float64{-1}}}}, false, `row "A", phase "a": -1 seconds`},
		{"distribution: no arms", Distribution{Head: h, Target: half}, true, "figure reward"},
		{"distribution: no outcomes", Distribution{Head: h, Arms: []DistributionArm{{"A", [][]float64{{}}, []float64{0}}}}, true, "figure reward"},
		{"distribution: lengths", Distribution{Head: h, Target: half, Arms: []DistributionArm{{"A", [][]float64{{1}}, []float64{0}}}}, false, `arm "A", seed 0 has 1 outcomes, the target 2`},
		{"distribution: no probability", Distribution{Head: h, Target: []float64{nan, 1}}, false, "target, outcome 0: NaN is not a probability"},
		{"distribution: divergences", Distribution{Head: h, Target: half, Arms: []DistributionArm{{"A", [][]float64{half}, nil}}}, false, `arm "A" has 0 divergences for 1 policies`},
		{"distribution: log", Distribution{Head: h, Outcome: Axis{Log: true}}, false, "logarithmic"},
		{"forest: no rows", Forest{Head: h}, true, "figure reward"},
		{"forest: log", Forest{Head: h, X: Axis{Log: true}}, false, "logarithmic"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f, err := tt.figure.Draw()
			if err == nil {
				t.Fatal("no error")
			}
			if got := errors.Is(err, ErrNoData); got != tt.noData {
				t.Errorf("errors.Is(%q, ErrNoData) = %v, want %v", err, got, tt.noData)
			}
			if !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %q, want %q in it", err, tt.want)
			}
			if f.SVG != nil {
				t.Error("an error came with a picture")
			}
		})
	}
}

func TestCaption(t *testing.T) {
	tests := []struct {
		name   string
		figure drawer
		want   string
	}{
		{"several seeds", Curve{
			Head: Head{Name: "a", About: "Mean over a batch."}, X: Axis{Label: "step"}, Y: Axis{Label: "reward"},
			Arms: []Arm{{"A", []Series{{Step: []float64{0}, Y: []float64{1}}, {Step: []float64{0}, Y: []float64{2}}}}},
		}, "Mean over a batch. 2 seeds. Lines are means over seeds, bands smallest to largest seed. x: step; y: reward."},
		{"one seed", Curve{
			Head: Head{Name: "a"},
			Arms: []Arm{{"A", []Series{{Step: []float64{0}, Y: []float64{1}}}}},
		}, "1 seed. One seed has no band."},
		{"mixed, with gaps", Curve{
			Head: Head{Name: "a"}, Band: TInterval, Smooth: 3,
			Arms: []Arm{
				{"A", []Series{{Step: []float64{0, 1}, Y: []float64{1, nan}}, {Step: []float64{0, 1}, Y: []float64{2, 2}}}},
				{"B", []Series{{Step: []float64{0}, Y: []float64{1}}}},
				{"C", nil},
			},
		}, "A 2 seeds, B 1 seed, C 0 seeds. Lines of A are means over seeds, bands 95 % t interval of the mean over seeds " +
			"(n − 1 degrees of freedom); one seed has no band (B). Smoothed: centred moving means over 3 points of each seed; " +
			"the faint lines are the means of the raw values. 1 value left out: not finite. " +
			"At 1 point A is the mean of fewer than its 2 seeds. C has no finite value and is not drawn."},
		{"bars without intervals", Bar{
			Head: Head{Name: "a"}, Groups: []string{"g"}, Arms: []ArmValues{{"A", 0, []Estimate{Point(1)}}},
		}, "No intervals."},
		{"forest", Forest{
			Head: Head{Name: "a"}, X: Axis{Label: "difference"}, Interval: "95 % t interval", Less: "A better",
			Rows: []ForestRow{{"g", 3, Estimate{0, -1, 1}, ""}},
		}, "3 seeds per arm. Error bars: 95 % t interval. x: difference; below zero: A better."},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f, err := tt.figure.Draw()
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(tt.want, f.Caption.String()); d != "" {
				t.Errorf("caption (-want +got):\n%s", d)
			}
		})
	}
}

func TestCurveData(t *testing.T) {
	f, err := Curve{
		Head: Head{Name: "a"}, X: Axis{Label: "step"}, Y: Axis{Label: "reward"}, Reference: &Reference{Name: "start", Value: 0.5},
		Arms: []Arm{{"A", []Series{
			{Step: []float64{0, 1}, Y: []float64{1, nan}},
			{Step: []float64{0, 1}, Y: []float64{2, math.Inf(1)}},
		}}},
	}.Draw()
	if err != nil {
		t.Fatal(err)
	}
	got, err := json.Marshal(f.Data)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"x":"step","y":"reward","band":"smallest to largest seed",` +
		`"arms":[{"name":"A","seeds":2,"step":[0,1],"x":[0,1],"mean":[1.5,null],"lo":[1,null],"hi":[2,null],"n":[2,0]}],` +
		`"reference":{"name":"start","value":0.5}}`
	if string(got) != want {
		t.Errorf("data\n got %s\nwant %s", got, want)
	}
}

func TestNumberJSON(t *testing.T) {
	got, err := json.Marshal([]number{0.1, 1e21, number(math.Copysign(0, -1)), number(nan), number(math.Inf(-1))})
	if err != nil {
		t.Fatal(err)
	}
	if want := "[0.1,1e+21,-0,null,null]"; string(got) != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestEnumerate(t *testing.T) {
	parts := strings.Split("a b c d e f g h i j", " ")
	if got, want := enumerate(parts), "a; b; c; d; e; f; g; h; and 2 more"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := strings.Join(parts, " "); got != "a b c d e f g h i j" {
		t.Errorf("parts became %q", got)
	}
}
