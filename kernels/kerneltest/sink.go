package kerneltest

import (
	"fmt"

	"exp/kernels"
)

func sinkChecks() []check {
	return []check{
		{"Sink", checkSink},
		{"SinkBackward", checkSinkBackward},
	}
}

// sinkCase is rows of attention, their sums, and scores of sinks: some far above the others, some far below.
type sinkCase struct {
	kernels.AttentionShape
	att, dout, stats, sinks []float32
}

func sinkCases(M int) (list []sinkCase) {
	shapes := append(gatedShapes(), kernels.AttentionShape{H: 17, K: 1, D: 7},
		kernels.AttentionShape{H: 8, K: 1, D: 64})
	for _, a := range shapes {
		r := newStream(fmt.Sprint("sink", namedHeads(a)))
		k := sinkCase{AttentionShape: a, att: r.floats(M * a.H * a.D), dout: r.floats(M * a.H * a.D),
			stats: r.floats(M * a.H * 2), sinks: r.floats(a.H)}
		for i, inverse := range r.positive(M * a.H) {
			k.stats[2*i+1] = inverse
		}
		for h := range k.sinks {
			k.sinks[h] += []float32{0, 0, -150, 150, 80}[h%5]
		}
		list = append(list, k)
	}
	return list
}

func checkSink(s *subject) error {
	const M = 9
	for _, k := range sinkCases(M) {
		HD := k.H * k.D
		att := field{name: "att", width: HD, f: k.att, operand: true}
		over := att
		over.inout = true
		stats := field{name: "stats", width: k.H * 2, f: k.stats}
		for _, rc := range []rowCase{
			{rows: []field{att, stats}, run: func(c *call, in []kernels.Buffer, M int) {
				c.b.Sink(c.outOperands("out", M*HD), in[0], in[1], c.floats("sinks", k.sinks), k.AttentionShape)
			}},
			{rows: []field{over, stats}, run: func(c *call, in []kernels.Buffer, M int) {
				c.b.Sink(in[0], in[0], in[1], c.floats("sinks", k.sinks), k.AttentionShape)
			}},
		} {
			rc.op, rc.name = "Sink", fmt.Sprintf("Sink %+v", namedHeads(k.AttentionShape))
			if err := s.checkRows(rc, M); err != nil {
				return err
			}
		}
	}
	return nil
}

func checkSinkBackward(s *subject) error {
	const M = 19
	for _, k := range sinkCases(M) {
		r, HD := newStream(fmt.Sprint("sink backward", namedHeads(k.AttentionShape))), k.H*k.D
		dsinks := r.floats(k.H)
		for _, place := range []bool{false, true} {
			if err := s.checkGradient(gradientCase{
				name: fmt.Sprintf("SinkBackward %+v in place %v", namedHeads(k.AttentionShape), place),
				op:   "SinkBackward", blocks: r.cuts(M, 9),
				setup: func(c *call) func(lo, hi int, blocks []int32) {
					ds, out, st := c.inout("dsinks", dsinks), c.operands("out", k.att), c.floats("stats", k.stats)
					sinks, datt := c.floats("sinks", k.sinks), c.inoutOperands("datt", k.dout)
					do := datt
					if !place {
						do = c.operands("dout", k.dout)
					}
					return func(lo, hi int, blocks []int32) {
						rows := func(x kernels.Buffer, width int) kernels.Buffer {
							return x.Slice(lo*width, hi*width)
						}
						c.b.SinkBackward(rows(datt, HD), ds, rows(do, HD), rows(out, HD), rows(st, 2*k.H), sinks,
							c.ints("blocks", blocks), k.AttentionShape)
					}
				},
			}); err != nil {
				return err
			}
		}
	}
	return nil
}

// sinkBenchmarks measure sinks of gpt-oss's heads on rows of training.
func sinkBenchmarks() []benchmark {
	const M = 1024
	a := kernels.AttentionShape{H: 64, K: 8, D: 64}
	r, dims, n := benchStream("bench sinks"), dimsOf("M", M, "H", a.H, "D", a.D), M*a.H*a.D
	stats := func(c *call) kernels.Buffer { return c.floats("stats", r.positive(M*a.H*2)) }
	sinks := func(c *call) kernels.Buffer { return c.floats("sinks", r.floats(a.H)) }
	return []benchmark{
		{"Sink", dims, 0, 8 * n, func(c *call) func() {
			out, att, st, s := c.outOperands("out", n), c.operands("att", r.floats(n)), stats(c), sinks(c)
			return func() { c.b.Sink(out, att, st, s, a) }
		}},
		{"SinkBackward", dims, 0, 12 * n, func(c *call) func() {
			datt, ds, x := c.outOperands("datt", n), c.out("dsinks", a.H), c.operands("x", r.floats(n))
			st, s, blocks := stats(c), sinks(c), c.ints("blocks", even(M, 64))
			return func() { c.b.SinkBackward(datt, ds, x, x, st, s, blocks, a) }
		}},
	}
}
