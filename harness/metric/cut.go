package metric

import "math"

// Cut limits an interval to the values that a mean of the unit can take, wherever one is printed or drawn; only
// rewards can be negative. Recorded intervals are not cut, except of shares.
func Cut(unit string, lo, hi float64) (float64, float64) {
	least, most := 0.0, math.Inf(1)
	switch unit {
	case Reward:
		least = math.Inf(-1)
	case Share:
		most = 1
	case Points:
		least, most = 1, 5
	}
	return max(least, lo), min(most, hi)
}

// CutOf is Cut for a metric by its name. A metric that is not known may have any value.
func CutOf(name string, lo, hi float64) (float64, float64) {
	if m, known := Find(name); known {
		return Cut(m.Unit, lo, hi)
	}
	return lo, hi
}
