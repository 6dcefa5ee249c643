package train

import (
	"math"

	"exp/kernels"
	"exp/train/model"
	"exp/train/rl"
)

// taught are the K likeliest tokens of the teacher at each of N places, and their log-probs under it, [N,K]. K is 0
// if the policy does not learn them.
type taught struct {
	k       int
	tokens  []int32
	logProb []float32
}

// chosen returns the tokens of the rows index[0], index[1], ….
func (x taught) chosen(rows rl.Rows, index []int) taught {
	if x.k == 0 {
		return x
	}
	c := taught{k: x.k}
	for _, i := range index {
		lo, hi := rows[i]*x.k, rows[i+1]*x.k
		c.tokens, c.logProb = append(c.tokens, x.tokens[lo:hi]...), append(c.logProb, x.logProb[lo:hi]...)
	}
	return c
}

// between returns the tokens of places lo to hi.
func (x taught) between(lo, hi int) taught {
	return taught{k: x.k, tokens: x.tokens[lo*x.k : hi*x.k], logProb: x.logProb[lo*x.k : hi*x.k]}
}

// teacher returns the reference's log-probs [N] of all completion tokens of b, and its k likeliest tokens at each
// place. Those past the policy's vocabulary have no probability.
func (p *passes) teacher(m *model.Model, b *batch, k, vocab int, temperature float64) ([]float32, taught) {
	n := len(b.mask)
	ref, x := make([]float32, n), taught{k: k, tokens: make([]int32, n*k), logProb: make([]float32, n*k)}
	ends := p.dealtTo(b, 0, len(b.traj), func(r0, _ int) {
		at := b.rows[r0]
		m.Forward(p.infer)
		m.Scores(p.infer, temperature)
		p.read(ref[at:], p.infer.LogProb())
		tokens, logProb := m.TopTokens(p.infer, temperature)
		p.read(x.logProb[at*k:], logProb)
		p.be.Copy(kernels.Host(x.tokens[at*k:at*k+tokens.Len()]), tokens)
		p.be.Sync()
		for i := at * k; i < at*k+tokens.Len(); i++ {
			if int(x.tokens[i]) >= vocab {
				x.tokens[i], x.logProb[i] = 0, float32(math.Inf(-1))
			}
		}
	})
	p.gather(kernels.Host(ref), ends, 1)
	p.gather(kernels.Host(x.logProb), ends, k)
	p.gather(kernels.Host(x.tokens), ends, k)
	return ref, x
}

// taughtScores scores the loaded rows under the policy. It sets logProb [R] to the log-probs of the targets, and
// student [R,K] to the log-probs of the teacher's tokens.
func (t *Trainer) taughtScores(m *model.Model, x taught, logProb, student []float32) {
	ws := t.passes.train
	ws.SetTaught(x.tokens)
	both := take(&t.scratch.taught, len(logProb)*(1+x.k))
	t.passes.read(both, m.TaughtScores(ws, t.cfg.Sampling.Temperature))
	for r := range logProb {
		row := both[r*(1+x.k):]
		logProb[r] = row[0]
		copy(student[r*x.k:(r+1)*x.k], row[1:])
	}
}

// writeTaught tells the gradients of the targets [R] and of the teacher's tokens [R,K] to the training workspace.
func (t *Trainer) writeTaught(g gradients, k int) {
	both := take(&t.scratch.taught, len(g.logProb)*(1+k))
	for r, d := range g.logProb {
		both[r*(1+k)] = d
		copy(both[r*(1+k)+1:], g.student[r*k:(r+1)*k])
	}
	t.passes.write(t.passes.train.DTaught(), both)
}
