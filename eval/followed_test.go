package eval

import (
	"math"
	"slices"
	"testing"

	"exp/eval/grade/instruct"
	"exp/train/rollout"
)

// instructed is a panel of prompts with so many instructions, and samples that follow so many of them. Rewards have a
// scale of their own.
func instructed(instructions []int, followed [][]int) *Panel {
	p := &Panel{}
	c := Column{Grader: "ifeval"}
	for i, n := range instructions {
		data := `{"instructions":[`
		for k := range n {
			if k > 0 {
				data += ","
			}
			data += `{"id":"punctuation:no_comma"}`
		}
		id := string(rune('a' + i))
		p.Problems = append(p.Problems, rollout.Problem{ID: id, Data: []byte(data + "]}")})
		for k, m := range followed[i] {
			p.Samples = append(p.Samples, Sample{ProblemID: id, K: k})
			c.Verdicts = append(c.Verdicts, rollout.Verdict{Status: rollout.Graded, Reward: -7, Correct: m == n,
				Answer: instruct.Answer(slices.Repeat([]string{"punctuation:no_comma"}, m))})
		}
	}
	p.Columns = []Column{c}
	return p
}

func TestFollowed(t *testing.T) {
	p := instructed([]int{1, 3, 2}, [][]int{{1, 0}, {1, 3}, {2, 2}})
	m, ok := p.Followed(p.Columns[0])
	// 0.5 of 1, 2 of 3 and 2 of 2 instructions
	if want := 4.5 / 6; !ok || math.Abs(m.Value-want) > 1e-15 || m.N != 3 || m.Interval == nil || *m.SE == 0 {
		t.Errorf("%+v %v, want %v", m, ok, want)
	}
	// residuals (1·(0.5-0.75), 3·(2/3-0.75), 2·(1-0.75))/2 = -0.125, -0.125, 0.25
	if want := math.Sqrt((2*0.125*0.125 + 0.25*0.25) / 2 / 3); math.Abs(*m.SE-want) > 1e-12 {
		t.Errorf("standard error %v, want %v", *m.SE, want)
	}
	equal := instructed([]int{2, 2}, [][]int{{1}, {2}})
	if m, _ := equal.Followed(equal.Columns[0]); m.Value != 0.75 {
		t.Errorf("equal weights: %v", m.Value)
	}
	none := instructed([]int{1, 0}, [][]int{{1}, {0}})
	if _, ok := none.Followed(none.Columns[0]); ok {
		t.Error("a problem without instructions counts")
	}
	list, err := p.GraderMetrics(1)
	if err != nil || len(list) != 1 || list[0].Name != "followed/ifeval" {
		t.Errorf("%+v %v", list, err)
	}
	p.Columns = append(p.Columns, p.Columns[0])
	p.Columns[1].Grader = "ifeval_loose"
	p.Columns = append(p.Columns, Union(p.Columns))
	list, err = p.GraderMetrics(1)
	var names []string
	for _, m := range list {
		names = append(names, m.Name)
	}
	if len(names) != 5 || names[1] != "followed/ifeval_loose" || names[4] != "accuracy/union" {
		t.Errorf("%v %v", names, err)
	}
}
