package figure

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	"gonum.org/v1/plot/vg"
)

func TestRuns(t *testing.T) {
	x := []float64{0, 1, 2, 3, 4, 5, -1}
	tests := []struct {
		name string
		axis Axis
		y    []float64
		want []span
	}{
		{"whole", Axis{}, []float64{1, 1, 1, 1, 1, 1, 1}, []span{{0, 7}}},
		{"gaps", Axis{}, []float64{nan, 1, nan, 1, 1, nan, nan}, []span{{1, 2}, {3, 5}}},
		{"log skips x = 0 and x = −1", Axis{Log: true}, []float64{1, 1, 1, 1, 1, 1, 1}, []span{{1, 6}}},
		{"nothing", Axis{}, []float64{nan, nan, nan, nan, nan, nan, nan}, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if d := cmp.Diff(tt.want, runs(x, tt.axis, tt.y), cmp.AllowUnexported(span{})); d != "" {
				t.Errorf("runs (-want +got):\n%s", d)
			}
		})
	}
}

// Thinning keeps the ends and every column's extremes: the drawn line covers the
// same heights, with far fewer points.
func TestThinning(t *testing.T) {
	const seed, n = 5, 100_000
	rng := rand.New(rand.NewPCG(seed, 0))
	x, y := make([]float64, n), make([]float64, n)
	for i := range x {
		x[i], y[i] = float64(i), rng.NormFloat64()
	}
	p := panel{
		x: scale{lo: 0, hi: n - 1, from: 0, to: 400},
		y: scale{lo: -6, hi: 6, from: 0, to: 200},
	}
	got := p.points(x, y, nil)
	if len(got) > 4*801 {
		t.Errorf("%d points are left, want at most 4 in each of 801 columns", len(got))
	}
	if got[0] != p.at(x[0], y[0]) || got[len(got)-1] != p.at(x[n-1], y[n-1]) {
		t.Error("the ends moved")
	}
	want := map[float64][2]vg.Length{}
	for i := range x {
		at := p.at(x[i], y[i])
		c := math.Floor(float64(at.X) / 0.5)
		r, ok := want[c]
		if !ok {
			r = [2]vg.Length{at.Y, at.Y}
		}
		want[c] = [2]vg.Length{min(r[0], at.Y), max(r[1], at.Y)}
	}
	drawn := map[float64][2]vg.Length{}
	for _, at := range got {
		c := math.Floor(float64(at.X) / 0.5)
		r, ok := drawn[c]
		if !ok {
			r = [2]vg.Length{at.Y, at.Y}
		}
		drawn[c] = [2]vg.Length{min(r[0], at.Y), max(r[1], at.Y)}
	}
	if d := cmp.Diff(want, drawn); d != "" {
		t.Errorf("seed %d: heights per column (-want +got):\n%.500s", seed, d)
	}
	top := p.points(x, y, math.Max)
	for i, at := range top {
		if at.Y != want[float64(i)][1] {
			t.Fatalf("seed %d: column %d of the upper edge is %v, want %v", seed, i, at.Y, want[float64(i)][1])
		}
	}
	if few := p.points(x[:5], y[:5], nil); len(few) != 5 {
		t.Errorf("5 points became %d", len(few))
	}
}

func TestSpread(t *testing.T) {
	const d = endLabelStep
	tests := []struct {
		name string
		in   []vg.Length
		want []vg.Length
	}{
		{"apart", []vg.Length{0, 100}, []vg.Length{0, 100}},
		{"two at one height", []vg.Length{50, 50}, []vg.Length{50 - d/2, 50 + d/2}},
		{"three, the block's middle is the mean", []vg.Length{50, 50, 56}, []vg.Length{52 - d, 52, 52 + d}},
		{"a block that grows", []vg.Length{0, d - 2, 2*d - 4}, []vg.Length{-2, d - 2, 2*d - 2}},
		{"one", []vg.Length{3}, []vg.Length{3}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			labels := make([]*endLabel, len(tt.in))
			for i, at := range tt.in {
				labels[i] = &endLabel{at: at}
			}
			spread(labels)
			for i, l := range labels {
				if math.Abs(float64(l.at-tt.want[i])) > 1e-9 {
					t.Errorf("label %d at %v, want %v", i, l.at, tt.want[i])
				}
			}
		})
	}
}

// Labels stand at the line ends only where that cannot mislead.
func TestDirectLabels(t *testing.T) {
	line := func(last, y float64) Series { return Series{Step: []float64{0, last}, Y: []float64{0, y}} }
	tests := []struct {
		name string
		arms []Arm
		want bool
	}{
		{"apart", []Arm{{"A", []Series{line(10, 1)}}, {"B", []Series{line(10, 2)}}}, true},
		{"close, moved a little", []Arm{{"A", []Series{line(10, 1)}}, {"B", []Series{line(10, 1.01)}}}, true},
		{"three at one place", []Arm{{"A", []Series{line(10, 1)}}, {"B", []Series{line(10, 1)}}, {"C", []Series{line(10, 1)}}}, false},
		{"one ends early", []Arm{{"A", []Series{line(10, 1)}}, {"B", []Series{line(5, 2)}}}, false},
		{"long name", []Arm{{"a name that takes a quarter of the page", []Series{line(10, 1)}}}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f, err := Curve{Head: Head{Name: "a"}, Arms: tt.arms}.Draw()
			if err != nil {
				t.Fatal(err)
			}
			direct := true
			for _, text := range readSVG(t, f.SVG).texts {
				if text.text == tt.arms[0].Name && text.x0 < 300 {
					direct = false // a legend stands at the left
				}
			}
			if direct != tt.want {
				t.Errorf("labels at the line ends: %v, want %v", direct, tt.want)
			}
		})
	}
}
