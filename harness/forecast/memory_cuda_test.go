//go:build cuda

package forecast

import (
	"os"
	"testing"

	"exp/harness/device"
	"exp/harness/stage"
	"exp/kernels"
	"exp/train/generate"
	"exp/train/model"
)

// On the fake driver (make cuda) the likeliest tokens of few take the scratch memory that the plan says, and no less
// would do: a rank that does not learn has no gradients' room.
func TestScratchOfTopTokensOnCUDA(t *testing.T) {
	if _, ok := os.LookupEnv("FAKECUDA"); !ok {
		t.Skip("needs the fake driver: make cuda")
	}
	const R, C, V, K = 300, 2, 500, 9
	c := &smoke(t, "compute.device="+device.CUDA).Run
	c.Algo.Distill.TopK = K
	be, err := device.ForRun(c, os.Getenv)
	if err != nil {
		t.Fatal(err)
	}
	defer be.Close()
	alloc := allocator(t, be)
	out := kernels.Scores{LogProb: alloc(kernels.F32, R*K), Entropy: alloc(kernels.F32, R), LSE: alloc(kernels.F32, R)}
	h, w, ids := alloc(be.Operand(), R*C), alloc(kernels.F32, V*C), alloc(kernels.I32, R*K)
	before := be.Allocated()
	be.TopTokens(ids, out, h, kernels.Matrix{W: w, Out: V, In: C}, kernels.Softmax{Temperature: 1})
	be.Sync()
	planned := gpuScratch(c, model.Config{Vocab: V}, generate.Options{}, model.Capacity{Tokens: R}, stage.Crew{Tensor: 1})
	if got := be.Allocated() - before; got != int64(planned) {
		t.Errorf("%d bytes, planned %d", got, planned)
	}
}
