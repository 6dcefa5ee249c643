package reports

import (
	"fmt"
	"slices"
	"strings"

	"exp/experiments/quantity"
	"exp/reports/compare"
)

// comparabilitySection explains why these arms may be compared and lists differences
// outside the treatment.
func (s *source) comparabilitySection() section {
	c := s.result.Comparability
	var others []compare.Difference
	for _, d := range c.Differences {
		if d.Class != compare.Treatment || d.Waived {
			others = append(others, d)
		}
	}
	sec := section{ID: "comparability", Title: "Comparability",
		Blocks: []block{paragraph{s.treatment(len(others) > 0)}}}
	if len(others) > 0 {
		sec.Blocks = append(sec.Blocks, s.otherGrid(others))
	}
	if len(c.Excluded) > 0 {
		var list bullets
		for _, x := range c.Excluded {
			list = append(list, line{styled(mono, x.RID[:min(8, len(x.RID))]),
				{Text: fmt.Sprintf(" (%s, seed %d): %s", x.Name, x.Seed, x.Reason)}})
		}
		sec.Blocks = append(sec.Blocks, paragraph{line{styled(strong, "Excluded runs")}}, list)
	}
	return sec
}

// treatment states the intended difference between the arms, and whether they differ in
// anything else.
func (s *source) treatment(others bool) line {
	c := s.result.Comparability
	l := line{{Text: "The treatment is "}}
	for i, glob := range c.Vary {
		if i > 0 {
			l = l.with(span{Text: ", "})
		}
		l = l.with(styled(mono, glob))
	}
	l = l.with(span{Text: ". "})
	switch waived := len(c.Waived()); {
	case waived > 0:
		return l.with(span{Text: fmt.Sprintf("Waived: %s.", quantity.Plural(waived, "difference"))})
	case others:
		return l.with(span{Text: "Nothing was waived. The arms also differ in ways that a comparison allows but " +
			"reports:"})
	}
	return l.with(span{Text: "Everything else that can change a result is the same in all arms: configuration, " +
		"data, initial weights, the sources of every stage, and the evaluation protocol. Nothing was waived."})
}

func (s *source) otherGrid(list []compare.Difference) *grid {
	g := &grid{Caption: "Other differences", Columns: []column{left("key")}}
	for _, a := range s.arms {
		g.Columns = append(g.Columns, left(a.Name))
	}
	g.Columns = append(g.Columns, left("class"), left("waived"))
	for _, d := range list {
		waived := line{styled(muted, "no")}
		if d.Waived {
			waived = line{styled(bad, "yes")}
		}
		g.add(slices.Concat([]line{{styled(mono, d.Key)}}, s.valueCells(&d),
			[]line{text("%s", string(d.Class)), waived})...)
	}
	return g
}

// twoValues reports whether a key differs between the arms where it has an effect.
func twoValues(values []string) bool {
	set := slices.DeleteFunc(slices.Clone(values), func(v string) bool { return v == "" })
	slices.Sort(set)
	return len(slices.Compact(set)) > 1
}

// configSection shows the treatment, key by key.
func (s *source) configSection() section {
	sec := section{ID: "configuration", Title: "Configuration"}
	if s.result == nil {
		return s.aloneConfig(sec)
	}
	var differ, all []compare.Difference
	for _, d := range s.result.Comparability.Differences {
		if d.Class != compare.Treatment {
			continue
		}
		all = append(all, d)
		if twoValues(d.Values) {
			differ = append(differ, d)
		}
	}
	if len(all) == 0 {
		sec.Blocks = []block{paragraph{text("The arms have the same configuration.")}}
		return sec
	}
	if len(all) <= fewKeys {
		differ = all
	}
	intended := "The intended differences between the arms; full configurations are in " + s.configFolder() + "."
	if s.brief {
		intended = "The intended differences between the arms:"
	}
	sec.Blocks = []block{paragraph{text("%s", intended)}}
	if len(differ) > 0 {
		sec.Blocks = append(sec.Blocks, s.keyGrid(differ))
	}
	if len(differ) < len(all) {
		g := s.keyGrid(all)
		g.Note = text("A dash: the key has no effect in this arm.")
		sec.Blocks = append(sec.Blocks, folded{fmt.Sprintf("All %d keys, including those that only one method uses",
			len(all)), []block{g}})
	}
	return sec
}

// fewKeys is the largest number of differing keys shown unfolded. With more, the keys that
// only one method uses are shown on demand.
const fewKeys = 10

func (s *source) keyGrid(list []compare.Difference) *grid {
	g := &grid{Columns: []column{left("key")}}
	for _, a := range s.arms {
		g.Columns = append(g.Columns, left(a.Name))
	}
	for _, d := range list {
		g.add(slices.Concat([]line{{styled(mono, d.Key)}}, s.valueCells(&d))...)
	}
	return g
}

// aloneConfig shows the main settings of a report on one arm.
func (s *source) aloneConfig(sec section) section {
	a := s.arms[0]
	g := &grid{Columns: []column{left("key"), left("value")}}
	for _, key := range settings(s.arms) {
		if !strings.HasPrefix(key, "algo.") && !strings.HasPrefix(key, "train.") &&
			!strings.HasPrefix(key, "rollout.") && !strings.HasPrefix(key, "task.") {
			continue
		}
		g.add(line{styled(mono, key)}, text("%s", a.Runs[0].setting(key)))
	}
	sec.Blocks = []block{folded{"Task, algorithm, rollout and training", []block{g}},
		paragraph{line{{Text: "Full configuration: "}, s.configLink(a)}}}
	return sec
}

func (s *source) valueCells(d *compare.Difference) []line {
	cells := make([]line, len(s.arms))
	for i := range cells {
		cells[i] = text("%s", d.Text(i))
		if d.Values[i] == "" {
			cells[i] = line{styled(muted, absent)}
		}
	}
	return cells
}

// valuesText formats a difference's values per arm for a sentence.
func valuesText(arms []*arm, d *compare.Difference) string {
	var parts []string
	for i, a := range arms {
		v := d.Text(i)
		if v == "" {
			v = "not set"
		}
		parts = append(parts, a.Name+": "+v)
	}
	return strings.Join(parts, ", ")
}
