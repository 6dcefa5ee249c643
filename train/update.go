package train

import (
	"fmt"
	"strconv"

	"exp/train/model"
	"exp/train/rl"
)

// scratch are the host arrays of a micro-batch.
type scratch struct {
	logProb, entropy, value, logZ []float32
	g                             gradients
	dValue                        []float32
}

// take returns x with length n, zeroed.
func take(x *[]float32, n int) []float32 {
	if cap(*x) < n {
		*x = make([]float32, n+n/2)
	}
	*x = (*x)[:n]
	clear(*x)
	return *x
}

// updateActor trains the policy on the batch and returns the metrics of each mini-batch.
func (t *Trainer) updateActor(b *batch, step int) (lists [][]rl.Metric, events []Event) {
	c := t.cfg
	updates := c.PromptsPerStep / c.PromptsPerUpdate
	for epoch := range c.Epochs {
		for _, r := range b.miniBatches(c.PromptsPerUpdate, updates) {
			if r[0] == r[1] {
				continue
			}
			stream := fmt.Sprintf("step=%d/epoch=%d", step, epoch)
			loss := t.newLoss(b, r[0], r[1], stream)
			t.policy.m.ZeroGrads()
			t.passes.each(b, r[0], r[1], t.passes.train, func(r0, r1 int) {
				t.policyGradient(b, r0, r1, loss, stream)
			})
			norm, event := t.policy.update(step)
			if event != nil {
				events = append(events, *event)
			}
			lists = append(lists, append(loss.metrics(), rl.Metric{Name: "actor/grad_norm", Value: norm}))
		}
	}
	return lists, events
}

// policyGradient takes rows r0 to r1, loaded in the training workspace, through the forward
// pass, the loss and the backward pass.
func (t *Trainer) policyGradient(b *batch, r0, r1 int, loss *objective, stream string) {
	ws, m, s := t.passes.train, t.policy.m, &t.scratch
	n := ws.Rows()
	t.dropAdapters(m, b, r0, r1, stream)
	m.Forward(ws)
	m.Scores(ws, t.cfg.Sampling.Temperature)
	t.passes.read(take(&s.logProb, n), ws.LogProb())
	t.passes.read(take(&s.entropy, n), ws.Entropy())
	up := model.Upstream{Scores: true, LogZ: t.needs.LogZ}
	g := gradients{logProb: take(&s.g.logProb, n), entropy: take(&s.g.entropy, n)}
	var logZ []float32
	if up.LogZ {
		ws.SetDropoutKeys(t.dropoutSeeds(b, r0, r1, stream))
		m.LogZ(ws, true)
		logZ = take(&s.logZ, r1-r0)
		t.passes.read(logZ, ws.LogZ())
		g.logZ = take(&s.g.logZ, r1-r0)
	}
	loss.add(b.part(r0, r1, s.logProb), s.entropy, logZ, g)
	t.passes.write(ws.DLogProb(), g.logProb)
	t.passes.write(ws.DEntropy(), g.entropy)
	if up.LogZ {
		t.passes.write(ws.DLogZ(), g.logZ)
	}
	m.Backward(ws, up)
}

// dropAdapters enables the dropout of m's adapters for rows r0 to r1 of the training
// workspace.
func (t *Trainer) dropAdapters(m *model.Model, b *batch, r0, r1 int, stream string) {
	if a := m.Heads.Adapters; a != nil && a.Dropout > 0 {
		t.passes.train.DropAdapters(t.dropoutSeeds(b, r0, r1, stream+"/adapters"))
	}
}

// dropoutSeeds returns the seed of each row's dropout masks, named by the row's identity,
// not by its place in the batch.
func (t *Trainer) dropoutSeeds(b *batch, r0, r1 int, stream string) []uint64 {
	seeds := make([]uint64, r1-r0)
	for i, tr := range b.traj[r0:r1] {
		seeds[i] = t.Seed("dropout/" + stream + "/prompt=" + tr.Problem.ID + "/sample=" + strconv.Itoa(tr.Sample))
	}
	return seeds
}

// updateCritic trains the critic towards the returns.
func (t *Trainer) updateCritic(b *batch, step int) (lists [][]rl.Metric, events []Event) {
	c, ws, m, s := t.cfg, t.passes.train, t.critic.m, &t.scratch
	updates, clip := c.PromptsPerStep/c.PromptsPerUpdate, c.Settings.Float(rl.ValueClip)
	for epoch := range c.Epochs {
		for _, r := range b.miniBatches(c.PromptsPerUpdate, updates) {
			if r[0] == r[1] {
				continue
			}
			counts := b.counts(r[0], r[1], c.PromptsPerUpdate*c.Samples, c.LossScale)
			stream := fmt.Sprintf("critic/step=%d/epoch=%d", step, epoch)
			var stats rl.ValueStats
			m.ZeroGrads()
			t.passes.each(b, r[0], r[1], ws, func(r0, r1 int) {
				t.dropAdapters(m, b, r0, r1, stream)
				m.Forward(ws)
				m.Values(ws)
				n := ws.Rows()
				v, dv := take(&s.value, n), take(&s.dValue, n)
				t.passes.read(v, ws.Value())
				p, n0 := b.part(r0, r1, v), b.rows[r0]
				c.Aggregation.Coefficients(p.Coef, p.Mask, p.Rows, counts)
				rl.ValueLoss(dv, v, b.value[n0:n0+n], b.ret[n0:n0+n], p.Mask, p.Coef, clip, &stats)
				t.passes.write(ws.DValue(), dv)
				m.Backward(ws, model.Upstream{Values: true})
			})
			norm, event := t.critic.update(step)
			if event != nil {
				events = append(events, *event)
			}
			lists = append(lists, append(stats.Metrics(), rl.Metric{Name: "critic/grad_norm", Value: norm}))
		}
	}
	return lists, events
}

// reduce joins the metrics of mini-batches by name, in order of first appearance, as verl
// does (rl.Reduce).
func reduce(lists [][]rl.Metric) []rl.Metric {
	var names []string
	values := map[string][]float64{}
	for _, list := range lists {
		for _, m := range list {
			if _, ok := values[m.Name]; !ok {
				names = append(names, m.Name)
			}
			values[m.Name] = append(values[m.Name], m.Value)
		}
	}
	out := make([]rl.Metric, len(names))
	for i, name := range names {
		out[i] = rl.Metric{Name: name, Value: rl.Reduce(name, values[name])}
	}
	return out
}
