// Package optim holds the parts of an optimizer step outside the update kernel:
// learning-rate schedules and gradient clipping by global norm. Pure functions of numbers,
// and the state of AdamW.
package optim

import (
	"fmt"
	"math"
)

// ScheduleKind is the shape of a learning-rate schedule.
type ScheduleKind uint8

const (
	Constant ScheduleKind = 1 + iota
	Cosine
	WSD // warm-up, stable, decay
	Linear
)

var scheduleNames = [...]string{Constant: "constant", Cosine: "cosine", WSD: "wsd", Linear: "linear"}

// String returns verl's name of the kind.
func (k ScheduleKind) String() string {
	if k < Constant || k > Linear {
		return "unknown"
	}
	return scheduleNames[k]
}

// ParseScheduleKind returns the named kind.
func ParseScheduleKind(name string) (ScheduleKind, error) {
	for k := Constant; k <= Linear; k++ {
		if scheduleNames[k] == name {
			return k, nil
		}
	}
	return 0, fmt.Errorf("unknown learning-rate schedule %q", name)
}

// Schedule multiplies the learning rate, like verl's functions of the same names
// (verl/utils/torch_functional.py); Linear is Megatron's and transformers'. Warmup and
// Total are in the steps that the caller counts; verl's trainer counts sampling phases,
// not updates.
type Schedule struct {
	Kind   ScheduleKind
	Warmup int // steps of linear warm-up
	Total  int // total steps; not read by Constant
	// MinRatio is the final multiplier of Cosine, WSD and Linear.
	MinRatio float64
	// InitRatio is the initial multiplier of Cosine's warm-up.
	InitRatio float64
	// Cycles is the number of cosine waves of the decay; verl 0.5, a single descent.
	Cycles float64
	// Stable is the share of the steps after warm-up that WSD holds; verl 0.9.
	Stable float64
	// OneIndexed makes Cosine count its first step as 1 (verl's zero_indexed_step=False).
	// Otherwise the first step of a warm-up has a learning rate of InitRatio: 0, unless
	// set.
	OneIndexed bool
}

// Multiplier returns the factor for step k. verl counts from 0, so the first step of a
// warm-up learns nothing; train counts from 1, so it learns and the last step has the
// factor at Total. With p = (k-Warmup)/max(1, Total-Warmup) and cos(p) =
// ½·cos(2π·Cycles·p):
//
//	Constant   k/max(1,Warmup) in warm-up, then 1
//	Cosine     InitRatio + (1-InitRatio)·k/max(1,Warmup) in warm-up, then
//	           max(MinRatio, (1-MinRatio)·cos(p) + ½(1+MinRatio))
//	WSD        as Constant for ⌊Stable·(Total-Warmup)⌋ steps after warm-up, then over
//	           the rest, p counted from its start, MinRatio +
//	           (1-MinRatio)·max(0, ½+cos(p)), then MinRatio
//	Linear     as Constant in warm-up, then MinRatio + (1-MinRatio)·max(0, 1-p)
//
// Beyond Total, Cosine continues along its wave, as in verl. It panics on an unknown kind.
func (s Schedule) Multiplier(k int) float64 {
	switch s.Kind {
	case Constant:
		if k < s.Warmup {
			return ratio(k, s.Warmup)
		}
		return 1
	case Cosine:
		return s.cosine(k)
	case WSD:
		return s.wsd(k)
	case Linear:
		if k < s.Warmup {
			return ratio(k, s.Warmup)
		}
		left := max(0, 1-ratio(k-s.Warmup, s.Total-s.Warmup))
		return s.MinRatio + float64((1-s.MinRatio)*left)
	}
	panic("optim: unknown learning-rate schedule")
}

func (s Schedule) cosine(k int) float64 {
	if s.OneIndexed {
		k++
	}
	if k < s.Warmup {
		return s.InitRatio + float64((1-s.InitRatio)*ratio(k, s.Warmup))
	}
	p := ratio(k-s.Warmup, s.Total-s.Warmup)
	wave := float64((1 - s.MinRatio) * 0.5 * cosTurns(float64(s.Cycles*p)))
	return max(s.MinRatio, wave+float64(0.5*(1+s.MinRatio)))
}

func (s Schedule) wsd(k int) float64 {
	stable := int(s.Stable * float64(s.Total-s.Warmup))
	start := s.Warmup + stable
	switch {
	case k < s.Warmup:
		return ratio(k, s.Warmup)
	case k < start:
		return 1
	case k >= s.Total:
		return s.MinRatio
	}
	p := ratio(k-start, s.Total-start)
	wave := max(0, float64(0.5*(1+cosTurns(float64(s.Cycles*p)))))
	return s.MinRatio + float64((1-s.MinRatio)*wave)
}

// ratio returns k/max(1,n).
func ratio(k, n int) float64 { return float64(k) / float64(max(1, n)) }

// cosTurns returns cos(2π·t) to within 2⁻⁵², with the same bits on every
// machine: math.Cos is compiled with fused instructions on some. t is finite
// and not negative.
func cosTurns(t float64) float64 {
	t -= math.Floor(t)
	if t > 0.5 {
		t = 1 - t // cos is even
	}
	sign := 1.0
	if t > 0.25 {
		t, sign = 0.5-t, -1 // cos(π-x) = -cos(x)
	}
	if t > 0.125 {
		return float64(sign * sinSeries(0.25-t)) // cos(π/2-x) = sin(x)
	}
	return float64(sign * cosSeries(t))
}

// cosSeries returns cos(2π·t), sinSeries sin(2π·t), 0 ≤ t ≤ 1/8, by Taylor
// series whose next terms are below 1e-17.
func cosSeries(t float64) float64 {
	x := float64(2 * math.Pi * t)
	return series(float64(x*x), 1./20922789888000, -1./87178291200, 1./479001600, -1./3628800,
		1./40320, -1./720, 1./24, -1./2, 1)
}

func sinSeries(t float64) float64 {
	x := float64(2 * math.Pi * t)
	return float64(x * series(float64(x*x), -1./1307674368000, 1./6227020800, -1./39916800, 1./362880,
		-1./5040, 1./120, -1./6, 1))
}

// series evaluates a polynomial in y by Horner's rule, highest power first.
func series(y float64, terms ...float64) float64 {
	sum := 0.0
	for _, term := range terms {
		sum = float64(sum*y) + term
	}
	return sum
}
