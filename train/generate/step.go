package generate

import (
	"slices"

	"exp/kernels"
	"exp/train/model"
	"exp/train/rollout"
)

type drawn = model.Drawn

// stepBuilder builds the arrays of a step; they are reused.
type stepBuilder struct {
	st    model.Step
	draws []draw // by row
	out   drawn
	lists []model.Adjustment // of all draws
	ends  [][2]int           // of each draw within lists
	words []uint32           // of the masks of all draws
}

// draw is a draw of a completion, behind some drafted tokens.
type draw struct {
	q      *sequence
	behind int
	form   rollout.FormState // before it; nil: none
}

// u returns the number that decides the draw.
func (d draw) u() float32 { return uniform(d.q.seed, len(d.q.drawn)+d.behind) }

// build adds a row for each running completion and for each token of its draft, then prompt tokens up to the row
// limit.
func (b *stepBuilder) build(e *Engine, s *schedule) model.Step {
	b.reset(e.opt.tableWidth())
	st := &b.st
	size := e.opt.PageTokens
	seq := int32(0)
	table := func(pages []int32) {
		st.Table = append(st.Table, pages...)
		for range st.Width - len(pages) {
			st.Table = append(st.Table, 0)
		}
	}
	placed := s.placed()
	row := func(token int32, pos int, pages []int32, at model.Place) {
		if placed {
			st.Places = append(st.Places, at)
		}
		st.Tokens = append(st.Tokens, token)
		st.Pos = append(st.Pos, int32(pos))
		st.Seq = append(st.Seq, seq)
		st.Slots = append(st.Slots, pages[pos/size]*int32(size)+int32(pos%size))
	}
	draws := func(q *sequence, token int32, behind int) {
		d := draw{q, behind, q.formBehind(behind)}
		st.Sample = append(st.Sample, int32(len(st.Tokens)))
		st.U = append(st.U, d.u())
		at := int32(q.pos+behind) + q.moved
		row(token, q.pos+behind, q.pages, model.Place{at, at, at})
		b.draws = append(b.draws, d)
	}
	for _, q := range s.running {
		table(q.pages)
		st.States = append(st.States, q.state)
		draws(q, q.token, 0)
		for i, token := range q.draft {
			draws(q, token, i+1)
		}
		seq++
	}
	for _, pr := range s.prompts {
		if !pr.admitted {
			continue
		}
		s.adopt(pr)
		n := s.untorn(pr, min(pr.shared()-pr.done, e.opt.StepRows-len(st.Tokens)))
		if n <= 0 {
			continue
		}
		if len(st.Table) == e.opt.tableRows()*st.Width {
			break
		}
		table(pr.pages)
		st.States = append(st.States, pr.state)
		scored := s.scores(pr)
		for range n {
			if scored {
				s.feed.score(pr, len(st.Tokens), st)
			}
			row(pr.tokens[pr.done], pr.done, pr.pages, pr.place())
			pr.done++
		}
		s.publish(pr, s.wanted(pr))
		seq++
	}
	if s.feed != nil {
		s.feed.group(b.draws, st)
	}
	b.adjust(s)
	b.restrict(s)
	return *st
}

// untorn returns the most of the next n tokens of a prompt that do not end within an image whose tokens see each
// other.
func (s *schedule) untorn(pr *prompt, n int) int {
	for n > 0 && s.e.m.Ahead(pr.tokens[pr.done+n-1]) > 0 {
		n--
	}
	return n
}

// reset empties the arrays.
func (b *stepBuilder) reset(width int) {
	st := &b.st
	st.Tokens, st.Pos, st.Seq, st.Slots = st.Tokens[:0], st.Pos[:0], st.Seq[:0], st.Slots[:0]
	st.Table, st.Sample, st.U, st.States = st.Table[:0], st.Sample[:0], st.U[:0], st.States[:0]
	st.Runs, st.Adjust, st.Masks = st.Runs[:0], st.Adjust[:0], st.Masks[:0]
	st.Finish, st.Places = false, st.Places[:0]
	st.Width, b.draws = width, b.draws[:0]
}

// placed reports whether any prompt or completion at hand has images.
func (s *schedule) placed() bool {
	return slices.ContainsFunc(s.running, func(q *sequence) bool { return q.moved != 0 }) ||
		slices.ContainsFunc(s.prompts, func(pr *prompt) bool { return pr.places != nil })
}

// place returns the place of the next token.
func (pr *prompt) place() model.Place {
	if pr.places != nil {
		return pr.places[pr.done]
	}
	at := int32(pr.done)
	return model.Place{at, at, at}
}

// adjust notes how the logits of each draw change, if any do.
func (b *stepBuilder) adjust(s *schedule) {
	if len(b.draws) == 0 || s.given == nil && !slices.ContainsFunc(s.running,
		func(q *sequence) bool { return adjusts(s.params(q.req)) }) {
		return
	}
	b.lists = b.lists[:0]
	for _, row := range b.st.Sample {
		from := len(b.lists)
		b.lists = s.adjustments(b.draws[row], b.lists)
		b.ends = append(b.ends[:len(b.st.Adjust)], [2]int{from, len(b.lists)})
		b.st.Adjust = append(b.st.Adjust, nil)
	}
	for i, e := range b.ends { // lists has moved, maybe
		b.st.Adjust[i] = b.lists[e[0]:e[1]]
	}
}

// drawn returns room for n tokens.
func (b *stepBuilder) drawn(n int) drawn {
	if cap(b.out.IDs) < n {
		b.out = drawn{IDs: make([]int32, n), LogProb: make([]float32, n), Entropy: make([]float32, n)}
	}
	return drawn{IDs: b.out.IDs[:n], LogProb: b.out.LogProb[:n], Entropy: b.out.Entropy[:n]}
}

// uniform returns the number that decides the draw of a completion's i-th token.
func uniform(seed uint64, i int) float32 {
	w := kernels.Philox(kernels.PhiloxKey(seed), [4]uint32{uint32(i), 0, 0, 0})
	return kernels.Uniform24(w[0])
}
