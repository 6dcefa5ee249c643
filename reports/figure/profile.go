package figure

import (
	"math"
	"slices"
)

// Profile is a performance profile: the share of scores above a threshold, against the
// threshold (arXiv:2108.13264 §4.2). A line above another everywhere is better
// everywhere; where they cross, one arm is better on hard problems and the other on
// easy ones.
type Profile struct {
	Head
	X          Axis      // what the threshold is of; linear
	Y          Axis      // what the share is of
	Thresholds []float64 // ascending
	Arms       []ProfileArm
	Interval   string // what Lo and Hi are
}

// ProfileArm is one arm's line.
type ProfileArm struct {
	Name  string
	Seeds int        // that stand behind the line; 0: not said
	Share []Estimate // [thresholds]
}

type profileData struct {
	Interval   string        `json:"interval"`
	Thresholds []number      `json:"thresholds"`
	Arms       []profileLine `json:"arms"`
}

type profileLine struct {
	Name  string   `json:"name"`
	Seeds int      `json:"seeds,omitempty"`
	Share []number `json:"share"`
	Lo    []number `json:"lo"`
	Hi    []number `json:"hi"`
}

// Draw draws the figure. Thresholds that do not ascend, or shares of another number,
// are an error; no finite share is ErrNoData.
func (f Profile) Draw() (Figure, error) {
	if err := f.Head.check(); err != nil {
		return Figure{}, err
	}
	for i, t := range f.Thresholds {
		if math.IsNaN(t) || i > 0 && t <= f.Thresholds[i-1] {
			return Figure{}, f.errorf("thresholds do not ascend at %d", i)
		}
	}
	c := lineChart{title: f.Title, x: f.X, y: f.Y, padX: 0.02}
	data := profileData{Interval: f.Interval, Thresholds: numbers(f.Thresholds), Arms: []profileLine{}}
	for _, a := range f.Arms {
		if len(a.Share) != len(f.Thresholds) {
			return Figure{}, f.errorf("arm %q has %d shares for %d thresholds", a.Name, len(a.Share),
				len(f.Thresholds))
		}
		var t track
		for i, e := range a.Share {
			t.addEstimate(f.Thresholds[i], e)
		}
		c.names, c.tracks = append(c.names, a.Name), append(c.tracks, t)
		data.Arms = append(data.Arms, profileLine{a.Name, a.Seeds, numbers(t.y), numbers(t.lo), numbers(t.hi)})
	}
	c.looks = looks(f.Order, c.names)
	c.focusNote = c.focus(f.Head)
	if c.empty() {
		return Figure{}, f.noData("no arm has a finite share")
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

func (f Profile) caption(c lineChart) Caption {
	out := Caption{About: f.About, Units: units(c.x, c.y), Interval: "No intervals"}
	var counts []int
	for _, a := range f.Arms {
		counts = append(counts, a.Seeds)
	}
	out.Seeds = statedSeeds(c.names, counts)
	if c.focusNote != "" {
		out.Notes = append(out.Notes, c.focusNote)
	}
	for i, t := range c.tracks {
		if slices.ContainsFunc(t.lo, drawable) {
			out.Interval = "Bands: " + orUnnamed(f.Interval)
		}
		if c.last(t) < 0 {
			out.Notes = append(out.Notes, clean(c.names[i])+" has no finite value and is not drawn")
		}
	}
	return out
}
