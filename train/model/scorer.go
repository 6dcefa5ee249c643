package model

import "exp/kernels"

// Scorer holds the buffers of ScoreRows.
type Scorer struct {
	be            kernels.Backend
	rows, most    int
	owned         []kernels.Buffer
	h             kernels.Buffer // [rows,C]
	index, target kernels.Buffer // [rows]
	top           kernels.Buffer // [rows,most]
	scores        kernels.Scores // LogProb [rows,most]
	output        outputRoom
}

// Scored are the scores of some rows, on the host, for logits that no temperature divides.
type Scored struct {
	LogProb []float32 // [R] of the targets
	Top     []int32   // [R,K] the most probable tokens, as in kernels.Output.TopTokens
	TopProb []float32 // [R,K] their log-probs
}

// ScorerBytes returns what NewScorer allocates.
func (c Config) ScorerBytes(rows, most int, operand kernels.DType) int {
	n := rows*c.Width*operand.Size() + rows*4*(4+2*max(1, most))
	if c.OutputBias {
		n += rows * (c.OutputWidth()*operand.Size() + floatSize)
	}
	return n
}

// NewScorer allocates room for the scores of rows rows at a time, with at most most tokens each.
func NewScorer(be kernels.Backend, c Config, rows, most int) (*Scorer, error) {
	x := &Scorer{be: be, rows: rows, most: max(1, most)}
	var err error
	alloc := func(t kernels.DType, n int) kernels.Buffer {
		b, e := be.Alloc(t, n)
		if e != nil && err == nil {
			err = &kernels.RoomError{Part: kernels.StepRoom, Err: e}
		}
		x.owned = append(x.owned, b)
		return b
	}
	x.h = alloc(be.Operand(), rows*c.Width)
	x.index, x.target, x.top = alloc(kernels.I32, rows), alloc(kernels.I32, rows), alloc(kernels.I32, rows*x.most)
	x.scores = kernels.Scores{LogProb: alloc(be.Float(), rows*x.most), Entropy: alloc(be.Float(), rows),
		LSE: alloc(be.Float(), rows)}
	x.output.alloc(c, rows, false, func(n int) kernels.Buffer { return alloc(be.Float(), n) },
		func(n int) kernels.Buffer { return alloc(be.Operand(), n) })
	if err != nil {
		x.Close()
		return nil, err
	}
	x.output.fill(be)
	return x, nil
}

// Close frees the buffers.
func (x *Scorer) Close() {
	for _, b := range x.owned {
		x.be.Free(b)
	}
	x.owned = nil
}

// ScoreRows computes the log-probs of targets [R] after rows [R] of the decoder's last Step, and the K most
// probable tokens there, K at most the scorer's. The slices of out must have the lengths that it names.
func (m *Model) ScoreRows(d *Decoder, x *Scorer, rows, targets []int32, K int, out Scored) {
	C, s := m.Config.Width, m.Config.softmax(1)
	for lo := 0; lo < len(rows); lo += x.rows {
		hi := min(lo+x.rows, len(rows))
		n := hi - lo
		h, index, target := x.h.Slice(0, n*C), x.index.Slice(0, n), x.target.Slice(0, n)
		x.be.Copy(index, kernels.Host(rows[lo:hi]))
		x.be.Copy(target, kernels.Host(targets[lo:hi]))
		x.be.GatherRows(h, d.last, index, C)
		h = m.outputRows(h, x.output)
		sc := kernels.Scores{LogProb: x.scores.LogProb.Slice(0, n), Entropy: x.scores.Entropy.Slice(0, n),
			LSE: x.scores.LSE.Slice(0, n)}
		x.be.LogProb(sc, h, m.output.w, target, s)
		x.be.Copy(kernels.Host(out.LogProb[lo:hi]), sc.LogProb)
		if K > 0 {
			sc.LogProb = x.scores.LogProb.Slice(0, n*K)
			top := x.top.Slice(0, n*K)
			x.be.TopTokens(top, sc, h, m.output.w, s)
			x.be.Copy(kernels.Host(out.Top[lo*K:hi*K]), top)
			x.be.Copy(kernels.Host(out.TopProb[lo*K:hi*K]), sc.LogProb)
		}
		x.be.Sync()
	}
}
