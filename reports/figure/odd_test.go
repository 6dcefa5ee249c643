package figure

import (
	"math"
	"math/rand/v2"
)

// odd makes figures of any kind with names and values that might come out of a
// failing run.
type odd struct{ *rand.Rand }

func (o odd) figure() drawer {
	kinds := []func() drawer{o.curve, o.passK, o.bar, o.scatter, o.phases, o.distribution, o.forest}
	return kinds[o.IntN(len(kinds))]()
}

func (o odd) name() string {
	names := []string{
		"", "A", "PPO", "β = 15", "<b>&\"bold\"</b>", "two\nlines", "a\x00b\xff", "日本語",
		"a name so long that it has no chance to fit next to any line or under any bar of any figure",
		"WWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWW",
	}
	return names[o.IntN(len(names))]
}

func (o odd) value() float64 {
	switch o.IntN(12) {
	case 0:
		return math.NaN()
	case 1:
		return math.Inf(1 - 2*o.IntN(2))
	case 2:
		return 0
	case 3:
		return o.NormFloat64() * math.Pow(10, float64(o.IntN(600)-300))
	case 4:
		return math.MaxFloat64
	case 5:
		return math.SmallestNonzeroFloat64
	}
	return o.NormFloat64()
}

func (o odd) values(n int) []float64 {
	out := make([]float64, n)
	for i := range out {
		out[i] = o.value()
	}
	return out
}

func (o odd) estimate() Estimate { return Estimate{o.value(), o.value(), o.value()} }

func (o odd) linear() Axis { return Axis{Label: o.name(), Unit: o.name(), Zero: o.IntN(2) == 0} }

func (o odd) axis() Axis {
	a := o.linear()
	a.Log = o.IntN(3) == 0
	return a
}

func (o odd) head() Head {
	return Head{Name: "odd", Title: o.name(), About: o.name(), Order: []string{o.name(), o.name()}}
}

// arms is how many arms, rows or groups a figure has.
func (o odd) arms() int { return o.IntN(14) }

func (o odd) curve() drawer {
	c := Curve{Head: o.head(), X: o.axis(), Y: o.axis(), Band: Band(o.IntN(2)), Smooth: 2*o.IntN(4) + 1}
	if o.IntN(2) == 0 {
		c.Reference = &Reference{Name: o.name(), Value: o.value(), First: o.IntN(2) == 0}
	}
	for range o.arms() {
		a := Arm{Name: o.name()}
		for range o.IntN(4) {
			n := o.IntN(40)
			s := Series{Y: o.values(n)}
			for i := range n {
				s.Step = append(s.Step, float64(i))
			}
			if o.IntN(2) == 0 {
				s.X = o.values(n)
			}
			a.Seeds = append(a.Seeds, s)
		}
		c.Arms = append(c.Arms, a)
	}
	return c
}

func (o odd) passK() drawer {
	p := PassK{Head: o.head(), Interval: o.name(), Problems: o.IntN(3), Samples: o.IntN(3)}
	for range o.arms() {
		a := PassKArm{Name: o.name(), Seeds: o.IntN(3)}
		for k := range o.IntN(40) {
			if o.IntN(3) == 0 {
				a.Points = append(a.Points, PassKPoint{k + 1, o.estimate()})
			}
		}
		p.Arms = append(p.Arms, a)
	}
	return p
}

func (o odd) bar() drawer {
	b := Bar{Head: o.head(), Y: o.linear(), Interval: o.name()}
	for range o.IntN(8) {
		b.Groups = append(b.Groups, o.name())
	}
	for range o.arms() {
		a := ArmValues{Name: o.name()}
		for range b.Groups {
			a.Values = append(a.Values, o.estimate())
		}
		b.Arms = append(b.Arms, a)
	}
	return b
}

func (o odd) scatter() drawer {
	s := Scatter{Head: o.head(), X: o.axis(), Y: o.axis(), Interval: o.name()}
	for range o.arms() {
		a := ScatterArm{Name: o.name(), X: o.estimate(), Y: o.estimate()}
		for range o.IntN(4) {
			a.Seeds = append(a.Seeds, [2]float64{o.value(), o.value()})
		}
		s.Arms = append(s.Arms, a)
	}
	return s
}

func (o odd) phases() drawer {
	f := Phases{Head: o.head(), Per: o.name()}
	for range o.IntN(40) {
		f.Phases = append(f.Phases, o.name())
	}
	for range o.arms() {
		r := PhaseRow{o.name(), o.values(len(f.Phases))}
		for i, s := range r.Seconds {
			r.Seconds[i] = math.Abs(s)
		}
		f.Rows = append(f.Rows, r)
	}
	return f
}

func (o odd) distribution() drawer {
	n := o.IntN(60)
	shares := func() []float64 {
		ps := make([]float64, n)
		for i := range ps {
			ps[i] = o.Float64() * float64(o.IntN(2))
		}
		return ps
	}
	f := Distribution{Head: o.head(), Outcome: o.linear(), Target: shares()}
	for range o.arms() {
		a := DistributionArm{Name: o.name()}
		for range o.IntN(4) {
			a.Policies, a.KL = append(a.Policies, shares()), append(a.KL, math.Abs(o.value()))
		}
		f.Arms = append(f.Arms, a)
	}
	return f
}

func (o odd) forest() drawer {
	f := Forest{Head: o.head(), X: o.linear(), Interval: o.name(), Less: o.name(), More: o.name()}
	for range o.arms() {
		f.Rows = append(f.Rows, ForestRow{Name: o.name(), Diff: o.estimate(), Note: o.name()})
	}
	return f
}
