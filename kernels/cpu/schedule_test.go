package cpu

import (
	"slices"
	"testing"
)

// Threads that take the blocks of a product in order finish together, on more processors than this
// machine may have: the slowest thread works little longer than the mean. The test computes that
// from the blocks, where a panel of columns for a strip of rows counts as one. Sizes are the
// products of models of 10 and 50 million parameters and of an output layer of 32,000 tokens.
func TestThreadsFinishTogether(t *testing.T) {
	for _, c := range []struct {
		threads int
		most    float64 // of the slowest thread's work over the mean
	}{{2, 1.1}, {8, 1.1}, {64, 1.25}} {
		b := openAs(t, Options{Threads: c.threads})
		mr, nr := int(b.k.mr), int(b.k.nr)
		for _, s := range []struct{ m, n, k int }{{4096, 1024, 512}, {4096, 4096, 512}, {16384, 2048, 256},
			{16384, 4096, 512}, {4096, 32_000, 512}, {64, 32_000, 896}} {
			panels := ceilDiv(s.n, nr)
			rows, groups, _ := b.shareProduct(s.m, s.n, s.k, min(s.k, longestPart), panels)
			strips := ceilDiv(s.m, mr)
			work, sum := make([]int, c.threads), 0
			for block, left := 0, strips; block < rowBlocks(rows); block++ {
				size := int(rows.many)
				if block >= int(rows.large) {
					size = int(rows.few)
				}
				size = min(size, left)
				left -= size
				for g := range groups {
					units := int(size * ((g+1)*panels/groups - g*panels/groups))
					next := slices.Index(work, slices.Min(work)) // the thread that is free first
					work[next] += units
					sum += units
				}
			}
			if want := int(strips * panels); sum != want {
				t.Fatalf("%d threads, %+v: blocks have %d units of %d", c.threads, s, sum, want)
			}
			over := float64(slices.Max(work)*c.threads) / float64(sum)
			t.Logf("%d threads, %d x %d x %d: the slowest has %.2f of the mean", c.threads, s.m, s.n, s.k, over)
			most := c.most
			if rowBlocks(rows) == 1 && c.threads <= 8 {
				most = 1.03 // each thread gets as many groups of panels
			}
			if over > most {
				t.Errorf("%d threads, %+v: the slowest has %.2f of the mean, want at most %.2f", c.threads, s, over, most)
			}
		}
	}
}
