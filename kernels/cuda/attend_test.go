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

// Heads that share keys, more of them than a block has rows, and pages that no row sees.
func TestAttendPages(t *testing.T) {
	for _, s := range []kernels.AttentionShape{
		{H: 14, K: 2, D: 132}, {H: 18, K: 1, D: 24}, {H: 3, K: 1, D: 65, Window: 10}, {H: 2, K: 2, D: 5, Cap: 3},
	} {
		s.Scale = 1 / math.Sqrt(float64(s.D))
		for _, size := range []int{16, 48} {
			for class, want := range plainClasses() {
				t.Run(fmt.Sprintf("%s/%+v/%d", class, s, size), func(t *testing.T) {
					sameBits(t, pagedOn(t, openIn(t, class), s, size), pagedOn(t, want, s, size))
				})
			}
		}
	}
}
