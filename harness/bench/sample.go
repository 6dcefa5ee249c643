package bench

import (
	"fmt"

	"exp/train/generate"
	"exp/train/model"
	"exp/train/rollout"
)

// prefillRows is how many prompt tokens a sampling step may compute in addition to the
// completions; the same as in training (harness/stage).
const prefillRows = 256

// endless is a vocabulary without text and end tokens, so that every completion has its
// full length.
type endless struct{}

// Piece returns nothing.
func (endless) Piece(int32) []byte { return nil }

// EndIDs returns none.
func (endless) EndIDs() []int32 { return nil }

// sample measures the sampler on prompts that share nothing, one completion each, all
// decoded together. It times the whole call: prefill, decode, draws.
func (s *suite) sample(name string, c model.Config) (*Passes, error) {
	m, err := model.New(s.be, c, model.Heads{LM: true}, false)
	if err != nil {
		return nil, err
	}
	defer m.Close()
	m.Init(seed)
	engine, err := generate.New(s.be, m, endless{}, generate.Options{
		MaxSequences: s.o.Sequences, PageTokens: 16, MaxTokens: s.o.Prompt + s.o.New, StepRows: s.o.Sequences +
			prefillRows})
	if err != nil {
		return nil, err
	}
	defer engine.Close()
	reqs := make([]rollout.Request, s.o.Sequences)
	var r stream
	for i := range reqs {
		reqs[i] = rollout.Request{Prompt: r.ids(s.o.Prompt, c.Vocab), Seeds: []uint64{uint64(i)}}
	}
	draw := func(maxNew int) error {
		_, err := engine.Sample(s.ctx, reqs, rollout.Params{Temperature: 1, TopP: 1, MaxNewTokens: maxNew}, nil)
		return err
	}
	s.w.PartStart(PartSample, name, s.o.Repeat)
	if err := draw(min(s.o.New, 8)); err != nil {
		return nil, err
	}
	tokens := s.o.Sequences * s.o.New
	var t clock
	err = s.repeats(func() error {
		drawn := engine.Stats().SampledTokens
		t.start()
		err := draw(s.o.New)
		t.phase("sample")
		if n := engine.Stats().SampledTokens - drawn; err == nil && n != tokens {
			return fmt.Errorf("%d tokens were drawn, want %d", n, tokens)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	flops := float64(s.o.Sequences) * c.ForwardFLOPs(s.o.Prompt+s.o.New-1, s.o.New)
	p := passesOf(tokens, flops, t.seconds[0], s.be.Allocated())
	s.w.PartDone(p.TokensPer.Median, "tok/s")
	return &p, nil
}
