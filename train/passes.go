package train

import (
	"exp/kernels"
	"exp/train/model"
	"exp/train/ranks"
	"exp/train/rl"
	"exp/train/rollout"
)

// passes runs models over batches, micro-batch by micro-batch. Results of single rows are
// dealt to the ranks and gathered.
type passes struct {
	be     kernels.Backend
	group  ranks.Group
	budget int              // tokens of a micro-batch
	bundle int              // tokens of sequences whose prompt is computed once
	infer  *model.Workspace // nil if nothing is scored without training
	train  *model.Workspace // nil on a rank that only samples
	passed func(rows int)   // told of each micro-batch; may be nil
}

// newPasses allocates workspaces for micro-batches of rows. keep says what training keeps of a forward pass;
// KeepNothing: nothing is trained here. scored says whether completions are scored without training.
func newPasses(be kernels.Backend, g ranks.Group, c model.Config, h model.Heads, rows Rows, scored bool,
	keep model.Keep) (*passes, error) {
	p := &passes{be: be, group: g, budget: rows.Budget, bundle: rows.limit()}
	var err error
	if scored {
		if p.infer, err = model.NewWorkspace(be, c, h, rows.Scored(), model.KeepNothing); err != nil {
			return nil, err
		}
	}
	if keep == model.KeepNothing {
		return p, nil
	}
	if p.train, err = model.NewWorkspace(be, c, h, rows.Trained(), keep); err != nil {
		p.close()
		return nil, err
	}
	return p, nil
}

// keptBy returns what training keeps of a forward pass.
func keptBy(recompute bool) model.Keep {
	if recompute {
		return model.KeepInputs
	}
	return model.KeepAll
}

func (p *passes) close() {
	for _, ws := range []*model.Workspace{p.infer, p.train} {
		if ws != nil {
			ws.Close()
		}
	}
}

// each loads rows lo to hi of b into ws, one micro-batch after the other, and calls
// f with the rows of each.
func (p *passes) each(b *batch, lo, hi int, ws *model.Workspace, f func(r0, r1 int)) {
	all := b.bundles(lo, hi, p.bundle)
	tokens := make([]int, len(all))
	for i, u := range all {
		tokens[i] = u.tokens
	}
	r0, first := lo, 0
	for _, end := range rollout.MicroBatches(tokens, p.budget) {
		r1 := all[end-1].end
		ranks.Must(ws.Reserve(capacityOf(all[first:end])))
		ws.Load(b.sequences(r0, all[first:end]))
		f(r0, r1)
		if p.passed != nil {
			p.passed(r1 - r0)
		}
		r0, first = r1, end
	}
}

// scoring lets passes without a workspace for it score rows in training's, until its result is called.
func (p *passes) scoring(rows Rows) (end func()) {
	budget := p.budget
	p.infer, p.budget = p.train, min(budget, rows.TrainedTokens()) // what the steps need has room for it
	return func() { p.infer, p.budget = nil, budget }
}

// logProbs returns m's log-probs [N] of the completion tokens of rows lo to hi.
func (p *passes) logProbs(m *model.Model, b *batch, lo, hi int, temperature float64) []float32 {
	out := make([]float32, b.rows[hi]-b.rows[lo])
	p.dealt(b, lo, hi, func(r0, _ int) {
		m.Forward(p.infer)
		m.Scores(p.infer, temperature)
		p.read(out[b.rows[r0]-b.rows[lo]:], p.infer.LogProb())
	}, &out)
	return out
}

// scored holds a model's scores of the completion tokens of a batch.
type scored struct {
	logProb, entropy []float32 // [N]
	sumPiSquared     []float32 // [N] Σ_v π(v)² of the softmax at each token; nil unless asked for
}

// scores returns m's scores of all completion tokens. SumPiSquared takes the logsumexp of
// the logits over half the temperature, which costs another product with the output matrix.
func (p *passes) scores(m *model.Model, b *batch, temperature float64, sumPiSquared bool) scored {
	n := len(b.mask)
	out := scored{logProb: make([]float32, n), entropy: make([]float32, n)}
	var lse, lse2 []float32
	if sumPiSquared {
		out.sumPiSquared = make([]float32, n)
	}
	p.dealt(b, 0, len(b.traj), func(r0, _ int) {
		at := b.rows[r0]
		m.Forward(p.infer)
		m.Scores(p.infer, temperature)
		p.read(out.logProb[at:], p.infer.LogProb())
		p.read(out.entropy[at:], p.infer.Entropy())
		rows := p.infer.Rows()
		if sumPiSquared {
			p.read(take(&lse, rows), p.infer.LSE())
			m.Scores(p.infer, temperature/2)
			p.read(take(&lse2, rows), p.infer.LSE())
			rl.SumPiSquared(out.sumPiSquared[at:at+rows], lse, lse2, out.logProb[at:at+rows])
		}
	}, &out.logProb, &out.entropy, &out.sumPiSquared)
	return out
}

// values returns the critic's values [N] before each completion token.
func (p *passes) values(m *model.Model, b *batch) []float32 {
	out := make([]float32, len(b.mask))
	p.dealt(b, 0, len(b.traj), func(r0, _ int) {
		m.Forward(p.infer)
		m.Values(p.infer)
		p.read(out[b.rows[r0]:], p.infer.Value())
	}, &out)
	return out
}

// read copies a device buffer to the start of dst.
func (p *passes) read(dst []float32, src kernels.Buffer) {
	p.be.Copy(kernels.Host(dst[:src.Len()]), src)
	p.be.Sync()
}

func (p *passes) write(dst kernels.Buffer, src []float32) {
	p.be.Copy(dst, kernels.Host(src))
	p.be.Sync()
}
