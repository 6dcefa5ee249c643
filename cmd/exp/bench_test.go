package main

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"exp/cmd/exp/cli"
	"exp/cmd/exp/term"
	"exp/harness/bench"
	"exp/harness/device"
)

// small is a suite of milliseconds.
var small = strings.Fields("bench --layers 1 --width 16 --heads 1 --kv-heads 1 --ffn 16 --vocab 32 --batch 2 --length 4 --sequences 2 --prompt 2 --new 3 --repeat 1 --threads 2")

func TestBench(t *testing.T) {
	e := call{env: map[string]string{"EXP_CPU": "portable"}}.run(append(slices.Clone(small), "--json", "--only", "train,sample,logprob")...)
	e.succeeds(t)
	var got struct {
		Schema string
		Data   benchmark
	}
	if err := json.Unmarshal([]byte(e.stdout), &got); err != nil || got.Schema != "exp.bench/1" {
		t.Fatalf("schema %q, %v\n%s", got.Schema, err, e.stdout)
	}
	b := got.Data
	if b.Level != "portable" || b.Backend != "cpu/portable" || b.Threads != 2 || b.Cores < 1 || !strings.HasPrefix(b.Build.Go, "go") {
		t.Errorf("on %+v", b)
	}
	if b.Suite != "engine" || b.DType != "f32" || len(b.Models) != 1 || b.Models[0].Name != "own" || b.Models[0].Width != 16 {
		t.Fatalf("of %+v", b.Report)
	}
	m := b.Models[0]
	for what, p := range map[string]*bench.Passes{"train": &m.Train.Passes, "logprob": m.LogProb, "sample": m.Sample} {
		if p == nil || p.TokensPer.Median <= 0 || p.Share <= 0 {
			t.Errorf("%s: %+v", what, p)
		}
	}
	if m.MatMul != nil {
		t.Error("matmuls were not asked for")
	}
	for _, text := range []string{"stage=train label=own start repeats=1", "stage=sample label=own done tok/s="} {
		if !strings.Contains(e.stderr, text) {
			t.Errorf("the progress lacks %q:\n%s", text, e.stderr)
		}
	}
}

func TestBenchLevel(t *testing.T) {
	args := append(slices.Clone(small), "--json", "-q", "--only", "logprob", "--level", "portable")
	e := call{env: map[string]string{"EXP_CPU": device.OfThisMachine().Best}}.run(args...)
	if e.code != 0 || !strings.Contains(e.stdout, `"level": "portable"`) || e.stderr != "" {
		t.Errorf("--level comes before EXP_CPU: exit code %d\n%s\n%s", e.code, e.stdout, e.stderr)
	}
}

// A folder is measured with several numbers of completions.
func TestBenchFolder(t *testing.T) {
	dir, _, _ := tinyFolder(t)
	e := call{}.run("bench", dir, "--prompt", "2", "--new", "2", "--repeat", "1", "--sequences", "1,2", "--json", "-q")
	e.succeeds(t)
	var got struct{ Data benchmark }
	if err := json.Unmarshal([]byte(e.stdout), &got); err != nil {
		t.Fatal(err)
	}
	f := got.Data.Folder
	if f == nil || f.Path != dir || len(f.Speeds) != 2 || f.Speeds[1].Sequences != 2 || f.Speeds[0].Decode.TokensPer.Median <= 0 {
		t.Errorf("got %+v", f)
	}
	text := call{}.run("bench", dir, "--prompt", "2", "--new", "2", "--repeat", "1", "--sequences", "1", "-q")
	if text.code != 0 || !strings.Contains(text.stdout, "decode tok/s") || !strings.Contains(text.stdout, "of f32 weights") {
		t.Errorf("exit code %d\n%s\n%s", text.code, text.stdout, text.stderr)
	}
}

func TestBenchRefuses(t *testing.T) {
	for _, tt := range []struct {
		args string
		env  map[string]string
		want string
	}{
		{"--model 7B", nil, `--model is "7B", but must be one of 1M, 10M, 50M`},
		{"--numerics cpu/fma", nil, `--numerics is "cpu/fma", but must be device or matrix/16x25`},
		{"--numerics matrix/16x25 --dtype f32", nil, "--numerics matrix/16x25 computes in bf16, not in f32"},
		{"--dtype f8", nil, `--dtype: unknown dtype "f8": want f32 or bf16`},
		{"--only train,evaluate", nil, `--only is "evaluate", but must be one of machine, matmul, train, logprob, sample`},
		{"--only train,", nil, "has an empty part"},
		{"--layers 2 --width 64", nil, "a custom model needs --heads, --kv-heads, --ffn, --vocab too"},
		{"--model 1M --layers 1 --width 16 --heads 1 --kv-heads 1 --ffn 16 --vocab 32", nil, "--model does not go with --layers"},
		{"--layers 1 --width 16 --heads 3 --kv-heads 2 --ffn 16 --vocab 32", nil, "heads 3 is not a multiple of kv_heads 2"},
		{"--repeat 0", nil, "repeat is 0, must be at least 1"},
		{"--threads -1", nil, "-1 threads"},
		{"--level avx1024", nil, `--level: unknown cpu level "avx1024"`},
		{"", map[string]string{"EXP_CPU": "avx1024"}, `EXP_CPU: unknown cpu level "avx1024": want amx, avx512bf16, avx512, avx2 or portable`},
		{"", map[string]string{"EXP_THREADS": "all"}, `EXP_THREADS is "all"`},
		{"here there", nil, `takes no argument "there"`},
		{"none --model 1M", nil, "--model is not for a FOLDER"},
		{"none --layers 3", nil, "--layers does not apply to a FOLDER: its config.json says it"},
		{"none --new 0", nil, "new is 0, must be at least 1"},
		{"--sequences 1,many", nil, `--sequences is "1,many", but must be a number`},
		{"--sequences 1,2", nil, "--sequences takes several numbers only with a FOLDER"},
	} {
		t.Run(tt.args, func(t *testing.T) {
			call{env: tt.env}.run(append([]string{"bench"}, strings.Fields(tt.args)...)...).refuses(t, 2, tt.want)
		})
	}
}

func TestBenchCompletes(t *testing.T) {
	for _, tt := range []struct{ words, want string }{
		{"--model 1", "1M\n10M\n"},
		{"--level avx", "avx512bf16\navx512\navx2\n"},
		{"--only train,s", "train,sample\n"},
	} {
		words := append([]string{"bench"}, strings.Fields(tt.words)...)
		got := call{}.run(append(words, cli.CompletionFlag)...)
		if got.stdout != tt.want {
			t.Errorf("exp bench %s: %q, want %q", tt.words, got.stdout, tt.want)
		}
	}
}

// How it looks on a terminal of 80 columns.
func TestBenchText(t *testing.T) {
	around := func(x float64) bench.Spread { return bench.Spread{Median: x, Min: 0.9 * x, Max: 1.05 * x} }
	one, read := around(245), around(27.5)
	passes := func(tokens, gflops float64) bench.Passes {
		return bench.Passes{TokensPer: around(tokens), GFLOPS: around(gflops), Share: gflops / 480, Memory: 1 << 30, Seconds: around(1.5)}
	}
	logProb, sample := passes(11000, 220), passes(4200, 90)
	b := &benchmark{CPU: "Intel(R) Xeon(R) Processor", Cores: 2, Level: "avx512", Where: "2 threads",
		Build: cli.Build{Version: "v1", Go: "go1.26", Platform: "linux/amd64", Device: "cpu"},
		Report: bench.Report{Suite: "engine", DType: "f32", Class: "cpu/fma", Backend: "cpu/avx512", Threads: 2,
			Settings: bench.Settings{Batch: 16, Length: 256, Sequences: 64, Prompt: 64, New: 128, Repeat: 5},
			Machine:  &bench.Peaks{Peak: around(480), PeakOne: &one, Read: &read},
			Models: []bench.ModelReport{{
				Model: bench.Models()[1], Weights: 9_961_472,
				Train:   &bench.Training{Passes: passes(3900, 235), Phases: []bench.Phase{{Name: "forward", Seconds: around(0.5)}, {Name: "backward", Seconds: around(1)}}},
				LogProb: &logProb, Sample: &sample,
				MatMul: []bench.MatMul{
					{Layer: "gate_up", Op: "dw", M: 4096, N: 2048, K: 256, GFLOPS: around(330), Bytes: around(3.1), Share: 0.6875},
					{Layer: "gate_up", Op: "forward", M: 8, N: 2048, K: 256, Decode: true, GFLOPS: around(90), Bytes: around(24), Share: 0.1875, Roofline: 105, RooflineShare: 0.857},
				},
			}}}}
	var text bytes.Buffer
	out := cli.Output{W: &text, Format: cli.FormatTable, Stream: term.Stream{TTY: true}.Sized(func() (int, int) { return 80, 24 })}
	if err := writeBench(out.NewPage(&text), b); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(text.String()) {
		if term.Width(strings.TrimSuffix(line, "\n")) > 80 {
			t.Errorf("longer than 80 columns: %q", line)
		}
	}
	golden(t, "bench", text.String())
}
