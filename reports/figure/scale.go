package figure

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/plot/vg"
)

// Axis names what an axis counts. The zero value is a linear axis without label.
type Axis struct {
	Label string // e.g. "training step"
	Unit  string // drawn in brackets behind the label; "" for counts and shares
	Log   bool   // base 10; values that are not positive are left out, and the caption says so
	Zero  bool   // the axis includes 0; ignored where Log
	Share bool   // of a whole: the axis stays in [0,1], whatever bands and error bars reach

	// Untitled is the label in a figure without a title, where "loss" alone would not say
	// which; "": Label.
	Untitled string

	// Cut leaves out values below Least, and the caption says so: for metrics whose
	// first values would flatten all others.
	Cut   bool
	Least float64
}

// Tens is the least ratio of the greatest to the smallest value for a logarithmic axis.
const Tens = 10

// ManyTens reports whether the lists of values, one for each arm, are so far apart that only a
// logarithmic axis shows all: none negative, few zero, the largest median of an arm at least Tens
// times the smallest.
func ManyTens(lists [][]float64) bool {
	least, most := math.Inf(1), 0.0
	for _, values := range lists {
		if len(values) == 0 {
			continue
		}
		values = slices.Sorted(slices.Values(values))
		median := values[len(values)/2]
		if !(values[0] >= 0 && values[len(values)/10] > 0) {
			return false
		}
		least, most = min(least, median), max(most, median)
	}
	return most >= Tens*least
}

func (a Axis) title() string {
	switch {
	case a.Unit == "":
		return clean(a.Label)
	case a.Label == "":
		return clean(a.Unit)
	}
	return clean(a.Label + " (" + a.Unit + ")")
}

// units is a caption's sentence on two axes, empty if neither has a label.
func units(x, y Axis) string {
	var parts []string
	for _, a := range [...]struct{ axis, title string }{{"x", x.title()}, {"y", y.title()}} {
		if a.title != "" {
			parts = append(parts, a.axis+": "+a.title)
		}
	}
	return strings.Join(parts, "; ")
}

// shows reports whether v has a place on the axis.
func (a Axis) shows(v float64) bool {
	return drawable(v) && (!a.Log || v >= 1/limit) && (!a.Cut || v >= a.Least)
}

// hides explains why shows refuses values.
func (a Axis) hides() string {
	text := "not finite"
	if a.Log {
		text += " or not positive"
	}
	if a.Cut {
		text += " or below " + strconv.FormatFloat(a.Least, 'g', -1, 64)
	}
	return text
}

// tick is a labelled place on an axis.
type tick struct {
	at    float64
	label string
}

// extent is the range of the data to draw. The zero value is empty.
type extent struct {
	lo, hi float64
	some   bool
	broken bool // holds a value that is not a whole number
}

// add widens e to hold every value that axis a shows.
func (e *extent) add(a Axis, values ...float64) {
	for _, v := range values {
		if !a.shows(v) {
			continue
		}
		if !e.some {
			e.lo, e.hi, e.some = v, v, true
		}
		e.lo, e.hi = math.Min(e.lo, v), math.Max(e.hi, v)
		e.broken = e.broken || v != math.Trunc(v)
	}
}

// addInterval widens e to an interval. Of a share's it takes the part in [0,1].
func (e *extent) addInterval(a Axis, lo, hi float64) {
	if a.Share {
		lo, hi = max(lo, 0), min(hi, 1)
	}
	e.add(a, lo, hi)
}

// scale maps values to points along one axis.
type scale struct {
	axis   Axis
	lo, hi float64 // shown range, lo < hi; both > 0 on a log axis
	whole  bool    // ticks at whole numbers only
	ticks  []tick
	from   vg.Length // where lo is drawn
	to     vg.Length // where hi is drawn
}

// newScale shows the extent e, which must not be empty, with a share pad of its
// length added at both ends. Padding does not cross zero: a share or a count does
// not get an axis that starts below it.
func newScale(a Axis, e extent, pad float64) scale {
	s := scale{axis: a, lo: e.lo, hi: e.hi}
	if a.Log {
		s.lo, s.hi = math.Log(e.lo), math.Log(e.hi)
	} else if a.Zero {
		s.lo, s.hi = math.Min(s.lo, 0), math.Max(s.hi, 0)
	}
	lo, hi := s.lo, s.hi
	if span := hi - lo; span > math.Max(1e-12*math.Max(math.Abs(lo), math.Abs(hi)), 1/limit) {
		s.lo, s.hi = lo-pad*span, hi+pad*span
	} else { // a constant has no scale
		half := 0.1 * math.Abs(lo)
		if half < 1/limit || a.Log {
			half = 1
		}
		s.lo, s.hi = lo-half, hi+half
	}
	if a.Log {
		s.lo, s.hi = math.Exp(s.lo), math.Exp(s.hi)
		return s
	}
	if lo >= 0 && s.lo < 0 {
		s.lo = 0
	}
	if hi <= 0 && s.hi > 0 && lo < 0 {
		s.hi = 0
	}
	if a.Share && hi <= 1 {
		s.hi = min(s.hi, 1)
	}
	return s
}

// within returns the part of v's interval that the scale shows.
func (s scale) within(v Estimate) Estimate {
	v.Lo, v.Hi = max(v.Lo, s.lo), min(v.Hi, s.hi)
	return v
}

// at is where v is drawn.
func (s scale) at(v float64) vg.Length {
	lo, hi := s.lo, s.hi
	if s.axis.Log {
		lo, hi, v = math.Log(lo), math.Log(hi), math.Log(v)
	}
	return s.from + vg.Length((v-lo)/(hi-lo))*(s.to-s.from)
}

// withTicks returns s with about n ticks at round values.
func (s scale) withTicks(n int) scale {
	switch decades := math.Log10(s.hi / s.lo); {
	case s.axis.Log && decades >= 2.5:
		s.ticks = decadeTicks(s.lo, s.hi, int(math.Ceil(decades/float64(n))))
	case s.axis.Log && decades >= 0.8:
		s.ticks = oneTwoFiveTicks(s.lo, s.hi)
	default:
		s.ticks = linearTicks(s.lo, s.hi, n, s.whole)
	}
	return s
}

// linearTicks are the multiples of 1, 2 or 5 · 10^k in [lo,hi], about n of them.
func linearTicks(lo, hi float64, n int, whole bool) []tick {
	step := roundStep((hi - lo) / float64(max(n, 1)))
	if whole && step < 1 {
		step = 1
	}
	const slack = 1e-9 // of a step: ends that miss a multiple by rounding
	first, last := math.Ceil(lo/step-slack), math.Floor(hi/step+slack)
	var at []float64
	for i := first; i <= last && len(at) < 1000; i++ {
		at = append(at, i*step)
	}
	return labelled(at, step)
}

// roundStep is the 1, 2 or 5 · 10^k that is about as long as rough > 0.
func roundStep(rough float64) float64 {
	k := int(math.Floor(math.Log10(rough)))
	for _, m := range [...]int{1, 2, 5} {
		step := powerTick(m, k, false).at
		if rough < 1.5*step { // half way to the next, in ratio
			return step
		}
	}
	return powerTick(1, k+1, false).at
}

// decadeTicks are the powers 10^k in [lo,hi] with k a multiple of every.
func decadeTicks(lo, hi float64, every int) []tick {
	first, last := int(math.Ceil(math.Log10(lo)-1e-9)), int(math.Floor(math.Log10(hi)+1e-9))
	plain := first >= -4 && last < 12
	var ticks []tick
	for k := first; k <= last; k++ {
		if k%every == 0 {
			ticks = append(ticks, powerTick(1, k, plain))
		}
	}
	return ticks
}

// oneTwoFiveTicks are the values 1, 2 and 5 · 10^k in [lo,hi].
func oneTwoFiveTicks(lo, hi float64) []tick {
	first, last := int(math.Floor(math.Log10(lo))), int(math.Ceil(math.Log10(hi)))
	plain := first >= -4 && last < 12
	var ticks []tick
	for k := first; k <= last; k++ {
		for _, m := range [...]int{1, 2, 5} {
			if t := powerTick(m, k, plain); t.at >= lo*(1-1e-9) && t.at <= hi*(1+1e-9) {
				ticks = append(ticks, t)
			}
		}
	}
	return ticks
}

// powerTick is m · 10^k for a digit m, written out where plain.
func powerTick(m, k int, plain bool) tick {
	digit := strconv.Itoa(m)
	v, _ := strconv.ParseFloat(digit+"e"+strconv.Itoa(k), 64) // exact, unlike math.Pow; k is in range
	switch {
	case !plain:
		return tick{v, digit + "e" + minus(strconv.Itoa(k))}
	case k < 0:
		return tick{v, strconv.FormatFloat(v, 'f', -k, 64)}
	}
	return tick{v, digit + strings.Repeat("0", k%3) + [...]string{"", "k", "M", "G"}[k/3]}
}

// labelled labels values that lie step apart, all with the same decimals and the
// same suffix.
func labelled(at []float64, step float64) []tick {
	var top float64
	for _, v := range at {
		top = math.Max(top, math.Abs(v))
	}
	ticks := make([]tick, len(at))
	for i, v := range at {
		ticks[i] = tick{v, minus(tickText(v, step, top))}
	}
	return ticks
}

// tickText writes v, one of several values step apart and no larger than top.
func tickText(v, step, top float64) string {
	if v == 0 {
		return "0"
	}
	const digits = 6 // more do not fit next to an axis
	decimals := func(unit float64) int { return max(0, int(math.Ceil(-math.Log10(step/unit)-1e-9))) }
	for _, u := range [...]struct {
		unit, from float64
		name       string
	}{{1e12, 1e12, "T"}, {1e9, 1e9, "G"}, {1e6, 1e6, "M"}, {1e3, 1e4, "k"}} {
		if top >= u.from && top < 1e16 && decimals(u.unit) < 3 {
			return strconv.FormatFloat(v/u.unit, 'f', decimals(u.unit), 64) + u.name
		}
	}
	if top < 1e10 && decimals(1) < digits && top >= 1e-3 {
		return strconv.FormatFloat(v, 'f', decimals(1), 64)
	}
	mantissa := max(0, int(math.Floor(math.Log10(math.Abs(v))+1e-9))-int(math.Floor(math.Log10(step)+1e-9)))
	return exponent(strconv.FormatFloat(v, 'e', min(mantissa, 12), 64))
}

// minus replaces the hyphen by the minus sign, which is as wide as a digit.
func minus(number string) string { return strings.ReplaceAll(number, "-", "−") }

// value writes a value for a reader: three significant digits, fewer of small ones.
func value(v float64) string { return values(v)[0] }

// values writes values that belong together, all with the decimals that suit the
// largest.
func values(vs ...float64) []string {
	var top float64
	for _, v := range vs {
		if drawable(v) {
			top = math.Max(top, math.Abs(v))
		}
	}
	format, decimals := byte('f'), 0
	switch {
	case top >= 1e6:
		format, decimals = 'e', 2
	case top < 1e-4 && top > 0:
		format, decimals = 'e', 1
	case top >= 100:
	case top >= 1:
		decimals = 2 - int(math.Floor(math.Log10(top)))
	case top >= 0.01 || top == 0:
		decimals = 3
	default:
		decimals = 1 - int(math.Floor(math.Log10(top)))
	}
	out := make([]string, len(vs))
	for i, v := range vs {
		switch {
		case math.IsNaN(v):
			out[i] = "n/a"
		case math.IsInf(v, 0):
			out[i] = strings.NewReplacer("+", "", "Inf", "∞").Replace(minus(strconv.FormatFloat(v, 'f', 0, 64)))
		case v == 0:
			out[i] = "0"
		default:
			out[i] = minus(exponent(strconv.FormatFloat(v, format, decimals, 64)))
		}
	}
	return out
}

// exponent drops the sign and the zeros that FormatFloat pads an exponent with.
func exponent(number string) string {
	m, exp, ok := strings.Cut(number, "e")
	if !ok {
		return number
	}
	k, _ := strconv.Atoi(exp) // FormatFloat wrote it
	return m + "e" + strconv.Itoa(k)
}
