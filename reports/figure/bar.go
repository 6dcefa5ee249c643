package figure

import (
	"fmt"
	"image/color"
	"strings"

	"gonum.org/v1/plot/vg"

	"exp/experiments/quantity"
)

// Bar compares arms on several suites, or on several metrics of one unit: one
// group of bars per suite, one bar per arm, from zero, with intervals.
type Bar struct {
	Head
	Y        Axis // linear
	Groups   []string
	Arms     []ArmValues
	Interval string // what Lo and Hi are

	// Start holds each group's value before training, which all arms share: a grey bar; nil:
	// not known. NaN draws none.
	Start []float64
}

// ArmValues is an arm's value in each group of Bar or Dots.
type ArmValues struct {
	Name   string
	Seeds  int        // that stand behind the values; 0: not said
	Values []Estimate // [groups]; NaN where the arm has none
}

type barData struct {
	Y string `json:"y"`
	groupData
	Start []number `json:"start,omitempty"`
}

// groupData is the common part of Bar's and Dots' data.
type groupData struct {
	Interval string      `json:"interval"`
	Groups   []string    `json:"groups"`
	Arms     []groupLine `json:"arms"`
}

type groupLine struct {
	Name   string         `json:"name"`
	Seeds  int            `json:"seeds,omitempty"`
	Values []estimateData `json:"values"`
}

func groupDataOf(interval string, groups []string, arms []ArmValues) groupData {
	out := groupData{interval, groups, []groupLine{}}
	for _, a := range arms {
		line := groupLine{Name: a.Name, Seeds: a.Seeds}
		for _, e := range a.Values {
			line.Values = append(line.Values, e.data())
		}
		out.Arms = append(out.Arms, line)
	}
	return out
}

// namesAndExtent returns the arms' names and the range of their values. Arms without one value per group are
// an error.
func (h Head) namesAndExtent(groups []string, arms []ArmValues, a Axis) (names []string, x extent, err error) {
	for _, arm := range arms {
		names = append(names, arm.Name)
		if len(arm.Values) != len(groups) {
			return nil, x, h.errorf("arm %q has %d values for %d groups", arm.Name, len(arm.Values), len(groups))
		}
		for _, e := range arm.Values {
			x.addEstimate(a, e)
		}
	}
	return names, x, nil
}

// Draw draws the figure. Arms without one value per group are an error; no finite
// value is ErrNoData.
func (f Bar) Draw() (Figure, error) {
	if err := f.Head.check(); err != nil {
		return Figure{}, err
	}
	if f.Y.Log {
		return Figure{}, f.errorf("bars start at zero, which a logarithmic axis does not have")
	}
	const most = 24 // labels that can be read
	if len(f.Groups) > most {
		return Figure{}, f.errorf("%d groups of bars: want at most %d; draw several figures", len(f.Groups), most)
	}
	names, y, err := f.namesAndExtent(f.Groups, f.Arms, f.Y)
	if err != nil {
		return Figure{}, err
	}
	if f.Start != nil && len(f.Start) != len(f.Groups) {
		return Figure{}, f.errorf("%d values before training for %d groups", len(f.Start), len(f.Groups))
	}
	if !y.some {
		return Figure{}, f.noData("no bar has a finite value")
	}
	y.add(f.Y, f.Start...)
	k := looks(f.Order, names)
	return f.render(picture{
		caption: f.caption(names),
		alt:     f.alt(),
		data:    barData{f.Y.title(), groupDataOf(f.Interval, f.Groups, f.Arms), numbers(f.Start)},
		height:  pageHeight,
		rows:    pageRows,
		legend:  f.legend(k),
		draw:    func(s *sheet) { f.draw(s, k, y) },
	})
}

func (f Bar) draw(s *sheet, k []look, y extent) {
	top := s.heading(f.Title)
	top -= s.legend(f.legend(k), top)
	fr := frame{area: s.under(top), grid: gridY}
	f.Y.Zero = true
	ys := newScale(f.Y, y, 0.06)
	groups := vg.Length(len(f.Groups))
	xs := scale{lo: -0.5, hi: float64(groups) - 0.5}
	for range 2 { // the height of the labels changes the ticks of y, these the labels' width
		room := (fr.area.Max.X-fr.area.Min.X-s.beside(fitY(xs, ys, fr)))/groups - 4
		xs.ticks = f.groupTicks(s, room)
	}
	p := s.panel(xs, ys, fr)
	bars := len(f.Arms)
	if f.Start != nil {
		bars++
	}
	width := min((p.x.to-p.x.from)/groups*0.82/vg.Length(bars), 46)
	for g, group := range f.Groups {
		from := p.x.at(float64(g)) - width*vg.Length(bars)/2
		if f.Start != nil {
			f.drawBar(p, startName+", "+group, Point(f.Start[g]), from, width, startBar())
			from += width
		}
		for i, a := range f.Arms {
			f.drawBar(p, a.Name+", "+group, a.Values[g], from+vg.Length(i)*width, width, k[i])
		}
	}
	zero := p.y.at(0)
	p.line(stroke{width: axisWidth, color: axisColor}, vg.Point{X: p.x.from, Y: zero}, vg.Point{X: p.x.to, Y: zero})
}

// groupTicks are the names of the groups, each in at most three lines of a width.
func (f Bar) groupTicks(s *sheet, room vg.Length) []tick {
	var ticks []tick
	for i, g := range f.Groups {
		ticks = append(ticks, tick{float64(i), strings.Join(s.wrap(s.tickInk(), clean(g), room, 3), "\n")})
	}
	return ticks
}

func (f Bar) legend(k []look) []entry {
	var entries []entry
	if f.Start != nil {
		entries = append(entries, boxEntry(startName, func(s *sheet, box vg.Rectangle) { s.bar(box, startBar()) }))
	}
	for i, a := range f.Arms {
		entries = append(entries, boxEntry(a.Name, func(s *sheet, box vg.Rectangle) { s.bar(box, k[i]) }))
	}
	return entries
}

// drawBar draws one bar of a group, its interval, and its value if there is room.
func (f Bar) drawBar(p panel, name string, e Estimate, x, width vg.Length, k look) {
	mid, zero := x+width/2, p.y.at(0)
	if !drawable(e.Value) {
		f.drawValue(p, "n/a", mid, width, zero, zero, zero < p.y.to)
		return
	}
	y := p.y.at(e.Value)
	edge := min(1.0, width*0.06) // a gap between neighbours
	p.bar(vg.Rectangle{
		Min: vg.Point{X: x + edge, Y: min(zero, y)},
		Max: vg.Point{X: x + width - edge, Y: max(zero, y)},
	}, k)
	low := min(zero, y)
	p.tipBox(vg.Rectangle{Min: vg.Point{X: x, Y: low}, Max: vg.Point{X: x + width, Y: max(zero, y, low+8)}},
		name+": "+e.text())
	low, high := y, y
	if e = p.y.within(e); e.interval() {
		low, high = p.y.at(e.Lo), p.y.at(e.Hi)
		a, b := vg.Point{X: mid, Y: low}, vg.Point{X: mid, Y: high}
		if width > 12 { // else it would hide the bar
			p.line(stroke{width: 3 * barWidth, color: color.White}, a, b)
		}
		p.whisker(a, b, min(width/4, 4), inkColor)
	}
	above := e.Value > 0 || (e.Value == 0 && zero < p.y.to)
	f.drawValue(p, value(e.Value), mid, width, min(low, y), max(high, y), above)
}

// drawValue writes a value above or below the drawing between low and high, if there
// is room.
func (f Bar) drawValue(p panel, text string, x, width, low, high vg.Length, above bool) {
	small := ink{size: smallSize, color: inkColor}
	const away = 3
	y := high + away
	if !above {
		y = low - away - smallSize*capHeight
	}
	if p.width(small, text)+2 <= width && y >= p.y.from && y+smallSize*capHeight <= p.y.to+away {
		p.text(small, vg.Point{X: x, Y: y}, center, text)
	}
}

// startBar is the style of the values before training.
func startBar() look { return look{color: fillColor} }

// bar fills a box in an arm's colour and hatch.
func (s *sheet) bar(box vg.Rectangle, k look) {
	s.rect(box.Min.X, box.Min.Y, box.Max.X, box.Max.Y, k.color)
	if k.hatch != plain {
		s.hatch(box, k.hatch, stroke{width: 0.8, color: tint(k.color, 0.35)})
	}
}

// hatch draws diagonals in a box, cut at its edges.
func (s *sheet) hatch(box vg.Rectangle, way hatch, st stroke) {
	const apart = 5.0
	w, h := box.Max.X-box.Min.X, box.Max.Y-box.Min.Y
	for d := vg.Length(apart) - h; d < w; d += apart { // the line is y = x − d in the box
		from, to := max(0, d), min(w, d+h)
		if to-from < 0.5 {
			continue
		}
		a, b := vg.Point{X: box.Min.X + from, Y: box.Min.Y + from - d},
			vg.Point{X: box.Min.X + to, Y: box.Min.Y + to - d}
		if way == falling {
			a.Y, b.Y = box.Min.Y+box.Max.Y-a.Y, box.Min.Y+box.Max.Y-b.Y
		}
		s.line(st, a, b)
	}
}

func (f Bar) caption(names []string) Caption {
	out := Caption{About: f.About, Units: units(Axis{}, f.Y), Interval: "No intervals"}
	var counts []int
	var absent int
	for _, a := range f.Arms {
		counts = append(counts, a.Seeds)
		for _, e := range a.Values {
			if e.interval() {
				out.Interval = "Error bars: " + orUnnamed(f.Interval)
			}
			if !drawable(e.Value) {
				absent++
			}
		}
	}
	out.Seeds = statedSeeds(names, counts)
	if f.Start != nil {
		out.Notes = append(out.Notes, "Grey: the weights before training")
	}
	if absent > 0 {
		out.Notes = append(out.Notes, quantity.Plural(absent, "value")+" missing or not finite")
	}
	return out
}

func (f Bar) alt() string {
	var groups []string
	for g, name := range f.Groups {
		var arms []string
		for _, a := range f.Arms {
			arms = append(arms, a.Name+" "+value(a.Values[g].Value))
		}
		groups = append(groups, name+": "+enumerate(arms))
	}
	return fmt.Sprintf("Bar chart of %s. %s.", f.Y.title(), strings.Join(groups, ". "))
}
