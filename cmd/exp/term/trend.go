package term

// trendPoints is how many points a trend keeps at most. Right after halving
// there are still as many as the widest sparkline has columns, so that it never
// gets shorter.
const trendPoints = 2 * sparkColumns

// trend is the history of one metric, thinned by averaging so that it stays
// small however long the run. Its zero value is empty.
type trend struct {
	name    string
	points  []float64 // each the mean of stride values
	stride  int
	pending []float64 // values of the point that is not complete yet
	first   float64
	latest  float64
}

func (t *trend) add(m Metric) {
	if m.Name != t.name || t.stride == 0 {
		*t = trend{name: m.Name, stride: 1, first: m.Value}
	}
	t.latest = m.Value
	t.pending = append(t.pending, m.Value)
	if len(t.pending) < t.stride {
		return
	}
	t.points = append(t.points, finiteMean(t.pending))
	t.pending = t.pending[:0]
	if len(t.points) == trendPoints {
		for i := range trendPoints / 2 {
			t.points[i] = finiteMean(t.points[2*i : 2*i+2])
		}
		t.points = t.points[:trendPoints/2]
		t.stride *= 2
	}
}
