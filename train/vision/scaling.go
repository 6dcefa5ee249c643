package vision

import "exp/kernels"

// scaling multiplies the channels of rows by factors (LayerScale). Package kernels has no operation for that alone,
// but the backward pass of RMSNorm, with x = 0 and rstd = 1, sets dx to dout·weight with one rounding. The zero value
// is for towers without factors.
type scaling struct {
	step, channels int
	zeros, ones    kernels.Buffer // [step,C], [step]
	sums           kernels.Buffer // [C] the gradient of weight, which stays 0
	steps          [2]integers    // of a whole step and of the last one
}

// integers are an index or a table on the device, such as the offsets of rows that a gradient sums one after another.
type integers struct {
	host []int32
	dev  kernels.Buffer
}

// newBlocks returns the offsets of blocks of at most each of so many rows.
func newBlocks(rows, each int) (b integers) {
	for lo := 0; lo < rows; lo += each {
		b.host = append(b.host, int32(lo))
	}
	b.host = append(b.host, int32(rows))
	return b
}

// plan adds the memory of the integers.
func (b *integers) plan(r *rooms) { r.add(&b.dev, kernels.I32, len(b.host)) }

func (b *integers) load(be kernels.Backend) { be.Copy(b.dev, kernels.Host(b.host)) }

// blockRows is the rows of a block, few enough that a GPU sums many at once.
const blockRows = 64

// plan adds the memory for M rows, a step at a time.
func (s *scaling) plan(r *rooms, f kernels.DType, M, step, C int) {
	s.step, s.channels = step, C
	r.add(&s.zeros, f, step*C)
	r.add(&s.ones, f, step)
	r.add(&s.sums, f, C)
	for i, rows := range []int{step, M % step} {
		s.steps[i] = newBlocks(rows, blockRows)
		s.steps[i].plan(r)
	}
}

func (s *scaling) load(be kernels.Backend) {
	if s.step == 0 {
		return
	}
	ones := make([]float32, s.step)
	for i := range ones {
		ones[i] = 1
	}
	be.Zero(s.zeros)
	be.Zero(s.sums)
	be.Copy(s.ones, kernels.Host(ones))
	for i := range s.steps {
		s.steps[i].load(be)
	}
	be.Sync()
}

// scale multiplies rows of x [rows,C], the rows of a step, by factors [C]; none are empty.
func (s *scaling) scale(be kernels.Backend, x, factors kernels.Buffer) {
	if factors.Empty() {
		return
	}
	rows, b := x.Len()/s.channels, s.steps[0]
	if rows < s.step {
		b = s.steps[1]
	}
	be.RMSNormBackward(x, s.sums, x, s.zeros.Slice(0, x.Len()), factors, s.ones.Slice(0, rows), b.dev,
		kernels.NormShape{Heads: 1, Dim: s.channels, Stride: s.channels}, true)
}
