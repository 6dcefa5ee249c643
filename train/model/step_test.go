package model

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"exp/kernels"
	"exp/kernels/cpu"
	"exp/train/optim"
)

// stepConfig is a model of about 0.8 M parameters, as in the CPU recipes.
var stepConfig = Config{Vocab: 32, Layers: 4, Width: 128, Heads: 4, KVHeads: 2, Head: 32, FFN: 384,
	RopeTheta: 1e4, NormEps: 1e-6, QKVBias: true, QKNorm: true, TieEmbeddings: true, MaxPositions: 128, InitStd: 0.05}

// trainStep returns one whole step of the engine, its gradients from the host: load,
// forward, scores or values, backward, clipping, AdamW, packing. tokens counts what it
// works through.
func trainStep(t testing.TB, threads int, c Config, h Heads, keep Keep, sequences int) (step func(), tokens int) {
	t.Helper()
	be, err := cpu.Open(cpu.Options{Threads: threads})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(be.Close)
	m, err := New(be, c, h, true)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Close)
	m.Init(testSeed)
	r := rand.New(rand.NewPCG(1, 1))
	b := Batch{Offsets: []int32{0}}
	for range sequences {
		for range 64 {
			b.Tokens = append(b.Tokens, int32(r.IntN(c.Vocab)))
		}
		b.Offsets, b.Prompt = append(b.Offsets, int32(len(b.Tokens))), append(b.Prompt, 16)
	}
	ws, err := NewWorkspace(be, c, h, Capacity{Tokens: len(b.Tokens), Sequences: sequences}, keep)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(ws.Close)
	opt, err := optim.NewAdamW(be, m.Params().Len(), 0.9, 0.99, 1e-8, 0.01)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(opt.Close)
	d, none, keys, dz := make([]float32, b.Scored()), make([]float32, b.Scored()), make([]uint64, sequences), make([]float32, sequences)
	up := Upstream{Scores: h.LM, Values: h.Value, LogZ: h.LogZ != nil}
	return func() {
		m.ZeroGrads()
		ws.Load(b)
		m.Forward(ws)
		if up.Scores {
			m.Scores(ws, 1)
			be.Copy(kernels.Host(d), ws.LogProb())
			be.Copy(ws.DLogProb(), kernels.Host(d))
			be.Copy(ws.DEntropy(), kernels.Host(none))
		}
		if up.Values {
			m.Values(ws)
			be.Copy(kernels.Host(d), ws.Value())
			be.Copy(ws.DValue(), kernels.Host(d))
		}
		if up.LogZ {
			ws.SetDropoutKeys(keys)
			m.LogZ(ws, true)
			be.Copy(kernels.Host(dz), ws.LogZ())
			be.Copy(ws.DLogZ(), kernels.Host(dz))
		}
		m.Backward(ws, up)
		m.FinishGrads()
		factor, _ := optim.ClipFactor(opt.Norm(m.Grads()), 1)
		opt.Update(m.Params(), m.Grads(), 1e-4, factor)
		m.Refresh()
	}, len(b.Tokens)
}

// decodeStep returns one step of a decoder: a token for each of some sequences.
func decodeStep(t testing.TB, threads int, c Config, sequences int, p kernels.Sampling) (step func()) {
	t.Helper()
	be, err := cpu.Open(cpu.Options{Threads: threads})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(be.Close)
	m, err := New(be, c, Heads{LM: true}, false)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Close)
	m.Init(testSeed)
	const page = 16
	width := c.MaxPositions / page
	cache, err := NewCache(be, c, sequences*width, page, sequences)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cache.Close)
	d, err := NewDecoder(be, c, Heads{LM: true}, sequences, sequences*width)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Close)
	st := Step{Width: width}
	for s := range int32(sequences) {
		st.States = append(st.States, s)
	}
	for s := range int32(sequences) {
		st.Tokens, st.Pos, st.Seq = append(st.Tokens, s%int32(c.Vocab)), append(st.Pos, 0), append(st.Seq, s)
		for p := range int32(width) {
			st.Table = append(st.Table, s*int32(width)+p)
		}
		st.Slots, st.Sample, st.U = append(st.Slots, s*int32(width)*page), append(st.Sample, s), append(st.U, float32(s)/float32(sequences))
	}
	out := Drawn{IDs: make([]int32, sequences), LogProb: make([]float32, sequences), Entropy: make([]float32, sequences)}
	pos := int32(0)
	return func() {
		for s := range st.Tokens {
			st.Pos[s] = pos
			st.Slots[s] = st.Table[int32(s)*int32(width)+pos/page]*page + pos%page
		}
		m.Step(d, cache, st, p, out)
		copy(st.Tokens, out.IDs)
		pos = (pos + 1) % int32(c.MaxPositions)
	}
}

// Neither a training step nor a decoding step allocates on the Go heap once it has
// run, for a policy, a critic and a policy with log Z, with and without recomputation.
func TestStepsAllocateNothing(t *testing.T) {
	for _, threads := range []int{1, 2} {
		logZ := Heads{LM: true, LogZ: &LogZConfig{Layers: 3, Dropout: 0.1}}
		for name, h := range map[string]Heads{"policy": {LM: true}, "critic": {Value: true}, "policy with log Z": logZ} {
			for _, keep := range []Keep{KeepAll, KeepInputs} {
				step, _ := trainStep(t, threads, bitsConfig, h, keep, 4)
				step()
				if n := testing.AllocsPerRun(10, step); n != 0 {
					t.Errorf("%d threads: a training step of a %s, keep %d, allocates %v times", threads, name, keep, n)
				}
			}
		}
		linear := bitsConfig
		linear.QKVBias, linear.Linear, linear.OutputGate, linear.DoubleWrites = false, []bool{true, false}, true, true
		linear.Delta = kernels.DeltaShape{Keys: 2, Values: 4, KeyDim: 10, ValueDim: 20, Taps: 4, ByKey: true}
		beside := bitsConfig
		beside.QKNorm, beside.Linear, beside.Parallel, beside.Names = false, []bool{true, true}, true, BambaNames
		beside.Multipliers, beside.ScanNorm = allMultipliers, NormBeforeGate
		beside.Delta = kernels.DeltaShape{Keys: 2, Values: 4, KeyDim: 10, ValueDim: 20, Taps: 4, Scan: true}
		for name, c := range map[string]Config{"linear attention": linear, "attention beside Mamba-2": beside} {
			for _, keep := range []Keep{KeepAll, KeepInputs} {
				step, _ := trainStep(t, threads, c, Heads{LM: true}, keep, 4)
				step()
				if n := testing.AllocsPerRun(10, step); n != 0 {
					t.Errorf("%d threads: a training step with %s, keep %d, allocates %v times", threads, name, keep, n)
				}
			}
		}
		sinks := bitsConfig
		sinks.Sinks = true
		for name, c := range map[string]Config{"": bitsConfig, " with linear attention": linear, " with sinks": sinks,
			" with attention beside Mamba-2": beside} {
			step := decodeStep(t, threads, c, 8, kernels.Sampling{Temperature: 1, TopP: 1})
			step()
			if n := testing.AllocsPerRun(20, step); n != 0 {
				t.Errorf("%d threads: a decoding step%s allocates %v times", threads, name, n)
			}
		}
	}
}

func BenchmarkTrainStep(b *testing.B) {
	for _, threads := range []int{1, 2} {
		for name, h := range map[string]Heads{"policy": {LM: true}, "critic": {Value: true}} {
			b.Run(fmt.Sprintf("model=%s/threads=%d", name, threads), func(b *testing.B) {
				step, tokens := trainStep(b, threads, stepConfig, h, KeepAll, 16)
				step()
				b.ReportAllocs()
				for b.Loop() {
					step()
				}
				b.ReportMetric(float64(tokens*b.N)/b.Elapsed().Seconds(), "tok/s")
			})
		}
	}
}

func BenchmarkDecodeStep(b *testing.B) {
	for _, threads := range []int{1, 2} {
		b.Run(fmt.Sprintf("sequences=64/threads=%d", threads), func(b *testing.B) {
			const sequences = 64
			step := decodeStep(b, threads, stepConfig, sequences, kernels.Sampling{Temperature: 1, TopP: 1})
			step()
			b.ReportAllocs()
			for b.Loop() {
				step()
			}
			b.ReportMetric(float64(sequences*b.N)/b.Elapsed().Seconds(), "tok/s")
		})
	}
}
