package bench

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"exp/kernels/cpu"
	"exp/train/model"
)

// paced is a device whose peaks are known: 10, 20, 30, … GFLOP/s, and 3 GB/s.
type paced struct {
	*cpu.Backend
	peaks int
}

func (p *paced) PeakFLOPS(time.Duration) float64 {
	p.peaks++
	return 1e10 * float64(p.peaks)
}

func (p *paced) ReadBandwidth(time.Duration) float64 { return 3e9 }

func device(t *testing.T, threads int) *paced {
	t.Helper()
	b, err := cpu.Open(cpu.Options{Threads: threads})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	return &paced{Backend: b}
}

// tiny is measured in milliseconds.
func tiny() Options {
	return Options{Models: []Model{{"tiny", 2, 16, 2, 1, 24, 40}}, Batch: 3, Length: 5, Sequences: 4, Prompt: 3, New: 6, Repeat: 1, Time: time.Microsecond}
}

// diary writes down what a Watcher is told.
type diary struct{ lines []string }

func (d *diary) PartStart(p Part, model string, repeats int) {
	d.lines = append(d.lines, fmt.Sprintf("%s %s 0/%d", p, model, repeats))
}
func (d *diary) PartRepeat(done int) { d.lines = append(d.lines, fmt.Sprint(done)) }
func (d *diary) PartDone(headline float64, unit string) {
	d.lines = append(d.lines, fmt.Sprintf("done %t %s", headline > 0, unit))
}

func TestRun(t *testing.T) {
	o, be := tiny(), device(t, 2)
	before := be.Allocated()
	var told diary
	r, err := Run(context.Background(), be, device(t, 1), o, &told)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"machine  0/1", "1", "done true GFLOP/s",
		"matmul tiny 0/5", "1", "2", "3", "4", "5", "done true GFLOP/s",
		"train tiny 0/1", "1", "done true tok/s",
		"logprob tiny 0/1", "1", "done true tok/s",
		"sample tiny 0/1", "1", "done true tok/s",
	}
	if diff := cmp.Diff(want, told.lines); diff != "" {
		t.Errorf("progress (-want +got):\n%s", diff)
	}
	// One peak before the machine, each of five layers, and each of three passes.
	if got, want := r.Machine.Peak, (Spread{50, 10, 90}); got != want {
		t.Errorf("peak %v, want %v", got, want)
	}
	if r.Machine.PeakOne.Median != 10 || r.Machine.Read.Median != 3 {
		t.Errorf("machine %+v", r.Machine)
	}
	if r.Threads != 2 || r.DType != "f32" || r.Backend != be.Name() || len(r.Models) != 1 {
		t.Fatalf("report %+v", r)
	}
	m := r.Models[0]
	checkMatMuls(t, m.MatMul, *r)

	// N: per layer QKV 256×16, O 16×128, gate and up 48×16, down 16×24; output 40×16.
	const perLayer = 256*16 + 16*128 + 48*16 + 16*24
	if want := 2*perLayer + 40*16; m.Weights != want {
		t.Errorf("%d weights, want %d", m.Weights, want)
	}
	// Two layers, 2 heads of 64: a pair costs 4·2·2·64 operations.
	forward := func(tokens, scored float64) float64 {
		return 2*tokens*2*perLayer + 2*scored*40*16 + 4*2*2*64*tokens*(tokens+1)/2
	}
	for _, tt := range []struct {
		part   Part
		got    *Passes
		tokens int
		flops  float64
	}{
		{PartTrain, &m.Train.Passes, 15, 3 * 3 * forward(5, 5)},
		{PartLogProb, m.LogProb, 15, 3 * forward(5, 5)},
		{PartSample, m.Sample, 24, 4 * forward(3+6-1, 6)},
	} {
		p := tt.got
		if p.Tokens != tt.tokens || p.FLOPs != tt.flops {
			t.Errorf("%s: %d tokens, %g operations; want %d, %g", tt.part, p.Tokens, p.FLOPs, tt.tokens, tt.flops)
		}
		// One repeat: seconds, tokens and operations per second are one measurement.
		if !near(p.TokensPer.Median*p.Seconds.Median, float64(p.Tokens)) || !near(p.GFLOPS.Median*p.Seconds.Median*1e9, p.FLOPs) {
			t.Errorf("%s: %+v does not fit together", tt.part, p)
		}
		if !near(p.Share*50, p.GFLOPS.Median) || p.Memory <= 0 {
			t.Errorf("%s: share %g of 50 GFLOP/s, %d bytes: %+v", tt.part, p.Share, p.Memory, p)
		}
	}
	var phases []string
	seconds := 0.0
	for _, f := range m.Train.Phases {
		phases = append(phases, f.Name)
		seconds += f.Seconds.Median
	}
	if got := strings.Join(phases, " "); got != "forward logprob backward update pack" || !near(seconds, m.Train.Seconds.Median) {
		t.Errorf("phases %s take %g s, the step %g", got, seconds, m.Train.Seconds.Median)
	}
	// Only the backend's own workspaces remain, and they have stopped growing.
	left := be.Allocated()
	if _, err := Run(context.Background(), be, nil, o, &told); err != nil || be.Allocated() != left || left < before {
		t.Errorf("%d bytes were not freed, %v", be.Allocated()-left, err)
	}
}

func near(a, b float64) bool { return math.Abs(a-b) <= 1e-9*math.Abs(b) }

func checkMatMuls(t *testing.T, list []MatMul, r Report) {
	t.Helper()
	// Batches of 1, 1 and 3 sequences of 5 tokens.
	var want []string
	for _, layer := range []string{"qkv 256×16", "o 16×128", "gate_up 48×16", "down 16×24", "output 40×16"} {
		for _, op := range []string{"forward 5", "dx 5", "dw 5", "forward 15", "dx 15", "dw 15", "decode forward 8", "decode forward 64"} {
			want = append(want, layer+" "+op)
		}
	}
	var got []string
	for _, x := range list {
		op := x.Op
		if x.Decode {
			op = "decode " + op
		}
		got = append(got, fmt.Sprintf("%s %d×%d %s %d", x.Layer, x.N, x.K, op, x.M))
		flops, bytes := 2*float64(x.M*x.N*x.K), 4*float64(x.M*x.K+x.N*x.K+x.M*x.N)
		if !(x.GFLOPS.Median > 0) || !near(x.GFLOPS.Median/x.Bytes.Median, flops/bytes) || !near(x.Share, x.GFLOPS.Median/50) {
			t.Errorf("%s: %+v", got[len(got)-1], x)
		}
		roofline := 0.0
		if x.Decode {
			roofline = min(50, 3*flops/bytes)
		}
		if x.Roofline != roofline || x.Decode && !near(x.RooflineShare, x.GFLOPS.Median/roofline) {
			t.Errorf("%s: roofline %g, want %g; share %g", got[len(got)-1], x.Roofline, roofline, x.RooflineShare)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("matmuls (-want +got):\n%s", diff)
	}
}

func TestRunParts(t *testing.T) {
	o := tiny()
	o.Parts = []Part{PartSample}
	r, err := Run(context.Background(), device(t, 1), nil, o, &diary{})
	if err != nil {
		t.Fatal(err)
	}
	m := r.Models[0]
	if m.Sample == nil || m.MatMul != nil || m.Train != nil || m.LogProb != nil || r.Machine.Read != nil || r.Machine.Peak.Median != 10 {
		t.Errorf("report %+v", r)
	}
	o.Parts = []Part{PartMachine}
	if r, err = Run(context.Background(), device(t, 1), nil, o, &diary{}); err != nil || len(r.Models) != 0 || r.Machine.Read == nil {
		t.Errorf("report %+v, %v", r, err)
	}
}

// A signal ends a suite between two repeats.
func TestRunStops(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for _, p := range Parts() {
		o := tiny()
		o.Parts = []Part{p}
		if _, err := Run(ctx, device(t, 1), nil, o, &diary{}); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v, want context.Canceled", p, err)
		}
	}
}

func TestValidate(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(o *Options)
		want   string
	}{
		{"as it is", func(*Options) {}, ""},
		{"nothing to score", func(o *Options) { o.Length = 1 }, "bench: length is 1, must be at least 2"},
		{"no repeats", func(o *Options) { o.Repeat = 0 }, "bench: repeat is 0"},
		{"no prompt", func(o *Options) { o.Prompt = 0 }, "bench: prompt is 0"},
		{"heads", func(o *Options) { o.Models[0].KVHeads = 3 }, "bench: model tiny: model: heads 2 is not a multiple of kv_heads 3"},
	} {
		o := tiny()
		tt.change(&o)
		got := ""
		if err := o.Validate(); err != nil {
			got = err.Error()
		}
		if (tt.want == "") != (got == "") || !strings.HasPrefix(got, tt.want) {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}

// The weights of the linear maps are all parameters but biases and norms, and the
// names say how many there are.
func TestModels(t *testing.T) {
	for i, m := range Models() {
		c := m.config(DefaultOptions())
		all, _ := model.Parameters(c, model.Heads{LM: true})
		if got, want := linearWeights(c), all-c.Layers*c.QKV()-(2*c.Layers+1)*c.Width; got != want {
			t.Errorf("%s: %d weights, want %d", m.Name, got, want)
		}
		if millions := []float64{1.25, 9.96, 49.8}[i]; math.Abs(float64(all)/1e6/millions-1) > 0.01 {
			t.Errorf("%s has %d parameters, want %g million", m.Name, all, millions)
		}
	}
}

func TestSpreadOf(t *testing.T) {
	for _, tt := range []struct {
		x    []float64
		want Spread
	}{
		{nil, Spread{}},
		{[]float64{3}, Spread{3, 3, 3}},
		{[]float64{9, 1}, Spread{5, 1, 9}},
		{[]float64{4, 9, 1}, Spread{4, 1, 9}},
	} {
		if got := spreadOf(tt.x); got != tt.want {
			t.Errorf("spreadOf(%v) = %v, want %v", tt.x, got, tt.want)
		}
	}
}

func TestBlockOffsets(t *testing.T) {
	for _, tt := range []struct {
		m, length int
		want      []int32
	}{
		{10, 5, []int32{0, 5, 10}},
		{300, 300, []int32{0, 256, 300}},
		{520, 260, []int32{0, 256, 260, 516, 520}},
	} {
		if got := blockOffsets(tt.m, tt.length); !slices.Equal(got, tt.want) {
			t.Errorf("blockOffsets(%d, %d) = %v, want %v", tt.m, tt.length, got, tt.want)
		}
	}
}

func TestParseDType(t *testing.T) {
	for _, name := range []string{"f32", "bf16"} {
		if got, err := ParseDType(name); err != nil || got.String() != name {
			t.Errorf("%v, %v", got, err)
		}
	}
	for name, want := range map[string]string{"f16": `unknown dtype "f16"`, "f8": `unknown dtype "f8": want f32 or bf16`} {
		if _, err := ParseDType(name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
}

func TestMeasure(t *testing.T) {
	s, err := Measure(context.Background(), device(t, 2), time.Millisecond)
	if err != nil || s.MatMul <= 0 || s.Sample <= 0 {
		t.Errorf("%+v, %v", s, err)
	}
}
