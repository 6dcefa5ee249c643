package figure

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"exp/eval/stat"
	"exp/experiments/quantity"
)

// Band is the kind of area around the mean of several seeds.
type Band int

const (
	// Range spans the smallest to the largest seed. It needs no assumption, and
	// grows with the number of seeds.
	Range Band = iota
	// TInterval is the 95 % t interval of the mean over seeds, mean ± t·s/√n with
	// n−1 degrees of freedom. Two seeds make it very wide (t = 12.7).
	TInterval
)

const bandLevel = 0.95

// String is the caption's name of the band.
func (b Band) String() string {
	if b == TInterval {
		return "95 % t interval of the mean over seeds (n − 1 degrees of freedom)"
	}
	return "smallest to largest seed"
}

// Series is one seed's metric. Points of several seeds belong together when their
// Step is equal.
type Series struct {
	Step []float64 // [n] increasing, finite
	X    []float64 // [n] where the points are drawn, for example tokens; nil: at Step
	Y    []float64 // [n] a value that is not finite is a gap

	// Min and Max are the range of the values that a point stands for, where Y is their
	// mean; nil: each point is one value. Only Live draws it.
	Min, Max []float64 // [n]
}

// Arm is one line of a curve: a name and its seeds.
type Arm struct {
	Name  string
	Seeds []Series
}

// track is an arm's line: one point per step that any seed has, in order.
type track struct {
	step, x, y []float64 // y is NaN where no seed has a value
	lo, hi     []float64 // band; NaN where fewer than two seeds have a value
	seeds      []int     // seeds that have a value
	raw        []float64 // the means before smoothing; nil without
}

// check returns an error for a series with inconsistent slices.
func (s Series) check() error {
	if len(s.Y) != len(s.Step) || (s.X != nil && len(s.X) != len(s.Step)) {
		return fmt.Errorf("%d steps, %d x and %d y: want one of each per point", len(s.Step), len(s.X), len(s.Y))
	}
	if len(s.Min) != len(s.Max) || (s.Min != nil && len(s.Min) != len(s.Step)) {
		return fmt.Errorf("%d steps, %d least and %d greatest: want one of each per point", len(s.Step), len(s.Min),
			len(s.Max))
	}
	for i, v := range s.Step {
		if !drawable(v) {
			return fmt.Errorf("point %d: step %v is not a finite number", i, v)
		}
		if i > 0 && v <= s.Step[i-1] {
			return fmt.Errorf("point %d: step %v follows step %v: want increasing steps", i, v, s.Step[i-1])
		}
	}
	return nil
}

// merge averages y and x over the seeds, step by step: at each step over the seeds
// that have a value there. Values that y does not show count as missing.
//
//	y  = Σ y_s / n
//	lo, hi = min, max over s              Range
//	lo, hi = y ± t(n−1)·s/√n              TInterval, s with n−1
func merge(seeds []Series, y Axis, band Band) track {
	steps := unionSteps(seeds)
	var t track
	b := &bander{band, map[int]float64{}}
	at := make([]int, len(seeds)) // next point of each seed
	var ys []float64
	for _, step := range steps {
		ys = ys[:0]
		var sumX, sumShown float64
		var n int
		for s, series := range seeds {
			i := at[s]
			if i == len(series.Step) || series.Step[i] != step {
				continue
			}
			at[s]++
			v := step
			if series.X != nil {
				v = series.X[i]
			}
			sumX += v
			n++
			if y.shows(series.Y[i]) {
				ys = append(ys, series.Y[i])
				sumShown += v
			}
		}
		x := sumX / float64(n)
		if len(ys) > 0 {
			x = sumShown / float64(len(ys))
		}
		t.add(step, x, ys, b)
	}
	return t
}

// add appends one step with the values of the seeds that have one.
func (t *track) add(step, x float64, ys []float64, b *bander) {
	mean, lo, hi := b.interval(ys)
	t.step, t.x, t.y = append(t.step, step), append(t.x, x), append(t.y, mean)
	t.lo, t.hi = append(t.lo, lo), append(t.hi, hi)
	t.seeds = append(t.seeds, len(ys))
}

// bander computes bands. It keeps quantiles, because finding one takes longer than
// all the rest.
type bander struct {
	band     Band
	quantile map[int]float64 // of Student's t, by n
}

// interval is the mean of ys, NaN without any, and its band, NaN for fewer than
// two.
func (b *bander) interval(ys []float64) (mean, lo, hi float64) {
	switch len(ys) {
	case 0:
		return math.NaN(), math.NaN(), math.NaN()
	case 1:
		return ys[0], math.NaN(), math.NaN()
	}
	m := stat.ClusterMean(ys, nil)
	if b.band == Range {
		return m.Value, slices.Min(ys), slices.Max(ys)
	}
	t, known := b.quantile[m.G]
	if !known {
		iv, _ := stat.TInterval(stat.Mean{SE: 1, DF: m.DF}, bandLevel) // there are two values
		t = iv.Hi
		b.quantile[m.G] = t
	}
	return m.Value, m.Value - t*m.SE, m.Value + t*m.SE
}

func unionSteps(seeds []Series) []float64 {
	var steps []float64
	for _, s := range seeds {
		steps = append(steps, s.Step...)
	}
	slices.Sort(steps)
	return slices.Compact(steps)
}

// smooth returns the centred moving mean of y over window points, an odd number; at
// the ends over fewer. Values that axis a does not show stay unchanged and do not
// count.
func smooth(y []float64, a Axis, window int) []float64 {
	out := make([]float64, len(y))
	for i, v := range y {
		out[i] = v
		if !a.shows(v) {
			continue
		}
		var sum, n float64
		for _, w := range y[max(0, i-window/2):min(len(y), i+window/2+1)] {
			if a.shows(w) {
				sum += w
				n++
			}
		}
		out[i] = sum / n
	}
	return out
}

// statedSeeds is seedsText, or empty if an arm does not state its seeds.
func statedSeeds(names []string, counts []int) string {
	if slices.Contains(counts, 0) {
		return ""
	}
	return seedsText(names, counts)
}

// seedsText is the caption's sentence on seeds: "3 seeds per arm", or each arm's
// number where they differ.
func seedsText(names []string, counts []int) string {
	if len(counts) == 0 {
		return ""
	}
	if slices.Min(counts) == slices.Max(counts) {
		if len(counts) == 1 {
			return quantity.Plural(counts[0], "seed")
		}
		return quantity.Plural(counts[0], "seed") + " per arm"
	}
	parts := make([]string, len(names))
	for i, name := range names {
		parts[i] = clean(name) + " " + quantity.Plural(counts[i], "seed")
	}
	return strings.Join(parts, ", ")
}
