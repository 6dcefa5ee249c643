package generate

import (
	"context"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"sync"
	"testing"

	"exp/train/rollout"
)

// serving runs Serve beside a test.
func serving(t *testing.T, e *Engine) chan<- *Ask {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	asks, ended := make(chan *Ask), make(chan error)
	go func() { ended <- e.Serve(ctx, asks) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != context.Canceled {
			t.Error(err)
		}
	})
	return asks
}

// Requests with parameters of their own, which come while others are sampled into a cache too small for
// all, have the completions that they have alone. Scores at temperature 1 are the sampler's log-probs.
func TestServe(t *testing.T) {
	be := openCPU(t, 2)
	m := newModel(t, be, toy)
	alone := newEngine(t, be, m, Options{MaxSequences: 8, PageTokens: 16, MaxTokens: 96, StepRows: 24})
	e := newEngine(t, be, m, Options{MaxSequences: 8, PageTokens: 16, MaxTokens: 96, StepRows: 24, CacheTokens: 128})
	r := rand.New(rand.NewPCG(3, 4))
	reqs := requests(r, 40, 2, 20)
	params := []rollout.Params{{Temperature: 1, TopP: 1, MaxNewTokens: 70}, {TopP: 1, MaxNewTokens: 70},
		{Temperature: 0.7, TopP: 0.9, TopK: 5, MaxNewTokens: 70, Stop: []string{"ab", "c"}}}
	asks := serving(t, e)
	got := make([][]rollout.Completion, len(reqs))
	list := make([]*Ask, len(reqs))
	var work sync.WaitGroup
	for i, req := range reqs {
		got[i] = make([]rollout.Completion, 2)
		work.Add(2)
		list[i] = &Ask{Request: req, Params: params[i%3], Scored: i%2 == 0, Prompted: i%4 == 0, Top: i % 5,
			Ended: func(k int, c rollout.Completion) {
				got[i][k] = c
				work.Done()
			}}
		if err := e.Check(list[i]); err != nil {
			t.Fatal(err)
		}
		asks <- list[i]
		if i%7 == 3 { // one that leaves
			ctx, cancel := context.WithCancel(context.Background())
			asks <- &Ask{Request: req, Params: params[0], Context: ctx, Drew: func(int, []byte) { cancel() },
				Ended: func(int, rollout.Completion) {}}
		}
	}
	work.Wait()
	for i, req := range reqs {
		want := sample(t, alone, []rollout.Request{req}, params[i%3])[0]
		if !reflect.DeepEqual(got[i], want) {
			t.Errorf("request %d: %+v, alone %+v", i, got[i], want)
		}
		if list[i].Scored && i%3 < 2 { // temperature 1, or 0, whose log-probs are those of 1
			checkScores(t, list[i], want)
		}
		if !list[i].Prompted {
			continue
		}
		ids := req.Prompt
		for n := 1; n < len(ids); n += 11 {
			x := &Ask{Request: rollout.Request{Prompt: ids[:n], Seeds: []uint64{1}}, Scored: true, Top: toy.Vocab,
				Params: rollout.Params{TopP: 1, MaxNewTokens: 1}}
			done := make(chan bool)
			x.Ended = func(int, rollout.Completion) { close(done) }
			asks <- x
			<-done
			at := slices.Index(x.Scores[0][0].Top, ids[n])
			if p := list[i].Prompts[n].LogProb; p != x.Scores[0][0].TopProb[at] {
				t.Errorf("request %d, token %d of the prompt: %v, as the next token %v", i, n, p,
					x.Scores[0][0].TopProb[at])
			}
		}
	}
	if e.Stats().Restarts == 0 {
		t.Error("the cache has room for all: nothing started again")
	}
}

// checkScores compares scores with the sampler's log-probs.
func checkScores(t *testing.T, a *Ask, want []rollout.Completion) {
	t.Helper()
	for k, c := range want {
		if len(a.Scores[k]) != len(c.Tokens) {
			t.Fatalf("%d scores of %d tokens", len(a.Scores[k]), len(c.Tokens))
		}
		for i, s := range a.Scores[k] {
			if s.LogProb != c.LogProbs[i] || len(s.Top) != a.Top || len(s.TopProb) != a.Top {
				t.Errorf("token %d: %+v, sampled with %v", i, s, c.LogProbs[i])
			}
			if a.Temperature == 0 && a.Top > 0 && (s.Top[0] != c.Tokens[i] || s.TopProb[0] != s.LogProb) {
				t.Errorf("token %d: %+v, greedy %d", i, s, c.Tokens[i])
			}
		}
	}
}

// End tokens that are ignored, and those that a request adds.
func TestServeEnds(t *testing.T) {
	be := openCPU(t, 1)
	m := newModel(t, be, toy)
	e := newEngine(t, be, m, Options{MaxSequences: 4, PageTokens: 16, MaxTokens: 96})
	asks := serving(t, e)
	draw := func(a Ask) (c rollout.Completion) {
		done := make(chan bool)
		a.Prompt, a.Seeds = []int32{1, 2}, []uint64{9}
		a.Params = rollout.Params{Temperature: 1, TopP: 1, MaxNewTokens: 90}
		a.Ended = func(_ int, x rollout.Completion) { c = x; close(done) }
		asks <- &a
		<-done
		return c
	}
	c := draw(Ask{})
	all := draw(Ask{IgnoreEnds: true})
	if c.Finish != rollout.FinishStop || all.Finish != rollout.FinishLength || len(all.Tokens) != 90 ||
		!slices.Equal(all.Tokens[:len(c.Tokens)], c.Tokens) {
		t.Errorf("%v, %v", c, all)
	}
	if x := draw(Ask{Ends: c.Tokens[2:3]}); !slices.Equal(x.Tokens, c.Tokens[:slices.Index(c.Tokens, c.Tokens[2])+1]) {
		t.Errorf("%v ends at %d in %v", x.Tokens, c.Tokens[2], c.Tokens)
	}
	for _, a := range []*Ask{{}, {Request: rollout.Request{Prompt: []int32{19}, Seeds: []uint64{1}}},
		{Request: rollout.Request{Prompt: []int32{1}, Seeds: []uint64{1}}, Top: 21},
		{Request: rollout.Request{Prompt: []int32{1}, Seeds: []uint64{1}},
			Params: rollout.Params{TopP: math.NaN(), MaxNewTokens: 1}}} {
		if e.Check(a) == nil {
			t.Errorf("%+v passes", a)
		}
	}
}
