package model

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"exp/kernels"
	"exp/kernels/cpu"
	"exp/kernels/ref"
)

// newBackbone returns a base with what Init gives a model, rounded to dtype: of one seed both
// compute the same. scale multiplies the matrices.
func newBackbone(t *testing.T, be kernels.Backend, c Config, dtype kernels.DType, scale float32) *Backbone {
	t.Helper()
	b, err := NewBackbone(be, c, true, dtype)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	if err := b.Load(initialRows(b, scale)); err != nil {
		t.Fatal(err)
	}
	return b
}

// initialRows are the rows of what Init draws, in the type of the base.
func initialRows(b *Backbone, scale float32) Rows {
	shapes := map[string][]int{}
	for _, t := range b.Tensors() {
		shapes[t.Name] = t.Shape
	}
	return func(p Piece) (kernels.Buffer, error) {
		t := Tensor{Name: p.Name, Shape: shapes[p.Name]}
		x := testInitial(t, b.Config)
		if len(t.Shape) == 2 {
			x = x[p.From*t.Shape[1] : (p.From+p.N)*t.Shape[1]]
			for i := range x {
				x[i] *= scale
			}
		}
		if b.DType == kernels.BF16 {
			return kernels.HostBits(narrowed(x)), nil
		}
		return kernels.Host(x), nil
	}
}

// narrowed rounds x to BF16.
func narrowed(x []float32) []uint16 {
	be := ref.New[float32]()
	b, _ := be.Alloc(kernels.BF16, len(x))
	be.Copy(b, kernels.Host(x))
	return slices.Clone(kernels.Bits(b))
}

// fillAdapters gives B, which Init leaves at 0, random values.
func fillAdapters(m *Model) {
	for _, t := range m.Tensors() {
		if len(t.Shape) == 2 && !t.Auxiliary() {
			x := make([]float32, t.Len())
			normal(x, testSeed("fill/"+t.Name), 0.1)
			m.be.Copy(m.View(t.Name), kernels.Host(x))
			m.be.Sync()
		}
	}
	m.Refresh()
}

// roundedModel is a separate model with the values of newBackbone's BF16 base.
func roundedModel(t *testing.T, be kernels.Backend, c Config, dtype kernels.DType) *Model {
	t.Helper()
	m, err := New(be, c, Heads{LM: true}, false)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Close)
	initialised(m)
	if dtype == kernels.BF16 {
		half, err := be.Alloc(kernels.BF16, m.Params().Len())
		if err != nil {
			t.Fatal(err)
		}
		defer be.Free(half)
		be.Copy(half, m.Params())
		be.Copy(m.Params(), half)
		be.Sync()
		m.Refresh()
	}
	return m
}

// logProbs returns the log-probs of a batch.
func logProbs(t *testing.T, be kernels.Backend, m *Model, b Batch) []float32 {
	t.Helper()
	ws, err := NewWorkspace(be, m.Config, m.Heads, Capacity{Tokens: len(b.Tokens), Sequences: len(b.Prompt)}, KeepNothing)
	if err != nil {
		t.Fatal(err)
	}
	defer ws.Close()
	ws.Load(b)
	m.Forward(ws)
	m.Scores(ws, 0.9)
	lp := make([]float32, ws.Rows())
	be.Copy(kernels.Host(lp), ws.LogProb())
	be.Sync()
	return lp
}

// wider returns the variant with a width that makes rows of tensors straddle the pieces of
// packing.
func wider(c Config) Config {
	c.Width, c.FFN, c.Head, c.Vocab, c.Experts.FFN = 7*c.Width, 9*c.FFN, 5*c.Head, 150, 9*c.Experts.FFN
	if c.Experts.Shared > 0 {
		c.Experts.Shared *= 7
	}
	if x := &c.Latent; x.Rank > 0 {
		x.Rank, x.QueryRank, x.Nope, x.Value = 7*x.Rank, 7*x.QueryRank, c.Head-x.Rope, 5*x.Value
	}
	for i := range c.Images.Sections {
		if c.Rotary == 0 { // else as many pairs turn as before
			c.Images.Sections[i] *= 5
		}
	}
	c.InitStd /= 2
	return c
}

// A base computes the bits of a model with the same values, in F32 and in BF16, on every
// kind of backend.
func TestBaseHasTheModelsBits(t *testing.T) {
	for name, c := range variants {
		c = wider(c)
		b := toyBatch(c.Vocab, 8)
		for _, dtype := range []kernels.DType{kernels.F32, kernels.BF16} {
			for _, operand := range []kernels.DType{kernels.F32, kernels.BF16} {
				be := openAs(t, cpu.Options{Threads: 2, Operand: operand})
				want := logProbs(t, be, roundedModel(t, be, c, dtype), b)
				m, err := NewOn(newBackbone(t, be, c, dtype, 1), Heads{LM: true}, false)
				if err != nil {
					t.Fatal(err)
				}
				got := logProbs(t, be, m, b)
				if at := differentBit(got, want); at >= 0 {
					t.Errorf("%s: base of %v, operands of %v: log-prob %d is %v, the model's is %v", name, dtype, operand, at, got[at], want[at])
				}
				m.Close()
			}
		}
	}
}

// Adapters with B = 0 change nothing, and others do.
func TestAdaptersBeginAtNothing(t *testing.T) {
	c := wider(variants["qwen2"])
	b := toyBatch(c.Vocab, 8)
	be := openAs(t, cpu.Options{Threads: 2})
	base := newBackbone(t, be, c, kernels.BF16, 1)
	plain, err := NewOn(base, Heads{LM: true}, false)
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close()
	want := logProbs(t, be, plain, b)
	m, err := NewOn(base, Heads{LM: true, Adapters: &Adapters{Rank: 3, Alpha: 6, Targets: c.AdapterTargets()}}, true)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	initialised(m)
	if at := differentBit(logProbs(t, be, m, b), want); at >= 0 {
		t.Errorf("fresh adapters change log-prob %d", at)
	}
	fillAdapters(m)
	if at := differentBit(logProbs(t, be, m, b), want); at < 0 {
		t.Error("adapters change nothing")
	}
}

// Adapters' gradients by central differences, on every kind of map, with dropout.
func TestAdapterGradients(t *testing.T) {
	for _, name := range []string{"qwen2", "llama-bias", "phi3", "gemma3", "lfm2", "olmo-hybrid", "afmoe", "nanochat", "falcon-h1",
		"falcon-h1 biases", "gpt-neox", "gpt2", "cohere2", "olmo", "stablelm"} {
		c := variants[name]
		for _, drop := range []float64{0, 0.3} {
			t.Run(name, func(t *testing.T) {
				a := &Adapters{Rank: 2, Alpha: 3, Targets: c.AdapterTargets(), Dropout: drop}
				checkGradients(t, c, Heads{LM: true, Adapters: a})
			})
		}
	}
	c := variants["qwen2-moe"]
	a := &Adapters{Rank: 2, Alpha: 3, Targets: []string{"q_proj", "o_proj"}}
	checkGradients(t, c, Heads{LM: true, LogZ: &LogZConfig{Layers: 2}, Adapters: a})
}

// TestVariantBits: log-probs and gradients of every family have the same bits for any
// split into micro-batches, any number of threads, both ways to keep activations, and on
// the reference.
func TestVariantBits(t *testing.T) {
	for name, c := range variants {
		c = wider(c)
		c.MaxPositions = 64
		r := rand.New(rand.NewPCG(4, 4))
		b := Batch{Offsets: []int32{0}}
		for s := range 5 {
			n := 3 + r.IntN(40)
			for range n {
				b.Tokens = append(b.Tokens, int32(r.IntN(c.Vocab)))
			}
			b.Offsets, b.Prompt = append(b.Offsets, int32(len(b.Tokens))), append(b.Prompt, int32(1+r.IntN(n-1)))
			if c.ReadsImages() && b.Prompt[s] > 7 {
				copy(b.Tokens[b.Offsets[s]+1:], newGallery(c, [2]int{2, 3}).tokens(0))
			}
		}
		for _, adapters := range []*Adapters{nil, {Rank: 3, Alpha: 6, Targets: []string{lastPart(c.linears(0).o.names[0])}, Dropout: 0.2}} {
			for _, operand := range []kernels.DType{kernels.F32, kernels.BF16} {
				lp, grads := variantRun(t, openAs(t, cpu.Options{Threads: 1, Operand: operand}), c, adapters, b, []int{5}, KeepAll)
				check := func(what string, be kernels.Backend, cuts []int, keep Keep) {
					lp2, grads2 := variantRun(t, be, c, adapters, b, cuts, keep)
					if at := differentBit(lp2, lp); at >= 0 {
						t.Errorf("%s, %v, adapters %v, %s: log-probs differ at %d", name, operand, adapters != nil, what, at)
					}
					if at := differentBit(grads2, grads); at >= 0 {
						t.Errorf("%s, %v, adapters %v, %s: gradients differ at %d", name, operand, adapters != nil, what, at)
					}
				}
				check("3 threads, cut", openAs(t, cpu.Options{Threads: 3, Operand: operand}), []int{2, 3, 5}, KeepInputs)
				if testing.Short() {
					continue
				}
				if operand == kernels.F32 {
					check("reference", ref.New[float32](), []int{1, 5}, KeepAll)
				} else {
					check("reference", ref.NewMixed(), []int{1, 5}, KeepAll)
				}
			}
		}
	}
}

// variantRun returns log-probs and gradients of b, cut after the given sequences.
func variantRun(t *testing.T, be kernels.Backend, c Config, a *Adapters, b Batch, cuts []int, keep Keep) (lp, grads []float32) {
	t.Helper()
	h := Heads{LM: true, Adapters: a}
	var m *Model
	var err error
	if a != nil {
		m, err = NewOn(newBackbone(t, be, c, kernels.BF16, 1), h, true)
	} else {
		m, err = New(be, c, h, true)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	initialised(m)
	if a != nil {
		fillAdapters(m)
	}
	m.SetImages(newGallery(c, [2]int{2, 3}))
	if c.ReadsImages() && !m.shows(b.Tokens) {
		t.Fatal("no prompt has an image")
	}
	ws, err := NewWorkspace(be, c, h, Capacity{Tokens: len(b.Tokens), Sequences: len(b.Prompt)}, keep)
	if err != nil {
		t.Fatal(err)
	}
	defer ws.Close()
	m.ZeroGrads()
	lo, row := 0, 0
	for _, hi := range cuts {
		ws.Load(part(b, lo, hi))
		var seeds []uint64
		for s := lo; s < hi; s++ {
			seeds = append(seeds, uint64(s))
		}
		ws.DropAdapters(seeds)
		m.Forward(ws)
		m.Scores(ws, 0.9)
		x := make([]float32, ws.Rows())
		be.Copy(kernels.Host(x), ws.LogProb())
		be.Sync()
		lp = append(lp, x...)
		dl, dh := make([]float32, ws.Rows()), make([]float32, ws.Rows())
		for i := range dl {
			dl[i], dh[i] = upstreamOf(row)
			row++
		}
		be.Copy(ws.DLogProb(), kernels.Host(dl))
		be.Copy(ws.DEntropy(), kernels.Host(dh))
		m.Backward(ws, Upstream{Scores: true})
		lo = hi
	}
	m.FinishGrads()
	grads = make([]float32, m.Grads().Len())
	be.Copy(kernels.Host(grads), m.Grads())
	be.Sync()
	return lp, grads
}

// A model with adapters folded into its weights computes what the adapters do, up to
// rounding, and something else than the weights alone.
func TestFoldedAdapters(t *testing.T) {
	for _, name := range []string{"qwen2", "phi3", "gemma3", "afmoe", "nanochat", "falcon-h1", "gpt-neox",
		"gpt2", "cohere2"} {
		c := wider(variants[name])
		b := toyBatch(c.Vocab, 8)
		be := openAs(t, cpu.Options{Threads: 2})
		backbone := newBackbone(t, be, c, kernels.F32, 1)
		adapted, err := NewOn(backbone, Heads{LM: true, Adapters: &Adapters{Rank: 3, Alpha: 6, Targets: c.AdapterTargets()}}, false)
		if err != nil {
			t.Fatal(err)
		}
		defer adapted.Close()
		adapted.Init(testSeed)
		fillAdapters(adapted)
		want := logProbs(t, be, adapted, b)

		m := roundedModel(t, be, c, kernels.F32)
		plain := logProbs(t, be, m, b)
		if err := m.FoldAdapters(adapted); err != nil {
			t.Fatal(err)
		}
		m.Refresh()
		var off, moved float64
		for i, lp := range logProbs(t, be, m, b) {
			off = max(off, math.Abs(float64(lp-want[i])))
			moved = max(moved, math.Abs(float64(plain[i]-want[i])))
		}
		if off > 1e-4 || moved < 0.01 {
			t.Errorf("%s: folded log-probs are off by %.2g; the adapters move them by %.2g", name, off, moved)
		}
	}
}
