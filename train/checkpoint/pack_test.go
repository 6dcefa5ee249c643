package checkpoint

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"exp/kernels"
	"exp/train/model"
)

// packed packs a container into a new folder.
func packed(t *testing.T, path string, o PackOptions) (string, *Packed) {
	t.Helper()
	c, err := FindContainer(path)
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "out")
	p, err := Pack(t.Context(), c, dir, o)
	if err != nil {
		t.Fatal(err)
	}
	return dir, p
}

// The merged folders of all golden checkpoints hold the expected tensors, bit for bit.
func TestPackGolden(t *testing.T) {
	for _, name := range []string{"pytorch/zip", "verl/fsdp1_2", "verl/fsdp1_4", "verl/fsdp2_2", "verl/hsdp_2x2"} {
		t.Run(name, func(t *testing.T) {
			from := goldenContainer(t, name)
			dir, p := packed(t, from, PackOptions{})
			want := bytesOf(t, opened(t, OpenFile, filepath.Join(from, "merged.safetensors")))
			c, err := ReadConfig(dir)
			if err != nil {
				t.Fatal(err)
			}
			if before, err := ReadConfig(from); err != nil || !cmp.Equal(c, before) {
				t.Errorf("config %+v, want %+v (%v)", c, before, err)
			}
			if c.TieEmbeddings {
				delete(want, lmHead)
			}
			heads := map[string]string{}
			for name, text := range want {
				if strings.HasPrefix(name, "proj_z.") {
					heads[name] = text
					delete(want, name)
				}
			}
			if got := bytesOf(t, opened(t, OpenFolder, dir)); !cmp.Equal(got, want) {
				t.Error("other tensors")
			}
			if strings.HasPrefix(name, "verl") {
				if got := bytesOf(t, opened(t, OpenFile, filepath.Join(dir, "proj_z.safetensors"))); !cmp.Equal(got, heads) {
					t.Error("other tensors of the head")
				}
			}
			if p.Tensors != len(want)+len(heads) || p.DType != F32 {
				t.Errorf("%+v", p)
			}
		})
	}
}

// Rounding to BF16 takes the nearest value, and of two the even one.
func TestPackRounds(t *testing.T) {
	from := goldenContainer(t, "verl/fsdp1_4")
	dir, p := packed(t, from, PackOptions{DType: BF16})
	got, want := opened(t, OpenFolder, dir), opened(t, OpenFile, filepath.Join(from, "merged.safetensors"))
	for _, x := range got.List() {
		raw, full := elementsOf(t, got, x.Name), elementsOf(t, want, x.Name)
		for i := range x.Len() {
			b := binary.LittleEndian.Uint16(raw[2*i:])
			f := math.Float32frombits(binary.LittleEndian.Uint32(full[4*i:]))
			distance := func(b uint16) float64 {
				return math.Abs(float64(math.Float32frombits(uint32(b)<<16)) - float64(f))
			}
			for _, other := range []uint16{b - 1, b + 1} {
				if distance(other) < distance(b) || distance(other) == distance(b) && b&1 == 1 {
					t.Fatalf("%s: element %d is %#x for %g; %#x is nearer", x.Name, i, b, f, other)
				}
			}
		}
	}
	if p.DType != BF16 {
		t.Errorf("type %s", p.DType)
	}
	var config map[string]any
	if err := json.Unmarshal(readFile(t, filepath.Join(dir, configFile)), &config); err != nil ||
		config["torch_dtype"] != "bfloat16" || config["dtype"] != "bfloat16" {
		t.Errorf("config.json says %v, %v (%v)", config["torch_dtype"], config["dtype"], err)
	}
}

func elementsOf(t *testing.T, x *Tensors, name string) []byte {
	t.Helper()
	var b bytes.Buffer
	for _, s := range x.Sources() {
		if s.Name == name {
			if err := s.Raw(&b); err != nil {
				t.Fatal(err)
			}
		}
	}
	return b.Bytes()
}

func TestPackShards(t *testing.T) {
	from := goldenContainer(t, "verl/fsdp1_4")
	var reported []int64
	dir, p := packed(t, from, PackOptions{ShardBytes: 200_000, Progress: func(done, total int64) {
		reported = append(reported, done, total)
	}})
	got := bytesOf(t, opened(t, OpenFolder, dir))
	whole, _ := packed(t, from, PackOptions{})
	if !cmp.Equal(got, bytesOf(t, opened(t, OpenFolder, whole))) {
		t.Error("shards hold other tensors than one file")
	}
	var index struct {
		Metadata struct {
			Total int64 `json:"total_size"`
		} `json:"metadata"`
	}
	var total int64
	if err := json.Unmarshal(readFile(t, filepath.Join(dir, indexFile)), &index); err != nil {
		t.Fatal(err)
	}
	for _, x := range opened(t, OpenFolder, dir).List() {
		total += x.Bytes()
	}
	if index.Metadata.Total != total {
		t.Errorf("the index counts %d bytes, want %d", index.Metadata.Total, total)
	}
	if len(p.Files) < 6 || !slices.ContainsFunc(p.Files, func(f DescribedFile) bool {
		return f.Name == "model-00001-of-00004.safetensors" && f.Bytes > 100_000
	}) {
		t.Errorf("files %v", p.Files)
	}
	if n := len(reported); n == 0 || reported[n-2] != reported[n-1] {
		t.Errorf("progress ended with %v", reported[max(n-2, 0):])
	}
}

// toyFolder writes a small model as a folder, without the tensors that drop selects and with
// the tensors in more.
func toyFolder(t *testing.T, c model.Config, drop func(name string) bool, more ...Source) string {
	t.Helper()
	dir := t.TempDir()
	be := refBackend()
	raw, err := configJSON(c, F32, []int32{1})
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(dir, configFile), raw)
	m := newModel(t, be, c, model.Heads{LM: true}, false)
	list := slices.DeleteFunc(Weights(be, m, Plain), func(s Source) bool { return drop(s.Name) })
	writeTensors(t, filepath.Join(dir, weightsFile), append(list, more...)...)
	return dir
}

func none(string) bool { return false }

// Other files of the model are copied byte for byte, and nothing else is.
func TestPackTexts(t *testing.T) {
	from := toyFolder(t, toyLlama, none)
	kept := []string{"tokenizer.json", "tokenizer_config.json", "generation_config.json", "merges.txt", "vocab.json",
		"tokenizer.model", "chat_template.jinja", "additional_chat_templates/rag.jinja", "modeling_toy.py"}
	for _, name := range append(slices.Clone(kept), "optimizer.pt", "trainer_state.json", "README.md",
		"model.safetensors.index.json.old") {
		writeFile(t, filepath.Join(from, name), []byte("contents of "+name))
	}
	dir, _ := packed(t, from, PackOptions{})
	got := tree(t, dir)
	for _, name := range kept {
		if got[name] != "contents of "+name {
			t.Errorf("%s is %q", name, got[name])
		}
		delete(got, name)
	}
	for _, name := range []string{configFile, weightsFile, keptFolder} {
		delete(got, name)
	}
	if len(got) > 0 {
		t.Errorf("also there: %v", got)
	}
	// Another folder's texts.
	other := toyFolder(t, toyLlama, none)
	writeFile(t, filepath.Join(other, "tokenizer.json"), []byte("of the other"))
	c, err := FindContainer(filepath.Join(from, weightsFile))
	if err != nil {
		t.Fatal(err)
	}
	c.Texts = other
	out := filepath.Join(t.TempDir(), "out")
	if _, err := Pack(t.Context(), c, out, PackOptions{}); err != nil {
		t.Fatal(err)
	}
	if got := string(readFile(t, filepath.Join(out, "tokenizer.json"))); got != "of the other" {
		t.Errorf("the tokenizer is %q", got)
	}
}

// Floats change their type, integers and 8-bit floats do not.
func TestPackTypes(t *testing.T) {
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, configFile), []byte(`{"architectures": ["OtherForCausalLM"], "model_type": "other"}`))
	writeTensors(t, filepath.Join(dir, weightsFile), source("a", F16, []int{2}, "\x00\x3c\x00\xc0"),
		source("b", BF16, []int{1}, "\x80\x3f"), source("c", "I64", []int{1}, "\x07\x00\x00\x00\x00\x00\x00\x00"),
		source("d", "F8_E4M3", []int{3}, "\x01\x02\x03"), source("e", F64, []int{1}, "\x00\x00\x00\x00\x00\x00\xf8\x3f"),
		source("f", F32, []int{0}, ""))
	for dtype, want := range map[DType]map[string]string{
		F32: {"a": "F32 [2] \x00\x00\x80\x3f\x00\x00\x00\xc0", "b": "F32 [1] \x00\x00\x80\x3f",
			"c": "I64 [1] \x07\x00\x00\x00\x00\x00\x00\x00", "d": "F8_E4M3 [3] \x01\x02\x03",
			"e": "F32 [1] \x00\x00\xc0\x3f", "f": "F32 [0] "},
		BF16: {"a": "BF16 [2] \x80\x3f\x00\xc0", "b": "BF16 [1] \x80\x3f", "c": "I64 [1] \x07\x00\x00\x00\x00\x00\x00\x00",
			"d": "F8_E4M3 [3] \x01\x02\x03", "e": "BF16 [1] \xc0\x3f", "f": "BF16 [0] "},
	} {
		out, _ := packed(t, dir, PackOptions{DType: dtype})
		if diff := cmp.Diff(want, bytesOf(t, opened(t, OpenFolder, out))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", dtype, diff)
		}
	}
}

// The heads of a language model go to separate files. A class that scores keeps its
// head, and a critic gets such a class.
func TestPackHeads(t *testing.T) {
	score := source("score.weight", F32, []int{1, toyLlama.Width}, strings.Repeat("abcd", toyLlama.Width))
	bias := source("score.bias", F32, []int{1}, "abcd")
	trl := source("v_head.summary.bias", F32, []int{1}, "wxyz")
	isHead := func(name string) bool { return name == lmHead }
	for _, tt := range []struct {
		name  string
		from  string
		class string
		file  string // that holds the head
		head  string
	}{
		{"language model with a value head", toyFolder(t, toyLlama, none, score), "LlamaForCausalLM",
			"value_head.safetensors", "score.weight"},
		{"of TRL", toyFolder(t, toyLlama, none, trl), "LlamaForCausalLM", "value_head.safetensors", "v_head.summary.bias"},
		{"critic", toyFolder(t, toyLlama, isHead, score, bias), "LlamaForTokenClassification", weightsFile, "score.bias"},
		{"critic without bias", toyFolder(t, toyLlama, isHead, score), "LlamaForSequenceClassification", weightsFile,
			"score.weight"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir, p := packed(t, tt.from, PackOptions{})
			if p.Class != tt.class || classIn(dir) != tt.class {
				t.Errorf("class %s, in the folder %s", p.Class, classIn(dir))
			}
			x := opened(t, OpenFile, filepath.Join(dir, tt.file))
			if _, ok := x.Lookup(tt.head); !ok {
				t.Errorf("%s has no %s: %v", tt.file, tt.head, x.List())
			}
			if strings.HasSuffix(tt.class, classifier) {
				be := refBackend()
				m, err := LoadClassifier(be, dir, 0)
				if err != nil {
					t.Fatal(err)
				}
				got := make([]float32, toyLlama.Width)
				be.Copy(kernels.Host(got), m.View("score.weight"))
				be.Sync()
				if math.Float32bits(got[0]) != binary.LittleEndian.Uint32([]byte("abcd")) {
					t.Errorf("score.weight begins with %g", got[0])
				}
				m.Close()
			}
		})
	}
}

// A file without a configuration becomes safetensors, and nothing else.
func TestPackFile(t *testing.T) {
	dir, p := packed(t, goldenContainer(t, "pytorch/odd.pt"), PackOptions{})
	sameContents(t, opened(t, OpenFolder, dir), opened(t, OpenFile, goldenContainer(t, "pytorch/odd.merged.safetensors")))
	if len(p.Files) != 1 || len(p.Notes) != 1 || !strings.Contains(p.Notes[0], "--hf-config DIR") || p.Class != "" {
		t.Errorf("%+v", p)
	}
}

func TestPackErrors(t *testing.T) {
	other := toyLlama
	other.Layers++
	tied := toyQwen2
	head := source(lmHead, F32, []int{tied.Vocab, tied.Width}, strings.Repeat("abcd", tied.Vocab*tied.Width))
	there := t.TempDir()
	alone := filepath.Join(t.TempDir(), "alone.safetensors")
	writeTensors(t, alone, source("w", F32, []int{1}, "abcd"))
	bare := t.TempDir()
	writeTensors(t, filepath.Join(bare, weightsFile), source("w", F32, []int{1}, "abcd"))
	for _, tt := range []struct {
		name, from, texts, out string
		is                     error
		want                   string
	}{
		{"another configuration", toyFolder(t, toyLlama, none), toyFolder(t, other, none), "", nil,
			"missing: model.layers.2.input_layernorm.weight"},
		{"a head that is not the embedding", toyFolder(t, tied, none, head), "", "", nil, "configuration ties them"},
		{"no configuration", bare, "", "", nil, "no config.json is with the weights"},
		{"a missing configuration", alone, filepath.Join(there, "none"), "", fs.ErrNotExist, "config.json"},
		{"something there", toyFolder(t, toyLlama, none), "", there, ErrExists, "exists already"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, err := FindContainer(tt.from)
			if err != nil {
				t.Fatal(err)
			}
			if tt.texts != "" {
				c.Texts = tt.texts
			}
			out := tt.out
			if out == "" {
				out = filepath.Join(t.TempDir(), "out")
			}
			before := tree(t, filepath.Dir(out))
			_, err = Pack(t.Context(), c, out, PackOptions{})
			if err == nil || !strings.Contains(err.Error(), tt.want) || tt.is != nil && !errors.Is(err, tt.is) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
			if after := tree(t, filepath.Dir(out)); !cmp.Equal(after, before) {
				t.Errorf("left behind: %v", after)
			}
		})
	}
}

// A source that ends early is named, and so is the tensor.
func TestPackTruncated(t *testing.T) {
	from := toyFolder(t, toyLlama, none)
	c, err := FindContainer(from)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(from, weightsFile)
	d := system()
	d.mkdir = func(dir string) error { // after the headers were read
		return errors.Join(system().mkdir(dir), os.Truncate(path, int64(len(readFile(t, path)))-4))
	}
	_, err = d.pack(t.Context(), c, filepath.Join(t.TempDir(), "out"), PackOptions{})
	var e *Error
	if !errors.Is(err, ErrCorrupt) || !errors.As(err, &e) || e.Path != path || e.Tensor == "" {
		t.Errorf("got %v", err)
	}
}

// A merge that is stopped leaves nothing.
func TestPackStopped(t *testing.T) {
	c, err := FindContainer(toyFolder(t, toyLlama, none))
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	root := t.TempDir()
	_, err = Pack(ctx, c, filepath.Join(root, "out"), PackOptions{Progress: func(_, _ int64) { stop() }})
	if !errors.Is(err, context.Canceled) || len(tree(t, root)) > 0 {
		t.Errorf("got %v, left %v", err, tree(t, root))
	}
}

// A disk that fills up at any moment leaves what was there, and nothing else.
func TestPackOnAFullDisk(t *testing.T) {
	from := toyFolder(t, toyLlama, none)
	writeFile(t, filepath.Join(from, "tokenizer.json"), []byte("{}"))
	for _, name := range []string{"new", "there"} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			writeFile(t, filepath.Join(root, "there", configFile), []byte("old"))
			eachFault(t, root, func(d disk) error {
				c, err := FindContainer(from)
				if err != nil {
					return err
				}
				_, err = d.pack(t.Context(), c, filepath.Join(root, name), PackOptions{Replace: true})
				return err
			})
			if _, err := ReadConfig(filepath.Join(root, name)); err != nil {
				t.Error(err)
			}
		})
	}
}
