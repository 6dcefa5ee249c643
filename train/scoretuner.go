package train

import (
	"exp/kernels"
	"exp/train/model"
	"exp/train/ranks"
	"exp/train/rl"
)

// scoreTuner is what reward models that learn from files have in common: a loss of the scores of some states.
type scoreTuner struct {
	tuner
	m      *model.Model
	rows   Rows
	optim  Optim
	slices int
	every  int // steps between validations; 0: only after the last one
}

// stateScores are examples that are laid out, and the scores of their states.
type stateScores struct {
	*batch
	value []float32 // [N] scores of the state before each token
}

func (x *stateScores) scores() *stateScores { return x }

// scoredExamples are the examples of an update or of a validation.
type scoredExamples interface {
	scores() *stateScores
	// slopes sets in grad the derivatives of the loss by the scores of rows r0 to r1, from the first token of r0 on.
	slopes(grad []float32, r0, r1 int)
	metrics() []rl.Metric
	heldOut() []rl.Metric
}

// learn takes one step, on the examples that lay returns for the drawn ones, and returns its record. heldOut returns
// a validation's; nil: none. It fails only if another rank does.
func (t *scoreTuner) learn(lay func(drawn []int) scoredExamples, heldOut func() scoredExamples) (rec *Step,
	err error) {
	defer ranks.Recover(&err)
	step := t.step + 1
	clock := newStopwatch(t.clock)
	drawn, epoch := t.order.step(step)
	x := lay(drawn)
	b := x.scores().batch
	rec = &Step{Step: step, Of: t.steps}
	t.gradient(step, b.slice(0, len(b.traj), t.slices, t.passes.bundle), x)
	rate := t.optim.rate(step)
	norm, event := t.learner.update(step, rate)
	if event != nil {
		rec.Events = append(rec.Events, *event)
	}
	rec.Metrics = append(x.metrics(), rl.Metric{Name: "rm/grad_norm", Value: norm},
		rl.Metric{Name: "rm/lr", Value: rate}, rl.Metric{Name: "rm/epoch", Value: float64(epoch)})
	clock.lap("reward_model")
	if heldOut != nil && (step == t.steps || t.every > 0 && step%t.every == 0) {
		rec.Metrics = append(rec.Metrics, t.validate(heldOut())...)
		clock.lap("testing")
	}
	checkFinite(rec)
	rec.System = clock.metrics(b)
	t.step = step
	return rec, nil
}

// validate returns the metrics of held-out examples.
func (t *scoreTuner) validate(x scoredExamples) []rl.Metric {
	defer t.passes.scoring(t.rows)()
	s := x.scores()
	s.value = t.passes.values(t.m, s.batch)
	return x.heldOut()
}

// gradient computes the gradient of the loss of x. It fills x with the scores, in the order of the slices of b.
func (t *scoreTuner) gradient(step int, b *sliced, x scoredExamples) {
	s := x.scores()
	s.batch, s.value = b.batch, make([]float32, len(b.mask))
	p, l, ws := t.passes, t.learner, t.passes.train
	var grad []float32
	l.gradient(b, func(r0, r1 int) {
		p.each(b.batch, r0, r1, ws, func(r0, r1 int) {
			t.dropAdapters(b.batch, step, r0, r1)
			l.m.Forward(ws)
			l.m.Values(ws)
			p.read(s.value[b.rows[r0]:], ws.Value())
			take(&grad, ws.Rows())
			x.slopes(grad, r0, r1)
			p.write(ws.DValue(), grad)
			l.m.Backward(ws, model.Upstream{Values: true})
		})
	})
	p.gather(kernels.Host(s.value), b.tokenEnds(p.group.Size()), 1)
}
