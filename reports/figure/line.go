package figure

import (
	"math"

	"gonum.org/v1/plot/vg"
)

// drawBand fills the area between lo and hi, in one piece per run of points that
// have both. A run of a single point becomes a vertical bar.
func (p panel) drawBand(x, lo, hi []float64, k look) {
	for _, r := range runs(x, p.x.axis, lo, hi) {
		if r.to-r.from == 1 {
			i := r.from
			p.line(stroke{width: barWidth, color: k.color}, p.at(x[i], lo[i]), p.at(x[i], hi[i]))
			continue
		}
		upper := p.points(x[r.from:r.to], hi[r.from:r.to], math.Max)
		lower := p.points(x[r.from:r.to], lo[r.from:r.to], math.Min)
		for i := len(lower) - 1; i >= 0; i-- {
			upper = append(upper, lower[i])
		}
		p.fill(faded(k.color, 0.2), upper...)
	}
}

// drawLine joins the points, broken where y is not shown. A run of a single point
// becomes a dot.
func (p panel) drawLine(x, y []float64, st stroke) {
	for _, r := range runs(x, p.x.axis, y) {
		if r.to-r.from == 1 {
			p.mark(disc, p.at(x[r.from], y[r.from]), st.width, st.color)
			continue
		}
		p.line(st, p.points(x[r.from:r.to], y[r.from:r.to], nil)...)
	}
}

// drawMarks puts markers on a line: on every point if there are few, else about
// six, at places that differ from arm to arm, so that markers of lines that run
// together do not hide each other. Each has a text for the pointer.
func (p panel) drawMarks(x, y []float64, k look, place, arms int, tip func(i int) string) {
	const few, some = 12, 6
	n := len(x)
	step, first := 1, 0
	if n > few {
		step = n / some
		first = step * (2*place + 1) / (2 * arms)
	}
	for i := first; i < n; i += step {
		if p.x.axis.shows(x[i]) && !math.IsNaN(y[i]) {
			p.mark(k.shape, p.at(x[i], y[i]), markRadius, k.color)
			p.tip(p.at(x[i], y[i]), tip(i))
		}
	}
}

// span is a run of points, from ≤ i < to.
type span struct{ from, to int }

// runs returns the maximal runs where a shows x and no ys is NaN.
func runs(x []float64, a Axis, ys ...[]float64) []span {
	var out []span
	open := false
	for i := range x {
		ok := a.shows(x[i])
		for _, y := range ys {
			ok = ok && !math.IsNaN(y[i])
		}
		switch {
		case ok && open:
			out[len(out)-1].to = i + 1
		case ok:
			out = append(out, span{i, i + 1})
		}
		open = ok
	}
	return out
}

// points maps data to the sheet. More points than the width can show are thinned:
// of each half point of width remain the first, the last, the lowest and the
// highest, or with pick the value that pick prefers. The line looks the same.
func (p panel) points(x, y []float64, pick func(a, b float64) float64) []vg.Point {
	const columns = 0.5 // points
	width := float64(p.x.to - p.x.from)
	if float64(len(x)) <= 4*width/columns {
		out := make([]vg.Point, len(x))
		for i := range x {
			out[i] = p.at(x[i], y[i])
		}
		return out
	}
	var out []vg.Point
	for from := 0; from < len(x); {
		column := math.Floor(float64(p.x.at(x[from])) / columns)
		low, high, best, to := from, from, y[from], from+1
		for ; to < len(x) && math.Floor(float64(p.x.at(x[to]))/columns) == column; to++ {
			if y[to] < y[low] {
				low = to
			}
			if y[to] > y[high] {
				high = to
			}
			if pick != nil {
				best = pick(best, y[to])
			}
		}
		if pick != nil {
			out = append(out, p.at(x[from], best))
		} else {
			out = append(out, p.at(x[from], y[from]), p.at(x[min(low, high)], y[min(low, high)]),
				p.at(x[max(low, high)], y[max(low, high)]), p.at(x[to-1], y[to-1]))
		}
		from = to
	}
	return out
}
