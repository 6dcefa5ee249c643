package figure

import (
	"cmp"
	"fmt"
	"image/color"
	"math"
	"slices"
	"strconv"

	"gonum.org/v1/plot/vg"

	"exp/experiments/quantity"
)

// Items is a heat map of two arms' scores on the same problems, a row per seed and a
// column per problem. Problems stand in four groups: solved at least once by both arms,
// by one alone, by the other alone, and by neither.
type Items struct {
	Head
	Arms    [2]ItemsArm
	Samples int // per problem and seed; 0: not said
}

// ItemsArm is one arm.
type ItemsArm struct {
	Name string
	Rows []string // what the rows are called: "seed 7"
	// Seeds are the share of right completions, [seeds][problems]; NaN where nothing was
	// graded.
	Seeds [][]float64
}

type itemsData struct {
	Groups []itemsGroup `json:"groups"`
}

type itemsGroup struct {
	Name     string       `json:"name"` // "both", an arm's name, or "neither"
	Problems int          `json:"problems"`
	Shares   [][][]number `json:"shares"` // [arms][seeds][problems of the group], as drawn
}

// mostColumns bounds the columns of the map, and the size of its file: of more
// problems, neighbours within a group are drawn as one column, their mean.
const mostColumns = 420

// Draw draws the figure. Rows of different lengths are an error; no problem is
// ErrNoData.
func (f Items) Draw() (Figure, error) {
	if err := f.Head.check(); err != nil {
		return Figure{}, err
	}
	n := -1
	for _, a := range f.Arms {
		for _, row := range a.Seeds {
			if n >= 0 && len(row) != n {
				return Figure{}, f.errorf("arm %q has %d problems in a row and %d in another", a.Name, len(row), n)
			}
			n = len(row)
		}
	}
	if n < 1 || len(f.Arms[0].Seeds) == 0 || len(f.Arms[1].Seeds) == 0 {
		return Figure{}, f.noData("no problem has scores in both arms")
	}
	groups := f.groups(n)
	rows := len(f.Arms[0].Seeds) + len(f.Arms[1].Seeds)
	const others = 96 // heading, groups, ramp
	return f.render(picture{
		caption: f.caption(groups, n),
		alt:     f.alt(groups),
		data:    f.data(groups),
		height:  others + betweenArms + itemsRow(rows)*vg.Length(rows),
		draw:    func(s *sheet) { f.draw(s, groups, n) },
	})
}

const betweenArms = 7.0

// itemsRow is a row's height: less of many rows.
func itemsRow(rows int) vg.Length { return min(24, max(9, vg.Length(150/rows))) }

// group is problems by what the arms made of them.
type group struct {
	name     string
	arm      int // 1 + the place of the only arm that solved them; 0: none or both
	problems []int
}

// groups sorts problems into groups, within them by how many were right.
func (f Items) groups(n int) []group {
	out := []group{{name: "both"}, {name: f.Arms[0].Name + " only", arm: 1}, {name: f.Arms[1].Name + " only", arm: 2},
		{name: "neither"}}
	sums := make([]float64, n)
	for i := range n {
		a, b := sumAt(f.Arms[0].Seeds, i), sumAt(f.Arms[1].Seeds, i)
		sums[i] = a/float64(len(f.Arms[0].Seeds)) + b/float64(len(f.Arms[1].Seeds))
		g := 0
		switch {
		case a > 0 && b <= 0:
			g = 1
		case a <= 0 && b > 0:
			g = 2
		case a <= 0:
			g = 3
		}
		out[g].problems = append(out[g].problems, i)
	}
	for _, g := range out {
		slices.SortStableFunc(g.problems, func(i, j int) int { return cmp.Compare(sums[j], sums[i]) })
	}
	return out
}

// sumAt is the sum of column i without unknown values.
func sumAt(rows [][]float64, i int) (sum float64) {
	for _, row := range rows {
		if drawable(row[i]) {
			sum += row[i]
		}
	}
	return sum
}

func (f Items) draw(s *sheet, groups []group, n int) {
	top := s.heading(f.Title)
	small := ink{size: smallSize, color: inkColor}
	k := looks(f.Order, []string{f.Arms[0].Name, f.Arms[1].Name})
	var names vg.Length
	for i, a := range f.Arms {
		names = max(names, s.width(ink{size: textSize, color: k[i].ink, bold: true},
			s.clip(s.tickInk(), clean(a.Name), 0.22*s.w)))
	}
	var seedRoom vg.Length
	for _, a := range f.Arms {
		for j := range a.Seeds {
			seedRoom = max(seedRoom, s.width(small, a.row(s, small, j))+gap)
		}
	}
	from, to := margin+names+2*gap+seedRoom, s.w-margin
	top -= rowHeight + 2 // names of the groups

	shown := 0
	for _, g := range groups {
		if len(g.problems) > 0 {
			shown++
		}
	}
	const between = 6.0
	wide := (to - from - between*vg.Length(shown-1)) / vg.Length(n) // of a problem
	x := from
	for _, g := range groups {
		if len(g.problems) == 0 {
			continue
		}
		end := x + wide*vg.Length(len(g.problems))
		f.drawGroup(s, k, g, x, end, top, n)
		x = end + between
	}
	y := top
	height := itemsRow(len(f.Arms[0].Seeds) + len(f.Arms[1].Seeds))
	for i, a := range f.Arms {
		block := height * vg.Length(len(a.Seeds))
		bold := ink{size: textSize, color: k[i].ink, bold: true}
		s.label(bold, vg.Point{X: margin, Y: y - block/2}, left, s.clip(bold, clean(a.Name), 0.22*s.w))
		for j := range a.Seeds {
			s.label(small, vg.Point{X: from - gap, Y: y - (vg.Length(j)+0.5)*height}, right, a.row(s, small, j))
		}
		y -= block + betweenArms
	}
	f.drawRamp(s, k, from, y)
}

// row returns the name of row j.
func (a ItemsArm) row(s *sheet, k ink, j int) string {
	if j >= len(a.Rows) {
		return ""
	}
	return s.clip(k, clean(a.Rows[j]), 0.2*s.w)
}

// drawGroup draws the columns of a group, equal neighbours as one rectangle, with the
// group's name and size over them.
func (f Items) drawGroup(s *sheet, k []look, g group, x0, x1, top vg.Length, n int) {
	columns := binned(g.problems, n)
	width := (x1 - x0) / vg.Length(len(columns))
	height := itemsRow(len(f.Arms[0].Seeds) + len(f.Arms[1].Seeds))
	y := top
	for i, a := range f.Arms {
		for _, row := range a.Seeds {
			for c := 0; c < len(columns); {
				shade := cellColor(k[i].color, meanOf(row, columns[c]))
				end := c + 1
				for end < len(columns) && cellColor(k[i].color, meanOf(row, columns[end])) == shade {
					end++
				}
				s.rect(x0+width*vg.Length(c), y-height+0.5, x0+width*vg.Length(end), y-0.5, shade)
				c = end
			}
			y -= height
		}
		y -= betweenArms
	}
	small, over := ink{size: smallSize, color: inkColor}, axisColor
	for i := range f.Arms {
		if g.arm == i+1 { // its colour says whose, where its name does not fit
			small.color, over, small.bold = k[i].ink, k[i].color, true
		}
	}
	s.line(stroke{width: barWidth, color: over}, vg.Point{X: x0, Y: top + 3}, vg.Point{X: x1, Y: top + 3})
	count := strconv.Itoa(len(g.problems))
	text := clean(g.name) + " " + count
	switch room := x1 - x0 + 4; {
	case s.width(small, text) <= room:
	case s.width(small, count) <= room:
		text = count // the caption has the name
	default:
		return
	}
	s.text(small, vg.Point{X: (x0 + x1) / 2, Y: top + 7}, center, text)
}

// binned cuts a group's problems into columns, at most its part of mostColumns.
func binned(problems []int, n int) [][]int {
	columns := len(problems)
	if n > mostColumns {
		columns = max(1, len(problems)*mostColumns/n)
	}
	out := make([][]int, columns)
	for i := range out {
		out[i] = problems[i*len(problems)/columns : (i+1)*len(problems)/columns]
	}
	return out
}

func meanOf(row []float64, problems []int) float64 {
	sum, n := 0.0, 0
	for _, i := range problems {
		if drawable(row[i]) {
			sum += row[i]
			n++
		}
	}
	return sum / float64(n) // NaN of nothing
}

// cellColor goes from near white at 0 to the arm's colour at 1; grey is not known.
func cellColor(c color.NRGBA, share float64) color.NRGBA {
	if math.IsNaN(share) {
		return fillColor
	}
	const least = 0.05 // so that a problem can be told from the page
	return tint(c, least+(1-least)*min(max(share, 0), 1))
}

// drawRamp draws the key of the shades below the map. On a narrow sheet it begins left of
// the map, and its cells shrink.
func (f Items) drawRamp(s *sheet, k []look, x, top vg.Length) {
	small := ink{size: smallSize, color: inkColor}
	const steps, height = 20, 6.0
	const none, all = "right completions of a problem: none", "all"
	texts := s.width(small, none) + s.width(small, all) + 2*gap
	cell := min(4, (s.w-2*margin-texts)/steps)
	x = max(margin, min(x, s.w-margin-texts-cell*steps))
	y := top - 8
	s.label(small, vg.Point{X: x, Y: y - height}, left, none)
	at := x + s.width(small, none) + gap
	for i := range steps {
		share := float64(i) / (steps - 1)
		for j := range k {
			low := y - height*vg.Length(j+1)
			s.rect(at+cell*vg.Length(i), low, at+cell*vg.Length(i+1), low+height-0.5, cellColor(k[j].color, share))
		}
	}
	s.label(small, vg.Point{X: at + cell*steps + gap, Y: y - height}, left, all)
}

func (f Items) caption(groups []group, n int) Caption {
	a, b := clean(f.Arms[0].Name), clean(f.Arms[1].Name)
	out := Caption{About: f.About, Seeds: seedsText([]string{a, b},
		[]int{len(f.Arms[0].Seeds), len(f.Arms[1].Seeds)})}
	out.Notes = append(out.Notes, fmt.Sprintf("Of %s, %d were solved at least once by both, %d by %s alone, %d by %s "+
		"alone, %d by neither",
		quantity.Plural(n, "problem"), len(groups[0].problems), len(groups[1].problems), a, len(groups[2].problems),
		b, len(groups[3].problems)))
	if f.Samples > 0 {
		out.Notes = append(out.Notes, quantity.Plural(f.Samples, "sample")+" per problem and seed")
	}
	if len(f.Arms[0].Seeds) != len(f.Arms[1].Seeds) {
		out.Notes = append(out.Notes, "The arm with more seeds had more chances to solve a problem once")
	}
	if n > mostColumns {
		out.Notes = append(out.Notes, "Each column is the mean of neighbouring problems in a group")
	}
	return out
}

func (f Items) alt(groups []group) string {
	var parts []string
	for _, g := range groups {
		parts = append(parts, clean(g.name)+" "+strconv.Itoa(len(g.problems)))
	}
	return "Heat map of right completions by problem, solved by: " + enumerate(parts) + "."
}

func (f Items) data(groups []group) itemsData {
	var out itemsData
	for _, g := range groups {
		d := itemsGroup{Name: g.name, Problems: len(g.problems)}
		for _, a := range f.Arms {
			rows := [][]number{}
			for _, row := range a.Seeds {
				line := []number{}
				for _, i := range g.problems {
					line = append(line, number(row[i]))
				}
				rows = append(rows, line)
			}
			d.Shares = append(d.Shares, rows)
		}
		out.Groups = append(out.Groups, d)
	}
	return out
}
