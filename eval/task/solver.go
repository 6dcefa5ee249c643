package task

import (
	"slices"
	"strconv"
	"strings"
)

// maxSolverNumbers is the largest input of a solver: six numbers would give 793 002 normal forms.
const maxSolverNumbers = 5

// solver holds one expression of every normal form over numbers x_0 … x_{n-1}, each used at most once. The
// expressions build on each other, so evaluating all costs one operation each. Immutable; safe for
// concurrent use.
type solver struct {
	steps []step // operands before results; ascending by set of numbers used
	ends  []int  // [2^size] end of the steps whose set of numbers, as a bit mask, is at most the index
}

// step is one expression: a number, or an operator with two earlier steps.
type step struct {
	op          byte // opNumber: x_left
	left, right int32
}

// newSolver enumerates the normal forms over size numbers with the allowed operators, ordered by the set of
// numbers used. size is at most maxSolverNumbers. - needs + and / needs *: some normal forms cannot be
// written without them.
func newSolver(size int, operators string) *solver {
	s := &solver{ends: make([]int, 1<<size)}
	// Generic values: two forms over them coincide only if they are the same form, and no subexpression is
	// zero.
	generic := []int64{101, 211, 431, 877, 1777}[:size]
	var exprs []*expr // [steps] over the generic values

	for mask := 1; mask < 1<<size; mask++ {
		seen := make(map[string]bool)
		for _, st := range s.candidates(mask, operators) {
			e := s.generic(st, exprs, generic)
			if key := e.canonical(); !seen[key] {
				seen[key] = true
				s.steps = append(s.steps, st)
				exprs = append(exprs, e)
			}
		}
		s.ends[mask] = len(s.steps)
	}
	return s
}

// candidates lists the ways to build an expression that uses the numbers of mask from steps over smaller
// sets.
func (s *solver) candidates(mask int, operators string) []step {
	if mask&(mask-1) == 0 {
		bit := int32(0)
		for mask>>bit > 1 {
			bit++
		}
		return []step{{op: opNumber, left: bit}}
	}
	var list []step
	low := mask & -mask
	for part := (mask - 1) & mask; part > 0; part = (part - 1) & mask {
		if part&low == 0 {
			continue // the same two parts as the complement
		}
		for a := s.ends[part-1]; a < s.ends[part]; a++ {
			for b := s.ends[mask^part-1]; b < s.ends[mask^part]; b++ {
				list = s.combine(list, int32(a), int32(b), operators)
			}
		}
	}
	return list
}

// combine appends a op b and, if it is another form, b op a. Quotients are never operands of * or /: the
// forms of a/b·c, (a/b)/c and a/(b/c) arise as a·c/b, a/(b·c) and a·c/b, which divide by zero exactly if
// the form does.
func (s *solver) combine(list []step, a, b int32, operators string) []step {
	quotient := s.steps[a].op == '/' || s.steps[b].op == '/'
	for _, op := range []byte(operators) {
		switch op {
		case '+':
			list = append(list, step{op, a, b})
		case '-':
			list = append(list, step{op, a, b}, step{op, b, a})
		case '*':
			if !quotient {
				list = append(list, step{op, a, b})
			}
		case '/':
			if !quotient {
				list = append(list, step{op, a, b}, step{op, b, a})
			}
		}
	}
	return list
}

// generic returns st as an evaluated expression over the given numbers; exprs are the earlier steps.
func (s *solver) generic(st step, exprs []*expr, numbers []int64) *expr {
	if st.op == opNumber {
		n := numbers[st.left]
		return &expr{op: opNumber, number: n, value: fraction{n, 1}}
	}
	a, b := exprs[st.left], exprs[st.right]
	return &expr{op: st.op, left: a, right: b, value: a.value.apply(st.op, b.value)}
}

// values computes every expression over numbers, which may be fewer than the solver's size, into dst. all
// is the first step that uses all numbers.
func (s *solver) values(dst []fraction, numbers []int64) (values []fraction, all int) {
	full := 1<<len(numbers) - 1
	dst = dst[:0]
	for _, st := range s.steps[:s.ends[full]] {
		if st.op == opNumber {
			dst = append(dst, fraction{numbers[st.left], 1})
		} else {
			dst = append(dst, dst[st.left].apply(st.op, dst[st.right]))
		}
	}
	return dst, s.ends[full-1]
}

// solutions returns, sorted, the normal forms among values[from:] that equal target. Equal numbers make
// forms coincide; each is listed once.
func (s *solver) solutions(values []fraction, from int, numbers []int64, target int64) []string {
	var found []string
	for i := from; i < len(values); i++ {
		if values[i].is(target) {
			found = append(found, s.expression(i, values, numbers).canonical())
		}
	}
	slices.SortFunc(found, strings.Compare)
	return slices.Compact(found)
}

// expression returns step i over numbers, with values.
func (s *solver) expression(i int, values []fraction, numbers []int64) *expr {
	st := s.steps[i]
	if st.op == opNumber {
		n := numbers[st.left]
		return &expr{op: opNumber, number: n, value: values[i]}
	}
	return &expr{
		op:    st.op,
		left:  s.expression(int(st.left), values, numbers),
		right: s.expression(int(st.right), values, numbers),
		value: values[i],
	}
}

func itoa(n int64) string { return strconv.FormatInt(n, 10) }
