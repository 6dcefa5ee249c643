package extract

import (
	"exp/eval/grade/wording"
)

// Values in two units: 5 feet 3 inches.

// larger matches the 5 feet of "5 feet 3 inches".
var larger = lazy(`([0-9][0-9.,]*) ?([A-Za-z]+),?(?: and)? $`)

// largerUnit returns the larger part of a value in two units that stands before the smaller.
func largerUnit(before, unit string) string {
	m := larger.FindStringSubmatch(before)
	if m == nil {
		return ""
	}
	big, small := wording.QuantityOf(m[2]), wording.QuantityOf(unit)
	if !big.Known || !big.Measured || !small.Measured || big.Dim != small.Dim || big.Factor.Cmp(small.Factor) <= 0 {
		return ""
	}
	return m[1] + "\\text{ " + m[2] + "}"
}

// smallerUnit returns the smaller part of a value in two units, if it begins the words after the larger.
func smallerUnit(next []string, unit string) string {
	if len(next) > 0 && next[0] == "and" {
		next = next[1:]
	}
	if len(next) < 2 || !wording.AllDigits(next[0]) {
		return ""
	}
	big, small := wording.QuantityOf(unit), wording.QuantityOf(next[1])
	if !big.Measured || !small.Measured || big.Dim != small.Dim || big.Factor.Cmp(small.Factor) <= 0 {
		return ""
	}
	return next[0] + "\\text{ " + next[1] + "}"
}
