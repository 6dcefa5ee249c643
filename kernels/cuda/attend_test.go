//go:build cuda

package cuda

import (
	"fmt"
	"math"
	"testing"

	"exp/kernels"
	"exp/kernels/ref"
)

// plainClasses are the classes whose attention is on plain cores (attend.h), and what defines their bits.
func plainClasses() map[string]kernels.Backend {
	return map[string]kernels.Backend{"cpu/fma": ref.New[float32](), "cpu/bf16": ref.NewMixed()}
}

// The suite's heads have fewer channels than a round takes, and few of its sequences have more rows than a panel. Here
// is the rest of what blocks hold.
func TestAttend(t *testing.T) {
	for _, s := range []kernels.AttentionShape{
		{H: 1, K: 1, D: 132}, {H: 2, K: 1, D: 65, Window: 70}, {H: 3, K: 1, D: 12, Window: 20}, {H: 2, K: 2, D: 68, Cap: 3},
	} {
		s.Scale = 1 / math.Sqrt(float64(s.D))
		for name, groups := range map[string][]int32{"": nil, "groups": {0, 2, 4}} {
			for class, want := range plainClasses() {
				t.Run(fmt.Sprintf("%s/%+v%s", class, s, name), func(t *testing.T) {
					offsets := []int32{0, 21, 23, 165, 186}
					sameBits(t, attended(t, openIn(t, class), s, offsets, groups), attended(t, want, s, offsets, groups))
				})
			}
		}
	}
}

// Blocks of rows that see each other begin and end around panels of columns, and around steps: in a sequence with 142
// rows and in one behind it as its prefix.
func TestAttendAhead(t *testing.T) {
	classes := plainClasses()
	classes["matrix/16x25"] = ref.NewMatrix()
	for _, s := range []kernels.AttentionShape{{H: 1, K: 1, D: 132}, {H: 2, K: 1, D: 12, Window: 70}} {
		s.Scale = 1 / math.Sqrt(float64(s.D))
		for class, want := range classes {
			t.Run(fmt.Sprintf("%s/%+v", class, s), func(t *testing.T) {
				offsets, groups := []int32{0, 21, 23, 165, 186}, []int32{0, 2, 4}
				blocks := s
				blocks.Ahead = kernels.Host(blocksOf(186, [2]int{23 + 30, 23 + 65}, [2]int{23 + 65, 23 + 140}, [2]int{168, 181}))
				sameBits(t, attended(t, openIn(t, class), blocks, offsets, groups), attended(t, want, blocks, offsets, groups))
			})
		}
	}
}

// blocksOf returns how many rows behind it each of M rows sees, with blocks of the rows from one to another.
func blocksOf(M int, blocks ...[2]int) []int32 {
	ahead := make([]int32, M)
	for _, b := range blocks {
		for i := b[0]; i < b[1]; i++ {
			ahead[i] = int32(b[1] - 1 - i)
		}
	}
	return ahead
}

// Heads that share keys, more of them than a block has rows, and pages that no row sees.
func TestAttendPages(t *testing.T) {
	for _, s := range []kernels.AttentionShape{
		{H: 14, K: 2, D: 132}, {H: 18, K: 1, D: 24}, {H: 3, K: 1, D: 65, Window: 10}, {H: 2, K: 2, D: 5, Cap: 3},
	} {
		s.Scale = 1 / math.Sqrt(float64(s.D))
		for _, size := range []int{16, 48} {
			for class, want := range plainClasses() {
				t.Run(fmt.Sprintf("%s/%+v/%d", class, s, size), func(t *testing.T) {
					b := openIn(t, class)
					sameBits(t, pagedOn(t, b, s, size, nil), pagedOn(t, want, s, size, nil))
					if s.Window > 0 {
						sameBits(t, pagedOn(t, b, s, size, pagesAhead), pagedOn(t, want, s, size, pagesAhead))
					}
				})
			}
		}
	}
}
