package reward

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"exp/train/rollout"
)

// verdicts is a task by the completions' texts.
type verdicts map[string]rollout.Verdict

func (v verdicts) Grade(_ context.Context, _ *rollout.Problem, c *rollout.Completion) (rollout.Verdict, error) {
	return v[c.Text], nil
}

// fixed scores by text.
type fixed map[string]Score

func (f fixed) Score(_ context.Context, items []rollout.Item) ([]Score, error) {
	var out []Score
	for _, it := range items {
		out = append(out, f[it.Completion.Text])
	}
	return out, nil
}

func (fixed) Close() error { return nil }

func TestGrader(t *testing.T) {
	task := verdicts{
		"right": {Status: rollout.Graded, Correct: true, Reward: 1, Answer: "4", Reason: "correct"},
		"wrong": {Status: rollout.Graded, Reward: 0.1, Answer: "5", Reason: "5 is not 4"},
		"none":  {Status: rollout.Graded, Reason: "no expression"},
		"lost":  {Reason: "the task is broken"},
	}
	scorer := fixed{
		"right": {Graded: true, Value: 0.25, Parts: map[string]float64{"style": 3, "more": 1}},
		"wrong": {Graded: true, Value: 0.75, Parts: map[string]float64{"style": 2}},
		"none":  {Reason: "the judge: asleep"},
		"lost":  {Graded: true, Value: 0.5, Parts: map[string]float64{"style": 1}},
	}
	list := items("right", "wrong", "none", "lost")
	for _, tt := range []struct {
		name  string
		s     Scorer
		parts []string
		want  []rollout.Verdict
	}{
		{"task alone", nil, []string{"format", "correct", "score"}, []rollout.Verdict{
			{Status: rollout.Graded, Correct: true, Reward: 1, Answer: "4", Reason: "correct", Components: []float64{1, 1, 1}},
			{Status: rollout.Graded, Reward: 0.1, Answer: "5", Reason: "5 is not 4", Components: []float64{1, 0, 0.1}},
			{Status: rollout.Graded, Reason: "no expression", Components: []float64{0, 0, 0}},
			{Reason: "the task is broken"},
		}},
		{"scorer", scorer, nil, []rollout.Verdict{
			{Status: rollout.Graded, Correct: true, Reward: 0.25, Answer: "4", Reason: "correct"},
			{Status: rollout.Graded, Reward: 0.75, Answer: "5", Reason: "5 is not 4"},
			{Reason: "the judge: asleep"},
			{Status: rollout.Graded, Reward: 0.5, Reason: "the task is broken"},
		}},
		{"scorer with parts", scorer, []string{"style", "score", "correct"}, []rollout.Verdict{
			{Status: rollout.Graded, Correct: true, Reward: 0.25, Answer: "4", Reason: "correct", Components: []float64{3, 0.25, 1}},
			{Status: rollout.Graded, Reward: 0.75, Answer: "5", Reason: "5 is not 4", Components: []float64{2, 0.75, 0}},
			{Reason: "the judge: asleep"},
			{Reason: "no component correct"}, // the task has no verdict
		}},
	} {
		g := NewGrader(task, tt.s, tt.parts)
		got, err := g.GradeAll(context.Background(), list)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
		if one, err := g.Grade(context.Background(), list[1].Problem, list[1].Completion); err != nil || !cmp.Equal(one, tt.want[1]) {
			t.Errorf("%s, one alone: got %+v, %v, want %+v", tt.name, one, err, tt.want[1])
		}
	}
}

// Without a task the scorer decides what is right: by its word, or by the score.
func TestGraderAlone(t *testing.T) {
	yes, no := true, false
	scorer := fixed{
		" at the mark ": {Graded: true, Value: 0.5},
		"below":         {Graded: true, Value: 0.49, Parts: map[string]float64{"style": 3}},
		"right anyway":  {Graded: true, Value: 0, Correct: &yes, Answer: "42"},
		"wrong anyway":  {Graded: true, Value: 1, Correct: &no},
		"asleep":        {Reason: "the judge: asleep"},
		"":              {Graded: true, Value: 1},
	}
	list := items(" at the mark ", "below", "right anyway", "wrong anyway", "asleep", "")
	got, err := NewAlone(scorer, 0.5, []string{"correct", "format"}).GradeAll(context.Background(), list)
	if err != nil {
		t.Fatal(err)
	}
	want := []rollout.Verdict{
		{Status: rollout.Graded, Correct: true, Reward: 0.5, Answer: "at the mark", Components: []float64{1, 1}},
		{Status: rollout.Graded, Reward: 0.49, Answer: "below", Components: []float64{0, 1}},
		{Status: rollout.Graded, Correct: true, Answer: "42", Components: []float64{1, 1}},
		{Status: rollout.Graded, Reward: 1, Answer: "wrong anyway", Components: []float64{0, 1}},
		{Reason: "the judge: asleep"},
		{Status: rollout.Graded, Correct: true, Reward: 1, Components: []float64{1, 0}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}

	// What a tool wrote is no part of the answer.
	c := &rollout.Completion{Text: "a tool b", Tokens: []int32{1, 2, 3}, LogProbs: make([]float32, 3), Entropies: make([]float32, 3),
		Inserted: []rollout.Span{{Start: 1, End: 2, TextStart: 1, TextEnd: 6}}}
	v, err := NewAlone(fixed{"a tool b": {Graded: true}}, 0, nil).Grade(context.Background(), &rollout.Problem{}, c)
	if err != nil || v.Answer != "a b" {
		t.Errorf("answer %q, %v", v.Answer, err)
	}
}
