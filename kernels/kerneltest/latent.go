package kerneltest

import (
	"fmt"

	"exp/kernels"
)

func latentChecks() []check {
	return []check{
		{"JoinLatent", checkLatent},
		{"TakeValues", checkValues},
	}
}

// latentShapes have heads without rotated channels, with nothing else, and values as wide as keys and narrower.
func latentShapes() []kernels.LatentShape {
	return []kernels.LatentShape{{H: 1, Nope: 1, Value: 1}, {H: 3, Rope: 2, Value: 2},
		{H: 2, Nope: 5, Rope: 6, Value: 7}, {H: 2, Nope: 5, Rope: 6, Value: 11, Interleaved: true},
		{H: 16, Nope: 16, Rope: 8, Value: 16, Interleaved: true},
		{H: 2, Nope: 128, Rope: 64, Value: 128, Interleaved: true}}
}

func checkLatent(s *subject) error {
	const M = 7
	for _, l := range latentShapes() {
		r, HD, parts := newStream(fmt.Sprint("latent", l)), l.H*l.D(), l.H*(l.Nope+l.Value)
		operand := func(name string, width int) field {
			return field{name: name, width: width, f: r.floats(M * width), operand: true}
		}
		rows := []field{operand("q", HD), operand("kv", parts)}
		if l.Rope > 0 {
			rows = append(rows, operand("rope", l.Rope))
		}
		rope := func(in []kernels.Buffer) kernels.Buffer {
			if l.Rope == 0 {
				return in[0].Slice(0, 0)
			}
			return in[2]
		}
		for _, rc := range []rowCase{
			{op: "JoinLatent", rows: rows, run: func(c *call, in []kernels.Buffer, M int) {
				c.b.JoinLatent(c.outOperands("qkv", 3*M*HD), in[0], in[1], rope(in), l)
			}},
			{op: "SplitLatent", rows: []field{operand("dqkv", 3*HD)}, run: func(c *call, in []kernels.Buffer, M int) {
				c.b.SplitLatent(c.outOperands("dq", M*HD), c.outOperands("dkv", M*parts),
					c.outOperands("drope", M*l.Rope), in[0], l)
			}},
		} {
			rc.name = fmt.Sprintf("%s %+v", rc.op, l)
			if err := s.checkRows(rc, M); err != nil {
				return err
			}
		}
	}
	return nil
}

func checkValues(s *subject) error {
	const M = 7
	for _, l := range latentShapes() {
		r, HD, values := newStream(fmt.Sprint("latent values", l)), l.H*l.D(), l.H*l.Value
		att := field{name: "att", width: HD, f: r.floats(M * HD), operand: true}
		out := field{name: "out", width: values, f: r.floats(M * values), operand: true}
		for _, rc := range []rowCase{
			{op: "TakeValues", rows: []field{att}, run: func(c *call, in []kernels.Buffer, M int) {
				c.b.TakeValues(c.outOperands("out", M*values), in[0], l)
			}},
			{op: "PutValues", rows: []field{out}, run: func(c *call, in []kernels.Buffer, M int) {
				c.b.PutValues(c.outOperands("att", M*HD), in[0], l)
			}},
		} {
			rc.name = fmt.Sprintf("%s %+v", rc.op, l)
			if err := s.checkRows(rc, M); err != nil {
				return err
			}
		}
	}
	return nil
}
