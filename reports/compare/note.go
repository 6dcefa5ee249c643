package compare

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// fewClusters is below how many clusters standard errors are doubtful.
const fewClusters = 10

// addNotes writes down what a reader must know to read the numbers rightly.
func (c *comparison) addNotes() {
	note := func(format string, args ...any) {
		c.result.Notes = append(c.result.Notes, fmt.Sprintf(format, args...))
	}
	for _, d := range c.result.Comparability.Waived() {
		note("waived: %s differs (%s)", d.Key, c.valuesText(&d))
	}
	for _, d := range c.result.Comparability.Differences {
		if d.Class == Flagged {
			note("%s differs (%s): equal seeds are not equal bits across classes of machines", d.Key, c.valuesText(&d))
		}
	}
	c.noteSeeds(note)
	for i := range c.result.Suites {
		s := &c.result.Suites[i]
		if s.Clusters < fewClusters {
			note("%s has %d clusters of problems: intervals are doubtful below %d", s.Name, s.Clusters, fewClusters)
		}
	}
	if c.result.Tests > 1 {
		note("p Holm corrects for all %d tests: suites, pairs of arms and tested metrics", c.result.Tests)
	}
}

// noteSeeds says what the number of runs allows to conclude.
func (c *comparison) noteSeeds(note func(format string, args ...any)) {
	wanted, same := 0, true
	var few []string
	for a, s := range c.arms {
		same = same && c.sameSeeds(0, a)
		if n := len(s.runs); n < MinSeeds {
			few = append(few, fmt.Sprintf("%s has %d", s.label, n))
		}
		for _, r := range s.runs {
			wanted = max(wanted, r.minSeeds)
		}
	}
	fewest := len(slices.MinFunc(c.arms, func(a, b *side) int { return cmp.Compare(len(a.runs), len(b.runs)) }).runs)
	if len(few) > 0 {
		note("training-seed variance not measured (%s of the %d runs that it takes): intervals and verdicts hold for these runs only", strings.Join(few, ", "), MinSeeds)
	}
	if wanted > MinSeeds && fewest < wanted {
		note("compare.min_seeds asks for %d runs an arm", wanted)
	}
	if !same {
		note("the arms have runs of different seeds: problems are paired, seeds are not")
	}
}

// valuesText lists a difference's values by arm.
func (c *comparison) valuesText(d *Difference) string {
	var parts []string
	for a, s := range c.arms {
		text := d.Text(a)
		if text == "" {
			text = "no effect"
		}
		parts = append(parts, s.label+" "+text)
	}
	return strings.Join(parts, ", ")
}
