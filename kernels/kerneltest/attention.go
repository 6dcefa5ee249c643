package kerneltest

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"exp/kernels"
)

func attentionChecks() []check {
	return append(aheadChecks(), []check{
		{"Attention/shapes", on(packedBatches, checkAttentionShapes)},
		{"Attention/sequences", on(packedBatches, checkAttentionSequences)},
		{"Attention/infinite", on(packedBatches, checkAttentionInfinite)},
		{"Attention/tiny", on(packedBatches, checkAttentionTiny)},
		{"AttentionBackward", on(packedBatches, checkAttentionBackward)},
		{"FullAttention/shapes", on(fullBatches, checkAttentionShapes)},
		{"FullAttention/sequences", on(fullBatches, checkAttentionSequences)},
		{"FullAttention/infinite", on(fullBatches, checkAttentionInfinite)},
		{"FullAttention/tiny", on(fullBatches, checkAttentionTiny)},
		{"FullAttention/backward", on(fullBatches, checkAttentionBackward)},
		{"FullAttention/pages", checkFullPages},
		{"AppendKV", checkAppendKV},
		{"CopyPages", checkCopyPages},
		{"PagedAttention/rows", checkPagedAttentionRows},
		{"PagedAttention/window", checkPagedAttentionWindow},
		{"PagedAttention/prefill", checkPrefill},
	}...)
}

// batches lists batches, only small ones if short.
type batches func(short bool) []packed

// on is check f on some batches.
func on(of batches, f func(s *subject, of batches) error) func(s *subject) error {
	return func(s *subject) error { return f(s, of) }
}

// packed is a batch of packed sequences; groups are as Attention takes them.
type packed struct {
	shape   kernels.AttentionShape
	lengths []int
	groups  []int32
}

// packedBatches are batches of sequences of every length around the lanes and
// the pages, with heads of several sizes, shared and not, with windows and caps and without.
func packedBatches(short bool) []packed { return append(plainBatches(short), windowBatches(short)...) }

// plainBatches see all that is before them.
func plainBatches(short bool) []packed {
	list := []packed{
		{kernels.AttentionShape{H: 1, K: 1, D: 1}, []int{1}, nil},
		{kernels.AttentionShape{H: 1, K: 1, D: 2}, []int{1, 2, 3, 5, 7, 8, 9}, nil},
		{kernels.AttentionShape{H: 3, K: 1, D: 5}, []int{15, 1, 16, 17, 0, 31}, nil},
		{kernels.AttentionShape{H: 4, K: 2, D: 16}, []int{33, 1, 61}, nil},
		{kernels.AttentionShape{H: 2, K: 2, D: 33}, []int{17, 32}, nil},
		{kernels.AttentionShape{H: 6, K: 2, D: 8}, []int{65, 13}, nil},
		{kernels.AttentionShape{H: 4, K: 2, D: 64}, []int{14, 18}, nil},
		{kernels.AttentionShape{H: 2, K: 1, D: 5}, []int{5, 3, 0, 1, 0, 4, 2, 7}, []int32{0, 4, 6, 7, 8}},
		{kernels.AttentionShape{H: 4, K: 2, D: 16}, []int{16, 1, 16, 9, 32, 32, 1}, []int32{0, 4, 7}},
		{kernels.AttentionShape{H: 3, K: 1, D: 33}, []int{37, 20, 11, 31}, []int32{0, 4}},
	}
	if !short {
		list = append(list,
			packed{kernels.AttentionShape{H: 2, K: 1, D: 32}, []int{130, 67}, nil},
			packed{kernels.AttentionShape{H: 2, K: 1, D: 16}, []int{75, 130, 21, 99, 40, 200}, []int32{0, 4, 6}})
	}
	return scaledScores(list)
}

// windowBatches have windows of 1, around the lanes, around blocks of queries and of keys, and
// longer than the sequences, which reach the prefixes of groups and do not; caps; and both.
func windowBatches(short bool) []packed {
	list := []packed{
		{kernels.AttentionShape{H: 2, K: 1, D: 1, Window: 1}, []int{1, 2, 5, 17}, nil},
		{kernels.AttentionShape{H: 1, K: 1, D: 1, Window: 3, Cap: 1}, []int{9, 40}, nil},
		{kernels.AttentionShape{H: 1, K: 1, D: 2, Cap: 5}, []int{1, 2, 3, 5, 7, 8, 9}, nil},
		{kernels.AttentionShape{H: 3, K: 1, D: 5, Window: 5}, []int{15, 1, 16, 17, 0, 31}, nil},
		{kernels.AttentionShape{H: 4, K: 2, D: 16, Cap: 0.7}, []int{33, 1, 61}, nil},
		{kernels.AttentionShape{H: 2, K: 2, D: 33, Window: 16, Cap: 20}, []int{17, 50}, nil},
		{kernels.AttentionShape{H: 6, K: 2, D: 8, Window: 33}, []int{65, 13}, nil},
		{kernels.AttentionShape{H: 4, K: 2, D: 64, Window: 14}, []int{47, 18}, nil},
		{kernels.AttentionShape{H: 2, K: 1, D: 4, Window: 100, Cap: 2}, []int{33, 20}, nil},
		{kernels.AttentionShape{H: 2, K: 1, D: 5, Window: 3}, []int{5, 3, 0, 1, 0, 4, 2, 7}, []int32{0, 4, 6, 7, 8}},
		{kernels.AttentionShape{H: 4, K: 2, D: 16, Window: 17, Cap: 3}, []int{16, 1, 16, 9, 32, 32, 1},
			[]int32{0, 4, 7}},
		{kernels.AttentionShape{H: 2, K: 1, D: 3, Window: 31}, []int{75, 5, 40}, []int32{0, 3}},
	}
	if !short {
		list = append(list,
			packed{kernels.AttentionShape{H: 1, K: 1, D: 20, Window: 32}, []int{140}, nil},
			packed{kernels.AttentionShape{H: 2, K: 1, D: 32, Window: 64, Cap: 4}, []int{130, 67}, nil},
			packed{kernels.AttentionShape{H: 1, K: 1, D: 16, Window: 96}, []int{230}, nil},
			packed{kernels.AttentionShape{H: 3, K: 1, D: 33, Window: 40, Cap: 50}, []int{37, 20, 11, 131},
				[]int32{0, 4}},
			packed{kernels.AttentionShape{H: 2, K: 1, D: 16, Window: 97}, []int{75, 130, 21, 99, 40, 200},
				[]int32{0, 4, 6}},
			packed{kernels.AttentionShape{H: 2, K: 1, D: 8, Window: 7}, []int{150, 3, 60}, []int32{0, 3}})
	}
	return scaledScores(list)
}

// fullBatches have rows that see those behind them too, with heads of vision towers' sizes, and sequences that end
// around the lanes, and around blocks of queries and of keys.
func fullBatches(short bool) []packed {
	list := []packed{
		{kernels.AttentionShape{H: 1, K: 1, D: 1, Full: true}, []int{1}, nil},
		{kernels.AttentionShape{H: 1, K: 1, D: 2, Full: true}, []int{1, 2, 3, 5, 7, 8, 9}, nil},
		{kernels.AttentionShape{H: 3, K: 1, D: 5, Full: true}, []int{15, 1, 16, 17, 0, 31}, nil},
		{kernels.AttentionShape{H: 2, K: 2, D: 16, Full: true}, []int{33, 1, 64}, nil},
		{kernels.AttentionShape{H: 1, K: 1, D: 33, Full: true, Cap: 20}, []int{32, 50}, nil},
		{kernels.AttentionShape{H: 2, K: 2, D: 72, Full: true}, []int{17, 33}, nil},
		{kernels.AttentionShape{H: 1, K: 1, D: 80, Full: true}, []int{65}, nil},
	}
	if !short {
		list = append(list, packed{kernels.AttentionShape{H: 1, K: 1, D: 24, Full: true, Cap: 4}, []int{97, 161}, nil})
	}
	return scaledScores(list)
}

// scaledScores sets the scale of each batch.
func scaledScores(list []packed) []packed {
	for i := range list {
		list[i].shape.Scale = 1 / math.Sqrt(float64(list[i].shape.D))
	}
	return list
}

func (p packed) String() string {
	name := fmt.Sprintf("H=%d K=%d D=%d lengths %v", p.shape.H, p.shape.K, p.shape.D, p.lengths)
	if p.groups != nil {
		name += fmt.Sprintf(" groups %v", p.groups)
	}
	if p.shape.Window > 0 {
		name += fmt.Sprintf(" window %d", p.shape.Window)
	}
	if p.shape.Full {
		name += " full"
	}
	if !p.shape.Ahead.Empty() {
		name += fmt.Sprintf(" ahead %v", kernels.Elems[int32](p.shape.Ahead))
	}
	if p.shape.Cap > 0 {
		name += fmt.Sprintf(" cap %v", p.shape.Cap)
	}
	return name
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

// sequence returns the rows of sequence j, its prefix's first, and how many
// these are.
func (p packed) sequence(j int) (rows []int, prefix int) {
	off := p.offsets()
	for g := 1; g < len(p.groups); g++ {
		if first := int(p.groups[g-1]); first < j && j < int(p.groups[g]) {
			rows = upTo(int(off[first+1]))[off[first]:]
		}
	}
	prefix = len(rows)
	return append(rows[:prefix:prefix], upTo(int(off[j+1]))[off[j]:]...), prefix
}

// qkv returns rows whose scores are of order 3.
func (p packed) qkv() []float32 {
	return newStream("qkv"+p.String()).scaled(p.rows()*p.shape.Stride(), 1.7)
}

func (p packed) groupsOf(c *call) kernels.Buffer {
	if p.groups == nil {
		return kernels.Buffer{}
	}
	return c.ints("groups", p.groups)
}

func (p packed) attend(c *call, qkv []float32) {
	M, a := p.rows(), p.shapeOn(c)
	c.b.Attention(c.outOperands("out", M*a.H*a.D), c.out("stats", M*a.H*2), c.operands("qkv", qkv),
		c.ints("offsets", p.offsets()), p.groupsOf(c), a)
}

func checkAttentionShapes(s *subject, of batches) error {
	for _, p := range of(s.short) {
		qkv := p.qkv()
		if err := s.compare("Attention", func(c *call) { p.attend(c, qkv) }); err != nil {
			return fmt.Errorf("%v: %w", p, err)
		}
	}
	return nil
}

// checkAttentionSequences checks that a sequence alone gives what it gives in a
// batch and after a prefix, and that NaN in a row reaches neither earlier rows, unless
// they see it, nor other sequences.
func checkAttentionSequences(s *subject, of batches) error {
	for _, p := range of(true) {
		qkv := p.qkv()
		all, err := run(s.b, func(c *call) { p.attend(c, qkv) })
		if err != nil {
			return err
		}
		stride := p.shape.Stride()
		for j, n := range p.lengths {
			if n == 0 {
				continue
			}
			rows, prefix := p.sequence(j)
			one := packed{shape: p.shape, lengths: []int{len(rows)}}
			one.shape.Ahead = p.aheadOf(rows)
			var x []float32
			for _, m := range rows {
				x = append(x, qkv[m*stride:(m+1)*stride]...)
			}
			alone, err := run(s.b, func(c *call) { one.attend(c, x) })
			if err != nil {
				return err
			}
			if err := same(rowsOf(alone, len(rows), upTo(len(rows))[prefix:]), rowsOf(all, p.rows(), rows[prefix:]),
				exactly); err != nil {
				return fmt.Errorf("%v: sequence %d alone: %w", p, j, err)
			}
			if err := s.checkCausal(p, qkv, all, j, n/2); err != nil {
				return fmt.Errorf("%v: NaN in row %d of sequence %d: %w", p, n/2, j, err)
			}
		}
	}
	return nil
}

// checkCausal poisons an own row of sequence j; clean is the result without.
func (s *subject) checkCausal(p packed, qkv []float32, clean []result, j, own int) error {
	stride := p.shape.Stride()
	rows, prefix := p.sequence(j)
	bad := rows[prefix+own]
	x := append([]float32(nil), qkv...)
	copy(x[bad*stride:(bad+1)*stride], nans(stride))
	got, err := run(s.b, func(c *call) { p.attend(c, x) })
	if err != nil {
		return err
	}
	others := p.notSeeing(bad)
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

// notSeeing returns the rows that do not attend to row m.
func (p packed) notSeeing(m int) []int {
	var list []int
	for j := range p.lengths {
		rows, prefix := p.sequence(j)
		at := slices.Index(rows, m)
		for n := prefix; n < len(rows); n++ {
			if at < 0 || n+p.ahead(rows[n]) < at && !p.shape.Full || p.shape.Window > 0 && n-at >= p.shape.Window {
				list = append(list, rows[n])
			}
		}
	}
	return list
}

// unseenBy returns the rows that row m, the own row of its sequence, does not see.
func (p packed) unseenBy(m int) []int {
	var list []int
	for r := range p.rows() {
		if slices.Contains(p.notSeeing(r), m) {
			list = append(list, r)
		}
	}
	return list
}

// checkAttentionInfinite compares both passes with an infinite value in an own row of
// each sequence in turn: fast code may take such a sequence another way, and must
// take the others of its group up where it left them.
func checkAttentionInfinite(s *subject, of batches) error {
	for _, p := range of(true) {
		M, a := p.rows(), p.shape
		for j, n := range p.lengths {
			if n == 0 {
				continue
			}
			rows, prefix := p.sequence(j)
			bad := rows[prefix+n/2]
			qkv, dout := p.qkv(), newStream("dout"+p.String()).floats(M*a.H*a.D)
			qkv[(bad+1)*a.Stride()-1] = float32(math.Inf(1))
			if err := s.compare("Attention", func(c *call) { p.attend(c, qkv) }); err != nil {
				return fmt.Errorf("%v: Inf in a value of sequence %d: %w", p, j, err)
			}
			qkv = p.qkv()
			fwd, err := s.reference(func(c *call) { p.attend(c, qkv) })
			if err != nil {
				return err
			}
			dout[bad*a.H*a.D] = float32(math.Inf(-1))
			if err := s.compare("AttentionBackward", func(c *call) { p.back(c, qkv, dout, fwd) }); err != nil {
				return fmt.Errorf("%v: Inf in a gradient of sequence %d: %w", p, j, err)
			}
		}
	}
	return nil
}

// checkAttentionTiny compares both passes where sums are so small that a class may
// flush them: a zero must keep its sign.
func checkAttentionTiny(s *subject, of batches) error {
	const tiny = 0x1p-126
	for _, p := range of(true) {
		M, a := p.rows(), p.shape
		qkv, dout := p.qkv(), newStream("dout"+p.String()).floats(M*a.H*a.D)
		fwd, err := s.reference(func(c *call) { p.attend(c, qkv) })
		if err != nil {
			return err
		}
		for i := range dout {
			dout[i] *= tiny
		}
		if err := s.compare("AttentionBackward", func(c *call) { p.back(c, qkv, dout, fwd) }); err != nil {
			return fmt.Errorf("%v: tiny gradients: %w", p, err)
		}
		for m := range M {
			for i := (a.H + a.K) * a.D; i < a.Stride(); i++ {
				qkv[m*a.Stride()+i] *= tiny
			}
		}
		if err := s.compare("Attention", func(c *call) { p.attend(c, qkv) }); err != nil {
			return fmt.Errorf("%v: tiny values: %w", p, err)
		}
	}
	return nil
}

// back is the backward pass; fwd is the output of the forward pass.
func (p packed) back(c *call, qkv, dout []float32, fwd []result) {
	c.b.AttentionBackward(c.outOperands("dqkv", len(qkv)), c.operands("dout", dout), c.operands("out", fwd[0].f),
		c.floats("stats", fwd[1].f), c.operands("qkv", qkv), c.ints("offsets", p.offsets()), p.groupsOf(c),
		p.shapeOn(c))
}

func checkAttentionBackward(s *subject, of batches) error {
	for _, p := range of(s.short) {
		M, a := p.rows(), p.shape
		qkv := p.qkv()
		// The forward pass of the reference, so that errors do not add up.
		fwd, err := s.reference(func(c *call) { p.attend(c, qkv) })
		if err != nil {
			return err
		}
		dout := newStream("dout" + p.String()).floats(M * a.H * a.D)
		if err := s.compare("AttentionBackward", func(c *call) { p.back(c, qkv, dout, fwd) }); err != nil {
			return fmt.Errorf("%v: %w", p, err)
		}
		if err := s.checkBackwardApart(p, dout, fwd, qkv); err != nil {
			return fmt.Errorf("%v: %w", p, err)
		}
		if err := s.checkBackwardWindow(p, dout, fwd, qkv); err != nil {
			return fmt.Errorf("%v: %w", p, err)
		}
	}
	return nil
}

// checkBackwardWindow checks, with a window or if rows see those behind them, that NaN in a row reach only the
// gradients of rows that see it or that it sees.
func (s *subject) checkBackwardWindow(p packed, dout []float32, fwd []result, qkv []float32) error {
	if p.shape.Window == 0 && !p.shape.Full && p.shape.Ahead.Empty() {
		return nil
	}
	clean, err := run(s.b, func(c *call) { p.back(c, qkv, dout, fwd) })
	if err != nil {
		return err
	}
	M, stride, w := p.rows(), p.shape.Stride(), p.shape.H*p.shape.D
	for _, m := range []int{0, M / 2, M - 1} {
		x, d := slices.Clone(qkv), slices.Clone(dout)
		copy(x[m*stride:(m+1)*stride], nans(stride))
		copy(d[m*w:(m+1)*w], nans(w))
		got, err := run(s.b, func(c *call) { p.back(c, x, d, fwd) })
		if err != nil {
			return err
		}
		unseen := p.unseenBy(m)
		others := slices.DeleteFunc(p.notSeeing(m), func(r int) bool { return !slices.Contains(unseen, r) })
		if err := same(rowsOf(got, M, others), rowsOf(clean, M, others), exactly); err != nil {
			return fmt.Errorf("NaN in row %d: %w", m, err)
		}
	}
	return nil
}

// checkBackwardApart checks that the gradient of the first sequence, or group, does
// not see the others, by NaN in them.
func (s *subject) checkBackwardApart(p packed, dout []float32, fwd []result, qkv []float32) error {
	a, n := p.shape, p.lengths[0]
	if p.groups != nil {
		n = int(p.offsets()[p.groups[1]])
	}
	backward := func(x []float32) ([]result, error) {
		return run(s.b, func(c *call) { p.back(c, x, dout, fwd) })
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

// checkFullPages checks that rows which see all of their sequence have the results and stats of rows at its last
// position in pages.
func checkFullPages(s *subject) error {
	for i, p := range fullBatches(true) {
		full, err := run(s.b, func(c *call) { p.attend(c, p.qkv()) })
		if err != nil {
			return err
		}
		k, M := newCache(p, pageSizes()[i%len(pageSizes())]), p.rows()
		for m, j := range k.seq {
			k.pos[m] = int32(p.lengths[j] - 1)
		}
		paged, err := run(s.b, func(c *call) { k.decode(c, M) })
		if err != nil {
			return err
		}
		if err := same(full, paged[:2], exactly); err != nil {
			return fmt.Errorf("%v is not PagedAttention at the last position: %w", k, err)
		}
	}
	return nil
}
