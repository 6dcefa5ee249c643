package generate

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"exp/kernels"
	"exp/train/model"
	"exp/train/rollout"
)

// MostTop is the largest Ask.Top.
const MostTop = 20

// Ask is a request that joins others while they are sampled. Its completions are those that Sample draws for
// the same prompt, seeds and parameters, whatever else is sampled at the time.
type Ask struct {
	rollout.Request
	rollout.Params // no Environment, no Agent

	Ends       []int32 // further tokens that end a completion
	IgnoreEnds bool    // the vocabulary's end tokens do not
	Scored     bool    // computes Scores of sampled tokens
	Prompted   bool    // and of the prompt's
	Top        int     // likeliest tokens in each score
	// Spelled gives tokens without a piece in the vocabulary, such as special ones, a text in completions.
	Spelled map[int32]string

	Context context.Context // when it ends, the request leaves without a word
	// Drew is told that a completion goes on after another token, with its text so far, which it must not keep.
	// Both functions are called by Serve and must not wait.
	Drew  func(k int, text []byte)
	Ended func(k int, c rollout.Completion)
	// Done is told that nothing of the request is computed any more: its completions have ended, or it has left. It
	// is not told when Serve ends before.
	Done func()

	Scores  [][]Score // [K][T], before Drew and Ended are told
	Prompts []Score   // [P], the first is empty; before the first token
	Found   int       // tokens of the prompt that were in the cache already; before the first token
	left    int       // completions that have not ended
	gone    bool      // Context has ended
}

// Score is the log-prob of a token under the model, at temperature 1, with the log-probs of the likeliest ones.
type Score struct {
	Token   int32
	LogProb float32
	Top     []int32
	TopProb []float32 // of Top
}

// Check returns an error for a request that the engine cannot take. A prompt that fills Options.MaxTokens gets one
// token all the same: nothing is computed after the last one. Check may be called while Serve runs.
func (e *Engine) Check(a *Ask) error {
	if len(a.Seeds) == 0 {
		return fmt.Errorf("generate: a request without seeds")
	}
	if a.Top > MostTop {
		return fmt.Errorf("generate: %d likeliest tokens, at most %d", a.Top, MostTop)
	}
	for _, id := range a.Prompt {
		switch image := int(id) >= e.m.Config.Vocab; {
		case id < 0 || image && !e.m.Config.ReadsImages():
			return fmt.Errorf("generate: the prompt has token %d, the model has 0 to %d", id, e.m.Config.Vocab-1)
		case image && a.Prompted:
			return errors.New("generate: the tokens of a prompt with images have no log-probs")
		}
	}
	return e.check([]rollout.Request{a.Request}, a.Params, e.opt.MaxTokens+1)
}

// feed is what a schedule knows of requests that come one by one.
type feed struct {
	e      *Engine
	asks   []*Ask // by request
	open   []*Ask // those with completions that have not ended
	scorer *model.Scorer
	order  []int // rows in the order of the step's draws
	out    drawn // of the step, in that order
	rows   []scoredRow
	scores []Score // of the step's draws, by row
	index  []int32
	target []int32
	scored model.Scored
}

// scoredRow is a row of a step that is scored, and where the score goes.
type scoredRow struct {
	ask   *Ask
	token int // of the prompt; -1: the row's draw
}

// FeedBytes returns the memory that Serve takes besides the engine's.
func (o Options) FeedBytes(c model.Config, operand kernels.DType) int {
	return c.ScorerBytes(o.scoredAtOnce(), MostTop, operand)
}

// scoredAtOnce bounds the rows that are scored together.
func (o Options) scoredAtOnce() int { return min(o.Rows(), 256) }

// Serve samples the requests that come until ctx ends; its error is then ctx's. Each has passed Check.
func (e *Engine) Serve(ctx context.Context, asks <-chan *Ask) error { return e.serve(ctx, asks, true) }

// serve is Serve. Where requests may not be scored, it takes no memory for that.
func (e *Engine) serve(ctx context.Context, asks <-chan *Ask, scored bool) (err error) {
	f := &feed{e: e}
	if scored {
		if f.scorer, err = model.NewScorer(e.be, e.m.Config, e.opt.scoredAtOnce(), MostTop); err != nil {
			return err
		}
		defer f.scorer.Close()
	}
	e.pages.reset()
	e.state.reset()
	e.drafts.reset()
	s := newSchedule(e, nil, rollout.Params{})
	s.feed = f
	for {
		if s.finished() {
			s.restart()
			select {
			case a := <-asks:
				s.join(a)
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		for more := true; more; {
			select {
			case a := <-asks:
				s.join(a)
			default:
				more = false
			}
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		s.dropGone()
		if !s.finished() {
			e.advance(s, kernels.Sampling{})
		}
		s.forget()
	}
}

// join adds a request behind all others.
func (s *schedule) join(a *Ask) {
	a.left = len(a.Seeds)
	if a.Scored {
		a.Scores = make([][]Score, len(a.Seeds))
	}
	if a.Prompted {
		a.Prompts = make([]Score, len(a.Prompt))
	}
	s.reqs = append(s.reqs, a.Request)
	s.feed.asks, s.feed.open = append(s.feed.asks, a), append(s.feed.open, a)
	s.total += len(a.Seeds)
}

// restart forgets the requests of a schedule that has ended them all.
func (s *schedule) restart() {
	s.reqs, s.feed.asks, s.nextReq, s.ended, s.total = s.reqs[:0], s.feed.asks[:0], 0, 0, 0
	s.e.drafts.reset()
}

// forget drops the first requests when they have ended and are many.
func (s *schedule) forget() {
	const many = 1024
	n := 0
	for n < s.nextReq && s.feed.asks[n].left == 0 {
		n++
	}
	if n < many {
		return
	}
	s.reqs, s.feed.asks = slices.Delete(s.reqs, 0, n), slices.Delete(s.feed.asks, 0, n)
	s.nextReq -= n
	s.e.drafts.dropped(n)
	for _, pr := range s.prompts {
		if pr.req -= n; pr.again != nil {
			pr.again.req -= n
		}
	}
	for _, q := range s.running {
		q.req -= n
	}
}

// dropGone takes the slots and the pages of requests that nobody waits for.
func (s *schedule) dropGone() {
	left := false
	for _, a := range s.feed.open { // once: another may leave at any moment
		a.gone = a.Context != nil && a.Context.Err() != nil
		left = left || a.gone
	}
	if !left {
		return
	}
	gone := func(req int) bool { return s.feed.asks[req].gone }
	s.running = slices.DeleteFunc(s.running, func(q *sequence) bool {
		if !gone(q.req) {
			return false
		}
		s.keep(q)
		s.leave(q)
		s.e.idle = append(s.e.idle, q)
		return true
	})
	s.prompts = slices.DeleteFunc(s.prompts, func(pr *prompt) bool {
		if gone(pr.req) {
			s.release(pr)
			return true
		}
		return false
	})
	for req := s.nextReq; req < len(s.reqs); req++ {
		if gone(req) {
			s.reqs[req].Seeds = nil // which starts no completion
		}
	}
	s.feed.open = slices.DeleteFunc(s.feed.open, func(a *Ask) bool {
		if !a.gone {
			return false
		}
		s.ended += a.left
		a.left = 0
		a.done()
		return true
	})
	s.short = false
}

// sampling returns how a sequence's tokens are drawn.
func (f *feed) sampling(q *sequence) kernels.Sampling {
	p := &f.asks[q.req].Params
	return kernels.Sampling{Temperature: p.Temperature, TopK: p.TopK, TopP: p.TopP, MinP: p.MinP}
}

// group orders a step's draws so that those with the same parameters follow each other.
func (f *feed) group(draws []draw, st *model.Step) {
	f.order = f.order[:0]
	for i, d := range draws {
		p := f.sampling(d.q)
		at := slices.IndexFunc(f.order, func(j int) bool { return f.sampling(draws[j].q) == p })
		for at >= 0 && at < len(f.order) && f.sampling(draws[f.order[at]].q) == p {
			at++
		}
		if at < 0 {
			at = len(f.order)
		}
		f.order = slices.Insert(f.order, at, i)
	}
	for i, j := range f.order {
		d := draws[j]
		st.Sample[i], st.U[i] = int32(j), d.u()
		if p := f.sampling(d.q); i > 0 && f.sampling(draws[f.order[i-1]].q) == p {
			st.Runs[len(st.Runs)-1].Rows++
		} else {
			st.Runs = append(st.Runs, model.Run{Rows: 1, Sampling: p})
		}
	}
}

// scores reports whether the tokens of a prompt are scored.
func (s *schedule) scores(pr *prompt) bool { return s.feed != nil && s.feed.asks[pr.req].Prompted }

// score notes that the next row of a step, which computes a prompt's token, tells of the one after it.
func (f *feed) score(pr *prompt, row int, st *model.Step) {
	a := f.asks[pr.req]
	if pr.again != nil || pr.nextK > 0 || pr.done+1 >= len(a.Prompt) {
		return // computed again, for a completion
	}
	f.rows = append(f.rows, scoredRow{a, pr.done + 1})
	f.index, f.target = append(f.index, int32(row)), append(f.target, a.Prompt[pr.done+1])
	st.Finish = true
}

// took puts what a step drew into the order of its rows, and scores it.
func (f *feed) took(draws []draw, out drawn) {
	f.out = drawn{IDs: append(f.out.IDs[:0], out.IDs...), LogProb: append(f.out.LogProb[:0], out.LogProb...),
		Entropy: append(f.out.Entropy[:0], out.Entropy...)}
	for i, j := range f.order {
		out.IDs[j], out.LogProb[j], out.Entropy[j] = f.out.IDs[i], f.out.LogProb[i], f.out.Entropy[i]
	}
	stays := false
	for i, d := range draws {
		stays = d.behind == 0 || stays && out.IDs[i-1] == d.q.draft[d.behind-1]
		if a := f.asks[d.q.req]; a.Scored && stays {
			f.rows = append(f.rows, scoredRow{a, -1})
			f.index, f.target = append(f.index, int32(i)), append(f.target, out.IDs[i])
		}
	}
	if len(f.rows) == 0 {
		return
	}
	K := 0
	for _, r := range f.rows {
		K = max(K, r.ask.Top)
	}
	K = min(K, f.e.m.Config.Vocab)
	n, x := len(f.rows), &f.scored
	x.LogProb = slices.Grow(x.LogProb[:0], n)[:n]
	x.Top, x.TopProb = slices.Grow(x.Top[:0], n*K)[:n*K], slices.Grow(x.TopProb[:0], n*K)[:n*K]
	f.e.m.ScoreRows(f.e.dec, f.scorer, f.index, f.target, K, *x)
	f.scores = slices.Grow(f.scores[:0], len(draws))[:len(draws)]
	for i, r := range f.rows {
		k := min(r.ask.Top, K)
		lo, hi := i*K, i*K+k
		score := Score{f.target[i], x.LogProb[i], slices.Clone(x.Top[lo:hi]), slices.Clone(x.TopProb[lo:hi])}
		if r.token >= 0 {
			r.ask.Prompts[r.token] = score
		} else {
			f.scores[f.index[i]] = score
		}
	}
	f.rows, f.index, f.target = f.rows[:0], f.index[:0], f.target[:0]
}

// endsOf returns the tokens that end a completion: the vocabulary's, and further ones.
func (f *feed) endsOf(q *sequence, end []int32) (vocabulary, own []int32) {
	a := f.asks[q.req]
	if a.IgnoreEnds {
		end = nil
	}
	return end, a.Ends
}

// keep gives a completion the score of the draw of a row, which it has taken.
func (f *feed) keep(q *sequence, row int) {
	if a := f.asks[q.req]; a.Scored {
		a.Scores[q.k] = append(a.Scores[q.k], f.scores[row])
	}
}

// drew tells that a completion goes on.
func (f *feed) drew(q *sequence) {
	if a := f.asks[q.req]; a.Drew != nil {
		a.Drew(q.k, q.text)
	}
}

// ended tells that a completion has ended.
func (f *feed) ended(q *sequence, c rollout.Completion) {
	a := f.asks[q.req]
	if a.left--; a.left == 0 {
		f.open = slices.DeleteFunc(f.open, func(b *Ask) bool { return a == b })
	}
	a.Ended(q.k, c)
	if a.left == 0 {
		a.done()
	}
}

func (a *Ask) done() {
	if a.Done != nil {
		a.Done()
	}
}
