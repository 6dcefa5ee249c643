package generate

import (
	"bytes"
	"context"
	"encoding/gob"
	"fmt"
	"slices"
	"sync"

	"exp/train/ranks"
	"exp/train/rollout"
)

// turns runs the environment beside the engine. A completion that called a tool leaves its slot and keeps its
// pages; when the reply is there, it waits for a slot again like a prompt whose first tokens are in the cache.
// When a reply comes changes no result.
type turns struct {
	env     rollout.Environment
	marks   []string
	ctx     context.Context
	cancel  context.CancelFunc
	replies chan reply
	work    sync.WaitGroup
	away    []*sequence // completions that wait for a reply
	// Of ranks that share products: they, and the replies that this step asked for.
	products ranks.Group
	asked    []func(context.Context) (rollout.Reply, error) // [len(away)]
}

// reply is what the environment inserts into a completion.
type reply struct {
	q *sequence
	rollout.Reply
	err error
}

// newTurns returns nil without an environment. total bounds the replies that wait to be taken.
func newTurns(ctx context.Context, env rollout.Environment, total int, products ranks.Group) *turns {
	if env == nil {
		return nil
	}
	t := &turns{env: env, marks: env.Marks(), replies: make(chan reply, total)}
	if products != nil && products.Size() > 1 {
		t.products = products
	}
	t.ctx, t.cancel = context.WithCancel(ctx)
	return t
}

// close ends the work on replies that nobody waits for any more.
func (t *turns) close() {
	if t != nil {
		t.cancel()
		t.work.Wait()
	}
}

// after reads the token that q has drawn, and decides how q goes on: finish is 0 if it draws another one, or
// leaves for a reply, as reply says.
func (s *schedule) after(q *sequence, id int32) (answer func(context.Context) (rollout.Reply, error),
	finish rollout.Finish) {
	if s.given != nil {
		if len(s.rest(q)) == 0 {
			finish = rollout.FinishStop
		}
		return nil, finish
	}
	stopped, marked := s.read(q, id)
	full := len(q.drawn) >= s.params(q.req).MaxNewTokens
	ended := s.ends(q, id)
	if q.form != nil && !ended {
		q.form = q.form.Next(id)
	}
	if s.turns != nil && !stopped && (ended || marked) {
		turn := rollout.Turn{Problem: s.reqs[q.req].Problem, Number: 1 + len(q.inserted), Text: string(q.text),
			Start: q.turnStart(), End: -1}
		if ended {
			turn.End = id
		}
		switch a := s.turns.env.Read(turn); {
		case a.Over:
			return nil, rollout.FinishTurns
		case a.Reply != nil && full:
			return nil, rollout.FinishLength
		case a.Reply != nil:
			return a.Reply, 0
		}
	}
	switch {
	case stopped || ended || s.complete(q):
		return nil, rollout.FinishStop
	case full:
		return nil, rollout.FinishLength
	}
	return nil, 0
}

// ends reports whether a token ends q.
func (s *schedule) ends(q *sequence, id int32) bool {
	vocabulary, own := s.endsOf(q)
	return slices.Contains(vocabulary, id) || slices.Contains(own, id)
}

// endsOf returns the tokens that end q: the vocabulary's, and further ones.
func (s *schedule) endsOf(q *sequence) (vocabulary, own []int32) {
	if s.feed != nil {
		return s.feed.endsOf(q, s.e.end)
	}
	return s.e.end, nil
}

// reads reports whether somebody reads q's text before its end.
func (s *schedule) reads(q *sequence) bool {
	return s.turns != nil || s.feed != nil || len(s.params(q.req).Stop) > 0
}

// turnStart returns where the text of q's current turn begins.
func (q *sequence) turnStart() int {
	if len(q.inserted) == 0 {
		return 0
	}
	return q.inserted[len(q.inserted)-1].TextEnd
}

// read adds a drawn token to q's text where somebody reads it before the end. It reports whether a stop string
// is complete, which it takes away, or a mark.
func (s *schedule) read(q *sequence, id int32) (stopped, marked bool) {
	if !s.reads(q) {
		return false, false
	}
	piece := s.e.vocab.Piece(id)
	if len(piece) == 0 && s.feed != nil {
		piece = []byte(s.feed.asks[q.req].Spelled[id])
	}
	if len(piece) == 0 {
		return false, false
	}
	q.text = append(q.text, piece...)
	p := s.params(q.req)
	if at := completed(p.Stop, q.text, len(piece), q.turnStart()); at >= 0 && len(q.drawn) > p.MinNewTokens {
		q.text = q.text[:at]
		return true, false
	}
	return false, s.turns != nil && completed(s.turns.marks, q.text, len(piece), q.turnStart()) >= 0
}

// ask sends q away for a reply.
func (s *schedule) ask(q *sequence, answer func(context.Context) (rollout.Reply, error)) {
	if len(q.pages) < q.most {
		s.growing--
	}
	t := s.turns
	t.away = append(t.away, q)
	if t.products != nil {
		t.asked = append(t.asked, answer)
		return
	}
	t.work.Go(func() {
		r, err := answer(t.ctx)
		t.replies <- reply{q, r, err}
	})
}

// takeReplies brings back the completions whose replies are there. With wait it waits for one.
func (s *schedule) takeReplies(ctx context.Context, wait bool) error {
	switch {
	case s.turns == nil:
		return nil
	case s.turns.products != nil:
		return s.meet()
	}
	for {
		var r reply
		if wait {
			select {
			case r = <-s.turns.replies:
			case <-ctx.Done():
				return ctx.Err()
			}
		} else {
			select {
			case r = <-s.turns.replies:
			default:
				return nil
			}
		}
		if r.err != nil {
			return fmt.Errorf("request %d, completion %d, turn %d: %w", r.q.req, r.q.k, len(r.q.inserted)+1, r.err)
		}
		s.returned(r)
		wait = false
	}
}

// meet takes the replies of a step on ranks that share products: the first of them asks for all and tells the
// others, so that all go on alike.
func (s *schedule) meet() error {
	t := s.turns
	if len(t.away) == 0 {
		return nil
	}
	list := make([]rollout.Reply, len(t.away))
	var failed error
	if t.products.Rank() == 0 {
		errs := make([]error, len(list))
		for i, answer := range t.asked {
			t.work.Go(func() { list[i], errs[i] = answer(t.ctx) })
		}
		t.work.Wait()
		if i := slices.IndexFunc(errs, func(err error) bool { return err != nil }); i >= 0 {
			q := t.away[i]
			failed = fmt.Errorf("request %d, completion %d, turn %d: %w", q.req, q.k, len(q.inserted)+1, errs[i])
		}
	}
	if err := ranks.Agree(t.products, failed); err != nil {
		return err
	}
	var b bytes.Buffer
	if err := gob.NewEncoder(&b).Encode(list); err != nil {
		panic("generate: " + err.Error()) // memory takes everything
	}
	all, err := ranks.Share(t.products, b.Bytes())
	if err != nil {
		return err
	}
	list = nil
	if err := gob.NewDecoder(bytes.NewReader(all[0])).Decode(&list); err != nil {
		return fmt.Errorf("replies of the first rank: %w", err)
	}
	away := slices.Clone(t.away)
	t.asked = t.asked[:0]
	for i, q := range away {
		s.returned(reply{q: q, Reply: list[i]})
	}
	return nil
}

// returned ends q, or lets it go on after its reply.
func (s *schedule) returned(r reply) {
	q := r.q
	at := slices.Index(s.turns.away, q)
	s.turns.away = slices.Delete(s.turns.away, at, at+1)
	q.most = len(q.pages) // it counts among no growing ones
	switch room := s.p.MaxNewTokens - len(q.drawn); {
	case r.Over:
		s.end(q, rollout.FinishStop)
		return
	case len(r.Tokens) >= room: // no token could follow
		s.end(q, rollout.FinishLength)
		return
	}
	cached := q.pos + 1 // tokens; the last drawn one is not among them
	if len(r.Tokens) > 0 {
		span := rollout.Span{Start: len(q.drawn), End: len(q.drawn) + len(r.Tokens), TextStart: len(q.text)}
		for _, id := range r.Tokens {
			q.drawn = append(q.drawn, drawnToken{id: id})
			q.text = append(q.text, s.e.vocab.Piece(id)...)
		}
		span.TextEnd = len(q.text)
		q.inserted = append(q.inserted, span)
	}
	pr := s.again(q)
	if len(q.pages) > 0 {
		pr.pages, pr.done = slices.Clone(q.pages), cached
		q.pages = q.pages[:0]
		pr.state, q.state = q.state, noState
	}
	s.insert(pr)
}

// emptied takes the pages of the completion that waits for a reply and is last in order, and reports whether
// there was one.
func (s *schedule) emptied() bool {
	if s.turns == nil {
		return false
	}
	var last *sequence
	for _, q := range s.turns.away {
		if len(q.pages) > 0 && (last == nil || q.req > last.req || q.req == last.req && q.k > last.k) {
			last = q
		}
	}
	if last == nil {
		return false
	}
	last.most = len(last.pages)
	s.keep(last)
	s.leave(last)
	s.e.stats.Restarts++
	return true
}

// waits reports whether completions wait for replies.
func (s *schedule) waits() bool { return s.turns != nil && len(s.turns.away) > 0 }
