package generate

import (
	"exp/kernels"
	"exp/train/model"
)

type drawn = model.Drawn

// stepBuilder builds the arrays of a step; they are reused.
type stepBuilder struct {
	st  model.Step
	out drawn
}

// build adds one row for each running completion, then prompt tokens up to the row limit.
func (b *stepBuilder) build(e *Engine, s *schedule) model.Step {
	st := &b.st
	st.Tokens, st.Pos, st.Seq, st.Slots = st.Tokens[:0], st.Pos[:0], st.Seq[:0], st.Slots[:0]
	st.Table, st.Sample, st.U, st.States = st.Table[:0], st.Sample[:0], st.U[:0], st.States[:0]
	st.Runs, st.Finish = st.Runs[:0], false
	st.Width = e.opt.tableWidth()
	size := e.opt.PageTokens
	seq := int32(0)
	table := func(pages []int32) {
		st.Table = append(st.Table, pages...)
		for range st.Width - len(pages) {
			st.Table = append(st.Table, 0)
		}
	}
	row := func(token int32, pos int, pages []int32) {
		st.Tokens = append(st.Tokens, token)
		st.Pos = append(st.Pos, int32(pos))
		st.Seq = append(st.Seq, seq)
		st.Slots = append(st.Slots, pages[pos/size]*int32(size)+int32(pos%size))
	}
	for i, q := range s.running {
		table(q.pages)
		st.States = append(st.States, q.state)
		row(q.token, q.pos, q.pages)
		st.Sample = append(st.Sample, int32(i))
		st.U = append(st.U, uniform(q.seed, len(q.drawn)))
		seq++
	}
	for _, pr := range s.prompts {
		if !pr.admitted {
			continue
		}
		scored := s.feed != nil && s.feed.asks[pr.req].Prompted
		if !scored {
			s.adopt(pr)
		}
		n := min(pr.shared()-pr.done, e.opt.StepRows-len(st.Tokens))
		if n <= 0 {
			continue
		}
		if len(st.Table) == e.opt.tableRows()*st.Width {
			break
		}
		table(pr.pages)
		st.States = append(st.States, pr.state)
		for range n {
			if scored {
				s.feed.score(pr, len(st.Tokens), st)
			}
			row(pr.tokens[pr.done], pr.done, pr.pages)
			pr.done++
		}
		s.publish(pr)
		seq++
	}
	if s.feed != nil {
		s.feed.group(s.running, st)
	}
	return *st
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
