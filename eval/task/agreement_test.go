package task

import (
	"context"
	"encoding/json"
	"slices"
	"testing"

	"exp/eval/layout"
	"exp/train/rollout"
)

func completionsOf(texts ...string) (list []*rollout.Completion) {
	for _, s := range texts {
		list = append(list, &rollout.Completion{Text: s})
	}
	return list
}

// Answers in other words agree, whatever the gold answers say.
func TestAgreement(t *testing.T) {
	math := func(grader string) Config {
		return Config{Kind: "math", Math: Math{Grader: grader}, Reward: Reward{Correct: 1}}
	}
	for name, tt := range map[string]struct {
		config Config
		texts  []string
		want   []string
	}{
		"math": {math("exp"),
			[]string{`\boxed{0.5}`, `so \boxed{7}`, "I do not know", `\boxed{\frac{1}{2}}`, `\boxed{2}`, `\boxed{7.0}`, `\boxed{\frac12}`},
			[]string{"0.5", "7", "", "0.5", "2", "7", "0.5"}},
		"a peer's grader": {math("gsm8k_strict"),
			[]string{"#### 7", "#### 7.0", "7", "#### 1,000", "#### 1000"},
			[]string{"7", "7.0", "", "1000", "1000"}},
		"words": {Config{Kind: "words", Words: Words{LargestNumber: 20, Steps: 1}},
			[]string{"#### 07", "#### 7", "#### x", "#### 8"},
			[]string{"7", "7", "", "8"}},
	} {
		for _, golds := range [][]string{{"7"}, {`\frac{14}{28}`}, {"7.00"}, {"0.5", "1/2"}, {`\text{nobody wrote this}`}} {
			g, err := New(tt.config)
			if err != nil {
				t.Fatal(err)
			}
			p := rollout.Problem{ID: "p"}
			if err := layout.SetFacts(&p, golds, "math"); err != nil {
				t.Fatal(err)
			}
			before := slices.Clone(p.Data)
			got, err := Agreement(context.Background(), g, &p, completionsOf(tt.texts...))
			if err != nil || !slices.Equal(got, tt.want) {
				t.Errorf("%s with gold %q: got %q, %v, want %q", name, golds, got, err, tt.want)
			}
			if p.Answer != golds[0] || !slices.Equal(p.Data, before) {
				t.Errorf("%s: the problem changed: %+v", name, p)
			}
		}
	}
}

// What stays of a problem without its gold answers.
func TestWithoutGold(t *testing.T) {
	p := rollout.Problem{ID: "p", Prompt: "?", Answer: "1", Data: json.RawMessage(`{"answers":["2"],"source":"s","columns":{"a":1}}`)}
	q, err := layout.WithoutGold(&p)
	if err != nil || q.Answer != "" || q.ID != "p" || q.Prompt != "?" || string(q.Data) != `{"source":"s","columns":{"a":1}}` {
		t.Errorf("got %+v %s, %v", q, q.Data, err)
	}
}
