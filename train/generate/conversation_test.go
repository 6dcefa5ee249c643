package generate

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"exp/kernels"
	"exp/train/model"
	"exp/train/rollout"
)

// longToy is toy with room for conversations.
func longToy() model.Config {
	c := toy
	c.MaxPositions = 224
	return c
}

// say asks for a turn and waits for it.
func say(asks chan<- *Ask, a *Ask) (c rollout.Completion) {
	done := make(chan bool)
	a.Ended = func(_ int, x rollout.Completion) { c = x; close(done) }
	asks <- a
	<-done
	return c
}

// randomTokens returns tokens that end nothing.
func randomTokens(r *rand.Rand, n int) []int32 {
	ids := make([]int32, n)
	for i := range ids {
		ids[i] = int32(1 + r.IntN(toy.Vocab-1))
	}
	return ids
}

// The next turn of a conversation computes its own tokens, and those before that do not fill a page; the last token
// has no key and no value yet. Drafts change nothing.
func TestNextTurnFindsTheLast(t *testing.T) {
	be := openCPU(t, 1)
	m := newModel(t, be, longToy())
	o := Options{MaxSequences: 2, PageTokens: 16, MaxTokens: 96, StepRows: 64}
	alone := newEngine(t, be, m, o)
	r := rand.New(rand.NewPCG(6, 6))
	for _, ridge := range []int{0, 64} {
		o.Ridge = ridge
		e := newEngine(t, dirty{be}, m, o)
		asks := serving(t, e)
		for n := range 34 {
			for _, more := range []int{0, 1, 20} {
				first := randomTokens(r, 17+n%5)
				p := rollout.Params{Temperature: 0.3, TopP: 1, MaxNewTokens: 1 + n}
				request := func(prompt []int32) *Ask {
					return &Ask{Request: rollout.Request{Prompt: prompt, Seeds: []uint64{uint64(n)}}, Params: p, IgnoreEnds: true}
				}
				one := request(first)
				c := say(asks, one)
				if one.Found != 0 || len(c.Tokens) != 1+n {
					t.Fatalf("%d tokens found of a new prompt, %d drawn", one.Found, len(c.Tokens))
				}
				before := e.Stats()
				two := request(slices.Concat(first, c.Tokens, randomTokens(r, more)))
				got := say(asks, two)
				want := (len(first) + len(c.Tokens) - 1) / 16 * 16
				now := e.Stats()
				if two.Found != want || now.FoundTokens-before.FoundTokens != want ||
					now.PromptTokens-before.PromptTokens != len(two.Prompt)-1-want {
					t.Errorf("ridge %d, %d and %d tokens, %d more: %d found, want %d; %d computed", ridge, len(first),
						len(c.Tokens), more, two.Found, want, now.PromptTokens-before.PromptTokens)
				}
				same := request(two.Prompt)
				out := rollout.Completion{}
				same.Ended = func(_ int, c rollout.Completion) { out = c }
				fed(t, alone, same).finish(t)
				if a, b := bits(got), bits(out); a != b {
					t.Fatalf("ridge %d, %d tokens: %s\nalone %s", ridge, len(two.Prompt), a, b)
				}
			}
		}
	}
}

// talk is a conversation of the test below.
type talk struct {
	turns []*asked
	left  int // turns to come
	gone  func()
}

// next makes the next turn: after the last one, or after an earlier one that was answered.
func (x *talk) next(r *rand.Rand, room int) *asked {
	var prompt []int32
	if n := len(x.turns); n > 0 {
		last := x.turns[n-1]
		if r.IntN(4) == 0 {
			last = x.turns[r.IntN(n)]
		}
		prompt = slices.Concat(last.Prompt, last.out[r.IntN(len(last.out))].Tokens)
	}
	prompt = append(prompt, randomTokens(r, 1+r.IntN(20))...)
	a := anyAsk(r, rollout.Request{Prompt: prompt, Seeds: make([]uint64, 1+r.IntN(4))})
	for k := range a.Seeds {
		a.Seeds[k] = uint64(r.IntN(3)) // some are equal, with equal completions
	}
	if r.IntN(3) > 0 {
		a.IgnoreEnds, a.Stop, a.Ends, a.MaxNewTokens = true, nil, nil, 1+r.IntN(90)
		a.MinNewTokens = 0
	}
	if len(prompt)+a.MaxNewTokens > room {
		return nil
	}
	a.Prompted = a.Prompted && r.IntN(3) == 0
	ctx, gone := context.WithCancel(context.Background())
	a.Context, x.gone = ctx, gone
	return a
}

// Many conversations at once, in caches of any room, with drafts, with clients that leave and come again: each turn has
// the bits that it has alone, and after each step each findable page holds the tokens of its key.
func TestConversations(t *testing.T) {
	be := openCPU(t, 2)
	windows := longToy()
	windows.Window, windows.Windowed = 20, []bool{true, false}
	found, prompts, restarts, gone := 0, 0, 0, 0
	for seed := range uint64(24) {
		r := rand.New(rand.NewPCG(seed, 31))
		m := newModel(t, be, []model.Config{longToy(), windows}[seed%2])
		o := anyOptions(r)
		if o.MaxTokens = 208; o.CacheTokens > 0 {
			o.CacheTokens, o.PageTokens, o.MaxSequences = 1+r.IntN(400), 16, o.MaxSequences+6
		}
		e := newEngine(t, dirty{be}, m, o)
		s, c := fed(t, e), newContents(e)
		talks := make([]*talk, 2+r.IntN(10))
		for i := range talks {
			talks[i] = &talk{left: 2 + r.IntN(8)}
		}
		var answered []*asked
		for step := 0; ; step++ {
			open := 0
			for _, x := range talks {
				switch n := len(x.turns); {
				case n > 0 && x.turns[n-1].left > 0 && r.IntN(80) == 0: // leaves, and asks something else
					x.gone()
					x.turns = x.turns[:n-1]
					gone++
				case n > 0 && x.turns[n-1].left > 0:
					open++
				case x.left > 0 && r.IntN(3) > 0:
					a := x.next(r, 208)
					if x.left--; a == nil {
						x.left = 0
						break
					}
					if s.finished() {
						s.restart()
					}
					s.join(a.Ask)
					x.turns = append(x.turns, a)
					answered = append(answered, a)
					open++
				case x.left > 0:
					open++
				}
			}
			s.dropGone()
			if open == 0 {
				break
			}
			if !s.finished() {
				e.advance(s, kernels.Sampling{})
				if err := cmp.Or(checkPages(s), c.took(s)); err != nil || step > 20_000 {
					t.Fatalf("seed %d, %+v, step %d: %v", seed, o, step, err)
				}
			}
		}
		if n := e.pages.available(); n != o.pages() {
			t.Errorf("seed %d, %+v: %d of %d pages are free afterwards", seed, o, n, o.pages())
		}
		found, prompts, restarts = found+e.Stats().FoundTokens, prompts+e.Stats().PromptTokens, restarts+e.Stats().Restarts
		plain := newEngine(t, be, m, Options{MaxSequences: 12, PageTokens: 16, MaxTokens: 208, StepRows: 80})
		for i, a := range answered {
			if a.Context.Err() != nil {
				continue
			}
			if n := (len(a.Prompt) - 1) / o.PageTokens * o.PageTokens; a.Found > n || a.Prompted && a.Found > 0 {
				t.Errorf("seed %d, request %d: %d tokens of %d were found", seed, i, a.Found, len(a.Prompt))
			}
			alone := a.again()
			fed(t, plain, alone.Ask).finish(t)
			told := func(a *asked) string { return fmt.Sprintf("%+v\n%q\n%v\n%v", a.out, a.texts, a.Scores, a.Prompts) }
			if got, want := told(a), told(alone); got != want {
				t.Fatalf("seed %d, %+v, request %d: %s\nalone: %s", seed, o, i, got, want)
			}
		}
	}
	if t.Logf("%d tokens found, %d computed, %d restarts, %d left", found, prompts, restarts, gone); found < prompts/2 ||
		restarts < 20 || gone < 50 {
		t.Error("not all cases happen")
	}
}

// checkSecondTurn continues some completions of requests, served from a cache that holds their first turns, and
// compares them with the same prompts in an empty one.
func checkSecondTurn(t *testing.T, be kernels.Backend, m *model.Model, reqs []rollout.Request,
	out [][]rollout.Completion, p rollout.Params) {
	t.Helper()
	o := Options{MaxSequences: 7, PageTokens: 16, MaxTokens: 96, StepRows: 40, Ridge: 32}
	e := newEngine(t, dirty{be}, m, o)
	first, firsts := collected(reqs, p)
	s := fed(t, e, first...)
	s.finish(t)
	if d := differ(firsts, out); d != "" {
		t.Errorf("served: %s", d)
	}
	p.MaxNewTokens = 10
	var next []rollout.Request
	want := 0
	for i := range reqs {
		n := len(reqs[i].Prompt) + len(out[i][0].Tokens)
		prompt := slices.Concat(reqs[i].Prompt, out[i][0].Tokens, []int32{3, 1, 2})
		if len(prompt)+p.MaxNewTokens <= 96 {
			next = append(next, rollout.Request{Prompt: prompt, Seeds: []uint64{5, 6}})
			want += (n - 1) / 16 * 16
		}
	}
	if m.Config.Recurrent() {
		want = 0
	}
	found := e.Stats().FoundTokens
	second, got := collected(next, p)
	s.restart()
	for _, a := range second {
		s.join(a)
	}
	s.finish(t)
	if d := differ(got, sample(t, newEngine(t, be, m, o), next, p)); d != "" {
		t.Errorf("second turn: %s", d)
	}
	if n := e.Stats().FoundTokens - found; n != want || len(next) < 3 {
		t.Errorf("%d tokens of %d prompts were found, want %d", n, len(next), want)
	}
	if n := len(e.pages.prefixes.pages); (n == 0) != m.Config.Recurrent() {
		t.Errorf("%d pages can be found", n)
	}
}

// chatter is an agent that asks for turns until the room ends, and inserts letters that follow from the text.
type chatter struct{ most int }

func (c chatter) Episodes() int { return c.most }

func (c chatter) Play(ctx context.Context, e rollout.Episode) (out rollout.Completion, err error) {
	out.Asked = &rollout.Asked{}
	for i := range 20 + len(e.Problem.ID) {
		out.Asked.Tokens = append(out.Asked.Tokens, int32(1+(i*i+int(e.Problem.ID[0]))%(toy.Vocab-1)))
	}
	for turn := uint64(0); ; turn++ {
		var inserted []int32
		for i := range len(out.Tokens) % 13 {
			inserted = append(inserted, int32(1+(int(out.Tokens[i])+i)%(toy.Vocab-1)))
		}
		p := e.Params
		if p.MaxNewTokens -= len(out.Tokens) + len(inserted); p.MaxNewTokens < 1 || turn == 5 {
			return out, nil
		}
		p.MaxNewTokens = min(p.MaxNewTokens, 25)
		c, err := e.Ask(ctx, slices.Concat(out.Asked.Tokens, out.Tokens, inserted), e.Seed+turn, p)
		if err != nil {
			return out, err
		}
		var text []byte
		for _, id := range inserted {
			text = append(text, letters{}.Piece(id)...)
		}
		out.Continue(inserted, string(text), &c)
	}
}

// Episodes have the bits of turns that are computed one by one, whatever the room of the cache, and each turn finds
// those before it.
func TestAgentsFindTheirTurns(t *testing.T) {
	be := openCPU(t, 2)
	m := newModel(t, be, longToy())
	alone := newEngine(t, be, m, Options{MaxSequences: 1, PageTokens: 16, MaxTokens: 208})
	var reqs []rollout.Request
	for i := range 5 {
		reqs = append(reqs, rollout.Request{Prompt: []int32{1}, Seeds: []uint64{uint64(10 * i), 3},
			Problem: &rollout.Problem{ID: fmt.Sprint(i)}})
	}
	p := rollout.Params{Temperature: 0.8, TopP: 1, MaxNewTokens: 130}
	var mu sync.Mutex
	tokens := 0
	want := make([][]rollout.Completion, len(reqs))
	for i, q := range reqs {
		for _, seed := range q.Seeds {
			c, err := chatter{}.Play(t.Context(), rollout.Episode{Problem: q.Problem, Seed: seed, Params: p,
				Ask: func(_ context.Context, prompt []int32, seed uint64, p rollout.Params) (rollout.Completion, error) {
					mu.Lock()
					defer mu.Unlock()
					tokens += len(prompt) - 1
					return sample(t, alone, []rollout.Request{{Prompt: prompt, Seeds: []uint64{seed}}}, p)[0][0], nil
				}})
			if err != nil {
				t.Fatal(err)
			}
			want[i] = append(want[i], c)
		}
	}
	for _, o := range []Options{{MaxSequences: 4, Ridge: 16}, {MaxSequences: 4, CacheTokens: 240}, {MaxSequences: 1, CacheTokens: 1}} {
		o.PageTokens, o.MaxTokens = 16, 208
		e := newEngine(t, dirty{be}, m, o)
		p.Agent = chatter{o.MaxSequences}
		for range 2 {
			before := e.Stats()
			got := sample(t, e, reqs, p)
			if d := differ(got, want); d != "" {
				t.Errorf("%+v: %s", o, d)
			}
			now := e.Stats()
			found, computed := now.FoundTokens-before.FoundTokens, now.PromptTokens-before.PromptTokens
			t.Logf("%+v: %d tokens of %d found, %d computed", o, found, tokens, computed)
			if o.CacheTokens == 0 && (found+computed != tokens || found < 2*computed) || found == 0 {
				t.Errorf("%+v: %d tokens of %d found, %d computed", o, found, tokens, computed)
			}
		}
	}
	// A call finds nothing of the one before: weights may have changed.
	e := newEngine(t, be, m, Options{MaxSequences: 4, PageTokens: 16, MaxTokens: 208})
	p.Agent = chatter{1}
	sample(t, e, reqs[:1], p)
	found := e.Stats().FoundTokens
	if sample(t, e, reqs[:1], p); e.Stats().FoundTokens != 2*found {
		t.Errorf("%d tokens found in the first call, %d in the second", found, e.Stats().FoundTokens-found)
	}
}

// A completion that is evicted, or whose client leaves, can be found as far as it was computed.
func TestLeavingCompletionsCanBeFound(t *testing.T) {
	be := openCPU(t, 1)
	m := newModel(t, be, toy)
	o := Options{MaxSequences: 2, PageTokens: 16, MaxTokens: 96}
	req := rollout.Request{Prompt: randomTokens(rand.New(rand.NewPCG(8, 8)), 21), Seeds: []uint64{4}}
	p := rollout.Params{Temperature: 1, TopP: 1, MaxNewTokens: 70}
	for drawn := 1; drawn < 60; drawn++ {
		for _, evicted := range []bool{true, false} {
			e := newEngine(t, dirty{be}, m, o)
			asks, out := collected([]rollout.Request{req}, p)
			ctx, gone := context.WithCancel(t.Context())
			asks[0].Context, asks[0].IgnoreEnds = ctx, true
			s := fed(t, e, asks...)
			for len(s.running) == 0 || len(s.running[0].drawn) < drawn {
				e.advance(s, kernels.Sampling{})
			}
			tokens := slices.Clone(req.Prompt)
			for _, d := range s.running[0].drawn {
				tokens = append(tokens, d.id)
			}
			if evicted {
				s.evict(0)
			} else {
				gone()
				s.dropGone()
			}
			found := e.pages.seek(nil, firstPage, tokens)
			if len(found) != (20+drawn)/16 || e.pages.idle(found) != len(found) || e.pages.available() != o.pages() {
				t.Fatalf("after %d tokens, evicted: %v: pages %v can be found", drawn, evicted, found)
			}
			gone()
			if !evicted {
				continue
			}
			asks[0].Context = nil
			s.finish(t)
			alone, want := collected([]rollout.Request{req}, p)
			alone[0].IgnoreEnds = true
			fed(t, newEngine(t, be, m, o), alone...).finish(t)
			if a, b := bits(out[0][0]), bits(want[0][0]); a != b || e.Stats().FoundTokens != 16*len(found) || asks[0].Found != 0 {
				t.Errorf("after %d tokens: %d found, %d of them for the prompt; %s, want %s", drawn, e.Stats().FoundTokens, asks[0].Found, a, b)
			}
		}
	}
}

// Pages that appear while a prompt is in the middle of one are taken from the next one on, and what a prompt has found
// counts once if it gives its pages back.
func TestPagesThatAppear(t *testing.T) {
	be := openCPU(t, 1)
	m := newModel(t, be, toy)
	o := Options{MaxSequences: 2, PageTokens: 16, MaxTokens: 96, StepRows: 3}
	ones := slices.Repeat([]int32{1}, 90)
	request := func(n, most int) (*Ask, *rollout.Completion) {
		out := new(rollout.Completion)
		p := rollout.Params{Temperature: 1, TopP: 1, MaxNewTokens: most, Bias: []rollout.Bias{{Token: 1, Add: 1000}}}
		return &Ask{Request: rollout.Request{Prompt: ones[:n], Seeds: []uint64{1}}, Params: p, IgnoreEnds: true,
			Ended: func(_ int, c rollout.Completion) { *out = c }}, out
	}
	alone, want := request(80, 3)
	fed(t, newEngine(t, be, m, o), alone).finish(t)
	more := 0
	for late := range 20 {
		e := newEngine(t, dirty{be}, m, o)
		first, _ := request(17, 50)
		second, got := request(80, 3)
		s := fed(t, e, first)
		for len(s.running) == 0 || len(s.running[0].drawn) < 47-late {
			e.advance(s, kernels.Sampling{})
		}
		s.join(second)
		for first.left > 0 {
			e.advance(s, kernels.Sampling{})
		}
		done := s.prompts[0].done
		if late%2 == 1 {
			s.release(s.prompts[0])
			if second.Found != 0 {
				t.Errorf("%d tokens were found, and given back", second.Found)
			}
		}
		s.finish(t)
		if a, b := bits(*got), bits(*want); a != b {
			t.Errorf("%d steps later: %s, want %s", late, a, b)
		}
		// The first one leaves 66 tokens. The second one finds 16 of them when it begins, and others at the end of a page
		// that it computes, if it ends a step there.
		n := second.Found
		if late%2 == 1 && n != 64 || n < 16 || n > 64 || n%16 > 0 {
			t.Errorf("%d steps later, after %d tokens: %d tokens found", late, done, n)
		}
		if late%2 == 0 && n > 16 {
			more++
		}
	}
	if more == 0 {
		t.Error("no page was found behind the first ones")
	}
}

// BenchmarkConversation measures a conversation of 8 turns, each adding 100 tokens and drawing 50, on the shape of
// Qwen2.5-0.5B with random weights: turn by turn after one whose cache keeps nothing. It takes 6 GB, and is skipped
// without EXP_TEST_ALL.
func BenchmarkConversation(b *testing.B) {
	if os.Getenv("EXP_TEST_ALL") == "" {
		b.Skip("EXP_TEST_ALL is not set")
	}
	be := openCPU(b, 2)
	m := newModel(b, be, model.Config{Vocab: 151936, Layers: 24, Width: 896, Heads: 14, KVHeads: 2, Head: 64, FFN: 4864,
		RopeTheta: 1e6, NormEps: 1e-6, QKVBias: true, TieEmbeddings: true, MaxPositions: 1280, InitStd: 0.02})
	var talks [2]*schedule
	for i := range talks {
		o := Options{MaxSequences: 4, PageTokens: 16, MaxTokens: 1280, StepRows: 256}
		e, err := New(be, m, endless{[]byte("x")}, o)
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(e.Close)
		talks[i] = newSchedule(e, nil, rollout.Params{})
		talks[i].feed = &feed{e: e}
	}
	r := rand.New(rand.NewPCG(1, 1))
	var first, whole [2]float64 // seconds to the first token and to the last, of all turns
	for b.Loop() {
		var prompt []int32
		talks[1].e.pages.reset()
		for turn := range 8 {
			for range 100 {
				prompt = append(prompt, int32(r.IntN(m.Config.Vocab)))
			}
			var said []int32
			line := ""
			talks[0].e.pages.reset()
			for i, s := range talks {
				s.restart()
				s.join(&Ask{Request: rollout.Request{Prompt: prompt, Seeds: []uint64{uint64(turn)}},
					Params: rollout.Params{Temperature: 1, TopP: 1, MaxNewTokens: 50}, IgnoreEnds: true,
					Ended: func(_ int, c rollout.Completion) { said = c.Tokens }})
				begin, to := time.Now(), 0.0
				for !s.finished() {
					s.e.advance(s, kernels.Sampling{})
					if to == 0 && len(s.running) > 0 && len(s.running[0].drawn) > 0 {
						to = time.Since(begin).Seconds()
					}
				}
				all := time.Since(begin).Seconds()
				first[i], whole[i] = first[i]+to, whole[i]+all
				line += fmt.Sprintf(" %.2f to the first token, %.2f to the last;", to, all)
			}
			b.Logf("turn %d, seconds without and with kept pages:%s", turn+1, line)
			prompt = slices.Concat(prompt, said)
		}
	}
	for i, name := range []string{"without", "with"} {
		b.ReportMetric(first[i]/float64(b.N), name+"-first-s")
		b.ReportMetric(whole[i]/float64(b.N), name+"-whole-s")
	}
}
