package kerneltest

import (
	"fmt"
	"math"

	"exp/kernels"
)

// compare runs f on the backend under test and on the reference and compares
// every output: bits, or within the tolerance of op.
func (s *subject) compare(op string, f func(c *call)) error {
	got, err := run(s.b, f)
	if err != nil {
		return err
	}
	s.know(got)
	want, err := s.reference(f)
	if err != nil {
		return fmt.Errorf("reference: %w", err)
	}
	return same(got, want, s.tolerance(op))
}

// tolerance is how near to the reference's the results of op must be.
func (s *subject) tolerance(op string) tolerance {
	if s.exact {
		return exactly
	}
	return toleranceOf(op, s.b.Float())
}

// identical runs f and g on the backend under test, whose outputs must have the
// same bits.
func (s *subject) identical(f, g func(c *call)) error {
	got, err := run(s.b, f)
	if err != nil {
		return err
	}
	want, err := run(s.b, g)
	if err != nil {
		return err
	}
	return same(got, want, exactly)
}

// same compares outputs in order.
func same(got, want []result, tol tolerance) error {
	if len(want) == 0 {
		return errNoResult
	}
	if len(got) != len(want) {
		return fmt.Errorf("%d outputs, want %d", len(got), len(want))
	}
	for i := range want {
		if err := want[i].matches(got[i].image, tol); err != nil {
			return err
		}
	}
	return nil
}

// matches reports the first element of got that is not within tol of w.
func (w result) matches(got image, tol tolerance) error {
	if got.len() != w.len() {
		return fmt.Errorf("%s has %d elements, want %d", w.name, got.len(), w.len())
	}
	if w.differs(got, 0, w.len()) < 0 {
		return nil
	}
	for i := range w.len() {
		if !w.near(got, i, tol) {
			return fmt.Errorf("%s[%d] = %s, want %s (%d elements)%s", w.name, i, got.text(i), w.text(i),
				w.len(), tol.text())
		}
	}
	return nil
}

// near reports whether element i of got equals w's within tol. NaN is near
// NaN, whatever its payload.
func (w image) near(got image, i int, tol tolerance) bool {
	if w.bits(i) == got.bits(i) {
		return true
	}
	if w.i != nil {
		return false
	}
	g, v := got.float(i), w.float(i)
	if g != g && v != v {
		return true
	}
	if tol == exactly || math.IsInf(v, 0) {
		return false
	}
	return math.Abs(g-v) <= tol.abs+tol.rel*math.Abs(v)
}

// float returns element i of an image of floats.
func (v image) float(i int) float64 {
	if v.d != nil {
		return v.d[i]
	}
	return float64(v.f[i])
}

func (v image) text(i int) string {
	switch {
	case v.i != nil:
		return fmt.Sprint(v.i[i])
	case v.d != nil:
		return fmt.Sprintf("%v (%#016x)", v.d[i], v.bits(i))
	}
	return fmt.Sprintf("%v (%#08x)", v.f[i], v.bits(i))
}

// roundoff returns half a unit in the last place of 1, the largest relative
// error of rounding to t, but not below the float32 reference's.
func roundoff(t kernels.DType) float64 {
	switch t {
	case kernels.F32, kernels.F64:
		return 0x1p-24
	}
	panic("kerneltest: no tolerance for this float type")
}
