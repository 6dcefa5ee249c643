package train

import (
	"fmt"
	"strconv"

	"exp/kernels"
	"exp/train/model"
	"exp/train/rl"
)

// scratch are the host arrays of a micro-batch.
type scratch struct {
	logProb, entropy, value, logZ []float32
	g                             gradients
	dValue                        []float32
	sequenceLogZ                  []float32
	student, taught               []float32 // [N,K], [N,1+K]
	mini                          miniScores
}

// miniScores holds the scores of a mini-batch's rows during its update. Ranks exchange theirs; a
// lone rank leaves it empty.
type miniScores struct {
	logProb, entropy, value []float32 // [N]
	logZ                    []float32 // [B]
	student                 []float32 // [N,K]
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
			mini := b.slice(r[0], r[1], c.Slices, t.passes.bundle)
			loss := t.newLoss(mini.batch, stream)
			t.policyGradient(mini, loss, stream)
			norm, event := t.policy.update(step, t.cfg.policyRate(step))
			if event != nil {
				events = append(events, *event)
			}
			lists = append(lists, append(loss.metrics(), rl.Metric{Name: "actor/grad_norm", Value: norm}))
		}
	}
	return lists, events
}

// policyGradient leaves the gradient of a mini-batch's loss with the policy, and its
// statistics with loss.
func (t *Trainer) policyGradient(mini *sliced, loss *objective, stream string) {
	own, p := loss, t.passes
	if p.many() {
		t.scratch.mini.resize(mini.batch)
		from, _ := p.mine(mini.rankEnds(p.group.Size()))
		own = loss.from(from, mini.rows[from]) // this rank's rows; the statistics need all rows
	}
	t.policy.gradient(mini, func(r0, r1 int) {
		p.each(mini.batch, r0, r1, p.train, func(r0, r1 int) { t.rowGradient(mini.batch, r0, r1, own, stream) })
	})
	if !p.many() {
		return
	}
	s := &t.scratch.mini
	tokens := mini.tokenEnds(p.group.Size())
	p.gather(kernels.Host(s.logProb), tokens, 1)
	p.gather(kernels.Host(s.entropy), tokens, 1)
	n, k := len(mini.mask), mini.taught.k
	discard := gradients{logProb: take(&t.scratch.g.logProb, n), entropy: take(&t.scratch.g.entropy, n),
		student: take(&t.scratch.g.student, n*k)}
	p.gather(kernels.Host(s.student), tokens, k)
	var logZ []float32
	if t.needs.LogZ {
		logZ = s.logZ
		p.gather(kernels.Host(logZ), mini.rankEnds(p.group.Size()), 1)
		discard.logZ = take(&t.scratch.g.logZ, len(mini.traj))
	}
	x := rl.Taught{K: k, Teacher: mini.taught.logProb, Student: s.student}
	loss.add(mini.part(0, len(mini.traj), s.logProb), s.entropy, logZ, x, discard)
}

// resize makes room for the scores of a mini-batch.
func (s *miniScores) resize(b *batch) {
	take(&s.logProb, len(b.mask))
	take(&s.entropy, len(b.mask))
	take(&s.logZ, len(b.traj))
	take(&s.student, len(b.mask)*b.taught.k)
}

// rowGradient takes rows r0 to r1, loaded in the training workspace, through the forward
// pass, the loss and the backward pass.
func (t *Trainer) rowGradient(b *batch, r0, r1 int, loss *objective, stream string) {
	ws, m, s := t.passes.train, t.policy.m, &t.scratch
	n := ws.Rows()
	t.dropAdapters(m, b, r0, r1, stream)
	m.Forward(ws)
	x, k := b.taught.between(b.rows[r0], b.rows[r1]), b.taught.k
	take(&s.logProb, n)
	if k > 0 {
		t.taughtScores(m, x, s.logProb, take(&s.student, n*k))
	} else {
		m.Scores(ws, t.cfg.Sampling.Temperature)
		t.passes.read(s.logProb, ws.LogProb())
	}
	t.passes.read(take(&s.entropy, n), ws.Entropy())
	up := model.Upstream{Scores: k == 0, Taught: k > 0, LogZ: t.needs.LogZ}
	g := gradients{logProb: take(&s.g.logProb, n), entropy: take(&s.g.entropy, n), student: take(&s.g.student, n*k)}
	var logZ []float32
	if up.LogZ {
		ws.SetDropoutKeys(t.dropoutSeeds(b, r0, r1, stream))
		m.LogZ(ws, true)
		logZ = take(&s.logZ, r1-r0)
		all := take(&s.sequenceLogZ, ws.LogZ().Len())
		t.passes.read(all, ws.LogZ())
		b.ofFirst(logZ, all, r0, r1)
		g.logZ = take(&s.g.logZ, r1-r0)
	}
	if t.passes.many() {
		copy(s.mini.logProb[b.rows[r0]:], s.logProb)
		copy(s.mini.entropy[b.rows[r0]:], s.entropy)
		copy(s.mini.logZ[r0:], logZ)
		copy(s.mini.student[b.rows[r0]*k:], s.student[:n*k])
	}
	loss.add(b.part(r0, r1, s.logProb), s.entropy, logZ,
		rl.Taught{K: k, Teacher: x.logProb, Student: s.student[:n*k]}, g)
	if k > 0 {
		t.writeTaught(g, k)
	} else {
		t.passes.write(ws.DLogProb(), g.logProb)
	}
	t.passes.write(ws.DEntropy(), g.entropy)
	if up.LogZ {
		all := take(&s.sequenceLogZ, ws.DLogZ().Len())
		b.toFirst(all, g.logZ, r0, r1)
		t.passes.write(ws.DLogZ(), all)
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

// dropoutSeeds returns the seed of each sequence's dropout masks, named by the row's identity, not by its place in the
// batch, and by the conversation.
func (t *Trainer) dropoutSeeds(b *batch, r0, r1 int, stream string) (seeds []uint64) {
	for i, tr := range b.traj[r0:r1] {
		label := "dropout/" + stream + "/prompt=" + tr.Problem.ID + "/sample=" + strconv.Itoa(tr.Sample)
		seeds = append(seeds, t.Seed(label))
		for k := 1; k < b.conversations(r0+i); k++ {
			seeds = append(seeds, t.Seed(label+"/conversation="+strconv.Itoa(k)))
		}
	}
	return seeds
}

// updateCritic trains the critic towards the returns.
func (t *Trainer) updateCritic(b *batch, step int) (lists [][]rl.Metric, events []Event) {
	c := t.cfg
	updates := c.PromptsPerStep / c.PromptsPerUpdate
	for epoch := range c.Epochs {
		for _, r := range b.miniBatches(c.PromptsPerUpdate, updates) {
			if r[0] == r[1] {
				continue
			}
			stream := fmt.Sprintf("critic/step=%d/epoch=%d", step, epoch)
			stats := t.valueGradient(b.slice(r[0], r[1], c.Slices, t.passes.bundle), stream)
			norm, event := t.critic.update(step, t.cfg.Critic.rate(step))
			if event != nil {
				events = append(events, *event)
			}
			lists = append(lists, append(stats.Metrics(), rl.Metric{Name: "critic/grad_norm", Value: norm}))
		}
	}
	return lists, events
}

// valueGradient leaves the gradient of a mini-batch's value loss with the critic, and
// returns the loss's statistics.
func (t *Trainer) valueGradient(mini *sliced, stream string) *rl.ValueStats {
	c, p, m, s := t.cfg, t.passes, t.critic.m, &t.scratch
	ws, clip := p.train, c.Settings.Float(rl.ValueClip)
	counts := mini.counts(0, len(mini.traj), c.PromptsPerUpdate*c.Samples, c.LossScale)
	loss := func(r0, r1 int, v, dv []float32, stats *rl.ValueStats) {
		x, n0, n1 := mini.part(r0, r1, v), mini.rows[r0], mini.rows[r1]
		c.Aggregation.Coefficients(x.Coef, x.Mask, x.Rows, counts)
		rl.ValueLoss(dv, v, mini.value[n0:n1], mini.ret[n0:n1], x.Mask, x.Coef, clip, stats)
	}
	stats := new(rl.ValueStats)
	take(&s.mini.value, len(mini.mask))
	t.critic.gradient(mini, func(r0, r1 int) {
		p.each(mini.batch, r0, r1, ws, func(r0, r1 int) {
			t.dropAdapters(m, mini.batch, r0, r1, stream)
			m.Forward(ws)
			m.Values(ws)
			v, dv := take(&s.value, ws.Rows()), take(&s.dValue, ws.Rows())
			p.read(v, ws.Value())
			copy(s.mini.value[mini.rows[r0]:], v)
			loss(r0, r1, v, dv, stats)
			p.write(ws.DValue(), dv)
			m.Backward(ws, model.Upstream{Values: true})
		})
	})
	if !p.many() {
		return stats
	}
	p.gather(kernels.Host(s.mini.value), mini.tokenEnds(p.group.Size()), 1)
	stats = new(rl.ValueStats)
	loss(0, len(mini.traj), s.mini.value, take(&s.dValue, len(mini.mask)), stats)
	return stats
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
