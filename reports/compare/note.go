package compare

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"exp/experiments/store"
)

// fewClusters is the number of clusters below which standard errors are unreliable.
const fewClusters = 10

func (c *comparison) note(format string, args ...any) {
	c.result.Notes = append(c.result.Notes, fmt.Sprintf(format, args...))
}

// addNotes adds the notes needed to read the numbers correctly.
func (c *comparison) addNotes() {
	for _, d := range c.result.Comparability.Waived() {
		c.note("waived: %s differs (%s)", d.Key, c.valuesText(&d))
	}
	for _, d := range c.result.Comparability.Differences {
		if d.Class == Flagged {
			c.note("%s differs (%s): equal seeds do not give equal bits across numerics classes", d.Key,
				c.valuesText(&d))
		}
	}
	c.noteSeeds()
	for i := range c.result.Suites {
		s := &c.result.Suites[i]
		if s.Clusters < fewClusters {
			c.note("%s has %d clusters of problems: intervals are unreliable below %d", s.Name, s.Clusters,
				fewClusters)
		}
	}
	if c.result.Tests > 1 {
		c.note("p Holm corrects for all %d tests: suites, pairs of arms and tested metrics", c.result.Tests)
	}
}

// noteSeeds notes the limits set by the number of runs.
func (c *comparison) noteSeeds() {
	wanted, same, enough := 0, true, 0
	var few, names []string
	for a, s := range c.arms {
		same = same && c.sameSeeds(0, a)
		if n := len(s.runs); n < MinSeeds {
			few, names = append(few, fmt.Sprintf("%s has %d", s.label, n)), append(names, s.label)
		} else {
			enough++
		}
		for _, r := range s.runs {
			wanted = max(wanted, r.minSeeds)
		}
	}
	fewest := len(slices.MinFunc(c.arms, func(a, b *side) int { return cmp.Compare(len(a.runs), len(b.runs)) }).runs)
	if len(few) > 0 {
		with := ""
		if enough > 1 { // the others are compared over seeds too
			with = " with " + strings.Join(names, " or ")
		}
		c.note("training-seed variance not measured (%s of the %d runs needed): intervals and verdicts%s hold for "+
			"these runs only", strings.Join(few, ", "), MinSeeds, with)
	}
	if wanted > MinSeeds && fewest < wanted {
		c.note("compare.min_seeds asks for %d runs per arm", wanted)
	}
	if !same {
		c.note("the arms have runs of different seeds: problems are paired, seeds are not")
	}
}

// noteSkipped notes arms whose gradients were not finite at some steps: training skips such an
// update, so a run of them alone is its start.
func (c *comparison) noteSkipped(ctx context.Context) error {
	for _, s := range c.arms {
		steps, skipped := map[string]int{}, map[string]int{}
		for _, r := range s.runs {
			curves, err := c.db.Metrics(ctx, r.run.ID, "*/grad_norm", 1, store.AllSteps)
			if err != nil {
				return err
			}
			for _, curve := range curves {
				of, _, _ := strings.Cut(curve.Name, "/")
				steps[of] += len(curve.Values)
				for _, v := range curve.Values {
					if math.IsNaN(v) || math.IsInf(v, 0) {
						skipped[of]++
					}
				}
			}
		}
		for _, of := range sortedKeys(skipped) {
			c.note("%s skipped updates of the %s at %d of %d steps: the gradient was not finite", s.label, of,
				skipped[of], steps[of])
		}
	}
	return nil
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
