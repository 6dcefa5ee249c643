package kernels

// DeltaShape is the layout of a Gated DeltaNet layer (Yang, Kautz and Hatamizadeh,
// arXiv:2412.06464). Value head h reads key head h/(Values/Keys).
//
// A projected row x [Stride] holds queries q, keys k, values v, the gates z of the norm, and for
// each value head the logits b of how much it writes and a of how much it forgets:
//
//	[q Keys·KeyDim | k Keys·KeyDim | v Values·ValueDim | z Values·ValueDim | b Values | a Values]
//
// With ByKey the row goes key head by key head, R = Values/Keys value heads each:
//
//	Keys × [q KeyDim | k KeyDim | v R·ValueDim | z R·ValueDim], then Keys × [b R | a R]
//
// A mixed row u [Mixed] is [q | k | v] of the plain layout, after the convolution.
//
// With Scan it is the layout of a Mamba-2 layer (Dao and Gu, arXiv:2405.21060 §7), whose x, B and C are
// values, keys and queries, whose groups are key heads, and whose time steps dt take the place of b and a:
//
//	[z Values·ValueDim | v Values·ValueDim | k Keys·KeyDim | q Keys·KeyDim | dt Values]
//
// and a mixed row is [v | k | q].
//
// With Conv it is the layout of a gated short convolution (LFM2, arXiv:2511.23404), which has Values·ValueDim
// channels, no keys, and a factor before the convolution and one after it:
//
//	[before | after | x]
//
// and a mixed row is what GatedConv makes of it.
type DeltaShape struct {
	Keys, Values     int // heads; Keys divides Values
	KeyDim, ValueDim int
	Taps             int  // width of the convolution
	ByKey            bool // Qwen3-Next

	// Of Mamba-2. JSON, from which digests are made, leaves them out of other layers.
	Scan      bool    `json:",omitempty"`
	Low, High float64 `json:",omitempty"` // limits of time steps; High 0: none

	Conv bool `json:",omitempty"` // LFM2
}

// Mixed returns the number of channels of queries, keys and values, which the convolution has too.
func (s DeltaShape) Mixed() int { return 2*s.Keys*s.KeyDim + s.Values*s.ValueDim }

// Out returns the number of channels of values.
func (s DeltaShape) Out() int { return s.Values * s.ValueDim }

// Stride returns the number of elements in a projected row.
func (s DeltaShape) Stride() int {
	if s.Conv {
		return 3 * s.Mixed()
	}
	if s.Scan {
		return s.Mixed() + s.Out() + s.Values
	}
	return s.Mixed() + s.Out() + 2*s.Values
}

// Gates returns the number of elements in a row of gates.
func (s DeltaShape) Gates() int {
	if s.Conv {
		return 0
	}
	if s.Scan {
		return 3 * s.Values
	}
	return 2 * s.Values
}

// Query, Key and Value return the first mixed columns of queries, keys and values.
func (s DeltaShape) Query() int {
	if s.Scan {
		return s.Out() + s.Keys*s.KeyDim
	}
	return 0
}

func (s DeltaShape) Key() int {
	if s.Scan {
		return s.Out()
	}
	return s.Keys * s.KeyDim
}

func (s DeltaShape) Value() int {
	if s.Scan {
		return 0
	}
	return 2 * s.Keys * s.KeyDim
}

// State returns the number of elements in a sequence's state: [Values,KeyDim,ValueDim].
func (s DeltaShape) State() int { return s.Values * s.KeyDim * s.ValueDim }

// Tail returns the number of elements in the end of a sequence that its next rows read:
// [Taps-1,Mixed], the oldest row first.
func (s DeltaShape) Tail() int { return (s.Taps - 1) * s.Mixed() }

// Block is a range of columns of a mixed row that are contiguous in a projected row.
type Block struct{ Mixed, At, N int } // first mixed column, first projected column, columns

// Blocks returns the blocks of a mixed row, in its order.
func (s DeltaShape) Blocks() (list []Block) {
	if s.Scan {
		return []Block{{0, s.Out(), s.Mixed()}}
	}
	if !s.ByKey {
		return []Block{{0, 0, s.Mixed()}}
	}
	qk, v := s.Keys*s.KeyDim, s.Values/s.Keys*s.ValueDim
	group := 2*s.KeyDim + 2*v
	for h := range s.Keys {
		list = append(list, Block{h * s.KeyDim, h * group, s.KeyDim})
	}
	for h := range s.Keys {
		list = append(list, Block{qk + h*s.KeyDim, h*group + s.KeyDim, s.KeyDim})
	}
	for h := range s.Keys {
		list = append(list, Block{2*qk + h*v, h*group + 2*s.KeyDim, v})
	}
	return list
}

// Gate returns the first projected column of value head h's gates z.
func (s DeltaShape) Gate(h int) int {
	if s.Scan {
		return h * s.ValueDim
	}
	if !s.ByKey {
		return s.Mixed() + h*s.ValueDim
	}
	R := s.Values / s.Keys
	return h/R*(2*s.KeyDim+2*R*s.ValueDim) + 2*s.KeyDim + (R+h%R)*s.ValueDim
}

// Write and Forget return the projected columns of value head h's logits b and a; with Scan, both return dt's.
func (s DeltaShape) Write(h int) int {
	at := s.Mixed() + s.Out()
	if !s.ByKey {
		return at + h
	}
	R := s.Values / s.Keys
	return at + h/R*2*R + h%R
}

func (s DeltaShape) Forget(h int) int {
	if s.Scan {
		return s.Write(h)
	}
	if !s.ByKey {
		return s.Write(h) + s.Values
	}
	return s.Write(h) + s.Values/s.Keys
}

// Runs says which rows follow one another, and what comes before them. Offsets and Groups are
// Attention's. In a sampling step Groups is empty, and Slots [S] names the memory of each
// sequence: its rows continue from slot Slots[j], or with -1-Slots[j] they are its first. In both
// cases the slot holds the sequence's end afterwards. No slot occurs twice.
type Runs struct{ Offsets, Groups, Slots Buffer }

// Recurrence is linear attention by the gated delta rule or by Mamba-2's selective scan, gated short convolutions, and
// the output gate of the attention layers between. Operands are x, u, z, out and their gradients; states, gates and
// everything else are floats. A row costs the same at every position. Rows are computed one after another, never in
// chunks, so that a prefill, decode steps and training give the same bits. In no class are its chains tile sums, nor
// its factors rounded.
type Recurrence interface {
	// ShortConv sets u [M,Mixed] from projected rows x: for channel c of row t of a sequence, prefix
	// included, j ascending from the oldest,
	//	y      = chain over j < Taps of weight[c,j]·x[t-(Taps-1)+j,c], from bias[c]
	//	u[t,c] = y·Sigmoid(y)
	// Rows before the sequence's first are 0. weight is [Mixed,Taps], bias [Mixed], or empty for zeros. With
	// slots, tails [slots,Tail], operands, hold what earlier steps left; without, tails is empty.
	ShortConv(u, x, weight, bias, tails Buffer, r Runs, s DeltaShape)
	// ShortConvBackward sets the columns q, k and v of dx [M,Stride] from du. With
	// dy = du·(g·fma(y, 1-g, 1)), g = Sigmoid(y),
	//	dx[t,c] = chain of weight[c,j]·dy[t+(Taps-1)-j,c], from 0, over the sequences that see t, the
	//	          rows of each ascending
	// and adds to dweight the blocked sum of the chain over rows of dy[t,c]·x[t-(Taps-1)+j,c], and to dbias,
	// unless bias is empty, the blocked plain sum of dy[t,c].
	ShortConvBackward(dx, dweight, dbias, du, x, weight, bias, blocks Buffer, r Runs, s DeltaShape)

	// GatedConv sets u [M,Mixed] from projected rows [before b | after a | x] of a shape with Conv: for channel c of
	// row t of a sequence, prefix included, j ascending from the oldest,
	//	v[t,c] = b[t,c]·x[t,c]
	//	u[t,c] = a[t,c]·(chain over j < Taps of weight[c,j]·v[t-(Taps-1)+j,c], from 0)
	// Rows before the sequence's first are 0. weight is [Mixed,Taps]. With slots, tails [slots,Tail], floats, hold
	// the v that earlier steps left; without, tails is empty.
	GatedConv(u, x, weight, tails Buffer, r Runs, s DeltaShape)
	// GatedConvBackward sets dx [M,Stride] from du. With y the chain of GatedConv,
	//	da      = du[t,c]·y[t,c]
	//	dy      = du[t,c]·a[t,c]
	//	dv[t,c] = chain of weight[c,j]·dy[t+(Taps-1)-j,c], as ShortConvBackward's
	//	db      = dv[t,c]·x[t,c],  dx = dv[t,c]·b[t,c]
	// and adds to dweight the blocked sum of the chain over rows of dy[t,c]·v[t-(Taps-1)+j,c].
	GatedConvBackward(dx, dweight, du, x, weight, blocks Buffer, r Runs, s DeltaShape)

	// DeltaGates sets gates [M,Gates], what each value head keeps of its state and how much it
	// writes, from projected rows x, logs [Values] and bias [Values]:
	//	e = -(Exp(logs[h])·Softplus(a+bias[h]))
	//	gates[m,h] = Exp(e), gates[m,Values+h] = Sigmoid(b)
	// With Scan, and how much of its value goes to the output, skip [Values], which is empty without:
	//	w = Softplus(dt+bias[h]), at least Low and at most High
	//	e = -(Exp(logs[h])·w)
	//	gates[m,h] = Exp(e), gates[m,Values+h] = w, gates[m,2·Values+h] = skip[h]
	DeltaGates(gates, x, logs, bias, skip Buffer, s DeltaShape)
	// DeltaGatesBackward sets the columns b and a of dx from dgates. With d = dgates[m,h]·gates[m,h],
	//	da = -((d·Exp(logs[h]))·s), s = Sigmoid(a+bias[h]), 1 above SoftplusLinear
	//	db = dgates[m,Values+h]·(w·(1-w)), w = gates[m,Values+h]
	// and adds to dlogs the blocked plain sum of d·e, to dbias the one over da. With Scan it sets the columns dt,
	//	da = (dgates[m,Values+h] - d·Exp(logs[h]))·s, 0 where the limits cut w
	// and adds to dskip the blocked plain sum of dgates[m,2·Values+h].
	DeltaGatesBackward(dx, dlogs, dbias, dskip, dgates, gates, x, logs, bias, blocks Buffer, s DeltaShape)

	// DeltaRule sets out [M,Out] from mixed rows u. For value head h with state S [KeyDim,ValueDim],
	// 0 before the first row, g = gates[m,h], w = gates[m,Values+h], and with
	//	r    = 1 / sqrt(lane sum of q[i]·q[i] + DeltaEps), and likewise for k
	//	q[i] = (q[i]·r)·KeyScale,  k[i] = k[i]·r
	// where KeyScale is 1/sqrt(KeyDim):
	//	p[j]   = chain over i of k[i]·S[i,j]
	//	d[j]   = w·(v[j] - g·p[j])
	//	S[i,j] = fma(k[i], d[j], g·S[i,j])
	//	out[j] = chain over i of q[i]·S[i,j]
	// With Scan, queries and keys are not scaled, p is 0, and with D = gates[m,2·Values+h]
	//	out[j] = fma(D, v[j], chain over i of q[i]·S[i,j])
	// With slots, states [slots,State] hold what earlier steps left; without, states is empty. The
	// sequences of a group begin with the state at the end of the first.
	DeltaRule(out, u, gates, states Buffer, r Runs, s DeltaShape)
	// DeltaRuleBackward sets du and dgates from dout. Rows go backwards from dS = 0, the sequences of
	// a group first, whose dS the prefix begins with as a plain sum, ascending. With P the state
	// before a row, S after it, and e[j] = v[j] - g·p[j],
	//	dS[i,j] = fma(q[i], dout[j], dS[i,j])
	//	dd[j]   = chain over i of k[i]·dS[i,j]
	//	dv[j]   = w·dd[j]
	//	dp[j]   = -(g·dv[j])
	//	dq[i]   = sum over j of S[i,j]·dout[j]
	//	dk[i]   = sum over j of fma(P[i,j], dp[j], dS[i,j]·d[j])
	//	dw      = sum over j of dd[j]·e[j]
	//	dg      = sum over j of fma(-dv[j], p[j], chain over i of dS[i,j]·P[i,j])
	//	dS[i,j] = fma(k[i], dp[j], g·dS[i,j])
	// A sum over j adds, for each Lanes columns in order, their lane sum to what it has, from 0, and
	// dq and dk go on over the value heads that share them, ascending. Queries and keys are the
	// scaled ones; of one that is scaled by c·r,
	//	f       = lane sum of dq[i]·q[i]
	//	dq[i]   = fma(-(f·((r·r)·r)), q[i], dq[i]·r)·c      of the old dq and the unscaled q
	// With Scan, p and dp are 0, queries and keys are as they are, and
	//	dv[j]   = fma(D, dout[j], w·dd[j])
	//	dD      = sum over j of dout[j]·v[j]
	DeltaRuleBackward(du, dgates, dout, u, gates Buffer, r Runs, s DeltaShape)

	// GatedNorm sets out [M,Out] from x [M,Out], the gates z of projected rows p, and weight
	// [ValueDim], for each value head:
	//	rstd   = 1 / sqrt(lane sum of x[i]·x[i]/ValueDim + eps)
	//	out[i] = ((x[i]·rstd)·weight[i]) · (z[i]·Sigmoid(z[i]))
	// rstd is [M,Values].
	GatedNorm(out, rstd, x, p, weight Buffer, s DeltaShape, eps float64)
	// GatedNormBackward sets dx [M,Out] and the columns z of dp. With g = Sigmoid(z),
	//	n     = (x[i]·rstd)·weight[i],  dn = dout[i]·(z·g)
	//	dz    = (dout[i]·n)·(g·fma(z, 1-g, 1))
	//	dx    as RMSNormBackward sets it from dn
	// and adds to dweight the blocked sum, heads ascending within a row, of fma(dn, x[i]·rstd, acc).
	// dx may be dout.
	GatedNormBackward(dx, dp, dweight, dout, x, p, weight, rstd, blocks Buffer, s DeltaShape)
	// GroupedNorm sets out [M,Out] from x [M,Out], the gates z of projected rows p, and weight [Out]: Mamba-2's
	// gate comes before its norm. For each of Keys groups of n = Out/Keys channels,
	//	y[i]   = x[i]·(z[i]·Sigmoid(z[i]))
	//	rstd   = 1 / sqrt(lane sum of y[i]·y[i]/n + eps)
	//	out[i] = (y[i]·rstd)·weight[i]
	// rstd is [M,Keys].
	GroupedNorm(out, rstd, x, p, weight Buffer, s DeltaShape, eps float64)
	// GroupedNormBackward sets dx [M,Out] and the columns z of dp. With g = Sigmoid(z),
	//	dy    as RMSNormBackward sets it from dout for y
	//	dx    = dy[i]·(z·g)
	//	dz    = (dy[i]·x[i])·(g·fma(z, 1-g, 1))
	// and adds to dweight the blocked sum of fma(dout[i], y[i]·rstd, acc). dx may be dout.
	GroupedNormBackward(dx, dp, dweight, dout, x, p, weight, rstd, blocks Buffer, s DeltaShape)
	// CopyStates copies the pairs[2i]-th n elements of x to the pairs[2i+1]-th, in order. x is of any
	// type.
	CopyStates(x, pairs Buffer, n int)

	// SplitGates sets qkv [M,Stride] to a projected row x [M,Stride+H·D] without its gates: in x
	// every query head is followed by its gate.
	SplitGates(qkv, x Buffer, s AttentionShape)
	// JoinGates sets all of dx but the gates from dqkv.
	JoinGates(dx, dqkv Buffer, s AttentionShape)
	// OutputGate sets out[m,h·D+d] = att[m,h·D+d]·Sigmoid(z), z the gate in x. out may be att. Here and in
	// OutputGateBackward K may be 0: rows of queries and their gates alone.
	OutputGate(out, att, x Buffer, s AttentionShape)
	// OutputGateBackward sets datt = dout·g, g = Sigmoid(z), and the gates of dx to
	// (dout·att)·(g·(1-g)). datt may be dout.
	OutputGateBackward(datt, dx, dout, att, x Buffer, s AttentionShape)
}

// DeltaEps is added to the squares of queries and keys before they are scaled to length 1.
const DeltaEps = 1e-6

// SoftplusLinear is the argument from which on Softplus is its argument, as in PyTorch.
const SoftplusLinear = 20
