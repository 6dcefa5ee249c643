package bench

import (
	"context"
	"fmt"

	"exp/train/model"
)

// Trial is how long a training step and a call of the sampler took with a small model, in seconds. Forecasts take it
// for the speed of the machine.
type Trial struct {
	Model     model.Config // that was measured
	Sequences int          // in a training step, of Length tokens each; every token gets a log-prob
	Length    int
	Forward   float64 // with the log-probs
	Backward  float64
	Update    float64 // norm of gradients, AdamW, and copies for products
	Drawn     int     // sequences that the call samples, of New tokens each, which follow Prompt others
	Prompt    int
	New       int
	Sampling  float64
}

// The size of a trial, which takes some 10 to 200 ms.
const (
	trialWidth  = 512     // most channels
	trialVocab  = 4096    // most tokens of a vocabulary
	trialSize   = 1 << 20 // parameters of the layers, unless one has more
	trialTokens = 256     // of a step
	trialDrawn  = 32      // most sequences
	trialNew    = 8
	trialTurns  = 3 // timed, after one that touches the memory; the fastest counts, since other work delays some
)

// TrialOf returns the trial, still without times, for a model with the shape of c: with sequences of so many tokens,
// and sampling so many together, if these are not too many for a quick trial.
func TrialOf(c model.Config, length, together int) Trial {
	length = min(max(length, 2*trialNew), trialTokens)
	return Trial{Model: trialModel(c, length), Length: length, Sequences: max(1, trialTokens/length),
		Drawn: max(1, min(together, trialDrawn)), Prompt: length - trialNew, New: trialNew}
}

// Try makes a trial: it returns t with the times.
func Try(ctx context.Context, be Device, t Trial) (Trial, error) {
	s := newSuite(ctx, be, nil, unwatched{})
	s.meter = nil // limits are not measured
	s.o = Options{Batch: t.Sequences, Length: t.Length, Sequences: t.Drawn, Prompt: t.Prompt, New: t.New,
		Repeat: trialTurns}
	steps, err := s.train("", t.Model)
	if err != nil {
		return t, fmt.Errorf("bench: %w", err)
	}
	for _, p := range steps.Phases {
		switch p.Name {
		case "forward", "logprob":
			t.Forward += p.Seconds.Min
		case "backward":
			t.Backward += p.Seconds.Min
		default:
			t.Update += p.Seconds.Min
		}
	}
	calls, err := s.sample("", t.Model)
	if err != nil {
		return t, fmt.Errorf("bench: %w", err)
	}
	t.Sampling = calls.Seconds.Min
	return t, nil
}

// trialModel returns a model like c that is small enough for a trial: with plain attention and feed-forward blocks,
// fewer layers, and narrow if c is wide.
func trialModel(c model.Config, length int) model.Config {
	share := min(1, trialWidth/float64(c.Width))
	part := func(n int) int { return max(1, int(share*float64(n))) }
	m := model.Config{Vocab: min(c.Vocab, trialVocab), Width: part(c.Width), Heads: part(c.Heads),
		Head: min(128, max(2, c.Head/2*2)), FFN: part(max(c.FFN, int(c.Experts.Top*c.Experts.FFN))),
		RopeTheta: 1e4, NormEps: 1e-6, TieEmbeddings: true, MaxPositions: length + 1, InitStd: 0.02}
	m.KVHeads = m.Heads
	if k := part(c.KVHeads); m.Heads%k == 0 {
		m.KVHeads = k
	}
	layer := 0
	for _, l := range linears(m)[:4] {
		layer += int(l.out * l.in)
	}
	m.Layers = max(1, min(c.Layers, trialSize/layer))
	return m
}

// unwatched is a Watcher that nobody reads.
type unwatched struct{}

func (unwatched) PartStart(Part, string, int) {}
func (unwatched) PartRepeat(int)              {}
func (unwatched) PartDone(float64, string)    {}
