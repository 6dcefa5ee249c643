package ident

import (
	"runtime"
	"slices"
	"sync"
	"testing"
)

// Every input is taken once, on one processor in the order of size.
func TestOnAllCores(t *testing.T) {
	sizes := []int64{3, 9, 0, 9, 5}
	var mu sync.Mutex
	for _, cores := range []int{1, 4} {
		before := runtime.GOMAXPROCS(cores)
		var taken []int
		OnAllCores(sizes, func(i int) {
			mu.Lock()
			defer mu.Unlock()
			taken = append(taken, i)
		})
		runtime.GOMAXPROCS(before)
		want := []int{1, 3, 4, 0, 2}
		if cores > 1 {
			slices.Sort(taken)
			slices.Sort(want)
		}
		if !slices.Equal(taken, want) {
			t.Errorf("%d processors took inputs %v, want %v", cores, taken, want)
		}
	}
	OnAllCores(nil, func(int) { t.Error("an input was taken from none") })
}
