package generate

import (
	"context"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"exp/kernels"
	"exp/train/rollout"
)

// questions makes prompts, some with the same beginning, and options of many lengths, some with end tokens.
func questions(r *rand.Rand, n int) []rollout.Question {
	tokens := func(n int) []int32 {
		list := make([]int32, n)
		for i := range list {
			list[i] = int32(r.IntN(toy.Vocab))
		}
		return list
	}
	shared := tokens(37)
	list := make([]rollout.Question, n)
	for i := range list {
		list[i].Prompt = tokens(1 + r.IntN(40))
		if i%2 == 1 {
			list[i].Prompt = append(shared[:37:37], list[i].Prompt[:1+r.IntN(len(list[i].Prompt))]...)
		}
		for range 1 + r.IntN(5) {
			list[i].Options = append(list[i].Options, tokens(1+r.IntN(18)))
		}
	}
	return list
}

// Scores are the trainer's, bit for bit, for any number of threads, slots and pages, alone and with others.
func TestScore(t *testing.T) {
	list := questions(rand.New(rand.NewPCG(7, 7)), 9)
	var want [][]rollout.Completion
	for _, o := range []Options{
		{MaxSequences: 6, PageTokens: 16, MaxTokens: 96, StepRows: 70},
		{MaxSequences: 3, PageTokens: 16, MaxTokens: 96, StepRows: 20, CacheTokens: 1, Ridge: 8},
	} {
		for threads := 1; threads <= 2; threads++ {
			be := openCPU(t, threads)
			m := newModel(t, be, toy)
			e := newEngine(t, be, m, o)
			told := 0
			got, err := e.Score(context.Background(), list, func(n int) { told = n })
			if err != nil {
				t.Fatal(err)
			}
			if want == nil {
				want = got
				checkGiven(t, e, list, got, told)
			}
			if !reflect.DeepEqual(got, want) {
				t.Errorf("%+v, %d threads: other scores", o, threads)
			}
			if o.CacheTokens == 0 && e.Stats().FoundTokens == 0 {
				t.Error("no prompt found the beginning of another in the cache")
			}
			alone, err := e.Score(context.Background(), list[4:5], nil)
			if err != nil || !reflect.DeepEqual(alone[0], want[4]) {
				t.Errorf("%+v: alone: %v, %v", o, alone, err)
			}
		}
	}
}

// checkGiven compares scores with the trainer's, and their tokens and texts with the options.
func checkGiven(t *testing.T, e *Engine, list []rollout.Question, got [][]rollout.Completion, told int) {
	t.Helper()
	reqs, options, tokens := make([]rollout.Request, len(list)), 0, 0
	for i, q := range list {
		reqs[i].Prompt = q.Prompt
		tokens += len(q.Prompt) - 1
		for k, o := range q.Options {
			c := got[i][k]
			text := ""
			for _, id := range o {
				text += string(letters{}.Piece(id))
			}
			if !reflect.DeepEqual(c.Tokens, o) || c.Finish != rollout.FinishStop || c.Text != text {
				t.Errorf("question %d, option %d: %v %q, want %v %q", i, k, c.Tokens, c.Text, o, text)
			}
			options, tokens = options+1, tokens+len(o)
		}
	}
	if told != options {
		t.Errorf("told of %d options, there are %d", told, options)
	}
	if s := e.Stats(); s.PromptTokens+s.FoundTokens+s.SampledTokens > tokens || s.Steps > options {
		t.Errorf("%+v for %d tokens of prompts and options: a prompt was computed for each option", s, tokens)
	}
	lp, h := trainerLogProbs(t, e.be, e.m, reqs, got, 1, 300)
	at := 0
	for i := range got {
		for _, c := range got[i] {
			for k := range c.Tokens {
				if c.LogProbs[k] != lp[at] || c.Entropies[k] != h[at] {
					t.Fatalf("question %d, token %d: log-prob %v, entropy %v; the trainer has %v, %v", i, k, c.LogProbs[k],
						c.Entropies[k], lp[at], h[at])
				}
				at++
			}
		}
	}
}

func TestScoreRefuses(t *testing.T) {
	be := openCPU(t, 1)
	e := newEngine(t, be, newModel(t, be, toy), Options{MaxSequences: 2, PageTokens: 16, MaxTokens: 20})
	for _, tt := range []struct {
		q    rollout.Question
		want string
	}{
		{rollout.Question{Options: [][]int32{{1}}}, "question 0: the prompt is empty"},
		{rollout.Question{Prompt: []int32{1}, Options: [][]int32{{1}, {}}}, "option 1 has no tokens"},
		{rollout.Question{Prompt: []int32{1}, Options: [][]int32{{1, 19}}}, "has token 19, the model has 0 to 18"},
		{rollout.Question{Prompt: []int32{1}, Options: [][]int32{{1}, make([]int32, 20)}}, "needs 21 tokens (prompt 1 + option 1 of 20)"},
	} {
		_, err := e.Score(context.Background(), []rollout.Question{tt.q}, nil)
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%v, want %s", err, tt.want)
		}
	}
	full := rollout.Question{Prompt: []int32{1}, Options: [][]int32{make([]int32, 19)}}
	if _, err := e.Score(context.Background(), []rollout.Question{full}, nil); err != nil {
		t.Errorf("as many tokens as the engine holds: %v", err)
	}
}

// Tokens that a model finds very unlikely are given all the same, and have its scores.
func TestScoreOfSureWeights(t *testing.T) {
	be := openCPU(t, 1)
	m := newModel(t, be, toy)
	norm := m.View("model.norm.weight")
	be.Copy(norm, kernels.Host(slices.Repeat([]float32{1e5}, norm.Len())))
	m.Refresh()
	e := newEngine(t, be, m, Options{MaxSequences: 20, PageTokens: 16, MaxTokens: 20})
	q := rollout.Question{Prompt: []int32{1, 2}}
	for id := range int32(toy.Vocab) {
		q.Options = append(q.Options, []int32{id, 3})
	}
	got, err := e.Score(context.Background(), []rollout.Question{q}, nil)
	if err != nil {
		t.Fatal(err)
	}
	least := float32(0)
	for k, c := range got[0] {
		if !slices.Equal(c.Tokens, q.Options[k]) || slices.ContainsFunc(c.LogProbs, func(x float32) bool { return x != x }) {
			t.Errorf("tokens %v, log-probs %v; want %v", c.Tokens, c.LogProbs, q.Options[k])
		}
		least = min(least, c.LogProbs[0])
	}
	if least > -100 {
		t.Errorf("the least log-prob is %v: the weights are not sure enough for this test", least)
	}
}

// Scores of broken weights are not numbers, and the tokens are still the option's.
func TestScoreOfBrokenWeights(t *testing.T) {
	be := openCPU(t, 1)
	m := newModel(t, be, toy)
	norm := m.View("model.norm.weight")
	be.Copy(norm, kernels.Host(slices.Repeat([]float32{float32(math.NaN())}, norm.Len())))
	m.Refresh()
	e := newEngine(t, be, m, Options{MaxSequences: 2, PageTokens: 16, MaxTokens: 20, Ridge: 8})
	option := []int32{3, 18, 5}
	got, err := e.Score(context.Background(), []rollout.Question{{Prompt: []int32{1, 2}, Options: [][]int32{option}}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	c := got[0][0]
	if !slices.Equal(c.Tokens, option) || slices.ContainsFunc(c.LogProbs, func(x float32) bool { return x == x }) {
		t.Errorf("tokens %v, log-probs %v", c.Tokens, c.LogProbs)
	}
}
