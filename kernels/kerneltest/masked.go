package kerneltest

import (
	"fmt"
	"math"

	"exp/kernels"
)

// maskOf returns kernels.Sampling.Mask for R rows of V tokens: about one in three may be drawn, and token r%V of row
// r. Bits beyond V are set, which means nothing.
func maskOf(name string, R, V int) []int32 {
	r, W := newStream("mask of "+name), kernels.MaskWords(V)
	mask := make([]uint32, R*W)
	for row := range R {
		for v := range 32 * W {
			if v >= V || v == row%V || r.intn(3) == 0 {
				mask[row*W+v/32] |= 1 << (v % 32)
			}
		}
	}
	out := make([]int32, len(mask))
	for i, w := range mask {
		out[i] = int32(w)
	}
	return out
}

// allows reports whether the mask of a row has a token.
func allows(mask []int32, v int) bool { return uint32(mask[v/32])>>(v%32)&1 == 1 }

// checkSampleMasked compares draws among the tokens of a mask, also with adjustments, with the reference, and their
// scores with LogProb's.
func checkSampleMasked(s *subject) error {
	for _, o := range outputShapes(s.short) {
		h, w, _ := o.data()
		u := newStream(fmt.Sprint("u", o)).uniforms(o.R)
		K, W := min(o.V, 3), kernels.MaskWords(o.V)
		a, mask := adjustingOf(fmt.Sprint(o), o.R, K, o.V), maskOf(fmt.Sprint(o), o.R, o.V)
		for i, p := range settings(true) {
			adjusts := i%2 == 1
			rc := rowCase{
				name: fmt.Sprintf("Sample masked %v %+v %s", adjusts, o, nameOf(p)), op: "Sample", large: o.large(),
				rows: []field{{name: "h", width: o.C, f: h, operand: true},
					{name: "u", width: 1, f: u, finite: true}, {name: "mask", width: W, i: mask},
					{name: "ids", width: K, i: a.ids}, {name: "before", width: K, f: a.before, finite: true},
					{name: "factor", width: K, f: a.factor, finite: true},
					{name: "after", width: K, f: a.after, finite: true}},
				run: func(c *call, in []kernels.Buffer, R int) {
					p := p
					p.Mask = in[2]
					if adjusts {
						p.Adjust = kernels.Adjustments{IDs: in[3], Before: in[4], Factor: in[5], After: in[6]}
					}
					c.b.Sample(c.outInts("ids", R), scores(c, R), in[0], c.matrix("w", w, o.V, o.C), in[1], p)
				},
			}
			if err := s.checkSample(rc, o.R); err != nil {
				return err
			}
			if err := s.scoresAsLogProb(o, p, nil, mask); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkSampleUnmasked checks that a mask of all tokens leaves all bits.
func checkSampleUnmasked(s *subject) error {
	for _, o := range outputShapes(s.short) {
		h, w, _ := o.data()
		u := newStream(fmt.Sprint("u", o)).uniforms(o.R)
		all := make([]int32, o.R*kernels.MaskWords(o.V))
		for i := range all {
			all[i] = -1
		}
		for _, p := range settings(true) {
			sample := func(masked bool) func(c *call) {
				return func(c *call) {
					p := p
					if masked {
						p.Mask = c.ints("mask", all)
					}
					c.b.Sample(c.outInts("ids", o.R), scores(c, o.R), c.operands("h", h), c.matrix("w", w, o.V, o.C),
						c.floats("u", u), p)
				}
			}
			if err := s.identical(sample(true), sample(false)); err != nil {
				return fmt.Errorf("%+v %s: %w", o, nameOf(p), err)
			}
		}
	}
	return nil
}

// checkSampleMaskedTokens checks that tokens which the mask lacks are not drawn, that the draws among the others are
// those with the lacking ones forbidden one by one, and that token 0 is where all lack.
func checkSampleMaskedTokens(s *subject) error {
	const R, C = 12, 2
	for _, V := range []int{7, 1100} {
		r := newStream(fmt.Sprint("masked", V))
		h, w, u := r.floats(R*C), r.floats(V*C), r.uniforms(R)
		W := kernels.MaskWords(V)
		mask := maskOf(fmt.Sprint("tokens", V), R, V)
		for row := range R {
			if row%10 == 3 {
				clear(mask[row*W : (row+1)*W])
			}
		}
		a := adjusting{before: make([]float32, R*V), factor: make([]float32, R*V), after: make([]float32, R*V)}
		for i := range R * V {
			id := int32(i % V)
			if allows(mask[i/V*W:], i%V) {
				id = -1
			}
			a.ids, a.before[i], a.factor[i] = append(a.ids, id), float32(math.Inf(-1)), 1
		}
		for _, p := range settings(true) {
			sample := func(masked bool) func(c *call) {
				return func(c *call) {
					p := p
					if masked {
						p.Mask = c.ints("mask", mask)
					} else {
						p.Adjust = a.load(c)
					}
					c.b.Sample(c.outInts("ids", R), scores(c, R), c.operands("h", h), c.matrix("w", w, V, C),
						c.floats("u", u), p)
				}
			}
			if err := s.identical(sample(true), sample(false)); err != nil {
				return fmt.Errorf("V=%d %s: masked, and forbidden one by one: %w", V, nameOf(p), err)
			}
			got, err := run(s.b, sample(true))
			if err != nil {
				return err
			}
			for row, id := range got[0].i {
				if none := row%10 == 3; none && id != 0 || !none && !allows(mask[row*W:], int(id)) {
					return fmt.Errorf("V=%d %s: row %d drew token %d", V, nameOf(p), row, id)
				}
			}
		}
	}
	return nil
}
