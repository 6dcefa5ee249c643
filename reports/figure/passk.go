package figure

import (
	"cmp"
	"math"
	"slices"
	"strconv"

	"exp/experiments/quantity"
)

// PassK is pass@k, the chance that at least one of k samples is right, or another value of k samples, against k
// on an axis of base 2, with a band per arm.
type PassK struct {
	Head
	Arms     []PassKArm
	Label    string       // of the values; "": pass@k
	Problems int          // in the suite; 0: not said
	Samples  int          // per problem, n ≥ k; 0: not said
	Interval string       // what Lo and Hi are, e.g. "95 % cluster bootstrap over problems"
	Start    []PassKPoint // of the weights before training, which all arms share; nil: not known
}

// PassKArm is one arm's line.
type PassKArm struct {
	Name   string
	Seeds  int // that stand behind the points; 0: not said
	Points []PassKPoint
}

// PassKPoint is pass@k with its interval. Lo and Hi are NaN without an interval.
type PassKPoint struct {
	K int // ≥ 1, increasing
	Estimate
}

type passKData struct {
	Interval string      `json:"interval"`
	Problems int         `json:"problems,omitempty"`
	Samples  int         `json:"samples,omitempty"`
	Arms     []passKLine `json:"arms"`
	Start    *passKLine  `json:"start,omitempty"`
}

type passKLine struct {
	Name  string   `json:"name"`
	Seeds int      `json:"seeds,omitempty"`
	K     []int    `json:"k"`
	Value []number `json:"value"`
	Lo    []number `json:"lo"`
	Hi    []number `json:"hi"`
}

// Draw draws the figure. An order of k that does not increase is an error; no
// finite value is ErrNoData.
func (f PassK) Draw() (Figure, error) {
	if err := f.Head.check(); err != nil {
		return Figure{}, err
	}
	c := lineChart{
		title: f.Title,
		x:     Axis{Label: "k, samples per problem", Log: true},
		y:     Axis{Label: cmp.Or(f.Label, "pass@k"), Unit: "share of problems", Share: true},
		padX:  0.02,
	}
	data := passKData{Interval: f.Interval, Problems: f.Problems, Samples: f.Samples, Arms: []passKLine{}}
	var ks []int
	for _, a := range f.Arms {
		line := passKLine{Name: a.Name, Seeds: a.Seeds}
		var t track
		for i, p := range a.Points {
			if p.K < 1 || (i > 0 && p.K <= a.Points[i-1].K) {
				return Figure{}, f.errorf("arm %q: k = %d at point %d: want increasing k ≥ 1", a.Name, p.K, i)
			}
			if drawable(p.Value) {
				ks = append(ks, p.K)
			}
			t.addEstimate(float64(p.K), p.Estimate)
			line.K = append(line.K, p.K)
		}
		line.Value, line.Lo, line.Hi = numbers(t.y), numbers(t.lo), numbers(t.hi)
		c.names, c.tracks = append(c.names, a.Name), append(c.tracks, t)
		data.Arms = append(data.Arms, line)
	}
	c.looks, c.xTicks = looks(f.Order, c.names), kTicks(ks)
	c.focusNote = c.focus(f.Head)
	if len(f.Start) > 0 {
		c.start = &track{}
		for _, p := range f.Start {
			c.start.addEstimate(float64(p.K), p.Estimate)
		}
		data.Start = &passKLine{Name: startName, Value: numbers(c.start.y), Lo: numbers(c.start.lo),
			Hi: numbers(c.start.hi)}
		for _, p := range f.Start {
			data.Start.K = append(data.Start.K, p.K)
		}
	}
	if c.empty() {
		return Figure{}, f.noData("no arm has a finite " + cmp.Or(f.Label, "pass@k"))
	}
	return f.render(picture{
		caption: f.caption(c),
		alt:     c.alt("Line chart"),
		data:    data,
		height:  pageHeight,
		rows:    pageRows,
		legend:  c.legend(),
		draw:    c.draw,
	})
}

// addEstimate appends a point whose interval is known; what cannot be drawn
// becomes a gap.
func (t *track) addEstimate(x float64, e Estimate) {
	if !drawable(e.Value) {
		e.Value = math.NaN()
	}
	if !e.interval() {
		e.Lo, e.Hi = math.NaN(), math.NaN()
	}
	t.step, t.x, t.y = append(t.step, x), append(t.x, x), append(t.y, e.Value)
	t.lo, t.hi = append(t.lo, e.Lo), append(t.hi, e.Hi)
}

// kTicks are the powers of two among ks, all of ks if these are few.
func kTicks(ks []int) []tick {
	slices.Sort(ks)
	ks = slices.Compact(ks)
	ticks := []tick{}
	for _, k := range ks {
		if len(ks) <= 4 || k&(k-1) == 0 {
			ticks = append(ticks, tick{float64(k), strconv.Itoa(k)})
		}
	}
	return ticks
}

func (f PassK) caption(c lineChart) Caption {
	out := Caption{About: f.About, Units: units(c.x, c.y)}
	var counts []int
	for _, a := range f.Arms {
		counts = append(counts, a.Seeds)
	}
	out.Seeds = statedSeeds(c.names, counts)
	if f.Problems > 0 && f.Samples > 0 {
		out.Notes = append(out.Notes, quantity.Plural(f.Problems, "problem")+" with "+quantity.Plural(f.Samples,
			"sample")+" each")
	}
	out.Interval = "No intervals"
	for _, t := range c.tracks {
		if slices.ContainsFunc(t.lo, drawable) {
			out.Interval = "Bands: " + orUnnamed(f.Interval)
		}
	}
	if c.start != nil {
		out.Notes = append(out.Notes, "Grey: the weights before training")
	}
	if c.focusNote != "" {
		out.Notes = append(out.Notes, c.focusNote)
	}
	for i, t := range c.tracks {
		if c.last(t) < 0 {
			out.Notes = append(out.Notes, clean(c.names[i])+" has no finite value and is not drawn")
		}
	}
	return out
}

// orUnnamed stands in for the name of an interval that the caller did not give.
func orUnnamed(interval string) string {
	if interval == "" {
		return "intervals of an unstated kind"
	}
	return interval
}
