package optim

import (
	"fmt"
	"slices"
	"testing"

	"exp/kernels/ref"
)

// Elements that learn faster do so in every optimizer as with another rate alone, the others as without them; for
// Muon the matrix at 3 is fast, for all the vector's elements 9 to 11. Ranges are cut where shards end.
func TestFaster(t *testing.T) {
	const n, ratio, lr = 15, 16.0, 0.01
	fast := Faster{ratio, []Range{{3, 7}, {9, 11}}}
	be := ref.New[float64]()
	settings := AdamW{Beta1: 0.9, Beta2: 0.99, Eps: 1e-8, WeightDecay: 0.1}
	type learner interface {
		Hasten(x Faster)
		Close()
	}
	for _, kind := range []Kind{KindAdamW, KindSGD, KindMuon} {
		run := func(x Faster, lr float64) []float64 {
			p, g := buffer(t, be, normals(n, 1)...), buffer(t, be, make([]float64, n)...)
			var o learner
			var update func(lr float64)
			var err error
			switch kind {
			case KindAdamW:
				var a *AdamW
				a, err = NewAdamW(be, n, settings.Beta1, settings.Beta2, settings.Eps, settings.WeightDecay)
				o, update = a, func(lr float64) { a.Update(p, g, lr, 0.5) }
			case KindSGD:
				var s *SGD
				s, err = NewSGD(be, n, 0.9, settings.WeightDecay)
				o, update = s, func(lr float64) { s.Update(p, g, lr, 0.5) }
			case KindMuon:
				var m *Muon
				m, err = NewMuon(be, be, Arena{Grads: g, Hi: n, Matrices: []Matrix{{3, 2, 2}, {11, 2, 2}}}, 0.9, settings)
				o, update = m, func(lr float64) { m.Update(p, g, lr, 0.5) }
			}
			if err != nil {
				t.Fatal(err)
			}
			defer o.Close()
			o.Hasten(x)
			for step := range 3 {
				be.Copy(g, buffer(t, be, normals(n, uint64(step+2))...))
				update(lr)
			}
			return host(be, p)
		}
		slow, quick := run(Faster{}, lr), run(Faster{}, lr*ratio)
		want := slices.Concat(slow[:3], quick[3:7], slow[7:9], quick[9:11], slow[11:])
		if got := run(fast, lr); !slices.Equal(got, want) {
			t.Errorf("optimizer %v: got  %v\nwant %v", kind, got, want)
		}
	}
}

// A range of elements is cut into parts of one rate.
func TestFasterParts(t *testing.T) {
	x := Faster{8, []Range{{3, 5}, {5, 6}, {9, 20}}}
	for _, c := range []struct {
		lo, hi int
		want   string
	}{
		{0, 12, "0-3:0.5 3-5:4 5-6:4 6-9:0.5 9-12:4 "},
		{3, 9, "3-5:4 5-6:4 6-9:0.5 "},
		{4, 5, "4-5:4 "},
		{6, 9, "6-9:0.5 "},
		{10, 12, "10-12:4 "},
		{25, 30, "25-30:0.5 "},
		{7, 7, ""},
	} {
		got := ""
		x.each(c.lo, c.hi, 0.5, func(lo, hi int, rate float64) { got += fmt.Sprintf("%d-%d:%v ", lo, hi, rate) })
		if got != c.want {
			t.Errorf("%d to %d: got %s, want %s", c.lo, c.hi, got, c.want)
		}
	}
}
