package kerneltest

import (
	"errors"
	"fmt"
	"math"

	"exp/kernels"
)

func attentionChecks() []check {
	return []check{
		{"Attention/shapes", checkAttentionShapes},
		{"Attention/sequences", checkAttentionSequences},
		{"AttentionBackward", checkAttentionBackward},
		{"AppendKV", checkAppendKV},
		{"CopyPages", checkCopyPages},
		{"PagedAttention/rows", checkPagedAttentionRows},
		{"PagedAttention/prefill", checkPrefill},
	}
}

// packed is a batch of packed sequences.
type packed struct {
	shape   kernels.AttentionShape
	lengths []int
}

// packedBatches are batches of sequences of every length around the lanes and
// the pages, with heads of several sizes, shared and not.
func packedBatches(short bool) []packed {
	list := []packed{
		{kernels.AttentionShape{H: 1, K: 1, D: 1}, []int{1}},
		{kernels.AttentionShape{H: 1, K: 1, D: 2}, []int{1, 2, 3, 5, 7, 8, 9}},
		{kernels.AttentionShape{H: 3, K: 1, D: 5}, []int{15, 1, 16, 17, 0, 31}},
		{kernels.AttentionShape{H: 4, K: 2, D: 16}, []int{33, 1, 61}},
		{kernels.AttentionShape{H: 2, K: 2, D: 33}, []int{17, 32}},
		{kernels.AttentionShape{H: 6, K: 2, D: 8}, []int{65, 13}},
		{kernels.AttentionShape{H: 4, K: 2, D: 64}, []int{14, 18}},
	}
	if !short {
		list = append(list, packed{kernels.AttentionShape{H: 2, K: 1, D: 32}, []int{130, 67}})
	}
	for i := range list {
		list[i].shape.Scale = 1 / math.Sqrt(float64(list[i].shape.D))
	}
	return list
}

func (p packed) String() string {
	return fmt.Sprintf("H=%d K=%d D=%d lengths %v", p.shape.H, p.shape.K, p.shape.D, p.lengths)
}

func (p packed) rows() int {
	n := 0
	for _, l := range p.lengths {
		n += l
	}
	return n
}

func (p packed) offsets() []int32 {
	x := []int32{0}
	for _, l := range p.lengths {
		x = append(x, x[len(x)-1]+int32(l))
	}
	return x
}

// qkv returns rows whose scores are of order 3.
func (p packed) qkv() []float32 {
	return newStream("qkv"+p.String()).scaled(p.rows()*p.shape.Stride(), 1.7)
}

func (p packed) attend(c *call, qkv []float32) {
	M, a := p.rows(), p.shape
	c.b.Attention(c.outOperands("out", M*a.H*a.D), c.out("stats", M*a.H*2), c.operands("qkv", qkv), c.ints("offsets", p.offsets()), a)
}

func checkAttentionShapes(s *subject) error {
	for _, p := range packedBatches(s.short) {
		qkv := p.qkv()
		if err := s.compare("Attention", func(c *call) { p.attend(c, qkv) }); err != nil {
			return fmt.Errorf("%v: %w", p, err)
		}
	}
	return nil
}

// checkAttentionSequences checks that a sequence alone gives what it gives in a
// batch, and that NaN in a row reaches neither earlier rows nor other sequences.
func checkAttentionSequences(s *subject) error {
	for _, p := range packedBatches(true) {
		qkv := p.qkv()
		all, err := run(s.b, func(c *call) { p.attend(c, qkv) })
		if err != nil {
			return err
		}
		off, stride := p.offsets(), p.shape.Stride()
		for j, n := range p.lengths {
			if n == 0 {
				continue
			}
			lo, hi := int(off[j]), int(off[j+1])
			one := packed{p.shape, []int{n}}
			alone, err := run(s.b, func(c *call) { one.attend(c, qkv[lo*stride:hi*stride]) })
			if err != nil {
				return err
			}
			if err := same(alone, rowsOf(all, p.rows(), upTo(hi)[lo:]), exactly); err != nil {
				return fmt.Errorf("%v: sequence %d alone: %w", p, j, err)
			}
			if err := s.checkCausal(p, qkv, all, lo+n/2, hi); err != nil {
				return fmt.Errorf("%v: NaN in row %d: %w", p, lo+n/2, err)
			}
		}
	}
	return nil
}

// checkCausal poisons row bad of a sequence that ends at hi; clean is the result
// without.
func (s *subject) checkCausal(p packed, qkv []float32, clean []result, bad, hi int) error {
	stride := p.shape.Stride()
	x := append([]float32(nil), qkv...)
	copy(x[bad*stride:(bad+1)*stride], nans(stride))
	got, err := run(s.b, func(c *call) { p.attend(c, x) })
	if err != nil {
		return err
	}
	others := append(upTo(bad), upTo(p.rows())[hi:]...)
	if err := same(rowsOf(got, p.rows(), others), rowsOf(clean, p.rows(), others), exactly); err != nil {
		return err
	}
	for _, v := range rowsOf(got, p.rows(), []int{bad})[0].f {
		if v == v {
			return errors.New("the row itself is not NaN")
		}
	}
	return nil
}

func checkAttentionBackward(s *subject) error {
	for _, p := range packedBatches(s.short) {
		M, a := p.rows(), p.shape
		qkv := p.qkv()
		// The forward pass of the reference, so that errors do not add up.
		fwd, err := run(s.ref, func(c *call) { p.attend(c, qkv) })
		if err != nil {
			return err
		}
		dout := newStream("dout" + p.String()).floats(M * a.H * a.D)
		err = s.compare("AttentionBackward", func(c *call) {
			c.b.AttentionBackward(c.outOperands("dqkv", M*a.Stride()), c.operands("dout", dout), c.operands("out", fwd[0].f),
				c.floats("stats", fwd[1].f), c.operands("qkv", qkv), c.ints("offsets", p.offsets()), a)
		})
		if err != nil {
			return fmt.Errorf("%v: %w", p, err)
		}
		if err := s.checkBackwardApart(p, dout, fwd, qkv); err != nil {
			return fmt.Errorf("%v: %w", p, err)
		}
	}
	return nil
}

// checkBackwardApart checks that the gradient of the first sequence does not see
// the others, by NaN in them.
func (s *subject) checkBackwardApart(p packed, dout []float32, fwd []result, qkv []float32) error {
	a, n := p.shape, p.lengths[0]
	backward := func(x []float32) ([]result, error) {
		return run(s.b, func(c *call) {
			c.b.AttentionBackward(c.outOperands("dqkv", len(x)), c.operands("dout", dout), c.operands("out", fwd[0].f),
				c.floats("stats", fwd[1].f), c.operands("qkv", x), c.ints("offsets", p.offsets()), a)
		})
	}
	clean, err := backward(qkv)
	if err != nil {
		return err
	}
	x := append([]float32(nil), qkv...)
	copy(x[n*a.Stride():], nans(len(x)-n*a.Stride()))
	got, err := backward(x)
	if err != nil {
		return err
	}
	if err := same(rowsOf(got, p.rows(), upTo(n)), rowsOf(clean, p.rows(), upTo(n)), exactly); err != nil {
		return fmt.Errorf("NaN in later sequences: %w", err)
	}
	return nil
}
