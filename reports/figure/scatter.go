package figure

import (
	"fmt"
	"slices"

	"gonum.org/v1/plot/vg"
)

// Scatter sets one result against another, for example diversity against accuracy:
// per arm a large marker with error bars in both directions, and small ones for
// its seeds.
type Scatter struct {
	Head
	X, Y     Axis
	Arms     []ScatterArm
	Interval string      // what Lo and Hi are
	Start    *[2]float64 // x and y before training, which all arms share; nil: not known
}

// ScatterArm is one arm.
type ScatterArm struct {
	Name  string
	X, Y  Estimate
	Seeds [][2]float64 // each seed's x and y
}

type scatterData struct {
	X        string         `json:"x"`
	Y        string         `json:"y"`
	Interval string         `json:"interval"`
	Arms     []scatterPoint `json:"arms"`
	Start    []number       `json:"start,omitempty"`
}

type scatterPoint struct {
	Name  string       `json:"name"`
	X     estimateData `json:"x"`
	Y     estimateData `json:"y"`
	Seeds [][2]number  `json:"seeds"`
}

// Draw draws the figure. ErrNoData if no arm and no seed has a place on both axes.
func (f Scatter) Draw() (Figure, error) {
	if err := f.Head.check(); err != nil {
		return Figure{}, err
	}
	var x, y extent
	names := make([]string, len(f.Arms))
	for i, a := range f.Arms {
		names[i] = a.Name
		for _, s := range a.Seeds {
			if f.shows(s[0], s[1]) {
				x.add(f.X, s[0])
				y.add(f.Y, s[1])
			}
		}
		if f.shows(a.X.Value, a.Y.Value) {
			x.addEstimate(f.X, a.X)
			y.addEstimate(f.Y, a.Y)
		}
	}
	if x.some && f.Start != nil && f.shows(f.Start[0], f.Start[1]) {
		x.add(f.X, f.Start[0])
		y.add(f.Y, f.Start[1])
	}
	if !x.some {
		return Figure{}, f.noData("no arm has a finite value on both axes")
	}
	k := looks(f.Order, names)
	return f.render(picture{
		caption: f.caption(names),
		alt:     f.alt(),
		data:    f.data(),
		height:  pageHeight,
		rows:    pageRows,
		legend:  f.legend(k),
		draw:    func(s *sheet) { f.draw(s, k, x, y) },
	})
}

func (f Scatter) shows(x, y float64) bool { return f.X.shows(x) && f.Y.shows(y) }

// addEstimate widens e to a value and its interval.
func (e *extent) addEstimate(a Axis, v Estimate) {
	e.add(a, v.Value)
	if v.interval() {
		e.addInterval(a, v.Lo, v.Hi)
	}
}

func (f Scatter) draw(s *sheet, k []look, x, y extent) {
	top := s.heading(f.Title)
	fr := frame{area: s.under(top), grid: gridX | gridY}
	xs, ys := newScale(f.X, x, 0.08), newScale(f.Y, y, 0.08)
	p := panel{sheet: s, y: fitY(xs, ys, fr)}
	p.x = s.fitX(xs, p.y, fr)
	labels, direct := f.labels(p, k)
	if !direct {
		fr.area.Max.Y -= s.legend(f.legend(k), top)
	}
	p = s.panel(xs, ys, fr)
	for i, a := range f.Arms {
		f.drawBars(p, a, k[i])
	}
	if f.Start != nil && f.shows(f.Start[0], f.Start[1]) {
		at := p.at(f.Start[0], f.Start[1])
		p.mark(startLook().shape, at, 1.6*markRadius, startLook().color)
		p.tip(at, fmt.Sprintf("%s: %s, %s", startName, value(f.Start[0]), value(f.Start[1])))
	}
	for i, a := range f.Arms {
		f.drawMarks(p, a, k[i])
	}
	if direct {
		for _, l := range labels {
			p.label(l.ink, l.at, left, l.name)
		}
	}
}

func (f Scatter) legend(k []look) []entry {
	var entries []entry
	for i, a := range f.Arms {
		entries = append(entries, markEntry(a.Name, k[i]))
	}
	if f.Start != nil {
		entries = append(entries, markEntry(startName, startLook()))
	}
	return entries
}

func (f Scatter) drawMarks(p panel, a ScatterArm, k look) {
	if f.shows(a.X.Value, a.Y.Value) {
		p.mark(k.shape, p.at(a.X.Value, a.Y.Value), 1.6*markRadius, k.color)
		p.tip(p.at(a.X.Value, a.Y.Value), fmt.Sprintf("%s: %s, %s", a.Name, a.X.text(), a.Y.text()))
	}
	for _, s := range a.Seeds {
		if f.shows(s[0], s[1]) {
			p.mark(k.shape, p.at(s[0], s[1]), 0.8*markRadius, tint(k.color, 0.6))
		}
	}
}

func (f Scatter) drawBars(p panel, a ScatterArm, k look) {
	if !f.shows(a.X.Value, a.Y.Value) {
		return
	}
	at := p.at(a.X.Value, a.Y.Value)
	a.X, a.Y = p.x.within(a.X), p.y.within(a.Y)
	if a.X.interval() && f.X.shows(a.X.Lo) {
		p.whisker(vg.Point{X: p.x.at(a.X.Lo), Y: at.Y}, vg.Point{X: p.x.at(a.X.Hi), Y: at.Y}, 2.5, k.color)
	}
	if a.Y.interval() && f.Y.shows(a.Y.Lo) {
		p.whisker(vg.Point{X: at.X, Y: p.y.at(a.Y.Lo)}, vg.Point{X: at.X, Y: p.y.at(a.Y.Hi)}, 2.5, k.color)
	}
}

// pointLabel is a name next to a marker.
type pointLabel struct {
	name string
	ink  ink
	at   vg.Point // left end, half height
}

// labels finds a place near each arm's marker where its name covers nothing. It
// reports false if one has none.
func (f Scatter) labels(p panel, k []look) ([]pointLabel, bool) {
	taken := f.occupied(p)
	arms := slices.Clone(f.Arms)
	if f.Start != nil && f.shows(f.Start[0], f.Start[1]) {
		arms = append(arms, ScatterArm{Name: startName, X: Point(f.Start[0]), Y: Point(f.Start[1])})
		k = append(slices.Clone(k), startLook())
	}
	var labels []pointLabel
	for i, a := range arms {
		if !f.shows(a.X.Value, a.Y.Value) {
			return nil, false
		}
		l := pointLabel{name: clean(a.Name), ink: ink{size: textSize, color: k[i].ink, bold: true}}
		at, w := p.at(a.X.Value, a.Y.Value), p.width(l.ink, l.name)
		found := false
		for _, offset := range [...]vg.Point{
			{X: 9, Y: 9}, {X: -9 - w, Y: 9}, {X: 9, Y: -9}, {X: -9 - w, Y: -9},
			{X: 9, Y: 16}, {X: -9 - w, Y: 16}, {X: 9, Y: -16}, {X: -9 - w, Y: -16},
		} {
			l.at = at.Add(offset)
			box := vg.Rectangle{
				Min: vg.Point{X: l.at.X - 1, Y: l.at.Y - textSize/2},
				Max: vg.Point{X: l.at.X + w + 1, Y: l.at.Y + textSize/2},
			}
			inside := box.Min.X > p.x.from && box.Max.X < p.x.to && box.Min.Y > p.y.from && box.Max.Y < p.y.to
			if inside && !overlapsAny(box, taken) {
				taken, found = append(taken, box), true
				break
			}
		}
		if !found {
			return nil, false
		}
		labels = append(labels, l)
	}
	return labels, true
}

// occupied returns boxes around all that is drawn.
func (f Scatter) occupied(p panel) []vg.Rectangle {
	var boxes []vg.Rectangle
	around := func(a, b vg.Point, r vg.Length) {
		boxes = append(boxes, vg.Rectangle{
			Min: vg.Point{X: a.X - r, Y: a.Y - r}, Max: vg.Point{X: b.X + r, Y: b.Y + r},
		})
	}
	for _, a := range f.Arms {
		for _, s := range a.Seeds {
			if f.shows(s[0], s[1]) {
				at := p.at(s[0], s[1])
				around(at, at, markRadius)
			}
		}
		if !f.shows(a.X.Value, a.Y.Value) {
			continue
		}
		at := p.at(a.X.Value, a.Y.Value)
		around(at, at, 1.6*markRadius)
		if a.X.interval() && f.X.shows(a.X.Lo) {
			around(vg.Point{X: p.x.at(a.X.Lo), Y: at.Y}, vg.Point{X: p.x.at(a.X.Hi), Y: at.Y}, 2)
		}
		if a.Y.interval() && f.Y.shows(a.Y.Lo) {
			around(vg.Point{X: at.X, Y: p.y.at(a.Y.Lo)}, vg.Point{X: at.X, Y: p.y.at(a.Y.Hi)}, 2)
		}
	}
	return boxes
}

func overlapsAny(r vg.Rectangle, others []vg.Rectangle) bool {
	for _, o := range others {
		if r.Min.X < o.Max.X && o.Min.X < r.Max.X && r.Min.Y < o.Max.Y && o.Min.Y < r.Max.Y {
			return true
		}
	}
	return false
}

func (f Scatter) caption(names []string) Caption {
	out := Caption{About: f.About, Units: units(f.X, f.Y), Interval: "No intervals"}
	var counts []int
	for _, a := range f.Arms {
		counts = append(counts, len(a.Seeds))
		if a.X.interval() || a.Y.interval() {
			out.Interval = "Error bars: " + orUnnamed(f.Interval)
		}
		if !f.shows(a.X.Value, a.Y.Value) {
			out.Notes = append(out.Notes, clean(a.Name)+" has no value on both axes and no large marker")
		}
	}
	if f.Start != nil {
		out.Notes = append(out.Notes, "Grey: the weights before training")
	}
	if len(counts) > 0 && slices.Max(counts) > 0 {
		out.Seeds = seedsText(names, counts) + " (small markers)"
	}
	return out
}

func (f Scatter) alt() string {
	var parts []string
	for _, a := range f.Arms {
		parts = append(parts, fmt.Sprintf("%s at %s and %s", a.Name, value(a.X.Value), value(a.Y.Value)))
	}
	return fmt.Sprintf("Scatter plot of %s (x) and %s (y): %s.", f.X.title(), f.Y.title(), enumerate(parts))
}

func (f Scatter) data() scatterData {
	out := scatterData{X: f.X.title(), Y: f.Y.title(), Interval: f.Interval, Arms: []scatterPoint{}}
	if f.Start != nil {
		out.Start = numbers(f.Start[:])
	}
	for _, a := range f.Arms {
		p := scatterPoint{Name: a.Name, X: a.X.data(), Y: a.Y.data(), Seeds: [][2]number{}}
		for _, s := range a.Seeds {
			p.Seeds = append(p.Seeds, [2]number{number(s[0]), number(s[1])})
		}
		out.Arms = append(out.Arms, p)
	}
	return out
}
