package kerneltest

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"exp/kernels"
)

func checkTopRows(s *subject) error { return s.checkTopTokens(kernels.Softmax{Temperature: 0.7}) }

func checkTopCapped(s *subject) error {
	if !s.exact {
		return nil // rounding decides which capped logits are equal
	}
	return s.checkTopTokens(kernels.Softmax{Temperature: 1, Cap: 2.3})
}

func (s *subject) checkTopTokens(x kernels.Softmax) error {
	for _, o := range outputShapes(s.short) {
		h, w, _ := o.data()
		for _, K := range slices.Compact([]int{1, min(5, o.V), min(o.V, kernels.MaxTopTokens)}) {
			rc := rowCase{
				name: fmt.Sprintf("TopTokens %+v %+v K=%d", o, x, K), op: "TopTokens", large: o.large() || K > 5,
				rows: []field{{name: "h", width: o.C, f: h, operand: true}},
				run: func(c *call, in []kernels.Buffer, R int) {
					c.b.TopTokens(c.outInts("ids", R*K), scoresOf(c, R, K), in[0], c.matrix("w", w, o.V, o.C), x)
				},
			}
			if err := s.checkRows(rc, o.R); err != nil {
				return err
			}
			if err := s.checkTop(rc, o, x, K); err != nil {
				return fmt.Errorf("%s: %w", rc.name, err)
			}
		}
	}
	return nil
}

// checkTop compares the tokens with a stable sort of the logits, and their scores with LogProb's.
func (s *subject) checkTop(rc rowCase, o outputShape, x kernels.Softmax, K int) error {
	h, w, _ := o.data()
	top, err := rc.compute(s.b, upTo(o.R))
	if err != nil {
		return err
	}
	ids := top[0].i
	both, err := run(s.b, func(c *call) {
		hb, m := c.operands("h", h), c.matrix("w", w, o.V, o.C)
		c.b.LogProb(scoresOf(c, o.R, K), hb, m, c.ints("targets", ids), x)
		c.b.Logits(c.out("logits", o.R*o.V), hb, m, x.Cap)
	})
	if err != nil {
		return err
	}
	if err := same(top[1:], both[:3], exactly); err != nil {
		return fmt.Errorf("not scored as LogProb does: %w", err)
	}
	it := float32(1 / x.Temperature)
	for r := range o.R {
		z := both[3].f[r*o.V : (r+1)*o.V]
		order := upTo(o.V)
		slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(z[b]*it, z[a]*it) })
		for k, id := range ids[r*K : (r+1)*K] {
			if int(id) != order[k] {
				return fmt.Errorf("row %d: token %d is %d, want %d", r, k, id, order[k])
			}
		}
	}
	return nil
}

// checkTopLong takes tokens from long rows whose last kept token lies among equal logits.
func checkTopLong(s *subject) error {
	if !s.exact {
		return nil // rounding decides which logits are equal
	}
	h, w, R := longRows()
	for _, K := range []int{1, 2, 31, 64, 700, 1000, kernels.MaxTopTokens} {
		top := func(c *call) {
			c.b.TopTokens(c.outInts("ids", R*K), scoresOf(c, R, K), c.operands("h", h),
				c.matrix("w", w, longSample, R), kernels.Softmax{Temperature: 1})
		}
		got, err := run(s.b, top)
		if err != nil {
			return err
		}
		for k, id := range got[0].i[:K] {
			if int(id) != k {
				return fmt.Errorf("K=%d: token %d of equal ones is %d", K, k, id)
			}
		}
		err = s.compare("TopTokens", top)
		if err != nil {
			return fmt.Errorf("long rows, K=%d: %w", K, err)
		}
	}
	if longSample <= kernels.MaxTopTokens {
		return errors.New("long rows are short")
	}
	return nil
}
