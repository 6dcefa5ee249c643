package bench

import (
	"context"
	"time"

	"exp/kernels"
	"exp/train/generate"
	"exp/train/model"
	"exp/train/rollout"
)

// Speed is a quick measurement: an order of magnitude, not a benchmark.
type Speed struct {
	MatMul float64 `json:"matmul_gflops"`       // [512,512]·[512,512]ᵀ, float32
	Sample float64 `json:"sample_tokens_per_s"` // 32 completions together, a model of 0.8 M parameters
}

// Measure spends about d on each measurement.
func Measure(ctx context.Context, be kernels.Backend, d time.Duration) (s Speed, err error) {
	if s.MatMul, err = measureMatMul(be, d); err != nil {
		return s, err
	}
	s.Sample, err = measureSampling(ctx, be, d)
	return s, err
}

func measureMatMul(be kernels.Backend, d time.Duration) (float64, error) {
	const n = 512
	b := &buffers{be: be}
	defer b.close()
	w := b.weights(linear{out: n, in: n}, 1)
	x, out := b.floats(make([]float32, n*n)), b.floats(make([]float32, n*n))
	if b.err != nil {
		return 0, b.err
	}
	rate, err := settled(d, func() error {
		be.MatMul(out, x, w[0], kernels.Buffer{})
		be.Sync()
		return nil
	})
	return rate * 2 * n * n * n / 1e9, err
}

// settled is repeat after a warm-up run, which allocates.
func settled(d time.Duration, f func() error) (float64, error) {
	if err := f(); err != nil {
		return 0, err
	}
	return repeat(d, f)
}

func measureSampling(ctx context.Context, be kernels.Backend, d time.Duration) (float64, error) {
	c := model.Config{Vocab: 19, Layers: 4, Width: 128, Heads: 4, KVHeads: 4, Head: 32, FFN: 352,
		RopeTheta: 10000, NormEps: 1e-6, MaxPositions: 64, InitStd: 0.02}
	m, err := model.New(be, c, model.Heads{LM: true}, false)
	if err != nil {
		return 0, err
	}
	defer m.Close()
	m.Init(seed)
	engine, err := generate.New(be, m, endless{}, generate.Options{MaxSequences: 32, PageTokens: 16, MaxTokens: 64,
		StepRows: 64})
	if err != nil {
		return 0, err
	}
	defer engine.Close()
	request := rollout.Request{Prompt: []int32{1, 2, 3, 4}}
	for k := range uint64(32) {
		request.Seeds = append(request.Seeds, k)
	}
	tokens := 0
	rate, err := settled(d, func() error {
		before := engine.Stats().SampledTokens
		_, err := engine.Sample(ctx, []rollout.Request{request}, rollout.Params{Temperature: 1, TopP: 1,
			MaxNewTokens: 32}, nil)
		tokens = engine.Stats().SampledTokens - before
		return err
	})
	return rate * float64(tokens), err
}
