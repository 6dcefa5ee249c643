package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"exp/harness/convert"
)

// There and back gives the same file of weights.
func TestConvert(t *testing.T) {
	dir, _, _ := tinyFolder(t)
	out := filepath.Join(t.TempDir(), "out")
	want, err := os.ReadFile(filepath.Join(dir, "model.safetensors"))
	if err != nil {
		t.Fatal(err)
	}
	for name, flags := range map[string][]string{"mcore": {"--to", "megatron", "--tp", "2", "--pp", "2"},
		"shards": {"--to", "fsdp", "--ranks", "3"}} {
		to := filepath.Join(out, name)
		e := exp(t, append([]string{"convert", dir, to, "--json"}, flags...)...)
		e.succeeds(t)
		var d struct {
			Schema string
			Data   convert.Merged
		}
		if err := json.Unmarshal([]byte(e.stdout), &d); err != nil || d.Schema != "exp.merge/1" || d.Data.Out != to ||
			d.Data.Class != "Qwen2ForCausalLM" || len(d.Data.Files) < 5 {
			t.Errorf("%s: %v, %s %+v", name, err, d.Schema, d.Data)
		}
		exp(t, append([]string{"convert", dir, to}, flags...)...).refuses(t, 2, "already exists", "--force")
		exp(t, append([]string{"convert", dir, to, "--force"}, flags...)...).succeeds(t)
		back := filepath.Join(out, name+"-hf")
		exp(t, "convert", to, back, "--to", "hf").succeeds(t)
		got, err := os.ReadFile(filepath.Join(back, "model.safetensors"))
		if err != nil || string(got) != string(want) {
			t.Errorf("%s: other weights after the way back (%v)", name, err)
		}
		if a, b := len(filesIn(t, back)), len(filesIn(t, dir)); a != b {
			t.Errorf("%s: %d files after the way back, %d before", name, a, b)
		}
		exp(t, "inspect", to).says(t, "Qwen2")
	}
	none := filepath.Join(out, "none")
	exp(t, "convert", dir, none).refuses(t, 2, "--to FORMAT")
	exp(t, "convert", dir, none, "--to", "onnx").refuses(t, 2, "hf, megatron, fsdp, gguf")
	exp(t, "convert", dir, none, "--to", "gguf", "--type", "q5").refuses(t, 2, "keep, bf16, f16, f32, q8_0")
	exp(t, "convert", dir, none, "--to", "fsdp", "--type", "f16").refuses(t, 2, "--type is for --to gguf")
	exp(t, "convert", dir, none, "--to", "megatron", "--ranks", "2").refuses(t, 2, "--ranks is for --to fsdp")
	exp(t, "convert", dir, none, "--to", "megatron", "--tp", "3").refuses(t, 2, "TP 3 does not divide")
	exp(t, "convert", dir, none, "--to", "megatron", "--pp", "4").refuses(t, 2, "do not spread evenly over 4 chunks")
	exp(t, "convert", dir, none, "--to", "megatron", "--ep", "2").refuses(t, 2, "no experts")
	exp(t, "convert", dir, none, "--to", "fsdp", "--ranks", "0").refuses(t, 2, "0 ranks")
	if _, err := os.Stat(none); err == nil {
		t.Error("a refused conversion left a folder")
	}
}

// A folder with a tokenizer becomes one file, which is replaced only if asked.
func TestConvertToGGUF(t *testing.T) {
	dir, _, _ := tinyFolder(t)
	exp(t, "convert", dir, dir+"-gguf", "--to", "gguf").refuses(t, 3, "no tokenizer.json is with the weights", "--hf-config DIR")
	words := `{"model": {"type": "BPE", "vocab": {"a": 0, "b": 1}, "merges": []},
		"pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false}}`
	if err := os.WriteFile(filepath.Join(dir, "tokenizer.json"), []byte(words), 0o666); err != nil {
		t.Fatal(err)
	}
	exp(t, "convert", dir, dir+"-gguf", "--to", "gguf").says(t, "Qwen2ForCausalLM", "model.gguf")
	exp(t, "convert", dir, dir+"-gguf", "--to", "gguf").refuses(t, 2, "already exists", "--force")
	exp(t, "convert", dir, dir+"-gguf", "--to", "gguf", "--type", "bf16", "--force").says(t, "BF16")
	if list := filesIn(t, dir+"-gguf"); len(list) != 1 {
		t.Errorf("%d files", len(list))
	}
}

func filesIn(t *testing.T, dir string) []os.DirEntry {
	t.Helper()
	list, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// Megatron's own checkpoints, without and with what their arguments leave out.
func TestMergeMegatron(t *testing.T) {
	golden, err := filepath.Abs("../../../shared/data/models/megatron/qwen2.5-tp2pp2")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(golden); err != nil {
		t.Skipf("the golden checkpoints are not here: %v", err)
	}
	out := t.TempDir()
	want, err := os.ReadFile(filepath.Join(golden, "hf", "model.safetensors"))
	if err != nil {
		t.Fatal(err)
	}
	for _, format := range []string{"torch", "torch_dist"} {
		src := filepath.Join(golden, format)
		exp(t, "merge", src, "--out", filepath.Join(out, "x")).refuses(t, 2, "512 rows are tokens", "--vocab-size N")
		for i, flags := range [][]string{{"--vocab-size", "509"}, {"--hf-config", filepath.Join(golden, "hf")}} {
			to := filepath.Join(out, format+string(rune('a'+i)))
			exp(t, append([]string{"merge", src, "--out", to}, flags...)...).says(t, "Qwen2ForCausalLM", "51, F32")
			got, err := os.ReadFile(filepath.Join(to, "model.safetensors"))
			if err != nil || len(got) != len(want) {
				t.Errorf("%s: %d bytes, want %d (%v)", to, len(got), len(want), err)
			}
		}
		exp(t, "inspect", src).says(t, "Megatron", "512 rows are tokens")
	}
}
