package bench

import (
	"errors"
	"math"

	"exp/kernels"
	"exp/train/model"
	"exp/train/optim"
)

// batch returns the input of training and log-probs: sequences of Length tokens. Each token
// predicts the next, the last one a token after the sequence.
func (s *suite) batch(vocab int) model.Batch {
	b := model.Batch{Offsets: []int32{0}}
	var r stream
	n := s.o.Length + 1
	b.Tokens = r.ids(s.o.Batch*n, vocab)
	for i := range s.o.Batch {
		b.Offsets, b.Prompt = append(b.Offsets, int32((i+1)*n)), append(b.Prompt, 1)
	}
	return b
}

func (s *suite) capacity() model.Capacity {
	return model.Capacity{Tokens: s.o.Batch * s.o.Length, Sequences: s.o.Batch}
}

// forwardFLOPs returns the operations of a forward pass over the batch.
func (s *suite) forwardFLOPs(c model.Config) float64 {
	return float64(s.o.Batch) * c.ForwardFLOPs(s.o.Length, s.o.Length)
}

// train measures full training steps: forward, log-probs, backward from a given
// log-prob gradient, gradient norm, AdamW, and repacking the weights. It takes the
// batch at once and recomputes only logits.
func (s *suite) train(name string, c model.Config) (*Training, error) {
	m, err := model.New(s.be, c, model.Heads{LM: true}, true)
	if err != nil {
		return nil, err
	}
	defer m.Close()
	m.Init(seed)
	ws, err := model.NewWorkspace(s.be, c, m.Heads, s.capacity(), model.KeepAll)
	if err != nil {
		return nil, err
	}
	defer ws.Close()
	opt, err := optim.NewAdamW(s.be, m.Params().Len(), 0.9, 0.999, 1e-8, 0.01)
	if err != nil {
		return nil, err
	}
	defer opt.Close()

	b := s.batch(c.Vocab)
	ws.Load(b)
	dLogProb := make([]float32, ws.Rows())
	for i := range dLogProb {
		dLogProb[i] = -1 / float32(len(dLogProb))
	}
	s.be.Copy(ws.DLogProb(), kernels.Host(dLogProb))
	s.be.Zero(ws.DEntropy())
	step := func(t *clock) {
		t.start()
		m.Forward(ws)
		s.be.Sync()
		t.phase("forward")
		m.Scores(ws, 1)
		s.be.Sync()
		t.phase("logprob")
		m.ZeroGrads()
		m.Backward(ws, model.Upstream{Scores: true})
		m.FinishGrads()
		s.be.Sync()
		t.phase("backward")
		factor, _ := optim.ClipFactor(opt.Norm(m.Grads()), 1)
		opt.Update(m.Params(), m.Grads(), 1e-5, factor)
		s.be.Sync()
		t.phase("update")
		m.Refresh()
		s.be.Sync()
		t.phase("pack")
	}
	s.w.PartStart(PartTrain, name, s.o.Repeat)
	step(&clock{})
	var t clock
	if err := s.repeats(func() error { step(&t); return nil }); err != nil {
		return nil, err
	}
	if err := finite(opt.Norm(m.Grads())); err != nil {
		return nil, err
	}
	seconds := make([]float64, s.o.Repeat)
	for _, phase := range t.seconds {
		for i, x := range phase {
			seconds[i] += x
		}
	}
	p := passesOf(s.o.Batch*s.o.Length, 3*s.forwardFLOPs(c), seconds, s.be.Allocated())
	s.w.PartDone(p.TokensPer.Median, "tok/s")
	return &Training{Passes: p, Phases: t.phases()}, nil
}

// finite returns an error if training went wrong, since its time is then meaningless.
func finite(norm float64) error {
	if math.IsNaN(norm) || math.IsInf(norm, 0) {
		return errors.New("the gradient is not finite")
	}
	return nil
}

// logProbs measures forward passes with log-probs, on weights and a workspace without
// gradients.
func (s *suite) logProbs(name string, c model.Config) (*Passes, error) {
	m, err := model.New(s.be, c, model.Heads{LM: true}, false)
	if err != nil {
		return nil, err
	}
	defer m.Close()
	m.Init(seed)
	ws, err := model.NewWorkspace(s.be, c, m.Heads, s.capacity(), model.KeepNothing)
	if err != nil {
		return nil, err
	}
	defer ws.Close()
	b := s.batch(c.Vocab)
	ws.Load(b)
	pass := func(t *clock) {
		t.start()
		m.Forward(ws)
		m.Scores(ws, 1)
		s.be.Sync()
		t.phase("pass")
	}
	s.w.PartStart(PartLogProb, name, s.o.Repeat)
	pass(&clock{})
	var t clock
	if err := s.repeats(func() error { pass(&t); return nil }); err != nil {
		return nil, err
	}
	p := passesOf(s.o.Batch*s.o.Length, s.forwardFLOPs(c), t.seconds[0], s.be.Allocated())
	s.w.PartDone(p.TokensPer.Median, "tok/s")
	return &p, nil
}
