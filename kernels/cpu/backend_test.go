package cpu

import (
	"fmt"
	"os"
	"testing"

	"exp/kernels"
	"exp/kernels/kerneltest"
)

func open(t testing.TB, l Level, threads int) *Backend {
	t.Helper()
	return openAs(t, Options{Level: &l, Threads: threads})
}

func openAs(t testing.TB, o Options) *Backend {
	t.Helper()
	b, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	return b
}

// TestConformance runs the suite in all numerics classes at every instruction level
// that this machine has, with numbers of threads that do and do not divide the work: 3 at
// the best level and 2 at the others. EXP_TEST_ALL=1 takes the best level through 1, 2, 3
// and 8, which the tests of whole training steps do as well. Class "matrix/16x25", on the tiles of "cpu/bf16", takes
// small shapes, and not the level that adds its products one by one.
func TestConformance(t *testing.T) {
	counts := []int{3}
	if os.Getenv("EXP_TEST_ALL") != "" {
		counts = []int{1, 2, 3, 8}
	}
	for _, o := range []Options{{Operand: kernels.F32}, {Operand: kernels.BF16}, {Matrix: true}} {
		suite, name := kerneltest.NewSuite(), fmt.Sprint("operand=", o.Operand)
		best := AVX512 // AMX adds nothing in float32
		switch {
		case o.Matrix:
			name = "matrix"
		case o.Operand == kernels.BF16:
			best = AMX
		}
		for l := best; l >= Portable; l-- {
			at := []int{2}
			if l == min(best, BestLevel()) {
				at = counts
			}
			for _, threads := range at {
				t.Run(fmt.Sprintf("%s/level=%s/threads=%d", name, l, threads), func(t *testing.T) {
					if !l.Supported() {
						t.Skipf("this machine does not support %s", l)
					}
					if o.Matrix && !triesLarge(l) {
						t.Skip("left out without EXP_TEST_ALL=1")
					}
					suite.Small = (o.Matrix || l < min(best, BestLevel())) && !testsAll()
					suite.Test(t, func() kernels.Backend {
						return openAs(t, Options{Level: &l, Threads: threads, Operand: o.Operand, Matrix: o.Matrix})
					})
				})
			}
		}
	}
}

func testsAll() bool { return os.Getenv("EXP_TEST_ALL") != "" }

// triesLarge reports whether large operations are tried at a level. The one in plain C takes most
// of the time where another is the best; small operations and EXP_TEST_ALL=1 try it.
func triesLarge(l Level) bool { return l == BestLevel() || l > Portable || testsAll() }
