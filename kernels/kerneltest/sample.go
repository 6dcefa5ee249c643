package kerneltest

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"

	"exp/kernels"
)

func sampleChecks() []check {
	return []check{
		{"Sample/rows", checkSampleRows},
		{"Sample/scores", checkSampleScores},
		{"Sample/distribution", checkSampleDistribution},
		{"Sample/ties", checkSampleTies},
		{"Sample/long", checkSampleLong},
		{"Sample/adjusted/rows", checkSampleAdjusted},
		{"Sample/adjusted/scores", checkSampleAdjustedScores},
		{"Sample/adjusted/distribution", checkSampleAdjustedDistribution},
		{"Sample/adjusted/none", checkSampleUnadjusted},
		{"Sample/adjusted/forbidden", checkSampleForbidden},
		{"Sample/adjusted/formula", checkSampleAdjustedFormula},
		{"Sample/masked/rows", checkSampleMasked},
		{"Sample/masked/none", checkSampleUnmasked},
		{"Sample/masked/tokens", checkSampleMaskedTokens},
	}
}

// settings are ways to sample: all, greedy, filters together, each with a cap, each
// filter. The first six are all that code has a path for.
func settings(short bool) []kernels.Sampling {
	list := []kernels.Sampling{
		{Temperature: 0.7, TopP: 1},
		{Temperature: 0, TopP: 1},
		{Temperature: 1.3, TopP: 0.9, TopK: 7, MinP: 0.01},
		{Temperature: 0.7, TopP: 1, Cap: 9},
		{Temperature: 0, TopP: 1, Cap: 20},
		{Temperature: 1.3, TopP: 0.9, TopK: 7, MinP: 0.01, Cap: 9},
	}
	if short {
		return list
	}
	return append(list,
		kernels.Sampling{Temperature: 1, TopP: 1},
		kernels.Sampling{Temperature: 1, TopP: 1, TopK: 3},
		kernels.Sampling{Temperature: 1, TopP: 0.8},
		kernels.Sampling{Temperature: 1, TopP: 1, MinP: 0.05},
		kernels.Sampling{Temperature: 0.5, TopP: 0.8, Cap: 0.7})
}

// nameOf tells settings apart; rows are mixed by it.
func nameOf(p kernels.Sampling) string {
	return fmt.Sprintf("{Temperature:%v TopK:%v TopP:%v MinP:%v Cap:%v}", p.Temperature, p.TopK, p.TopP, p.MinP, p.Cap)
}

// checkSampleRows compares drawn tokens and scores with the reference.
func checkSampleRows(s *subject) error {
	for _, o := range outputShapes(s.short) {
		h, w, _ := o.data()
		u := newStream(fmt.Sprint("u", o)).uniforms(o.R)
		for i, p := range settings(s.short) {
			rc := rowCase{
				name: fmt.Sprintf("Sample %+v %s", o, nameOf(p)), op: "Sample",
				large: o.large() || i >= len(settings(true)),
				rows: []field{{name: "h", width: o.C, f: h, operand: true},
					{name: "u", width: 1, f: u, finite: true}},
				run: func(c *call, in []kernels.Buffer, R int) {
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

// checkSample is checkRows, but that a backend which does not promise bits may
// draw another token in one of a hundred rows: where the sums of probabilities
// pass x between two tokens, rounding decides.
func (s *subject) checkSample(rc rowCase, R int) error {
	if s.exact {
		return s.checkRows(rc, R)
	}
	got, err := rc.compute(s.b, upTo(R))
	if err != nil {
		return err
	}
	want, err := s.reference(func(c *call) { rc.invoke(c, upTo(R)) })
	if err != nil {
		return err
	}
	var agree []int
	for r := range R {
		if got[0].i[r] == want[0].i[r] {
			agree = append(agree, r)
		}
	}
	if differ := R - len(agree); differ > 1+R/100 {
		return fmt.Errorf("%s: %d of %d rows draw another token", rc.name, differ, R)
	}
	err = same(rowsOf(got, R, agree), rowsOf(want, R, agree), toleranceOf(rc.op, s.b.Float()))
	if err == nil {
		err = s.checkRowLaws(rc, R)
	}
	if err != nil {
		return fmt.Errorf("%s, %d rows: %w", rc.name, R, err)
	}
	return nil
}

// checkSampleScores checks that a draw's scores equal LogProb's for its token: the first
// importance ratio is then exactly 1.
func checkSampleScores(s *subject) error {
	for _, o := range outputShapes(s.short) {
		for _, p := range settings(true) {
			if err := s.scoresAsLogProb(o, p, nil, nil); err != nil {
				return err
			}
		}
	}
	return nil
}

// scoresAsLogProb checks the scores of draws with adjustments and a mask, or neither.
func (s *subject) scoresAsLogProb(o outputShape, p kernels.Sampling, a *adjusting, mask []int32) error {
	h, w, _ := o.data()
	u := newStream(fmt.Sprint("u", o)).uniforms(o.R)
	drawn, err := run(s.b, func(c *call) {
		if a != nil {
			p.Adjust = a.load(c)
		}
		if mask != nil {
			p.Mask = c.ints("mask", mask)
		}
		c.b.Sample(c.outInts("ids", o.R), scores(c, o.R), c.operands("h", h), c.matrix("w", w, o.V, o.C),
			c.floats("u", u), p)
	})
	if err != nil {
		return err
	}
	temperature := p.Temperature
	if temperature == 0 {
		temperature = 1
	}
	scored, err := run(s.b, func(c *call) {
		c.b.LogProb(scores(c, o.R), c.operands("h", h), c.matrix("w", w, o.V, o.C),
			c.ints("targets", drawn[0].i), kernels.Softmax{Temperature: temperature, Cap: p.Cap})
	})
	if err != nil {
		return err
	}
	if err := same(drawn[1:], scored, exactly); err != nil {
		return fmt.Errorf("%+v %s is not scored as LogProb does: %w", o, nameOf(p), err)
	}
	return nil
}

// checkSampleDistribution draws from one row many times and compares the counts
// with the softmax, restricted to the set that the filters define.
func checkSampleDistribution(s *subject) error {
	for _, V := range []int{40, 600} {
		if V > 100 && s.short {
			continue
		}
		// Each filter by itself is a matter of few tokens, too.
		for _, p := range settings(s.short || V > 100) {
			if err := s.checkDraws(V, p, nil); err != nil {
				return fmt.Errorf("V=%d %s: %w", V, nameOf(p), err)
			}
		}
	}
	return nil
}

// checkDraws draws with the same adjustments in each row, or none.
func (s *subject) checkDraws(V int, p kernels.Sampling, a *adjusting) error {
	const R, C = 4000, 2
	r := newStream(fmt.Sprint("draws", V))
	row, w := []float32{0.9, -1.1}, r.floats(V*C)
	var h []float32
	for range R {
		h = append(h, row...)
	}
	got, err := run(s.b, func(c *call) {
		if a != nil {
			p.Adjust = a.repeated(R).load(c)
		}
		c.b.Sample(c.outInts("ids", R), scores(c, R), c.operands("h", h), c.matrix("w", w, V, C),
			c.floats("u", r.uniforms(R)), p)
	})
	if err != nil {
		return err
	}
	z := make([]float64, V)
	for v := range z {
		z[v] = float64(row[0])*float64(w[2*v]) + float64(row[1])*float64(w[2*v+1])
		if p.Cap > 0 {
			z[v] = p.Cap * math.Tanh(z[v]/p.Cap)
		}
	}
	if a != nil {
		a.adjust(z)
	}
	prob := restricted(z, p)
	counts := make([]int, V)
	for _, id := range got[0].i {
		if id < 0 || int(id) >= V {
			return fmt.Errorf("drew token %d", id)
		}
		counts[id]++
	}
	for v := range prob {
		if counts[v] > 0 && prob[v] == 0 {
			return fmt.Errorf("drew token %d, which the filters drop", v)
		}
	}
	return chiSquare(counts, prob, R)
}

// restricted returns the distribution that p leaves of logits z: an independent
// statement of what Sample does, in float64 with sorting.
func restricted(z []float64, p kernels.Sampling) []float64 {
	order := upTo(len(z))
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(z[b], z[a]) })
	prob := make([]float64, len(z))
	if p.Temperature == 0 {
		prob[order[0]] = 1
		return prob
	}
	var total, mass, kept float64
	for v := range z {
		total += math.Exp((z[v] - z[order[0]]) / p.Temperature)
	}
	for rank, v := range order {
		e := math.Exp((z[v] - z[order[0]]) / p.Temperature)
		if p.TopK > 0 && rank >= p.TopK || mass >= p.TopP*total || e < p.MinP {
			break
		}
		mass += e
		prob[v] = e
		kept += e
	}
	for v := range prob {
		prob[v] /= kept
	}
	return prob
}

// chiSquare compares n counts with a distribution. Tokens are pooled until a
// pool expects ten draws.
func chiSquare(counts []int, prob []float64, n int) error {
	var stat, expected, observed float64
	df := -1.0
	for v := range prob {
		expected += prob[v] * float64(n)
		observed += float64(counts[v])
		if expected >= 10 || v == len(prob)-1 && expected > 0 {
			stat += (observed - expected) * (observed - expected) / expected
			df++
			expected, observed = 0, 0
		}
	}
	if df < 1 {
		return nil // one pool: the set of drawn tokens was checked
	}
	// Wilson and Hilferty, 1931: (X²/df)^⅓ is near normal with mean 1-2/(9df) and
	// variance 2/(9df). Five standard deviations leave 3e-7, and the draws are fixed.
	v := 2 / (9 * df)
	limit := df * math.Pow(1-v+5*math.Sqrt(v), 3)
	if stat > limit {
		return fmt.Errorf("chi-square of the counts is %.1f, want ≤ %.1f with %.0f degrees of freedom",
			stat, limit, df)
	}
	return nil
}

// checkSampleTies gives every token the same logit.
func checkSampleTies(s *subject) error {
	const R, V = 500, 40
	tests := []struct {
		name string
		p    kernels.Sampling
		last int32 // the highest id that may be drawn
	}{
		{"greedy", kernels.Sampling{TopP: 1}, 0},
		{"top 1", kernels.Sampling{Temperature: 1, TopP: 1, TopK: 1}, 0},
		{"top 3", kernels.Sampling{Temperature: 1, TopP: 1, TopK: 3}, 2},
		{"half the mass", kernels.Sampling{Temperature: 1, TopP: 0.5}, V/2 - 1},
		{"all as likely as the first", kernels.Sampling{Temperature: 1, TopP: 1, MinP: 1}, V - 1},
	}
	for _, tt := range tests {
		r := newStream("ties")
		got, err := run(s.b, func(c *call) {
			c.b.Sample(c.outInts("ids", R), scores(c, R), c.operands("h", make([]float32, R)),
				c.matrix("w", r.floats(V), V, 1),
				c.floats("u", r.uniforms(R)), tt.p)
		})
		if err != nil {
			return err
		}
		// 500 draws miss one of 40 tokens with probability 40·0.975⁵⁰⁰ = 1e-4.
		if high := slices.Max(got[0].i); high != tt.last {
			return fmt.Errorf("%s: the highest id drawn is %d, want %d", tt.name, high, tt.last)
		}
		if slices.Min(got[0].i) != 0 {
			return errors.New(tt.name + ": token 0 is never drawn")
		}
	}
	return nil
}

// checkSampleLong compares long rows of unlike distributions, with filters whose last kept token lies among
// equal logits, among many of nearly the same, or far below the first.
func checkSampleLong(s *subject) error {
	if !s.exact {
		return nil // a running sum that rounding decides would draw another token
	}
	h, w, R := longRows()
	for _, p := range []kernels.Sampling{
		{TopP: 1}, {TopP: 0.5}, {TopP: 0.95}, {TopP: 0.999999}, {TopP: 1, TopK: 1}, {TopP: 1, TopK: 700},
		{TopP: 1, TopK: 1500}, {TopP: 1, TopK: longSample + 5}, {TopP: 0.9, TopK: 40}, {TopP: 0.3, TopK: 1400},
		{TopP: 0.9, TopK: 1200, MinP: 0.3},
	} {
		p.Temperature = 1
		for i := range 3 {
			u := newStream(fmt.Sprint("u of long rows", i)).uniforms(R)
			err := s.compare("Sample", func(c *call) {
				c.b.Sample(c.outInts("ids", R), scores(c, R), c.operands("h", h), c.matrix("w", w, longSample, R),
					c.floats("u", u), p)
			})
			if err != nil {
				return fmt.Errorf("%+v: %w", p, err)
			}
		}
	}
	return nil
}

// longRows returns R rows and weights [longSample,R] of unlike distributions: the logits of the first are equal,
// others are nearly the same, or far below the first.
func longRows() (h, w []float32, R int) {
	kinds := []func(v int, f float32) float32{
		func(_ int, _ float32) float32 { return 0.5 },
		func(_ int, f float32) float32 { return f / 1000 },
		func(_ int, f float32) float32 { return 4 * f },
		func(v int, f float32) float32 {
			if v == 700 {
				return 0
			}
			return f - 20
		},
		func(v int, _ float32) float32 { return -0.04 * float32(v*389%longSample) },
		func(v int, _ float32) float32 { return -18 * float32(v%3) },
	}
	R = len(kinds)
	h, w = make([]float32, R*R), make([]float32, longSample*R)
	f := newStream("long rows").floats(longSample * R)
	for r, kind := range kinds {
		h[r*R+r] = 1
		for v := range longSample {
			w[v*R+r] = kind(v, f[v*R+r])
		}
	}
	return h, w, R
}

// longSample is the length of long rows: a prime.
const longSample = 1543
