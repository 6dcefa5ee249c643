package sweep

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"exp/experiments/ident"
)

// Range is a configuration key and the values that a random search draws for it: a list, the whole
// numbers from Low to High, or the numbers between them, evenly on a linear or a logarithmic scale.
type Range struct {
	Key       string
	Values    []string // the list; nil: the numbers
	Low, High float64
	Whole     bool // whole numbers
	Log       bool
}

// ParseRange reads "key=LOW..HIGH", "key=log:LOW..HIGH" or "key=VALUE,VALUE". Ends written as whole
// numbers make a range of whole numbers; 0.0..1 is one of all numbers.
func ParseRange(text string) (Range, error) {
	key, list, _ := strings.Cut(text, "=")
	low, high, ranged := strings.Cut(list, "..")
	if !ranged || strings.Contains(list, ",") {
		a, err := ParseAxis(text)
		return Range{Key: a.Key, Values: a.Values}, err
	}
	if _, err := ParseAxis(key + "=0"); err != nil { // the same keys are refused
		return Range{}, err
	}
	r := Range{Key: strings.TrimSpace(key)}
	low, r.Log = strings.CutPrefix(strings.TrimSpace(low), "log:")
	low, high = strings.TrimSpace(low), strings.TrimSpace(high)
	var errs [2]error
	r.Low, errs[0] = strconv.ParseFloat(low, 64)
	r.High, errs[1] = strconv.ParseFloat(high, 64)
	_, wholeLow := strconv.ParseInt(low, 10, 64)
	_, wholeHigh := strconv.ParseInt(high, 10, 64)
	r.Whole = wholeLow == nil && wholeHigh == nil
	switch {
	case errs[0] != nil || errs[1] != nil || math.IsInf(r.High-r.Low, 0) || math.IsNaN(r.High-r.Low):
		return Range{}, fmt.Errorf("%s: %q is not a range of numbers such as 0.0..1, 1..8 or log:1e-6..1e-4", r.Key,
			list)
	case r.Low == r.High:
		return Range{}, fmt.Errorf("%s: both ends of the range %s are equal; %s=%s draws that one value", r.Key, list,
			r.Key, high)
	case r.Low > r.High:
		return Range{}, fmt.Errorf("%s: the range %s ends before it begins", r.Key, list)
	case r.Log && r.Low <= 0:
		return Range{}, fmt.Errorf("%s: a logarithmic range begins above 0", r.Key)
	}
	return r, nil
}

// digits is the least number of significant digits of drawn numbers, and of the steps between them
// relative to the range: enough for a search, and short in the name of a run.
const digits = 3

// text writes a number with as many digits as it takes to tell 100 steps of the range apart and to
// stay within the range.
func (r Range) text(v float64) string {
	v = clip(v, r)
	n := digits
	if v != 0 {
		n = max(n, digits+exponent(v)-exponent(r.High-r.Low))
	}
	for ; n < exact; n++ {
		text := strconv.FormatFloat(v, 'g', n, 64)
		if got, err := strconv.ParseFloat(text, 64); err == nil && got == clip(got, r) {
			return text
		}
	}
	return strconv.FormatFloat(v, 'g', -1, 64)
}

// exact is the number of significant digits that represent any number exactly.
const exact = 17

// exponent is the power of ten of the first digit.
func exponent(v float64) int { return int(math.Floor(math.Log10(math.Abs(v)))) }

// draw returns the value at u, which is evenly distributed over [0,1).
func (r Range) draw(u float64) string {
	low, high := r.Low, r.High
	switch {
	case r.Values != nil:
		return r.Values[int(u*float64(len(r.Values)))]
	case r.Log && r.Whole:
		low, high = math.Log(low), math.Log(high+1)
		return strconv.FormatFloat(math.Floor(math.Exp(low+float64(u*(high-low)))), 'f', 0, 64)
	case r.Whole:
		return strconv.FormatFloat(math.Floor(low+float64(u*(high-low+1))), 'f', 0, 64)
	case r.Log:
		low, high = math.Log(low), math.Log(high)
		return r.text(math.Exp(low + float64(u*(high-low))))
	}
	return r.text(low + float64(u*(high-low)))
}

// clip keeps a rounding error within the range.
func clip(v float64, r Range) float64 { return min(max(v, r.Low), r.High) }

// drawn is how often Search redraws a trial that repeats an earlier one.
const drawn = 200

// Search draws n different arms. Trial i is the same whatever n is, so that a longer search repeats
// the shorter one. Comparisons of the arms take the keys for the treatment.
func Search(ranges []Range, n int, seed int64) ([]Arm, error) {
	axes := make([]Axis, len(ranges))
	for i, r := range ranges {
		axes[i] = Axis{Key: r.Key}
		if slices.ContainsFunc(axes[:i], func(b Axis) bool { return r.Key == b.Key }) {
			return nil, fmt.Errorf("%s is searched twice", r.Key)
		}
	}
	if n > MostArms {
		return nil, fmt.Errorf("the search has more than %d trials", MostArms)
	}
	arms, seen := make([]Arm, 0, n), map[string]bool{}
	for trial := range n {
		var arm Arm
		for attempt := 0; ; attempt++ {
			if attempt == drawn {
				return nil, fmt.Errorf("the ranges hold about %d different trials, not %d", trial, n)
			}
			arm = Arm{}
			for i, r := range ranges {
				label := fmt.Sprintf("search/%s/trial=%d/attempt=%d", r.Key, trial, attempt)
				v := r.draw(float64(ident.Seed(seed, label)>>11) / (1 << 53))
				arm.add(axes, i, v)
			}
			if !seen[arm.Label] {
				break
			}
		}
		seen[arm.Label] = true
		arms = append(arms, arm)
	}
	return arms, nil
}
