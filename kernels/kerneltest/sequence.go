package kerneltest

import (
	"fmt"

	"exp/kernels"
)

func sequenceChecks() []check {
	return []check{
		{"Rope", checkRope},
		{"GatherRows", checkGatherRows},
		{"ScatterRows", checkScatterRows},
		{"SegmentMean", func(s *subject) error { return s.checkSegmentMean((*call).operands) }},
		{"SegmentMean/floats", func(s *subject) error { return s.checkSegmentMean((*call).floats) }},
		{"SegmentMeanBackward", checkSegmentMeanBackward},
	}
}

// namedHeads returns the text by which a shape names its data, which must not change.
func namedHeads(a kernels.AttentionShape) any {
	return struct {
		H, K, D     int
		Scale       float64
		Window      int
		Cap         float64
		Rotary      int
		Interleaved bool
	}{a.H, a.K, a.D, a.Scale, a.Window, a.Cap, a.Rotary, a.Interleaved}
}

func checkRope(s *subject) error {
	const M, positions = 13, 50
	for _, a := range []kernels.AttentionShape{
		{H: 1, K: 1, D: 2}, {H: 3, K: 1, D: 6}, {H: 4, K: 2, D: 16}, {H: 2, K: 2, D: 34}, {H: 8, K: 2, D: 64},
		{H: 1, K: 1, D: 128},
		{H: 3, K: 1, D: 6, Rotary: 2}, {H: 1, K: 1, D: 5, Rotary: 4}, {H: 4, K: 2, D: 16, Rotary: 16},
		{H: 2, K: 2, D: 80, Rotary: 34}, {H: 8, K: 2, D: 64, Rotary: 16},
		{H: 3, K: 1, D: 6, Interleaved: true}, {H: 4, K: 2, D: 16, Interleaved: true},
		{H: 1, K: 1, D: 5, Rotary: 4, Interleaved: true}, {H: 2, K: 2, D: 80, Rotary: 34, Interleaved: true},
		{H: 2, K: 1, D: 128, Rotary: 64, Interleaved: true},
	} {
		for _, inverse := range []bool{false, true} {
			r := newStream(fmt.Sprint("rope", namedHeads(a)))
			// Any two numbers will do for a cosine and a sine.
			cos, sin := r.floats(positions*a.Rotated()/2), r.floats(positions*a.Rotated()/2)
			err := s.checkRows(rowCase{
				name: fmt.Sprintf("Rope %+v inverse %v", namedHeads(a), inverse), op: "Rope",
				rows: []field{{name: "qkv", width: a.Stride(), f: r.floats(M * a.Stride()), inout: true,
					operand: true},
					{name: "pos", width: 1, i: r.ids(M, positions)}},
				run: func(c *call, in []kernels.Buffer, M int) {
					c.b.Rope(in[0], c.floats("cos", cos), c.floats("sin", sin), in[1], a, inverse)
				},
			}, M)
			if err != nil {
				return err
			}
		}
	}
	return nil
}

func checkGatherRows(s *subject) error {
	const M, R = 29, 17
	for _, C := range sizes() {
		r := newStream(fmt.Sprint("gather", C))
		x, rows := r.floats(M*C), r.ids(R, M)
		for _, operands := range []bool{true, false} {
			err := s.checkRows(rowCase{
				name: fmt.Sprintf("GatherRows C=%d operands %v", C, operands), op: "GatherRows",
				rows: []field{{name: "rows", width: 1, i: rows}},
				run: func(c *call, in []kernels.Buffer, R int) {
					if operands {
						c.b.GatherRows(c.outOperands("out", R*C), c.operands("x", x), in[0], C)
					} else {
						c.b.GatherRows(c.out("out", R*C), c.floats("x", x), in[0], C)
					}
				},
			}, R)
			if err != nil {
				return err
			}
		}
	}
	return nil
}

func checkScatterRows(s *subject) error {
	const M = 29
	for _, C := range sizes() {
		for _, R := range []int{0, 1, 17, M} {
			r := newStream(fmt.Sprint("scatter", C, R))
			dout, rows := r.floats(R*C), make([]int32, R)
			for i, m := range r.permutation(M)[:R] {
				rows[i] = int32(m)
			}
			scatter := func(rows []int32) func(c *call) {
				return func(c *call) {
					c.b.ScatterRows(c.out("dx", M*C), c.floats("dout", dout), c.ints("rows", rows), C)
				}
			}
			// Of distinct rows nothing is computed: any backend moves them exactly.
			if err := s.compare("GatherRows", scatter(rows)); err != nil {
				return fmt.Errorf("C=%d, %d of %d rows: %w", C, R, M, err)
			}
			if err := s.compare("ScatterRows", scatter(r.ids(R, M))); err != nil {
				return fmt.Errorf("C=%d, %d times one of %d rows: %w", C, R, M, err)
			}
		}
	}
	return nil
}

// segments are row ranges of M rows: some empty, some overlapping, one of all.
func (r *stream) segments(n, M int) []int32 {
	x := []int32{0, int32(M), 3, 3}
	for len(x) < 2*n {
		lo := r.intn(M)
		x = append(x, int32(lo), int32(lo+r.intn(M-lo+1)))
	}
	return x
}

// checkSegmentMean checks means of rows that a call has as of makes them.
func (s *subject) checkSegmentMean(of func(c *call, name string, x []float32) kernels.Buffer) error {
	const M, S = 41, 11
	for _, C := range append(sizes(), 300) {
		r := newStream(fmt.Sprint("segments", C))
		x := r.floats(M * C)
		err := s.checkRows(rowCase{
			name: fmt.Sprintf("SegmentMean C=%d", C), op: "SegmentMean",
			rows: []field{{name: "segments", width: 2, i: r.segments(S, M)}},
			run: func(c *call, in []kernels.Buffer, S int) {
				c.b.SegmentMean(c.out("out", S*C), of(c, "x", x), in[0], C)
			},
		}, S)
		if err != nil {
			return err
		}
	}
	return nil
}

func checkSegmentMeanBackward(s *subject) error {
	const M, S = 41, 11
	for _, C := range append(sizes(), 300) {
		r := newStream(fmt.Sprint("segments backward", C))
		dx0, dout, segments := r.floats(M*C), r.floats(S*C), r.segments(S, M)
		err := s.compare("SegmentMeanBackward", func(c *call) {
			c.b.SegmentMeanBackward(c.inout("dx", dx0), c.floats("dout", dout), c.ints("segments", segments), C)
		})
		if err != nil {
			return fmt.Errorf("C=%d: %w", C, err)
		}
	}
	return nil
}
