package optim

import (
	"math"
	"testing"

	"exp/kernels/ref"
)

// Two updates by hand, lr 0.1, decay 0.5, gradients 4 halved and -1.
//
//	momentum 0.9:  b = 2,             p = 1·0.95 - 0.2       = 0.75
//	               b = 1.8 - 1 = 0.8, p = 0.75·0.95 - 0.08   = 0.6325
//	momentum 0:    p = 0.75, then p = 0.75·0.95 + 0.1        = 0.8125
func TestSGDByHand(t *testing.T) {
	be := ref.New[float64]()
	for _, c := range []struct {
		momentum, want float64
		moments        int
	}{{0.9, 0.6325, 1}, {0, 0.8125, 0}} {
		p := buffer(t, be, 1)
		o, err := NewSGD(be, 1, c.momentum, 0.5)
		if err != nil {
			t.Fatal(err)
		}
		defer o.Close()
		o.Update(p, buffer(t, be, 4), 0.1, 0.5)
		if got := host(be, p)[0]; math.Abs(got-0.75) > 1e-12 {
			t.Errorf("momentum %v: after one update p = %.15g, want 0.75", c.momentum, got)
		}
		o.Update(p, buffer(t, be, -1), 0.1, 1)
		if got := host(be, p)[0]; math.Abs(got-c.want) > 1e-12 {
			t.Errorf("momentum %v: after two updates p = %.15g, want %v", c.momentum, got, c.want)
		}
		if n := KindSGD.Moments(c.momentum); n != c.moments || len(o.Moments()) != n {
			t.Errorf("momentum %v: %d moments, planned %d, want %d", c.momentum, len(o.Moments()), n, c.moments)
		}
		o.Reset()
		if o.Steps() != 0 {
			t.Errorf("momentum %v: %d steps after a reset", c.momentum, o.Steps())
		}
	}
}
