package generate

import (
	"context"
	"maps"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"sync"
	"testing"

	"exp/kernels"
	"exp/train/model"
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
	e := newEngine(t, be, m, Options{MaxSequences: 8, PageTokens: 16, MaxTokens: 96, StepRows: 24, CacheTokens: 128, Ridge: 8})
	r := rand.New(rand.NewPCG(3, 4))
	reqs := requests(r, 40, 2, 20)
	params := []rollout.Params{{Temperature: 1, TopP: 1, MaxNewTokens: 70}, {TopP: 1, MaxNewTokens: 70},
		{Temperature: 0.7, TopP: 0.9, TopK: 5, MaxNewTokens: 70, Stop: []string{"ab", "c"}},
		{Temperature: 1, TopP: 1, MaxNewTokens: 70, Penalties: rollout.Penalties{Repetition: 1.4, Frequency: 0.2}},
		{TopP: 1, MaxNewTokens: 70, MinNewTokens: 50, Bias: []rollout.Bias{{Token: 0, Add: 9}}}}
	of := func(i int) rollout.Params { return params[i%len(params)] }
	asks := serving(t, e)
	got := make([][]rollout.Completion, len(reqs))
	list := make([]*Ask, len(reqs))
	var work sync.WaitGroup
	for i, req := range reqs {
		got[i] = make([]rollout.Completion, 2)
		work.Add(2)
		list[i] = &Ask{Request: req, Params: of(i), Scored: i%2 == 0, Prompted: i%4 == 0, Top: i % 5,
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
		want := sample(t, alone, []rollout.Request{req}, of(i))[0]
		if !reflect.DeepEqual(got[i], want) {
			t.Errorf("request %d: %+v, alone %+v", i, got[i], want)
		}
		if list[i].Scored && slices.Contains([]int{0, 1, 3}, i%len(params)) { // temperature 1, or 0, which has 1's log-probs
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
	if s := e.Stats(); s.Restarts == 0 || s.KeptDrafts == 0 {
		t.Errorf("nothing started again in a cache with room for all, or no draft was kept: %+v", s)
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

// Tokens without a piece have the text that a request spells.
func TestServeSpells(t *testing.T) {
	be := openCPU(t, 1)
	e := newEngine(t, be, newModel(t, be, toy), Options{MaxSequences: 4, PageTokens: 16, MaxTokens: 96})
	asks := serving(t, e)
	for _, spelled := range []map[int32]string{nil, {0: "<0>", 1: "never"}} {
		done, last := make(chan rollout.Completion, 1), ""
		asks <- &Ask{Request: rollout.Request{Prompt: []int32{1, 2}, Seeds: []uint64{9}}, IgnoreEnds: true, Spelled: spelled,
			Params: rollout.Params{Temperature: 1, TopP: 1, MaxNewTokens: 90}, Drew: func(_ int, text []byte) { last = string(text) },
			Ended: func(_ int, c rollout.Completion) { done <- c }}
		c := <-done
		want := ""
		for _, id := range c.Tokens {
			if id == 0 {
				want += spelled[0]
			} else {
				want += string(letters{}.Piece(id))
			}
		}
		if c.Text != want || len(last) == 0 || want[:len(last)] != last || !slices.Contains(c.Tokens, 0) {
			t.Errorf("%q, last drawn %q, want %q", c.Text, last, want)
		}
	}
}

// fed makes a schedule of requests that come one by one.
func fed(t *testing.T, e *Engine, asks ...*Ask) *schedule {
	t.Helper()
	scorer, err := model.NewScorer(e.be, e.m.Config, e.opt.scoredAtOnce(), MostTop)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(scorer.Close)
	e.pages.reset()
	e.state.reset()
	s := newSchedule(e, nil, rollout.Params{})
	s.feed = &feed{e: e, scorer: scorer}
	for _, a := range asks {
		s.join(a)
	}
	return s
}

// finish takes steps until all requests have ended.
func (s *schedule) finish(t *testing.T) {
	t.Helper()
	for range 10000 {
		if s.finished() {
			return
		}
		s.e.advance(s, kernels.Sampling{})
	}
	t.Fatalf("%d of %d completions ended", s.ended, s.total)
}

// collected makes requests whose completions are kept.
func collected(reqs []rollout.Request, p rollout.Params) (asks []*Ask, out [][]rollout.Completion) {
	out = make([][]rollout.Completion, len(reqs))
	for i, r := range reqs {
		out[i] = make([]rollout.Completion, len(r.Seeds))
		asks = append(asks, &Ask{Request: r, Params: p, Ended: func(k int, c rollout.Completion) { out[i][k] = c }})
	}
	return asks, out
}

// The last token needs no room: prompts that fill the engine get one, also in the smallest cache.
func TestServeFull(t *testing.T) {
	be := openCPU(t, 2)
	m := newModel(t, be, toy)
	const room = 64
	o := Options{MaxSequences: 4, PageTokens: 16, MaxTokens: room, StepRows: 24}
	o.CacheTokens = o.LeastCache()
	e := newEngine(t, be, m, o)
	large := newEngine(t, be, m, Options{MaxSequences: 4, PageTokens: 16, MaxTokens: 96, StepRows: 24})
	asks := serving(t, e)
	r := rand.New(rand.NewPCG(5, 6))
	var work sync.WaitGroup
	type result struct {
		ask *Ask
		got rollout.Completion
	}
	var list []*result
	for i := range 24 {
		n := room - i%4*7
		p := rollout.Params{Temperature: 1, TopP: 1, MaxNewTokens: room + 1 - n}
		x, ids := &result{}, make([]int32, n)
		for j := range ids {
			ids[j] = int32(1 + r.IntN(toy.Vocab-1))
		}
		x.ask = &Ask{Request: rollout.Request{Prompt: ids, Seeds: []uint64{uint64(i)}}, Params: p, IgnoreEnds: true,
			Scored: true, Prompted: true, Ended: func(_ int, c rollout.Completion) {
				x.got = c
				work.Done()
			}}
		if err := e.Check(x.ask); err != nil {
			t.Fatal(err)
		}
		long := *x.ask
		if long.MaxNewTokens++; e.Check(&long) == nil {
			t.Errorf("%d tokens of prompt and %d new ones are accepted", n, long.MaxNewTokens)
		}
		work.Add(1)
		list = append(list, x)
		asks <- x.ask
	}
	work.Wait()
	alone := serving(t, large)
	for i, x := range list {
		same := &Ask{Request: x.ask.Request, Params: x.ask.Params, IgnoreEnds: true, Scored: true, Prompted: true}
		done := make(chan rollout.Completion)
		same.Ended = func(_ int, c rollout.Completion) { done <- c }
		alone <- same
		if want := <-done; !slices.Equal(x.got.Tokens, want.Tokens) || !slices.Equal(x.got.LogProbs, want.LogProbs) ||
			!reflect.DeepEqual(x.ask.Prompts, same.Prompts) || len(want.Tokens) != x.ask.MaxNewTokens {
			t.Errorf("request %d: %v, in a large cache %v", i, x.got.Tokens, want.Tokens)
		}
	}
}

// Forgetting many ended requests changes no others: running ones, and one that waits to start again.
func TestForget(t *testing.T) {
	be := openCPU(t, 1)
	m := newModel(t, be, toy)
	o := Options{MaxSequences: 8, PageTokens: 16, MaxTokens: 96}
	alone := newEngine(t, be, m, o)
	o.CacheTokens, o.Ridge = 128, 8
	e := newEngine(t, be, m, o)
	r := rand.New(rand.NewPCG(5, 6))
	short, _ := collected(requests(r, 1100, 1, 3), rollout.Params{Temperature: 1, TopP: 1, MaxNewTokens: 1})
	reqs, p := requests(r, 8, 2, 20), rollout.Params{Temperature: 1, TopP: 1, MaxNewTokens: 70}
	for i := range reqs {
		reqs[i].Prompt = append(reqs[i].Prompt, 1)
	}
	long, got := collected(reqs, p)
	for _, a := range long {
		a.IgnoreEnds = true
	}
	s := fed(t, e, append(short, long...)...)
	waits := func() bool {
		return s.feed.asks[len(short)-1].left == 0 && slices.ContainsFunc(s.prompts, func(pr *prompt) bool { return pr.again != nil })
	}
	for step := 0; !waits(); step++ {
		if step == 10000 {
			t.Fatal("nothing waits to start again")
		}
		e.advance(s, kernels.Sampling{})
	}
	ended := 0
	for s.feed.asks[ended].left == 0 {
		ended++
	}
	known := maps.Clone(e.drafts.known)
	maps.DeleteFunc(known, func(req int, _ int32) bool { return req < ended })
	s.forget()
	for req, place := range e.drafts.known {
		if known[req+ended] != place {
			t.Errorf("request %d ends at %d of the text, not at %d", req+ended, known[req+ended], place)
		}
	}
	if len(known) == 0 || len(e.drafts.known) != len(known) {
		t.Errorf("%d requests are in the text, %d were", len(e.drafts.known), len(known))
	}
	if len(s.reqs) != len(short)+len(long)-ended || len(s.feed.asks) != len(s.reqs) {
		t.Errorf("%d requests are left", len(s.reqs))
	}
	s.finish(t)
	quiet := *alone
	quiet.end = nil
	if want := sample(t, &quiet, reqs, p); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// Requests that nobody waits for end: those that run, that wait to start again and that have not begun. Nothing is
// computed for them, and all pages are free.
func TestDropGone(t *testing.T) {
	be := openCPU(t, 1)
	m := newModel(t, be, toy)
	e := newEngine(t, be, m, Options{MaxSequences: 4, PageTokens: 16, MaxTokens: 96, CacheTokens: 128})
	reqs := requests(rand.New(rand.NewPCG(7, 8)), 9, 2, 20)
	asks, _ := collected(reqs, rollout.Params{Temperature: 1, TopP: 1, MaxNewTokens: 70})
	ctx, cancel := context.WithCancel(context.Background())
	done := make([]int, len(asks))
	for i, a := range asks {
		a.Done = func() { done[i]++ }
		if a.IgnoreEnds = true; i != 4 {
			a.Context = ctx
			a.Ended = func(int, rollout.Completion) { t.Errorf("request %d ended", i) }
		}
	}
	s := fed(t, e, asks...)
	free := e.pages.available()
	for !slices.ContainsFunc(s.prompts, func(pr *prompt) bool { return pr.again != nil }) {
		e.advance(s, kernels.Sampling{})
	}
	cancel()
	s.dropGone()
	if s.total-s.ended != 2 || len(s.feed.open) != 1 {
		t.Errorf("%d completions and %d requests are open, want 2 of 1", s.total-s.ended, len(s.feed.open))
	}
	if want := []int{1, 1, 1, 1, 0, 1, 1, 1, 1}; !slices.Equal(done, want) {
		t.Errorf("requests are told %d times that they are done, want %d", done, want)
	}
	before := e.Stats().SampledTokens
	s.finish(t)
	if n := e.Stats().SampledTokens - before; n > 2*70 {
		t.Errorf("%d tokens were drawn for 2 completions of 70", n)
	}
	if done[4] != 1 {
		t.Errorf("the request that has ended is told %d times", done[4])
	}
	if n := e.pages.available(); n != free {
		t.Errorf("%d pages are free, %d were", n, free)
	}
}

// leaving is a context that ends after it was asked some times.
type leaving struct {
	context.Context
	asked, most int
}

func (c *leaving) Err() error {
	if c.asked++; c.asked > c.most {
		return context.Canceled
	}
	return nil
}

// A request may leave at any moment, also while the schedule looks for those that have left.
func TestDropGoneAtAnyMoment(t *testing.T) {
	be := openCPU(t, 1)
	m := newModel(t, be, toy)
	e := newEngine(t, be, m, Options{MaxSequences: 4, PageTokens: 16, MaxTokens: 96})
	reqs := requests(rand.New(rand.NewPCG(7, 9)), 2, 2, 20)
	for most := range 6 {
		asks, _ := collected(reqs, rollout.Params{Temperature: 1, TopP: 1, MaxNewTokens: 70})
		for i, a := range asks {
			a.IgnoreEnds = true
			a.Context = &leaving{Context: t.Context(), most: most + i}
		}
		s := fed(t, e, asks...)
		for len(s.running) == 0 {
			e.advance(s, kernels.Sampling{})
		}
		for range 8 {
			s.dropGone()
			for _, q := range s.running {
				if asks[q.req].left == 0 {
					t.Fatalf("asked %d times: a completion runs on after its request has left", most)
				}
			}
		}
		if !s.finished() || len(s.running)+len(s.prompts) > 0 {
			t.Errorf("asked %d times: %d completions run, %d prompts wait", most, len(s.running), len(s.prompts))
		}
	}
}

// Each of two equal prompts is scored whole, though the second could take the first one's pages.
func TestPromptsScoredTwice(t *testing.T) {
	be := openCPU(t, 1)
	e := newEngine(t, be, newModel(t, be, toy), Options{MaxSequences: 4, PageTokens: 16, MaxTokens: 96})
	r := rollout.Request{Seeds: []uint64{1}}
	for i := range 40 {
		r.Prompt = append(r.Prompt, int32(1+i%18))
	}
	asks, _ := collected([]rollout.Request{r, r}, rollout.Params{Temperature: 1, TopP: 1, MaxNewTokens: 30})
	for _, a := range asks {
		a.Prompted, a.IgnoreEnds = true, true
	}
	s := fed(t, e, asks[0])
	for range 3 {
		e.advance(s, kernels.Sampling{})
	}
	s.join(asks[1])
	s.finish(t)
	for i, x := range asks[1].Prompts {
		if x.LogProb != asks[0].Prompts[i].LogProb || x.Token != asks[0].Prompts[i].Token || i > 0 && x.LogProb == 0 {
			t.Errorf("token %d: %+v, then %+v", i, asks[0].Prompts[i], x)
		}
	}
}

// Requests with penalties of their own are drawn next to others with none or with different ones.
func TestServePenalties(t *testing.T) {
	be := openCPU(t, 2)
	m := newModel(t, be, toy)
	o := Options{MaxSequences: 16, PageTokens: 16, MaxTokens: 96, StepRows: 64}
	alone, e := newEngine(t, be, m, o), newEngine(t, be, m, o)
	reqs := requests(rand.New(rand.NewPCG(5, 4)), 16, 1, 20)
	params := append(penalized(), rollout.Params{Temperature: 1, TopP: 1}, rollout.Params{TopP: 1})
	asks := serving(t, e)
	got := make([]rollout.Completion, len(reqs))
	var work sync.WaitGroup
	for i, req := range reqs {
		work.Add(1)
		p := params[i%len(params)]
		p.MaxNewTokens = 30
		asks <- &Ask{Request: req, Params: p, Ended: func(_ int, c rollout.Completion) {
			got[i] = c
			work.Done()
		}}
	}
	work.Wait()
	for i, req := range reqs {
		p := params[i%len(params)]
		p.MaxNewTokens = 30
		if want := sample(t, alone, []rollout.Request{req}, p)[0][0]; !reflect.DeepEqual(got[i], want) {
			t.Errorf("request %d: %+v, alone %+v", i, got[i], want)
		}
	}
}
