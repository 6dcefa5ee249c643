package stage

import (
	"context"
	"strings"
	"testing"

	"exp/harness/config"
	"exp/train/rollout"
)

// textGrader rewards the length of a text.
type textGrader struct{ parts []string }

func (g textGrader) Components() []string { return g.parts }

func (g textGrader) Grade(_ context.Context, _ *rollout.Problem, c *rollout.Completion) (rollout.Verdict, error) {
	return rollout.Verdict{Status: rollout.Graded, Reward: float64(len(c.Text)), Components: make([]float64, len(g.parts))}, nil
}

// allGrader is a textGrader that judges together, and says which texts it saw.
type allGrader struct {
	textGrader
	saw *[]string
}

func (g allGrader) GradeAll(ctx context.Context, items []rollout.Item) ([]rollout.Verdict, error) {
	list := make([]rollout.Verdict, len(items))
	for i, it := range items {
		*g.saw = append(*g.saw, it.Completion.Text)
		list[i], _ = g.Grade(ctx, it.Problem, it.Completion)
	}
	return list, nil
}

// Where an agent gave a verdict, it stands, and no grader sees the completion.
func TestAgentVerdicts(t *testing.T) {
	e := &Env{Config: &config.Resolved{Run: config.Run{Rollout: config.Rollout{Tools: config.Tools{Kind: "agent"}}}}}
	p := &rollout.Problem{ID: "p"}
	given := []*rollout.Completion{{Text: "a", AgentVerdict: &rollout.Verdict{Status: rollout.Graded, Reward: 7}}, {Text: "bb"},
		{Text: "ccc", AgentVerdict: &rollout.Verdict{Reason: "it broke"}}, {Text: "dddd"}}
	want := []float64{7, 2, 0, 4}
	var saw []string
	for _, g := range []rollout.Grader{textGrader{}, allGrader{textGrader{}, &saw}} {
		heeding := e.heeds(g)
		var items []rollout.Item
		for i, c := range given {
			v, err := heeding.Grade(t.Context(), p, c)
			if err != nil || v.Reward != want[i] || (v.Status == rollout.Graded) != (i != 2) {
				t.Errorf("%T: completion %d: %+v, %v", g, i, v, err)
			}
			items = append(items, rollout.Item{Problem: p, Completion: c})
		}
		batch, ok := heeding.(rollout.BatchGrader)
		if _, together := g.(rollout.BatchGrader); ok != together {
			t.Fatalf("%T: grades together: %v", g, ok)
		}
		if !ok {
			continue
		}
		list, err := batch.GradeAll(t.Context(), items)
		if err != nil || len(list) != 4 {
			t.Fatalf("%v, %v", list, err)
		}
		for i, v := range list {
			if v.Reward != want[i] {
				t.Errorf("completion %d: %+v, want %v", i, v, want[i])
			}
		}
		if strings.Join(saw, " ") != "bb dddd" {
			t.Errorf("the grader saw %q", saw)
		}
		if list, err = batch.GradeAll(t.Context(), items[:1]); err != nil || list[0].Reward != 7 || len(saw) != 2 {
			t.Errorf("%+v, %v", list, err)
		}
	}
	parts := e.heeds(textGrader{[]string{"short"}})
	if names := rollout.ComponentNames(parts); len(names) != 1 || names[0] != "short" {
		t.Errorf("parts %q", names)
	}
	if _, err := parts.Grade(t.Context(), p, given[0]); err == nil || !strings.Contains(err.Error(), "leave out the score, or reward.components") {
		t.Errorf("a score without parts: %v", err)
	}
	if v, err := parts.Grade(t.Context(), p, given[2]); err != nil || v.Reason != "it broke" {
		t.Errorf("%+v, %v", v, err)
	}
	e.Config.Run.Rollout.Tools.Kind = "command"
	if _, wrapped := e.heeds(textGrader{}).(saidGrader); wrapped {
		t.Error("without an agent the grader is wrapped")
	}
}

func TestFirstDifference(t *testing.T) {
	a := rollout.Completion{Asked: &rollout.Asked{Tokens: []int32{1}}, Tokens: []int32{2}, LogProbs: []float32{3}, Text: "x"}
	for want, change := range map[string]func(c *rollout.Completion){
		"prompt": func(c *rollout.Completion) { c.Asked = &rollout.Asked{Tokens: []int32{1}, Later: []rollout.Later{{}}} }, "tokens": func(c *rollout.Completion) { c.Tokens = nil },
		"logprobs": func(c *rollout.Completion) { c.LogProbs = nil }, "text": func(c *rollout.Completion) { c.Text = "" },
		"record":      func(c *rollout.Completion) { c.Finish = rollout.FinishStop },
		"likelihoods": func(c *rollout.Completion) { c.Options, c.Text = []rollout.OptionScore{{Tokens: 1}}, "" },
	} {
		b := a
		change(&b)
		if got := firstDifference(a, b); got != want {
			t.Errorf("%s: %s", want, got)
		}
	}
}
