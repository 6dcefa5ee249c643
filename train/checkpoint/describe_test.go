package checkpoint

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"exp/train/model"
)

func TestDescribe(t *testing.T) {
	be := refBackend()
	m := newModel(t, be, toyQwen2, policyHeads, false)
	dir := filepath.Join(t.TempDir(), "m")
	if _, err := Merge(be, m, dir, MergeOptions{DType: BF16, ShardBytes: 500, Tokenizer: map[string][]byte{keptFolder + "/x.jinja": []byte("x")}}); err != nil {
		t.Fatal(err)
	}
	d, err := Describe(dir)
	if err != nil {
		t.Fatal(err)
	}
	plain, _ := model.Parameters(toyQwen2, model.Heads{LM: true})
	if !d.Known || len(d.Reason) > 0 || d.Container != "safetensors" || d.Class != "Qwen2ForCausalLM" || d.count(BF16) != plain {
		t.Errorf("got %+v with %d of %d elements", d, d.count(BF16), plain)
	}
	if !slices.ContainsFunc(d.Files, func(f DescribedFile) bool { return f.Name == keptFolder+"/x.jinja" && f.Bytes == 1 }) {
		t.Errorf("files %+v", d.Files)
	}
	if err := d.Digest(); err != nil {
		t.Fatal(err)
	}
	for _, f := range d.Files {
		if len(f.SHA256) != 64 {
			t.Errorf("%+v has no digest", f)
		}
	}
	words := strings.Join(Words(d.Config, d.Class), "\n")
	for _, want := range []string{"Qwen2: biases", "2 layers of width 8, 2 heads of 4, 1 key", "theta 1e+06", "the output projection is the token embedding"} {
		if !strings.Contains(words, want) {
			t.Errorf("the words lack %q:\n%s", want, words)
		}
	}
	// One file that is missing, and a configuration of another model: both are said.
	writeFile(t, filepath.Join(dir, configFile), []byte(strings.Replace(string(readFile(t, filepath.Join(dir, configFile))), `"hidden_act": "silu"`, `"hidden_act": "relu"`, 1)))
	first, err := filepath.Glob(filepath.Join(dir, "model-00001-of-*.safetensors"))
	if err != nil || len(first) != 1 {
		t.Fatal(first, err)
	}
	if err := os.Remove(first[0]); err != nil {
		t.Fatal(err)
	}
	d, err = Describe(dir)
	if err != nil || d.Known || len(d.Reason) != 2 || !strings.Contains(d.Reason[0], "hidden_act") || !strings.Contains(d.Reason[1], "00001") {
		t.Errorf("got %+v, %v; want two reasons", d.Reason, err)
	}
}

func TestDescribeOtherContainers(t *testing.T) {
	for name, want := range map[string]string{"model_world_size_2_rank_0.pt": "verl FSDP", "latest_checkpointed_iteration.txt": "Megatron", ".metadata": "Megatron", "__0_0.distcp": "torch distributed checkpoint",
		"pytorch_model-00001-of-00002.bin": "torch", "x.gguf": "GGUF", "README.md": "none"} {
		dir := t.TempDir()
		writeFile(t, filepath.Join(dir, name), nil)
		d, err := Describe(dir)
		if err != nil || d.Container != want || d.Known || len(d.Reason) != 2 {
			t.Errorf("%s: %+v, %v; want container %s and two reasons", name, d, err, want)
		}
	}
}

// Golden models are what they say they are, but for expected.safetensors.
func TestDescribeGoldenModels(t *testing.T) {
	for name := range wantedConfigs() {
		d, err := Describe(goldenFolder(t, name))
		if err != nil || !d.Known || len(d.Reason) > 0 {
			t.Errorf("%s: %v %v", name, err, d.Reason)
		}
	}
}

// Whatever an index says, nothing panics, and nothing outside the folder is opened.
func FuzzIndex(f *testing.F) {
	f.Add(`{"weight_map":{"x":"1.safetensors","y":"1.safetensors"}}`)
	f.Add(`{"metadata":{"total_size":3},"weight_map":{"x":"../1.safetensors"}}`)
	f.Add(`{"weight_map":{"x":""}}`)
	f.Add(`{"weight_map":{"x":"model.safetensors.index.json"}}`)
	f.Fuzz(func(t *testing.T, index string) {
		dir := t.TempDir()
		writeTensors(t, filepath.Join(dir, "1.safetensors"), source("x", "U8", []int{2}, "xx"), source("y", "U8", []int{1}, "y"))
		writeFile(t, filepath.Join(dir, indexFile), []byte(index))
		x, err := OpenFolder(dir)
		if err != nil {
			return
		}
		defer x.Close()
		if len(x.List()) != 2 {
			t.Errorf("opened with %v", x.List())
		}
	})
}

// Settings that other programs use are named: what they compute with is another model.
func TestDescribeIgnoredSettings(t *testing.T) {
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "config.json"), edit(t, jsonObject{
		"attention_dropout": 0.1, "dual_chunk_attention_config": jsonObject{"chunk_size": 262144},
		"rope_scaling": jsonObject{"rope_type": "yarn", "factor": 4, "original_max_position_embeddings": 32768, "attn_factor": 0.8782488562869419},
	}))
	d, err := Describe(dir)
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Join(d.Notes, "\n")
	for _, want := range []string{"rope_scaling: attn_factor is 0.878", "dual_chunk_attention_config", "attention_dropout is 0.1"} {
		if !strings.Contains(text, want) {
			t.Errorf("notes %q do not say %q", text, want)
		}
	}
	writeFile(t, filepath.Join(dir, "config.json"), edit(t, nil))
	if list := fileNotes(dir, false); len(list) != 0 {
		t.Errorf("a plain file has notes %q", list)
	}
}
