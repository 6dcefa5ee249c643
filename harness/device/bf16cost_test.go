package device

import (
	"testing"

	"exp/kernels/cpu"
)

func TestBF16Cost(t *testing.T) {
	for l := cpu.Portable; l <= cpu.BestLevel(); l++ {
		cost, err := BF16Cost(l.String())
		t.Logf("%s: %.2f times float32", l, cost)
		if err != nil || (cost > 0) != (l < cpu.AVX512BF16) || cost > 100 {
			t.Errorf("%s: %v, %v", l, cost, err)
		}
	}
	if cost, err := MatrixCost(cpu.BestLevel().String()); err != nil || !(cost > 1) {
		t.Errorf("emulating tensor cores: %v, %v", cost, err)
	}
	if _, err := BF16Cost("sse9"); err == nil {
		t.Error("an unknown level has a cost")
	}
}
