package generate

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"exp/kernels"
	"exp/kernels/cpu"
	"exp/train/model"
	"exp/train/rollout"
)

// What followed the same tokens before is the draft.
func TestDraftOfText(t *testing.T) {
	//           0  1  2  3  4  5  6  7
	prompt := []int32{1, 2, 3, 4, 9, 2, 3, 5}
	for _, tt := range []struct {
		name        string
		completions [][]int32
		most        int
		want        []int32
		match       int
	}{
		{"nothing agrees", [][]int32{{7}}, 4, nil, 0},
		{"one token agrees", [][]int32{{2}}, 4, nil, 0},
		{"the prompt, the latest of two", [][]int32{{7, 2, 3}}, 4, []int32{5, 7, 2, 3}, 2},
		{"three agree before two", [][]int32{{1, 2, 3}}, 3, []int32{4, 9, 2}, 3},
		{"no more than asked", [][]int32{{1, 2, 3}}, 1, []int32{4}, 3},
		{"another completion, to its end", [][]int32{{6, 6, 7, 8, 8}, {6, 7}}, 9, []int32{8, 8}, 2},
		{"its end alone brings nothing", [][]int32{{6, 7}, {6, 7}}, 9, nil, 0},
		{"a repetition goes on", [][]int32{{6, 7, 8, 6, 7}}, 8, []int32{8, 6, 7, 8, 6, 7, 8, 6}, 2},
		{"one token again and again", [][]int32{{6, 6, 6}}, 3, []int32{6, 6, 6}, 2},
		{"across the prompt's end", [][]int32{{8, 5, 8}}, 2, []int32{5, 8}, 2},
		{"the first token of another", [][]int32{{8, 4}, {}}, 5, []int32{8, 4}, 8},
		{"of several, the first", [][]int32{{8, 4}, {6, 6}, {}}, 5, []int32{8, 4}, 8},
		{"none asked", [][]int32{{1, 2, 3}}, 0, nil, 3},
	} {
		d := newDrafter(Options{})
		end := d.add(nowhere, prompt)
		tip := end
		for _, c := range tt.completions {
			tip = d.add(end, c)
		}
		got, match := d.text.draft(nil, tip, tt.most)
		if !slices.Equal(got, tt.want) || len(tt.want) > 0 && match != tt.match {
			t.Errorf("%s: %v behind %d tokens, want %v behind %d", tt.name, got, match, tt.want, tt.match)
		}
	}
}

// In long texts the place is one of the latest with the same two tokens, and none agrees in more tokens among them.
func TestFindInLongTexts(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	x := newText(4000)
	list, tip := []int32{0}, x.add(nowhere, 0)
	for range 3000 {
		token := int32(r.IntN(5))
		tip, list = x.add(tip, token), append(list, token)
		best, match, tries := nowhere, leastMatch-1, 0
		for at := len(list) - 2; at > 0 && tries < mostTries-1; at-- { // the tip itself is the first one
			n := 0
			for n < longestMatch && n <= at && list[at-n] == list[len(list)-1-n] {
				n++
			}
			if n >= 2 {
				tries++
			}
			if n > match {
				best, match = at, n
			}
		}
		at, n := x.find(tip)
		if len(list) < 3 {
			continue
		}
		if int(at) != best || best != nowhere && n != match {
			t.Fatalf("after %d tokens: place %d of %d tokens, want %d of %d", len(list), at, n, best, match)
		}
	}
}

// A text that is full forgets its oldest tokens. Places that it finds are of tokens that it holds, also after it has
// counted as far as it can and begun again.
func TestTextForgets(t *testing.T) {
	type link struct{ token, before int32 }
	r := rand.New(rand.NewPCG(1, 2))
	x := newText(60)
	all := map[int32]link{}
	tips := []int32{nowhere, nowhere, nowhere}
	found := 0
	for i := range 5000 {
		if i == 2500 {
			x.count, x.heads = math.MaxInt32, nil
		}
		if x.count == math.MaxInt32 {
			clear(all)
		}
		k := r.IntN(len(tips))
		token := int32(r.IntN(3))
		before := tips[k]
		tips[k] = x.add(before, token)
		all[tips[k]] = link{token, before}
		at, match := x.find(tips[k])
		if at == nowhere {
			continue
		}
		found++
		if at < 0 || at >= x.count || x.count-at > 64 || match < leastMatch {
			t.Fatalf("after %d tokens: place %d, %d tokens agree", x.count, at, match)
		}
		for a, b, n := at, tips[k], 0; n < match; a, b, n = all[a].before, all[b].before, n+1 {
			if all[a].token != all[b].token || x.count-a > 64 {
				t.Fatalf("after %d tokens: %d tokens agree at place %d, not the %d-th", x.count, match, at, n)
			}
		}
		draft, _ := x.draft(nil, tips[k], longestDraft)
		if len(draft) == 0 || slices.ContainsFunc(draft, func(id int32) bool { return id < 0 || id > 2 }) {
			t.Fatalf("after %d tokens: draft %v", x.count, draft)
		}
	}
	if !x.holds(x.count-64) || x.holds(x.count-65) || !x.holds(x.count-1) || x.holds(x.count) || x.holds(nowhere) {
		t.Errorf("of %d tokens, it does not hold the last 64", x.count)
	}
	if found < 4000 || len(x.tokens) != 64 || len(x.heads) != 64 {
		t.Errorf("%d found; %d tokens, %d heads", found, len(x.tokens), len(x.heads))
	}
}

// Texts that grow by turns have their own tokens before each.
func TestTextsGrowByTurns(t *testing.T) {
	x := newText(64)
	a, b := int32(nowhere), int32(nowhere)
	for i, token := range []int32{1, 2, 3, 1, 2} {
		a = x.add(a, token)
		if i < 4 {
			b = x.add(b, []int32{7, 8, 9, 3}[i])
		}
	}
	if draft, match := x.draft(nil, a, 2); !slices.Equal(draft, []int32{3, 1}) || match != 2 {
		t.Errorf("%v behind %d tokens", draft, match)
	}
}

// A row is added to a step as long as it is expected to bring more for its time than the others.
func TestPlan(t *testing.T) {
	plan := func(ridge, most int, matches ...int) (ahead []int) {
		e := &Engine{opt: Options{PageTokens: 16}, pages: newPagePool(100, 16)}
		d := newDrafter(Options{Ridge: ridge})
		d.most, e.drafts = most, d
		s := newSchedule(e, make([]rollout.Request, len(matches)), rollout.Params{MaxNewTokens: 100})
		for i, match := range matches {
			s.reqs[i] = rollout.Request{Prompt: repetition(match), Seeds: []uint64{1}}
			s.running = append(s.running, &sequence{req: i, most: 9, pages: make([]int32, 3)})
		}
		d.plan(s)
		for _, q := range s.running {
			ahead = append(ahead, len(q.draft))
		}
		return ahead
	}
	for _, tt := range []struct {
		ridge, most int
		matches     []int
		want        []int
	}{
		// Two tokens agree: chances of 1/2, 1/2 · 3/5, then times 4/6, 5/7, … Four rows take the time of 12 and bring
		// 1 + 0.5 + 0.3 + 0.2 = 2 tokens, so another must bring more than 2/12; it has 1/7.
		{8, 99, []int{2}, []int{3}},
		{1, 99, []int{2}, []int{0}}, // 1 token in the time of 2 rows; 1/2 in 1 more
		{8, 3, []int{2}, []int{2}},  // rows end
		{8, 99, []int{0}, []int{0}},
		// The second sequence, whose chances are 8/9 and more, takes all rows before the first, whose chance is 1/2.
		{8, 5, []int{2, 16}, []int{0, 3}},
		{0, 99, []int{16}, []int{0}},
		{1, 99, []int{16, 16, 16}, []int{0, 0, 0}}, // more than two rows
	} {
		if got := plan(tt.ridge, tt.most, tt.matches...); !slices.Equal(got, tt.want) {
			t.Errorf("ridge %d, %d rows, %v tokens agree: drafts of %v, want %v", tt.ridge, tt.most, tt.matches, got, tt.want)
		}
	}
}

// Drafts take pages up to full length, while one stays for each completion that may need one, and for one that starts.
func TestReserve(t *testing.T) {
	for _, tt := range []struct{ free, n, rows, pages, growing int }{
		{9, 5, 5, 1, 1}, // the page ends behind them
		{9, 6, 21, 2, 1},
		{9, 30, 37, 3, 0},
		{9, 60, 37, 3, 0},
		{3, 30, 21, 2, 1},
		{2, 30, 5, 1, 1},
	} {
		s := &schedule{e: &Engine{opt: Options{PageTokens: 16}, pages: newPagePool(tt.free, 16)}, growing: 1}
		q := &sequence{pos: 10, pages: []int32{0}, most: 3}
		s.running = append(s.running, q)
		if rows := s.reserve(q, tt.n); rows != tt.rows || len(q.pages) != tt.pages || s.growing != tt.growing {
			t.Errorf("%d rows, %d free pages: %d rows on %d pages, %d grow; want %d on %d, %d", tt.n, tt.free, rows, len(q.pages),
				s.growing, tt.rows, tt.pages, tt.growing)
		}
	}
}

// A completion takes its draws up to the first that is not the drafted token. Each is counted by the tokens that agree
// before it.
func TestTakeDraws(t *testing.T) {
	e := &Engine{opt: Options{PageTokens: 16}, drafts: newDrafter(Options{})}
	s := newSchedule(e, []rollout.Request{{Prompt: []int32{1}, Seeds: []uint64{1}}}, rollout.Params{MaxNewTokens: 50})
	q := &sequence{draft: []int32{5, 6, 7, 8}, match: 14, most: 4, pos: 20}
	out := drawn{IDs: []int32{0, 5, 6, 9, 8, 4}, LogProb: []float32{0, -1, -2, -3, -4, -5}, Entropy: []float32{0, 1, 2, 3, 4, 5}}
	if !s.takeDraws(q, out, 1, 5) {
		t.Error("the completion ended")
	}
	if want := []drawnToken{{5, -1, 1}, {6, -2, 2}, {9, -3, 3}}; !slices.Equal(q.drawn, want) || q.pos != 23 || q.token != 9 {
		t.Errorf("%v, want %v; token %d at %d", q.drawn, want, q.token, q.pos)
	}
	want := [longestMatch + 1]rate{14: {1, 1}, 15: {1, 1}, 16: {1, 0}}
	if e.drafts.rates != want || e.stats.SampledTokens != 3 || e.stats.KeptDrafts != 2 {
		t.Errorf("%v, want %v; %+v", e.drafts.rates, want, e.stats)
	}
}

// repetition returns a prompt whose last n tokens were there before, and where 30 others followed.
func repetition(n int) (prompt []int32) {
	for i := range n {
		prompt = append(prompt, int32(100+i))
	}
	for i := range 30 {
		prompt = append(prompt, int32(200+i))
	}
	return append(prompt, prompt[:n]...)
}

// ridged is a backend that says how many rows it multiplies in the time of a read.
type ridged struct {
	kernels.Backend
	rows int
}

func (b ridged) RowsPerRead(bytes int) int { return b.rows }

// The ridge of a model is lower where rows choose experts, which are read for each.
func TestRidge(t *testing.T) {
	be := openCPU(t, 1)
	sparse := toy
	sparse.Sparse, sparse.Experts = []bool{true, true}, model.Experts{Count: 8, Top: 2, FFN: 40}
	common, own := sparse.RowWeights()
	if dense, none := toy.RowWeights(); none != 0 || own != 2*2*3*40*48 || common <= 0 || common >= dense {
		t.Errorf("weights of a row: %v and %v, without experts %v and %v", common, own, dense, none)
	}
	if got := Ridge(ridged{be, 8}, toy); got != 8 {
		t.Errorf("dense: %d", got)
	}
	// A row takes own and an eighth of all, in the time of as many weights.
	if got, want := Ridge(ridged{be, 8}, sparse), int(common/(own+(common+own)/8)); got != want || got >= 4 {
		t.Errorf("sparse: %d, want %d", got, want)
	}
	if got := Ridge(dirty{be}, toy); got != 0 {
		t.Errorf("a backend that does not say: %d", got)
	}
	if small, large := be.RowsPerRead(1<<20), be.RowsPerRead(1<<30); small >= large || small < 1 {
		t.Errorf("%d rows for weights in a cache, %d for others", small, large)
	}
}

// Counts decide after a while, and fade.
func TestRates(t *testing.T) {
	var r rate
	if got := r.of(2); got != 0.5 {
		t.Errorf("before any: %v", got)
	}
	for range 92 {
		r.count(false)
	}
	if got := r.of(2); got != 0.04 { // 4 of 100
		t.Errorf("after 92 that failed: %v", got)
	}
	for range 10_000 {
		r.count(true)
	}
	if got := r.of(2); got < 0.99 || r.drafted > 1024 {
		t.Errorf("after 10,000 that were kept: %v, %+v", got, r)
	}
}

// A call begins with requests that the text does not have, and half of what was counted; so does Serve when it has no
// requests left.
func TestCallsBegin(t *testing.T) {
	d := newDrafter(Options{})
	for name, begin := range map[string]func(){"a call": d.reset, "no requests left": func() {
		(&schedule{e: &Engine{drafts: d}, feed: &feed{}}).restart()
	}} {
		d.known[2], d.rates[3] = 9, rate{8, 6}
		if begin(); len(d.known) != 0 || d.rates[3] != (rate{4, 3}) {
			t.Errorf("%s: %v, %+v", name, d.known, d.rates[3])
		}
	}
}

// The text gets each prompt and each token of a completion once, also of completions that ended before it got the
// prompt, that start again, or whose place in memory another takes.
func TestTextOfSchedule(t *testing.T) {
	e := &Engine{opt: Options{PageTokens: 16}, pages: newPagePool(9, 16), vocab: letters{}, drafts: newDrafter(Options{Ridge: 1})}
	d := e.drafts
	s := newSchedule(e, []rollout.Request{{Prompt: []int32{1, 2}, Seeds: make([]uint64, 3)}, {Prompt: []int32{9}, Seeds: make([]uint64, 1)}},
		rollout.Params{MaxNewTokens: 50})
	draws := func(q *sequence, tokens ...int32) {
		for _, id := range tokens {
			q.drawn = append(q.drawn, drawnToken{id: id})
		}
	}
	begin := func(req, k int, tokens ...int32) *sequence {
		q := e.sequence()
		q.req, q.k = req, k
		draws(q, tokens...)
		return q
	}
	first := begin(0, 0, 3, 4)
	s.end(first, rollout.FinishStop)
	q := begin(0, 1, 5)
	d.look(s, q) // the prompt, 3 4, 5
	draws(q, 6)
	d.look(s, q)
	d.look(s, q)
	draws(q, 7)
	s.end(q, rollout.FinishStop)
	q = begin(0, 2, 8)
	s.end(q, rollout.FinishStop)
	q = begin(1, 0, 10)
	d.look(s, q)
	var got []string
	for _, x := range d.text.tokens {
		got = append(got, fmt.Sprint(x.token, x.before))
	}
	want := []string{"1 -1", "2 0", "3 1", "4 2", "5 1", "6 4", "7 5", "8 1", "9 -1", "10 8"}
	if !slices.Equal(got, want) {
		t.Errorf("tokens and those before them: %q, want %q", got, want)
	}
}

// TestDrafts: completions have the same bits with drafts, for any sampling, sizing and room of the cache, and take
// fewer steps.
func TestDrafts(t *testing.T) {
	for i, c := range []model.Config{toy, toy, linearToy()} {
		operand := []kernels.DType{kernels.F32, kernels.BF16}[i%2]
		be := openAs(t, cpu.Options{Threads: 2, Operand: operand})
		m := newModel(t, be, c)
		r := rand.New(rand.NewPCG(5, 7))
		reqs := requests(r, 5, 4, 30)
		for _, p := range []rollout.Params{
			{Temperature: 0}, {Temperature: 0.3}, {Temperature: 1, TopK: 3}, {Temperature: 0.5, Stop: []string{"qq", "ab"}},
			{Temperature: 0.3, Penalties: rollout.Penalties{Repetition: 1.1}},
			{Temperature: 0, MinNewTokens: 40, Bias: []rollout.Bias{{Token: 0, Add: 2}, {Token: 3, Add: -1}},
				Penalties: rollout.Penalties{Frequency: 0.1, Presence: 0.2}},
		} {
			p.TopP, p.MaxNewTokens = 1, 60
			want := sample(t, newEngine(t, be, m, Options{MaxSequences: 20, PageTokens: 16, MaxTokens: 90}), reqs, p)
			for _, o := range []Options{{MaxSequences: 1, StepRows: 20}, {MaxSequences: 3, StepRows: 5}, {MaxSequences: 20, CacheTokens: 160},
				{MaxSequences: 8, CacheTokens: 400, StepRows: 100}, {MaxSequences: 20, StepRows: 300}} {
				o.PageTokens, o.MaxTokens = 16, 90
				plain := newEngine(t, be, m, o)
				sample(t, plain, reqs, p)
				o.Ridge = 32
				e := newEngine(t, dirty{be}, m, o)
				for range 2 {
					if d := differ(sample(t, e, reqs, p), want); d != "" {
						t.Fatalf("%s, %+v, %+v: %s", operand, p, o, d)
					}
					if pages := e.pages.available(); pages != o.pages() {
						t.Fatalf("%s, %+v: %d of %d pages are free afterwards", operand, o, pages, o.pages())
					}
				}
				got, alone := e.Stats(), plain.Stats()
				if got.SampledTokens != 2*alone.SampledTokens || got.KeptDrafts > got.Drafts ||
					alone.Restarts+got.Restarts == 0 && got.PromptTokens != 2*alone.PromptTokens {
					t.Errorf("%+v, without drafts %+v", got, alone)
				}
				drafts := !c.Recurrent()
				if drafts != (got.Drafts > 0) || drafts && p.Temperature == 0 && !adjusts(&p) && got.Steps >= 2*alone.Steps {
					t.Errorf("%s, %+v, %+v: %+v, without drafts %+v", operand, p, o, got, alone)
				}
			}
		}
	}
}

// What a call has sampled is guessed in the next one.
func TestDraftsOfEarlierCalls(t *testing.T) {
	be := openCPU(t, 1)
	e := newEngine(t, be, newModel(t, be, toy), Options{MaxSequences: 2, PageTokens: 16, MaxTokens: 96, StepRows: 40, Ridge: 64})
	reqs := requests(rand.New(rand.NewPCG(5, 7)), 6, 1, 30)
	p := rollout.Params{TopP: 1, Temperature: 1, MaxNewTokens: 60}
	want := sample(t, e, reqs, p)
	first := e.Stats()
	for i, r := range reqs { // other prompts, the same text
		reqs[i].Prompt = append([]int32{7}, r.Prompt...)
	}
	if d := differ(sample(t, e, reqs, p), want); d == "" {
		t.Fatal("other prompts have the same completions")
	}
	other := e.Stats().KeptDrafts - first.KeptDrafts
	for i, r := range reqs {
		reqs[i].Prompt = r.Prompt[1:]
	}
	before := e.Stats()
	if d := differ(sample(t, e, reqs, p), want); d != "" {
		t.Error(d)
	}
	again := e.Stats()
	if kept := again.KeptDrafts - before.KeptDrafts; kept < 2*other || 2*(again.Steps-before.Steps) > first.Steps {
		t.Errorf("%+v, then %d kept, then %d in %d steps", first, other, kept, again.Steps-before.Steps)
	}
}

// With tools, too: what they say is drafted like any other token, and is in the text.
func TestDraftsWithTurns(t *testing.T) {
	be := openCPU(t, 2)
	m := newModel(t, be, toy)
	reqs := withProblems(requests(rand.New(rand.NewPCG(5, 7)), 6, 5, 30))
	p := rollout.Params{Temperature: 0.6, TopP: 1, MaxNewTokens: 60, Stop: []string{"qq"}, Environment: oracle{4, noDelay, ""}}
	o := Options{MaxSequences: 30, PageTokens: 16, MaxTokens: 90}
	want := sample(t, newEngine(t, be, m, o), reqs, p)
	for _, o := range []Options{o, {MaxSequences: 5, CacheTokens: 200}, {MaxSequences: 1, StepRows: 40}} {
		o.PageTokens, o.MaxTokens, o.Ridge = 16, 90, 32
		e := newEngine(t, dirty{be}, m, o)
		got := sample(t, e, reqs, p)
		if d := differ(got, want); d != "" {
			t.Errorf("%+v: %s", o, d)
		}
		for i := range want {
			for k := range want[i] {
				if fmt.Sprint(got[i][k].Inserted) != fmt.Sprint(want[i][k].Inserted) {
					t.Errorf("%+v: request %d, completion %d: inserted %v, want %v", o, i, k, got[i][k].Inserted, want[i][k].Inserted)
				}
			}
		}
		if n := e.Stats(); n.KeptDrafts == 0 || n.KeptDrafts == n.Drafts {
			t.Errorf("%+v: %+v", o, n)
		}
	}
}

// A model that repeats itself takes a fraction of the steps.
func TestSureDrafts(t *testing.T) {
	be := openCPU(t, 1)
	e, err := New(be, newModel(t, be, toy), unending{}, Options{MaxSequences: 1, PageTokens: 16, MaxTokens: 96, StepRows: 32,
		Ridge: 64})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	out := sample(t, e, []rollout.Request{{Prompt: []int32{3, 4}, Seeds: []uint64{1}}},
		rollout.Params{TopP: 1, MaxNewTokens: 90})
	if s := e.Stats(); s.SampledTokens != 90 || s.Steps > 40 {
		t.Errorf("%+v: %q", s, out[0][0].Text)
	}
}
