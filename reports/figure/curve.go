package figure

import (
	"fmt"
	"slices"
	"strings"

	"exp/experiments/quantity"
)

// Curve is a metric against the training step, or against tokens, seconds or
// anything else that grows with it. Each arm is one line: the mean over its seeds
// with a band, or the only seed's values without.
type Curve struct {
	Head
	X, Y Axis
	Arms []Arm
	Band Band

	// Smooth draws centred moving means over this many points, an odd number, of
	// each seed, with the means of the raw values faint behind them. 0 and 1: none.
	Smooth int

	Reference *Reference // nil: none
}

// Reference is a horizontal line to compare with, for example the start of
// training.
type Reference struct {
	Name  string
	Value float64
	First bool // it is a value at x = 0, where it has a marker
}

// curveData is the data that is drawn, arm by arm.
type curveData struct {
	X         string         `json:"x"`
	Y         string         `json:"y"`
	Band      string         `json:"band"`
	Smooth    int            `json:"smooth,omitempty"`
	Arms      []curveArm     `json:"arms"`
	Reference *referenceData `json:"reference,omitempty"`
}

type curveArm struct {
	Name  string   `json:"name"`
	Seeds int      `json:"seeds"`
	Step  []number `json:"step"`
	X     []number `json:"x"`
	Mean  []number `json:"mean"`
	Lo    []number `json:"lo"`
	Hi    []number `json:"hi"`
	N     []int    `json:"n"` // seeds with a value at the step
	Raw   []number `json:"raw,omitempty"`
}

type referenceData struct {
	Name  string `json:"name"`
	Value number `json:"value"`
}

// Draw draws the curve. Errors name the figure, and the arm and seed at fault; a
// curve without a finite value is ErrNoData.
func (f Curve) Draw() (Figure, error) {
	f = f.uncut()
	c, err := f.chart()
	if err != nil {
		return Figure{}, err
	}
	return f.render(picture{
		caption: f.caption(c),
		alt:     c.alt("Line chart"),
		data:    f.data(c),
		height:  pageHeight,
		rows:    pageRows,
		legend:  c.legend(),
		draw:    c.draw,
	})
}

// uncut lifts the cut of an axis below which all values lie: they are worth more than an empty figure.
func (f Curve) uncut() Curve {
	if !f.Y.Cut {
		return f
	}
	for _, a := range f.Arms {
		for _, s := range a.Seeds {
			if slices.ContainsFunc(s.Y, f.Y.shows) {
				return f
			}
		}
	}
	f.Y.Cut = false
	return f
}

// chart merges the seeds of each arm.
func (f Curve) chart() (c lineChart, err error) {
	if err := f.Head.check(); err != nil {
		return c, err
	}
	if f.Smooth < 0 || (f.Smooth > 1 && f.Smooth%2 == 0) {
		return c, f.errorf("smoothing over %d points: want an odd number", f.Smooth)
	}
	c = lineChart{title: f.Title, x: f.X, y: f.Y, reference: f.Reference}
	for _, a := range f.Arms {
		t, err := f.track(a)
		if err != nil {
			return c, err
		}
		c.names, c.tracks = append(c.names, a.Name), append(c.tracks, t)
	}
	c.looks = looks(f.Order, c.names)
	c.focusNote = c.focus(f.Head)
	if c.empty() {
		return c, f.noData("no arm has a finite value")
	}
	return c, nil
}

// track merges an arm's seeds.
func (f Curve) track(a Arm) (track, error) {
	seeds := make([]Series, len(a.Seeds))
	for i, s := range a.Seeds {
		if err := s.check(); err != nil {
			return track{}, f.errorf("arm %q, seed %d: %w", a.Name, i, err)
		}
		seeds[i] = s
		if f.Smooth > 1 {
			seeds[i].Y = smooth(s.Y, f.Y, f.Smooth)
		}
	}
	t := merge(seeds, f.Y, f.Band)
	if f.Smooth > 1 {
		t.raw = merge(a.Seeds, f.Y, Range).y
	}
	return t, nil
}

func (f Curve) caption(c lineChart) Caption {
	out := Caption{About: f.About, Units: units(f.X, f.Y)}
	counts := make([]int, len(f.Arms))
	var several, single []string
	for i, a := range f.Arms {
		counts[i] = len(a.Seeds)
		switch {
		case counts[i] > 1:
			several = append(several, clean(a.Name))
		case counts[i] == 1:
			single = append(single, clean(a.Name))
		}
	}
	out.Seeds = seedsText(c.names, counts)
	switch {
	case several == nil:
		out.Interval = "One seed has no band"
	case single == nil:
		out.Interval = "Lines are means over seeds, bands " + f.Band.String()
	default:
		out.Interval = "Lines of " + strings.Join(several, ", ") + " are means over seeds, bands " +
			f.Band.String() + "; one seed has no band (" + strings.Join(single, ", ") + ")"
	}
	if f.Smooth > 1 {
		out.Notes = append(out.Notes, fmt.Sprintf(
			"Smoothed: centred moving means over %d points of each seed; the faint lines are the means of the raw "+
				"values", f.Smooth))
	}
	if c.focusNote != "" {
		out.Notes = append(out.Notes, c.focusNote)
	}
	out.Notes = append(out.Notes, f.notes(c)...)
	return out
}

// notes returns the caption's sentences about missing data.
func (f Curve) notes(c lineChart) []string {
	var missing int
	for _, a := range f.Arms {
		for _, s := range a.Seeds {
			for _, v := range s.Y {
				if !f.Y.shows(v) {
					missing++
				}
			}
		}
	}
	var notes []string
	if missing > 0 {
		notes = append(notes, fmt.Sprintf("%s left out: %s", quantity.Plural(missing, "value"), f.Y.hides()))
	}
	for i, t := range c.tracks {
		if c.last(t) < 0 {
			notes = append(notes, clean(c.names[i])+" has no finite value and is not drawn")
			continue
		}
		var fewer int
		for _, n := range t.seeds {
			if n > 0 && n < len(f.Arms[i].Seeds) {
				fewer++
			}
		}
		if fewer > 0 {
			notes = append(notes, fmt.Sprintf("At %s %s is the mean of fewer than its %d seeds",
				quantity.Plural(fewer, "point"), clean(c.names[i]), len(f.Arms[i].Seeds)))
		}
	}
	return notes
}

func (f Curve) data(c lineChart) curveData {
	out := curveData{X: f.X.title(), Y: f.Y.title(), Band: f.Band.String(), Smooth: f.Smooth, Arms: []curveArm{}}
	for i, t := range c.tracks {
		a := curveArm{
			Name: c.names[i], Seeds: len(f.Arms[i].Seeds), N: t.seeds,
			Step: numbers(t.step), X: numbers(t.x), Mean: numbers(t.y), Lo: numbers(t.lo), Hi: numbers(t.hi),
		}
		if t.raw != nil {
			a.Raw = numbers(t.raw)
		}
		out.Arms = append(out.Arms, a)
	}
	if r := f.Reference; r != nil {
		out.Reference = &referenceData{r.Name, number(r.Value)}
	}
	return out
}
