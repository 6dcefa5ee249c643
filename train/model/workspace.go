package model

import (
	"slices"

	"exp/kernels"
)

// Keep says which activations a Workspace keeps.
type Keep uint8

const (
	KeepNothing Keep = iota // forward passes only
	KeepInputs              // each layer's input; the backward pass recomputes the rest
	KeepAll
)

// Capacity bounds what a Workspace can hold. Tokens of a shared prompt count once.
type Capacity struct {
	Tokens, Sequences int
	Taught            int // a teacher's likeliest tokens at each place; 0: none
}

// Workspace holds the activations of one micro-batch and every input and output of the
// passes over it. It belongs to an architecture, not to a model: policy, reference and
// critic of one shape share it, one after the other.
type Workspace struct {
	be    kernels.Backend
	c     Config
	heads Heads
	keep  Keep
	cap   Capacity
	owned []kernels.Buffer

	n, s, r    int // rows, sequences, scored rows of the loaded batch
	longest    int // positions of the longest sequence
	batch      Batch
	promptRows []int32 // [S] first row of each prompt
	owner      []int32 // [N] sequence of each row; the first one for shared rows
	shared     bool    // some sequences share a prompt

	// Index buffers on the device, and the host slices they are filled from.
	ids, pos, blocks              indexBuffer // [N], [N], [blocks+1]
	offsets, groups               indexBuffer // in the form of kernels.Sequence: a shared prompt is a sequence
	rows, targets, rowBlocksBuf   indexBuffer // [R], [R], [blocks+1]
	segmentsBuf, seqBlocksBuf     indexBuffer // [2S], [S+1]
	dropKeysBuf                   indexBuffer // [2S]
	segments, seqBlocks, dropKeys kernels.Buffer

	acts    []acts           // one per layer with KeepAll, else one
	inputs  []kernels.Buffer // x0 of each layer [N,C]; the same buffer with KeepNothing or kept
	kept    []kernels.Buffer // this rank's rows of each input, where ranks keep parts (KeepInputs)
	rank    int              // of those that share products
	parts   int              // their number
	delta   kernels.Buffer   // output of a feed-forward block before it joins the residual, [N,C]
	att     kernels.Buffer   // the same for an attention block, [N,C]
	tables  tableActs        // embeddings for each layer
	lent    sharedActs       // keys and values that several layers read
	images  imageRoom
	hidden  kernels.Buffer // after the final norm [N,C]
	last    kernels.Buffer // residual stream before the final norm [N,C]
	rstdEnd kernels.Buffer // [N]

	h        kernels.Buffer // scored rows of hidden [R,C]
	gathered bool           // h belongs to the last Forward
	scores   kernels.Scores // [R] each
	values   kernels.Buffer // [R]

	valueHidden kernels.Buffer // [R,C] floats: what the value head reads, with Heads.Hidden
	pooled      kernels.Buffer // [S,C]
	logZ        kernels.Buffer // [S]
	zActs       []logZActs
	dropout     float64
	softmax     kernels.Softmax // of the last Scores
	taught      taught

	// Gradients.
	dLogProb, dEntropy, dValue kernels.Buffer    // [R]
	dLogZ                      kernels.Buffer    // [S]
	dPooled                    [3]kernels.Buffer // [S,C]
	dh                         kernels.Buffer    // [R,C]
	dx, dNorm                  kernels.Buffer    // [N,C]
	dqkv, dAtt                 kernels.Buffer    // [N,QKV], [N,HD]
	dProjected                 kernels.Buffer    // [N,Projected] or [N,Delta.Stride]
	dMixed, dGates             kernels.Buffer    // [N,Delta.Mixed], [N,2·Delta.Values]
	dPost                      kernels.Buffer    // [N,C], with norms after the blocks, LayerNorm or multipliers
	dBranch                    kernels.Buffer    // [N,C], of the feed-forward block's input, with Branches
	dBeside                    [2]kernels.Buffer // [N,C], with experts beside a block
	dAct                       kernels.Buffer    // [N,F], if the gate is not fused
	dTables                    kernels.Buffer    // [N,L·P], with embeddings for each layer
	mixGrads                   mixtureGrads
	latentGrads                latentGrads

	headNorms headNormRoom
	output    outputRoom

	adapters *Adapters
	low      LowRank
	rowKeys  indexBuffer // [2N] of the adapters' dropout
}

// acts are the activations of one layer, in training or of a sampling step. Some fields are
// empty, depending on the architecture.
type acts struct {
	n1, rstd1     kernels.Buffer // [N,C], [N]
	qkv, raw      kernels.Buffer // [N,QKV]; raw is qkv before QK norm
	qRstd, kRstd  kernels.Buffer // [N,H], [N,K]; of wide norms [N]
	vRstd         kernels.Buffer // [N,K]
	wide, gated   kernels.Buffer // [N,Projected], [N,HD]: with output gates, before and after them
	gates         kernels.Buffer // [N,2HD]: of a map of gates
	delta         deltaActs      // of a layer with linear attention
	att, stats    kernels.Buffer // [N,HD], [N,H,2]
	x1, n2, rstd2 kernels.Buffer // [N,C], [N,C], [N]
	gateUp, act   kernels.Buffer // [N,2F], without a gate [N,F], unless nothing is kept; [N,F]
	rawO, rstdO   kernels.Buffer // [N,C], [N]: attention's output before its norm
	rawF, rstdF   kernels.Buffer // the same for the feed-forward block
	mix           mixtureActs
	latent        latentActs // of latent attention
	beside        besideActs // of experts beside a block
	per           perLayerActs
	heads         *headNormRoom // of LayerNorm of heads
}

// alloc allocates the activations of a layer of c for N rows, with the parts that `in` says: f floats, o operands,
// i indices. keep includes what only a backward pass reads.
func (a *acts) alloc(c Config, in layerParts, ad *Adapters, N int, keep bool, f, o, i func(n int) kernels.Buffer) {
	C := c.Width
	a.n1, a.rstd1 = o(N*C), f(N*c.normStats())
	if in.attention {
		a.qkv, a.att = o(N*c.most(Config.QKV)), o(N*c.HeadsWidth())
	}
	if c.latent() {
		a.latent.alloc(c, N, f, o)
	}
	if in.both && c.Branches != OneNorm {
		a.n2, a.rstd2 = o(N*C), f(N*c.normStats())
	}
	if c.QKNorm && in.attention {
		a.raw, a.qRstd = o(N*c.most(Config.QKV)), f(N*c.queryNorm().Heads)
		a.kRstd = f(N * c.most(func(c Config) int { return c.keyNorm().Heads }))
	}
	if c.ClipQKV > 0 || c.HeadLayerNorm {
		a.raw = o(N * c.QKV())
	}
	if c.ValueNorm {
		a.vRstd = f(N * c.most(func(c Config) int { return c.KVHeads }))
	}
	a.per.alloc(c, N, f, o)
	if c.Global.KeyValues || c.SharedKV > 0 {
		a.wide = o(N * c.most(Config.QKV))
	}
	if c.OutputGate && in.attention {
		a.wide, a.gated = o(N*c.Projected()), o(N*c.Heads*c.Head)
	}
	if c.GateMap {
		a.gates, a.gated = o(2*N*c.Heads*c.Head), o(N*c.Heads*c.Head)
	}
	if in.linear {
		a.delta.alloc(c, N, f, o)
	}
	if in.feeds && slices.Contains(c.Sparse, true) {
		a.mix.alloc(c, N, f, o, i)
	}
	if c.Experts.Beside {
		a.beside.alloc(c, N, f, o)
	}
	if in.feeds && c.anyDense() {
		F := c.most(func(c Config) int { return c.FFN })
		a.act = o(N * F)
		if keep || !c.fusedGate() || ad.onGate() {
			a.gateUp = o(N * c.Gate.Factors() * F)
		}
	}
	if c.PostNorms {
		a.rawO, a.rstdO, a.rawF, a.rstdF = f(N*C), f(N), f(N*C), f(N)
	}
}

// indexBuffer is an int32 buffer on the device with its staging slice.
type indexBuffer struct {
	dev  kernels.Buffer
	host []int32
}

func (x *indexBuffer) upload(be kernels.Backend) kernels.Buffer {
	v := x.dev.Slice(0, len(x.host))
	be.Copy(v, kernels.Host(x.host))
	return v
}

// NewWorkspace allocates a workspace for models of configuration c, with room for
// the heads h.
func NewWorkspace(be kernels.Backend, c Config, h Heads, limit Capacity, keep Keep) (*Workspace, error) {
	ws := &Workspace{be: be, c: c, heads: h, keep: keep, cap: limit, adapters: h.Adapters}
	ws.rank, ws.parts = partOn(be)
	var err error
	alloc := func(t kernels.DType, n int) kernels.Buffer {
		b, e := be.Alloc(t, n)
		if e != nil && err == nil {
			err = &kernels.RoomError{Part: kernels.ActivationRoom, Err: e}
		}
		ws.owned = append(ws.owned, b)
		return b
	}
	ws.allocIndex(func(n int) indexBuffer {
		return indexBuffer{dev: alloc(kernels.I32, n), host: make([]int32, 0, n)}
	})
	ws.allocActs(func(n int) kernels.Buffer { return alloc(be.Float(), n) },
		func(n int) kernels.Buffer { return alloc(be.Operand(), n) },
		func(n int) kernels.Buffer { return alloc(kernels.I32, n) }, h)
	if err != nil {
		ws.Close()
		return nil, err
	}
	ws.output.fill(be)
	return ws, nil
}

// Reserve makes room for batches of that capacity. If it has to allocate, the loaded batch is lost.
func (ws *Workspace) Reserve(need Capacity) error {
	limit := Capacity{max(ws.cap.Tokens, need.Tokens), max(ws.cap.Sequences, need.Sequences), ws.cap.Taught}
	if limit == ws.cap {
		return nil
	}
	ws.Close() // first: memory may not hold both
	bigger, err := NewWorkspace(ws.be, ws.c, ws.heads, limit, ws.keep)
	if err == nil {
		*ws = *bigger
	}
	return err
}

func (ws *Workspace) allocIndex(index func(n int) indexBuffer) {
	N, S := ws.cap.Tokens, ws.cap.Sequences
	maxBlocks := N/kernels.BlockRows + S + 1
	ws.ids, ws.pos, ws.offsets, ws.groups = index(N), index(N), index(2*S+1), index(S+1)
	ws.blocks, ws.rowBlocksBuf = index(maxBlocks), index(maxBlocks)
	ws.rows, ws.targets = index(N), index(N)
	if K := ws.cap.Taught; K > 0 {
		ws.taught.tokens = index(N * (1 + K))
	}
	ws.segmentsBuf, ws.seqBlocksBuf, ws.dropKeysBuf = index(2*S), index(S+1), index(2*S)
	if slices.Contains(ws.c.Sparse, true) && ws.keep != KeepNothing {
		ws.mixGrads.blocks = index(maxBlocks)
	}
	if ws.c.HeadLayerNorm && ws.keep != KeepNothing {
		ws.headNorms.blocks = [2]indexBuffer{index(maxBlocks), index(maxBlocks)}
	}
	if ws.adapters != nil && ws.adapters.Dropout > 0 && ws.keep != KeepNothing {
		ws.rowKeys = index(2 * N)
	}
	ws.images.allocIndex(ws.c, N, ws.keep != KeepNothing && ws.learnsTower(), index)
}

// allocActs makes the buffers: alloc allocates floats, operand operands (everything between
// two matmuls), index int32.
func (ws *Workspace) allocActs(alloc, operand, index func(n int) kernels.Buffer, h Heads) {
	c, N, S := ws.c, ws.cap.Tokens, ws.cap.Sequences
	C := c.Width
	train := ws.keep != KeepNothing
	ws.headNorms.alloc(c, N, train, alloc)
	sets := c.Layers
	if ws.keep != KeepAll {
		sets = 1
	}
	for l := range sets {
		var a acts
		c := c
		in := c.parts()
		if ws.keep == KeepAll {
			c, in = ws.c.at(l), c.partsOf(l)
		}
		a.alloc(c, in, h.Adapters, N, train, alloc, operand, index)
		if in.attention {
			a.stats = alloc(N * c.Heads * 2)
		}
		if in.both {
			a.x1 = alloc(N * C)
		}
		a.heads = &ws.headNorms
		ws.acts = append(ws.acts, a)
	}
	for l := range c.Layers {
		if l == 0 || train && !ws.keepsParts() {
			ws.inputs = append(ws.inputs, alloc(N*C))
		} else {
			ws.inputs = append(ws.inputs, ws.inputs[0])
		}
		if ws.keepsParts() {
			ws.kept = append(ws.kept, alloc(int(mostRows(N, ws.parts)*C)))
		}
	}
	ws.delta, ws.att, ws.hidden, ws.last, ws.rstdEnd = alloc(N*C), alloc(N*C), operand(N*C), alloc(N*C),
		alloc(int(N*c.normStats()))
	ws.h = operand(N * C)
	ws.output.alloc(c, N, train, alloc, operand)
	ws.tables.alloc(c, N, alloc, operand)
	ws.lent.alloc(c, N, train, alloc, operand)
	ws.images.alloc(c, N, alloc)
	ws.scores = kernels.Scores{LogProb: alloc(N), Entropy: alloc(N), LSE: alloc(N)}
	ws.values = alloc(N)
	ws.allocHidden(h, alloc)
	if K := ws.cap.Taught; K > 0 {
		ws.taught.logProb = alloc(N * (1 + K))
		if train {
			ws.taught.dLogProb = alloc(N * (1 + K))
		}
	}
	if h.LogZ != nil {
		ws.pooled, ws.logZ = alloc(S*C), alloc(S)
		for range h.LogZ.Layers - 1 {
			ws.zActs = append(ws.zActs, logZActs{alloc(S * C), alloc(S * C), alloc(2 * S), alloc(S * C)})
		}
		if train {
			ws.dPooled = [3]kernels.Buffer{alloc(S * C), alloc(S * C), alloc(S * C)}
		}
	}
	ws.low.alloc(c, h.Adapters, N, train, alloc, operand)
	if !train {
		return
	}
	ws.dLogProb, ws.dEntropy, ws.dValue, ws.dLogZ = alloc(N), alloc(N), alloc(N), alloc(S)
	ws.dh, ws.dx, ws.dNorm = alloc(N*C), alloc(N*C), alloc(N*C)
	ws.allocAttentionGradients(alloc, operand)
	ws.allocBlockGradients(alloc, operand)
}

// allocBlockGradients makes room for the gradients of a layer's feed-forward part.
func (ws *Workspace) allocBlockGradients(alloc, operand func(n int) kernels.Buffer) {
	c, N := ws.c, ws.cap.Tokens
	if c.PerLayer > 0 && ws.adapters == nil {
		ws.dTables = alloc(N * c.layersWidth())
	}
	if c.PostNorms || c.Parallel || c.Norm != RMSNorm {
		ws.dPost = alloc(N * c.Width)
	}
	if c.Branches != InTurn {
		ws.dBranch = alloc(N * c.Width)
	}
	if c.Experts.Beside {
		ws.dBeside = [2]kernels.Buffer{alloc(N * c.Width), alloc(N * c.Width)}
	}
	if !c.fusedGate() || ws.adapters != nil {
		ws.dAct = operand(N * c.most(func(c Config) int { return c.FFN }))
	}
	if slices.Contains(c.Sparse, true) {
		ws.mixGrads.alloc(c, N, alloc, operand)
	}
}

// Close frees the workspace's memory.
func (ws *Workspace) Close() {
	for _, b := range ws.owned {
		ws.be.Free(b)
	}
	ws.owned = nil
}

// Capacity returns the workspace's capacity.
func (ws *Workspace) Capacity() Capacity { return ws.cap }

// Rows returns R, the number of scored rows of the loaded batch.
func (ws *Workspace) Rows() int { return ws.r }

// LogProb returns the log-probs [R] that Scores computed.
func (ws *Workspace) LogProb() kernels.Buffer { return ws.scores.LogProb.Slice(0, ws.r) }

// Entropy returns the entropies [R] that Scores computed.
func (ws *Workspace) Entropy() kernels.Buffer { return ws.scores.Entropy.Slice(0, ws.r) }

// Value returns the values [R] that Values computed.
func (ws *Workspace) Value() kernels.Buffer { return ws.values.Slice(0, ws.r) }

// LogZ returns the log partition functions [S] that Model.LogZ computed.
func (ws *Workspace) LogZ() kernels.Buffer { return ws.logZ.Slice(0, ws.s) }

// LSE returns the logsumexp [R] that Scores computed of the logits over the temperature.
func (ws *Workspace) LSE() kernels.Buffer { return ws.scores.LSE.Slice(0, ws.r) }

// DLogProb returns the buffer for the gradient with respect to LogProb.
func (ws *Workspace) DLogProb() kernels.Buffer { return ws.dLogProb.Slice(0, ws.r) }

// DEntropy returns the buffer for the gradient with respect to Entropy.
func (ws *Workspace) DEntropy() kernels.Buffer { return ws.dEntropy.Slice(0, ws.r) }

// DValue returns the buffer for the gradient with respect to Value.
func (ws *Workspace) DValue() kernels.Buffer { return ws.dValue.Slice(0, ws.r) }

// DLogZ returns the buffer for the gradient with respect to LogZ.
func (ws *Workspace) DLogZ() kernels.Buffer { return ws.dLogZ.Slice(0, ws.s) }

// Hidden returns the hidden states after the final norm [N,C].
func (ws *Workspace) Hidden() kernels.Buffer { return ws.hidden.Slice(0, ws.n*ws.c.Width) }

func (ws *Workspace) currentScores() kernels.Scores {
	return kernels.Scores{LogProb: ws.LogProb(), Entropy: ws.Entropy(), LSE: ws.LSE()}
}

func (ws *Workspace) logZActs(i int) logZActs {
	a, S, C := ws.zActs[i], ws.s, ws.c.Width
	return logZActs{a.lin.Slice(0, S*C), a.gelu.Slice(0, S*C), a.stats.Slice(0, 2*S), a.out.Slice(0, S*C)}
}

// layerActs returns the activations of layer l, cut to the loaded batch.
func (ws *Workspace) layerActs(l int) acts {
	a := ws.acts[0]
	if ws.keep == KeepAll {
		a = ws.acts[l]
	}
	a.cut(ws.c.at(l), ws.n)
	switch { // a layer with one block has one norm, and the residual stream is its input
	case !ws.c.feeds(l):
		a.x1 = ws.input(l)
	case !ws.c.mixes(l):
		a.x1, a.n2, a.rstd2 = ws.input(l), a.n1, a.rstd1
	case ws.c.Branches == OneNorm:
		a.n2, a.rstd2 = a.n1, a.rstd1
	}
	return a
}

// keepRouting stores where the rows of layer l went, once they are routed.
func (ws *Workspace) keepRouting(l int, a acts) {
	if ws.keep == KeepAll {
		ws.acts[l].mix.offsets, ws.acts[l].mix.host = a.mix.offsets, a.mix.host
	} else {
		ws.acts[0].mix.offsets, ws.acts[0].mix.host = a.mix.offsets, a.mix.host
	}
}

// cut cuts the buffers to n rows.
func (a *acts) cut(c Config, n int) {
	cut := func(b *kernels.Buffer, width int) {
		if !b.Empty() {
			*b = b.Slice(0, n*width)
		}
	}
	cut(&a.n1, c.Width)
	cut(&a.rstd1, c.normStats())
	cut(&a.qkv, c.QKV())
	cut(&a.raw, c.QKV())
	cut(&a.qRstd, c.queryNorm().Heads)
	cut(&a.kRstd, c.keyNorm().Heads)
	cut(&a.vRstd, c.KVHeads)
	cut(&a.att, c.Heads*c.Head)
	cut(&a.stats, c.Heads*2)
	cut(&a.wide, c.Projected())
	cut(&a.gated, c.Heads*c.Head)
	cut(&a.gates, 2*c.Heads*c.Head)
	a.delta.cut(c, n)
	a.latent.cut(c, n)
	a.beside.cut(c, n)
	a.per.cut(c, n)
	cut(&a.x1, c.Width)
	cut(&a.n2, c.Width)
	cut(&a.rstd2, c.normStats())
	cut(&a.gateUp, c.Gate.Factors()*c.FFN)
	cut(&a.act, c.FFN)
	cut(&a.rawO, c.Width)
	cut(&a.rstdO, 1)
	cut(&a.rawF, c.Width)
	cut(&a.rstdF, 1)
	if !a.mix.logits.Empty() {
		a.mix = a.mix.cut(c, n)
	}
}

func (ws *Workspace) attOut() kernels.Buffer { return ws.att.Slice(0, ws.n*ws.c.Width) }

func (ws *Workspace) blockOffsets() kernels.Buffer {
	return ws.blocks.dev.Slice(0, len(ws.blocks.host))
}

// sequences returns the offsets and groups that attention uses.
func (ws *Workspace) sequences() (offsets, groups kernels.Buffer) {
	offsets = ws.offsets.dev.Slice(0, len(ws.offsets.host))
	if ws.shared {
		groups = ws.groups.dev.Slice(0, len(ws.groups.host))
	}
	return offsets, groups
}

// runs returns them for linear attention.
func (ws *Workspace) runs() kernels.Runs {
	offsets, groups := ws.sequences()
	return kernels.Runs{Offsets: offsets, Groups: groups}
}

func (ws *Workspace) rowBlocks() kernels.Buffer {
	return ws.rowBlocksBuf.dev.Slice(0, len(ws.rowBlocksBuf.host))
}

func (ws *Workspace) input(l int) kernels.Buffer { return ws.inputs[l].Slice(0, ws.n*ws.c.Width) }

// keepsParts reports whether ranks that share products keep parts of the layers' inputs.
func (ws *Workspace) keepsParts() bool { return ws.keep == KeepInputs && ws.parts > 1 }

// keepInput keeps this rank's rows of the input of layer l for the backward pass.
func (ws *Workspace) keepInput(l int) {
	if lo, hi := partOf(ws.n, ws.rank, ws.parts); ws.keepsParts() && lo < hi {
		C := ws.c.Width
		ws.be.Copy(ws.kept[l].Slice(0, int((hi-lo)*C)), ws.input(l).Slice(int(lo*C), int(hi*C)))
	}
}

// keptInput returns the input of layer l, from the rows that all ranks kept.
func (ws *Workspace) keptInput(l int) kernels.Buffer {
	x := ws.input(l)
	if !ws.keepsParts() {
		return x
	}
	C := ws.c.Width
	if lo, hi := partOf(ws.n, ws.rank, ws.parts); lo < hi {
		ws.be.Copy(x.Slice(int(lo*C), int(hi*C)), ws.kept[l].Slice(0, int((hi-lo)*C)))
	}
	ws.be.(Cutter).Complete(x, C)
	return x
}
