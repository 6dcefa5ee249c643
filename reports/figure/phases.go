package figure

import (
	"fmt"
	"image/color"
	"strings"

	"gonum.org/v1/plot/vg"

	"exp/experiments/quantity"
)

// Phases shows where the time goes: one stacked bar per arm or run, one segment
// per phase, in seconds and as a share of the bar.
type Phases struct {
	Head
	Phases []string // in the order of a step
	Rows   []PhaseRow
	Per    string // what the seconds are of, e.g. "per step, mean over steps"
}

// PhaseRow is one bar.
type PhaseRow struct {
	Name    string
	Seconds []float64 // [phases], ≥ 0; NaN counts as no time
}

type phasesData struct {
	Per    string       `json:"per"`
	Phases []string     `json:"phases"`
	Rows   []phasesLine `json:"rows"`
}

type phasesLine struct {
	Name    string   `json:"name"`
	Seconds []number `json:"seconds"`
	Share   []number `json:"share"`
	Total   number   `json:"total"`
}

// Draw draws the figure; its height grows with the number of rows. Negative times
// and rows of another length are errors; no time at all is ErrNoData.
func (f Phases) Draw() (Figure, error) {
	if err := f.Head.check(); err != nil {
		return Figure{}, err
	}
	var most extent
	for _, r := range f.Rows {
		if len(r.Seconds) != len(f.Phases) {
			return Figure{}, f.errorf("row %q has %d times for %d phases", r.Name, len(r.Seconds), len(f.Phases))
		}
		for i, s := range r.Seconds {
			if s < 0 {
				return Figure{}, f.errorf("row %q, phase %q: %v seconds: must not be negative", r.Name, f.Phases[i],
					s)
			}
		}
		if t := total(r.Seconds); t > 0 {
			most.add(Axis{}, t)
		}
	}
	if !most.some {
		return Figure{}, f.noData("no phase took any time")
	}
	const others = 76 // heading, axis
	return f.render(picture{
		caption: f.caption(),
		alt:     f.alt(),
		data:    f.data(),
		height:  others + phaseRow*vg.Length(len(f.Rows)),
		legend:  f.legend(),
		draw:    func(s *sheet) { f.draw(s, most) },
	})
}

const phaseRow = 34.0 // height of one bar and the space around it

func total(seconds []float64) float64 {
	var sum float64
	for _, s := range seconds {
		if drawable(s) {
			sum += s
		}
	}
	return sum
}

func (f Phases) draw(s *sheet, most extent) {
	top := s.heading(f.Title)
	top -= s.legend(f.legend(), top)
	names := make([]string, len(f.Rows))
	for i, r := range f.Rows {
		names[i] = r.Name
	}
	unit := "seconds"
	if f.Per != "" {
		unit += " " + f.Per
	}
	xs := newScale(Axis{Label: unit, Zero: true}, most, 0)
	const room = 46 // for the total behind the longest bar
	p := s.panel(xs, s.rows(names), frame{area: s.under(top), grid: gridX, right: room})
	for i, r := range f.Rows {
		f.drawRow(p, i, r)
	}
}

func (f Phases) legend() []entry {
	var entries []entry
	for i, name := range f.Phases {
		entries = append(entries, boxEntry(name, func(s *sheet, box vg.Rectangle) {
			s.rect(box.Min.X, box.Min.Y, box.Max.X, box.Max.Y, phaseColor(i))
		}))
	}
	return entries
}

// rows is a y axis with one name per row, downwards, in at most two lines.
func (s *sheet) rows(names []string) scale {
	y := scale{lo: float64(len(names)) - 0.5, hi: -0.5, ticks: []tick{}}
	for i, name := range names {
		y.ticks = append(y.ticks, tick{float64(i), strings.Join(s.wrap(s.tickInk(), clean(name), 0.3*s.w, 2), "\n")})
	}
	return y
}

func (f Phases) drawRow(p panel, row int, r PhaseRow) {
	mid, sum := p.y.at(float64(row)), total(r.Seconds)
	small := ink{size: smallSize, color: inkColor}
	const half = 0.32 * phaseRow
	var done float64
	for i, s := range r.Seconds {
		if !drawable(s) || s == 0 {
			continue
		}
		from, to := p.x.at(done), p.x.at(done+s)
		done += s
		p.rect(from, mid-half, to, mid+half, phaseColor(i))
		p.line(stroke{width: 0.8, color: color.White}, vg.Point{X: to, Y: mid - half}, vg.Point{X: to, Y: mid + half})
		share := fmt.Sprintf("%.0f %%", 100*s/sum)
		seconds := value(s) + " s"
		p.tipBox(vg.Rectangle{Min: vg.Point{X: from, Y: mid - half}, Max: vg.Point{X: to, Y: mid + half}},
			fmt.Sprintf("%s, %s: %s, %s", clean(r.Name), f.Phases[i], seconds, share))
		at := vg.Point{X: (from + to) / 2, Y: mid}
		switch room := to - from - 4; {
		case p.width(small, seconds) <= room:
			p.label(small, at.Add(vg.Point{Y: 5}), center, seconds)
			p.label(small, at.Sub(vg.Point{Y: 5}), center, share)
		case p.width(small, share) <= room:
			p.label(small, at, center, share)
		}
	}
	bold := ink{size: smallSize, color: inkColor, bold: true}
	p.label(bold, vg.Point{X: p.x.at(sum) + 4, Y: mid}, left, value(sum)+" s")
}

// phaseColor returns the colour of the i-th phase; no two of the first 28 share one.
func phaseColor(i int) color.NRGBA {
	c := phasePalette[i%len(phasePalette)]
	if i/len(phasePalette)%2 == 1 {
		return tint(c, 0.4)
	}
	return c
}

func (f Phases) caption() Caption {
	out := Caption{About: f.About, Units: "Seconds"}
	if f.Per != "" {
		out.Units += " " + f.Per
	}
	out.Units += "; per cent of the bar; bold: sum"
	var absent int
	for _, r := range f.Rows {
		for _, s := range r.Seconds {
			if !drawable(s) {
				absent++
			}
		}
	}
	if absent > 0 {
		out.Notes = append(out.Notes, quantity.Plural(absent, "time")+" missing or not finite, counted as none")
	}
	return out
}

func (f Phases) alt() string {
	var rows []string
	for _, r := range f.Rows {
		var parts []string
		for i, s := range r.Seconds {
			parts = append(parts, f.Phases[i]+" "+value(s)+" s")
		}
		rows = append(rows, fmt.Sprintf("%s %s s (%s)", r.Name, value(total(r.Seconds)), strings.Join(parts, ", ")))
	}
	return "Stacked bars of the time per phase: " + enumerate(rows) + "."
}

func (f Phases) data() phasesData {
	out := phasesData{Per: f.Per, Phases: f.Phases, Rows: []phasesLine{}}
	for _, r := range f.Rows {
		sum := total(r.Seconds)
		line := phasesLine{Name: r.Name, Seconds: numbers(r.Seconds), Total: number(sum)}
		for _, s := range r.Seconds {
			line.Share = append(line.Share, number(s/sum))
		}
		out.Rows = append(out.Rows, line)
	}
	return out
}
