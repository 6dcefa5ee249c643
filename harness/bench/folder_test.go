package bench

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"exp/kernels/cpu"
	"exp/train/checkpoint"
	"exp/train/checkpoint/checkpointtest"
	"exp/train/model"
)

// writeFolder writes a random model of two layers and six positions.
func writeFolder(t *testing.T, dtype checkpoint.DType) (dir string, c model.Config) {
	t.Helper()
	be, err := cpu.Open(cpu.Options{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(be.Close)
	c = model.Config{Vocab: 40, Layers: 2, Width: 16, Heads: 2, KVHeads: 1, Head: 8, FFN: 24, RopeTheta: 1e4, NormEps: 1e-6, QKVBias: true, MaxPositions: 6, InitStd: 0.02}
	m, err := model.New(be, c, model.Heads{LM: true}, false)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Close)
	m.Init(seed)
	dir = filepath.Join(t.TempDir(), "tiny")
	checkpointtest.WriteFolder(t, be, m, dir, checkpoint.MergeOptions{DType: dtype})
	return dir, c
}

func tinyFolder(path string) FolderOptions {
	return FolderOptions{Path: path, Sequences: []int{1, 3}, Prompt: 2, New: 3, Repeat: 2, Time: time.Microsecond}
}

func TestRunFolder(t *testing.T) {
	for _, dtype := range []checkpoint.DType{checkpoint.F32, checkpoint.BF16} {
		dir, c := writeFolder(t, dtype)
		be := device(t, 2)
		var told diary
		r, err := RunFolder(context.Background(), be, device(t, 1), tinyFolder(dir), &told)
		if err != nil {
			t.Fatal(err)
		}
		if want := []string{"machine  0/2", "1", "2", "done true GFLOP/s", "sample tiny 1× 0/2", "1", "2", "done true tok/s",
			"sample tiny 3× 0/2", "1", "2", "done true tok/s"}; !slices.Equal(told.lines, want) {
			t.Errorf("progress %q, want %q", told.lines, want)
		}
		f := r.Folder
		parameters, _ := model.Parameters(c, model.Heads{LM: true})
		if f.Parameters != parameters || f.Path != dir || f.Load <= 0 || f.Stored != strings.ToLower(string(dtype)) || f.Weights < int64(2*parameters) {
			t.Errorf("folder %+v, want %d parameters in %s", f, parameters, dtype)
		}
		if len(f.Speeds) != 2 {
			t.Fatalf("speeds %+v", f.Speeds)
		}
		for i, n := range []int{1, 3} {
			x := f.Speeds[i]
			prefill := float64(n) * c.ForwardFLOPs(2, 1)
			decode := float64(n)*c.ForwardFLOPs(5, 4) - prefill
			if x.Sequences != n || x.Prefill.Tokens != 2*n || x.Decode.Tokens != 3*n || x.Prefill.FLOPs != prefill || x.Decode.FLOPs != decode {
				t.Errorf("%d together: %+v, want %g and %g operations", n, x, prefill, decode)
			}
			if !near(x.Decode.Share*r.Machine.Peak.Median, x.Decode.GFLOPS.Median) || !near(x.Prefill.Share*r.Machine.Peak.Median, x.Prefill.GFLOPS.Median) {
				t.Errorf("%d together: shares %g and %g of %+v", n, x.Prefill.Share, x.Decode.Share, r.Machine.Peak)
			}
			if steps := x.Decode.TokensPer.Median / float64(n); !near(x.Read.Median, steps*float64(f.Weights)/1e9) {
				t.Errorf("%d together: %g GB/s of weights at %g steps/s", n, x.Read.Median, steps)
			}
		}
		left := be.Allocated()
		if _, err := RunFolder(context.Background(), be, nil, tinyFolder(dir), &told); err != nil || be.Allocated() != left {
			t.Errorf("%d bytes were not freed, %v", be.Allocated()-left, err)
		}
	}
}

func TestRunFolderRefuses(t *testing.T) {
	dir, _ := writeFolder(t, checkpoint.F32)
	for want, change := range map[string]func(o *FolderOptions){
		"sequences is 0, must be at least 1": func(o *FolderOptions) { o.Sequences = []int{4, 0} },
		"repeat is 0, must be at least 1":    func(o *FolderOptions) { o.Repeat = 0 },
		"prompt is 0":                        func(o *FolderOptions) { o.Prompt = 0 },
		"new is -1":                          func(o *FolderOptions) { o.New = -1 },
		"4 tokens and 3 new ones need more than the model's 6 pos": func(o *FolderOptions) { o.Prompt = 4 },
		"no such file": func(o *FolderOptions) { o.Path = filepath.Join(dir, "none") },
	} {
		o := tinyFolder(dir)
		change(&o)
		if _, err := RunFolder(context.Background(), device(t, 1), nil, o, &diary{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := RunFolder(ctx, device(t, 1), nil, tinyFolder(dir), &diary{}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}
