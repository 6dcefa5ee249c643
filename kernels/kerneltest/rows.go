package kerneltest

import (
	"fmt"
	"math"

	"exp/kernels"
)

// rowCase is an operation whose outputs have a row for every row of its
// arguments. Everything else that it needs, such as weights, run makes itself.
type rowCase struct {
	name string
	op   string  // for the tolerance
	rows []field // arguments with a row per row of the output
	// large leaves out the laws, which smaller or fewer cases of the operation check:
	// a dozen calls with their own buffers.
	large bool
	run   func(c *call, in []kernels.Buffer, M int)
}

// field is an argument of M rows.
type field struct {
	name    string
	width   int
	f       []float32 // [M,width], or
	i       []int32   // [M,width]
	inout   bool      // is written over: part of the result
	operand bool      // of the Operand type
	finite  bool      // must stay a valid number
}

// run computes the rows of rc that idx names.
func (rc rowCase) compute(b kernels.Backend, idx []int) ([]result, error) {
	return run(b, func(c *call) { rc.invoke(c, idx) })
}

func (rc rowCase) invoke(c *call, idx []int) {
	in := make([]kernels.Buffer, len(rc.rows))
	for j, x := range rc.rows {
		switch {
		case x.i != nil:
			in[j] = c.ints(x.name, pick(x.i, x.width, idx))
		case x.inout && x.operand:
			in[j] = c.inoutOperands(x.name, pick(x.f, x.width, idx))
		case x.operand:
			in[j] = c.operands(x.name, pick(x.f, x.width, idx))
		case x.inout:
			in[j] = c.inout(x.name, pick(x.f, x.width, idx))
		default:
			in[j] = c.floats(x.name, pick(x.f, x.width, idx))
		}
	}
	rc.run(c, in, len(idx))
}

// pick returns the rows idx of x.
func pick[E any](x []E, width int, idx []int) []E {
	y := make([]E, 0, len(idx)*width)
	for _, r := range idx {
		y = append(y, x[r*width:(r+1)*width]...)
	}
	return y
}

// upTo returns 0 to n-1.
func upTo(n int) []int {
	x := make([]int, n)
	for i := range x {
		x[i] = i
	}
	return x
}

// checkRows compares the M rows of rc with the reference and checks that each
// depends on itself alone.
func (s *subject) checkRows(rc rowCase, M int) error {
	err := s.compare(rc.op, func(c *call) { rc.invoke(c, upTo(M)) })
	if err == nil {
		err = s.checkRowLaws(rc, M)
	}
	if err != nil {
		return fmt.Errorf("%s, %d rows: %w", rc.name, M, err)
	}
	return nil
}

// checkRowLaws checks that each of M rows depends on itself alone.
func (s *subject) checkRowLaws(rc rowCase, M int) error {
	if rc.large {
		return nil
	}
	all, err := rc.compute(s.b, upTo(M))
	if err != nil {
		return err
	}
	if err := s.checkRowsAlone(rc, all, M); err != nil {
		return err
	}
	return s.checkPoison(rc, all, M)
}

// checkRowsAlone computes some rows by themselves and others in any order; all
// are the outputs of all M rows.
func (s *subject) checkRowsAlone(rc rowCase, all []result, M int) error {
	r := newStream("rows of " + rc.name)
	order := r.permutation(M)
	subsets := [][]int{order, order[:(M+1)/2], {0}, {M - 1}, {r.intn(M)}}
	for _, idx := range subsets {
		some, err := rc.compute(s.b, idx)
		if err != nil {
			return err
		}
		if err := same(some, rowsOf(all, M, idx), exactly); err != nil {
			return fmt.Errorf("rows %v are not what they are within all: %w", idx, err)
		}
	}
	return nil
}

// rowsOf returns the rows idx of outputs of M rows.
func rowsOf(all []result, M int, idx []int) []result {
	some := make([]result, len(all))
	for j, x := range all {
		some[j].name = x.name
		switch {
		case x.i != nil:
			some[j].i = pick(x.i, len(x.i)/M, idx)
		case x.d != nil:
			some[j].d = pick(x.d, len(x.d)/M, idx)
		default:
			some[j].f = pick(x.f, len(x.f)/M, idx)
		}
	}
	return some
}

// checkPoison puts NaN and infinities into one row, which must not change the
// others; clean are the outputs without. Backends that promise bits must also
// agree on what becomes of the row.
func (s *subject) checkPoison(rc rowCase, clean []result, M int) error {
	r := newStream("poison of " + rc.name)
	for _, v := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		at := r.intn(M)
		bad := rc
		bad.rows = rc.poisoned(at, float32(v), r)
		if bad.rows == nil {
			return nil
		}
		got, err := bad.compute(s.b, upTo(M))
		if err != nil {
			return err
		}
		others := append(upTo(M)[:at:at], upTo(M)[at+1:]...)
		if err := same(rowsOf(got, M, others), rowsOf(clean, M, others), exactly); err != nil {
			return fmt.Errorf("%v in row %d reached the others (%d before it): %w", v, at, at, err)
		}
		if !s.exact {
			s.pass()
			continue
		}
		s.know(got)
		want, err := s.reference(func(c *call) { bad.invoke(c, upTo(M)) })
		if err != nil {
			return fmt.Errorf("reference: %w", err)
		}
		if err := same(got, want, exactly); err != nil {
			return fmt.Errorf("%v in row %d: %w", v, at, err)
		}
	}
	return nil
}

// poisoned returns the fields with v in row at: everywhere if v is NaN, else in
// one element. It is nil if no field can hold it.
func (rc rowCase) poisoned(at int, v float32, r *stream) []field {
	fields := append([]field(nil), rc.rows...)
	found := false
	for j := range fields {
		x := &fields[j]
		if x.f == nil || x.finite || x.width == 0 {
			continue
		}
		found = true
		x.f = append([]float32(nil), x.f...)
		row := x.f[at*x.width : (at+1)*x.width]
		if v == v {
			row = row[r.intn(len(row)):][:1]
		}
		for i := range row {
			row[i] = v
		}
	}
	if !found {
		return nil
	}
	return fields
}
