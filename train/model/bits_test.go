package model

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"exp/kernels"
	"exp/kernels/cpu"
	"exp/kernels/ref"
)

// bitsConfig is large enough for several register tiles and an odd remainder.
var bitsConfig = Config{Vocab: 37, Layers: 2, Width: 72, Heads: 6, KVHeads: 3, Head: 10, FFN: 50,
	RopeTheta: 1e4, NormEps: 1e-6, QKVBias: true, QKNorm: true, TieEmbeddings: true, MaxPositions: 600, InitStd: 0.1}

// bitsBatch has sequences of uneven lengths, one of them longer than a gradient
// block.
func bitsBatch(r *rand.Rand, sequences int) Batch {
	b := Batch{Offsets: []int32{0}}
	for s := range sequences {
		n := 2 + r.IntN(60)
		if s == 1 {
			n = 300
		}
		for range n {
			b.Tokens = append(b.Tokens, int32(r.IntN(bitsConfig.Vocab)))
		}
		b.Offsets = append(b.Offsets, int32(len(b.Tokens)))
		b.Prompt = append(b.Prompt, int32(1+r.IntN(n-1)))
	}
	return b
}

// part returns sequences lo to hi of b as a batch.
func part(b Batch, lo, hi int) Batch {
	out := Batch{Tokens: b.Tokens[b.Offsets[lo]:b.Offsets[hi]], Prompt: b.Prompt[lo:hi]}
	for _, o := range b.Offsets[lo : hi+1] {
		out.Offsets = append(out.Offsets, o-b.Offsets[lo])
	}
	if b.Group != nil {
		out.Group = b.Group[lo:hi]
	}
	return out
}

// upstreamOf returns a fixed gradient for scored row r of the whole batch.
func upstreamOf(r int) (dLogProb, dEntropy float32) {
	return float32(r%7) - 3.1, float32(r%5)*0.3 - 0.4
}

// run computes log-probs, log Zs and gradients of b, cut after the given sequences.
func run(t *testing.T, be kernels.Backend, b Batch, cuts []int, keep Keep) (lp, logZ, grads []float32) {
	t.Helper()
	h := Heads{LM: true, LogZ: &LogZConfig{Layers: 3, Dropout: 0.1}}
	m, err := New(be, bitsConfig, h, true)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	m.Init(testSeed)
	ws, err := NewWorkspace(be, bitsConfig, h, Capacity{Tokens: len(b.Tokens), Sequences: len(b.Prompt)}, keep)
	if err != nil {
		t.Fatal(err)
	}
	defer ws.Close()
	m.ZeroGrads()
	lo, row := 0, 0
	for _, hi := range cuts {
		if hi < len(b.Prompt) && lo == 0 { // a workspace grows, too
			if err := ws.Reserve(Capacity{Tokens: 2 * len(b.Tokens)}); err != nil || ws.Capacity().Tokens != 2*len(b.Tokens) {
				t.Fatal(err, ws.Capacity())
			}
		}
		ws.Load(part(b, lo, hi))
		m.Forward(ws)
		m.Scores(ws, 0.9)
		var keys []uint64
		for s := lo; s < hi; s++ {
			keys = append(keys, uint64(1000+s))
		}
		ws.SetDropoutKeys(keys)
		m.LogZ(ws, true)
		x, z := make([]float32, ws.Rows()), make([]float32, hi-lo)
		be.Copy(kernels.Host(x), ws.LogProb())
		be.Copy(kernels.Host(z), ws.LogZ())
		be.Sync()
		lp, logZ = append(lp, x...), append(logZ, z...)

		dl, dh := make([]float32, ws.Rows()), make([]float32, ws.Rows())
		for i := range dl {
			dl[i], dh[i] = upstreamOf(row)
			row++
		}
		be.Copy(ws.DLogProb(), kernels.Host(dl))
		be.Copy(ws.DEntropy(), kernels.Host(dh))
		be.Copy(ws.DLogZ(), kernels.Host(z))
		m.Backward(ws, Upstream{Scores: true, LogZ: true})
		lo = hi
	}
	m.FinishGrads()
	grads = make([]float32, m.Grads().Len())
	be.Copy(kernels.Host(grads), m.Grads())
	be.Sync()
	return lp, logZ, grads
}

// TestBits: log-probs, log Zs and gradients have the same bits for any split into
// micro-batches, any number of threads, at every instruction level, with and
// without recomputation, and on the reference.
func TestBits(t *testing.T) {
	const seed = 21
	r := rand.New(rand.NewPCG(seed, 0))
	b := bitsBatch(r, 7)
	one := openCPU(t, cpu.BestLevel(), 1)
	lp, logZ, grads := run(t, one, b, []int{7}, KeepAll)

	check := func(name string, be kernels.Backend, cuts []int, keep Keep) {
		t.Run(name, func(t *testing.T) {
			lp2, logZ2, grads2 := run(t, be, b, cuts, keep)
			for what, pair := range map[string][2][]float32{"log-probs": {lp2, lp}, "log Z": {logZ2, logZ}, "gradients": {grads2, grads}} {
				if at := differentBit(pair[0], pair[1]); at >= 0 {
					t.Errorf("seed %d: %s differ at %d", seed, what, at)
				}
			}
		})
	}
	for _, threads := range []int{2, 3, 8} {
		be := openCPU(t, cpu.BestLevel(), threads)
		var cuts []int
		for i := 1; i < 7; i++ {
			if r.IntN(2) == 0 {
				cuts = append(cuts, i)
			}
		}
		check(fmt.Sprintf("threads=%d/cuts=%v", threads, cuts), be, append(cuts, 7), KeepAll)
	}
	check("one sequence at a time", openCPU(t, cpu.BestLevel(), 2), []int{1, 2, 3, 4, 5, 6, 7}, KeepInputs)
	for l := cpu.Portable; l <= cpu.AVX512; l++ {
		if l.Supported() {
			check("level="+l.String(), openCPU(t, l, 2), []int{3, 7}, KeepAll)
		}
	}
	if !testing.Short() {
		check("ref", ref.New[float32](), []int{2, 5, 7}, KeepAll)
	}
}

func openCPU(t *testing.T, l cpu.Level, threads int) *cpu.Backend {
	t.Helper()
	return openAs(t, cpu.Options{Level: &l, Threads: threads})
}

func openAs(t *testing.T, o cpu.Options) *cpu.Backend {
	t.Helper()
	be, err := cpu.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(be.Close)
	return be
}
