package cpu

import (
	"fmt"
	"testing"

	"exp/kernels"
	"exp/kernels/kerneltest"
)

func open(t testing.TB, l Level, threads int) *Backend {
	t.Helper()
	b, err := Open(Options{Level: &l, Threads: threads})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	return b
}

// TestConformance runs the suite at every instruction level that this machine has,
// and with numbers of threads that do and do not divide the work.
func TestConformance(t *testing.T) {
	for l := AVX512; l >= Portable; l-- {
		for _, threads := range []int{1, 2, 3, 8} {
			if threads != 2 && l != BestLevel() || testing.Short() && threads == 8 {
				continue
			}
			t.Run(fmt.Sprintf("level=%s/threads=%d", l, threads), func(t *testing.T) {
				if !l.Supported() {
					t.Skipf("this machine does not support %s", l)
				}
				kerneltest.Test(t, func() kernels.Backend { return open(t, l, threads) })
			})
		}
	}
}
