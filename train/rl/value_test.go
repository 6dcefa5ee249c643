package rl

import "testing"

func TestValueLoss(t *testing.T) {
	tests := []struct {
		name            string
		value, old, ret float64
		loss, grad      float64
		clipped         float64
	}{
		{"inside", 1, 0.8, 3, 2, -2, 0},                                  // ½·2²
		{"moved away, clipped is nearer", 2, 1, 1, .5, 1, 0},             // v-ret = 1; vc = 1.5: 0.5² < 1
		{"moved towards, clipped is farther", 2, 1, 2.2, .5 * .49, 0, 1}, // vc = 1.5: (-0.7)² > (-0.2)²
		{"down towards", -2, 0, -2, .5 * 2.25, 0, 1},                     // vc = -0.5, 1.5²
		{"right", 1, 1, 1, 0, 0, 0},
	}
	for _, tt := range tests {
		var s ValueStats
		d := []float64{0, 7}
		ValueLoss(d, []float64{tt.value, nan}, []float64{tt.old, nan}, []float64{tt.ret, nan},
			[]bool{on, off}, []float64{4, 0}, 0.5, &s)
		if !near(d[0], 4*tt.grad, 1e-15) || d[1] != 7 {
			t.Errorf("%s: gradients %g, want %g and an untouched 7", tt.name, d, 4*tt.grad)
		}
		want := []float64{4 * tt.loss, tt.clipped, tt.value}
		for i, m := range s.Metrics() {
			if !near(m.Value, want[i], 2e-8) {
				t.Errorf("%s: %s = %g, want %g", tt.name, m.Name, m.Value, want[i])
			}
		}
	}
}

func TestExplainedVariance(t *testing.T) {
	ret := []float64{1, 2, 3, nan}
	mask := []bool{on, on, on, off}
	tests := []struct {
		name  string
		value []float64
		want  float64
	}{
		{"perfect up to a constant", []float64{5, 6, 7, nan}, 1},
		{"constant", []float64{4, 4, 4, nan}, 1 - 1/1.00001},       // var(ret) = 1 both times
		{"half", []float64{0.5, 1, 1.5, nan}, 1 - 0.25/1.00001},    // ret-value = ½ret
		{"upside down", []float64{-1, -2, -3, nan}, 1 - 4/1.00001}, // ret-value = 2ret
	}
	for _, tt := range tests {
		if got := ExplainedVariance(tt.value, ret, mask); !near(got, tt.want, 1e-14) {
			t.Errorf("%s: %.17g, want %.17g", tt.name, got, tt.want)
		}
	}
	if got := ExplainedVariance(ret[:1], ret[:1], mask[:1]); got == got {
		t.Errorf("of one token: %g, want NaN", got)
	}
}
