package forecast

import (
	"os"
	"testing"

	"exp/harness/config"
	"exp/harness/device"
	"exp/kernels"
	"exp/train/generate"
	"exp/train/model"
)

// Of a wide vocabulary, draws take the logits that the plan says, also where they are changed, which needs their
// exponentials, too: some rows' at a time.
func TestWideLogits(t *testing.T) {
	const R, C, V = 300, 8, 70000
	for _, changed := range []bool{false, true} {
		c := &smoke(t, "compute.threads=1").Run
		be, err := device.ForRun(c, os.Getenv)
		if err != nil {
			t.Fatal(err)
		}
		defer be.Close()
		alloc := allocator(t, be)
		out := kernels.Scores{LogProb: alloc(kernels.F32, R), Entropy: alloc(kernels.F32, R), LSE: alloc(kernels.F32, R)}
		ids, h, w, u := alloc(kernels.I32, R), alloc(kernels.F32, R*C), alloc(kernels.F32, V*C), alloc(kernels.F32, R)
		packed, packedT := be.PackedLen(V, C)
		m := kernels.Matrix{W: w, Packed: alloc(be.Operand(), packed), PackedT: alloc(be.Operand(), packedT), Out: V, In: C}
		be.Pack(m)
		p := kernels.Sampling{Temperature: 1, TopP: 1}
		if changed {
			p.TopK = 5
		}
		counts := be.(interface{ Allocated() int64 })
		before := counts.Allocated()
		be.Sample(ids, out, h, m, u, p)
		be.Sync()
		took := counts.Allocated() - before
		x := workspace{kind: config.EvalGen, c: c, arch: model.Config{Vocab: V}, engine: generate.Options{MaxSequences: R, StepRows: R},
			changed: changed}
		if plan := int64(x.logitBytes()); took < plan || took > plan+plan/10 {
			t.Errorf("changed %v: %d bytes, planned %d", changed, took, plan)
		}
	}
}

// allocator returns what allocates buffers.
func allocator(t *testing.T, be kernels.Backend) func(dtype kernels.DType, n int) kernels.Buffer {
	return func(dtype kernels.DType, n int) kernels.Buffer {
		t.Helper()
		b, err := be.Alloc(dtype, n)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
}
