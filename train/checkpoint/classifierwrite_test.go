package checkpoint

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"exp/kernels"
	"exp/train/model"
)

// trainedClassifier writes the weights of a reward model to a file, as a stage keeps them.
func trainedClassifier(t *testing.T, be kernels.Backend, c model.Config) (Trained, *model.Model) {
	t.Helper()
	m := newModel(t, be, c, model.Heads{Score: true}, true)
	path := filepath.Join(t.TempDir(), "weights.safetensors")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := WriteSafetensors(f, Weights(be, m, func(model.Tensor) bool { return true })); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	x := Trained{Config: c, Heads: model.Heads{Score: true}}
	if x.Weights, err = OpenFile(path); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { x.Weights.Close() })
	x.Learned = x.Weights
	return x, m
}

// A folder of a reward model is a classifier with one label, and holds the bits that were trained.
func TestMergeClassifier(t *testing.T) {
	tied := toyQwen2
	tied.TieEmbeddings = true
	for _, be := range []kernels.Backend{refBackend(), newCPU(t)} {
		for class, c := range map[string]model.Config{"LlamaForSequenceClassification": toyLlama, "Qwen2ForSequenceClassification": tied, "Qwen3ForSequenceClassification": toyQwen3} {
			x, m := trainedClassifier(t, be, c)
			dir := filepath.Join(t.TempDir(), "reward_model")
			files, err := MergeClassifier(be, x, 7, dir, MergeOptions{Tokenizer: charFiles(t), EndIDs: []int32{0}})
			if err != nil {
				t.Fatal(err)
			}
			checkFiles(t, dir, files)
			var config struct {
				Architectures []string
				Pad           int               `json:"pad_token_id"`
				Labels        map[string]string `json:"id2label"`
				IDs           map[string]int    `json:"label2id"`
			}
			if err := json.Unmarshal(readFile(t, filepath.Join(dir, "config.json")), &config); err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(config.Architectures, []string{class}) || config.Pad != 7 || len(config.Labels) != 1 || config.IDs["LABEL_0"] != 0 || config.Labels["0"] != "LABEL_0" {
				t.Errorf("%s: %+v", class, config)
			}
			got, err := LoadClassifier(be, dir, 0)
			if err != nil {
				t.Fatal(err)
			}
			if a, b := hostOf(be, got.View("score.weight")), hostOf(be, m.View("score.weight")); !slices.Equal(a, b) || len(a) != c.Width {
				t.Errorf("%s: the head differs", class)
			}
			got.Close()
		}
	}
}

// hostOf returns the elements of a buffer of numbers, as text that tells bits apart.
func hostOf(be kernels.Backend, b kernels.Buffer) []float64 {
	out := make([]float64, b.Len())
	if be.Float() == kernels.F64 {
		be.Copy(kernels.Host(out), b)
		be.Sync()
		return out
	}
	x := make([]float32, b.Len())
	be.Copy(kernels.Host(x), b)
	be.Sync()
	for i, v := range x {
		out[i] = float64(v)
	}
	return out
}

func TestMergeClassifierRefuses(t *testing.T) {
	be := newCPU(t)
	x, _ := trainedClassifier(t, be, toyQwen2)
	for want, o := range map[string]MergeOptions{
		"a class that ends in ForCausalLM":        {Origin: &Origin{Config: []byte(`{"architectures": ["GPT2LMHeadModel"]}`)}},
		"cannot be written as I64":                {DType: "I64"},
		"the tokenizer may not have a file \"x/y": {Tokenizer: map[string][]byte{"x/y/z": nil}},
	} {
		if want == "a class that ends in ForCausalLM" {
			if err := o.Origin.CheckClassifier(); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%v, want %q", err, want)
			}
			continue
		}
		if _, err := MergeClassifier(be, x, 1, filepath.Join(t.TempDir(), "m"), o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	x.Heads = model.Heads{LM: true}
	if _, err := MergeClassifier(be, x, 1, filepath.Join(t.TempDir(), "m"), MergeOptions{}); err == nil || !strings.Contains(err.Error(), "has no score head") {
		t.Errorf("a language model: %v", err)
	}
}
