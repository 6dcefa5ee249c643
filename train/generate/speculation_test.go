package generate

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"exp/kernels"
	"exp/train/model"
	"exp/train/rollout"
)

// checkPages finds pages that are lost or counted wrongly, and rows that would write to a page of others.
func checkPages(s *schedule) error {
	held, growing := make([]int32, len(s.e.pages.refs)), 0
	hold := func(pages []int32) {
		for _, id := range pages {
			held[id]++
		}
	}
	for _, pr := range s.prompts {
		hold(pr.pages)
	}
	for _, q := range s.running {
		hold(q.pages)
		if len(q.pages) > q.most {
			return fmt.Errorf("request %d, completion %d: %d pages, at most %d", q.req, q.k, len(q.pages), q.most)
		}
		if len(q.pages) < q.most {
			growing++
		}
	}
	if s.turns != nil {
		for _, q := range s.turns.away {
			hold(q.pages)
		}
	}
	if growing != s.growing {
		return fmt.Errorf("%d completions grow, %d are counted", growing, s.growing)
	}
	if !slices.Equal(held, s.e.pages.refs) {
		return fmt.Errorf("pages are held %v times, %v are counted", held, s.e.pages.refs)
	}
	if err := s.e.pages.check(); err != nil {
		return err
	}
	for _, q := range s.running {
		for _, id := range q.pages[min(len(q.pages), q.pos/s.e.opt.PageTokens):] {
			if held[id] != 1 {
				return fmt.Errorf("request %d, completion %d writes to a page of others", q.req, q.k)
			}
		}
	}
	first := 0
	for row, d := range s.e.step.draws {
		if d.behind == 0 {
			first++
		}
		if last := len(s.reqs[d.q.req].Prompt) + s.params(d.q.req).MaxNewTokens - 2; int(s.e.step.st.Pos[row]) > last {
			return fmt.Errorf("request %d, completion %d: a row at %d, the last one to draw after is %d", d.q.req, d.q.k,
				s.e.step.st.Pos[row], last)
		}
	}
	if st := s.e.step.st; first < len(st.Sample) && len(st.Sample) < len(st.Tokens) {
		return fmt.Errorf("%d drafts next to %d tokens of prompts", len(st.Sample)-first, len(st.Tokens)-len(st.Sample))
	}
	slots := slices.Sorted(slices.Values(s.e.step.st.Slots))
	if len(slices.Compact(slots)) != len(s.e.step.st.Slots) {
		return fmt.Errorf("two rows write to a place of the cache: %v", s.e.step.st.Slots)
	}
	return nil
}

// sampleChecked is Sample, with a look at the pages after each step.
func sampleChecked(t *testing.T, e *Engine, reqs []rollout.Request, p rollout.Params) [][]rollout.Completion {
	t.Helper()
	e.pages.reset()
	e.state.reset()
	e.drafts.reset()
	s := newSchedule(e, reqs, p)
	s.turns = newTurns(t.Context(), p.Environment, s.total, nil)
	defer s.turns.close()
	sampling := kernels.Sampling{Temperature: p.Temperature, TopK: p.TopK, TopP: p.TopP, MinP: p.MinP}
	c := newContents(e)
	for step := 0; !s.finished(); step++ {
		wait := !e.advance(s, sampling)
		if err := cmp.Or(checkPages(s), c.took(s)); err != nil {
			t.Fatalf("step %d: %v", step, err)
		}
		if err := s.takeReplies(t.Context(), wait); err != nil || step > 20_000 {
			t.Fatalf("step %d: %d of %d completions ended; %v", step, s.ended, s.total, err)
		}
	}
	if n := e.pages.available(); n != e.opt.pages() {
		t.Fatalf("%d of %d pages are free afterwards", n, e.opt.pages())
	}
	return s.out
}

// guessable makes requests whose prompts repeat themselves and each other. Some have no seeds, and some share seeds.
func guessable(r *rand.Rand, n, seeds, maxPrompt int) []rollout.Request {
	motif := make([]int32, 1+r.IntN(9))
	for i := range motif {
		motif[i] = int32(1 + r.IntN(toy.Vocab-1))
	}
	reqs := requests(r, n, seeds, maxPrompt)
	for i := range reqs {
		for j := range reqs[i].Prompt {
			if r.IntN(10) > 0 {
				reqs[i].Prompt[j] = motif[j%len(motif)]
			}
		}
		reqs[i].Seeds = reqs[i].Seeds[:r.IntN(seeds+1)]
		for k := range reqs[i].Seeds {
			if r.IntN(4) == 0 {
				reqs[i].Seeds[k] = 7
			}
		}
	}
	return withProblems(reqs)
}

// anyParams returns settings of any kind.
func anyParams(r *rand.Rand, tools bool) rollout.Params {
	p := rollout.Params{Temperature: []float64{0, 0.3, 0.7, 1.2}[r.IntN(4)], TopP: 1, MaxNewTokens: 1 + r.IntN(50)}
	if r.IntN(3) == 0 {
		p.TopK, p.TopP = r.IntN(6), 0.5+r.Float64()/2
	}
	if r.IntN(3) == 0 {
		p.Stop = []string{"qq", string(rune('a' + r.IntN(18)))}[:1+r.IntN(2)]
	}
	if r.IntN(3) == 0 {
		p.MinNewTokens = r.IntN(p.MaxNewTokens + 1)
	}
	if r.IntN(3) == 0 {
		p.Penalties = rollout.Penalties{Repetition: 0.8 + r.Float64()/2, Frequency: r.Float64() / 5, Presence: r.Float64() / 5}
		p.Bias = []rollout.Bias{{Token: int32(r.IntN(toy.Vocab)), Add: r.NormFloat64()}}
	}
	if tools && r.IntN(3) == 0 {
		p.Environment = oracle{1 + r.IntN(5), noDelay, ""}
	}
	return p
}

// anyOptions returns sizes of any kind, for sequences of 96 tokens.
func anyOptions(r *rand.Rand) Options {
	o := Options{MaxSequences: 1 + r.IntN(12), PageTokens: 16 * (1 + r.IntN(3)), MaxTokens: 96, Ridge: 1 + r.IntN(64)}
	o.StepRows = o.MaxSequences + r.IntN(60)
	if r.IntN(2) == 0 {
		o.CacheTokens = 1 + r.IntN(500)
	}
	return o
}

// Whatever is asked, of an engine of any size, whatever it has sampled before: drafts change nothing, and each page is
// where it belongs after each step.
func TestAnySpeculation(t *testing.T) {
	be := openCPU(t, 2)
	windows := toy
	windows.Window, windows.Windowed = 20, []bool{true, false}
	kept := 0
	for seed := range uint64(24) {
		r := rand.New(rand.NewPCG(seed, 9))
		m := newModel(t, be, []model.Config{toy, windows}[seed%2])
		plain := newEngine(t, be, m, Options{MaxSequences: 12, PageTokens: 16, MaxTokens: 96, StepRows: 80})
		o := anyOptions(r)
		e := newEngine(t, dirty{be}, m, o)
		for range 4 {
			reqs, p := guessable(r, 1+r.IntN(6), 4, 45), anyParams(r, true)
			got, want := sampleChecked(t, e, reqs, p), sample(t, plain, reqs, p)
			if d := differ(got, want); d != "" {
				t.Fatalf("seed %d, %+v, %+v: %s", seed, o, p, d)
			}
		}
		kept += e.Stats().KeptDrafts
	}
	if kept < 1000 {
		t.Errorf("%d drafts were kept", kept)
	}
}

// asked is a request that comes one by one, and what was said of it.
type asked struct {
	*Ask
	texts [][]string // of each completion, in the order in which they were told
	out   []rollout.Completion
}

// anyAsk makes a request of any kind.
func anyAsk(r *rand.Rand, req rollout.Request) *asked {
	a := &asked{texts: make([][]string, len(req.Seeds)), out: make([]rollout.Completion, len(req.Seeds))}
	a.Ask = &Ask{Request: req, Params: anyParams(r, false), IgnoreEnds: r.IntN(2) == 0, Scored: r.IntN(2) == 0,
		Prompted: r.IntN(4) == 0, Top: r.IntN(4)}
	if r.IntN(3) == 0 {
		a.Ends = []int32{int32(r.IntN(toy.Vocab))}
	}
	a.listen()
	return a
}

// again returns the same request, before it is sampled.
func (a *asked) again() *asked {
	x := *a.Ask
	b := &asked{Ask: &x, texts: make([][]string, len(x.Seeds)), out: make([]rollout.Completion, len(x.Seeds))}
	x.Context, x.Scores, x.Prompts = nil, nil, nil
	b.listen()
	return b
}

func (a *asked) listen() {
	a.Drew = func(k int, text []byte) { a.texts[k] = append(a.texts[k], string(text)) }
	a.Ended = func(k int, c rollout.Completion) { a.out[k] = c }
}

// Clients that come one by one, and some that leave early, get the same texts, scores and completions as without
// drafts.
func TestAnySpeculationOfServed(t *testing.T) {
	be := openCPU(t, 1)
	m := newModel(t, be, toy)
	kept, dropped := 0, 0
	for seed := range uint64(12) {
		r := rand.New(rand.NewPCG(seed, 10))
		o := anyOptions(r)
		e := newEngine(t, dirty{be}, m, o)
		s := fed(t, e)
		c := newContents(e)
		var list []*asked
		var leave []context.CancelFunc
		for _, req := range guessable(r, 30, 3, 45) {
			if len(req.Seeds) > 0 {
				list = append(list, anyAsk(r, req))
			}
		}
		for _, a := range list {
			ctx, cancel := context.WithCancel(t.Context())
			a.Context, leave = ctx, append(leave, cancel)
		}
		for step, next := 0, 0; next < len(list) || !s.finished(); step++ {
			if next < len(list) && (s.finished() || r.IntN(12) == 0) {
				if s.finished() {
					s.restart()
				}
				s.join(list[next].Ask)
				next++
			}
			if next > 0 && r.IntN(40) == 0 {
				leave[r.IntN(next)]()
			}
			s.dropGone()
			if s.finished() {
				continue
			}
			e.advance(s, kernels.Sampling{})
			if err := cmp.Or(checkPages(s), c.took(s)); err != nil || step > 20_000 {
				t.Fatalf("seed %d, %+v, step %d, %d of %d ended: %v", seed, o, step, s.ended, s.total, err)
			}
		}
		kept += e.Stats().KeptDrafts
		plain := newEngine(t, be, m, Options{MaxSequences: 12, PageTokens: 16, MaxTokens: 96, StepRows: 80})
		var same []*Ask
		alone := make([]*asked, len(list))
		for i, a := range list {
			alone[i] = a.again()
			same = append(same, alone[i].Ask)
		}
		fed(t, plain, same...).finish(t)
		for i, a := range list {
			if a.Context.Err() != nil {
				dropped++
				continue
			}
			told := func(a *asked) string { return fmt.Sprintf("%+v\n%q\n%v\n%v", a.out, a.texts, a.Scores, a.Prompts) }
			if got, want := told(a), told(alone[i]); got != want {
				t.Errorf("seed %d, %+v, request %d: %s\nwithout drafts: %s", seed, o, i, got, want)
			}
		}
	}
	if kept < 300 || dropped < 20 {
		t.Errorf("%d drafts were kept, %d requests left", kept, dropped)
	}
}

// While no completion begins or ends, drafts allocate nothing on the Go heap once the text is full.
func TestDraftingAllocatesNothing(t *testing.T) {
	be := openCPU(t, 1)
	o := Options{MaxSequences: 8, PageTokens: 16, MaxTokens: 96, StepRows: 40, Ridge: 64}
	e, err := New(be, newModel(t, be, toy), endless{[]byte("x")}, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	e.drafts.text = newText(256)
	reqs := requests(rand.New(rand.NewPCG(4, 4)), 2, 4, 12)
	p := rollout.Params{Temperature: 1.5, TopP: 1, MaxNewTokens: 84}
	sample(t, e, reqs, p)
	e.pages.reset()
	e.drafts.reset()
	s := newSchedule(e, reqs, p)
	hot := kernels.Sampling{Temperature: p.Temperature, TopP: 1}
	for len(s.running) < 8 || len(s.running[0].drawn) < 8 {
		e.advance(s, hot)
	}
	before := e.Stats().Drafts
	if n := testing.AllocsPerRun(10, func() { e.advance(s, hot) }); n != 0 || s.ended > 0 || e.Stats().Drafts == before {
		t.Errorf("a step allocates %v times, %d completions ended, %d drafts", n, s.ended, e.Stats().Drafts-before)
	}
	q, list := s.running[0], []model.Adjustment(nil)
	s.p.Penalties = rollout.Penalties{Repetition: 1.5}
	for _, draft := range [][]int32{nil, {1, 2, 1}} {
		q.draft = draft
		if n := testing.AllocsPerRun(10, func() { list = s.adjustments(draw{q: q, behind: len(draft)}, list[:0]) }); n != 0 {
			t.Errorf("penalties of a draw behind %v allocate %v times", draft, n)
		}
	}
}
