package ref

import "testing"

func TestLaneSumOrder(t *testing.T) {
	// 2²⁴ absorbs a 1 in float32 (2²⁴+1 rounds to 2²⁴), so the result shows who
	// was added to whom.
	const big = 1 << 24
	x := make([]float32, 18)
	x[0], x[8], x[16] = big, 1, 1
	// Lane 0: (big + x[16]) = big. Then lane 0 + lane 8: big + 1 = big.
	wantExact(t, "one lane after the other", []float32{LaneSum(x)}, []float32{big})

	x = make([]float32, 18)
	x[0], x[1], x[17], x[9] = big, 1, 1, 2
	// Lane 1: 1+1 = 2; +8: lane 1 = 2+2 = 4; last: lane 0 + lane 1 = big + 4.
	wantExact(t, "lane 1 first", []float32{LaneSum(x)}, []float32{big + 4})

	x = make([]float32, 16)
	x[0], x[4], x[2], x[1] = big, 1, 1, 1
	// +4: big+1 = big; +2: big+1 = big; +1: big+1 = big.
	wantExact(t, "tree", []float32{LaneSum(x)}, []float32{big})

	x = make([]float32, 16)
	x[0], x[6], x[2] = big, 1, 1
	// +8: nothing; +4: lane 2 = 1+1 = 2; +2: lane 0 = big+2.
	wantExact(t, "tree of 2 and 6", []float32{LaneSum(x)}, []float32{big + 2})

	if got := LaneSum([]float32(nil)); got != 0 {
		t.Errorf("LaneSum of nothing = %v, want 0", got)
	}
}

func TestLaneDotFuses(t *testing.T) {
	// Both products are in lane 0. (1+2⁻²³)² = 1+2⁻²²+2⁻⁴⁶ loses its tail when it is
	// rounded alone; fma keeps it: -(1+2⁻²²) + (1+2⁻²³)² = 2⁻⁴⁶.
	a := make([]float32, 17)
	b := make([]float32, 17)
	a[0], b[0] = -(1 + 0x1p-22), 1
	a[16], b[16] = 1+0x1p-23, 1+0x1p-23
	wantExact(t, "LaneDot", []float32{LaneDot(a, b)}, []float32{0x1p-46})
	wantPanic(t, "ref: LaneDot: length mismatch", func() { LaneDot(a, b[:3]) })
}
