package figure

import (
	"fmt"

	"gonum.org/v1/plot/vg"
)

// Dots shows several statistics of each arm on one axis, as marks with intervals: a
// group of rows per statistic, a row per arm.
type Dots struct {
	Head
	X        Axis // linear
	Groups   []string
	Arms     []ArmValues
	Interval string // what Lo and Hi are
}

type dotsData struct {
	X string `json:"x"`
	groupData
}

// Draw draws the figure; its height grows with the number of rows. No finite value is
// ErrNoData.
func (f Dots) Draw() (Figure, error) {
	if err := f.Head.check(); err != nil {
		return Figure{}, err
	}
	if f.X.Log {
		return Figure{}, f.errorf("the axis is linear")
	}
	names, x, err := f.namesAndExtent(f.Groups, f.Arms, f.X)
	if err != nil {
		return Figure{}, err
	}
	if !x.some {
		return Figure{}, f.noData("no arm has a finite value")
	}
	const others = 74 // heading and axis
	return f.render(picture{
		caption: f.caption(names),
		alt:     f.alt(),
		data:    dotsData{f.X.title(), groupDataOf(f.Interval, f.Groups, f.Arms)},
		height:  others + vg.Length(len(f.Groups))*(dotsHead+dotsRow*vg.Length(len(f.Arms))),
		draw:    func(s *sheet) { f.draw(s, x, names) },
	})
}

const (
	dotsRow  = 22.0
	dotsHead = 20.0 // over each group
)

func (f Dots) draw(s *sheet, x extent, names []string) {
	top := s.heading(f.Title)
	small := ink{size: smallSize, color: inkColor}
	arms := float64(len(f.Arms))
	head := dotsHead / dotsRow // in rows
	y := scale{lo: float64(len(f.Groups)) * (arms + head), hi: 0, ticks: []tick{}}
	place := func(group, arm int) float64 { return float64(group)*(arms+head) + head + float64(arm) + 0.5 }
	var room vg.Length
	for g := range f.Groups {
		for i, a := range f.Arms {
			y.ticks = append(y.ticks, tick{place(g, i), s.clip(s.tickInk(), clean(a.Name), 0.3*s.w)})
			room = max(room, s.width(small, a.Values[g].text())+2*gap)
		}
	}
	p := s.panel(newScale(f.X, x, 0.06), y, frame{area: s.under(top), grid: gridX, right: room})
	k := looks(f.Order, names)
	for g, name := range f.Groups {
		from := p.y.at(float64(g) * (arms + head))
		if g > 0 {
			p.line(stroke{width: gridWidth, color: axisColor}, vg.Point{X: margin, Y: from},
				vg.Point{X: p.x.to, Y: from})
		}
		bold := ink{size: smallSize, color: inkColor, bold: true}
		p.label(bold, vg.Point{X: p.x.from + gap, Y: from - dotsHead/2 - 1}, left,
			p.clip(bold, clean(name), p.w-margin-p.x.from-gap))
		for i, a := range f.Arms {
			e, at := a.Values[g], p.y.at(place(g, i))
			p.label(small, vg.Point{X: p.x.to + 2*gap, Y: at}, left, e.text())
			if !drawable(e.Value) {
				continue
			}
			if e = p.x.within(e); e.interval() {
				p.whisker(vg.Point{X: p.x.at(e.Lo), Y: at}, vg.Point{X: p.x.at(e.Hi), Y: at}, 3, k[i].color)
			}
			p.mark(k[i].shape, vg.Point{X: p.x.at(e.Value), Y: at}, 1.2*markRadius, k[i].color)
			p.tip(vg.Point{X: p.x.at(e.Value), Y: at}, a.Name+", "+name+": "+e.text())
		}
	}
}

// text is the estimate in numbers: "0.042 [0.010, 0.074]".
func (e Estimate) text() string {
	if !e.interval() {
		return value(e.Value)
	}
	t := values(e.Value, e.Lo, e.Hi)
	return t[0] + " [" + t[1] + ", " + t[2] + "]"
}

func (f Dots) caption(names []string) Caption {
	out := Caption{About: f.About, Units: units(f.X, Axis{}), Interval: "No intervals"}
	var counts []int
	for _, a := range f.Arms {
		counts = append(counts, a.Seeds)
		for g, v := range a.Values {
			if v.interval() {
				out.Interval = "Error bars: " + orUnnamed(f.Interval)
			}
			if !drawable(v.Value) {
				out.Notes = append(out.Notes, fmt.Sprintf("%s has no finite value of %s", clean(a.Name),
					clean(f.Groups[g])))
			}
		}
	}
	out.Seeds = statedSeeds(names, counts)
	return out
}

func (f Dots) alt() string {
	var rows []string
	for g, name := range f.Groups {
		for _, a := range f.Arms {
			rows = append(rows, name+" of "+a.Name+" "+a.Values[g].text())
		}
	}
	return fmt.Sprintf("Dot plot of %s: %s.", f.X.title(), enumerate(rows))
}
