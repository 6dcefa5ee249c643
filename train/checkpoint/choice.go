package checkpoint

import (
	"errors"
	"fmt"

	"exp/kernels"
	"exp/train/model"
)

// LoadChoice loads a frozen language model from a folder as one that scores: its value at a token is
//
//	z[right] - z[wrong],    z the logits of the next token,
//
// the logit of the probability of right among the two: 1/(1+e^-value) is what a softmax over both gives right. The
// value head is the difference of two rows of the output projection. Process reward models that were trained to write
// + or - behind a step are read so (arXiv:2312.08935). It holds weights as a Backbone does. Close it afterwards.
func LoadChoice(be kernels.Backend, dir string, right, wrong int32) (*model.Model, error) {
	c, err := ReadConfig(dir)
	if err != nil {
		return nil, err
	}
	if err := CheckChoice(c, right, wrong); err != nil {
		return nil, &Error{Op: "read", Path: dir, Err: err}
	}
	t, err := OpenFolder(dir)
	if err != nil {
		return nil, err
	}
	m, err := loadChoice(be, c, t, right, wrong)
	if err := errors.Join(err, t.Close()); err != nil {
		if m != nil {
			m.Close()
		}
		return nil, err
	}
	return m, nil
}

// CheckChoice says why LoadChoice cannot read tokens of a model; nil if it can.
func CheckChoice(c model.Config, right, wrong int32) error {
	switch {
	case c.LogitCap > 0 || c.OutputBias:
		return errors.New("its logits are capped, or have a bias: the probabilities of two tokens do not follow " +
			"from the difference of two rows of its output projection, which is how tokens are read")
	case right < 0 || wrong < 0 || int(max(right, wrong)) >= c.Vocab:
		return fmt.Errorf("it has %d tokens, so not both %d and %d", c.Vocab, right, wrong)
	}
	return nil
}

func loadChoice(be kernels.Backend, c model.Config, t *Tensors, right, wrong int32) (*model.Model, error) {
	if err := t.fits(c, true); err != nil {
		return nil, errors.Join(t.foreignNames(), err)
	}
	if err := t.consistent(c); err != nil {
		return nil, err
	}
	name := lmHead
	if c.TieEmbeddings {
		name = embedding
	}
	head, err := t.difference(name, c.Width, right, wrong)
	if err != nil {
		return nil, err
	}
	m, err := scoring(be, c, t, model.Heads{Value: true})
	if err != nil {
		return nil, err
	}
	for i := range head {
		head[i] = float32(float64(head[i]) / c.DividesLogits())
	}
	be.Copy(m.View(scoreWeight), kernels.Host(head))
	be.Sync()
	m.Refresh()
	return m, nil
}

// difference returns row a less row b of a matrix whose rows have C elements.
func (t *Tensors) difference(name string, C int, a, b int32) ([]float32, error) {
	p := t.mustFit(name, kernels.F32)
	var jobs []job
	for _, row := range []int32{a, b} {
		jobs = append(jobs, job{place: p, as: kernels.F32, from: int(row) * C, n: C})
	}
	r := readAhead(jobs)
	defer r.stop()
	rows := make([]float32, 2*C)
	for i := range jobs {
		piece, err := r.take()
		if err != nil {
			return nil, err
		}
		copy(rows[i*C:], kernels.Elems[float32](piece))
	}
	out := rows[:C]
	for i := range out {
		out[i] -= rows[C+i]
	}
	return out, nil
}
