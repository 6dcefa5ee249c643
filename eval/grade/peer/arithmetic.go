package peer

import (
	"math"
	"strconv"
	"strings"

	"exp/eval/grade/pattern"
)

var (
	arithmeticToken = pattern.New(`[0-9]+\.?[0-9]*|\.[0-9]+|\*\*|[-+*/()]`)
	leadingZero     = pattern.New(`^0+[1-9][0-9]*$`)
)

// arithmetic evaluates numbers with + - * / ** and brackets as Python does, also "a or b" and "a and b": the first
// that is not 0, and the last unless one is 0. ok is false for anything else, and where Python raises an error or the
// value is not real.
func arithmetic(s string) (value float64, ok bool) {
	found := false
	for _, choice := range strings.Split(s, " or ") {
		v := 1.0
		for _, part := range strings.Split(choice, " and ") {
			x, ok := arithmeticPart(part)
			if !ok {
				return 0, false
			}
			if v != 0 {
				v = x
			}
		}
		if !found {
			value, found = v, v != 0
		}
	}
	return value, true
}

func arithmeticPart(s string) (value float64, ok bool) {
	if strings.Trim(arithmeticToken.ReplaceAllString(s, ""), " \t") != "" {
		return 0, false
	}
	e := evaluator{tokens: arithmeticToken.FindAllString(s, -1)}
	value = e.sum()
	return value, !e.failed && len(e.tokens) == 0 && !math.IsNaN(value)
}

// evaluator reads tokens from the front. After a failure its values mean nothing.
type evaluator struct {
	tokens []string
	failed bool
}

// take removes the next token if it is one of these, and returns it.
func (e *evaluator) take(any ...string) string {
	for _, t := range any {
		if len(e.tokens) > 0 && e.tokens[0] == t {
			e.tokens = e.tokens[1:]
			return t
		}
	}
	return ""
}

func (e *evaluator) sum() float64 {
	x := e.product()
	for {
		switch e.take("+", "-") {
		case "+":
			x += e.product()
		case "-":
			x -= e.product()
		default:
			return x
		}
	}
}

func (e *evaluator) product() float64 {
	x := e.signed()
	for {
		switch e.take("*", "/") {
		case "*":
			x *= e.signed()
		case "/":
			y := e.signed()
			e.failed = e.failed || y == 0
			x /= y
		default:
			return x
		}
	}
}

func (e *evaluator) signed() float64 {
	switch e.take("+", "-") {
	case "+":
		return e.signed()
	case "-":
		return -e.signed()
	}
	return e.power()
}

func (e *evaluator) power() float64 {
	x := e.atom()
	if e.take("**") != "" {
		return math.Pow(x, e.signed())
	}
	return x
}

func (e *evaluator) atom() float64 {
	if e.take("(") != "" {
		x := e.sum()
		e.failed = e.failed || e.take(")") == ""
		return x
	}
	if len(e.tokens) == 0 || leadingZero.MatchString(e.tokens[0]) {
		e.failed = true
		return 0
	}
	x, err := strconv.ParseFloat(e.tokens[0], 64)
	e.tokens = e.tokens[1:]
	e.failed = e.failed || err != nil
	return x
}
