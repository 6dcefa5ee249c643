package figure

import (
	"fmt"
	"slices"
	"strings"

	"gonum.org/v1/plot/vg"

	"exp/experiments/quantity"
)

// Forest shows paired differences between two arms with intervals, one row per suite or
// metric, and a zero line.
type Forest struct {
	Head
	X        Axis // what the difference is of, e.g. "FlowRL − PPO, accuracy"; linear
	Rows     []ForestRow
	Interval string  // what Lo and Hi are
	Seeds    string  // of the arms, for the caption; "": the rows say it
	Null     float64 // of no difference, where a line is drawn; 0.5 for probabilities
	Less     string  // what a difference below Null means, e.g. "PPO better"; may be ""
	More     string  // and above
}

// ForestRow is one difference.
type ForestRow struct {
	Name  string
	Seeds int      // per arm; 0: not said
	Diff  Estimate // first arm minus second
	Note  string   // written at the end of the row, e.g. "p = 0.012"
}

type forestData struct {
	X        string       `json:"x"`
	Interval string       `json:"interval"`
	Rows     []forestLine `json:"rows"`
}

type forestLine struct {
	Name  string       `json:"name"`
	Seeds int          `json:"seeds,omitempty"`
	Diff  estimateData `json:"diff"`
	Note  string       `json:"note,omitempty"`
}

// Draw draws the figure; its height grows with the number of rows. No finite
// difference is ErrNoData.
func (f Forest) Draw() (Figure, error) {
	if err := f.Head.check(); err != nil {
		return Figure{}, err
	}
	if f.X.Log {
		return Figure{}, f.errorf("differences have signs, which a logarithmic axis cannot show")
	}
	var x extent
	for _, r := range f.Rows {
		if drawable(r.Diff.Value) {
			x.addEstimate(f.X, r.Diff)
		}
	}
	if !x.some {
		return Figure{}, f.noData("no row has a finite difference")
	}
	x.add(f.X, f.Null)
	if x.lo == x.hi { // no row differs
		x.add(f.X, f.Null-1, f.Null+1)
	}
	x.add(f.X, f.Null-sideRoom*(x.hi-f.Null), f.Null+sideRoom*(f.Null-x.lo))
	const others = 100 // heading, axis, the meaning of the sides
	return f.render(picture{
		caption: f.caption(),
		alt:     f.alt(),
		data:    f.data(),
		height:  others + forestRowHeight*vg.Length(len(f.Rows)),
		draw:    func(s *sheet) { f.draw(s, x) },
	})
}

// The height of a row, which has room for two lines of text.
const forestRowHeight, forestLineHeight = 27.0, 11.0

// sideRoom is the least extent of one side of a forest plot, as a share of the other's: so
// much that its label fits where all differences have one sign.
const sideRoom = 0.4

func (f Forest) draw(s *sheet, x extent) {
	top := s.heading(f.Title)
	small := ink{size: smallSize, color: inkColor}
	names, texts := make([]string, len(f.Rows)), make([][]string, len(f.Rows))
	var room vg.Length
	for i, r := range f.Rows {
		names[i], texts[i] = r.Name, []string{r.text(f.Null)}
		if s.width(small, texts[i][0]) > 0.42*s.w { // the note on a separate line
			texts[i] = []string{s.clip(small, r.estimate(f.Null), 0.42*s.w)}
			if note := clean(r.Note); note != "" {
				texts[i] = append(texts[i], s.clip(small, note, 0.42*s.w))
			}
		}
		for _, line := range texts[i] {
			room = max(room, s.width(small, line)+2*gap)
		}
	}
	if f.Less != "" || f.More != "" {
		top -= rowHeight
	}
	p := s.panel(newScale(f.X, x, 0.06), s.rows(names), frame{area: s.under(top), grid: gridX, right: room})
	zero := p.x.at(f.Null)
	p.line(stroke{width: barWidth, color: axisColor}, vg.Point{X: zero, Y: p.y.from}, vg.Point{X: zero, Y: p.y.to})
	f.drawSides(p, top+rowHeight/2-1)
	k := lookAt(0)
	for i, r := range f.Rows {
		y := p.y.at(float64(i))
		for n, line := range texts[i] {
			at := y + (vg.Length(len(texts[i])-1)/2-vg.Length(n))*forestLineHeight
			p.label(small, vg.Point{X: p.x.to + 2*gap, Y: at}, left, line)
		}
		if !drawable(r.Diff.Value) {
			continue
		}
		if r.Diff.interval() {
			p.whisker(vg.Point{X: p.x.at(r.Diff.Lo), Y: y}, vg.Point{X: p.x.at(r.Diff.Hi), Y: y}, 3, k.color)
		}
		p.mark(square, vg.Point{X: p.x.at(r.Diff.Value), Y: y}, 1.2*markRadius, k.color)
		p.tip(vg.Point{X: p.x.at(r.Diff.Value), Y: y}, r.Name+": "+r.text(f.Null))
	}
}

// drawSides labels the two sides above the axes.
func (f Forest) drawSides(p panel, y vg.Length) {
	small := ink{size: smallSize, color: plainColor}
	zero := p.x.at(f.Null)
	if f.Less != "" {
		text := p.clip(small, "← "+clean(f.Less), zero-2*gap-margin) // the caption has it whole
		p.label(small, vg.Point{X: zero - 2*gap, Y: y}, right, text)
	}
	if f.More != "" {
		text := p.clip(small, "→ "+clean(f.More), p.w-margin-zero-2*gap)
		p.label(small, vg.Point{X: zero + 2*gap, Y: y}, left, text)
	}
}

// text is the row in numbers: "+0.042 [0.010, 0.074]  p = 0.012".
func (r ForestRow) text(null float64) string {
	return strings.TrimSpace(r.estimate(null) + "  " + clean(r.Note))
}

// estimate is the difference with its interval: "+0.042 [0.010, 0.074]".
func (r ForestRow) estimate(null float64) string {
	text := value(r.Diff.Value)
	if r.Diff.interval() {
		texts := values(r.Diff.Value, r.Diff.Lo, r.Diff.Hi)
		text = texts[0] + " [" + texts[1] + ", " + texts[2] + "]"
	}
	if null == 0 && r.Diff.Value > 0 {
		text = "+" + text
	}
	return text
}

func (f Forest) caption() Caption {
	out := Caption{About: f.About, Units: units(f.X, Axis{}), Interval: "No intervals"}
	names, counts := []string{}, []int{}
	said := true
	for _, r := range f.Rows {
		names, counts = append(names, r.Name), append(counts, r.Seeds)
		said = said && r.Seeds > 0
		if r.Diff.interval() {
			out.Interval = "Error bars: " + orUnnamed(f.Interval)
		}
		if !drawable(r.Diff.Value) {
			out.Notes = append(out.Notes, clean(r.Name)+" has no finite difference")
		}
	}
	if f.Less != "" {
		out.Units += "; below " + f.null() + ": " + clean(f.Less)
	}
	if f.More != "" {
		out.Units += "; above " + f.null() + ": " + clean(f.More)
	}
	switch {
	case f.Seeds != "":
		out.Seeds = clean(f.Seeds)
	case said && slices.Min(counts) == slices.Max(counts):
		out.Seeds = quantity.Plural(counts[0], "seed") + " per arm"
	case said:
		out.Seeds = "Per arm: " + seedsText(names, counts)
	}
	return out
}

// null formats the value of no difference.
func (f Forest) null() string {
	if f.Null == 0 {
		return "zero"
	}
	return value(f.Null)
}

func (f Forest) alt() string {
	var rows []string
	for _, r := range f.Rows {
		rows = append(rows, r.Name+" "+r.text(f.Null))
	}
	return fmt.Sprintf("Forest plot of differences, %s: %s.", f.X.title(), enumerate(rows))
}

func (f Forest) data() forestData {
	out := forestData{X: f.X.title(), Interval: f.Interval, Rows: []forestLine{}}
	for _, r := range f.Rows {
		out.Rows = append(out.Rows, forestLine{r.Name, r.Seeds, r.Diff.data(), r.Note})
	}
	return out
}
