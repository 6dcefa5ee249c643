package forecast

import (
	"exp/harness/config"
	"exp/harness/device"
	"exp/harness/stage"
	"exp/kernels"
	"exp/train/generate"
	"exp/train/model"
	"exp/train/rollout"
	"runtime"
)

// workspace is what the memory of a backend's own operations depends on.
type workspace struct {
	kind    config.Stage
	c       *config.Run
	arch    model.Config
	engine  generate.Options
	batch   model.Capacity // the largest micro-batch
	longest int            // tokens of a sequence
	crew    stage.Crew
	output  bool // the output layer learns
	changed bool // draws are among some of the tokens only, or from changed logits
}

// bytes returns what the backend allocates for its own operations (on a GPU: gpuScratch).
//
// On the CPU each thread has the largest of: packed rows of the widest input (MatMul,
// MatMulDW); a chunk of logits that fits in cache (LogProb); a sequence's keys and values
// (AttentionBackward); a row's scores against the cache (PagedAttention). All threads
// share the logit gradients of a few blocks of rows (LogProbBackward), and the logits
// of a sampling step, in float32 only if draws are changed.
func (x workspace) bytes() int {
	c, arch, engine, batch := x.c, x.arch, x.engine, x.batch
	tokens := batch.Tokens
	if device.UsesGPU(c) {
		return gpuScratch(c, arch, engine, batch, x.crew)
	}
	threads := c.Compute.Threads
	if threads == 0 {
		threads = max(1, runtime.NumCPU()/x.crew.All)
	}
	perThread := floatScratch
	if stage.Operand(c) == kernels.BF16 {
		perThread = tileScratch
	}
	scratch := 0
	for _, c := range arch.Kinds() {
		scratch = max(scratch, perThread(engine, c, (tokens+threads-1)/threads, x.longest))
	}
	if arch.Recurrent() {
		scratch = max(scratch, deltaScratch(arch, tokens, min(x.longest, tokens)))
		if blocks := tokens/kernels.BlockRows + batch.Sequences; arch.Delta.Scan { // GroupedNormBackward
			scratch = max(scratch, (blocks*arch.Delta.Out()+threads-1)/threads)
		}
	}
	return 4*threads*scratch + x.logitBytes()
}

// logitBytes returns the memory of logits and of their gradients.
func (x workspace) logitBytes() int {
	const (
		together = 1 << 22 // gradients of logits kept at a time
		products = 1 << 24 // logits that a product computes at a time
		cached   = 352 << 10
		tile     = 14 // rows of a register tile
	)
	V, tokens, draws := x.arch.Vocab, x.batch.Tokens, x.engine.Draws()
	top := 0 // all logits of some rows, to choose from
	if x.kind == config.Train && x.c.Algo.Distill.TopK > 0 {
		top = 2 * min(max(32, together/V), tokens) * V
	}
	many := 1
	if x.changed {
		many = 2 // and their exponentials
	}
	gradients := 0
	if x.output {
		gradients = min(max(kernels.BlockRows, together/V), tokens) * V
	}
	if stage.Operand(x.c) == kernels.BF16 {
		return kernels.BF16.Size()*gradients + 4*max(many*min(draws, max(32, together/V))*V, top)
	}
	logits := 0 // one buffer serves all
	switch {
	case V*tile > cached: // of so many tokens, a product of its own computes the logits
		logits = max(many*min(draws, max(tile, products/V)), min(tokens, max(tile, products/V))) * V
	case x.changed:
		logits = many * draws * V
	}
	return 4 * max(gradients, logits, top)
}

// restricts reports whether a stage samples from some of the tokens only, or changes their logits.
func restricts(kind config.Stage, c *config.Run) bool {
	penalized := func(repetition, presence, frequency float64) bool {
		return rollout.Penalties{Repetition: repetition, Presence: presence, Frequency: frequency}.On()
	}
	less := func(k int, p float64) bool { return k > 0 || p > 0 && p < 1 }
	if r, f := c.Rollout, c.Eval.Final; r.Form.Spec() != nil {
		return true
	} else if kind == config.EvalGen {
		return less(f.TopK, f.TopP) || f.MinP > 0 || penalized(f.Repetition, f.Presence, f.Frequency)
	} else if less(r.TopK, r.TopP) || r.MinP > 0 || penalized(r.Repetition, r.Presence, r.Frequency) {
		return true
	}
	o := c.Eval.Online
	return o.EverySteps > 0 && (less(o.TopK, o.TopP) || o.MinP > 0 || penalized(o.Repetition, o.Presence, o.Frequency))
}

// gpuScratch returns the bytes of a GPU's workspace: the largest of the gradients of a
// micro-batch's logits (LogProbBackward), a piece of its logits (LogProb), and the logits in a
// piece of a sampling step, for short rows with weights and order of the tokens (Sample); ranks that share
// products have their part of each, and those that do not learn no gradients. A number for each row and
// head is attention's (AttentionBackward). Linear attention keeps states (DeltaRuleBackward) of the sequences and of
// their prompts. Tensor cores have factors of their own.
func gpuScratch(c *config.Run, arch model.Config, engine generate.Options, batch model.Capacity, w stage.Crew) int {
	tokens := batch.Tokens
	const piece = 160 << 20 // elements
	V, operand, shared := arch.Vocab, stage.Operand(c), w.Tensor
	own := func(n int) int { return (n + shared - 1) / shared } // a rank's part of rows or tokens
	arrays := 1
	if V < 1024 {
		arrays = 3 // for short rows
	}
	if c.Rollout.Form.Spec() != nil {
		arrays++ // masked logits
	}
	rows := min(own(engine.Draws()), max(1, piece/(arrays*V)))
	logits := V // of a row that is scored
	if c.Algo.Distill.TopK > 0 && V < 1024 {
		logits *= 2 // TopTokens keeps the order of its tokens, too
	}
	gradients := 0
	if w.Learns {
		all := max(own(tokens)*V, tokens*own(V))
		gradients = all * operand.Size()
		if c.Algo.Distill.TopK > 0 { // their kernels also need the products of some rows
			gradients += 4 * min(all, max(piece, V))
		}
	}
	bytes := max(gradients, 4*logits*min(own(tokens), max(1, piece/logits)), 4*arrays*rows*V, 4*tokens*arch.Heads)
	if arch.Recurrent() {
		bytes = max(bytes, 4*device.DeltaScratch(arch.Delta, tokens, min(tokens, 2*batch.Sequences), w.Learns))
	}
	if device.UsesTensorCores(c) {
		bytes += factorBytes(arch, tokens, shared)
	}
	return bytes
}

// factorBytes returns the bytes of the factors that tensor cores need in another layout than a
// micro-batch's activations have: gradients of the residual stream, which are float32, and operands
// whose rows are no whole chunks.
func factorBytes(arch model.Config, tokens, shared int) int {
	left, right := roundUp(arch.Width, factorChunk), 0
	vocab := (arch.Vocab + shared - 1) / shared
	widths := []int{arch.Width, arch.FFN, 2 * arch.FFN, vocab}
	for _, c := range arch.Kinds() {
		widths = append(widths, c.Heads*c.Head, c.QKV())
	}
	for _, width := range widths {
		if width%factorChunk != 0 {
			left = max(left, roundUp(width, factorChunk))
			right = max(right, roundUp(min(width, arch.Width), factorChunk))
		}
	}
	return 2 * tokens * (left + right)
}

// floatScratch returns a thread's scratch in float32, in elements; rows is its share of
// a micro-batch's rows.
func floatScratch(engine generate.Options, arch model.Config, rows, longest int) int {
	const (
		tile    = 14        // rows of a register tile
		panel   = 32        // columns of a tile, and of a panel packed for it
		product = 1 << 17   // elements of a product computed at a time
		logits  = 352 << 10 // elements of logits computed at a time
		queries = 96        // rows of a sequence whose probabilities the backward pass keeps
	)
	dw := 0
	for _, k := range []int{arch.Width, arch.FFN, arch.Heads * arch.Head, max(arch.Delta.Out(), arch.Width)} {
		n := max(arch.WidestMap(), arch.Vocab)
		cols := (k + 511) / 512
		width := roundUp((roundUp(k, panel)/panel+cols-1)/cols*panel, panel)
		height := min(n, product/roundUp(width, 128))
		dw = max(dw, kernels.BlockRows*(roundUp(height, tile)+width))
	}
	packed := min(10*tile, roundUp(rows, tile)) * roundUp(min(max(arch.Width, 2*arch.FFN, arch.Vocab), 1024), panel)
	chunk := min(max(1, logits/arch.Vocab/tile)*tile, roundUp(rows, tile))
	output := chunk*(roundUp(arch.Vocab, panel)+panel) + roundUp(arch.Vocab, panel) + chunk*roundUp(arch.Width, panel)
	T, head := roundUp(longest, panel), roundUp(arch.Head, panel)
	attention := T*(4*arch.Head+head) + 2*queries*(head+T) + panel*arch.Head // for sequences that share a prompt
	scores := 2 * roundUp(engine.MaxTokens, max(engine.PageTokens, panel))
	return max(dw, packed, output, attention, scores)
}

// tileScratch is floatScratch for bf16.
func tileScratch(engine generate.Options, arch model.Config, rows, longest int) int {
	const (
		block  = 32             // rows or columns multiplied at a time
		step   = block * 32 / 2 // elements of one step of terms
		pieces = 8              // steps of a gradient packed at a time
		group  = 4              // blocks of queries per backward pass
	)
	dw := 0
	for _, k := range []int{arch.Width, arch.FFN, arch.Heads * arch.Head, max(arch.Delta.Out(), arch.Width)} {
		kBlock := min(roundUp(k, block), 512)
		nBlock := min(roundUp(max(arch.WidestMap(), arch.Vocab), block), 1<<18/kBlock/block*block)
		dw = max(dw, nBlock*kBlock+(nBlock+kBlock)/block*pieces*step)
	}
	logits := block*(roundUp(arch.Vocab, block)+kernels.Lanes) + roundUp(arch.Width, 32)/32*step
	ts, ds := roundUp(longest, 32)/32, roundUp(arch.Head, 32)/32
	keys := (64*ts+block)*ds*32 + 64*ts + (3*ts*ds+ds+group*(4*ds+ts+2))*step
	scores := 2 * (roundUp(engine.MaxTokens, max(engine.PageTokens, block)) + 2*roundUp(arch.Head, block))
	return max(dw, logits, keys, scores)
}

// deltaScratch is floatScratch for linear attention. DeltaRuleBackward keeps states for some columns of a group of
// sequences, and the scaled queries and keys of all its tokens; ShortConvBackward keeps a number for each row and
// channel of a strip; DeltaRule keeps two states, and scaled queries and keys of some rows.
func deltaScratch(arch model.Config, tokens, longest int) int {
	const keep, strip, scaled = 32, 64, 32 // rows from a kept state to the next; channels of a strip; rows
	s := arch.Delta
	states := 3 + keep + 1 + 2*(longest/keep+1)
	back := states*s.KeyDim*kernels.Lanes + keep*kernels.Lanes + 4*tokens*s.KeyDim
	return max(back, tokens*strip, 2*s.State()/s.Values+2*scaled*s.KeyDim)
}
