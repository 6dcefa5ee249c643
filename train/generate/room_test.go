package generate

import (
	"context"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"exp/kernels"
	"exp/train/model"
	"exp/train/rollout"
)

// The pages that prompts have in common are those that two prompts or more have, by all tokens up to their ends.
func TestCommonPages(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 21))
		size := 1 + r.IntN(3)
		prompts := make([][]int32, r.IntN(9))
		for i := range prompts {
			for range 1 + r.IntN(9) {
				prompts[i] = append(prompts[i], int32(r.IntN(2)))
			}
		}
		have := map[string]int{}
		eachPage := func(p []int32, f func(page string)) {
			for n := size; n < len(p); n += size {
				f(fmt.Sprint(p[:n]))
			}
		}
		for _, p := range prompts {
			eachPage(p, func(page string) { have[page]++ })
		}
		want, wantAll := make([]int, len(prompts)), 0
		for i, p := range prompts {
			eachPage(p, func(page string) {
				if have[page] > 1 {
					want[i]++
				}
			})
		}
		for _, n := range have {
			if n > 1 {
				wantAll++
			}
		}
		if each, all := commonPages(prompts, size); !slices.Equal(each, want) || all != wantAll {
			t.Errorf("seed %d, pages of %d, %v: %v, %d in all; want %v, %d", seed, size, prompts, each, all, want, wantAll)
		}
	}
}

// With the room that ScoreRoom says, Score takes as many steps as with any more, finds as much, and begins nothing
// again; afterwards only pages that prompts have in common are kept. Many questions need far less than all slots at
// full length.
func TestScoreRoom(t *testing.T) {
	be := openCPU(t, 2)
	m := newModel(t, be, toy)
	list := questions(rand.New(rand.NewPCG(8, 8)), 150)
	o := Options{MaxSequences: 96, PageTokens: 16, MaxTokens: 96, StepRows: 96 + 20}
	all := newEngine(t, be, m, o)
	want, err := all.Score(context.Background(), list, nil)
	if err != nil {
		t.Fatal(err)
	}
	room := o.ScoreRoom(toy, list)
	if full := o.FullCache(); room > full/2 {
		t.Errorf("room of %d tokens, of %d", room, full)
	}
	o.CacheTokens = room
	e := newEngine(t, be, m, o)
	got, err := e.Score(context.Background(), list, nil)
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("other scores, or %v", err)
	}
	if a, b := e.Stats(), all.Stats(); a.Restarts > 0 || a.Steps > b.Steps+1 || a.FoundTokens != b.FoundTokens {
		t.Errorf("%+v; with all room %+v", a, b)
	}
	prompts := make([][]int32, len(list))
	for i, q := range list {
		prompts[i] = q.Prompt
	}
	_, common := commonPages(prompts, o.PageTokens)
	if n := all.pages.kept.len; n != common || len(all.pages.free)+n != len(all.pages.refs) || common == 0 {
		t.Errorf("%d pages are kept, %d free of %d; prompts have %d in common", n, len(all.pages.free), len(all.pages.refs), common)
	}
}

// Where questions are equal, ScoreRoom is what their pages are, and a free one.
func TestScoreRoomOfEqual(t *testing.T) {
	o := Options{MaxSequences: 64, PageTokens: 16, MaxTokens: 96, StepRows: 70}
	// A prompt shares 40 tokens; options of 8 and 9 tokens need a page and two.
	question := func(first int32) rollout.Question {
		return rollout.Question{Prompt: append(make([]int32, 40), first), Options: [][]int32{make([]int32, 8), make([]int32, 9)}}
	}
	apart := func(n int) (list []rollout.Question) {
		for i := range n {
			q := question(1)
			q.Prompt[0] = int32(i)
			list = append(list, q)
		}
		return list
	}
	// Eight steps of 70 rows compute 9.8 questions of 57 tokens. A cache has eight pages at least.
	for n, want := range map[int]int{1: 7, 2: 12, 10: 60, 40: 60} {
		if got := o.ScoreRoom(toy, apart(n)); got != 16*(want+1) {
			t.Errorf("%d questions apart: %d tokens, want %d", n, got, 16*(want+1))
		}
	}
	// Two pages are the same in all, and steps compute 22.4 questions of 25 tokens.
	if got, want := o.ScoreRoom(toy, slices.Repeat([]rollout.Question{question(1)}, 40)), 16*(2+4*23+1); got != want {
		t.Errorf("40 questions with one prompt: %d tokens, want %d", got, want)
	}
	// A model with states finds none of them.
	if got, want := o.ScoreRoom(linearToy(), slices.Repeat([]rollout.Question{question(1)}, 40)), 16*(60+1); got != want {
		t.Errorf("with states: %d tokens, want %d", got, want)
	}
	o.MaxSequences = 3
	if got, want := o.ScoreRoom(toy, apart(40)), o.FullCache(); got != want {
		t.Errorf("with three slots: %d tokens, want %d", got, want)
	}
}

// SampleRoom is enough for completions of full length: with it, sampling takes as many steps as with more, and begins
// nothing again.
func TestSampleRoom(t *testing.T) {
	be := openCPU(t, 2)
	m := newModel(t, be, toy)
	for seed := range uint64(6) {
		r := rand.New(rand.NewPCG(seed, 23))
		n, fresh := 1+r.IntN(5), 1+r.IntN(40)
		reqs, lengths := make([]rollout.Request, 5+r.IntN(20)), []int{}
		for i := range reqs {
			for range 1 + r.IntN(50) {
				reqs[i].Prompt = append(reqs[i].Prompt, int32(1+r.IntN(toy.Vocab-1)))
			}
			for range n {
				reqs[i].Seeds = append(reqs[i].Seeds, r.Uint64())
			}
			lengths = append(lengths, len(reqs[i].Prompt))
		}
		o := Options{MaxSequences: 1 + r.IntN(20), PageTokens: 16, MaxTokens: 96, StepRows: 300}
		p := rollout.Params{Temperature: 1, TopP: 1, MaxNewTokens: fresh}
		all := unended(t, be, m, o)
		want := sample(t, all, reqs, p)
		room := o.SampleRoom(lengths, n, fresh)
		if room > o.FullCache() {
			t.Errorf("room of %d tokens, of %d", room, o.FullCache())
		}
		o.CacheTokens = room
		e := unended(t, be, m, o)
		if d := differ(sample(t, e, reqs, p), want); d != "" {
			t.Error(d)
		}
		if a, b := e.Stats(), all.Stats(); a.Restarts > 0 || a.Steps != b.Steps {
			t.Errorf("seed %d, %+v: %+v; with all room %+v", seed, o, a, b)
		}
	}
	o := Options{MaxSequences: 8, PageTokens: 16, MaxTokens: 96}
	// Of 33 tokens two pages are shared, and a completion of 17 needs two of its own; four problems run, one waits.
	if got, want := o.SampleRoom(slices.Repeat([]int{33}, 40), 2, 17), 16*(5*2+8*2+1); got != want {
		t.Errorf("%d tokens, want %d", got, want)
	}
	if got, want := o.SampleRoom([]int{33}, 2, 17), 16*(2+2*2+1); got != max(want, o.LeastCache()) {
		t.Errorf("for one problem: %d tokens, want %d", got, want)
	}
}

// unended makes an engine whose completions have full length.
func unended(t *testing.T, be kernels.Backend, m *model.Model, o Options) *Engine {
	t.Helper()
	e, err := New(be, m, unending{}, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	return e
}
