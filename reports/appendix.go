package reports

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"exp/experiments/quantity"
	"exp/experiments/store"
)

func (s *source) appendixSection(left []omitted) section {
	return section{ID: "appendix", Title: "Appendix", Blocks: slices.Concat(
		s.reproduce(),
		s.omittedBlocks(left),
		[]block{
			folded{"All evaluation metrics", s.evalGrids()},
			folded{"All training metrics at the last step", []block{s.metricGrid()}},
		},
	)}
}

// configFile returns the path of the arm's configuration in the bundle.
func (a *arm) configFile() string { return "configs/" + a.file + ".yaml" }

// configLink leads to the arm's configuration: the file, or where there are none the page of its first run.
func (s *source) configLink(a *arm) span {
	if s.page == nil {
		return span{Text: a.configFile(), Link: a.configFile()}
	}
	return span{Text: "run " + a.Runs[0].RID.Short(), Link: s.page(a.Runs[0].Run) + "#config"}
}

// configFolder says where the configurations are.
func (s *source) configFolder() string {
	if s.page == nil {
		return "configs/"
	}
	return "configs/ of the report that exp report writes"
}

// reproduce lists the commands that recreate the runs and this report.
func (s *source) reproduce() []block {
	var b strings.Builder
	for _, a := range s.arms {
		fmt.Fprintf(&b, "exp run %s --seeds %s\n", a.configFile(), seedList(a))
	}
	b.WriteString("exp report")
	for i, a := range s.arms {
		if s.result != nil && s.result.Baseline == i {
			fmt.Fprintf(&b, " --vs xid:%s", a.Runs[0].XID.Short())
			continue
		}
		for _, r := range a.Runs {
			b.WriteString(" " + r.RID.Short())
		}
	}
	if s.result != nil {
		c := s.result.Comparability
		for _, glob := range c.Vary {
			if !strings.Contains(s.arms[0].Runs[0].setting("compare.vary"), fmt.Sprintf("%q", glob)) {
				fmt.Fprintf(&b, " --vary '%s'", glob)
			}
		}
		for _, key := range c.Allow {
			fmt.Fprintf(&b, " --allow %s", key)
		}
	}
	b.WriteString(" --out report\n")
	return []block{
		paragraph{text("The full configurations are in %s. Rerun with the same sources on a machine of the "+
			"same numerics class, they give the same run ids and the same bits:", s.configFolder())},
		listing{b.String()},
	}
}

// seedList formats the arm's seeds for exp run --seeds.
func seedList(a *arm) string {
	var parts []string
	for i := 0; i < len(a.Runs); {
		j := i
		for j+1 < len(a.Runs) && a.Runs[j+1].Seed == a.Runs[j].Seed+1 {
			j++
		}
		part := fmt.Sprint(a.Runs[i].Seed)
		if j > i {
			part += fmt.Sprintf("-%d", a.Runs[j].Seed)
		}
		parts = append(parts, part)
		i = j + 1
	}
	return strings.Join(parts, ",")
}

func (s *source) omittedBlocks(all []omitted) []block {
	if len(all) == 0 {
		return nil
	}
	var list bullets
	for _, o := range all {
		list = append(list, line{{Text: o.Title}, styled(muted, ": "+o.Reason)})
	}
	return []block{folded{fmt.Sprintf("%s left out", quantity.Plural(len(all), "figure")), []block{list}}}
}

// evalGrids shows every metric of every suite, including the scores before training.
func (s *source) evalGrids() []block {
	var names []string
	for _, r := range eachRun(s.arms) {
		for _, e := range r.evals {
			if !slices.Contains(names, e.SuiteName) {
				names = append(names, e.SuiteName)
			}
		}
	}
	slices.Sort(names)
	var out []block
	for _, suite := range names {
		g := s.armGrid(suite, "metric")
		for _, metric := range s.evalMetrics(suite) {
			g.add(s.meanCells(metric, func(r *run) float64 { return r.evalValue(suite, metric) })...)
		}
		out = append(out, g)
	}
	return out
}

// evalMetrics lists a suite's metrics in recording order.
func (s *source) evalMetrics(suite string) []string {
	var names []string
	for _, r := range eachRun(s.arms) {
		for _, e := range r.evals {
			if e.SuiteName == suite && !slices.Contains(names, e.Metric) {
				names = append(names, e.Metric)
			}
		}
	}
	return names
}

// metricGrid shows the last value of every series.
func (s *source) metricGrid() *grid {
	g := s.armGrid("", "series")
	names := map[string]bool{}
	for _, r := range eachRun(s.arms) {
		for name := range r.curves {
			names[name] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		g.add(s.meanCells(name, func(r *run) float64 { return r.last(name) })...)
	}
	return g
}

// last returns the last value of a series, NaN without one.
func (r *run) last(name string) float64 {
	c, ok := r.curves[name]
	if !ok {
		return math.NaN()
	}
	return c.Last
}

func (s *source) armGrid(caption, first string) *grid {
	g := &grid{Caption: caption, Columns: []column{left(first)},
		Note: text("Means over seeds; brackets give the smallest and the largest seed.")}
	for _, a := range s.arms {
		g.Columns = append(g.Columns, right(a.Name))
	}
	if !s.severalSeeds() {
		g.Note = nil
	}
	return g
}

func (s *source) severalSeeds() bool {
	return slices.ContainsFunc(s.arms, func(a *arm) bool { return len(a.Runs) > 1 })
}

// meanCells returns a row: a name, then each arm's mean with its range over seeds.
func (s *source) meanCells(name string, value func(*run) float64) []line {
	cells := []line{{styled(mono, name)}}
	for _, a := range s.arms {
		v, n := a.mean(value)
		l := text("%s", quantity.TypesetShort(v))
		if lo, hi := a.spread(value); n > 1 && lo < hi {
			l = l.with(styled(muted, fmt.Sprintf(" [%s, %s]", quantity.TypesetShort(lo), quantity.TypesetShort(hi))))
		}
		cells = append(cells, l)
	}
	return cells
}

// unfinished lists the runs that did not finish.
func (s *source) unfinished() []string {
	var names []string
	for a, r := range eachRun(s.arms) {
		if r.Status != store.Done {
			names = append(names, fmt.Sprintf("%s seed %d (%s)", a.Name, r.Seed, r.Status))
		}
	}
	return names
}
