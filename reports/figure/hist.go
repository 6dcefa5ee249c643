package figure

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/plot/vg"
)

// Hist compares the distribution of a number, for example completion lengths or
// rewards, at two times: one panel per arm, the first as a filled area and the
// last as an outline. All panels share their bins and axes.
type Hist struct {
	Head
	X    Axis   // linear
	Unit string // what is counted, e.g. "completions"
	Arms []HistArm
}

// HistArm is one panel.
type HistArm struct {
	Name        string
	First, Last HistSet
}

// HistSet is the numbers at one time. Those that are not finite are left out.
type HistSet struct {
	Label  string // e.g. "step 1"; the same in all arms, or ""
	Values []float64
}

type histData struct {
	X     string     `json:"x"`
	Edges []number   `json:"edges"` // of the bins, one more than there are bins
	Arms  []histLine `json:"arms"`
}

type histLine struct {
	Name  string  `json:"name"`
	First histBar `json:"first"`
	Last  histBar `json:"last"`
}

type histBar struct {
	Label string   `json:"label"`
	N     int      `json:"n"`
	Share []number `json:"share"` // of the values, per bin
}

// Draw draws the figure; its height grows with the number of arms. No finite value
// is ErrNoData.
func (f Hist) Draw() (Figure, error) {
	if err := f.Head.check(); err != nil {
		return Figure{}, err
	}
	if f.X.Log {
		return Figure{}, f.errorf("bins are of equal width: want a linear axis")
	}
	var x extent
	names := make([]string, len(f.Arms))
	for i, a := range f.Arms {
		names[i] = a.Name
		x.add(f.X, a.First.Values...)
		x.add(f.X, a.Last.Values...)
	}
	if !x.some {
		return Figure{}, f.noData("no arm has a finite value")
	}
	b := binsFor(x)
	data := histData{X: f.X.title(), Edges: numbers(b.edges()), Arms: []histLine{}}
	for _, a := range f.Arms {
		data.Arms = append(data.Arms, histLine{a.Name, b.bar(a.First), b.bar(a.Last)})
	}
	g := gridOf(len(f.Arms))
	k := looks(f.Order, names)
	return f.render(picture{
		caption: f.caption(data),
		alt:     f.alt(),
		data:    data,
		height:  g.height(),
		draw:    func(s *sheet) { f.draw(s, g, k, b, data) },
	})
}

// bins are n half-open intervals [from + i·width, from + (i+1)·width).
type bins struct {
	from, width float64
	n           int
	whole       bool // one bin per whole number, which stands in its middle
}

// binsFor covers an extent with bins of a round width: one per whole number if
// there are no more than 40 of them, else 20 to 50. Round edges keep a bin from
// holding one whole number more than its neighbour.
func binsFor(x extent) bins {
	const most, some = 40, 30
	if span := x.hi - x.lo; !x.broken && span <= most {
		return bins{from: x.lo - 0.5, width: 1, n: int(span) + 1, whole: true}
	}
	if x.hi-x.lo <= 1e-12*math.Max(math.Abs(x.lo), math.Abs(x.hi)) { // one value
		width := math.Max(math.Abs(x.lo)*0.1, 1e-9)
		return bins{from: x.lo - width/2, width: width, n: 1}
	}
	width := roundStep((x.hi - x.lo) / some)
	first, last := math.Floor(x.lo/width), math.Floor(x.hi/width)
	return bins{from: first * width, width: width, n: int(last-first) + 1}
}

func (b bins) edges() []float64 {
	edges := make([]float64, b.n+1)
	for i := range edges {
		edges[i] = b.from + float64(i)*b.width
	}
	return edges
}

// bar counts the finite values of a set.
func (b bins) bar(s HistSet) histBar {
	out := histBar{Label: clean(s.Label), Share: make([]number, b.n)}
	counts := make([]int, b.n)
	for _, v := range s.Values {
		if drawable(v) {
			i := int(math.Floor((v-b.from)/b.width + 1e-9))
			counts[min(max(i, 0), b.n-1)]++
			out.N++
		}
	}
	for i, c := range counts {
		if out.N > 0 {
			out.Share[i] = number(float64(c) / float64(out.N))
		}
	}
	return out
}

func (f Hist) draw(s *sheet, g panels, k []look, b bins, data histData) {
	top := s.heading(f.Title)
	top -= s.legend(f.legend(), top)
	var y extent
	y.add(Axis{}, 0)
	for _, a := range data.Arms {
		for i := range a.First.Share {
			y.add(Axis{}, float64(a.First.Share[i]), float64(a.Last.Share[i]))
		}
	}
	label := Axis{Label: "share of values", Zero: true}
	if f.Unit != "" {
		label.Label = "share of " + f.Unit
	}
	for i, a := range data.Arms {
		xs := scale{axis: f.X, lo: b.from, hi: b.from + float64(b.n)*b.width, whole: b.whole}
		fr := g.frame(s, i, top, xs)
		fr.grid = gridY
		fr.title = []words{{clean(a.Name), ink{size: labelSize, color: k[i].ink, bold: true}}}
		p := s.panel(xs, newScale(g.firstOnly(i, label), y, 0.04), fr)
		p.fill(fillColor, p.outline(b, a.First)...)
		if a.Last.N > 0 {
			p.line(stroke{width: 1.6, color: k[i].color}, p.outline(b, a.Last)...)
		}
	}
}

// outline is the upper edge of the bars, from zero to zero. Bars of a few whole
// numbers stand apart.
func (p panel) outline(b bins, bar histBar) []vg.Point {
	const few = 12
	if bar.N == 0 {
		return nil
	}
	apart := b.whole && b.n <= few
	var pts []vg.Point
	if !apart {
		pts = append(pts, p.at(b.from, 0))
	}
	for i, share := range bar.Share {
		from, to := b.from+float64(i)*b.width, b.from+float64(i+1)*b.width
		if apart {
			from, to = from+0.15*b.width, to-0.15*b.width
			pts = append(pts, p.at(from, 0), p.at(from, float64(share)), p.at(to, float64(share)), p.at(to, 0))
		} else {
			pts = append(pts, p.at(from, float64(share)), p.at(to, float64(share)))
		}
	}
	if !apart {
		pts = append(pts, p.at(b.from+float64(b.n)*b.width, 0))
	}
	return pts
}

// legend names the two times, by the labels of the first arm that has them.
func (f Hist) legend() []entry {
	first, last := "first", "last"
	for _, a := range slices.Backward(f.Arms) {
		if a.First.Label != "" {
			first = a.First.Label
		}
		if a.Last.Label != "" {
			last = a.Last.Label
		}
	}
	return []entry{
		boxEntry(first, func(s *sheet, box vg.Rectangle) {
			s.rect(box.Min.X, box.Min.Y, box.Max.X, box.Max.Y, fillColor)
		}),
		strokeEntry(last, stroke{width: 1.6, color: axisColor}),
	}
}

func (f Hist) caption(data histData) Caption {
	out := Caption{About: f.About, Interval: "No intervals"}
	y := Axis{Label: "share of values per bin"}
	if f.Unit != "" {
		y.Label = "share of " + f.Unit + " per bin"
	}
	out.Units = units(f.X, y)
	var parts []string
	for i, a := range data.Arms {
		parts = append(parts, fmt.Sprintf("%s %d and %d values", clean(a.Name), a.First.N, a.Last.N))
		if left := len(f.Arms[i].First.Values) + len(f.Arms[i].Last.Values) - a.First.N - a.Last.N; left > 0 {
			out.Notes = append(out.Notes, fmt.Sprintf("%s of %s left out: not finite", plural(left, "value"), clean(a.Name)))
		}
	}
	out.Seeds = strings.Join(parts, ", ")
	return out
}

func (f Hist) alt() string {
	mean := func(values []float64) float64 {
		var sum, n float64
		for _, v := range values {
			if drawable(v) {
				sum += v
				n++
			}
		}
		return sum / n
	}
	var parts []string
	for _, a := range f.Arms {
		parts = append(parts, fmt.Sprintf("%s has mean %s first and %s last",
			a.Name, value(mean(a.First.Values)), value(mean(a.Last.Values))))
	}
	return fmt.Sprintf("Histograms of %s: %s.", f.X.title(), enumerate(parts))
}
