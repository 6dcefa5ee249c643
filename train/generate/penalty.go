package generate

import (
	"fmt"
	"math"
	"slices"

	"exp/train/model"
	"exp/train/rollout"
)

// tally counts the tokens of a prompt and its completion, for penalties. It follows the completion's drawn tokens when
// it is asked, so that nothing but them decides: a completion that starts again has the same one.
type tally struct {
	place map[int32]int // of a token in list
	list  []counted
	seen  int // drawn tokens that are counted
	began bool
}

// counted is a token of the prompt, n = 0, or one that was sampled n times.
type counted struct {
	token int32
	n     int
}

// reset forgets all tokens.
func (t *tally) reset() {
	clear(t.place)
	t.list, t.seen, t.began = t.list[:0], 0, false
}

func (t *tally) add(token int32, n int) {
	at, ok := t.place[token]
	if !ok {
		if t.place == nil {
			t.place = map[int32]int{}
		}
		at = len(t.list)
		t.place[token], t.list = at, append(t.list, counted{token: token})
	}
	t.list[at].n += n
}

// follow counts a completion's tokens, of a vocabulary, up to the last one.
func (t *tally) follow(q *sequence, prompt []int32, p rollout.Penalties, vocab int) {
	if !t.began && p.Repeats() {
		for _, token := range prompt {
			if int(token) < vocab { // else an image's, which is never drawn
				t.add(token, 0)
			}
		}
	}
	t.began = true
	for ; t.seen < len(q.drawn); t.seen++ {
		switch token := q.drawn[t.seen].id; {
		case !q.wasInserted(t.seen):
			t.add(token, 1)
		case p.Repeats():
			t.add(token, 0)
		}
	}
}

// ahead counts drafted tokens too, and returns how many tokens were in list before.
func (t *tally) ahead(draft []int32) (had int) {
	had = len(t.list)
	for _, token := range draft {
		t.add(token, 1)
	}
	return had
}

// back undoes ahead.
func (t *tally) back(draft []int32, had int) {
	for _, token := range draft {
		t.list[t.place[token]].n--
	}
	for _, c := range t.list[had:] {
		delete(t.place, c.token)
	}
	t.list = t.list[:had]
}

// wasInserted reports whether the environment wrote the token at a place of drawn.
func (q *sequence) wasInserted(at int) bool {
	return slices.ContainsFunc(q.inserted, func(x rollout.Span) bool { return x.Start <= at && at < x.End })
}

// adjusts reports whether logits may change before draws.
func adjusts(p *rollout.Params) bool {
	return p.Penalties.On() || len(p.Bias) > 0 || p.MinNewTokens > 0
}

// adjustments appends how logits change before a draw: one for each token that has any.
func (s *schedule) adjustments(d draw, list []model.Adjustment) []model.Adjustment {
	if s.given != nil {
		return append(list, s.raise(d))
	}
	q := d.q
	p := s.params(q.req)
	first := len(list)
	if p.Penalties.On() {
		q.tally.follow(q, s.reqs[q.req].Prompt, p.Penalties, s.e.m.Config.Vocab)
		draft := q.draft[:d.behind]
		defer q.tally.back(draft, q.tally.ahead(draft))
		factor := float32(1)
		if p.Penalties.Repeats() {
			factor = float32(p.Penalties.Repetition)
		}
		for _, c := range q.tally.list {
			a := model.Adjustment{Token: c.token, Factor: factor}
			if c.n > 0 {
				a.After = float32(p.Penalties.Frequency*float64(c.n) + p.Penalties.Presence)
			}
			list = append(list, a)
		}
	}
	penalized := len(list)
	before := func(token int32, add float32) {
		at, ok := q.tally.place[token]
		if !ok {
			at = slices.IndexFunc(list[penalized:], func(a model.Adjustment) bool { return a.Token == token })
			if at < 0 {
				at, list = len(list)-penalized, append(list, model.Adjustment{Token: token, Factor: 1})
			}
			at += penalized - first
		}
		list[first+at].Before += add
	}
	for _, b := range p.Bias {
		before(b.Token, float32(b.Add))
	}
	if s.early(d) {
		vocabulary, own := s.endsOf(q)
		for _, token := range slices.Concat(vocabulary, own) {
			if token >= 0 && int(token) < s.e.m.Config.Vocab {
				before(token, float32(math.Inf(-1)))
			}
		}
	}
	return list
}

// checkAdjustments returns an error for settings that are out of bounds, for a vocabulary of some tokens.
func checkAdjustments(p *rollout.Params, vocab int) error {
	finite := func(v float64) bool { return math.Abs(v) <= math.MaxFloat32 }
	n := p.Penalties
	switch {
	case n.Repetition != 0 && !(n.Repetition > 0 && finite(n.Repetition)):
		return fmt.Errorf("generate: repetition_penalty is %g, must be above 0", n.Repetition)
	case !finite(n.Presence):
		return fmt.Errorf("generate: presence_penalty is %g, must be finite", n.Presence)
	case !finite(n.Frequency):
		return fmt.Errorf("generate: frequency_penalty is %g, must be finite", n.Frequency)
	case p.MinNewTokens < 0 || p.MinNewTokens > p.MaxNewTokens:
		return fmt.Errorf("generate: min_new_tokens is %d, must be 0 to max_new_tokens, %d", p.MinNewTokens,
			p.MaxNewTokens)
	}
	for i, b := range p.Bias {
		switch {
		case b.Token < 0 || int(b.Token) >= vocab:
			return fmt.Errorf("generate: a bias is for token %d, the model has 0 to %d", b.Token, vocab-1)
		case !finite(b.Add):
			return fmt.Errorf("generate: the bias of token %d is %g, must be finite", b.Token, b.Add)
		case slices.ContainsFunc(p.Bias[:i], func(x rollout.Bias) bool { return x.Token == b.Token }):
			return fmt.Errorf("generate: token %d has two biases", b.Token)
		}
	}
	return nil
}
