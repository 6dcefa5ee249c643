package model

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"exp/kernels"
	"exp/kernels/cpu"
)

// anyConfig draws an architecture with odd sizes.
func anyConfig(r *rand.Rand) Config {
	flag := func() bool { return r.IntN(2) == 0 }
	kv := 1 + r.IntN(3)
	return Config{Vocab: 5 + r.IntN(60), Layers: 1 + r.IntN(2), Width: 8 + r.IntN(70), Heads: kv * (1 + r.IntN(3)), KVHeads: kv,
		Head: 2 * (1 + r.IntN(9)), FFN: 1 + r.IntN(90), RopeTheta: 100, NormEps: 1e-6, QKVBias: flag(), QKNorm: flag(),
		TieEmbeddings: flag(), MaxPositions: 600, InitStd: 0.2}
}

// anyVariant draws one with the parts of other families: norms after the blocks, wide norms, layers with
// windows or without rotary positions, experts.
func anyVariant(r *rand.Rand) Config {
	c := anyConfig(r)
	flag := func() bool { return r.IntN(2) == 0 }
	some := func() []bool {
		list := make([]bool, c.Layers)
		for i := range list {
			list[i] = flag()
		}
		return list
	}
	c.PostNorms = flag()
	c.NoPreNorms, c.WideQKNorm = c.PostNorms && flag(), c.QKNorm && flag()
	c.NoRope, c.Windowed, c.Window = some(), some(), 1+r.IntN(9)
	c.LocalTheta, c.Sinks = float64(r.IntN(2)*50), flag()
	if flag() {
		c.Sparse = some()
		c.Experts = Experts{Count: 3, Top: 1 + r.IntN(3), FFN: 1 + r.IntN(20), Renorm: flag(), Mixtral: flag()}
		if flag() {
			c.Experts.Mixtral, c.Experts.Bias, c.Gate = false, true, kernels.Clamped
		} else if flag() {
			c.Experts = Experts{Count: 6, Top: 1 + r.IntN(3), FFN: 1 + r.IntN(20), Renorm: flag(), Shared: r.IntN(3) * 4,
				Sigmoid: flag(), Corrected: flag(), Ungated: flag(), Groups: 3, TopGroups: 2, Scale: 1.7}
		}
	} else {
		c.OutBias, c.FFNBias = flag(), flag()
	}
	if flag() {
		anyLinear(r, &c, some())
	}
	if c.PostNorms && !c.NoPreNorms && !c.hasLinear() && flag() {
		anyGemma(r, &c)
	}
	return c
}

// anyGemma gives c heads of two sizes, norms of values and experts beside the blocks, as Gemma 4 has them.
func anyGemma(r *rand.Rand, c *Config) {
	flag := func() bool { return r.IntN(2) == 0 }
	c.QKNorm, c.WideQKNorm, c.QKVBias, c.Fused, c.FFNBias, c.Rotary = true, false, false, false, false, 0
	c.LateQKNorm, c.ValueNorm, c.LayerScales, c.Gate = false, flag(), flag(), kernels.GELUTanh
	if flag() {
		c.LocalTheta, c.Rope = 30, RopeScaling{}
		c.Global = Global{Head: 2 * (1 + r.IntN(12)), KVHeads: c.Heads, KeyValues: flag()}
		if flag() {
			c.Global.KVHeads = 1
		}
	}
	if c.Global.Head > 0 {
		anyPerLayer(r, c)
	}
	if c.Sparse != nil {
		c.Experts = Experts{Count: 4, Top: 1 + r.IntN(4), FFN: 1 + r.IntN(20), Renorm: true, Beside: flag()}
	}
}

// anyPerLayer gives c embeddings for each layer, and layers that read the keys and values of others.
func anyPerLayer(r *rand.Rand, c *Config) {
	if r.IntN(2) == 0 {
		c.LayerScales, c.PerLayer = true, 1+r.IntN(9)
	}
	if r.IntN(2) == 0 {
		return
	}
	c.Sinks, c.OutBias = false, false
	if c.Windowed = append(c.Windowed, c.Windowed...); r.IntN(2) == 0 { // the second half reads from the first
		c.WideFFN = true
	}
	c.NoRope, c.SharedKV, c.Layers = append(c.NoRope, c.NoRope...), c.Layers, 2*c.Layers
	if c.Sparse != nil {
		c.Sparse = append(c.Sparse, c.Sparse...)
	}
}

// anyHybrid draws a model with Mamba-2 layers or short convolutions, of a family that has them.
func anyHybrid(r *rand.Rand) Config {
	c := anyConfig(r)
	flag := func() bool { return r.IntN(2) == 0 }
	c.QKVBias, c.Layers = false, 3
	keys := 1 + r.IntN(3)
	c.Linear = []bool{flag(), flag(), true}
	c.Delta = kernels.DeltaShape{Keys: keys, Values: keys * (1 + r.IntN(3)), KeyDim: 1 + r.IntN(20),
		ValueDim: 1 + r.IntN(20), Taps: 1 + r.IntN(4), Scan: true, Low: float64(r.IntN(2)) / 10}
	if flag() {
		c.Sparse = []bool{flag(), flag(), flag()}
		c.Experts = Experts{Count: 6, Top: 1 + r.IntN(3), FFN: 1 + r.IntN(20), Renorm: true, Shared: 4, Ungated: true}
	}
	switch c.Names = []LayerNames{NemotronNames, GraniteNames, BambaNames, LFMNames}[r.IntN(4)]; c.Names {
	case LFMNames:
		c.QKNorm = flag()
		c.Delta = kernels.DeltaShape{Values: 1, ValueDim: 1 + r.IntN(40), Taps: 1 + r.IntN(4), Conv: true}
		c.Experts.Shared, c.Experts.Ungated = 0, false
		c.Experts.Sigmoid, c.Experts.Corrected, c.Experts.Eps = true, flag(), 1e-6
	case NemotronNames:
		if flag() {
			c.Gate = kernels.ReLU2
		}
		c.NoMixer, c.NoFFN = []bool{flag(), flag(), false}, []bool{true, true, true}
		for l, none := range c.NoMixer {
			c.NoFFN[l], c.Linear[l] = !none, c.Linear[l] && !none
		}
	case GraniteNames:
		c.ResidualScale = 0.3
	case BambaNames:
		if c.Sparse, c.Experts = nil, (Experts{}); flag() {
			anyParallel(r, &c)
		}
	}
	return c
}

// anyParallel gives c attention beside Mamba-2 in all layers, as Falcon-H1 has it.
func anyParallel(r *rand.Rand, c *Config) {
	flag := func() bool { return r.IntN(2) == 0 }
	c.QKNorm, c.QKVBias, c.OutBias, c.FFNBias = false, flag(), flag(), flag()
	c.Parallel, c.Linear, c.EmbedScale, c.ScanBias = true, []bool{true, true, true}, 2.5, flag()
	c.ScanNorm = ScanNorm(r.IntN(int(NoScanNorm) + 1))
	if c.Multipliers = allMultipliers; flag() {
		c.Multipliers.AttentionIn, c.Multipliers.Gate, c.Multipliers.Down = 0, 0, 0
	}
}

// anyLinear gives c layers with linear attention, and the others output gates.
func anyLinear(r *rand.Rand, c *Config, layers []bool) {
	c.PostNorms, c.NoPreNorms, c.WideQKNorm, c.QKVBias, c.OutBias = false, false, false, false, false
	c.Linear, c.OutputGate, c.UnitOffset = layers, r.IntN(2) == 0, true
	keys := 1 + r.IntN(3)
	c.Delta = kernels.DeltaShape{Keys: keys, Values: keys * (1 + r.IntN(3)), KeyDim: 1 + r.IntN(20),
		ValueDim: 1 + r.IntN(20), Taps: 1 + r.IntN(4), ByKey: r.IntN(2) == 0}
	if c.DoubleWrites = r.IntN(2) == 0; c.DoubleWrites && !c.OutputGate && c.hasLinear() {
		c.Names, c.Delta.ByKey, c.UnitOffset, c.DeltaEps = OlmoHybridNames, false, false, 1e-5
		c.PostNorms, c.NoPreNorms, c.WideQKNorm = true, true, c.QKNorm
	}
}

// anyHeads draws a policy, a policy with a log Z head, or a critic.
func anyHeads(r *rand.Rand) Heads {
	switch r.IntN(3) {
	case 0:
		return Heads{LM: true}
	case 1:
		return Heads{Value: true}
	}
	return Heads{LM: true, LogZ: &LogZConfig{Layers: 1 + r.IntN(3), Dropout: 0.1, PoolAll: r.IntN(2) == 0, Detach: r.IntN(2) == 0}}
}

// anyBatch draws sequences, some without a completion, some that share their prompt with
// the one before; a group takes at most longest tokens.
func anyBatch(r *rand.Rand, vocab, sequences, longest int) Batch {
	b := Batch{Offsets: []int32{0}}
	draw := func(n int) {
		for range n {
			b.Tokens = append(b.Tokens, int32(r.IntN(vocab)))
		}
		b.Offsets = append(b.Offsets, int32(len(b.Tokens)))
	}
	room := 0
	for s := range sequences {
		if n := r.IntN(24); r.IntN(2) == 0 && s > 0 && n <= room {
			room -= n
			prompt := b.Tokens[b.Offsets[s-1]:][:b.Prompt[s-1]]
			b.Tokens = append(b.Tokens, prompt...)
			draw(n)
			b.Prompt, b.Group = append(b.Prompt, b.Prompt[s-1]), append(b.Group, b.Group[s-1])
			continue
		}
		n := min(2+r.IntN(40), longest)
		if r.IntN(5) == 0 {
			n = longest
		}
		draw(n)
		b.Prompt, b.Group = append(b.Prompt, int32(1+r.IntN(n))), append(b.Group, int32(s))
		room = longest - n
	}
	return b
}

// groups returns the sequences of each group.
func (b Batch) groups() [][]int {
	var list [][]int
	for s := 0; s < len(b.Prompt); s = b.groupEnd(s) {
		list = append(list, names(b.groupEnd(s))[s:])
	}
	return list
}

// reorder returns the sequences of b in the given order.
func reorder(b Batch, order []int) Batch {
	out := Batch{Offsets: []int32{0}}
	for _, s := range order {
		out.Tokens = append(out.Tokens, b.Tokens[b.Offsets[s]:b.Offsets[s+1]]...)
		out.Offsets = append(out.Offsets, int32(len(out.Tokens)))
		out.Prompt, out.Group = append(out.Prompt, b.Prompt[s]), append(out.Group, b.Group[s])
	}
	return out
}

// setting is all that must not show in a result.
type setting struct {
	threads int
	level   cpu.Level
	operand kernels.DType // does show: the numerics class
	cuts    []int         // ends of the micro-batches
	keep    Keep
	slack   int // spare room in the workspace
}

func (s setting) String() string {
	return fmt.Sprintf("threads=%d level=%s operand=%s cuts=%v keep=%d slack=%d", s.threads, s.level, s.operand, s.cuts, s.keep, s.slack)
}

// anyOperand draws a numerics class.
func anyOperand(r *rand.Rand) kernels.DType {
	return []kernels.DType{kernels.F32, kernels.BF16}[r.IntN(2)]
}

// anySetting draws one for b. A micro-batch holds whole groups.
func anySetting(r *rand.Rand, operand kernels.DType, threads int, b Batch) setting {
	s := setting{threads: threads, level: cpu.Level(r.IntN(int(cpu.BestLevel()) + 1)), operand: operand, keep: KeepAll, slack: r.IntN(50)}
	if r.IntN(2) == 0 {
		s.keep = KeepInputs
	}
	for i := 0; i < len(b.Prompt); {
		i = b.groupEnd(i)
		if r.IntN(3) == 0 || i == len(b.Prompt) {
			s.cuts = append(s.cuts, i)
		}
	}
	return s
}

// dirty is a backend whose new memory holds NaN, so that a pass that reads what it
// has not written shows.
type dirty struct{ kernels.Backend }

func (d dirty) Alloc(t kernels.DType, n int) (kernels.Buffer, error) {
	b, err := d.Backend.Alloc(t, n)
	switch {
	case err != nil:
	case t == kernels.F32:
		for i, x := 0, kernels.Elems[float32](b); i < len(x); i++ {
			x[i] = float32(math.NaN())
		}
	case t == kernels.BF16:
		for i, x := 0, kernels.Bits(b); i < len(x); i++ {
			x[i] = 0x7fc0
		}
	}
	return b, err
}

// engines opens a backend for each level and number of threads once: later uses
// find the scratch memory of earlier ones.
type engines map[string]*cpu.Backend

func (e engines) open(t *testing.T, s setting) *cpu.Backend {
	key := fmt.Sprint(s.level, s.threads, s.operand)
	if e[key] == nil {
		e[key] = openAs(t, cpu.Options{Level: &s.level, Threads: s.threads, Operand: s.operand})
	}
	return e[key]
}

// results equal the results of passes over a batch.
type results struct {
	rows  [][]float32 // by sequence: log-probs and entropies or values, then log Z
	grads []float32
	model *Model
}

// passes takes b forward and backward. ids name the sequences: a sequence's
// upstream gradients and dropout masks follow from its name alone.
func passes(t *testing.T, be kernels.Backend, c Config, h Heads, b Batch, ids []int, s setting) results {
	t.Helper()
	m, err := New(be, c, h, true)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	initialised(m)
	limit := Capacity{Tokens: len(b.Tokens) + s.slack, Sequences: len(ids) + s.slack}
	ws, err := NewWorkspace(dirty{be}, c, h, limit, s.keep)
	if err != nil {
		t.Fatal(err)
	}
	defer ws.Close()
	out := results{rows: make([][]float32, slices.Max(ids)+1), model: m}
	m.ZeroGrads()
	lo := 0
	for _, hi := range s.cuts {
		ws.Load(part(b, lo, hi))
		oneBatch(m, ws, ids[lo:hi], out.rows)
		lo = hi
	}
	m.FinishGrads()
	out.grads = host(be, m.Grads())
	return out
}

// oneBatch takes the loaded micro-batch forward and backward.
func oneBatch(m *Model, ws *Workspace, ids []int, rows [][]float32) {
	up := Upstream{Scores: m.Heads.LM, Values: m.Heads.Value, LogZ: m.Heads.LogZ != nil}
	m.Forward(ws)
	perRow := make([][]float32, 0, 2)
	d1, d2, dz := make([]float32, 0, ws.Rows()), make([]float32, 0, ws.Rows()), make([]float32, 0, len(ids))
	for i, id := range ids {
		for k := range int(ws.batch.Offsets[i+1] - ws.batch.Offsets[i] - ws.batch.Prompt[i]) {
			d1 = append(d1, float32((id*31+k*7)%13)-6.1)
			d2 = append(d2, float32((id+k)%5)*0.3-0.4)
		}
		dz = append(dz, float32(id%3)-1.2)
	}
	if up.Scores {
		m.Scores(ws, 0.9)
		perRow = append(perRow, host(m.be, ws.LogProb()), host(m.be, ws.Entropy()))
		m.be.Copy(ws.DLogProb(), kernels.Host(d1))
		m.be.Copy(ws.DEntropy(), kernels.Host(d2))
	}
	if up.Values {
		m.Values(ws)
		perRow = append(perRow, host(m.be, ws.Value()))
		m.be.Copy(ws.DValue(), kernels.Host(d1))
	}
	var z []float32
	if up.LogZ {
		keys := make([]uint64, len(ids))
		for i, id := range ids {
			keys[i] = uint64(1000 + id)
		}
		ws.SetDropoutKeys(keys)
		m.LogZ(ws, true)
		z = host(m.be, ws.LogZ())
		m.be.Copy(ws.DLogZ(), kernels.Host(dz))
	}
	at := 0
	for i, id := range ids {
		n := int(ws.batch.Offsets[i+1] - ws.batch.Offsets[i] - ws.batch.Prompt[i])
		for _, x := range perRow {
			rows[id] = append(rows[id], x[at:at+n]...)
		}
		if up.LogZ {
			rows[id] = append(rows[id], z[i])
		}
		at += n
	}
	m.Backward(ws, up)
}

func host(be kernels.Backend, b kernels.Buffer) []float32 {
	x := make([]float32, b.Len())
	be.Copy(kernels.Host(x), b)
	be.Sync()
	return x
}

// differentBit returns where a and b first differ in a bit, or -1. Unlike slices.Equal
// it tells +0 from -0; a NaN is a difference.
func differentBit(a, b []float32) int {
	for i := range max(len(a), len(b)) {
		if i >= len(a) || i >= len(b) || math.Float32bits(a[i]) != math.Float32bits(b[i]) || a[i] != a[i] {
			return i
		}
	}
	return -1
}

func names(n int) []int {
	ids := make([]int, n)
	for i := range ids {
		ids[i] = i
	}
	return ids
}

// tensorAt names the tensor that holds element i of the gradient.
func (m *Model) tensorAt(i int) string {
	for _, t := range m.tensors {
		if i < t.off+t.Len() {
			return t.Name
		}
	}
	return "padding"
}

// TestAnyCut: over random architectures, heads and batches, no number of threads,
// no level, no cut into micro-batches, no size of the workspace, recomputation or
// rest in its memory changes a bit of log-probs, entropies, values, log Zs or
// gradients.
func TestAnyCut(t *testing.T) {
	open := engines{}
	seeds, hybrids := 12, 6
	if testing.Short() {
		seeds, hybrids = 4, 2
	}
	for seed := range uint64(seeds + hybrids) {
		r := rand.New(rand.NewPCG(seed, 5))
		draw := anyVariant
		if seed >= uint64(seeds) {
			draw = anyHybrid
		}
		c, h := draw(r), anyHeads(r)
		n := 1 + r.IntN(9)
		b := anyBatch(r, c.Vocab, n, 2+r.IntN(350))
		operand := anyOperand(r)
		whole := setting{threads: 1, level: cpu.BestLevel(), operand: operand, cuts: []int{n}, keep: KeepAll}
		want := passes(t, open.open(t, whole), c, h, b, names(n), whole)
		for _, threads := range []int{1, 2, 3, 8} {
			s := anySetting(r, operand, threads, b)
			got := passes(t, open.open(t, s), c, h, b, names(n), s)
			for id := range want.rows {
				if at := differentBit(got.rows[id], want.rows[id]); at >= 0 {
					t.Errorf("seed %d, %s, %+v %+v: sequence %d of offsets %v, groups %v differs at %d", seed, s, c, h, id, b.Offsets, b.Group, at)
				}
			}
			if at := differentBit(got.grads, want.grads); at >= 0 {
				t.Errorf("seed %d, %s, %+v %+v: gradients differ at %d, in %s", seed, s, c, h, at, got.model.tensorAt(at))
			}
		}
	}
}

// TestAnyOrder: the results for a sequence do not depend on the sequences packed with it,
// nor on whether it shares its prompt. The gradient of parameters depends only on the order
// of the groups: in float32, where each group is one gradient block, it is the sum of the
// groups' gradients in the order of the batch. The embedding is left out, because its rows
// are added token by token.
func TestAnyOrder(t *testing.T) {
	open := engines{}
	moved := 0
	for seed := range uint64(8) {
		r := rand.New(rand.NewPCG(seed, 6))
		c, h := anyConfig(r), anyHeads(r)
		operand := anyOperand(r)
		n := 3 + r.IntN(6)
		b := anyBatch(r, c.Vocab, n, kernels.BlockRows)
		one := func(ids []int) results {
			s := setting{threads: 1, level: cpu.BestLevel(), operand: operand, cuts: []int{len(ids)}, keep: KeepAll}
			return passes(t, open.open(t, s), c, h, part(b, ids[0], ids[0]+len(ids)), ids, s)
		}
		groups := b.groups()
		alone, apart := make([]results, len(groups)), make([]results, n)
		for g, ids := range groups {
			alone[g] = one(ids)
			for _, id := range ids {
				apart[id] = one([]int{id})
			}
		}
		var first []float32
		for range 2 {
			var order []int
			perm := r.Perm(len(groups))
			for _, g := range perm {
				order = append(order, groups[g]...)
			}
			batch := reorder(b, order)
			s := anySetting(r, operand, 1+r.IntN(3), batch)
			got := passes(t, open.open(t, s), c, h, batch, order, s)
			sum := make([]float32, len(got.grads))
			for _, id := range order {
				if at := differentBit(got.rows[id], apart[id].rows[id]); at >= 0 {
					t.Errorf("seed %d, %s, order %v: sequence %d differs at %d from itself alone", seed, s, order, id, at)
				}
			}
			for _, g := range perm {
				for i, x := range alone[g].grads {
					sum[i] += x
				}
			}
			embedding := c.Vocab * c.Width
			if operand == kernels.BF16 { // sums go on in the gradient itself
				embedding = len(sum)
			}
			if at := differentBit(got.grads[embedding:], sum[embedding:]); at >= 0 {
				t.Errorf("seed %d, %s, order %v: the gradient is not the sum of the groups' at %d, in %s",
					seed, s, order, at, got.model.tensorAt(embedding+at))
			}
			if first != nil && differentBit(got.grads, first) >= 0 {
				moved++
			}
			first = got.grads
		}
	}
	if moved == 0 {
		t.Error("no order changed a gradient: the test compares sums that are the same in any order")
	}
}

// TestSharedPromptGradient: computing a prompt once gives the same gradient, up to rounding,
// as computing it for each sequence.
func TestSharedPromptGradient(t *testing.T) {
	open := engines{}
	for seed := range uint64(6) {
		r := rand.New(rand.NewPCG(seed, 7))
		c, h := anyConfig(r), anyHeads(r)
		n := 2 + r.IntN(6)
		b := anyBatch(r, c.Vocab, n, 60+r.IntN(200))
		s := anySetting(r, kernels.F32, 2, b)
		shared := passes(t, open.open(t, s), c, h, b, names(n), s)
		b.Group = nil
		apart := passes(t, open.open(t, s), c, h, b, names(n), s)
		var square, off float64
		for i, x := range apart.grads {
			square += float64(x) * float64(x)
			off += float64(shared.grads[i]-x) * float64(shared.grads[i]-x)
		}
		if !(off <= 1e-10*square) {
			t.Errorf("seed %d, %s, %+v %+v: gradients differ by %g of their norm", seed, s, c, h, math.Sqrt(off/square))
		}
	}
}

// TestSharedPromptRows: by hand, three completions of 4, 1 and 3 tokens of a prompt of 2,
// and a separate sequence.
func TestSharedPromptRows(t *testing.T) {
	be := openCPU(t, cpu.BestLevel(), 1)
	ws, err := NewWorkspace(be, bitsConfig, Heads{LM: true}, Capacity{Tokens: 12, Sequences: 4}, KeepNothing)
	if err != nil {
		t.Fatal(err)
	}
	defer ws.Close()
	ws.Load(Batch{
		Tokens:  []int32{1, 2, 10, 11, 12, 13, 1, 2, 20, 1, 2, 30, 31, 32, 5, 6, 7},
		Offsets: []int32{0, 6, 9, 14, 17}, Prompt: []int32{2, 2, 2, 1}, Group: []int32{0, 0, 0, 1},
	})
	for _, x := range []struct {
		name      string
		got, want []int32
	}{
		{"ids", ws.ids.host, []int32{1, 2, 10, 11, 12, 30, 31, 5, 6}},
		{"pos", ws.pos.host, []int32{0, 1, 2, 3, 4, 2, 3, 0, 1}},
		{"offsets", ws.offsets.host, []int32{0, 2, 5, 5, 7, 9}},
		{"groups", ws.groups.host, []int32{0, 4, 5}},
		{"scored rows", ws.rows.host, []int32{1, 2, 3, 4, 1, 1, 5, 6, 7, 8}},
		{"targets", ws.targets.host, []int32{10, 11, 12, 13, 20, 30, 31, 32, 6, 7}},
		{"blocks", ws.blocks.host, []int32{0, 7, 9}},
		{"blocks of scored rows", ws.rowBlocksBuf.host, []int32{0, 8, 10}},
		{"prompts", ws.promptRows, []int32{0, 0, 0, 7}},
	} {
		if !slices.Equal(x.got, x.want) {
			t.Errorf("%s: %v, want %v", x.name, x.got, x.want)
		}
	}
}
