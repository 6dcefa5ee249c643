package kerneltest

import (
	"fmt"
	"math"
	"slices"

	"exp/kernels"
)

// adjusting is what kernels.Adjustments holds, for R rows of K tokens.
type adjusting struct {
	ids                   []int32
	before, factor, after []float32
}

// adjustingOf makes adjustments of all kinds for R rows of up to K of V tokens: one in four is none, one in eight
// forbids its token.
func adjustingOf(name string, R, K, V int) adjusting {
	r := newStream("adjustments of " + name)
	var a adjusting
	for range R {
		order := r.permutation(V)
		for k := range K {
			id, before := int32(order[k]), 3*r.floats(1)[0]
			switch kind := r.intn(8); {
			case kind < 2:
				id = -1
			case kind == 2:
				before = float32(math.Inf(-1))
			case kind == 3:
				before = 60
			case kind == 4:
				before = 0
			}
			a.ids, a.before = append(a.ids, id), append(a.before, before)
		}
	}
	a.factor, a.after = r.positive(R*K), r.scaled(R*K, 3)
	return a
}

// load returns the adjustments on c's backend.
func (a adjusting) load(c *call) kernels.Adjustments {
	return kernels.Adjustments{IDs: c.ints("adjusted ids", a.ids), Before: c.floats("before", a.before),
		Factor: c.floats("factor", a.factor), After: c.floats("after", a.after)}
}

// checkSampleAdjusted compares draws from adjusted logits with the reference.
func checkSampleAdjusted(s *subject) error {
	for _, o := range outputShapes(s.short) {
		h, w, _ := o.data()
		u := newStream(fmt.Sprint("u", o)).uniforms(o.R)
		K := min(o.V, 11)
		a := adjustingOf(fmt.Sprint(o), o.R, K, o.V)
		for i, p := range settings(s.short) {
			rc := rowCase{
				name: fmt.Sprintf("Sample adjusted %+v %s", o, nameOf(p)), op: "Sample",
				large: o.large() || i >= len(settings(true)),
				rows: []field{{name: "h", width: o.C, f: h, operand: true}, {name: "u", width: 1, f: u, finite: true},
					{name: "ids", width: K, i: a.ids}, {name: "before", width: K, f: a.before, finite: true},
					{name: "factor", width: K, f: a.factor, finite: true},
					{name: "after", width: K, f: a.after, finite: true}},
				run: func(c *call, in []kernels.Buffer, R int) {
					p.Adjust = kernels.Adjustments{IDs: in[2], Before: in[3], Factor: in[4], After: in[5]}
					c.b.Sample(c.outInts("ids", R), scores(c, R), in[0], c.matrix("w", w, o.V, o.C), in[1], p)
				},
			}
			if err := s.checkSample(rc, o.R); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkSampleAdjustedScores checks that the scores of a draw from adjusted logits are LogProb's for its token.
func checkSampleAdjustedScores(s *subject) error {
	for _, o := range outputShapes(s.short) {
		a := adjustingOf(fmt.Sprint(o), o.R, min(o.V, 11), o.V)
		for _, p := range settings(true) {
			if err := s.scoresAsLogProb(o, p, &a, nil); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkSampleAdjustedDistribution is checkSampleDistribution with adjusted logits.
func checkSampleAdjustedDistribution(s *subject) error {
	const V = 40
	a := adjustingOf("draws", 1, 12, V)
	for _, p := range settings(s.short) {
		if err := s.checkDraws(V, p, &a); err != nil {
			return fmt.Errorf("%s: %w", nameOf(p), err)
		}
	}
	return nil
}

// checkSampleUnadjusted checks that adjustments of no token, and those that change nothing, leave all bits.
func checkSampleUnadjusted(s *subject) error {
	for _, o := range outputShapes(s.short) {
		h, w, _ := o.data()
		u := newStream(fmt.Sprint("u", o)).uniforms(o.R)
		K := min(o.V, 5)
		idle := adjusting{make([]int32, o.R*K), make([]float32, o.R*K), make([]float32, o.R*K), make([]float32, o.R*K)}
		for i := range idle.ids {
			idle.ids[i], idle.factor[i] = int32(i%K), 1
		}
		none := adjusting{make([]int32, o.R), make([]float32, o.R), make([]float32, o.R), make([]float32, o.R)}
		for i := range none.ids {
			none.ids[i] = -1
		}
		for _, p := range settings(s.short) {
			sample := func(a *adjusting) func(c *call) {
				return func(c *call) {
					p := p
					if a != nil {
						p.Adjust = a.load(c)
					}
					c.b.Sample(c.outInts("ids", o.R), scores(c, o.R), c.operands("h", h), c.matrix("w", w, o.V, o.C),
						c.floats("u", u), p)
				}
			}
			for _, a := range []*adjusting{&none, &idle} {
				if err := s.identical(sample(a), sample(nil)); err != nil {
					return fmt.Errorf("%+v %s: %w", o, nameOf(p), err)
				}
			}
		}
	}
	return nil
}

// checkSampleForbidden checks that forbidden tokens are not drawn, and that token 0 is where all are forbidden.
func checkSampleForbidden(s *subject) error {
	const R, C = 400, 2
	for _, V := range []int{7, 1100} {
		r := newStream(fmt.Sprint("forbidden", V))
		h, w, u := r.floats(R*C), r.floats(V*C), r.uniforms(R)
		for _, allowed := range []int{1, 0} { // in a row
			K := V - allowed
			a := adjusting{before: make([]float32, R*K), factor: make([]float32, R*K), after: make([]float32, R*K)}
			for i := range R * K {
				a.before[i], a.factor[i] = float32(math.Inf(-1)), 1
			}
			for row := range R {
				for k := range K {
					a.ids = append(a.ids, int32((row+1+k)%V))
				}
			}
			for _, p := range settings(true) {
				got, err := run(s.b, func(c *call) {
					p.Adjust = a.load(c)
					c.b.Sample(c.outInts("ids", R), scores(c, R), c.operands("h", h), c.matrix("w", w, V, C),
						c.floats("u", u), p)
				})
				if err != nil {
					return err
				}
				for row, id := range got[0].i {
					if want := row % V * allowed; int(id) != want {
						return fmt.Errorf("V=%d %s: row %d drew token %d, want %d", V, nameOf(p), row, id, want)
					}
				}
			}
		}
	}
	return nil
}

// checkSampleAdjustedFormula checks what becomes of token 0's logit by whether it still beats token 1's in a greedy
// draw: how a factor acts on either sign, and the order of the three changes.
func checkSampleAdjustedFormula(s *subject) error {
	cases := []struct {
		what                  string
		first, second         float32 // logits; all others are lower
		before, factor, after float32
		want                  int32
	}{
		{"-1·2 is below -1.5", -1, -1.5, 0, 2, 0, 1},
		{"-2·0.5 is above -1.5", -2, -1.5, 0, 0.5, 0, 0},
		{"2/2 is below 1.5", 2, 1.5, 0, 2, 0, 1},
		{"1/0.5 is above 1.5", 1, 1.5, 0, 0.5, 0, 0},
		{"(-1+2)/2 is above 0.25", -1, 0.25, 2, 2, 0, 0},
		{"2/2-0.75 is below 0.5", 2, 0.5, 0, 2, 0.75, 1},
		{"-1+0.5 is below -0.25", -1, -0.25, 0.5, 1, 0, 1},
		{"1-2.5 is below -1", 1, -1, 0, 1, 2.5, 1},
	}
	for _, V := range []int{7, 1100} {
		R := len(cases)
		h, w := make([]float32, R*R), make([]float32, V*R) // row r reads column r
		a := adjusting{ids: make([]int32, R)}
		for r, x := range cases {
			h[r*R+r] = 1
			for v := range V {
				w[v*R+r] = -4
			}
			w[r], w[R+r] = x.first, x.second
			a.before, a.factor = append(a.before, x.before), append(a.factor, x.factor)
			a.after = append(a.after, x.after)
		}
		got, err := run(s.b, func(c *call) {
			c.b.Sample(c.outInts("ids", R), scores(c, R), c.operands("h", h), c.matrix("w", w, V, R),
				c.floats("u", make([]float32, R)), kernels.Sampling{TopP: 1, Adjust: a.load(c)})
		})
		if err != nil {
			return err
		}
		for r, x := range cases {
			if got[0].i[r] != x.want {
				return fmt.Errorf("V=%d: drew token %d, but %s", V, got[0].i[r], x.what)
			}
		}
	}
	return nil
}

// adjust is kernels.Adjustments once more, in float64 on a row's logits before the temperature.
func (a adjusting) adjust(z []float64) {
	for k, id := range a.ids {
		if id < 0 {
			continue
		}
		x := z[id] + float64(a.before[k])
		if x > 0 {
			x /= float64(a.factor[k])
		} else {
			x *= float64(a.factor[k])
		}
		z[id] = x - float64(a.after[k])
	}
}

// repeated returns the adjustments of one row for R rows.
func (a adjusting) repeated(R int) adjusting {
	return adjusting{slices.Repeat(a.ids, R), slices.Repeat(a.before, R), slices.Repeat(a.factor, R),
		slices.Repeat(a.after, R)}
}
