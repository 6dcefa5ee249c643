package generate

import (
	"bytes"
	"slices"

	"exp/train/rollout"
)

// schedule decides, step by step, which prompts are computed and which completions run.
type schedule struct {
	e    *Engine
	reqs []rollout.Request
	p    rollout.Params
	out  [][]rollout.Completion

	prompts []*prompt // being computed or waiting for slots, in order
	running []*sequence
	copies  []int32 // page pairs to copy before the next step
	nextReq int     // first request without a prompt
	ended   int
	total   int

	// Room for completions' results.
	tokens  []int32
	numbers []float32
}

// prompt is a request whose prompt is in the cache or being computed.
type prompt struct {
	req   int
	pages []int32
	done  int // tokens in the cache, out of shared()
	found int // leading pages that other prompts can find, or that were found elsewhere
	nextK int // first completion that has not started
}

// sequence is a completion in a slot. With hundreds of them, a step finds none in the
// processor's caches, so what it needs of each fits in few cache lines.
type sequence struct {
	seed     uint64
	pos      int   // position of the token that the next step computes
	token    int32 // the token itself
	pages    []int32
	drawn    []drawnToken
	reserved int // pages promised for its future tokens
	req, k   int
	text     []byte // text of drawn, if there are stop strings
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

func (s *schedule) finished() bool { return s.ended == s.total }

// shared returns how many tokens of a prompt its completions share: all but the last, which
// each completion computes in its own row.
func (s *schedule) shared(pr *prompt) int { return len(s.reqs[pr.req].Prompt) - 1 }

func (s *schedule) pagesFor(tokens int) int {
	return (tokens + s.e.opt.PageTokens - 1) / s.e.opt.PageTokens
}

// admit starts the completions of finished prompts while there are slots and pages, then
// admits new prompts.
func (s *schedule) admit() {
	s.copies = s.copies[:0]
	for len(s.prompts) > 0 && len(s.running) < s.e.opt.MaxSequences {
		pr := s.prompts[0]
		if pr.done < s.shared(pr) || !s.start(pr) {
			break
		}
		if pr.nextK == len(s.reqs[pr.req].Seeds) {
			for _, id := range pr.pages {
				s.e.pages.drop(id)
			}
			s.prompts = s.prompts[1:]
		}
	}
	// Keep enough prompts ahead to fill the free slots.
	waiting := 0
	for _, pr := range s.prompts {
		waiting += len(s.reqs[pr.req].Seeds) - pr.nextK
	}
	for s.nextReq < len(s.reqs) && (len(s.prompts) == 0 || len(s.running)+waiting < s.e.opt.MaxSequences) {
		r := s.reqs[s.nextReq]
		if len(r.Seeds) > 0 {
			pr := &prompt{req: s.nextReq}
			need := s.pagesFor(s.shared(pr))
			if s.e.pages.available() < need+s.e.opt.tableWidth() {
				return // one page table's worth stays free, so the first prompt can always start
			}
			for range need {
				pr.pages = append(pr.pages, s.e.pages.take())
			}
			s.prompts = append(s.prompts, pr)
			waiting += len(r.Seeds)
		}
		s.nextReq++
	}
}

// start puts the next completion of pr in a slot, if there are pages for its maximum
// length.
func (s *schedule) start(pr *prompt) bool {
	r := s.reqs[pr.req]
	size := s.e.opt.PageTokens
	full := s.shared(pr) / size // pages that will not be written again
	need := s.pagesFor(s.shared(pr)+s.p.MaxNewTokens) - full
	if s.e.pages.available() < need {
		return false
	}
	q := s.e.sequence()
	q.req, q.k, q.seed, q.reserved, q.pos, q.token = pr.req, pr.nextK, r.Seeds[pr.nextK], need, s.shared(pr),
		r.Prompt[len(r.Prompt)-1]
	s.e.pages.reserve(need)
	for _, id := range pr.pages[:full] {
		s.e.pages.share(id)
		q.pages = append(q.pages, id)
	}
	switch last := pr.nextK+1 == len(r.Seeds); {
	case full == len(pr.pages):
	case last: // no later completion copies the page
		s.e.pages.share(pr.pages[full])
		q.pages = append(q.pages, pr.pages[full])
		s.e.pages.unreserve(1)
		q.reserved--
	default:
		s.copies = append(s.copies, pr.pages[full], s.grow(q))
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
	q.pages, q.drawn, q.text = q.pages[:0], q.drawn[:0], q.text[:0]
	return q
}

// grow gives q its next page.
func (s *schedule) grow(q *sequence) int32 {
	s.e.pages.unreserve(1)
	q.reserved--
	id := s.e.pages.take()
	q.pages = append(q.pages, id)
	return id
}

// take gives the running completions their drawn tokens, in the step's order, and clears the
// slots of completions that ended.
func (s *schedule) take(out drawn) {
	live := s.running[:0]
	for i, q := range s.running {
		id := out.IDs[i]
		q.drawn = append(q.drawn, drawnToken{id, out.LogProb[i], out.Entropy[i]})
		switch {
		case s.stops(q, id):
			s.end(q, rollout.FinishStop)
		case len(q.drawn) == s.p.MaxNewTokens:
			s.end(q, rollout.FinishLength)
		default:
			q.pos++
			q.token = id
			live = append(live, q)
		}
	}
	clear(s.running[len(live):])
	s.running = live
}

// stops reports whether q ends with the last drawn token id, and updates q.text.
func (s *schedule) stops(q *sequence, id int32) bool {
	if len(s.p.Stop) > 0 {
		if piece := s.e.vocab.Piece(id); len(piece) > 0 {
			q.text = append(q.text, piece...)
			if at := s.stopAt(q.text, len(piece)); at >= 0 {
				q.text = q.text[:at]
				return true
			}
		}
	}
	return slices.Contains(s.e.end, id)
}

// end stores q's result and frees its pages and its arrays.
func (s *schedule) end(q *sequence, finish rollout.Finish) {
	n := len(q.drawn)
	c := rollout.Completion{Tokens: cut(&s.tokens, n), LogProbs: cut(&s.numbers, n), Entropies: cut(&s.numbers, n),
		Finish: finish}
	for i, d := range q.drawn {
		c.Tokens[i], c.LogProbs[i], c.Entropies[i] = d.id, d.logProb, d.entropy
		if len(s.p.Stop) == 0 {
			q.text = append(q.text, s.e.vocab.Piece(d.id)...)
		}
	}
	c.Text = string(q.text)
	s.out[q.req][q.k] = c
	s.e.pages.unreserve(q.reserved)
	for _, id := range q.pages {
		s.e.pages.drop(id)
	}
	s.e.idle = append(s.e.idle, q)
	s.ended++
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

// stopAt returns the start of the first stop string that the last n bytes of text
// completed, or -1.
func (s *schedule) stopAt(text []byte, n int) int {
	at := -1
	for _, stop := range s.p.Stop {
		from := max(0, len(text)-n-len(stop)+1)
		if i := bytes.Index(text[from:], []byte(stop)); i >= 0 && (at < 0 || from+i < at) {
			at = from + i
		}
	}
	return at
}
