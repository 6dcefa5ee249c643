package form

import (
	"errors"
	"fmt"
	"regexp/syntax"
	"slices"
	"unicode"
	"unicode/utf8"
)

// regex returns the whole texts that a regular expression matches. ^ and $ may stand at the beginning and the end,
// where they change nothing.
func regex(pattern string) (expr, error) { return readRegex(pattern, anchored, char) }

// search returns the texts in which a regular expression matches some part; char writes characters.
func search(pattern string, char func(lo, hi rune) expr) (expr, error) {
	return readRegex(pattern, open, char)
}

func readRegex(pattern string, ends side, char func(lo, hi rune) expr) (expr, error) {
	re, err := syntax.Parse(pattern, syntax.Perl)
	var e *syntax.Error
	if errors.As(err, &e) {
		return nil, fmt.Errorf("%s: %q; the syntax is RE2's, which has neither look-around nor back references",
			e.Code, e.Expr)
	}
	if err != nil {
		return nil, err
	}
	return regexReader{char}.read(re, ends, ends)
}

// side says what borders a part of an expression on one side.
type side int

const (
	inside   side = iota // other parts, so no anchor may stand there
	anchored             // nothing
	open                 // any text, unless an anchor stands there
)

// regexReader turns parsed expressions into a grammar's.
type regexReader struct {
	char func(lo, hi rune) expr
}

// read returns the texts of an expression, with any text on the sides that are open.
func (x regexReader) read(re *syntax.Regexp, before, after side) (expr, error) {
	switch re.Op {
	case syntax.OpCapture:
		return x.read(re.Sub[0], before, after)
	case syntax.OpAlternate:
		var list []expr
		for _, sub := range re.Sub {
			e, err := x.read(sub, before, after)
			if err != nil {
				return nil, err
			}
			list = append(list, e)
		}
		return alt(list...), nil
	case syntax.OpConcat:
		return x.sequence(re.Sub, before, after)
	case syntax.OpBeginText, syntax.OpEndText:
		return x.sequence([]*syntax.Regexp{re}, before, after)
	}
	e, err := x.part(re)
	return seq(x.free(before), e, x.free(after)), err
}

// free returns any text on a side that is open.
func (x regexReader) free(s side) expr {
	if s == open {
		return star(x.char(0, utf8.MaxRune))
	}
	return empty
}

// sequence returns the texts of some expressions one after another.
func (x regexReader) sequence(subs []*syntax.Regexp, before, after side) (expr, error) {
	for len(subs) > 0 && subs[0].Op == syntax.OpBeginText && before != inside {
		before, subs = anchored, subs[1:]
	}
	for len(subs) > 0 && subs[len(subs)-1].Op == syntax.OpEndText && after != inside {
		after, subs = anchored, subs[:len(subs)-1]
	}
	if len(subs) == 0 {
		return seq(x.free(before), x.free(after)), nil
	}
	list := make([]expr, len(subs))
	for i, sub := range subs {
		l, r := inside, inside
		if i == 0 {
			l = before
		}
		if i == len(subs)-1 {
			r = after
		}
		var err error
		if sub.Op == syntax.OpBeginText || sub.Op == syntax.OpEndText {
			_, err = x.part(sub)
		} else {
			list[i], err = x.read(sub, l, r)
		}
		if err != nil {
			return nil, err
		}
	}
	return seq(list...), nil
}

// part returns the texts of an expression within others.
func (x regexReader) part(re *syntax.Regexp) (e expr, err error) {
	switch re.Op {
	case syntax.OpNoMatch:
		return never, nil
	case syntax.OpEmptyMatch:
		return empty, nil
	case syntax.OpLiteral:
		return x.literal(re), nil
	case syntax.OpCharClass:
		var list []expr
		for i := 0; i < len(re.Rune); i += 2 {
			list = append(list, x.char(re.Rune[i], re.Rune[i+1]))
		}
		return alt(list...), nil
	case syntax.OpAnyCharNotNL:
		return alt(x.char(0, '\n'-1), x.char('\n'+1, utf8.MaxRune)), nil
	case syntax.OpAnyChar:
		return x.char(0, utf8.MaxRune), nil
	case syntax.OpQuest, syntax.OpStar, syntax.OpPlus, syntax.OpRepeat:
		e, err = x.read(re.Sub[0], inside, inside)
		if err != nil {
			return nil, err
		}
	}
	switch re.Op {
	case syntax.OpQuest:
		return optional(e), nil
	case syntax.OpStar:
		return star(e), nil
	case syntax.OpPlus:
		return repeat(e, 1, -1), nil
	case syntax.OpRepeat:
		return repeat(e, re.Min, re.Max), nil
	}
	return nil, fmt.Errorf("%q is not supported where it stands", re.String())
}

// literal returns the texts of a literal, which may leave the case of letters open.
func (x regexReader) literal(re *syntax.Regexp) expr {
	var list []expr
	for _, r := range re.Rune {
		spellings := []rune{r}
		if re.Flags&syntax.FoldCase != 0 {
			for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
				spellings = append(spellings, f)
			}
		}
		slices.Sort(spellings)
		var one []expr
		for _, f := range spellings {
			one = append(one, x.char(f, f))
		}
		list = append(list, alt(one...))
	}
	return seq(list...)
}
