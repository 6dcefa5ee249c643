package generate

import (
	"math/rand/v2"
	"slices"
	"testing"

	"exp/kernels"
	"exp/kernels/cpu"
	"exp/train/rollout"
)

// prefixed makes prompts of up to 60 tokens that begin with the first tokens of one of
// few texts.
func prefixed(r *rand.Rand, n int) []rollout.Request {
	texts := make([][]int32, 4)
	for i := range texts {
		for range 60 {
			texts[i] = append(texts[i], int32(1+r.IntN(toy.Vocab-1)))
		}
	}
	// Two part on the border of a page; the second page of two is the same, after another first.
	texts[2] = slices.Concat(texts[1][:32], texts[2][32:])
	texts[3] = slices.Concat(texts[3][:7], texts[1][7:])
	reqs := make([]rollout.Request, n)
	for i := range reqs {
		p := slices.Clone(texts[r.IntN(len(texts))][:1+r.IntN(60)])
		for len(p) < 60 && r.IntN(4) > 0 {
			p = append(p, int32(1+r.IntN(toy.Vocab-1)))
		}
		reqs[i].Prompt = p
		for range r.IntN(4) {
			reqs[i].Seeds = append(reqs[i].Seeds, r.Uint64())
		}
	}
	return reqs
}

// Prompts with a common beginning share its pages, yet each completion has the bits of a run
// alone. Afterwards no page is held.
func TestCommonPrefixes(t *testing.T) {
	for _, operand := range []kernels.DType{kernels.F32, kernels.BF16} {
		t.Run(operand.String(), func(t *testing.T) { checkPrefixes(t, openAs(t, cpu.Options{Threads: 3, Operand: operand})) })
	}
}

func checkPrefixes(t *testing.T, be *cpu.Backend) {
	m := newModel(t, be, toy)
	p := rollout.Params{Temperature: 1, TopP: 1, MaxNewTokens: 20}
	alone := newEngine(t, be, m, Options{MaxSequences: 1, PageTokens: 16, MaxTokens: 96})
	for seed := range uint64(12) {
		r := rand.New(rand.NewPCG(seed, 5))
		reqs := prefixed(r, 30)
		o := Options{MaxSequences: 1 + r.IntN(24), PageTokens: 16 * (1 + r.IntN(2)), MaxTokens: 80, StepRows: 1 + r.IntN(120)}
		e := newEngine(t, dirty{be}, m, o)
		got := sample(t, e, reqs, p)
		tokens := 0
		for i := range reqs {
			if d := differ(got[i:i+1], sample(t, alone, reqs[i:i+1], p)); d != "" {
				t.Fatalf("seed %d, %+v, request %d: %s", seed, o, i, d)
			}
			if len(reqs[i].Seeds) > 0 {
				tokens += len(reqs[i].Prompt) - 1
			}
		}
		if n := e.Stats(); n.PromptTokens+n.FoundTokens != tokens || n.FoundTokens == 0 {
			t.Errorf("seed %d, %+v: %d prompt tokens computed and %d found, of %d", seed, o, n.PromptTokens, n.FoundTokens, tokens)
		}
		if n := e.pages.available(); n != len(e.pages.refs) || e.pages.check() != nil {
			t.Errorf("seed %d, %+v: %d of %d pages come back, %v", seed, o, n, len(e.pages.refs), e.pages.check())
		}
	}
}

// Of prompts that all begin with 40 tokens and go on apart for 7, the first is computed
// wholly, of the others the last 15 tokens.
func TestCommonPrefixIsComputedOnce(t *testing.T) {
	be := openCPU(t, 1)
	m := newModel(t, be, toy)
	e := newEngine(t, be, m, Options{MaxSequences: 8, PageTokens: 16, MaxTokens: 64, StepRows: 47})
	r := rand.New(rand.NewPCG(3, 3))
	var reqs []rollout.Request
	for i := range 8 {
		p := make([]int32, 48)
		for j := range p {
			p[j] = int32(1 + j%(toy.Vocab-1))
			if j >= 40 {
				p[j] = int32(1 + r.IntN(toy.Vocab-1))
			}
		}
		reqs = append(reqs, rollout.Request{Prompt: p, Seeds: []uint64{uint64(i)}})
	}
	sample(t, e, reqs, rollout.Params{Temperature: 1, TopP: 1, MaxNewTokens: 4})
	if got, want := e.Stats().PromptTokens, 47+7*15; got != want {
		t.Errorf("%d prompt tokens computed, want %d", got, want)
	}
}

// Of prompts with the same 40 tokens first, one after another in one slot, the others find them though the one before
// has ended. The next call finds nothing: weights may have changed.
func TestPrefixOutlivesItsHolders(t *testing.T) {
	be := openCPU(t, 1)
	e := newEngine(t, be, newModel(t, be, toy), Options{MaxSequences: 1, PageTokens: 16, MaxTokens: 64})
	r := rand.New(rand.NewPCG(3, 3))
	first := randomTokens(r, 40)
	var reqs []rollout.Request
	for i := range 5 {
		reqs = append(reqs, rollout.Request{Prompt: slices.Concat(first, randomTokens(r, 8)), Seeds: []uint64{uint64(i)}})
	}
	for range 2 {
		before := e.Stats()
		sample(t, e, reqs, rollout.Params{Temperature: 1, TopP: 1, MaxNewTokens: 4})
		computed, found := e.Stats().PromptTokens-before.PromptTokens, e.Stats().FoundTokens-before.FoundTokens
		if computed != 47+4*15 || found != 4*32 {
			t.Errorf("%d prompt tokens computed, %d found, want %d and %d", computed, found, 47+4*15, 4*32)
		}
		if n := len(e.pages.prefixes.pages); n != 2 { // nobody goes on with what was drawn
			t.Errorf("%d pages can be found, want the common prefix's", n)
		}
	}
}

// A completion that comes back with pages, one of them not filled, holds those that are found in their places.
func TestPagesKeepTheirPlaces(t *testing.T) {
	be := openCPU(t, 1)
	e := newEngine(t, be, newModel(t, be, toy), Options{MaxSequences: 2, PageTokens: 16, MaxTokens: 96})
	tokens := randomTokens(rand.New(rand.NewPCG(1, 1)), 65)
	chain := []int32{e.pages.take(), e.pages.take(), e.pages.take(), e.pages.take()}
	e.pages.publish(chain, tokens, 0, 4)
	e.pages.share(chain[0])
	e.pages.leave(chain)
	pr := &prompt{tokens: tokens, again: &sequence{}, pages: []int32{chain[0], e.pages.take()}, done: 16, state: noState}
	s := newSchedule(e, []rollout.Request{{Prompt: tokens}}, rollout.Params{})
	if !s.give(pr) {
		t.Fatal("no pages")
	}
	s.adopt(pr)
	if !slices.Equal(pr.pages, chain) || pr.done != 64 || e.pages.available() != e.opt.pages()-4 || e.pages.check() != nil {
		t.Errorf("pages %v, want %v; %d tokens are there, %d pages available; %v", pr.pages, chain, pr.done,
			e.pages.available(), e.pages.check())
	}
}
