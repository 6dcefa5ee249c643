package eval

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"exp/train/rollout"
)

// given scores the tokens of options: token t has the log-prob -t/4 after a prompt, and the prompt's first token times
// that if it is not 1.
type given struct{ questions []rollout.Question }

func (g *given) Score(_ context.Context, list []rollout.Question, _ func(int)) ([][]rollout.Completion, error) {
	g.questions = list
	out := make([][]rollout.Completion, len(list))
	for i, q := range list {
		for _, o := range q.Options {
			c := rollout.Completion{Tokens: o, Finish: rollout.FinishStop}
			for _, id := range o {
				c.LogProbs = append(c.LogProbs, -float32(id*q.Prompt[0])/4)
			}
			out[i] = append(out[i], c)
		}
	}
	return out, nil
}

// The likeliest option is the answer; options share a question unless a token gave one a prompt of its own.
func TestChoose(t *testing.T) {
	problems := []rollout.Problem{{ID: "a", Choice: &rollout.Choice{Options: []string{"wörter", "no"}, Right: 1}}, {ID: "b"}}
	one, two := []int32{1}, []int32{2}
	options := [][]Option{
		{{"wörter", "wörter", one, []int32{1, 2, 1}}, {"no", "no", one, []int32{3}}},                  // -1 and -0.75
		{{"x", "chosen", one, []int32{4}}, {"y", "", two, []int32{2}}, {"z", "", one, []int32{3, 1}}}} // -1 each
	var g given
	samples, err := Choose(context.Background(), &g, problems, options, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(g.questions) != 3 || len(g.questions[1].Options) != 2 || !slices.Equal(g.questions[2].Prompt, two) {
		t.Errorf("questions %v", g.questions)
	}
	want := []rollout.OptionScore{{LogProb: -1, Tokens: 3, Chars: 6, Bytes: 7}, {LogProb: -0.75, Tokens: 1, Chars: 2, Bytes: 2}}
	if c := samples[0].Completion; c.Text != "no" || !slices.Equal(c.Options, want) || !slices.Equal(c.Tokens, []int32{3}) {
		t.Errorf("a: %+v", c)
	}
	if c := samples[1].Completion; c.Text != "chosen" { // the first of equal ones
		t.Errorf("b: %+v", c)
	}
	// Per character "wörter" has -1/6 and "no" -0.375; per byte -1/7.
	for grader, want := range map[string]string{"likelihood": "B", "likelihood_per_char": "A", "likelihood_per_byte": "A"} {
		g, err := Likelihood(grader)
		if err != nil {
			t.Fatal(err)
		}
		v, err := g.Grade(context.Background(), &problems[0], &samples[0].Completion)
		if err != nil || v.Answer != want || v.Correct != (want == "B") || v.Reward != map[bool]float64{true: 1}[v.Correct] {
			t.Errorf("%s: %+v, %v", grader, v, err)
		}
		if want := map[string]string{"likelihood": "A -1, B -0.75", "likelihood_per_char": "A -0.1667, B -0.375",
			"likelihood_per_byte": "A -0.1429, B -0.375"}[grader]; v.Reason != want {
			t.Errorf("%s: reason %s", grader, v.Reason)
		}
	}
	// e^-1 and e^-0.75: the right one has 1/(1+e^-0.25) = 0.562177, and 2·(1-0.562177)² = 0.383378
	items, err := Items(problems[:1], samples[:1], []rollout.Verdict{{Status: rollout.Graded, Correct: true}})
	if err != nil || math.Abs(items[0].Belief.Right-0.562177) > 1e-6 || math.Abs(items[0].Belief.Brier-0.383378) > 1e-6 {
		t.Errorf("%+v, %v", items, err)
	}
	metrics, err := Summarize(items, nil, 1)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, m := range OfOptions(append(metrics, Metric{Name: "form/none"}, Metric{Name: "accuracy/likelihood"})) {
		names = append(names, m.Name)
	}
	if got := strings.Join(names, " "); got != "pass@1 not_graded option_prob option_brier accuracy/likelihood" {
		t.Errorf("metrics %s", got)
	}
}

// Of several right options each is right, and their probabilities count together, as in TruthfulQA's MC2.
func TestSeveralRight(t *testing.T) {
	p := rollout.Problem{ID: "a", Choice: &rollout.Choice{Options: []string{"x", "y", "z", "w"}, Right: 1, Also: []int{3}}}
	g, err := Likelihood("likelihood")
	if err != nil {
		t.Fatal(err)
	}
	for i, right := range []bool{false, true, false, true} {
		scores := make([]rollout.OptionScore, 4)
		for k := range scores {
			scores[k].LogProb = math.Log(0.1 + 0.1*float64((k-i+4)%4*3%4)) // i has 0.1, and then 0.4, 0.3, 0.2
			scores[k].LogProb *= -1                                        // 10, 2.5, 3.33, 5: i is the likeliest
		}
		v, err := g.Grade(context.Background(), &p, &rollout.Completion{Options: scores})
		if err != nil || v.Correct != right || v.Answer != rollout.Letter(i) {
			t.Errorf("%d: %+v, %v", i, v, err)
		}
		b := beliefOf(&p, scores)
		share := []float64{10 / 20.8333333333, 2.5 / 20.8333333333, 3.3333333333 / 20.8333333333, 5 / 20.8333333333}
		one, two := share[(1-i+4)%4], share[(3-i+4)%4]
		wrong, other := share[(0-i+4)%4], share[(2-i+4)%4]
		want := (one+two-1)*(one+two-1) + wrong*wrong + other*other
		if math.Abs(b.Right-one-two) > 1e-9 || math.Abs(b.Brier-want) > 1e-9 {
			t.Errorf("%d: %+v, want %v and %v", i, b, one+two, want)
		}
	}
}

func TestLikelihoodRefuses(t *testing.T) {
	g, err := Likelihood("likelihood")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Likelihood("exp"); err == nil || !strings.Contains(err.Error(), `"exp"; known: likelihood, `) {
		t.Errorf("%v", err)
	}
	right := &rollout.Problem{ID: "a", Choice: &rollout.Choice{Options: []string{"x", "y"}}}
	scores := make([]rollout.OptionScore, 2)
	for _, tt := range []struct {
		p    *rollout.Problem
		c    rollout.Completion
		want error
	}{
		{&rollout.Problem{}, rollout.Completion{Options: scores}, errNoOptions},
		{&rollout.Problem{Choice: &rollout.Choice{Right: -1}}, rollout.Completion{Options: scores}, errNoOptions},
		{right, rollout.Completion{}, errSampled},
		{right, rollout.Completion{Options: scores}, nil},
	} {
		if _, err := g.Grade(context.Background(), tt.p, &tt.c); !errors.Is(err, tt.want) {
			t.Errorf("%v, not %v", err, tt.want)
		}
	}
	if _, err := g.Grade(context.Background(), right, &rollout.Completion{Options: scores[:1]}); err == nil {
		t.Error("fewer scores than options")
	}
	nan := []rollout.OptionScore{{LogProb: math.NaN()}, {LogProb: math.NaN()}}
	if v, err := g.Grade(context.Background(), right, &rollout.Completion{Options: nan}); err != nil || v.Status == rollout.Graded {
		t.Errorf("%+v, %v", v, err)
	}
}
