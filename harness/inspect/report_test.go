package inspect

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"exp/kernels/ref"
	"exp/train/checkpoint"
	"exp/train/checkpoint/checkpointtest"
)

// The report of a model counts its parameters and bytes, whether it lists its tensors or not.
func TestDescribe(t *testing.T) {
	base := filepath.Join("testdata", "peft", "base")
	listed, err := Folder{Dir: base}.Describe(Options{Tensors: true})
	if err != nil {
		t.Fatal(err)
	}
	short, err := Folder{Dir: base}.Describe(Options{})
	if err != nil {
		t.Fatal(err)
	}
	var elements, size int64
	for _, x := range listed.Tensors {
		n := int64(1)
		for _, d := range x.Shape {
			n *= int64(d)
		}
		elements, size = elements+n, size+x.Bytes
	}
	if len(short.DTypes) != 1 || short.DTypes[0] != (DTypeCount{"F32", len(listed.Tensors), elements, size}) || size != 4*elements ||
		short.Parameters != elements || len(short.Tensors) != 0 || !short.Computable || short.TensorCount != len(listed.Tensors) {
		t.Errorf("%d elements of %d bytes: %+v", elements, size, short)
	}
}

// Adapters that do not fit make the model one that cannot be computed; alone they are listed and hashed.
func TestDescribeAdapters(t *testing.T) {
	dir := filepath.Join("testdata", "peft", "uniform")
	r, err := Folder{Dir: filepath.Join("testdata", "peft", "base"), Adapter: dir}.Describe(Options{})
	if err != nil || !r.Computable || r.Adapter == nil {
		t.Fatalf("%+v, %v", r, err)
	}
	be := ref.New[float32]()
	other := filepath.Join(t.TempDir(), "other")
	checkpointtest.WriteBytes(t, be, other, 64, "{{ messages[0].content }}")
	r, err = Folder{Dir: other, Adapter: dir}.Describe(Options{})
	if err != nil || r.Computable || len(r.Reasons) == 0 || !strings.HasPrefix(r.Reasons[0], "adapters: ") {
		t.Errorf("on another model: %+v, %v", r, err)
	}
	for _, digest := range []bool{false, true} {
		r, err = Folder{Adapter: dir}.Describe(Options{Digest: digest})
		if err != nil || len(r.Files) == 0 || r.Computable {
			t.Fatalf("alone: %+v, %v", r, err)
		}
		for _, f := range r.Files {
			if (f.SHA256 != "") != digest {
				t.Errorf("digest %t: %+v", digest, f)
			}
		}
	}
}

// A tokenizer with as many tokens as the model needs no note; one more token does.
func TestTokenizerNotes(t *testing.T) {
	be := ref.New[float32]()
	dir := filepath.Join(t.TempDir(), "m")
	checkpointtest.WriteBytes(t, be, dir, 64, "{{ messages[0].content }}")
	d, err := checkpoint.Describe(dir)
	if err != nil {
		t.Fatal(err)
	}
	tokens := func(vocab int) bool {
		d.Config.Vocab = vocab
		return strings.Contains(strings.Join(tokenizerNotes(d), "\n"), "the tokenizer has ids up to")
	}
	own := 0
	for own = 1; tokens(own); own++ { // the least without a note
	}
	tok, err := os.ReadFile(filepath.Join(dir, "tokenizer.json"))
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Added []struct{ ID int } `json:"added_tokens"`
		Model struct{ Vocab map[string]int }
	}
	if err := json.Unmarshal(tok, &file); err != nil {
		t.Fatal(err)
	}
	last := 0
	for _, id := range file.Model.Vocab {
		last = max(last, id)
	}
	for _, a := range file.Added {
		last = max(last, a.ID)
	}
	if own != last+1 {
		t.Errorf("no note from a vocabulary of %d on, want %d", own, last+1)
	}
}

// Errors of many sequences name ten.
func TestManyBadSequences(t *testing.T) {
	sequences := make([][]int32, 13)
	err := Logits(ref.New[float32](), Folder{Dir: filepath.Join("testdata", "peft", "base")}, sequences, io.Discard)
	var bad *SequenceError
	if !errors.As(err, &bad) || strings.Count(err.Error(), "is empty") != 10 || !strings.HasSuffix(err.Error(), "and 3 more") {
		t.Errorf("%v", err)
	}
}

// Logits do not change when they are computed in several chunks of rows.
func TestLogitsInChunks(t *testing.T) {
	c, err := checkpoint.ReadConfig(filepath.Join("testdata", "peft", "base"))
	if err != nil {
		t.Fatal(err)
	}
	c.MaxPositions = 8
	ids := []int32{3, 1, 4, 1, 5, 9, 2, 6}
	write := func(rows int) []byte {
		t.Helper()
		p, err := open(ref.New[float32](), c, Folder{Dir: filepath.Join("testdata", "peft", "base")})
		if err != nil {
			t.Fatal(err)
		}
		defer p.close()
		whole := p.rows
		p.rows = whole.Slice(0, rows*c.Vocab)
		var b bytes.Buffer
		err = p.write(&b, ids)
		p.rows = whole
		if err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	want := write(len(ids))
	for _, rows := range []int{1, 3, 5} {
		if !bytes.Equal(write(rows), want) {
			t.Errorf("%d rows at once have other logits", rows)
		}
	}
}

// Where rotary frequencies depend on the length, each sequence has its own.
func TestLogitsOfLengths(t *testing.T) {
	dir := t.TempDir()
	base := filepath.Join("testdata", "peft", "base")
	for _, name := range []string{"config.json", "model.safetensors"} {
		b, err := os.ReadFile(filepath.Join(base, name))
		if err != nil {
			t.Fatal(err)
		}
		if name == "config.json" {
			var conf map[string]any
			if err := json.Unmarshal(b, &conf); err != nil {
				t.Fatal(err)
			}
			delete(conf, "rope_parameters")
			conf["max_position_embeddings"] = 4
			conf["rope_scaling"] = map[string]any{"rope_type": "dynamic", "factor": 4.0}
			if b, err = json.Marshal(conf); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	short, long := []int32{3, 1, 4}, []int32{3, 1, 4, 1, 5, 9, 2, 6}
	alone := logitsOf(t, Folder{Dir: dir}, [][]int32{short, short})
	after := logitsOf(t, Folder{Dir: dir}, [][]int32{long, short})
	if fmt.Sprint(after[1]) != fmt.Sprint(alone[0]) {
		t.Error("a sequence has other logits after a longer one")
	}
	differ := false
	for i, v := range alone[0] {
		differ = differ || math.Abs(v-after[0][i]) > 1e-6
	}
	if !differ {
		t.Error("the length changes no logit")
	}
}
