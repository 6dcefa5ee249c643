package stage

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strings"

	"exp/harness/config"
	"exp/harness/prompt"
	"exp/train"
	"exp/train/model"
	"exp/train/rl"
	"exp/train/rollout"
)

func fact(name string, v float64) rl.Metric { return rl.Metric{Name: name, Value: v} }

func metrics(m ...rl.Metric) []rl.Metric { return m }

// fineTune teaches the initial weights the form of answers from conversations or the problems' targets. It does
// not depend on the run's seed, so all runs with the same upstream configuration share its result.
func fineTune(ctx context.Context, e *Env, in Inputs) (*Outcome, error) {
	c := e.run()
	var owned closers
	defer owned.close()
	parts, counts, err := e.examples(ctx, in, &owned)
	if err != nil {
		return nil, err
	}
	m, err := e.loadModel(in, RoleWeights, model.Heads{LM: true}, true)
	if err != nil {
		return nil, err
	}
	defer m.Close()
	conf := SFTConfig(c)
	conf.Offload = e.Offload
	parts.Backend, parts.Model, parts.Seed = e.Backend, m, seedFunc(c.SFT.Seed)
	parts.Ranks, parts.Tensor = e.Ranks, Everyone(c, e.group().Size()).Tensor
	x := tuning{e: e, kind: config.SFT, counts: counts}
	parts.Recorder = recorder(x.record)
	t, err := train.NewSFT(conf, parts)
	if err != nil {
		return nil, err
	}
	defer t.Close()
	last, outputs, err := x.run(ctx, t)
	if err != nil || outputs == nil {
		return nil, err
	}
	return &Outcome{Outputs: outputs, Summary: last,
		Facts: metrics(fact("steps", float64(c.SFT.Steps)), fact("loss", last["sft/loss"]))}, nil
}

// tuning learns from examples in a stage: it records steps, saves checkpoints and continues from them.
type tuning struct {
	e      *Env
	kind   config.Stage
	counts map[string]float64 // of the examples, for the summary
	// put stores the weights that were learned; nil: Env.putLearned.
	put   func(t learns) (Output, error)
	curve curve
	saved *saver
}

// tuner is what learns.
type tuner interface {
	learns
	Run(ctx context.Context, stop func() bool) error
}

// record takes a finished step.
func (x *tuning) record(s *train.Step) error {
	if err := x.e.curveRecorder(&x.curve, string(x.kind))(s); err != nil {
		return err
	}
	return x.saved.afterStep(s.Step, s.Of, x.curve.lines.Bytes())
}

// run takes the steps that remain. It returns the last one's metrics with the counts, and the outputs; only the rank
// that leads has them.
func (x *tuning) run(ctx context.Context, t tuner) (last map[string]float64, outputs []Output, err error) {
	e := x.e
	x.saved = e.saver(string(x.kind), t)
	if err := x.saved.resume(&x.curve.lines); err != nil {
		return nil, nil, err
	}
	if err := t.Run(ctx, e.Hooks.Stop); err != nil {
		return nil, nil, x.saved.onStop(err, x.curve.lines.Bytes())
	}
	put := x.put
	if put == nil {
		put = e.putLearned
	}
	w, err := put(t)
	if err != nil || !e.leads() {
		return nil, nil, err
	}
	points, err := e.put(RoleCurve, "curve", x.curve.lines.Bytes())
	if err == nil {
		err = x.saved.drop()
	}
	if err != nil {
		return nil, nil, err
	}
	if x.curve.last != nil {
		maps.Copy(x.curve.last, x.counts)
	}
	return x.curve.last, []Output{w, points}, nil
}

// examples returns what SFT learns from, and counts for its summary.
func (e *Env) examples(ctx context.Context, in Inputs, owned *closers) (x train.SFTParts, counts map[string]float64,
	err error) {
	c := e.run().SFT
	if !c.OnConversations() {
		if x.Problems, err = e.problemsOf(in, RoleTrain); err != nil {
			return x, nil, err
		}
		if n := c.DataSize; n > 0 && n < len(x.Problems) {
			x.Problems = x.Problems[:n]
		}
		if err := e.showImages(in, owned, x.Problems); err != nil {
			return x, nil, err
		}
	}
	if c.OnConversations() {
		return e.conversationExamples(ctx, in, owned)
	}
	prompts, err := e.prompter()
	if err != nil {
		return x, nil, err
	}
	end, err := prompts.End()
	if err != nil {
		return x, nil, err
	}
	counts = map[string]float64{}
	if n := e.warnTruncated(prompts, "data.train", x.Problems); n > 0 {
		counts["truncated"] = float64(n)
	}
	x.Example = func(q *rollout.Problem) ([]int32, *rollout.Completion, error) {
		t, err := prompts.Taught(q, end)
		if err != nil {
			return nil, nil, err
		}
		return t.Prompt, &t.Completion, nil
	}
	texts := make([]string, len(x.Problems))
	for i := range texts {
		texts[i] = x.Problems[i].Target
	}
	e.warnOutput("targets of data.train", texts)
	return x, counts, nil
}

// conversationExamples are the examples of sft.source.
func (e *Env) conversationExamples(ctx context.Context, in Inputs, owned *closers) (x train.SFTParts,
	counts map[string]float64, err error) {
	list, err := e.conversationsOf(in)
	if err == nil {
		err = e.showImages(in, owned, talks(list))
	}
	if err != nil {
		return x, nil, err
	}
	prompts, err := e.prompter()
	if err != nil {
		return x, nil, err
	}
	examples, plan, err := prompts.Conversations(ctx, list)
	if err != nil {
		return x, nil, err
	}
	byID := make(map[string]*prompt.Conversation, len(list))
	var texts []string
	for i, t := range examples {
		if target := list[i].Target; target != "" {
			texts = append(texts, target)
		}
		for _, m := range list[i].Messages {
			if m.Role == "assistant" {
				texts = append(texts, m.Content)
			}
		}
		if t != nil {
			byID[list[i].ID] = t
			x.Problems = append(x.Problems, list[i].Problem)
		}
	}
	e.warnOutput("answers of sft.source", texts)
	if plan.Cut+plan.Lost > 0 {
		e.event("conversations-cut", "sft.source: %s", &plan)
	}
	x.Example = func(q *rollout.Problem) ([]int32, *rollout.Completion, error) {
		t := byID[q.ID]
		return t.Prompt, &t.Completion, nil
	}
	return x, map[string]float64{"conversations": float64(plan.Conversations), "tokens": float64(plan.Tokens),
		"learned_tokens": float64(plan.Learned), "cut": float64(plan.Cut), "left_out": float64(plan.Lost)}, nil
}

// warnOutput warns of texts to learn that hold tool output as the run's tools write it, if nothing masks it.
func (e *Env) warnOutput(name string, texts []string) {
	c := e.run()
	f, err := toolFormat(c.Rollout.Tools)
	before, after := strings.TrimSpace(f.Before), strings.TrimSpace(f.After)
	if err != nil || !c.Rollout.Tools.Used() || len(c.SFT.Mask) > 0 || before == "" || after == "" {
		return
	}
	n := 0
	for _, text := range texts {
		if _, rest, ok := strings.Cut(text, before); ok && strings.Contains(rest, after) {
			n++
		}
	}
	if n > 0 {
		e.event("output-learned", "%d of %d %s hold tool output, between %q and %q, and SFT learns to write it; "+
			"sft.mask: [%q, %q] leaves it out", n, len(texts), name, before, after, f.Before, f.After)
	}
}

// curveRecorder tells of finished steps and adds them to the curve, on the rank that leads.
func (e *Env) curveRecorder(c *curve, phase string) recorder {
	return func(s *train.Step) error {
		if e.Hooks.Phase != nil {
			e.Hooks.Phase(s.Step, phase, 0, 0)
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
