package reports

import (
	"fmt"
	"math"

	"exp/harness/metric"
	"exp/reports/figure"
)

// mostChoosing is the most arms with all three lines each; of more, only the best by score is drawn.
const mostChoosing = 3

// choice is for evaluations that a reward model scored: how much of pass@k choosing one answer of k keeps.
func (s *source) choice(suite scoredSuite) []drawing {
	f := figure.PassK{Head: figure.Head{Name: "choice-" + slug(suite.name), Title: "Choosing among k samples on " +
		suite.name,
		About: "Chance that an answer to a problem is right, mean over problems: if any of k samples counts " +
			"(pass@k), the best one by the scorer (best@k), or the most frequent answer (maj@k)"},
		Label: "right answers", Problems: suite.items, Samples: suite.samples, Interval: suite.interval}
	known, families := false, []string{metric.PassAt, metric.BestAt, metric.MajorityAt}
	if len(s.arms) > mostChoosing {
		families = []string{metric.BestAt}
		f.About = "Chance that the best of k samples of a problem by the scorer is right, mean over " +
			"problems (best@k; for k = 1 pass@1)"
	}
	for i, a := range s.arms {
		for _, family := range families {
			name := family + "k"
			if len(s.arms) > 1 {
				name = a.label + ", " + name
			}
			line := figure.PassKArm{Name: name, Seeds: len(a.Runs)}
			for _, p := range suite.curve(i) {
				if p.K > 1 && family != metric.PassAt { // all three begin with pass@1
					p.Estimate = suite.metric(fmt.Sprintf("%s%d", family, p.K))[i]
				}
				if math.IsNaN(p.Value) {
					continue
				}
				known = known || family == metric.BestAt && p.K > 1
				line.Points = append(line.Points, p)
			}
			f.Arms = append(f.Arms, line)
			f.Order = append(f.Order, name)
		}
	}
	if !known {
		return nil
	}
	return []drawing{try(groupResults, f)}
}
