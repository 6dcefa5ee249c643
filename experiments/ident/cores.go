package ident

import (
	"cmp"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
)

// OnAllCores calls f(i) for every input i, of sizes[i] bytes, and returns when all calls have
// returned. As many calls run at once as there are processors, the largest inputs first, so that
// the last calls end at about the same time. SHA-256 is a chain, so hashing one input takes one
// processor.
func OnAllCores(sizes []int64, f func(i int)) {
	order := make([]int, len(sizes))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(sizes[b], sizes[a]) })
	var next atomic.Int64
	var calls sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(order)) {
		calls.Go(func() {
			for i := next.Add(1); i <= int64(len(order)); i = next.Add(1) {
				f(order[i-1])
			}
		})
	}
	calls.Wait()
}
