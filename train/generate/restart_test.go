package generate

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"exp/kernels"
	"exp/kernels/cpu"
	"exp/train/model"
	"exp/train/rollout"
)

// unending is a vocabulary without an end token.
type unending struct{ letters }

func (unending) EndIDs() []int32 { return nil }

// TestSmallCache: completions have the same bits if the cache holds a part of them, and sequences
// give their pages back and start again.
func TestSmallCache(t *testing.T) {
	for i, c := range []model.Config{toy, toy, linearToy()} {
		operand := []kernels.DType{kernels.F32, kernels.BF16}[i%2]
		be := openAs(t, cpu.Options{Threads: 2, Operand: operand})
		m := newModel(t, be, c)
		o := Options{MaxSequences: 12, PageTokens: 16, MaxTokens: 90}
		p := rollout.Params{Temperature: 1.5, TopP: 1, MaxNewTokens: 60, Stop: []string{"qq", "ab"}}
		reqs := requests(rand.New(rand.NewPCG(5, 7)), 6, 5, 30)
		whole, err := New(be, m, unending{}, o)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(whole.Close)
		want := sample(t, whole, reqs, p)
		if whole.Stats().Restarts != 0 {
			t.Errorf("%s: %d restarts in a cache for all", operand, whole.Stats().Restarts)
		}
		for _, tokens := range []int{1, 160, 256, 400, 1000} {
			small := o
			small.CacheTokens = tokens
			small.StepRows = small.MaxSequences + []int{1, 100}[tokens%3%2]
			e, err := New(dirty{be}, m, unending{}, small)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(e.Close)
			for range 2 { // the second time pages hold what the first left
				got := sample(t, e, reqs, p)
				for i := range want {
					for k := range want[i] {
						if a, b := bits(got[i][k]), bits(want[i][k]); a != b {
							t.Fatalf("%s, %d tokens: request %d, completion %d:\n%s\nwant\n%s", operand, tokens, i, k, a, b)
						}
					}
				}
			}
			if pages := e.pages.available(); pages != small.pages() {
				t.Errorf("%s, %d tokens: %d of %d pages are free afterwards", operand, tokens, pages, small.pages())
			}
			if n := len(e.state.free); n != e.state.slots {
				t.Errorf("%d tokens: %d of %d slots of states are free afterwards", tokens, n, e.state.slots)
			}
			t.Logf("%s: %d tokens, %+v", operand, tokens, e.Stats())
			if n := e.Stats(); (n.FoundTokens > 0) != (n.Restarts > 0 && !c.Recurrent()) {
				t.Errorf("%s, %d tokens: %d restarts, and %d tokens found", operand, tokens, n.Restarts, n.FoundTokens)
			}
			if n := e.Stats().Restarts; (n > 0) != (tokens < 1000 && tokens > 0) {
				t.Errorf("%s: %d restarts in a cache of %d tokens", operand, n, tokens)
			}
		}
	}
}

// The room of a cache is a whole number of pages between the least and the full one.
func TestCacheRoom(t *testing.T) {
	o := Options{MaxSequences: 8, PageTokens: 16, MaxTokens: 90}
	full, least := o.FullCache(), o.LeastCache()
	if full != 9*96+16 || least != 96+2*16 {
		t.Errorf("full %d, least %d", full, least)
	}
	for tokens, want := range map[int]int{0: full, 1: least, 200: 192, full + 1: full} {
		o.CacheTokens = tokens
		if got := o.pages() * o.PageTokens; got != want {
			t.Error(fmt.Sprint("a room of ", tokens, " tokens has ", got, ", want ", want))
		}
	}
}

// An engine for one short sequence has the pages to start it.
func TestOneSequence(t *testing.T) {
	be := openAs(t, cpu.Options{Threads: 1})
	e := newEngine(t, be, newModel(t, be, toy), Options{MaxSequences: 1, PageTokens: 16, MaxTokens: 12})
	reqs := requests(rand.New(rand.NewPCG(1, 2)), 3, 2, 8)
	sample(t, e, reqs, rollout.Params{Temperature: 1, TopP: 1, MaxNewTokens: 4})
}

// A cache is sized by what the largest calls hold at once: the completions of a request share the full pages of
// its prompt.
func TestCacheOfCalls(t *testing.T) {
	o := Options{MaxSequences: 512, PageTokens: 16, MaxTokens: 88}
	for _, tt := range []struct {
		calls []Call
		pages int
	}{
		{nil, 513 * 6},
		{[]Call{{Requests: 128, Samples: 8, Prompt: 48, New: 40}}, 128*3 + 512*4},
		{[]Call{{Requests: 8, Samples: 4, Prompt: 48, New: 40}}, 8 * (3 + 4*4)},
		{[]Call{{Requests: 8, Samples: 4, Prompt: 48, New: 40}, {Requests: 64, Samples: 1, Prompt: 48, New: 40}}, 64 * (3 + 4)},
		{[]Call{{Requests: 1000, Samples: 1, Prompt: 1, New: 88}}, 512 * 6},
	} {
		if o.Calls = tt.calls; o.FullCache() != (tt.pages+1)*16 {
			t.Errorf("%v: %d pages, want %d", tt.calls, o.FullCache()/16, tt.pages+1)
		}
	}
}

// In a cache that is sized by a call, its completions neither start again nor wait, though all reach full length.
func TestCallsFit(t *testing.T) {
	be := openAs(t, cpu.Options{Threads: 2})
	m := newModel(t, be, toy)
	rng := rand.New(rand.NewPCG(3, 4))
	for range 12 {
		c := Call{Requests: 1 + rng.IntN(6), Samples: 1 + rng.IntN(5), Prompt: 1 + rng.IntN(40), New: 1 + rng.IntN(40)}
		o := Options{MaxSequences: 1 + rng.IntN(30), PageTokens: 16, MaxTokens: c.Prompt + c.New}
		reqs := requests(rng, c.Requests, c.Samples, c.Prompt)
		p := rollout.Params{Temperature: 1, TopP: 1, MaxNewTokens: c.New}
		steps := func(o Options) int {
			e, err := New(be, m, unending{}, o)
			if err != nil {
				t.Fatal(err)
			}
			defer e.Close()
			sample(t, e, reqs, p)
			if n := e.Stats().Restarts; n > 0 {
				t.Errorf("%+v with %d sequences: %d restarts", c, o.MaxSequences, n)
			}
			return e.Stats().Steps
		}
		want := steps(o)
		if o.Calls = []Call{c}; steps(o) != want {
			t.Errorf("%+v with %d sequences: %d steps, want %d", c, o.MaxSequences, steps(o), want)
		}
	}
}
