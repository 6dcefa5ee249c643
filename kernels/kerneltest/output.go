package kerneltest

import (
	"fmt"

	"exp/kernels"
)

func outputChecks() []check {
	return []check{
		{"LogProb", checkLogProb},
		{"Logits", checkLogits},
		{"LogProbBackward", checkLogProbBackward},
		{"TopTokens/rows", checkTopRows},
		{"TopTokens/capped", checkTopCapped},
		{"TopTokens/long", checkTopLong},
	}
}

// outputShape is an output layer: R rows of C on a vocabulary of V.
type outputShape struct{ R, C, V int }

// outputShapes take vocabularies around the lanes, the sampling block and the
// tiles, and one of several blocks.
func outputShapes(short bool) []outputShape {
	list := []outputShape{{1, 1, 1}, {3, 2, 2}, {5, 7, 15}, {14, 8, 16}, {7, 16, 17}, {33, 5, 31}, {6, 9, 33},
		{17, 31, 61},
		{9, 4, 255}, {8, 4, 256}, {15, 4, 257}, {3, 64, 600}}
	if short {
		return list
	}
	return append(list, outputShape{131, 20, 40}, outputShape{5, 64, 1000}, outputShape{3, 16, 8200})
}

// large reports whether the output layer costs more than the rest together.
func (o outputShape) large() bool { return o.R*o.C*o.V > 50000 }

// data returns rows, weights and targets whose logits are of order 3.
func (o outputShape) data() (h, w []float32, targets []int32) {
	r := newStream(fmt.Sprint("output", o))
	h, w = r.scaled(o.R*o.C, 2), r.floats(o.V*o.C)
	return h, w, r.ids(o.R, o.V)
}

func scores(c *call, R int) kernels.Scores { return scoresOf(c, R, 1) }

// scoresOf returns scores of R rows with K targets each.
func scoresOf(c *call, R, K int) kernels.Scores {
	return kernels.Scores{LogProb: c.out("logProb", R*K), Entropy: c.out("entropy", R), LSE: c.out("lse", R)}
}

// softmaxes are temperatures without a cap, with a cap that most logits reach, and with a
// cap that few reach.
func softmaxes() []kernels.Softmax {
	return []kernels.Softmax{{Temperature: 1}, {Temperature: 0.7}, {Temperature: 0.7, Cap: 2.3},
		{Temperature: 1, Cap: 30}}
}

// targetsOf returns K targets for each of o.R rows: from the second on, the first is repeated in some.
func (o outputShape) targetsOf(K int) []int32 {
	_, _, first := o.data()
	if K == 1 {
		return first
	}
	r := newStream(fmt.Sprint("targets", o, K))
	targets := r.ids(o.R*K, o.V)
	for i := range first {
		targets[i*K] = first[i]
		if i%2 == 1 {
			targets[i*K+K-1] = first[i]
		}
	}
	return targets
}

// targetCounts are the numbers of targets that a row is checked with.
func targetCounts(x kernels.Softmax) []int {
	if x.Temperature == 1 && x.Cap == 0 || x.Cap == 30 {
		return []int{1}
	}
	return []int{1, 3, 70}
}

func checkLogProb(s *subject) error {
	for _, o := range outputShapes(s.short) {
		h, w, _ := o.data()
		for _, x := range softmaxes() {
			for _, K := range targetCounts(x) {
				err := s.checkRows(rowCase{
					name: fmt.Sprintf("LogProb %+v %+v %d targets", o, x, K), op: "LogProb", large: o.large() || K > 3,
					rows: []field{{name: "h", width: o.C, f: h, operand: true},
						{name: "targets", width: K, i: o.targetsOf(K)}},
					run: func(c *call, in []kernels.Buffer, R int) {
						c.b.LogProb(scoresOf(c, R, K), in[0], c.matrix("w", w, o.V, o.C), in[1], x)
					},
				}, o.R)
				if err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func checkLogits(s *subject) error {
	for _, o := range outputShapes(s.short) {
		h, w, _ := o.data()
		for _, cap := range []float64{0, 2.3, 30} {
			err := s.checkRows(rowCase{
				name: fmt.Sprintf("Logits %+v cap %v", o, cap), op: "Logits", large: o.large(),
				rows: []field{{name: "h", width: o.C, f: h, operand: true}},
				run: func(c *call, in []kernels.Buffer, R int) {
					c.b.Logits(c.out("out", R*o.V), in[0], c.matrix("w", w, o.V, o.C), cap)
				},
			}, o.R)
			if err != nil {
				return err
			}
		}
	}
	return nil
}

func checkLogProbBackward(s *subject) error {
	for _, o := range outputShapes(s.short) {
		for _, x := range softmaxes() {
			for _, K := range targetCounts(x) {
				if err := s.checkLogProbBackward(o, x, K); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func (s *subject) checkLogProbBackward(o outputShape, x kernels.Softmax, K int) error {
	h, w, _ := o.data()
	targets := o.targetsOf(K)
	// The forward pass of the reference, so that errors do not add up.
	fwd, err := s.reference(func(c *call) {
		c.b.LogProb(scoresOf(c, o.R, K), c.operands("h", h), c.matrix("w", w, o.V, o.C), c.ints("targets", targets), x)
	})
	if err != nil {
		return err
	}
	targets = append([]int32{-1}, targets[1:]...)
	r := newStream(fmt.Sprint("output backward", o))
	dlp, dent, dw0 := r.scaled(o.R*K, 1/float32(K)), r.floats(o.R), r.floats(o.V*o.C)
	name := fmt.Sprintf("LogProbBackward %+v %+v %d targets", o, x, K)

	rc := rowCase{
		name: name, op: "LogProbBackward", large: o.large() || K > 3,
		rows: []field{{name: "h", width: o.C, f: h, operand: true}, {name: "targets", width: K, i: targets},
			{name: "dLogProb", width: K, f: dlp},
			{name: "dEntropy", width: 1, f: dent}, {name: "logProb", width: K, f: fwd[0].f},
			{name: "entropy", width: 1, f: fwd[1].f},
			{name: "lse", width: 1, f: fwd[2].f}},
		run: func(c *call, in []kernels.Buffer, R int) {
			sc := kernels.Scores{LogProb: in[4], Entropy: in[5], LSE: in[6]}
			c.b.LogProbBackward(c.out("dh", R*o.C), c.spare("dw", dw0), in[2], in[3], sc, in[0],
				c.matrix("w", w, o.V, o.C), in[1], c.ints("blocks", []int32{0, int32(R)}), x)
		},
	}
	if err := s.checkRows(rc, o.R); err != nil {
		return err
	}
	if err := s.checkFrozenOutput(rc, o, w, x); err != nil {
		return err
	}
	return s.checkGradient(gradientCase{
		name: name, op: "LogProbBackward", blocks: r.cuts(o.R, 9),
		setup: func(c *call) func(lo, hi int, blocks []int32) {
			dh, dw, m := c.out("dh", o.R*o.C), c.inout("dw", dw0), c.matrix("w", w, o.V, o.C)
			hb, t, dl, de := c.operands("h", h), c.ints("targets", targets), c.floats("dLogProb", dlp),
				c.floats("dEntropy", dent)
			lp, ent, lse := c.floats("logProb", fwd[0].f), c.floats("entropy", fwd[1].f), c.floats("lse", fwd[2].f)
			return func(lo, hi int, blocks []int32) {
				sc := kernels.Scores{LogProb: lp.Slice(lo*K, hi*K), Entropy: ent.Slice(lo, hi), LSE: lse.Slice(lo, hi)}
				c.b.LogProbBackward(dh.Slice(lo*o.C, hi*o.C), dw, dl.Slice(lo*K, hi*K), de.Slice(lo, hi), sc,
					hb.Slice(lo*o.C, hi*o.C), m, t.Slice(lo*K, hi*K), c.ints("blocks", blocks), x)
			}
		},
	})
}

// checkFrozenOutput checks that dh is the same as with a gradient of the weights.
func (s *subject) checkFrozenOutput(trained rowCase, o outputShape, w []float32, x kernels.Softmax) error {
	frozen := trained
	frozen.name += " frozen"
	frozen.run = func(c *call, in []kernels.Buffer, R int) {
		sc := kernels.Scores{LogProb: in[4], Entropy: in[5], LSE: in[6]}
		c.b.LogProbBackward(c.out("dh", R*o.C), kernels.Buffer{}, in[2], in[3], sc, in[0],
			c.matrix("w", w, o.V, o.C), in[1], c.ints("blocks", []int32{0, int32(R)}), x)
	}
	all := func(rc rowCase) func(c *call) { return func(c *call) { rc.invoke(c, upTo(o.R)) } }
	if err := s.identical(all(frozen), all(trained)); err != nil {
		return fmt.Errorf("%s is not what it is trained: %w", frozen.name, err)
	}
	return s.checkRows(frozen, o.R)
}
