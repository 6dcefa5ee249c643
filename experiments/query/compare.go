package query

import (
	"cmp"
	"strings"
	"time"
)

// compare tests a value against a literal; false if their types do not match. op is one
// of = < <= > >= ~ in.
func compare(v any, op string, l literal, now time.Time) bool {
	switch v := v.(type) {
	case string:
		if op == "~" {
			return glob(l.text, v)
		}
		if l.begins && strings.HasPrefix(v, strings.ToLower(l.text)) {
			return ordered(op, 0)
		}
		return ordered(op, strings.Compare(v, l.text))
	case bool:
		return equality(op) && (v && l.text == "true" || !v && l.text == "false")
	case float64:
		switch {
		case op == "~":
			return false
		case l.isNumber:
			return ordered(op, cmp.Compare(v, l.number))
		case l.isAge:
			return ordered(op, cmp.Compare(v, l.age.Seconds()))
		}
	case time.Time:
		switch {
		case op == "~":
			return false
		case l.isAge:
			return ordered(op, cmp.Compare(now.Sub(v), l.age))
		case l.isTime:
			return ordered(op, compareTime(v, l))
		}
	}
	return false
}

func equality(op string) bool { return op == "=" || op == "in" }

// ordered reports whether a value passes a test if it compares with the literal as c (-1,
// 0, 1).
func ordered(op string, c int) bool {
	switch op {
	case "=", "in":
		return c == 0
	case "<":
		return c < 0
	case "<=":
		return c <= 0
	case ">":
		return c > 0
	case ">=":
		return c >= 0
	}
	return false
}

// compareTime returns 0 if t is the instant of l or within its day.
func compareTime(t time.Time, l literal) int {
	switch {
	case t.Before(l.from):
		return -1
	case t.Equal(l.from), t.Before(l.to):
		return 0
	}
	return 1
}

// glob reports whether text matches pattern, where * is any characters and ? one. Its
// time is at most proportional to the product of their lengths.
func glob(pattern, text string) bool {
	p, s := []rune(pattern), []rune(text)
	star, mark := -1, 0 // the last *, and where in s what follows it is tried
	i, j := 0, 0
	for j < len(s) {
		switch {
		case i < len(p) && p[i] == '*':
			star, mark = i, j
			i++
		case i < len(p) && (p[i] == '?' || p[i] == s[j]):
			i++
			j++
		case star >= 0:
			mark++
			i, j = star+1, mark
		default:
			return false
		}
	}
	for i < len(p) && p[i] == '*' {
		i++
	}
	return i == len(p)
}
