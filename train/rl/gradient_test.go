package rl

import (
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// gradTol bounds the difference of analytic and numeric derivatives, relative to
// the derivative. derivative's own error is a few 1e-13 of the loss, which is why
// small derivatives also get gradFloor of the loss.
const (
	gradTol   = 1e-8
	gradFloor = 1e-11
)

// derivative returns the slope of f at x by central differences of sixth order:
// error h⁶·f⁽⁷⁾/140 plus rounding of about 1e-16·f/h.
func derivative(f func(x float64) float64, x float64) float64 {
	const h = 1e-3
	slope := func(k float64) float64 { return f(x+k*h) - f(x-k*h) }
	return (45*slope(1) - 9*slope(2) + slope(3)) / (60 * h)
}

func TestDerivative(t *testing.T) {
	for _, x := range []float64{-3, 0, 2} {
		if got, want := derivative(math.Exp, x), math.Exp(x); math.Abs(got/want-1) > 1e-12 {
			t.Errorf("slope of exp at %g is %g, want %g", x, got, want)
		}
	}
}

// Every loss has the slope that it returns, by each log-prob, value, entropy and
// log Z. Values that the gradient treats as constants stay constant: FlowRL's weight and
// CISPO's choice of tokens, by moving the old policy along. A straight-through form is
// differenced as k2, just as it is differentiated.
func TestGradients(t *testing.T) {
	const seed = 9
	all := objectives[float64]()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		o := all[name]
		differenced := o
		if o.as != "" {
			differenced = all[o.as]
		}
		t.Run(name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 0))
			for mode := TokenMean; mode <= SeqMeanTokenMean; mode++ {
				s := newSample[float64](r, 6)
				n := Count(s.Mask, s.Rows)
				n.Scale = 16
				got := evaluate(o, []*sample[float64]{s}, mode, n)
				c := slopes{t, func() float64 { return evaluate(differenced, []*sample[float64]{s}, mode, n).loss }}
				var along []float64
				if o.along != nil {
					along = o.along(s)
				}
				c.check("token", got.tokens, o.by(s), along)
				c.check("log Z", got.rows, s.LogZ, nil)
			}
		})
	}
}

// slopes compares gradients with the slopes of a loss.
type slopes struct {
	t    *testing.T
	loss func() float64
}

// check compares grad[i] with the slope of the loss by x[i], along[i] moving by
// as much.
func (c slopes) check(what string, grad, x, along []float64) {
	c.t.Helper()
	if along == nil {
		along = make([]float64, len(x))
	}
	floor := gradFloor * math.Abs(c.loss())
	for i := range x {
		at, other := x[i], along[i]
		slope := derivative(func(v float64) float64 {
			x[i], along[i] = v, other+(v-at)
			return c.loss()
		}, at)
		x[i], along[i] = at, other
		if !(math.Abs(grad[i]-slope) <= gradTol*math.Abs(slope)+floor) {
			c.t.Errorf("%s %d: gradient %.12g, slope %.12g", what, i, grad[i], slope)
		}
	}
}
