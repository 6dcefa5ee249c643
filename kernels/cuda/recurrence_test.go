//go:build cuda

package cuda

import (
	"math"
	"regexp"
	"strconv"
	"testing"

	"exp/kernels"
	"exp/kernels/ref"
)

// Heads that wait for others, for want of memory, and more sequences than blocks give the reference's gradients. The suite's
// batches are too small for either.
func TestDeltaHeadsInTurns(t *testing.T) {
	s := kernels.DeltaShape{Keys: 5, Values: 10, KeyDim: 4, ValueDim: 18, Taps: 1}
	const S, each = 61, 3
	var offsets, groups []int32
	for j := range int32(S + 1) {
		offsets = append(offsets, j*each)
	}
	for _, g := range []int32{0, 1, 9, 9, 30, S} {
		groups = append(groups, g)
	}
	const M = S * each
	u, dout := waves(M*s.Mixed(), 0.3), waves(M*s.Out(), 0.7)
	gates := waves(M*2*s.Values, 0.9)
	for i := range gates {
		gates[i] = 0.5 + gates[i]/4
	}
	wantU, wantGates := make([]float32, len(u)), make([]float32, len(gates))
	ref.DeltaRuleBackward(wantU, wantGates, dout, u, gates, offsets, groups, s)

	b := open(t)
	b.deltaKept = 2 * deltaRoom(s, M, S, true, 0).kept * 2
	if n := deltaRoom(s, M, S, true, b.deltaKept).heads; n < 2 || n > 4 || S*n > deltaBlocks {
		t.Fatalf("%d heads at a time", n)
	}
	run := func() {
		t.Helper()
		du, dgates := upload(t, b, kernels.F32, make([]float32, len(u))), upload(t, b, kernels.F32, make([]float32, len(gates)))
		b.DeltaRuleBackward(du, dgates, operands(t, b, dout), operands(t, b, u), upload(t, b, kernels.F32, gates),
			kernels.Runs{Offsets: upload(t, b, kernels.I32, offsets), Groups: upload(t, b, kernels.I32, groups)}, s)
		for what, pair := range map[string][2][]float32{"rows": {read32(b, du), wantU}, "gates": {read32(b, dgates), wantGates}} {
			for i, x := range pair[0] {
				if math.Float32bits(x) != math.Float32bits(pair[1][i]) {
					t.Fatalf("gradient %d of %s is %v, want %v", i, what, x, pair[1][i])
				}
			}
		}
	}
	run()
	b.deltaKept = deltaKeptRoom
	if n := deltaRoom(s, M, S, true, b.deltaKept).heads; S*n <= deltaBlocks {
		t.Fatalf("%d heads of %d sequences are no more than blocks", n, S)
	}
	run()
}

// Plans have room for what the gradients take, however many sequences the rows are.
func TestDeltaScratch(t *testing.T) {
	for _, s := range []kernels.DeltaShape{
		{Keys: 16, Values: 32, KeyDim: 128, ValueDim: 128, Taps: 4},
		{Keys: 2, Values: 4, KeyDim: 64, ValueDim: 96, Taps: 4},
		{Keys: 1, Values: 1, KeyDim: 300, ValueDim: 300, Taps: 4},
	} {
		for _, M := range []int{8, 1000, 16384, 40000} {
			most := M / 2
			planned := DeltaScratch(s, M, most, true)
			for S := 1; S <= most; S += 1 + S/7 {
				for _, grouped := range []bool{false, true} {
					if n := deltaRoom(s, M, S, grouped, deltaKeptRoom).all(); n > planned {
						t.Fatalf("%+v, %d rows of %d sequences: %d elements, planned %d", s, M, S, n, planned)
					}
				}
			}
		}
	}
}

// The numbers that Go and kernels share are the same.
func TestDeltaConstants(t *testing.T) {
	text := read(t, "args.h")
	for name, want := range map[string]int{"DELTA_THREADS": deltaColumns, "DELTA_KEY": deltaKey, "DELTA_KEEP": deltaKeep} {
		m := regexp.MustCompile(`#define ` + name + ` (\d+)`).FindStringSubmatch(text)
		if m == nil {
			t.Fatalf("args.h has no %s", name)
		}
		if n, _ := strconv.Atoi(m[1]); n != want {
			t.Errorf("%s is %d, in Go %d", name, n, want)
		}
	}
}

// Heads whose keys alone have the channels of published models do not lie in registers.
func TestDeltaKeysAlone(t *testing.T) {
	s := kernels.DeltaShape{Keys: 1, Values: 2, KeyDim: deltaKey, ValueDim: 18, Taps: 1}
	offsets := []int32{0, 3, 8}
	const M = 8
	u, gates, want := waves(M*s.Mixed(), 0.3), waves(M*2*s.Values, 0.9), make([]float32, M*s.Out())
	ref.DeltaRule(want, u, gates, nil, offsets, nil, nil, s)
	b := open(t)
	out := upload(t, b, kernels.F32, make([]float32, M*s.Out()))
	b.DeltaRule(out, operands(t, b, u), upload(t, b, kernels.F32, gates), kernels.Buffer{},
		kernels.Runs{Offsets: upload(t, b, kernels.I32, offsets)}, s)
	for i, x := range read32(b, out) {
		if math.Float32bits(x) != math.Float32bits(want[i]) {
			t.Fatalf("output %d is %v, want %v", i, x, want[i])
		}
	}
}

// Heads that do not fit into a block's shared memory are those that DeltaFits refuses, and keys of 128 channels, which
// published models have, always fit.
func TestDeltaFits(t *testing.T) {
	for _, tt := range []struct {
		key, value      int
		samples, learns bool
	}{{128, 128, true, true}, {128, 4096, true, true}, {64, 64, true, true}, {448, 448, true, true}, {491, 64, true, true}, {492, 64, true, false},
		{512, 16, true, true}, {512, 64, true, false}, {1000, 64, true, false}, {1228, 64, true, false}, {1229, 64, false, false}} {
		s := kernels.DeltaShape{Keys: 1, Values: 1, KeyDim: tt.key, ValueDim: tt.value, Taps: 1}
		if a, b := DeltaFits(s, false), DeltaFits(s, true); a != tt.samples || b != tt.learns {
			t.Errorf("heads of %d and %d channels: %v, %v, want %v, %v", tt.key, tt.value, a, b, tt.samples, tt.learns)
		}
	}
}
