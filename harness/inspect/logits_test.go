package inspect

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"exp/kernels/ref"
	"exp/train/checkpoint"
)

func TestReadSequences(t *testing.T) {
	for _, tt := range []struct {
		text, want string
		ids        [][]int32
	}{
		{text: `{"sequences": [[0, 7], [2147483647]], "seed": 1}`, ids: [][]int32{{0, 7}, {2147483647}}},
		{text: `{"sequences": [[]]}`, ids: [][]int32{{}}},
		{text: ``, want: "unexpected end"},
		{text: `[[1]]`, want: "cannot unmarshal array"},
		{text: `{"sequences": []}`, want: "holds no sequences"},
		{text: `{"sequences": null}`, want: "holds no sequences"},
		{text: `{"sequences": [null]}`, want: "null is not a token id"},
		{text: `{"sequences": [[1, null]]}`, want: "null is not a token id"},
		{text: `{"sequences": [[1.5]]}`, want: "1.5"},
		{text: `{"sequences": [[2147483648]]}`, want: "2147483648"},
		{text: `{"sequences": [["1"]]}`, want: "string"},
		{text: `{"sequences": ` + strings.Repeat("[", 20000), want: "depth"},
	} {
		got, err := ReadSequences(strings.NewReader(tt.text))
		if tt.want != "" {
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%.60s: %v, %v; want an error with %q", tt.text, got, err, tt.want)
			}
		} else if err != nil || !cmp.Equal(got, tt.ids) {
			t.Errorf("%s: %v, %v; want %v", tt.text, got, err, tt.ids)
		}
	}
}

func FuzzReadSequences(f *testing.F) {
	f.Add([]byte(`{"sequences": [[1, 2], [3]]}`))
	f.Add([]byte(`{"sequences": [[null]], "sequences": [[1e3]]}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		list, err := ReadSequences(bytes.NewReader(raw))
		if err == nil && len(list) == 0 {
			t.Fatal("neither sequences nor an error")
		}
	})
}

// A config.json may claim any size: no memory is taken for what the files do not hold.
func TestLogitsBelievesNoConfig(t *testing.T) {
	dir := t.TempDir()
	config := `{"architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": 16777216, "hidden_size": 262144,
		"num_hidden_layers": 4096, "num_attention_heads": 4096, "intermediate_size": 1048576}`
	if err := os.WriteFile(filepath.Join(dir, "config.json"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	var weights bytes.Buffer
	tensor := checkpoint.Source{Tensor: checkpoint.Tensor{Name: "model.norm.weight", DType: checkpoint.F32, Shape: []int{1}},
		Raw: func(w io.Writer) error { _, err := w.Write(make([]byte, 4)); return err }}
	if err := checkpoint.WriteSafetensors(&weights, []checkpoint.Source{tensor}); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "model.safetensors"), weights.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	err := Logits(ref.New[float32](), Folder{Dir: dir}, [][]int32{{1}}, io.Discard)
	if err == nil || !strings.Contains(err.Error(), "model.embed_tokens.weight") {
		t.Errorf("got %v, want the tensors that are missing", err)
	}
}

// A model whose queries change beyond some position is computed up to there alone.
func TestLogitsOfMinistralEnd(t *testing.T) {
	dir := t.TempDir()
	config := `{"architectures": ["Ministral3ForCausalLM"], "vocab_size": 7, "hidden_size": 4, "intermediate_size": 6, "head_dim": 4,
		"num_hidden_layers": 1, "num_attention_heads": 1, "num_key_value_heads": 1, "rope_parameters": {"rope_type": "yarn",
		"rope_theta": 1e4, "factor": 16.0, "original_max_position_embeddings": 2, "llama_4_scaling_beta": 0.1}}`
	if err := os.WriteFile(filepath.Join(dir, "config.json"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	err := Logits(ref.New[float32](), Folder{Dir: dir}, [][]int32{{1, 2}, {1, 2, 3}}, io.Discard)
	if err == nil || err.Error() != "sequence 1 has 3 tokens, the model has 2 positions" {
		t.Errorf("got %v", err)
	}
}
