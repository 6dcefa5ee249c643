package eval

import (
	"fmt"

	"exp/eval/grade"
)

// Prefixes of the metrics that a panel of several graders has.
const (
	GraderPrefix = "accuracy/" // + grader: pass@1 by its verdicts
	FormPrefix   = "form/"     // + grade.Form: the share of samples that answer so
)

// GraderMetrics are what several graders say of the same samples: for each column of
// the panel, the union among them, its pass@1 with an interval, and of each form of
// answer that occurs the share of the samples. A panel of one grader has none.
func (p *Panel) GraderMetrics(seed uint64) ([]Metric, error) {
	if len(p.Columns) < 2 {
		return nil, nil
	}
	var out []Metric
	for _, c := range p.Columns {
		s, err := p.Measure(c, nil, seed)
		if err != nil {
			return nil, fmt.Errorf("grader %s: %w", c.Grader, err)
		}
		for _, m := range s.Metrics {
			m.Name = GraderPrefix + c.Grader
			out = append(out, m)
		}
	}
	counts, _ := p.Forms()
	for _, form := range grade.Forms() {
		for _, n := range counts {
			if n.Form == form {
				out = append(out, Metric{Name: FormPrefix + string(form),
					Value: float64(n.Samples) / float64(len(p.Samples)), N: len(p.Problems),
					Clusters: len(p.Problems)})
			}
		}
	}
	return out, nil
}
