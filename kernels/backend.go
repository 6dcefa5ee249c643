package kernels

// Backend is a compute device. Its operations may run asynchronously in the
// order they were called; Sync waits for all of them. Copy to a host buffer is
// complete only after Sync. A Backend is used by one goroutine at a time.
//
// Operations panic with "kernels: …" or "cpu: …" on mismatched lengths or
// types: those are errors of the caller's code. If the device fails, an operation or a
// later Sync panics with a *DeviceError. They never fail otherwise.
// Output buffers must not overlap inputs unless the operation says so.
//
// M is the number of rows of the call, taken from the output's length; float
// means the backend's Float type. Scalars (eps, scales, temperatures) are rounded
// to it first. Buffers called operands have the Operand type; all others are
// Float, except ids and other integers. Zero rows are allowed everywhere and write
// nothing. A computed NaN may have any sign and payload.
type Backend interface {
	// Name is a short name for people: "cpu/avx512", "ref".
	Name() string
	// Class names the numerics class: backends of one class produce the same
	// bits. It is part of a run's id.
	Class() string
	// Float is the type of parameters, the residual stream, the gradients of both,
	// and all sums.
	Float() DType
	// Operand is the type of activations between matmuls and of the KV cache: Float
	// or BF16 (see the package comment, "bf16").
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
	Recurrence
	Latent
}

// Memory allocates and moves data.
type Memory interface {
	// Alloc returns n zeroed elements, or an error if the device is out of memory.
	Alloc(t DType, n int) (Buffer, error)
	// Free frees a buffer that Alloc returned; a view of one will not do.
	Free(b Buffer)
	// Copy copies src to dst, element by element. Lengths must be equal. It converts
	// between F32 and F64 and between F32 and BF16, nothing else. Either may be a
	// host buffer.
	Copy(dst, src Buffer)
	// Zero sets every element to 0.
	Zero(b Buffer)
	// Add adds src to dst, float buffers, element by element.
	Add(dst, src Buffer)
	// Sync waits until all earlier calls have finished. It panics with a *DeviceError if one of
	// them failed on the device.
	Sync()
}

// SparseMemory is a backend whose AllocSparse returns buffers that take memory only where they
// are touched, in small steps.
type SparseMemory interface {
	AllocSparse(t DType, n int) (Buffer, error)
}

// AllocSparse returns n zeroed elements for a caller that may never touch many of them: from
// be's AllocSparse if it has one, else from Alloc.
func AllocSparse(be Backend, t DType, n int) (Buffer, error) {
	if m, ok := be.(SparseMemory); ok {
		return m.AllocSparse(t, n)
	}
	return be.Alloc(t, n)
}

// RowsPerRead returns how many rows be multiplies with a model's weights in about the time that it takes to read them,
// for weights of so many bytes. Fewer rows take little less time. 0: be does not say.
func RowsPerRead(be Backend, bytes int) int {
	if b, ok := be.(interface{ RowsPerRead(bytes int) int }); ok {
		return b.RowsPerRead(bytes)
	}
	return 0
}

// HostMemory is a backend whose AllocHost returns memory of the host that its operations reach,
// more slowly than the device's.
type HostMemory interface {
	AllocHost(t DType, n int) (Buffer, error)
}

// OnHost returns be with an Alloc that takes the host's memory, where be is a HostMemory. On others
// it returns be.
func OnHost(be Backend) Backend {
	if m, ok := be.(HostMemory); ok {
		return onHost{be, m}
	}
	return be
}

type onHost struct {
	Backend
	memory HostMemory
}

// Alloc implements Memory.
func (h onHost) Alloc(t DType, n int) (Buffer, error) { return h.memory.AllocHost(t, n) }

// Matrix is a weight W [Out,In] and the copies of it that the backend multiplies
// from. Backend.Pack makes Packed and PackedT and must be called again whenever W
// changes; they are operand buffers, empty where the backend needs no copies.
//
// A frozen matrix may have BF16 weights on a backend whose operands are F32: then
// Packed is BF16, and every product has the bits of the F32 matrix with the same
// values, since widening is exact. Such a matrix may also leave W empty if the backend
// packs: PackRows fills Packed a few rows at a time, and Embed reads it.
type Matrix struct {
	W       Buffer // [Out,In], F32 or, frozen, BF16; may be empty where Packed is not
	Out, In int
	Packed  Buffer // for MatMul, MatMulSwiGLU, LogProb and Sample
	PackedT Buffer // for MatMulDX, MatMulDXSwiGLU and LogProbBackward; empty if frozen: they use Packed
}

// Linear is the linear maps and the token embedding. In numerics class
// "cpu/bf16" their chains are tile sums of rounded factors (see the package
// comment, "bf16"), and out, x, dx and dout may each be of the Operand or the
// Float type; act, gateUp and dgateUp are operands.
type Linear interface {
	// PackedLen returns the lengths of Matrix.Packed and Matrix.PackedT for a
	// weight [out,in]; 0 if the backend needs no copy.
	PackedLen(out, in int) (packed, packedT int)
	// Pack refreshes w.Packed, and w.PackedT unless it is empty, from w.W.
	Pack(w Matrix)
	// PackRows packs rows [n,In], F32 or BF16, possibly a host buffer, into rows
	// [from, from+n) of w.Packed. from must be a multiple of PackAlign, and n too unless
	// the rows are the last. PackedT must be empty. If PackedLen is 0 it sets rows of
	// w.W instead.
	PackRows(w Matrix, from int, rows Buffer)

	// MatMul sets out [M,Out] = x [M,In] · Wᵀ + bias [Out]:
	//	out[m,o] = chain over i of x[m,i]·W[o,i], starting from bias[o], or from
	//	0 if bias is empty.
	MatMul(out, x Buffer, w Matrix, bias Buffer)
	// MatMulDX sets dx [M,In] = dout [M,Out] · W:
	//	dx[m,i] = chain over o of dout[m,o]·W[o,i], from 0.
	MatMulDX(dx, dout Buffer, w Matrix)
	// MatMulSwiGLU multiplies x [M,In] by W [2F,In] to gate and up, gateUp [M,2F], and
	// applies the gate: with g = gateUp[m,f] and u = gateUp[m,F+f],
	//	gateUp = x·Wᵀ as MatMul computes it
	//	act[m,f] = (g·Sigmoid(g))·u
	// If gateUp is empty it is not stored; act [M,F] is the same.
	MatMulSwiGLU(act, gateUp, x Buffer, w Matrix)
	// MatMulDXSwiGLU takes dout [M,Out] back through W [Out,F] and the gate to dgateUp
	// [M,2F], the gradients of gate and up; with s = Sigmoid(g),
	//	d = dout·W as MatMulDX stores it in an operand
	//	dgateUp[m,F+f] = d·(g·s)
	//	dgateUp[m,f] = (d·u) · (s·fma(g, 1-s, 1))
	// dgateUp may be gateUp.
	MatMulDXSwiGLU(dgateUp, gateUp, dout Buffer, w Matrix)
	// MatMulDW adds to dw [Out,In] the blocked sum of
	//	chain over m of dout[m,o]·x[m,i],
	// and to dbias [Out], unless it is empty, the blocked plain sum of dout.
	// blocks [B+1] are the row offsets of the gradient blocks, here and wherever an
	// operation takes them: they ascend from 0 to the number of rows M, and no block is
	// empty.
	MatMulDW(dw, dbias, dout, x, blocks Buffer)

	// Embed sets out[m] = scale·W[ids[m]], out [M,In], W [Out,In], ids [M]. It reads w.W,
	// or w.Packed if W is empty. scale is rounded to float first; Gemma's is √C. In class
	// "matrix/16x25" it rounds W to BF16 first.
	Embed(out Buffer, w Matrix, ids Buffer, scale float64)
	// EmbedBackward adds scale·dout[m] to dweight[ids[m]], m ascending.
	EmbedBackward(dweight, dout, ids Buffer, C int, scale float64)
}

// PackAlign is the row multiple that PackRows requires.
const PackAlign = 64

// GateKind is the activation of a gated feed-forward block.
type GateKind uint8

const (
	SiLU          GateKind = iota // g·Sigmoid(g): Llama, Qwen, Mistral, Phi
	GELUTanh                      // g·(1+tanh(√(2/π)·(g+0.044715·g³)))/2: Gemma
	Clamped                       // c·Sigmoid(1.702·c), c = min(g, 7); other factor 1 + u, u from -7 to 7: gpt-oss
	ReLU2                         // max(g, 0)², without another factor: Nemotron-H
	PlainGELU                     // g·(1+erf(g/√2))/2, without another factor: GPT-NeoX
	PlainGELUTanh                 // GELUTanh's, without another factor: GPT-2
	XIELU                         // Gates.XIELU instead of Gate, without another factor: Apertus
)

// Factors returns how many numbers an activation is computed from.
func (k GateKind) Factors() int {
	if k >= ReLU2 {
		return 1
	}
	return 2
}

// GateLimit and GateSlope are Clamped's limit and the factor within its Sigmoid (gpt-oss, arXiv:2508.10925).
const (
	GateLimit = 7
	GateSlope = 1.702
)

// Gates is the gated activations on their own, for feed-forward blocks that
// MatMulSwiGLU does not cover: with biases, adapters or another gate. gateUp, act and
// their gradients are operands.
type Gates interface {
	// Gate sets, with g = gateUp[m,f] and u = gateUp[m,F+f],
	//	act[m,f] = a(g)·u
	// For SiLU this is MatMulSwiGLU's act. GELUTanh is computed in float64 as in
	// kernels/ref and rounded once before the product with u. For Clamped, with c = g or 7
	// if that is less, v = u or the nearest of -7 and 7 if it is beyond, and
	// s = Sigmoid(1.702·c),
	//	act[m,f] = (c·s)·(v + 1)
	// For ReLU2 gateUp is [M,F], and with r = max(g, 0), a NaN being one,
	//	act[m,f] = r·r
	// For PlainGELU and PlainGELUTanh gateUp is [M,F], too, and act[m,f] = a(g), computed in float64 and rounded once.
	Gate(act, gateUp Buffer, F int, kind GateKind)
	// GateBackward sets dgateUp from d = dact: for SiLU as MatMulDXSwiGLU does; for
	// GELUTanh, with the derivative a' computed in float64 and rounded once,
	//	dgateUp[m,F+f] = d·a(g)
	//	dgateUp[m,f] = (d·u)·a'(g)
	// for Clamped, and 0 where g > 7 or u is beyond its bounds,
	//	dgateUp[m,F+f] = d·(c·s)
	//	dgateUp[m,f] = (d·(v + 1)) · (s·fma(1.702·c, 1-s, 1))
	// and for ReLU2
	//	dgateUp[m,f] = d·(r + r)
	// and for the plain ones, with the derivative a' computed in float64 and rounded once,
	//	dgateUp[m,f] = d·a'(g)
	// dgateUp may be gateUp.
	GateBackward(dgateUp, gateUp, dact Buffer, F int, kind GateKind)

	// XIELU sets act [M,F] from x [M,F], operands: with g = x[m,f] and n = (exp(min(g, Eps)) - 1) - g,
	//	act[m,f] = fma(Beta, g, Positive·(g·g))   where g > 0
	//	act[m,f] = fma(Beta, g, Negative·n)       elsewhere
	// computed in float64 as in kernels/ref and rounded once. Huang and Schlag, arXiv:2411.13010, with the quadratic
	// and the exponential part as transformers has them. act may be x.
	XIELU(act, x Buffer, F int, a Xielu)
	// XIELUBackward sets dx [M,F] to d·a'(g), d = dact[m,f], with the derivative
	//	a'(g) = fma(2·Positive, g, Beta)          where g > 0
	//	a'(g) = fma(Negative, e-1, Beta)          elsewhere, e = exp(g) where g < Eps, else 0
	// computed in float64 and rounded once, and adds to dalpha [2] the blocked plain sums over rows of the lane sums
	// over f of d·p and d·q, where p = DPositive·(g·g) for g > 0 and q = DNegative·n elsewhere, each 0 otherwise,
	// computed in float64 and rounded once. dx may be x or dact.
	XIELUBackward(dx, dalpha, x, dact, blocks Buffer, F int, a Xielu)

	// Clip sets out[i] to x[i], to limit if it is above that, or to -limit if it is below that; a NaN stays one. limit
	// is positive; out and x are operands; out may be x.
	Clip(out, x Buffer, limit float64)
	// ClipBackward sets dx[i] to dout[i], or to 0 where x[i] is beyond the limit. dx may be dout.
	ClipBackward(dx, dout, x Buffer, limit float64)
}

// Xielu holds the numbers of an xIELU activation. DPositive and DNegative are the derivatives of Positive and Negative
// with respect to the parameters that XIELUBackward's dalpha belongs to.
type Xielu struct {
	Positive, Negative, Beta, Eps float64
	DPositive, DNegative          float64
}

// Columns reads and updates a range of columns, which low-rank adapters need on one of
// several maps stored next to each other. dst and src may each be of the Operand or the
// Float type.
type Columns interface {
	// TakeColumns sets dst [M,n] to scale·src[m, offset+j], src [M,stride]. dst may be src where n is stride.
	TakeColumns(dst, src Buffer, n, stride, offset int, scale float64)
	// AddColumns sets dst[m, offset+j] = fma(scale, src[m,j], dst[m, offset+j]), dst
	// [M,stride], src [M,n].
	AddColumns(dst, src Buffer, n, stride, offset int, scale float64)
}

// Routing says how a mixture of experts picks the experts of each row.
type Routing struct {
	Experts int  // E
	Top     int  // experts per row
	Renorm  bool // divide the weights of the chosen experts by their sum
	Shared  bool // one more expert, number E, for every row

	// DeepSeek-V3 (arXiv:2412.19437 §2.1.2) and its followers:
	Sigmoid   bool    // p is the Sigmoid of a logit instead of a softmax over all
	Ungated   bool    // the shared expert has weight 1 and no logit
	Groups    int     // the experts are in so many groups of consecutive numbers, at most 64; 0: in one
	TopGroups int     // a row's experts are of so many groups
	Scale     float64 // multiplies the weights of the Top experts; 0: 1
	Eps       float64 // Renorm adds it to a sum of Sigmoids; 0: RoutingEps
}

// RoutingEps is what DeepSeek-V3 adds to the sum of a row's weights. LFM2 adds 1e-6.
const RoutingEps = 1e-20

// MaxGroups is the most groups of a Routing.
const MaxGroups = 64

// Check panics if no row can be routed so.
func (r Routing) Check() {
	if r.Experts < 1 || r.Top < 1 || r.Top > r.Experts {
		panic("kernels: a row goes to at least one expert and at most all")
	}
	if r.Groups == 0 && r.TopGroups == 0 {
		return
	}
	if r.Groups < 1 || r.Groups > MaxGroups || r.Experts%r.Groups != 0 || r.TopGroups < 1 || r.TopGroups > r.Groups ||
		int(r.Top*r.Groups) > int(r.TopGroups*r.Experts) {
		panic("kernels: a row's groups do not have the experts that it goes to")
	}
}

// Factor returns what the weights of the Top experts are multiplied by.
func (r Routing) Factor() float64 {
	if r.Scale == 0 {
		return 1
	}
	return r.Scale
}

// Added returns what Renorm adds to the sum of the weights.
func (r Routing) Added() float64 {
	switch {
	case !r.Sigmoid:
		return 0
	case r.Eps == 0:
		return RoutingEps
	}
	return r.Eps
}

// Choices returns the number of experts per row: Top, plus the shared one if any.
func (r Routing) Choices() int {
	if r.Shared {
		return r.Top + 1
	}
	return r.Top
}

// Logits returns the width of a row of logits: one per expert, plus the shared
// expert's gate if there is one.
func (r Routing) Logits() int {
	if r.Shared && !r.Ungated {
		return r.Experts + 1
	}
	return r.Experts
}

// Experts is the routing and combining of mixtures of experts (Jiang et al.,
// arXiv:2401.04088; Qwen2-MoE, arXiv:2407.10671 §2.2.2). Linear computes the products,
// one expert's rows after another's. J is Routing.Choices.
type Experts interface {
	// Route chooses the experts of each row from logits [M,Logits], float:
	//	p[e]   = Exp(z[e]-m) / s     over the E experts; m = max z, s = lane sum of Exp(z-m)
	// choice [M,J] gets the Top experts with the largest p, ascending by number; ties go
	// to the lower number. weight [M,J] gets their p, with Renorm divided by the plain
	// sum of them in that order. With Shared the last choice is E, its weight
	// Sigmoid(z[E]). probs [M,E] keeps p for the backward pass. NaN sorts last.
	// With Sigmoid, p[e] = Sigmoid(z[e]), and Renorm adds Eps to the sum. A bias [E], unless
	// it is empty, changes the choice but no weight: the Top experts then have the largest
	// c[e] = p[e] + bias[e]. With Groups, a row takes experts of its TopGroups best groups
	// alone, ties to the lower number. A group is as good as its largest c, or with Sigmoid
	// as the sum of its two largest; both start from -Inf and skip NaN. Scale multiplies the
	// weights of the Top last. An Ungated shared expert has weight 1.
	Route(choice, weight, probs, logits, bias Buffer, r Routing)
	// RouteBackward sets dlogits [M,Logits] from dweight [M,J]. With Renorm, W the sum of
	// the chosen p and t the plain sum over them of dweight·weight, dp = (dweight - t)/W
	// for the chosen; without, dp = dweight; 0 for the others. Then, with u the lane sum
	// over all E of dp·p, dlogits[e] = p·(dp - u), and for the shared expert
	// dlogits[E] = dweight·(w·(1-w)). dp counts Scale: (Scale·dweight - t)/W, or
	// Scale·dweight. With Sigmoid, W is the sum and Eps, and
	// dlogits[e] = dp·(p·(1-p)) for the chosen, 0 for the others.
	RouteBackward(dlogits, dweight, choice, weight, probs Buffer, r Routing)
	// Combine sets out [M,C] to the weighted sum of the experts' results x [M·J,C], in
	// which choice j of row m is row slot[m,j]:
	//	out[m,c] = chain over j of weight[m,j]·x[slot[m,j],c], from 0
	// out, x and weight are float.
	Combine(out, x, slot, weight Buffer, C, J int)
	// CombineBackward sets
	//	dx[slot[m,j],c] = weight[m,j]·dout[m,c]
	//	dweight[m,j]    = lane sum over c of dout[m,c]·x[slot[m,j],c]
	CombineBackward(dx, dweight, dout, x, slot, weight Buffer, C, J int)
}

// NormShape says which vectors of a buffer a norm works on: in each row of
// Stride elements, Heads vectors of Dim elements, the first at Offset. The
// plain norm of x [M,C] is {Heads: 1, Dim: C, Stride: C}. The heads share the weight
// [Dim]; x, out, dx and dout are [M,Stride].
//
// With UnitOffset (Gemma) the norm multiplies by 1 + the stored weight, rounded to
// float. The gradient is the stored weight's.
type NormShape struct {
	Heads, Dim, Stride, Offset int
	UnitOffset                 bool
}

// Norm is the operations on single rows. Operands are out of RMSNorm and AddRMSNorm,
// and out, x, dx and dout of a norm whose shape has several heads or skips part of the
// row (the norm of queries and keys).
type Norm interface {
	// RMSNorm sets, for each vector x of the shape,
	//	ss     = lane sum of x[i]·x[i]
	//	rstd   = 1 / sqrt(ss/Dim + eps)
	//	out[i] = (x[i]·rstd) · weight[i]
	// rstd is [M,Heads]. Elements outside the shape are not written. out may be x. The
	// out of a plain norm may also be of the Float type.
	RMSNorm(out, rstd, x, weight Buffer, s NormShape, eps float64)
	// AddRMSNorm sets sum = x + delta, then out and rstd to RMSNorm of sum; all are
	// [M,C]. The shape must be plain. sum may be x or delta.
	AddRMSNorm(sum, out, rstd, x, delta, weight Buffer, s NormShape, eps float64)
	// RMSNormBackward, for each vector, with g[i] = dout[i]·weight[i]:
	//	dot     = lane sum of g[i]·x[i]
	//	a       = (dot·((rstd·rstd)·rstd)) / Dim
	//	dx[i]  += fma(-a, x[i], g[i]·rstd)
	// and adds to dweight the blocked plain sum over rows, heads ascending within a
	// row, of fma(dout[i], x[i]·rstd, acc). With set, the vectors of dx are overwritten
	// instead of added to (the rest of the row is untouched), and dx may be dout.
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

	// GELU sets out[i] = x·(1+erf(x/√2))/2, computed in float64 as in kernels/ref
	// (libraries differ in the tails) and rounded once.
	GELU(out, x Buffer)
	// GELUBackward sets dx[i] = dout[i] · GELU'(x[i]), the derivative computed in
	// float64 and rounded once. dx may be dout.
	GELUBackward(dx, dout, x Buffer)

	// Dropout sets out[m,c] = x[m,c]·(1/(1-p)), or 0 with probability p, for x
	// [M,C]. Element c of row m is dropped if Uniform24 of word c%4 of
	// Philox(key of row m, {c/4, layer, 0, 0}) is below p. keys [M,2] holds the two words
	// of each row's key. The comparison with p and 1/(1-p) are in float64. A dropped
	// element is +0 whatever x is. Dropout is its own backward pass. out may be x.
	Dropout(out, x, keys Buffer, C int, layer uint32, p float64)
}

// Scores are the results of the output layer for R rows.
type Scores struct {
	LogProb Buffer // [R,K] log-probs of the row's targets under softmax(z); K is 1 but for LogProb and TopTokens
	Entropy Buffer // [R] of softmax(z), nats
	LSE     Buffer // [R] logsumexp(z)
}

// Rows returns a view of the scores of rows lo to hi.
func (s Scores) Rows(lo, hi int) Scores {
	return Scores{LogProb: s.LogProb.Rows(lo, hi, s.LSE.Len()), Entropy: s.Entropy.Slice(lo, hi),
		LSE: s.LSE.Slice(lo, hi)}
}

// Sampling shapes a draw. The recorded log-prob is always under the full softmax at
// this temperature. The zero value is invalid: TopP must be in (0,1]. A token is kept
// if every filter keeps it; each filter sees the whole distribution.
type Sampling struct {
	Temperature float64 // > 0, or 0 for the most probable token (lowest id among ties)
	TopK        int     // keep the k most probable tokens; 0 keeps all
	TopP        float64 // keep the smallest set of most probable tokens with mass ≥ p; 1 keeps all
	MinP        float64 // keep tokens with probability ≥ p · the largest; 0 keeps all
	Cap         float64 // caps the logits, see Softmax.Cap
	Adjust      Adjustments
	Mask        Buffer // [R,MaskWords(V)] int32; empty: all tokens may be drawn
}

// MaskWords returns the number of words that say which of V tokens may be drawn: token v may if bit v%32 of word v/32
// is set.
func MaskWords(V int) int { return (V + 31) / 32 }

// Adjustments change the logits of some tokens of each row before its draw: penalties of tokens that were there
// before, biases, tokens that may not be drawn. The zero value changes nothing and costs nothing. A row's scores stay
// those of the logits as they were. With z the logit of a token after the temperature,
//
//	x = fma(Before, invTemp, z)
//	x = x/Factor if x > 0, else x·Factor
//	z = fma(-After, invTemp, x)
//
// so that Before and After are in logits before the temperature, too.
type Adjustments struct {
	IDs    Buffer // [R,K] int32, no token twice in a row; -1: none
	Before Buffer // [R,K] added first; -Inf: the token is not drawn
	Factor Buffer // [R,K] > 0; 1 changes nothing
	After  Buffer // [R,K] taken away last
}

// Rows returns a view of the adjustments of rows lo to hi of R.
func (a Adjustments) Rows(lo, hi, R int) Adjustments {
	if a.IDs.Empty() {
		return Adjustments{}
	}
	return Adjustments{IDs: a.IDs.Rows(lo, hi, R), Before: a.Before.Rows(lo, hi, R), Factor: a.Factor.Rows(lo, hi, R),
		After: a.After.Rows(lo, hi, R)}
}

// Rows returns the settings of rows lo to hi of R.
func (p Sampling) Rows(lo, hi, R int) Sampling {
	p.Adjust = p.Adjust.Rows(lo, hi, R)
	if !p.Mask.Empty() {
		p.Mask = p.Mask.Rows(lo, hi, R)
	}
	return p
}

// Softmax says how logits become a distribution.
type Softmax struct {
	Temperature float64 // divides the logits; > 0
	Cap         float64 // > 0: each logit z becomes Cap·Tanh(z/Cap) first (Gemma 2)
}

// Output is the output layer: the projection on the vocabulary, log-softmax, scores and
// sampling. Logits exist only in chunks of rows, except in Logits.
//
// For a row h [C]:
//
//	z[v] = (chain over c of h[c]·W[v,c]) · invTemp
//	z[v] = (Cap·Tanh((chain over c)/Cap)) · invTemp     with a cap; the division by Cap
//	       is a product with 1/Cap, rounded to float
//	m    = max z;  e[v] = Exp(z[v]-m);  s = lane sum of e[v];  lse = m + Log(s)
//	logprob = z[target] - lse
//	entropy = Log(s) - (lane sum of e[v]·(z[v]-m)) / s
//
// invTemp is 1/temperature rounded to float. h is an operand. In numerics class
// "cpu/bf16" the chain is a tile sum, and products round dz to BF16.
type Output interface {
	// LogProb fills out for rows h [R,C], weight w [V,C] and targets [R,K], K ≥ 1.
	LogProb(out Scores, h Buffer, w Matrix, targets Buffer, x Softmax)
	// Logits sets out [R,V], float, to the chains, capped if cap > 0, not divided by a
	// temperature.
	Logits(out, h Buffer, w Matrix, cap float64)
	// LogProbBackward takes the gradients with respect to LogProb [R,K] and Entropy [R],
	// and the scores of the forward pass, LogProb unread. With D the sum of a row's dLogProb in order and
	// p = Exp(z[v]-lse),
	//	q     = fma(dEntropy, (z[v]-lse) + entropy, D)
	//	dz[v] = (-(p·q) + dLogProb[k] + …)·invTemp with the k whose target is v, in order
	// and with a cap dz[v] = dz[v]·(1 - y·y), y the Tanh, it sets dh [R,C] = dz·W as
	// MatMulDX does and adds to dw [V,C] as MatMulDW does, unless dw is empty. Targets [R,K] may repeat in
	// a row. Target -1 is none of w's rows: others have them.
	LogProbBackward(dh, dw, dLogProb, dEntropy Buffer, sc Scores, h Buffer, w Matrix, targets, blocks Buffer,
		x Softmax)
	// Sample draws a token for each row of h and fills ids [R] (int32) and out. u
	// [R] (float, from Uniform24) decides the draw:
	//
	// With tokens ordered by z descending, then id ascending, TopK keeps the first k,
	// TopP the shortest prefix whose sum of e in that order in float64 reaches p·s, MinP
	// the tokens with e ≥ p in float64. The kept e[v] (0 for the others) are summed in
	// float64: lane sums over blocks of SampleBlock ids, lanes counted from the block's
	// start, then over the blocks in order. With x = u·total, the token is in the first
	// block at whose end the running sum exceeds x; within it ids are added in order to
	// the sum before the block, and the first id that makes it exceed x is drawn (the
	// block's last id with e > 0 if rounding leaves none).
	//
	// At temperature 0 it draws the first token in that order, with scores at
	// temperature 1. If s is NaN it draws token 0, with NaN scores.
	//
	// p.Adjust, and then p.Mask, which makes the z of other tokens -Inf, change z, and with it m, e and s, for the
	// draw alone: out has the scores of the drawn token without them. If then s is NaN, as where no token may be
	// drawn, it draws token 0.
	Sample(ids Buffer, out Scores, h Buffer, w Matrix, u Buffer, p Sampling)
	// TopTokens sets ids [R,K] (int32) to the K most probable tokens of each row of h, K ≤ MaxTopTokens
	// and ≤ V, by z descending, then id ascending, and fills out as LogProb does with them as targets. If
	// s is NaN they are tokens 0 to K-1.
	TopTokens(ids Buffer, out Scores, h Buffer, w Matrix, x Softmax)
}

// MaxTopTokens is the largest K of TopTokens.
const MaxTopTokens = 1024

// SampleBlock is the number of token ids that Sample sums before it searches among
// them.
const SampleBlock = 256

// AdamW holds the settings of one update (Loshchilov and Hutter,
// arXiv:1711.05101, algorithm 2 with decoupled decay as PyTorch applies it).
type AdamW struct {
	LR, Beta1, Beta2, Eps, WeightDecay float64
	GradScale                          float64 // multiplies every gradient: the clipping factor
	Step                               int     // 1 for the first update
}

// Update is the optimizer's operations.
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
