package checkpoint

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"exp/train/checkpoint/megatron"
)

// spreadOut writes a tiny model over ranks and returns both folders.
func spreadOut(t *testing.T, name string, g megatron.Grid) (from, out string) {
	t.Helper()
	from = spreadModel(t, spreadModels()[name])
	c, err := FindContainer(from)
	if err != nil {
		t.Fatal(err)
	}
	out = filepath.Join(t.TempDir(), "out")
	if _, err := Spread(context.Background(), c, out, SpreadOptions{Megatron: &g}); err != nil {
		t.Fatal(err)
	}
	return from, out
}

// Ranks that do not fit together are refused by name.
func TestMegatronRefused(t *testing.T) {
	ranks := func(out, folder string) string { return filepath.Join(out, "iter_0000001", folder) }
	const file = "model_optim_rng.pt"
	for name, tt := range map[string]struct {
		change func(t *testing.T, out string)
		want   string
	}{
		"missing rank": {func(t *testing.T, out string) {
			if err := os.RemoveAll(ranks(out, "mp_rank_01_001")); err != nil {
				t.Fatal(err)
			}
		}, "the rank TP 1, PP 1, EP 0 is missing"},
		"missing file": {func(t *testing.T, out string) {
			if err := os.Remove(filepath.Join(ranks(out, "mp_rank_01_001"), file)); err != nil {
				t.Fatal(err)
			}
		}, "the file of a rank is missing"},
		"another rank": {func(t *testing.T, out string) {
			if err := os.CopyFS(ranks(out, "mp_rank_02_000"), os.DirFS(ranks(out, "mp_rank_00_000"))); err != nil {
				t.Fatal(err)
			}
		}, "is not a rank of TP 2, PP 2"},
		"stages swapped": {func(t *testing.T, out string) {
			path := filepath.Join(ranks(out, "mp_rank_00_000"), file)
			writeFile(t, path, readFile(t, filepath.Join(ranks(out, "mp_rank_00_001"), file)))
		}, "do not fit"},
		"truncated": {func(t *testing.T, out string) {
			path := filepath.Join(ranks(out, "mp_rank_00_000"), file)
			writeFile(t, path, readFile(t, path)[:1000])
		}, "truncated"},
		"layers of another model": {func(t *testing.T, out string) {
			path := filepath.Join(out, "huggingface", configFile)
			writeFile(t, path, bytes.Replace(readFile(t, path), []byte(`"num_hidden_layers": 8`),
				[]byte(`"num_hidden_layers": 6`), 1))
		}, "6 layers, the ranks hold 8"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, out := spreadOut(t, "plain", megatron.Grid{TP: 2, PP: 2, VP: 1, EP: 1})
			tt.change(t, out)
			x, err := OpenFolder(out)
			if err == nil {
				x.Close()
			}
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}

// A norm that differs between ranks is found when the copies are compared.
func TestMegatronCopiesDiffer(t *testing.T) {
	from, out := spreadOut(t, "plain", megatron.Grid{TP: 2, PP: 1, VP: 1, EP: 1})
	norm := bytesOf(t, opened(t, OpenFolder, from))["model.norm.weight"]
	norm = norm[strings.Index(norm, "] ")+2:]
	path := filepath.Join(out, "iter_0000001", "mp_rank_01", "model_optim_rng.pt")
	raw := readFile(t, path)
	at := bytes.Index(raw, []byte(norm))
	if at < 0 {
		t.Fatal("the norm is not in the file of the second rank")
	}
	raw[at+5] ^= 1
	writeFile(t, path, raw)
	x := opened(t, OpenFolder, out)
	if err := x.agree(); err == nil || !strings.Contains(err.Error(), "model.norm.weight") ||
		!strings.Contains(err.Error(), "byte 5") {
		t.Errorf("got %v", err)
	}
}

// Damaged metadata and arguments are errors, or harmless: nothing panics.
func TestMegatronDamaged(t *testing.T) {
	golden := goldenContainer(t, "megatron/moe-pp2ep2")
	for _, tt := range []struct{ format, file string }{{"torch_dist", ".metadata"}, {"torch_dist", "common.pt"},
		{"torch", "mp_rank_00_000_000/model_optim_rng.pt"}} {
		step := filepath.Join(t.TempDir(), "iter_0000001")
		if err := os.CopyFS(step, os.DirFS(filepath.Join(golden, tt.format, "iter_0000001"))); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(step, tt.file)
		raw := readFile(t, path)
		random := rand.New(rand.NewPCG(1, 2))
		for range 100 {
			damaged := bytes.Clone(raw)
			for range 1 + random.IntN(3) {
				damaged[random.IntN(min(len(damaged), 15000))] = byte(random.Uint32())
			}
			writeFile(t, path, damaged)
			c, err := FindContainer(step)
			if err != nil {
				t.Fatal(err)
			}
			for _, texts := range []string{"", filepath.Join(golden, "hf")} {
				c.Texts, c.Vocab = texts, 509
				if x, err := c.Open(); err == nil {
					x.agree()
					x.Close()
				}
			}
		}
	}
}

// The names of other specs and versions mean the same tensors.
func TestMegatronNames(t *testing.T) {
	const layer = "decoder.layers.3."
	for a, b := range map[string]string{
		layer + "input_layernorm.weight":                    layer + "self_attention.linear_qkv.layer_norm_weight",
		layer + "pre_mlp_layernorm.weight":                  layer + "mlp.linear_fc1.layer_norm_weight",
		layer + "mlp.experts.linear_fc1.weight12":           layer + "mlp.experts.local_experts.12.linear_fc1.weight",
		layer + "mlp.experts.linear_fc2.weight0":            layer + "mlp.experts.local_experts.0.linear_fc2.weight",
		"module.model.embedding.word_embeddings.weight":     "embedding.word_embeddings.weight",
		"model." + layer + "self_attention.linear_qkv.bias": layer + "self_attention.linear_qkv.bias",
	} {
		if x, y := megatron.Canonical(a), megatron.Canonical(b); x != y {
			t.Errorf("%s is %s, %s is %s", a, x, b, y)
		}
	}
	if a := megatron.Canonical(layer + "mlp.linear_fc1.weight"); a != layer+"mlp.linear_fc1.weight" {
		t.Errorf("got %s", a)
	}
}

// config.json and the tokenizer may lie in the folder of a step, next to it, or above
// verl's dist_ckpt.
func TestMegatronFolders(t *testing.T) {
	_, out := spreadOut(t, "plain", megatron.Grid{TP: 2, PP: 1, VP: 1, EP: 1})
	texts, step := filepath.Join(out, textsFolder), filepath.Join(out, "iter_0000001")
	want, err := ReadConfig(texts)
	if err != nil {
		t.Fatal(err)
	}
	verl := filepath.Join(t.TempDir(), "global_step_5")
	for from, to := range map[string]string{texts: "actor/huggingface", step: "actor/dist_ckpt"} {
		if err := os.CopyFS(filepath.Join(verl, to), os.DirFS(from)); err != nil {
			t.Fatal(err)
		}
	}
	for path, found := range map[string][2]string{
		out: {step, texts}, step: {step, texts},
		verl:                                    {filepath.Join(verl, "actor/dist_ckpt"), filepath.Join(verl, "actor/huggingface")},
		filepath.Join(verl, "actor"):            {filepath.Join(verl, "actor/dist_ckpt"), filepath.Join(verl, "actor/huggingface")},
		filepath.Join(verl, "actor/dist_ckpt/"): {filepath.Join(verl, "actor/dist_ckpt"), filepath.Join(verl, "actor/huggingface")},
	} {
		c, err := FindContainer(path)
		if err != nil {
			t.Fatal(err)
		}
		got, err := ReadConfig(path)
		if err != nil || fmt.Sprint(got) != fmt.Sprint(want) || c.Path != found[0] || c.Texts != found[1] {
			t.Errorf("%s: weights in %s, config.json in %s, %v", path, c.Path, c.Texts, err)
		}
		opened(t, OpenFolder, path)
	}
	inside := filepath.Join(step, textsFolder)
	if err := os.CopyFS(inside, os.DirFS(texts)); err != nil {
		t.Fatal(err)
	}
	if c, err := FindContainer(step); err != nil || c.Texts != inside {
		t.Errorf("config.json in %s, %v; want %s", c.Texts, err, inside)
	}
}

// Experts that are cut otherwise than the other layers are refused, not read as if they
// were cut alike.
func TestExpertsApart(t *testing.T) {
	_, out := spreadOut(t, "experts", megatron.Grid{TP: 2, PP: 1, VP: 1, EP: 2})
	path := filepath.Join(out, "iter_0000001", "mp_rank_00_000", "model_optim_rng.pt")
	raw := readFile(t, path)
	key := []byte("expert_tensor_parallel_size")
	at := bytes.Index(raw, key) + len(key)
	value := at + bytes.IndexByte(raw[at:at+8], 'K') + 1 // after the key's memo: a small integer
	if raw[value] != 2 {
		t.Fatalf("the argument is %d", raw[value])
	}
	raw[value] = 1
	writeFile(t, path, raw)
	_, err := OpenFolder(out)
	var e *Error
	if !errors.As(err, &e) || !strings.Contains(err.Error(), "expert_tensor_parallel_size is 1, tensor_model_parallel_size 2") ||
		!strings.Contains(e.Hint, "torch_dist") {
		t.Errorf("got %v", err)
	}
}

// The files of torch_dist lie in its folder, whatever .metadata says.
func TestDistFilesOutside(t *testing.T) {
	golden := goldenContainer(t, "megatron/qwen3-tied-tp4")
	step := filepath.Join(t.TempDir(), "iter_0000001")
	if err := os.CopyFS(step, os.DirFS(filepath.Join(golden, "torch_dist", "iter_0000001"))); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(step, ".metadata")
	raw := readFile(t, path)
	at := []byte("__0_0.distcp")
	if err := os.Link(filepath.Join(step, string(at)), filepath.Join(step, "../_0.distcp")); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"../_0.distcp": "is not a file of this folder", "/_0/.distcp_": "is not a file of this folder",
		"no_0_.distcp": "no such file"} {
		writeFile(t, path, bytes.ReplaceAll(raw, at, []byte(name)))
		c := &Container{Path: step, Texts: filepath.Join(golden, "hf"), format: megatronRanks}
		x, err := c.Open()
		if err == nil {
			x.Close()
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
}
