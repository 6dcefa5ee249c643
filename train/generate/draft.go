package generate

import (
	"encoding/binary"
	"slices"

	"exp/kernels"
	"exp/train/model"
	"exp/train/ranks"
)

// drafter guesses the next tokens of running completions: those that followed the same tokens before, in the
// prompt, in the completion or in others (prompt lookup; SuffixDecoding, arXiv:2411.04975). A step computes a draft in
// rows behind the completion's next token, and draws after each. A draw depends on weights, the tokens before it, seed
// and parameters alone. So the draws that repeat the draft, and the first that does not, are the completion's, bit for
// bit; the rest is dropped, and its keys and values are written again. Speculative decoding (arXiv:2211.17192) keeps
// the distribution of tokens; this keeps the tokens.
//
// Drafts pay where steps have few rows, which take about as long as reading the weights: in a chat, in a small
// evaluation, for the last long completions of a rollout.
type drafter struct {
	ridge int  // Options.Ridge, the least of the ranks that share products once they have agreed
	alike bool // they have
	vocab int  // tokens beyond it are of images; 0: none are
	most  int  // draws of a step
	drew  bool // the last step had drafts
	text  *text
	known map[int]int32          // requests whose prompts are in the text, with the place of the last token
	rates [longestMatch + 1]rate // by the tokens before a drafted one that agree
}

const (
	leastMatch   = 2  // tokens that agree before a draft
	longestMatch = 16 // as far as they are counted
	longestDraft = 15
)

// rate counts drafted tokens.
type rate struct{ drafted, kept float64 }

// of returns the share of drafted tokens that are kept, as expected for match tokens that agree: more of them
// promise more, until tokens are counted.
func (r rate) of(match int) float64 {
	const before = 8 // tokens that the promise counts for
	return (r.kept + before*float64(match)/float64(match+2)) / (r.drafted + before)
}

// count counts a token.
func (r *rate) count(kept bool) {
	const memory = 1024
	if r.drafted++; kept {
		r.kept++
	}
	if r.drafted > memory {
		r.fade()
	}
}

// fade halves what was counted.
func (r *rate) fade() { r.drafted, r.kept = r.drafted/2, r.kept/2 }

// Ridge returns Options.Ridge of a model. Experts are read for each row that chooses them, at the cost that a weight
// has when all rows share it.
func Ridge(be kernels.Backend, c model.Config) int {
	common, own := c.RowWeights()
	rows := float64(kernels.RowsPerRead(be, int(common+own)*be.Operand().Size()))
	return int(rows * common / (rows*own + common + own))
}

func newDrafter(o Options) *drafter {
	const least, most = 1 << 12, 1 << 20 // tokens of the text, at 20 bytes
	return &drafter{ridge: o.Ridge, most: o.Draws(), text: newText(min(max(o.MaxSequences*o.MaxTokens, least), most)),
		known: map[int]int32{}}
}

// agree takes the least ridge of the ranks that share products: they must compute the same drafts, though their
// processors may differ.
func (d *drafter) agree(products ranks.Group) error {
	if d.alike || products == nil || products.Size() == 1 {
		return nil
	}
	all, err := ranks.Share(products, binary.LittleEndian.AppendUint32(nil, uint32(d.ridge)))
	if err != nil {
		return err
	}
	for _, b := range all {
		d.ridge = min(d.ridge, int(binary.LittleEndian.Uint32(b)))
	}
	d.alike = true
	return nil
}

// reset begins a call. What was counted fades: a policy changes, and drafts that failed are tried again.
func (d *drafter) reset() {
	clear(d.known)
	for i := range d.rates {
		d.rates[i].fade()
	}
}

// chance returns how often the token is kept that follows match tokens that agree.
func (d *drafter) chance(match int) float64 {
	match = min(match, longestMatch)
	return d.rates[match].of(match)
}

// plan gives the running completions drafts. A step of n rows takes as long as ridge + n of them, so another row
// pays as long as its chance to bring a token is above the tokens that each of those brings so far.
func (d *drafter) plan(s *schedule) {
	if d.drew {
		for _, q := range s.running {
			q.draft = q.draft[:0]
		}
	}
	if s.given != nil {
		d.give(s)
		return
	}
	rows := len(s.running)
	d.drew = d.ridge > 0 && rows <= 2*d.ridge && !s.e.state.exist() && !s.computesPrompts()
	if !d.drew {
		return
	}
	for _, q := range s.running {
		d.look(s, q)
	}
	tokens := float64(rows)
	for rows < d.most {
		var best *sequence
		for _, q := range s.running {
			if q.ahead < len(q.draft) && (best == nil || q.chance > best.chance) {
				best = q
			}
		}
		if best == nil || best.chance*float64(d.ridge+rows) <= tokens {
			break
		}
		rows, tokens = rows+1, tokens+best.chance
		best.ahead++
		best.chance *= d.chance(best.match + best.ahead)
	}
	for _, q := range s.running {
		q.draft = q.draft[:min(q.ahead, s.reserve(q, q.ahead))]
	}
}

// look finds what may follow q.
func (d *drafter) look(s *schedule, q *sequence) {
	q.ahead = 0
	p := s.params(q.req)
	d.join(s, q.req)
	d.follow(q)
	q.draft, q.match = d.text.draft(q.draft, q.tip, min(longestDraft, p.MaxNewTokens-len(q.drawn)-1))
	q.draft = allowed(q.form, d.drawable(q.draft))
	q.chance = d.chance(q.match)
}

// drawable returns a draft up to the first token of an image, which is never drawn.
func (d *drafter) drawable(draft []int32) []int32 {
	image := slices.IndexFunc(draft, func(token int32) bool { return int(token) >= d.vocab })
	if image >= 0 && d.vocab > 0 {
		return draft[:image]
	}
	return draft
}

// join puts the prompt of a request into the text, and its completions that have ended.
func (d *drafter) join(s *schedule, req int) {
	if _, ok := d.known[req]; ok {
		return
	}
	end := d.add(nowhere, s.reqs[req].Prompt)
	d.known[req] = end
	if s.feed == nil {
		for _, c := range s.out[req] {
			d.add(end, c.Tokens)
		}
	}
}

// add puts tokens behind a place of the text, and returns the last one's.
func (d *drafter) add(place int32, tokens []int32) int32 {
	for _, token := range tokens {
		place = d.text.add(place, token)
	}
	return place
}

// follow puts into the text what q has drawn since the last time.
func (d *drafter) follow(q *sequence) {
	if q.known == 0 {
		q.tip = d.known[q.req]
	}
	for ; q.known < len(q.drawn); q.known++ {
		q.tip = d.text.add(q.tip, q.drawn[q.known].id)
	}
}

// ended notes that a completion has ended.
func (d *drafter) ended(q *sequence) {
	if _, ok := d.known[q.req]; ok {
		d.follow(q)
	}
}

// dropped forgets the first n requests. The numbers of the others become less by n.
func (d *drafter) dropped(n int) {
	moved := make(map[int]int32, len(d.known))
	for req, place := range d.known {
		if req >= n {
			moved[req-n] = place
		}
	}
	d.known = moved
}

// count counts a drafted token of q, the i-th, that the draw repeated or not.
func (d *drafter) count(q *sequence, i int, kept bool) {
	d.rates[min(q.match+i, longestMatch)].count(kept)
}

// computesPrompts reports whether a prompt has tokens for the next step.
func (s *schedule) computesPrompts() bool {
	for _, pr := range s.prompts {
		if pr.admitted && pr.done < pr.shared() {
			return true
		}
	}
	return false
}

// reserve takes the pages that the next n tokens after q's next one want, as long as enough are left, and returns
// for how many of them there are pages.
func (s *schedule) reserve(q *sequence, n int) int {
	size := s.e.opt.PageTokens
	for q.pos+n >= size*len(q.pages) && len(q.pages) < q.most && s.enough(1) {
		s.grow(q)
		if len(q.pages) == q.most {
			s.growing--
		}
	}
	return size*len(q.pages) - q.pos - 1
}
