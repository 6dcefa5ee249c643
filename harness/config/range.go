package config

import (
	"math"
	"regexp"
)

// Range bounds a number. The zero value allows every finite number.
type Range struct {
	Min, Max         float64
	HasMin, HasMax   bool
	OpenMin, OpenMax bool // the bound is excluded
}

func atLeast(min float64) Range { return Range{Min: min, HasMin: true} }
func above(min float64) Range   { return Range{Min: min, HasMin: true, OpenMin: true} }
func between(min, max float64) Range {
	return Range{Min: min, Max: max, HasMin: true, HasMax: true}
}

// below sets an exclusive upper bound.
func (r Range) below(max float64) Range {
	r.Max, r.HasMax, r.OpenMax = max, true, true
	return r
}

// upTo sets an inclusive upper bound.
func (r Range) upTo(max float64) Range {
	r.Max, r.HasMax, r.OpenMax = max, true, false
	return r
}

// Has reports whether x is in the range.
func (r Range) Has(x float64) bool {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return false
	}
	if r.HasMin && (x < r.Min || r.OpenMin && x == r.Min) {
		return false
	}
	return !r.HasMax || x < r.Max || !r.OpenMax && x == r.Max
}

// format writes the range in the key's notation, "> 0 and < 1"; "" if every number is
// allowed.
func (r Range) format(k *Key) string {
	if r.HasMin && r.HasMax && r.Min == r.Max {
		return formatNumber(k, r.Min)
	}
	var s string
	if r.HasMin {
		s = ">= "
		if r.OpenMin {
			s = "> "
		}
		s += formatNumber(k, r.Min)
	}
	if r.HasMax {
		if s != "" {
			s += " and "
		}
		if r.OpenMax {
			s += "< "
		} else {
			s += "<= "
		}
		s += formatNumber(k, r.Max)
	}
	return s
}

// formatNumber writes a bound of the range as a value of the key.
func formatNumber(k *Key, x float64) string {
	switch k.Kind {
	case Float:
		return formatFloat(x)
	default:
		return formatScalar(k.Kind, int64(x))
	}
}

// Pattern constrains a text value.
type Pattern struct {
	Text string // what it allows, in words
	expr *regexp.Regexp
}

func pattern(text, expr string) *Pattern {
	return &Pattern{Text: text, expr: regexp.MustCompile(`^(?:` + expr + `)$`)}
}
