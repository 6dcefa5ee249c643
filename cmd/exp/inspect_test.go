package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"exp/harness/inspect"
	"exp/kernels"
	"exp/kernels/cpu"
	"exp/train/checkpoint"
	"exp/train/checkpoint/checkpointtest"
	"exp/train/model"
)

// tinyFolder writes a random model as a folder and returns it with the model.
func tinyFolder(t *testing.T) (dir string, be *cpu.Backend, m *model.Model) {
	t.Helper()
	be, err := cpu.Open(cpu.Options{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(be.Close)
	c := model.Config{Vocab: 11, Layers: 2, Width: 8, Heads: 2, KVHeads: 1, Head: 4, FFN: 10, RopeTheta: 1e4, NormEps: 1e-6, QKVBias: true, MaxPositions: 6, InitStd: 0.5}
	m, err = model.New(be, c, model.Heads{LM: true}, false)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Close)
	m.Init(func(label string) uint64 { return uint64(len(label)) })
	dir = filepath.Join(t.TempDir(), "tiny")
	checkpointtest.WriteFolder(t, be, m, dir, checkpoint.MergeOptions{})
	return dir, be, m
}

func TestInspect(t *testing.T) {
	dir, _, _ := tinyFolder(t)
	e := exp(t, "inspect", dir, "--tensors", "--digest", "--json")
	e.succeeds(t)
	var d struct {
		Schema string
		Data   inspect.Report
	}
	if err := json.Unmarshal([]byte(e.stdout), &d); err != nil {
		t.Fatal(err)
	}
	i := d.Data
	n, _ := model.Parameters(model.Config{Vocab: 11, Layers: 2, Width: 8, Heads: 2, KVHeads: 1, Head: 4, FFN: 10, QKVBias: true}, model.Heads{LM: true})
	if d.Schema != "exp.inspect/1" || !i.Computable || i.Container != "safetensors" || i.Class != "Qwen2ForCausalLM" || i.Parameters != int64(n) || i.Positions != 6 {
		t.Errorf("got %s %+v", d.Schema, i)
	}
	if i.Needs == nil || i.Needs.Train <= 4*4*i.Parameters || i.Needs.Evaluate <= 4*i.Parameters {
		t.Errorf("needs %+v of %d parameters", i.Needs, i.Parameters)
	}
	if len(i.Tensors) != i.TensorCount || i.TensorCount != 2*12+3 || i.Tensors[0].Name != "lm_head.weight" || i.Tensors[0].Bytes != 4*11*8 {
		t.Errorf("%d tensors, the first %+v", i.TensorCount, i.Tensors)
	}
	if len(i.Files) != 3 || len(i.Files[2].SHA256) != 64 {
		t.Errorf("files %+v", i.Files)
	}
	text := exp(t, "inspect", dir)
	text.succeeds(t)
	for _, want := range []string{"Qwen2: biases on queries", "2 layers of width 8", "6 tokens", "27 × F32", "model.safetensors"} {
		if !strings.Contains(text.stdout, want) {
			t.Errorf("the text lacks %q:\n%s", want, text.stdout)
		}
	}
	one := exp(t, "inspect", filepath.Join(dir, "model.safetensors"))
	one.succeeds(t)
	if !strings.Contains(one.stdout, "27 × F32") || strings.Contains(one.stdout, "unsupported") {
		t.Errorf("one file:\n%s", one.stdout)
	}
}

// inspect lists every reason that stops a model, and succeeds.
func TestInspectTellsWhatStopsIt(t *testing.T) {
	dir, _, _ := tinyFolder(t)
	path := filepath.Join(dir, "config.json")
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Replace(string(raw), "{", `{"quantization_config": {"bits": 4},`, 1)
	text = strings.Replace(text, `"rope_scaling": null`, `"rope_scaling": {"type": "magic"}`, 1)
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	e := exp(t, "inspect", dir)
	e.succeeds(t)
	for _, want := range []string{"unsupported", `rope type "magic" is not supported`, "of quantized weights only FP8"} {
		if !strings.Contains(e.stdout, want) {
			t.Errorf("the text lacks %q:\n%s", want, e.stdout)
		}
	}
	if err := os.WriteFile(path, raw, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, bytes.Replace(raw, []byte(`"hidden_size": 8`), []byte(`"hidden_size": 16`), 1), 0o644); err != nil {
		t.Fatal(err)
	}
	if e := exp(t, "inspect", dir); !strings.Contains(e.stdout, "shape: model.embed_tokens.weight: the file has F32 [11,8], wanted F32 [11,16]") {
		t.Errorf("weights of another shape:\n%s", e.stdout)
	}
	exp(t, "inspect", filepath.Join(dir, "nothing")).refuses(t, 3, "no such file", "config.json and *.safetensors")
}

// Every row of logits equals the model's. A bad request writes no file.
func TestInspectLogits(t *testing.T) {
	dir, be, m := tinyFolder(t)
	ids, out := filepath.Join(t.TempDir(), "ids.json"), filepath.Join(t.TempDir(), "out.safetensors")
	write := func(text string) {
		if err := os.WriteFile(ids, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write(`{"sequences": [[3, 1, 4, 1, 5, 9], [2]]}`)
	exp(t, "inspect", dir, "--logits", ids, "--out", out).succeeds(t)
	x, err := checkpoint.OpenFile(out)
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	for i, tokens := range [][]int32{{3, 1, 4, 1, 5, 9}, {2}} {
		ws, err := model.NewWorkspace(be, m.Config, m.Heads, model.Capacity{Tokens: len(tokens) + 1, Sequences: 1}, model.KeepNothing)
		if err != nil {
			t.Fatal(err)
		}
		defer ws.Close()
		n := len(tokens) * m.Config.Vocab
		want, _ := be.Alloc(kernels.F32, n)
		got, _ := be.Alloc(kernels.F32, n)
		// One more token that is never computed: every other row is scored then.
		ws.Load(model.Batch{Tokens: append(tokens, 0), Offsets: []int32{0, int32(len(tokens)) + 1}, Prompt: []int32{1}})
		m.Forward(ws)
		m.Logits(ws, want)
		name := []string{"logits.0", "logits.1"}[i]
		if info, ok := x.Lookup(name); !ok || len(info.Shape) != 2 || info.Shape[0] != len(tokens) || info.Shape[1] != 11 {
			t.Fatalf("%s is %+v", name, info)
		}
		if err := x.Read(be, name, got); err != nil {
			t.Fatal(err)
		}
		be.Sync()
		for k, v := range kernels.Elems[float32](got) {
			if v != kernels.Elems[float32](want)[k] {
				t.Fatalf("%s: element %d is %g, want %g", name, k, v, kernels.Elems[float32](want)[k])
			}
		}
	}
	for _, tt := range []struct{ text, want string }{
		{`{"sequences": [[1,2,3,4,5,6,7], [], [11, 1], [-1]]}`, "sequence 0 has 7 tokens, the model has 6 positions\nsequence 1 is empty\nsequence 2: token 0 is 11, ids go from 0 to 10\nsequence 3: token 0 is -1"},
		{`{"sequences": []}`, "no sequences"},
		{`[[1]]`, `not {"sequences": [[ids], …]}`},
		{`{"sequences": [["a"]]}`, `not {"sequences": [[ids], …]}`},
	} {
		write(tt.text)
		other := filepath.Join(t.TempDir(), "never")
		exp(t, "inspect", dir, "--logits", ids, "--out", other).refuses(t, 2, tt.want)
		if _, err := os.Stat(other); err == nil {
			t.Error("a file was written")
		}
	}
	exp(t, "inspect", dir, "--logits", ids).refuses(t, 2, "go together")
	exp(t, "inspect", filepath.Join(dir, "model.safetensors"), "--logits", ids, "--out", out).refuses(t, 2, "needs a folder")
}
