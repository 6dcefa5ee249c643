package generate

import (
	"bytes"
	"cmp"
	"slices"

	"exp/train/model"
	"exp/train/rollout"
)

// schedule decides, step by step, which prompts are computed and which completions run.
type schedule struct {
	e    *Engine
	reqs []rollout.Request
	p    rollout.Params
	out  [][]rollout.Completion

	prompts []*prompt // waiting, being computed or waiting for slots, in order; those with pages come first
	running []*sequence
	copies  []int32     // page pairs to copy before the next step
	common  []int       // leading pages of each request's prompt that others have too; nil: not known
	nextReq int         // first request without a prompt
	growing int         // running completions that may need more pages
	short   bool        // pages ran out: nothing starts until a completion ends
	turns   *turns      // nil: completions are one turn
	given   [][][]int32 // tokens of the completions, which are scored; nil: they are drawn
	feed    *feed       // of requests that come while others are sampled; nil: all are there
	ended   int
	total   int

	// Room for completions' results.
	tokens  []int32
	numbers []float32

	known []int32 // room for the tokens of a completion
	found []int32 // room for the pages of a prompt
}

// prompt is a request whose prompt is in the cache or being computed, or a completion that starts
// again or goes on after a reply, whose drawn tokens then belong to its prompt.
type prompt struct {
	req      int
	tokens   []int32
	places   []model.Place // of tokens; nil without images
	next     int32         // position of text behind tokens
	again    *sequence     // the completion that continues; nil for a request
	admitted bool          // it has its pages
	pages    []int32
	done     int   // tokens in the cache, out of shared()
	found    int   // leading pages that publish has seen
	nextK    int   // first completion that has not started
	state    int32 // slot of its state; noState: none yet
}

// sequence is a completion in a slot. With hundreds of them, a step finds none in the
// processor's caches, so what it needs of each fits in few cache lines.
type sequence struct {
	seed   uint64
	pos    int   // position of the token that the next step computes
	token  int32 // the token itself
	moved  int32 // what positions of text add to pos, behind images
	pages  []int32
	state  int32 // slot of its state
	most   int   // pages at full length
	drawn  []drawnToken
	req, k int
	text   []byte // text of drawn, if there are stop strings or turns

	inserted []rollout.Span    // parts of drawn that the environment wrote
	form     rollout.FormState // of text; nil: it has none
	tally    tally

	// Of the drafter.
	draft  []int32 // tokens that may follow the next one's draw
	match  int     // tokens that agree before them
	ahead  int     // planned tokens of draft
	chance float64 // that the next one is kept, with all before it
	tip    int32   // place of its last known token in the text
	known  int     // tokens of drawn that are there
}

type drawnToken struct {
	id               int32
	logProb, entropy float32
}

func newSchedule(e *Engine, reqs []rollout.Request, p rollout.Params) *schedule {
	s := &schedule{e: e, reqs: reqs, p: p, out: make([][]rollout.Completion, len(reqs))}
	for i, r := range reqs {
		s.out[i] = make([]rollout.Completion, len(r.Seeds))
		s.total += len(r.Seeds)
	}
	return s
}

// params returns the parameters of a request.
func (s *schedule) params(req int) *rollout.Params {
	if s.feed != nil {
		return &s.feed.asks[req].Params
	}
	return &s.p
}

func (s *schedule) finished() bool { return s.ended == s.total }

// shared returns how many tokens of a prompt its completions share: all but the last, which
// each completion computes in its own row.
func (pr *prompt) shared() int { return len(pr.tokens) - 1 }

// admit gives the running completions the pages that the next step needs, starts the completions
// of finished prompts while there are slots and pages, then admits new prompts.
func (s *schedule) admit() {
	s.copies, s.e.state.copies = s.copies[:0], s.e.state.copies[:0]
	s.extend()
	for len(s.prompts) > 0 && len(s.running) < s.e.opt.MaxSequences {
		pr := s.prompts[0]
		if !pr.admitted || pr.done < pr.shared() {
			break
		}
		if !s.start(pr) {
			if len(s.running) > 0 || s.waits() {
				break
			}
			s.makeRoom() // of a later prompt: nothing else will give pages back
			continue
		}
		if pr.nextK == s.completions(pr) {
			s.release(pr)
			s.prompts = s.prompts[1:]
		}
	}
	// Keep enough prompts ahead to fill the free slots.
	waiting := 0
	for i, pr := range s.prompts {
		if i > 0 && len(s.running)+waiting >= s.e.opt.MaxSequences {
			return
		}
		for !s.give(pr) {
			if i > 0 || len(s.running) > 0 || s.waits() || !s.takeBack(pr) {
				return
			}
		}
		waiting += s.completions(pr) - pr.nextK
	}
	for s.nextReq < len(s.reqs) && (len(s.prompts) == 0 || len(s.running)+waiting < s.e.opt.MaxSequences) {
		if r := s.reqs[s.nextReq]; len(r.Seeds) > 0 {
			pr := s.prompt(s.nextReq, r.Prompt)
			if !s.give(pr) {
				return
			}
			s.prompts = append(s.prompts, pr)
			waiting += len(r.Seeds)
		}
		s.nextReq++
	}
}

// completions returns how many completions pr starts in all.
func (s *schedule) completions(pr *prompt) int {
	if pr.again != nil {
		return 1
	}
	return len(s.reqs[pr.req].Seeds)
}

// enough reports whether n pages may be taken: a page stays for each running completion that may need
// one, and for one that starts. Nothing starts while pages are short, unless nothing runs.
func (s *schedule) enough(n int) bool {
	if len(s.running) == 0 {
		s.short = false
	}
	return !s.short && s.e.pages.available() >= n+s.growing+1
}

// give gives pr its pages, if there are enough: those that hold its next tokens already, and others to compute the
// rest in.
func (s *schedule) give(pr *prompt) bool {
	if pr.admitted {
		return true
	}
	if !s.enough(0) || pr.state == noState && s.e.state.short() {
		return false
	}
	var found []int32
	if len(pr.pages) == 0 { // else adopt looks for more
		found = s.seek(pr)
	}
	need := s.e.opt.pagesOf(pr.shared()) - len(pr.pages) - len(found)
	if !s.enough(need + s.e.pages.idle(found)) {
		return false
	}
	if pr.state == noState {
		pr.state = s.e.state.take()
	}
	for _, page := range found { // before any is evicted
		s.e.pages.share(page)
		pr.pages = append(pr.pages, page)
	}
	s.took(pr, len(found))
	for range need {
		pr.pages = append(pr.pages, s.e.pages.take())
	}
	pr.admitted = true
	return true
}

// release takes pr's pages back. Those that others may look for stay findable.
func (s *schedule) release(pr *prompt) {
	s.publish(pr, s.wanted(pr))
	s.e.pages.leave(pr.pages)
	if s.feed != nil && pr.begins() {
		s.feed.asks[pr.req].Found = 0
	}
	s.e.state.drop(&pr.state)
	pr.pages, pr.done, pr.found, pr.admitted = pr.pages[:0], 0, 0, false
}

// extend gives each running completion the page of its next token. If none is left, the last
// prompt with pages gives them back, and if no prompt has any, the completion that is last in order
// does.
func (s *schedule) extend() {
	for i := 0; i < len(s.running); {
		q := s.running[i]
		switch {
		case q.pos/s.e.opt.PageTokens < len(q.pages):
			i++
		case s.e.pages.available() > 0:
			s.grow(q)
			if len(q.pages) == q.most {
				s.growing--
			}
			i++
		default:
			s.makeRoom()
			i = 0
		}
	}
}

// takeBack takes the pages of the last prompt that has some, other than keep, and reports whether there was one.
func (s *schedule) takeBack(keep *prompt) bool {
	for _, pr := range slices.Backward(s.prompts) {
		if pr != keep && len(pr.pages) > 0 {
			if pr.again != nil {
				s.e.stats.Restarts++
			}
			s.publish(pr, pr.done) // which it looks for when it begins again
			s.release(pr)
			return true
		}
	}
	return false
}

// makeRoom takes the pages of a prompt or a completion.
func (s *schedule) makeRoom() {
	s.short = true
	if s.takeBack(nil) || s.emptied() {
		return
	}
	last := 0
	for k, q := range s.running {
		if p := s.running[last]; q.req > p.req || q.req == p.req && q.k > p.k {
			last = k
		}
	}
	s.evict(last)
}

// evict takes the pages of a running completion, which starts again before all that are behind it in
// order.
func (s *schedule) evict(i int) {
	q := s.running[i]
	s.running = slices.Delete(s.running, i, i+1)
	s.keep(q)
	s.leave(q)
	s.insert(s.again(q))
	s.e.stats.Restarts++
}

// again returns the prompt with which q continues.
func (s *schedule) again(q *sequence) *prompt {
	tokens := slices.Clone(s.reqs[q.req].Prompt)
	for _, d := range q.drawn {
		tokens = append(tokens, d.id)
	}
	pr := s.prompt(q.req, tokens)
	pr.again = q
	return pr
}

// prompt returns a prompt for a request.
func (s *schedule) prompt(req int, tokens []int32) *prompt {
	pr := &prompt{req: req, tokens: tokens, state: noState}
	pr.places, pr.next = s.e.m.Places(tokens)
	return pr
}

// insert puts the prompt of a completion that continues before all that are behind it in order.
func (s *schedule) insert(pr *prompt) {
	at, _ := slices.BinarySearchFunc(s.prompts, pr, func(a, b *prompt) int {
		return cmp.Or(cmp.Compare(a.req, b.req), cmp.Compare(a.first(), b.first()))
	})
	s.prompts = slices.Insert(s.prompts, at, pr)
}

// leave takes the pages of q, which no longer runs.
func (s *schedule) leave(q *sequence) {
	if len(q.pages) < q.most {
		s.growing--
	}
	s.e.pages.leave(q.pages)
	q.pages = q.pages[:0]
	s.e.state.drop(&q.state)
}

// first returns the number of the first completion that pr starts.
func (pr *prompt) first() int {
	if pr.again != nil {
		return pr.again.k
	}
	return pr.nextK
}

// start puts the next completion of pr in a slot, if there are pages for its next token.
func (s *schedule) start(pr *prompt) bool {
	size := s.e.opt.PageTokens
	full := pr.shared() / size // pages that will not be written again
	last := pr.nextK+1 == s.completions(pr)
	if !s.enough(1) || !last && s.e.state.short() {
		return false
	}
	q := pr.again
	if q == nil {
		r := s.reqs[pr.req]
		q = s.e.sequence()
		q.req, q.k, q.seed = pr.req, pr.nextK, r.Seeds[pr.nextK]
		if f := s.params(q.req).Form; f != nil {
			q.form = f.Begin()
		}
	}
	q.pos, q.token, q.draft = pr.shared(), pr.tokens[pr.shared()], q.draft[:0]
	q.moved = pr.next - int32(len(pr.tokens))
	q.most = s.e.opt.pagesOf(len(pr.tokens) - len(q.drawn) + s.longest(q.req, q.k) - 1)
	for _, id := range pr.pages[:full] {
		s.e.pages.share(id)
		q.pages = append(q.pages, id)
	}
	s.e.state.start(pr, q, last)
	switch {
	case full == len(pr.pages):
		s.grow(q)
	case last: // no later completion copies the page
		s.e.pages.share(pr.pages[full])
		q.pages = append(q.pages, pr.pages[full])
	default:
		s.copies = append(s.copies, pr.pages[full], s.grow(q))
	}
	if len(q.pages) < q.most {
		s.growing++
	}
	s.running = append(s.running, q)
	pr.nextK++
	return true
}

// sequence returns an empty sequence.
func (e *Engine) sequence() *sequence {
	if len(e.idle) == 0 {
		return &sequence{}
	}
	q := e.idle[len(e.idle)-1]
	e.idle = e.idle[:len(e.idle)-1]
	q.pages, q.drawn, q.text, q.inserted, q.form = q.pages[:0], q.drawn[:0], q.text[:0], nil, nil
	q.tally.reset()
	q.tip, q.known = nowhere, 0
	return q
}

// grow gives q its next page.
func (s *schedule) grow(q *sequence) int32 {
	id := s.e.pages.take()
	q.pages = append(q.pages, id)
	return id
}

// take gives the running completions their drawn tokens, in the step's order, and clears the
// slots of completions that ended.
func (s *schedule) take(out drawn) {
	live, at := s.running[:0], 0
	for _, q := range s.running {
		n := 1 + len(q.draft)
		if s.takeDraws(q, out, at, n) {
			live = append(live, q)
		}
		at += n
	}
	clear(s.running[len(live):])
	s.running = live
}

// takeDraws gives q its n draws from at, up to the first that differs from its draft, and reports whether q goes on
// in its slot.
func (s *schedule) takeDraws(q *sequence, out drawn, at, n int) bool {
	for i := range n {
		t := drawnToken{out.IDs[at+i], out.LogProb[at+i], out.Entropy[at+i]}
		if s.given != nil {
			t = s.taken(q, t)
		}
		id := t.id
		q.drawn = append(q.drawn, t)
		s.e.stats.SampledTokens++
		if s.feed != nil {
			s.feed.keep(q, at+i)
		}
		kept := i < len(q.draft) && id == q.draft[i]
		if i < len(q.draft) && s.given == nil {
			s.e.drafts.count(q, i, kept)
		}
		switch answer, finish := s.after(q, id); {
		case finish != 0:
			s.end(q, finish)
			return false
		case answer != nil:
			s.ask(q, answer)
			return false
		}
		q.pos++
		q.token = id
		if s.feed != nil {
			s.feed.drew(q)
		}
		if !kept {
			break
		}
		s.e.stats.KeptDrafts++
	}
	return true
}

// end stores q's result and frees its pages and its arrays.
func (s *schedule) end(q *sequence, finish rollout.Finish) {
	n := len(q.drawn)
	c := rollout.Completion{Tokens: cut(&s.tokens, n), LogProbs: cut(&s.numbers, n), Entropies: cut(&s.numbers, n),
		Finish: finish, Inserted: q.inserted}
	for i, d := range q.drawn {
		c.Tokens[i], c.LogProbs[i], c.Entropies[i] = d.id, d.logProb, d.entropy
		if !s.reads(q) {
			q.text = append(q.text, s.e.vocab.Piece(d.id)...)
		}
	}
	c.Text = string(q.text)
	if s.feed != nil {
		s.keep(q) // whoever is told of the end may go on
		s.feed.ended(q, c)
	} else {
		s.out[q.req][q.k] = c
	}
	s.e.drafts.ended(q)
	s.leave(q)
	s.e.idle = append(s.e.idle, q)
	s.ended++
	s.short = false
}

// cut takes n elements off room. It allocates for many completions at a time.
func cut[T any](room *[]T, n int) []T {
	if len(*room) < n {
		*room = make([]T, max(n, 4096))
	}
	x := (*room)[:n:n]
	*room = (*room)[n:]
	return x
}

// completed returns the start of the first of some strings that the last n bytes of text completed, within
// text[from:], or -1.
func completed(strings []string, text []byte, n, from int) int {
	at := -1
	for _, x := range strings {
		lo := max(from, len(text)-n-len(x)+1)
		if i := bytes.Index(text[lo:], []byte(x)); i >= 0 && (at < 0 || lo+i < at) {
			at = lo + i
		}
	}
	return at
}
