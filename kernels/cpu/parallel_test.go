package cpu

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"exp/kernels"
)

// Every unit of an operation is computed exactly once, before the operation returns:
// whatever the number of threads, whether they were spinning or asleep, and whether or
// not others want the processors.
func TestEveryUnitOnce(t *testing.T) {
	for _, threads := range []int{1, 2, 3, 8} {
		t.Run(fmt.Sprint(threads), func(t *testing.T) { everyUnitOnce(t, threads, 200) })
		t.Run(fmt.Sprintf("%d, busy", threads), func(t *testing.T) {
			stop := make(chan struct{})
			defer close(stop)
			for range runtime.NumCPU() {
				go func() {
					for {
						select {
						case <-stop:
							return
						default:
						}
					}
				}()
			}
			everyUnitOnce(t, threads, 20)
		})
	}
}

func everyUnitOnce(t *testing.T, threads, operations int) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	be, err := Open(Options{Threads: threads})
	if err != nil {
		t.Fatal(err)
	}
	defer be.Close()
	const most = 40*vectorUnit + 5
	dst, one := be.mustAlloc(most), be.mustAlloc(most)
	defer be.Free(dst)
	defer be.Free(one)
	be.Zero(dst)
	got, want, ones := kernels.Elems[float32](dst), make([]float32, most), kernels.Elems[float32](one)
	for i := range ones {
		ones[i] = 1
	}
	for range operations {
		n := 1 + r.IntN(most)
		be.Add(dst.Slice(0, n), one.Slice(0, n))
		for i := range n {
			want[i]++
		}
		for i := range want {
			if got[i] != want[i] {
				t.Fatalf("%d elements: element %d was added to %v times, want %v", n, i, got[i], want[i])
			}
		}
		if r.IntN(10) == 0 {
			time.Sleep(time.Duration(r.IntN(600)) * time.Microsecond) // some fall asleep
		}
	}
}
