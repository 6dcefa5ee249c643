package cpu

import (
	"fmt"
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

// TestConformance runs the suite in both numerics classes at every instruction level
// that this machine has, and with numbers of threads that do and do not divide the
// work.
func TestConformance(t *testing.T) {
	for _, operand := range []kernels.DType{kernels.F32, kernels.BF16} {
		best := AVX512 // AMX adds nothing in float32
		if operand == kernels.BF16 {
			best = AMX
		}
		for l := best; l >= Portable; l-- {
			for _, threads := range []int{1, 2, 3, 8} {
				if threads != 2 && l != min(best, BestLevel()) || testing.Short() && threads == 8 {
					continue
				}
				t.Run(fmt.Sprintf("operand=%s/level=%s/threads=%d", operand, l, threads), func(t *testing.T) {
					if !l.Supported() {
						t.Skipf("this machine does not support %s", l)
					}
					kerneltest.Test(t, func() kernels.Backend {
						return openAs(t, Options{Level: &l, Threads: threads, Operand: operand})
					})
				})
			}
		}
	}
}
