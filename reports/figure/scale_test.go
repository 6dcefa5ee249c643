package figure

import (
	"bytes"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func tickLabels(ticks []tick) string {
	var out []string
	for _, t := range ticks {
		out = append(out, t.label)
	}
	return strings.Join(out, " ")
}

func extentOf(a Axis, vs ...float64) extent {
	var e extent
	e.add(a, vs...)
	return e
}

func TestTicks(t *testing.T) {
	tests := []struct {
		name   string
		lo, hi float64
		axis   Axis
		whole  bool
		n      int
		want   string
	}{
		{"share", 0, 1, Axis{}, false, 5, "0 0.2 0.4 0.6 0.8 1.0"},
		{"negative", -0.3, 0.2, Axis{}, false, 5, "−0.3 −0.2 −0.1 0 0.1 0.2"},
		{"steps", 0, 199, Axis{}, true, 6, "0 50 100 150"},
		{"few whole steps", 0, 3, Axis{}, true, 9, "0 1 2 3"},
		{"few steps", 0, 3, Axis{}, false, 6, "0 0.5 1.0 1.5 2.0 2.5 3.0"},
		{"thousands", 0, 4000, Axis{}, false, 4, "0 1000 2000 3000 4000"},
		{"ten thousands", 0, 40000, Axis{}, false, 4, "0 10k 20k 30k 40k"},
		{"millions", 0, 1.2e6, Axis{}, false, 6, "0 0.2M 0.4M 0.6M 0.8M 1.0M 1.2M"},
		{"close to a million", 1000000, 1000004, Axis{}, false, 4, "1000000 1000001 1000002 1000003 1000004"},
		{"small", 0, 4e-5, Axis{}, false, 4, "0 1e−5 2e−5 3e−5 4e−5"},
		{"huge", 0, 4e20, Axis{}, false, 4, "0 1e20 2e20 3e20 4e20"},
		{"small around one", 2.7e-6, 3.3e-6, Axis{}, false, 3, "2.8e−6 3.0e−6 3.2e−6"},
		{"decades", 1e-4, 1, Axis{Log: true}, false, 5, "0.0001 0.001 0.01 0.1 1"},
		{"many decades", 1e-6, 1e6, Axis{Log: true}, false, 4, "1e−6 1e−3 1e0 1e3 1e6"},
		{"one decade", 1, 10, Axis{Log: true}, false, 4, "1 2 5 10"},
		{"less than a decade", 2, 4, Axis{Log: true}, false, 4, "2.0 2.5 3.0 3.5 4.0"},
		{"decades of thousands", 10, 1e5, Axis{Log: true}, false, 5, "10 100 1k 10k 100k"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := scale{axis: tt.axis, lo: tt.lo, hi: tt.hi, whole: tt.whole}.withTicks(tt.n)
			if got := tickLabels(s.ticks); got != tt.want {
				t.Errorf("ticks of [%v, %v] = %q, want %q", tt.lo, tt.hi, got, tt.want)
			}
		})
	}
}

// Ticks lie in the range, grow, differ in their labels, and are about as many as
// asked for.
func TestTicksProperties(t *testing.T) {
	const seed = 11
	rng := rand.New(rand.NewPCG(seed, 0))
	for range 5000 {
		lo := rng.NormFloat64() * math.Pow(10, float64(rng.IntN(40)-20))
		hi := lo + math.Abs(lo)*math.Pow(10, float64(rng.IntN(12)-6))*rng.Float64()
		n := 3 + rng.IntN(7)
		if hi-lo <= 1e-9*math.Abs(lo) {
			continue
		}
		ticks := scale{lo: lo, hi: hi}.withTicks(n).ticks
		if len(ticks) < n/2 || len(ticks) > 2*n+1 {
			t.Fatalf("seed %d: [%v, %v] has %d ticks, asked for %d", seed, lo, hi, len(ticks), n)
		}
		slack := 1e-6 * (hi - lo)
		for i, k := range ticks {
			if k.at < lo-slack || k.at > hi+slack {
				t.Fatalf("seed %d: tick %v outside [%v, %v]", seed, k.at, lo, hi)
			}
			if i > 0 && (k.at <= ticks[i-1].at || k.label == ticks[i-1].label) {
				t.Fatalf("seed %d: [%v, %v]: tick %v %q follows %v %q", seed, lo, hi,
					k.at, k.label, ticks[i-1].at, ticks[i-1].label)
			}
		}
	}
}

func TestNewScale(t *testing.T) {
	tests := []struct {
		name   string
		axis   Axis
		values []float64
		pad    float64
		lo, hi float64
	}{
		{"padded", Axis{}, []float64{2, 4}, 0.1, 1.8, 4.2},
		{"not below zero", Axis{}, []float64{0.1, 4}, 0.1, 0, 4.39}, // 4 + 0.1·3.9
		{"not above zero", Axis{}, []float64{-4, -0.1}, 0.1, -4.39, 0},
		{"across zero", Axis{}, []float64{-1, 1}, 0.1, -1.2, 1.2},
		{"from zero", Axis{Zero: true}, []float64{2, 4}, 0.1, 0, 4.4},
		{"constant", Axis{}, []float64{5, 5}, 0.1, 4.5, 5.5},
		{"constant below zero", Axis{}, []float64{-5}, 0.1, -5.5, -4.5},
		{"small constant", Axis{}, []float64{3e-10}, 0.1, 2.7e-10, 3.3e-10},
		{"zero", Axis{}, []float64{0}, 0.1, 0, 1},
		{"noise of rounding", Axis{}, []float64{1, 1 + 1e-15}, 0.1, 0.9, 1.1},
		{"log", Axis{Log: true}, []float64{1, 100}, 0.5, 0.1, 1000},
		{"log skips values that are not positive", Axis{Log: true}, []float64{-3, 0, 1, 100}, 0, 1, 100},
		{"infinities are skipped", Axis{}, []float64{math.Inf(-1), 1, 2, math.Inf(1), nan}, 0, 1, 2},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := newScale(tt.axis, extentOf(tt.axis, tt.values...), tt.pad)
			same(t, "range", []float64{s.lo, s.hi}, []float64{tt.lo, tt.hi})
		})
	}
}

func TestScaleAt(t *testing.T) {
	linear := scale{lo: 2, hi: 4, from: 10, to: 110}
	logarithmic := scale{axis: Axis{Log: true}, lo: 1, hi: 100, from: 10, to: 110}
	downwards := scale{lo: 2.5, hi: -0.5, from: 0, to: 90}
	same(t, "linear", float64(linear.at(3)), 60.0)
	same(t, "log", float64(logarithmic.at(10)), 60.0)
	same(t, "downwards", float64(downwards.at(0)), 75.0) // 2.5 of 3 rows up
}

func TestValues(t *testing.T) {
	tests := []struct {
		in   []float64
		want []string
	}{
		{[]float64{0.042, 0.01, 0.0744}, []string{"0.042", "0.010", "0.074"}},
		{[]float64{0.55}, []string{"0.550"}},
		{[]float64{1234, -56.7}, []string{"1234", "−57"}},
		{[]float64{12.34, 1}, []string{"12.3", "1.0"}},
		{[]float64{0.0081}, []string{"0.0081"}},
		{[]float64{3e-6}, []string{"3.0e−6"}},
		{[]float64{-4.1e17, 0}, []string{"−4.10e17", "0"}},
		{[]float64{math.Inf(1), 0.31}, []string{"∞", "0.310"}},
		{[]float64{math.Inf(-1), nan}, []string{"−∞", "n/a"}},
	}
	for _, tt := range tests {
		if d := cmp.Diff(tt.want, values(tt.in...)); d != "" {
			t.Errorf("values(%v) (-want +got):\n%s", tt.in, d)
		}
	}
}

func TestUnits(t *testing.T) {
	for _, tt := range []struct {
		x, y Axis
		want string
	}{
		{Axis{Label: "step"}, Axis{Label: "KL", Unit: "nats"}, "x: step; y: KL (nats)"},
		{Axis{}, Axis{Unit: "nats"}, "y: nats"},
		{Axis{}, Axis{}, ""},
	} {
		if got := units(tt.x, tt.y); got != tt.want {
			t.Errorf("units = %q, want %q", got, tt.want)
		}
	}
}

func TestCutAxis(t *testing.T) {
	a := Axis{Label: "explained variance", Cut: true, Least: -1}
	for v, want := range map[float64]bool{-5: false, -1: true, 0.5: true, math.NaN(): false, math.Inf(-1): false} {
		if got := a.shows(v); got != want {
			t.Errorf("shows(%v) = %v, want %v", v, got, want)
		}
	}
	f, err := Curve{Head: Head{Name: "v"}, Y: a, Arms: []Arm{{"A", []Series{{Step: []float64{1, 2, 3}, Y: []float64{-40, 0, 1}}}}}}.Draw()
	if err != nil {
		t.Fatal(err)
	}
	if want := "1 value left out: not finite or below -1"; !strings.Contains(f.Caption.String(), want) {
		t.Errorf("caption %q lacks %q", f.Caption, want)
	}
	low := Curve{Head: Head{Name: "v"}, Y: a, Arms: []Arm{{"A", []Series{{Step: []float64{1, 2}, Y: []float64{-40, -7}}}}}}
	if f, err = low.Draw(); err != nil || strings.Contains(f.Caption.String(), "left out") {
		t.Errorf("all below: %v, caption %q", err, f.Caption)
	}
	if live, err := low.Live(100); err != nil || !bytes.Contains(live.SVG, []byte("−40")) {
		t.Errorf("all below, live: %v\n%s", err, live.SVG)
	}
}

func TestManyTens(t *testing.T) {
	small, large := []float64{1, 2, 3}, []float64{40, 20, 30}
	for _, c := range []struct {
		lists [][]float64
		want  bool
	}{
		{[][]float64{small, large}, true},
		{[][]float64{small, nil, large}, true}, // an arm without the metric says nothing
		{[][]float64{nil}, false},
		{[][]float64{small, {3, 4, 5}}, false},
		{[][]float64{{1, 1, 1}, {10, 10, 10}}, true},
		{[][]float64{{1, 1, 1}, {9, 9, 9}}, false},
		{[][]float64{small, large, {0, 1}}, false},                           // zero has no place on a log axis
		{[][]float64{small, large, {0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}}, true}, // but one of many does no harm
		{[][]float64{small, large, {-1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}}, false},
		{[][]float64{small, large, {math.NaN(), 1, 1}}, false},
		{[][]float64{{1, 100, 10000}}, false}, // one arm's outliers
	} {
		if got := ManyTens(c.lists); got != c.want {
			t.Errorf("%v: %v, want %v", c.lists, got, c.want)
		}
	}
	if large[0] != 40 {
		t.Error("it sorted the caller's values")
	}
}
