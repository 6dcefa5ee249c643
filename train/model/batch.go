package model

import (
	"slices"

	"exp/kernels"
)

// Batch is a packed batch of sequences on the host. Sequence s is
// Tokens[Offsets[s]:Offsets[s+1]]: a prompt of Prompt[s] ≥ 1 tokens, then the completion.
// Completion tokens are the scored ones: row r of every [R] result belongs to the r-th
// completion token of the batch, and comes from the position before it. Tokens of images among them have the log-prob
// of token 0, and their gradients must be 0.
//
// Neighbours with the same number in Group have the same prompt, which is computed only
// once. That changes no bit of a sequence's forward pass, but gradients round
// differently from the gradients of single sequences. Without Group every sequence is computed
// separately. The last token of a completion is only a target and is not computed.
type Batch struct {
	Tokens  []int32
	Offsets []int32 // [S+1]
	Prompt  []int32 // [S]
	Group   []int32 // [S], or empty
}

// groupEnd returns the sequence after the ones that share the prompt of sequence s.
func (b Batch) groupEnd(s int) int {
	end := s + 1
	for len(b.Group) > 0 && end < len(b.Prompt) && b.Group[end] == b.Group[s] {
		end++
	}
	return end
}

// Scored returns R, the number of completion tokens.
func (b Batch) Scored() int {
	n := len(b.Tokens)
	for _, p := range b.Prompt {
		n -= int(p)
	}
	return n
}

// Load makes b the batch that the passes work on. It panics if b is malformed or beyond the
// workspace's capacity.
func (ws *Workspace) Load(b Batch) {
	S := len(b.Prompt)
	if len(b.Offsets) != S+1 || int(b.Offsets[S]) != len(b.Tokens) || len(b.Group) != 0 && len(b.Group) != S {
		panic("model: malformed batch")
	}
	ws.batch, ws.s, ws.shared, ws.promptRows = b, S, false, ws.promptRows[:0]
	ws.owner, ws.low.keys, ws.longest = ws.owner[:0], kernels.Buffer{}, 0
	for _, x := range []*indexBuffer{&ws.ids, &ws.pos, &ws.rows, &ws.targets, &ws.segmentsBuf} {
		x.host = x.host[:0]
	}
	for _, x := range []*indexBuffer{&ws.offsets, &ws.groups, &ws.blocks, &ws.rowBlocksBuf, &ws.seqBlocksBuf} {
		x.host = append(x.host[:0], 0)
	}
	for s := 0; s < S; {
		end := b.groupEnd(s)
		ws.loadGroup(b, s, end)
		s = end
	}
	ws.n, ws.r = len(ws.ids.host), len(ws.rows.host)
	if max(ws.n, ws.r) > ws.cap.Tokens || S > ws.cap.Sequences {
		panic("model: batch beyond the workspace's capacity")
	}
	for _, x := range []*indexBuffer{&ws.ids, &ws.pos, &ws.offsets, &ws.groups, &ws.blocks, &ws.rows, &ws.targets,
		&ws.rowBlocksBuf} {
		x.upload(ws.be)
	}
	ws.uploadHeadBlocks()
	ws.segments, ws.seqBlocks = ws.segmentsBuf.upload(ws.be), ws.seqBlocksBuf.upload(ws.be)
	ws.be.Sync()
}

// loadGroup lays out sequences lo to hi, which share one prompt: its rows, then the rows of
// each completion without its last token.
func (ws *Workspace) loadGroup(b Batch, lo, hi int) {
	first, scored := len(ws.ids.host), len(ws.rows.host)
	tokens, prompt := b.Tokens[b.Offsets[lo]:b.Offsets[lo+1]], int(b.Prompt[lo])
	if prompt < 1 || prompt > len(tokens) {
		panic("model: a sequence needs a prompt of at least one token and at most its length")
	}
	ws.appendRows(tokens[:prompt], 0, lo)
	if hi-lo > 1 { // else the completion's rows follow in the same sequence
		ws.shared = true
		ws.offsets.host = append(ws.offsets.host, int32(len(ws.ids.host)))
	}
	for s := lo; s < hi; s++ {
		tokens := b.Tokens[b.Offsets[s]:b.Offsets[s+1]]
		if s > lo && (int(b.Prompt[s]) != prompt || !slices.Equal(tokens[:prompt],
			b.Tokens[b.Offsets[lo]:][:prompt])) {
			panic("model: sequences of a group have different prompts")
		}
		before := first + prompt - 1 // the row that a completion token is read from
		for i, id := range tokens[prompt:] {
			ws.rows.host, ws.targets.host = append(ws.rows.host, int32(before)), append(ws.targets.host, ws.target(id))
			before = len(ws.ids.host) + i
		}
		if completion := tokens[prompt:]; len(completion) > 0 {
			ws.appendRows(completion[:len(completion)-1], prompt, s)
		}
		ws.offsets.host = append(ws.offsets.host, int32(len(ws.ids.host)))
		ws.promptRows = append(ws.promptRows, int32(first))
		ws.segmentsBuf.host = append(ws.segmentsBuf.host, 0, 0)
		ws.seqBlocksBuf.host = append(ws.seqBlocksBuf.host, int32(s+1))
	}
	ws.groups.host = append(ws.groups.host, int32(len(ws.offsets.host)-1))
	ws.blocks.host = appendBlocks(ws.blocks.host, len(ws.ids.host)-first)
	ws.rowBlocksBuf.host = appendBlocks(ws.rowBlocksBuf.host, len(ws.rows.host)-scored)
}

// target returns the token whose log-prob is computed where id comes next. Tokens of images, which nobody draws, have
// none; token 0 stands for them, and callers leave its log-prob out.
func (ws *Workspace) target(id int32) int32 {
	if ws.c.ReadsImages() && int(id) >= ws.c.Vocab {
		return 0
	}
	return id
}

// appendRows adds rows for tokens of a sequence at positions from pos on.
func (ws *Workspace) appendRows(tokens []int32, pos, sequence int) {
	if pos+len(tokens) > ws.c.MaxPositions {
		panic("model: sequence longer than max_positions")
	}
	ws.longest = max(ws.longest, pos+len(tokens))
	ws.ids.host = append(ws.ids.host, tokens...)
	for i := range tokens {
		ws.pos.host = append(ws.pos.host, int32(pos+i))
		ws.owner = append(ws.owner, int32(sequence))
	}
}

// appendBlocks appends the ends of the gradient blocks of the next n rows.
func appendBlocks(offsets []int32, n int) []int32 {
	at := offsets[len(offsets)-1]
	for n > 0 {
		k := min(n, kernels.BlockRows)
		at += int32(k)
		n -= k
		offsets = append(offsets, at)
	}
	return offsets
}

// poolPrompts sets which rows the log Z head averages.
func (ws *Workspace) poolPrompts(z *LogZConfig) {
	for s := range ws.s {
		lo, n := ws.promptRows[s], ws.batch.Prompt[s]
		if !z.PoolAll {
			n--
		}
		ws.segmentsBuf.host[2*s], ws.segmentsBuf.host[2*s+1] = lo, lo+n
	}
	ws.segments = ws.segmentsBuf.upload(ws.be)
	ws.be.Sync()
}

// SetDropoutKeys gives each sequence of the batch the seed of its dropout masks.
func (ws *Workspace) SetDropoutKeys(seeds []uint64) {
	if len(seeds) != ws.s {
		panic("model: one dropout seed per sequence")
	}
	ws.dropKeysBuf.host = ws.dropKeysBuf.host[:0]
	for _, s := range seeds {
		ws.dropKeysBuf.host = append(ws.dropKeysBuf.host, int32(uint32(s)), int32(uint32(s>>32)))
	}
	ws.dropKeys = ws.dropKeysBuf.upload(ws.be)
	ws.be.Sync()
}

// DropAdapters turns on the adapters' dropout, if any, for the loaded batch until the next
// Load: each row's masks come from its position and the seed of its sequence, the first one
// for shared rows.
func (ws *Workspace) DropAdapters(seeds []uint64) {
	if len(seeds) != ws.s {
		panic("model: one dropout seed per sequence")
	}
	if ws.rowKeys.dev.Empty() {
		return
	}
	ws.rowKeys.host = ws.rowKeys.host[:0]
	for i := range ws.n {
		key := kernels.PhiloxKey(seeds[ws.owner[i]])
		w := kernels.Philox(key, [4]uint32{uint32(ws.pos.host[i]), 0, 0, 1})
		ws.rowKeys.host = append(ws.rowKeys.host, int32(w[0]), int32(w[1]))
	}
	ws.low.keys = ws.rowKeys.upload(ws.be)
	ws.be.Sync()
}
