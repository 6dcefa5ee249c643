package eval

import (
	"fmt"

	"exp/eval/grade/extract"
)

// Prefixes of the metrics of a panel with several graders.
const (
	GraderPrefix = "accuracy/" // + grader: pass@1 under its verdicts
	FormPrefix   = "form/"     // + extract.Form: share of samples with an answer of this form
	// FollowedPrefix + grader: share of instructions followed, IFEval's accuracy per instruction.
	FollowedPrefix = "followed/"
	// ScorePrefix + grader: mean share of the full score, such as ANLS.
	ScorePrefix = "score/"
)

// GraderMetrics returns pass@1 with an interval for each column of the panel, the union included, and the share of
// samples for each form of answer that occurs, or of instructions followed, and the mean score of each grader of
// shares. A panel of one grader returns none but the last two.
func (p *Panel) GraderMetrics(seed uint64) ([]Metric, error) {
	out := p.followedMetrics()
	instructed := len(out) > 0
	for _, c := range p.Columns {
		if m, ok := p.Score(c); ok {
			m.Name = ScorePrefix + c.Grader
			out = append(out, m)
		}
	}
	if len(p.Columns) < 2 {
		return out, nil
	}
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
	if instructed { // answers of any form
		return out, nil
	}
	counts, _ := p.Forms()
	for _, form := range extract.Forms() {
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
