package kernels

// Backend is a compute device. Its operations may run asynchronously in the
// order they were called; Sync waits for all of them. Copy to a host buffer is
// complete only after Sync. A Backend is used by one goroutine at a time.
//
// Operations panic with "kernels: …" or "cpu: …" on mismatched lengths or
// types: those are errors of the caller's code. They never fail otherwise.
// Output buffers must not overlap inputs unless the operation says so.
//
// M is the number of rows of the call, taken from the output's length; float
// means the backend's Float type. Scalars (eps, scales, temperatures) are rounded
// to it first. Where a definition says that a buffer is an operand, it has the
// Operand type; all others are Float, but for ids and the like. Zero rows are allowed everywhere and write nothing. A NaN that is
// computed may have any sign and payload.
type Backend interface {
	// Name is a short name for people: "cpu/avx512", "ref".
	Name() string
	// Class names the numerics class: backends of one class produce the same
	// bits. It enters the id of a run.
	Class() string
	// Float is the type of parameters and their gradients, of the residual stream
	// and its gradient, and of everything that is summed.
	Float() DType
	// Operand is the type of activations between matmuls and of the KV cache: Float,
	// or BF16 (package kernels, "bf16").
	Operand() DType

	Memory
	Linear
	Norm
	Sequence
	Output
	Update

	Gates
	Columns
	Experts
}

// Memory allocates and moves data.
type Memory interface {
	// Alloc returns n zeroed elements. An error means the device has no room.
	Alloc(t DType, n int) (Buffer, error)
	// Free returns what Alloc gave, not a view of it.
	Free(b Buffer)
	// Copy sets dst to src, element by element. Lengths must be equal; it converts
	// between F32 and F64, and between F32 and BF16, nothing else. Either may be a
	// host buffer.
	Copy(dst, src Buffer)
	// Zero sets every element to 0.
	Zero(b Buffer)
	// Add adds src to dst, float buffers, element by element.
	Add(dst, src Buffer)
	// Sync waits until everything called before has finished.
	Sync()
}

// SparseMemory is a backend whose AllocSparse gives buffers that cost memory only as far as
// they are touched, in small steps.
type SparseMemory interface {
	AllocSparse(t DType, n int) (Buffer, error)
}

// AllocSparse returns n zeroed elements, many of which may never be touched: from be's
// AllocSparse if it has one, else from Alloc.
func AllocSparse(be Backend, t DType, n int) (Buffer, error) {
	if m, ok := be.(SparseMemory); ok {
		return m.AllocSparse(t, n)
	}
	return be.Alloc(t, n)
}

// Matrix is a weight W [Out,In] with whatever copies the backend multiplies
// from. Packed and PackedT are made by Backend.Pack and must be refreshed
// whenever W changes; they are operand buffers, empty where the backend needs no
// copies.
//
// A frozen matrix may have BF16 weights on a backend whose operands are F32: its
// Packed is BF16 then, and every product has the bits of the F32 matrix with the same
// values, since widening is exact. Such a matrix may also do without W, if the backend
// packs: PackRows fills Packed a few rows at a time, and Embed reads it.
type Matrix struct {
	W       Buffer // [Out,In], F32 or, frozen, BF16; may be empty where Packed is not
	Out, In int
	Packed  Buffer // for MatMul, MatMulSwiGLU, LogProb and Sample
	PackedT Buffer // for MatMulDX, MatMulDXSwiGLU and LogProbBackward; absent on a frozen model, where they work from Packed
}

// Linear are the linear maps and the token embedding. In numerics class
// "cpu/bf16" their chains are tile sums of rounded factors (package kernels,
// "bf16"), and out, x, dx and dout may each be of the Operand or the Float type;
// act, gateUp and dgateUp are operands.
type Linear interface {
	// PackedLen returns the lengths of Matrix.Packed and Matrix.PackedT for a
	// weight [out,in]; 0 where no copy is needed.
	PackedLen(out, in int) (packed, packedT int)
	// Pack refreshes w.Packed, and w.PackedT unless it is empty, from w.W.
	Pack(w Matrix)
	// PackRows sets rows [from, from+n) of w.Packed, from what rows [n,In] holds, F32 or
	// BF16, possibly a host buffer. from must be a multiple of PackAlign, and n too unless
	// the rows are the last. PackedT must be empty. Where PackedLen says that no copy is
	// needed it sets rows of w.W.
	PackRows(w Matrix, from int, rows Buffer)

	// MatMul sets out [M,Out] = x [M,In] · Wᵀ + bias [Out]:
	//	out[m,o] = chain over i of x[m,i]·W[o,i], starting from bias[o], or from
	//	0 where bias is empty.
	MatMul(out, x Buffer, w Matrix, bias Buffer)
	// MatMulDX sets dx [M,In] = dout [M,Out] · W:
	//	dx[m,i] = chain over o of dout[m,o]·W[o,i], from 0.
	MatMulDX(dx, dout Buffer, w Matrix)
	// MatMulSwiGLU takes x [M,In] through W [2F,In] to gate and up, gateUp [M,2F], and
	// through the gate: with g = gateUp[m,f] and u = gateUp[m,F+f],
	//	gateUp = x·Wᵀ as MatMul gives it
	//	act[m,f] = (g·Sigmoid(g))·u
	// gateUp may be empty: it is not kept then, and act [M,F] is what it would be.
	MatMulSwiGLU(act, gateUp, x Buffer, w Matrix)
	// MatMulDXSwiGLU takes dout [M,Out] back through W [Out,F] and the gate, to the
	// gradients of gate and up, dgateUp [M,2F]; with s = Sigmoid(g),
	//	d = dout·W as MatMulDX gives it in an operand
	//	dgateUp[m,F+f] = d·(g·s)
	//	dgateUp[m,f] = (d·u) · (s·fma(g, 1-s, 1))
	// dgateUp may be gateUp.
	MatMulDXSwiGLU(dgateUp, gateUp, dout Buffer, w Matrix)
	// MatMulDW adds to dw [Out,In] the blocked sum of
	//	chain over m of dout[m,o]·x[m,i],
	// and to dbias [Out], unless it is empty, the blocked plain sum of dout.
	// blocks [B+1] are the row offsets of the gradient blocks: they ascend from 0 to
	// the number of rows M, and no block is empty. So they do wherever an operation
	// takes them.
	MatMulDW(dw, dbias, dout, x, blocks Buffer)

	// Embed sets out[m] = scale·W[ids[m]], out [M,In], W [Out,In], ids [M]. It reads w.W,
	// or w.Packed where W is empty. scale is rounded to float first; Gemma's is √C.
	Embed(out Buffer, w Matrix, ids Buffer, scale float64)
	// EmbedBackward adds scale·dout[m] to dweight[ids[m]], m ascending.
	EmbedBackward(dweight, dout, ids Buffer, C int, scale float64)
}

// PackAlign is the number of rows that PackRows takes at a time, or a multiple.
const PackAlign = 64

// GateKind is the activation of a gated feed-forward block.
type GateKind uint8

const (
	SiLU     GateKind = iota // g·Sigmoid(g): Llama, Qwen, Mistral, Phi
	GELUTanh                 // g·(1+tanh(√(2/π)·(g+0.044715·g³)))/2: Gemma
)

// Gates are gated activations by themselves, for feed-forward blocks that
// MatMulSwiGLU does not compute: with biases, with adapters, with another gate. gateUp,
// act and their gradients are operands.
type Gates interface {
	// Gate sets, with g = gateUp[m,f] and u = gateUp[m,F+f],
	//	act[m,f] = a(g)·u
	// For SiLU it is what MatMulSwiGLU computes of gateUp. GELUTanh is computed in
	// float64 as kernels/ref does and rounded once before it is multiplied by u.
	Gate(act, gateUp Buffer, F int, kind GateKind)
	// GateBackward sets dgateUp from dact: for SiLU as MatMulDXSwiGLU does of d; for
	// GELUTanh, with the derivative a' computed in float64 and rounded once,
	//	dgateUp[m,F+f] = d·a(g)
	//	dgateUp[m,f] = (d·u)·a'(g)
	// dgateUp may be gateUp.
	GateBackward(dgateUp, gateUp, dact Buffer, F int, kind GateKind)
}

// Columns move a range of the columns of rows, as low-rank adapters on one of several
// maps that lie side by side need it. dst and src may each be of the Operand or the
// Float type.
type Columns interface {
	// TakeColumns sets dst [M,n] to scale·src[m, offset+j], src [M,stride].
	TakeColumns(dst, src Buffer, n, stride, offset int, scale float64)
	// AddColumns sets dst[m, offset+j] = fma(scale, src[m,j], dst[m, offset+j]), dst
	// [M,stride], src [M,n].
	AddColumns(dst, src Buffer, n, stride, offset int, scale float64)
}

// Routing is how a mixture of experts chooses for each row.
type Routing struct {
	Experts int  // E
	Top     int  // experts that a row goes to
	Renorm  bool // divide the weights of the chosen by their sum
	Shared  bool // one more expert, number E, that every row goes to
}

// Choices returns the experts of a row: Top, and the shared one.
func (r Routing) Choices() int {
	if r.Shared {
		return r.Top + 1
	}
	return r.Top
}

// Logits returns the width of a row of logits: one for each expert, and one for the
// gate of the shared one.
func (r Routing) Logits() int {
	if r.Shared {
		return r.Experts + 1
	}
	return r.Experts
}

// Experts are what mixtures of experts need around the products, which are those of
// Linear on the rows of one expert after the other (Jiang et al., arXiv:2401.04088;
// Qwen2-MoE, arXiv:2407.10671 §2.2.2). J is Routing.Choices.
type Experts interface {
	// Route chooses the experts of each row from logits [M,Logits], float:
	//	p[e]   = Exp(z[e]-m) / s     over the E experts; m = max z, s = lane sum of Exp(z-m)
	// The Top experts of largest p, of equal ones the lower number, go to choice [M,J] in
	// ascending order, and to weight [M,J] go their p, with Renorm divided by the plain
	// sum of them in that order. With Shared the last choice is E, its weight
	// Sigmoid(z[E]). probs [M,E] keeps p for the backward pass. NaN sorts last.
	Route(choice, weight, probs, logits Buffer, r Routing)
	// RouteBackward sets dlogits [M,Logits] from dweight [M,J]. With Renorm, W the sum of
	// the chosen p and t the plain sum over them of dweight·weight, dp = (dweight - t)/W
	// for the chosen; without, dp = dweight; 0 for the others. Then, with u the lane sum
	// over all E of dp·p, dlogits[e] = p·(dp - u), and for the shared expert
	// dlogits[E] = dweight·(w·(1-w)).
	RouteBackward(dlogits, dweight, choice, weight, probs Buffer, r Routing)
	// Combine sets out [M,C] to the weighted sum of the experts' results: x [M·J,C] holds
	// them in any order, that of choice j of row m at slot[m,j]:
	//	out[m,c] = chain over j of weight[m,j]·x[slot[m,j],c], from 0
	// out, x and weight are float.
	Combine(out, x, slot, weight Buffer, C, J int)
	// CombineBackward sets
	//	dx[slot[m,j],c] = weight[m,j]·dout[m,c]
	//	dweight[m,j]    = lane sum over c of dout[m,c]·x[slot[m,j],c]
	CombineBackward(dx, dweight, dout, x, slot, weight Buffer, C, J int)
}

// NormShape says which vectors of a buffer a norm works on: of each row of
// Stride elements, Heads vectors of Dim elements, the first at Offset. The
// plain norm of x [M,C] is {Heads: 1, Dim: C, Stride: C}. The weight [Dim] is
// shared by the heads; x, out, dx and dout are [M,Stride].
//
// With UnitOffset the weight that is stored is added to 1, rounded to float, before it
// is used: Gemma's norms. Its gradient is that of the stored weight.
type NormShape struct {
	Heads, Dim, Stride, Offset int
	UnitOffset                 bool
}

// Norm are the operations on each row by itself. Operands are out of RMSNorm and
// AddRMSNorm; out, x, dx and dout of a norm whose
// shape has several heads or leaves a part of the row out (the norm of queries and
// keys) are operands, too.
type Norm interface {
	// RMSNorm sets, for each vector x of the shape,
	//	ss     = lane sum of x[i]·x[i]
	//	rstd   = 1 / sqrt(ss/Dim + eps)
	//	out[i] = (x[i]·rstd) · weight[i]
	// rstd is [M,Heads]. Elements outside the shape are not written. out may be x. out
	// of a plain norm may be of the Float type, too.
	RMSNorm(out, rstd, x, weight Buffer, s NormShape, eps float64)
	// AddRMSNorm sets sum = x + delta, then out and rstd as RMSNorm does of sum;
	// all [M,C]. The shape must be a plain one. sum may be x or delta.
	AddRMSNorm(sum, out, rstd, x, delta, weight Buffer, s NormShape, eps float64)
	// RMSNormBackward, for each vector, with g[i] = dout[i]·weight[i]:
	//	dot     = lane sum of g[i]·x[i]
	//	a       = (dot·((rstd·rstd)·rstd)) / Dim
	//	dx[i]  += fma(-a, x[i], g[i]·rstd)
	// and adds to dweight the blocked plain sum over rows, heads ascending within a
	// row, of fma(dout[i], x[i]·rstd, acc). With set, dx is overwritten instead of
	// added to (for each vector; the rest of the row is untouched), and dx may be
	// dout.
	RMSNormBackward(dx, dweight, dout, x, weight, rstd, blocks Buffer, s NormShape, set bool)

	// LayerNorm sets, for each row x [C],
	//	mean   = lane sum of x[i] / C
	//	var    = lane sum of (x[i]-mean)² / C
	//	rstd   = 1 / sqrt(var + eps)
	//	out[i] = fma((x[i]-mean)·rstd, weight[i], bias[i])
	// stats [M,2] holds mean and rstd.
	LayerNorm(out, stats, x, weight, bias Buffer, C int, eps float64)
	// LayerNormBackward, with h[i] = (x[i]-mean)·rstd and g[i] = dout[i]·weight[i]:
	//	a     = lane sum of g[i] / C
	//	b     = lane sum of g[i]·h[i] / C
	//	dx[i] = fma(-h[i], b, g[i]-a) · rstd
	// and adds the blocked sums of dout·h (chain) to dweight and dout (plain) to
	// dbias.
	LayerNormBackward(dx, dweight, dbias, dout, x, weight, stats, blocks Buffer, C int)

	// GELU sets out[i] = x·(1+erf(x/√2))/2, computed in float64 as kernels/ref does
	// (libraries differ in the tails) and rounded once.
	GELU(out, x Buffer)
	// GELUBackward sets dx[i] = dout[i] · GELU'(x[i]), the derivative computed in
	// float64 and rounded once. dx may be dout.
	GELUBackward(dx, dout, x Buffer)

	// Dropout sets out[m,c] = x[m,c]·(1/(1-p)), or 0 with probability p, for x
	// [M,C]. Element c of row m is dropped if Uniform24 of word c%4 of
	// Philox(key of row m, {c/4, layer, 0, 0}) is below p. keys [M,2] holds each row's
	// key, the bits of its two words. p is compared, and 1/(1-p) computed, in float64;
	// a dropped element is +0 whatever x is. Its backward pass is itself. out may be x.
	Dropout(out, x, keys Buffer, C int, layer uint32, p float64)
}

// AttentionShape is the layout of a row of queries, keys and values:
// [H·D queries | K·D keys | K·D values]. Query head h reads key/value head
// h/(H/K). Scale multiplies the scores; it is mostly 1/sqrt(D). All numbers are
// rounded to float.
type AttentionShape struct {
	H, K, D int
	Scale   float64
	// Window is how many positions a query sees, itself included; 0: all before it.
	// Counted from the start of the sequence, prefix included.
	Window int
	// Cap > 0 replaces each scaled score z by Cap·Tanh(z/Cap) (Gemma 2, arXiv:2408.00118 §2),
	// with Tanh of kernels/ref.
	Cap float64
	// Rotary is how many channels of a head Rope rotates, the first ones; 0: all. Even.
	Rotary int
}

// Rotated returns the channels of a head that Rope rotates.
func (s AttentionShape) Rotated() int {
	if s.Rotary > 0 {
		return s.Rotary
	}
	return s.D
}

// Stride returns the elements of a row.
func (s AttentionShape) Stride() int { return (s.H + 2*s.K) * s.D }

// Pages is a paged cache of keys and values for one layer. A page holds Size
// consecutive positions of one sequence: keys as [K,D,Size] (so that Size
// positions of one component lie together), values as [K,Size,D]. They are
// operands.
type Pages struct {
	Keys, Values Buffer // [pages,K,D,Size], [pages,K,Size,D]
	Size         int    // positions in a page; a multiple of Lanes
}

// Sequence are the operations that know where sequences begin. Operands are qkv,
// dqkv, out and dout of Rope and of attention, and the pages; out and x of
// GatherRows and x of SegmentMean, which are hidden states. In numerics class
// "cpu/bf16" their chains are tile sums, over components, key positions and query
// rows, the latter two counted from the start of the sequence, prefix included.
type Sequence interface {
	// Rope rotates, in place, the H+K query and key heads of every row of qkv
	// [M,Stride] by its position: for i < P, P half of Rotated, with c = cos[pos,i],
	// s = sin[pos,i],
	//	x[i]   = fma(x[i], c, -(x[i+P]·s))
	//	x[i+P] = fma(x[i+P], c, x[i]·s)      of the old x
	// cos and sin are [positions,P]; pos [M]. With inverse, s is negated: the
	// backward pass.
	Rope(qkv, cos, sin, pos Buffer, s AttentionShape, inverse bool)

	// Attention sets out [M,H·D] for packed sequences: rows offsets[j] to offsets[j+1],
	// offsets [S+1], are sequence j's own, possibly none. groups [G+1] says which share
	// their beginning: the first sequence of groups[g] to groups[g+1] is the prefix of the
	// others, which see its rows, all of them, before their own. With empty groups no
	// sequence has a prefix. For query row i and head h, over the rows t ≤ i of its
	// sequence, prefix included, counted from the sequence's start, with a window
	// over those with i-t < Window:
	//	z[t]   = (chain over d of q[d]·k[t,d]) · Scale, capped if Cap > 0
	//	m      = max z
	//	e[t]   = Exp(z[t] - m)
	//	l      = lane sum of e[t], lanes counted from t = 0
	//	out[d] = (chain over t of e[t]·v[t,d]) · (1/l)
	// stats [M,H,2] holds m and 1/l for the backward pass. A maximum starts from -Inf,
	// passes NaN over, which reaches the result through e, and is +0 where it is a zero.
	Attention(out, stats, qkv, offsets, groups Buffer, s AttentionShape)
	// AttentionBackward sets dqkv [M,Stride]. With z, m, l as above and
	//	delta = lane sum of dout[d]·out[d]
	//	p[t]  = Exp(z[t] - m)·(1/l)
	//	dp[t] = chain over d of dout[d]·v[t,d]
	//	dz[t] = (p[t]·(dp[t] - delta)) · Scale
	//	dz[t] = ((p[t]·(dp[t] - delta))·(1 - y·y)) · Scale   with a cap, y = Tanh(z/Cap) before it
	// it is
	//	dq[d]   = chain over t ascending of dz[t]·k[t,d]
	//	dk[t,d] = chain of dz[t]·q[d], dv[t,d] = chain of p[t]·dout[d], each over the
	//	          sequences that see t ascending, within a sequence the query heads
	//	          that share t's head ascending, within a head the query rows ascending.
	AttentionBackward(dqkv, dout, out, stats, qkv, offsets, groups Buffer, s AttentionShape)

	// AppendKV stores the keys and values of every row of qkv [M,Stride] in a
	// layer's pages. slots [M] is page·Size + position within the page.
	AppendKV(p Pages, qkv, slots Buffer, s AttentionShape)
	// PagedAttention sets out [M,H·D] as Attention does, for rows whose keys and
	// values are in pages: row m belongs to sequence seq[m] and sees its positions
	// 0 to pos[m], or those of its window; position t is in page table[seq[m], t/Size]. table is
	// [sequences,width], width = tableWidth; entries past the last visible position, or
	// before the first, are not read.
	PagedAttention(out, qkv Buffer, p Pages, table, seq, pos Buffer, tableWidth int, s AttentionShape)
	// CopyPages copies page pairs[2i] to page pairs[2i+1], keys and values, in order.
	CopyPages(p Pages, pairs Buffer, s AttentionShape)

	// GatherRows sets out[r] = x[rows[r]], C elements each.
	GatherRows(out, x, rows Buffer, C int)
	// ScatterRows sets dx [M,C] to zero, then adds dout[r] to dx[rows[r]], r ascending.
	ScatterRows(dx, dout, rows Buffer, C int)
	// SegmentMean sets out[j] [C] to the mean of rows segments[2j] to
	// segments[2j+1] of x: plain sum in row order, divided by their number; 0 for
	// an empty segment.
	SegmentMean(out, x, segments Buffer, C int)
	// SegmentMeanBackward adds dout[j]/n to the rows of segment j of dx, segments
	// ascending; they may overlap.
	SegmentMeanBackward(dx, dout, segments Buffer, C int)
}

// Scores are the per-row results of the output layer, each [R].
type Scores struct {
	LogProb Buffer // log-prob of the row's target under softmax(z)
	Entropy Buffer // of softmax(z), nats
	LSE     Buffer // logsumexp(z)
}

// Sampling restricts and shapes a draw. The log-prob that is recorded is always
// that of the full softmax at this temperature. The zero value is invalid:
// TopP must be in (0,1]. A token is kept if every filter keeps it; each filter sees
// the whole distribution, not what another left of it.
type Sampling struct {
	Temperature float64 // > 0, or 0 for the most probable token (lowest id among ties)
	TopK        int     // keep the k most probable tokens; 0 keeps all
	TopP        float64 // keep the smallest set of most probable tokens with mass ≥ p; 1 keeps all
	MinP        float64 // keep tokens with probability ≥ p · the largest; 0 keeps all
	Cap         float64 // of the logits, as Softmax.Cap
}

// Softmax is how logits become a distribution.
type Softmax struct {
	Temperature float64 // divides the logits; > 0
	Cap         float64 // > 0: each logit z becomes Cap·Tanh(z/Cap) first (Gemma 2)
}

// Output is the output layer: projection on the vocabulary, log-softmax, and
// what is read off it. Logits exist in chunks of rows only.
//
// For a row h [C]:
//
//	z[v] = (chain over c of h[c]·W[v,c]) · invTemp
//	z[v] = (Cap·Tanh((chain over c)/Cap)) · invTemp     with a cap; division by Cap is
//	       a product with 1/Cap, rounded to float
//	m    = max z;  e[v] = Exp(z[v]-m);  s = lane sum of e[v];  lse = m + Log(s)
//	logprob = z[target] - lse
//	entropy = Log(s) - (lane sum of e[v]·(z[v]-m)) / s
//
// invTemp is 1/temperature rounded to float. h is an operand. In numerics class
// "cpu/bf16" the chain is a tile sum and dz is rounded to BF16 where it is
// multiplied.
type Output interface {
	// LogProb fills out for rows h [R,C], weight w [V,C] and targets [R].
	LogProb(out Scores, h Buffer, w Matrix, targets Buffer, x Softmax)
	// Logits sets out [R,V], float, to the chains, capped if cap > 0: z before the
	// temperature.
	Logits(out, h Buffer, w Matrix, cap float64)
	// LogProbBackward takes the gradients with respect to LogProb and Entropy,
	// each [R], and the scores of the forward pass. With p = Exp(z[v]-lse),
	//	q     = fma(dEntropy, (z[v]-lse) + entropy, dLogProb)
	//	dz[v] = (-(p·q) + dLogProb)·invTemp at the target, -(p·q)·invTemp elsewhere
	// and with a cap dz[v] = dz[v]·(1 - y·y), y the Tanh, it sets dh [R,C] = dz·W as
	// MatMulDX does and adds to dw [V,C] as MatMulDW does; an empty dw is left out.
	LogProbBackward(dh, dw, dLogProb, dEntropy Buffer, sc Scores, h Buffer, w Matrix, targets, blocks Buffer, x Softmax)
	// Sample draws a token for each row of h and fills ids [R] (int32) and out. u
	// [R] (float, from Uniform24) decides the draw:
	//
	// Of the tokens ordered by z descending, then id ascending, TopK keeps the
	// first k, TopP the shortest prefix whose sum of e in that order in float64
	// reaches p·s, MinP those with e ≥ p in float64. The kept e[v] (0 for the others)
	// are summed in float64: lane sums over blocks of SampleBlock ids, lanes counted
	// from the block's start, then over the blocks in order. With x = u·total, the
	// token is in the first block at whose end the running sum exceeds x; within it
	// ids are added in order to the sum before the block, and the first id that makes
	// it exceed x is drawn (the block's last id with e > 0 if rounding leaves none).
	//
	// At temperature 0 it draws the first token in that order, with scores at
	// temperature 1. Where s is NaN token 0 is drawn, with NaN scores.
	Sample(ids Buffer, out Scores, h Buffer, w Matrix, u Buffer, p Sampling)
}

// SampleBlock is the number of token ids whose probabilities Sample sums before
// it looks for the token among them.
const SampleBlock = 256

// AdamW are the settings of one update (Loshchilov and Hutter,
// arXiv:1711.05101, algorithm 2 with decoupled decay as PyTorch applies it).
type AdamW struct {
	LR, Beta1, Beta2, Eps, WeightDecay float64
	GradScale                          float64 // multiplies every gradient: the clipping factor
	Step                               int     // 1 for the first update
}

// Update are the operations of the optimizer.
type Update interface {
	// AdamW updates p, m and v from gradient g, elements in the order
	//	g' = g·GradScale
	//	m  = fma(1-Beta1, g', Beta1·m)
	//	v  = fma((1-Beta2)·g', g', Beta2·v)
	//	d  = sqrt(v)·c2 + Eps
	//	p  = fma(-(LR·c1), m/d, p·(1-LR·WeightDecay))
	// with c1 = 1/(1-Beta1^Step) and c2 = 1/sqrt(1-Beta2^Step). The coefficients
	// GradScale, Beta1, 1-Beta1, Beta2, 1-Beta2, c2, Eps, LR·c1 and
	// 1-LR·WeightDecay are computed in float64 and rounded to float once.
	AdamW(p, m, v, g Buffer, a AdamW)
	// SumSquares sets out[0] (F64) to the sum of x[i]·x[i] in float64: lane sums,
	// with fma, over consecutive SumBlock elements, added in order.
	SumSquares(out, x Buffer)
}

// SumBlock is the number of elements in a partial sum of SumSquares.
const SumBlock = 4096
