package eval

import (
	"math"
	"testing"

	"exp/train/rollout"
)

// Scores are means over problems, whatever their samples, and only of graders of shares whose rewards are shares.
func TestScoresOfShares(t *testing.T) {
	p := &Panel{Problems: []rollout.Problem{{ID: "a"}, {ID: "b"}}}
	anls := Column{Grader: "anls"}
	for _, s := range []struct {
		id    string
		k     int
		score float64
	}{{"a", 0, 1}, {"a", 1, 0.5}, {"b", 0, 0.25}} {
		p.Samples = append(p.Samples, Sample{ProblemID: s.id, K: s.k})
		anls.Verdicts = append(anls.Verdicts, rollout.Verdict{Status: rollout.Graded, Reward: s.score, Correct: s.score >= 0.5})
	}
	exp := anls
	exp.Grader = "exp"
	p.Columns = []Column{exp, anls}
	p.Columns = append(p.Columns, Union(p.Columns))
	list, err := p.GraderMetrics(1)
	if err != nil || list[0].Name != "score/anls" || math.Abs(list[0].Value-(0.75+0.25)/2) > 1e-15 || list[0].N != 2 ||
		list[0].Interval == nil || list[1].Name != "accuracy/exp" {
		t.Errorf("%+v, %v", list, err)
	}
	anls.Scaled = true
	for _, c := range []Column{anls, exp} {
		if m, ok := p.Score(c); ok {
			t.Errorf("%s: %+v", c.Grader, m)
		}
	}
}
