package generate

import (
	"slices"

	"exp/kernels"
	"exp/train/rollout"
)

// A completion with a form draws only tokens that its form allows; rollout.Form says what that changes. Where the form
// allows the text to end, tokens without a text that end completions are allowed, too. If the vocabulary has none, a
// completion ends by itself once its form allows no more text. The engine computes the part of a draft that the form
// allows.

// restrict notes which tokens the draws may take, if some have forms.
func (b *stepBuilder) restrict(s *schedule) {
	if !slices.ContainsFunc(b.draws, func(d draw) bool { return d.form != nil }) {
		return
	}
	V := s.e.m.Config.Vocab
	W := kernels.MaskWords(V)
	b.words = slices.Grow(b.words[:0], W*len(b.draws)) // so that it does not move
	for _, row := range b.st.Sample {
		d := b.draws[row]
		if d.form == nil {
			b.st.Masks = append(b.st.Masks, nil)
			continue
		}
		from := len(b.words)
		b.words = b.words[:from+W]
		mask := b.words[from:]
		clear(mask[copy(mask, d.form.Mask()):])
		if d.form.Ends() && !s.early(d) {
			for _, id := range s.mute(d.q) {
				mask[id/32] |= 1 << (id % 32)
			}
		}
		b.st.Masks = append(b.st.Masks, mask)
	}
}

// early reports whether no token may end a completion at a draw yet. One whose form is complete may end.
func (s *schedule) early(d draw) bool {
	if d.form != nil && !d.form.More() {
		return false
	}
	return len(d.q.drawn)+d.behind < s.params(d.q.req).MinNewTokens
}

// mute returns the tokens without a text that end q.
func (s *schedule) mute(q *sequence) (list []int32) {
	vocabulary, own := s.endsOf(q)
	for _, id := range slices.Concat(vocabulary, own) {
		if id >= 0 && int(id) < s.e.m.Config.Vocab && len(s.e.vocab.Piece(id)) == 0 {
			list = append(list, id)
		}
	}
	return list
}

// complete reports whether q ends because its form allows neither text nor a token that would end it.
func (s *schedule) complete(q *sequence) bool {
	return q.form != nil && !q.form.More() && len(s.mute(q)) == 0
}

// formBehind returns the state of q's form behind some tokens of its draft, which its form allows; nil without a form.
func (q *sequence) formBehind(n int) rollout.FormState {
	form := q.form
	for i := 0; i < n && form != nil; i++ {
		form = form.Next(q.draft[i])
	}
	return form
}

// allowed returns the beginning of a draft that a form allows.
func allowed(form rollout.FormState, draft []int32) []int32 {
	if form == nil {
		return draft
	}
	for i, token := range draft {
		if form = form.Next(token); form == nil {
			return draft[:i]
		}
	}
	return draft
}
