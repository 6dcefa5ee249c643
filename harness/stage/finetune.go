package stage

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"exp/harness/config"
	"exp/train"
	"exp/train/model"
	"exp/train/rl"
)

func fact(name string, v float64) rl.Metric { return rl.Metric{Name: name, Value: v} }

func metrics(m ...rl.Metric) []rl.Metric { return m }

// fineTune teaches the initial weights the form of answers from the problems' targets. It does not
// depend on the run's seed, so all runs with the same upstream configuration share its result.
func fineTune(ctx context.Context, e *Env, in Inputs) (*Outcome, error) {
	c := e.run()
	m, err := e.loadModel(in, RoleWeights, model.Heads{LM: true}, true)
	if err != nil {
		return nil, err
	}
	defer m.Close()
	problems, err := e.problemsOf(in, RoleTrain)
	if err != nil {
		return nil, err
	}
	if n := c.SFT.DataSize; n > 0 && n < len(problems) {
		problems = problems[:n]
	}
	prompts, err := e.prompter()
	if err != nil {
		return nil, err
	}
	end, err := prompts.End()
	if err != nil {
		return nil, err
	}
	cut := e.warnTruncated(prompts, "data.train", problems)
	curve := &curve{}
	conf := SFTConfig(c)
	conf.Offload = e.Offload
	t, err := train.NewSFT(conf, train.SFTParts{
		Backend: e.Backend, Model: m, Problems: problems, Prompt: prompts.Encode, Encode: prompts.Target, End: end,
		Seed: seedFunc(c.SFT.Seed), Ranks: e.Ranks, Tensor: e.tensor(), Recorder: e.curveRecorder(curve),
	})
	if err != nil {
		return nil, err
	}
	defer t.Close()
	saved := e.saver(string(config.SFT), t)
	if err := saved.resume(&curve.lines); err != nil {
		return nil, err
	}
	if err := t.Run(ctx, e.Hooks.Stop); err != nil {
		return nil, saved.onStop(err, curve.lines.Bytes())
	}
	w, err := e.putLearned(t)
	if err != nil || !e.leads() {
		return nil, err
	}
	points, err := e.put(RoleCurve, "curve", curve.lines.Bytes())
	if err != nil {
		return nil, err
	}
	if cut > 0 && curve.last != nil {
		curve.last["truncated"] = float64(cut)
	}
	return &Outcome{Outputs: []Output{w, points}, Summary: curve.last,
		Facts: metrics(fact("steps", float64(c.SFT.Steps)), fact("loss", curve.last["sft/loss"]))}, nil
}

// curveRecorder tells of finished steps and adds them to the curve, on the rank that leads.
func (e *Env) curveRecorder(c *curve) recorder {
	return func(s *train.Step) error {
		if e.Hooks.Phase != nil {
			e.Hooks.Phase(s.Step, "sft", 0, 0)
		}
		if !e.leads() {
			return nil
		}
		for _, ev := range s.Events {
			e.event(ev.Kind, "%s", ev.Text)
		}
		e.progress(s.Step, s.Of, append(s.Metrics, s.System...)...)
		return c.add(s)
	}
}

type recorder func(s *train.Step) error

func (f recorder) Step(s *train.Step) error { return f(s) }

// curve gathers the deterministic metrics of steps as JSON lines.
type curve struct {
	lines bytes.Buffer
	last  map[string]float64
}

func (c *curve) add(s *train.Step) error {
	c.last = finite(s.Metrics) // a value that JSON cannot hold is an event of the step
	c.last["step"] = float64(s.Step)
	b, err := json.Marshal(c.last) // keys come sorted
	if err != nil {
		return fmt.Errorf("step %d: %w", s.Step, err)
	}
	c.lines.Write(append(b, '\n'))
	return nil
}

// SFTConfig returns the settings of supervised fine-tuning.
func SFTConfig(c *config.Run) train.SFTConfig {
	return train.SFTConfig{
		Steps: c.SFT.Steps, ProblemsPerStep: c.SFT.ProblemsPerStep, MicroBatchTokens: c.Compute.MicroBatchTokens,
		Recompute: c.Compute.Recompute, Slices: c.Train.Slices, Optim: optimConfig(c.SFT.Optim, c.SFT.Steps),
	}
}
