package stage

import (
	"math"
	"testing"

	"exp/train/rl"
)

// A value that is not finite is never the best, and any number is better than none.
func TestBestOfNaN(t *testing.T) {
	for _, least := range []bool{false, true} {
		b := &bestWeights{metric: "val/x", least: least}
		for i, tt := range []struct {
			value  float64
			better bool
		}{{math.NaN(), false}, {1, true}, {math.NaN(), false}, {math.Inf(1), false}, {math.Inf(-1), false},
			{2, !least}, {0, least}} {
			v, better := b.improves([]rl.Metric{fact("val/y", 9), fact("val/x", tt.value)})
			if better != tt.better || v != tt.value && !math.IsNaN(tt.value) {
				t.Errorf("least %v, validation %d: %v, %v; want %+v", least, i, v, better, tt)
			}
			if better {
				b.best = &Best{Step: i, Value: v}
			}
		}
		if v, better := b.improves([]rl.Metric{fact("val/y", 9)}); better || !math.IsNaN(v) {
			t.Errorf("least %v, without the metric: %v, %v", least, v, better)
		}
	}
}
