package checkpoint

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"exp/kernels"
	"exp/train/checkpoint/extent"
	"exp/train/model"
)

// Rounding to 16 bits against its definition: the nearest of the neighbours that
// decoding gives, the even one of two that are as near.
func TestRoundingToSixteenBits(t *testing.T) {
	halves := func(f float32) uint16 { h, _ := extent.F16(f); return h }
	widen := func(h uint16) float32 { return math.Float32frombits(uint32(h) << 16) }
	for _, tt := range []struct {
		name string
		to   func(float32) uint16
		from func(uint16) float32
		inf  uint16
	}{{"F16", halves, extent.Half, 0x7c00}, {"BF16", extent.BF16, widen, 0x7f80}} {
		t.Run(tt.name, func(t *testing.T) {
			for h := uint16(0); h+1 < tt.inf; h++ {
				lo, hi := float64(tt.from(h)), float64(tt.from(h+1))
				mid := float32((lo + hi) / 2) // exact: one more bit
				even := h + h&1
				for _, c := range []struct {
					f    float32
					want uint16
				}{
					{float32(lo), h}, {mid, even},
					{math.Nextafter32(mid, float32(math.Inf(-1))), h}, {math.Nextafter32(mid, float32(math.Inf(1))), h + 1},
				} {
					if got := tt.to(c.f); got != c.want {
						t.Fatalf("%g = %#04x, want %#04x", c.f, got, c.want)
					}
					if got := tt.to(-c.f); got != c.want|0x8000 {
						t.Fatalf("%g = %#04x, want %#04x", -c.f, got, c.want|0x8000)
					}
				}
			}
			if got := tt.to(float32(math.Inf(1))); got != tt.inf {
				t.Errorf("infinity is %#04x, want %#04x", got, tt.inf)
			}
			nan := tt.from(tt.to(math.Float32frombits(0x7f800001)))
			if nan == nan {
				t.Errorf("NaN became %g", nan)
			}
		})
	}
	if _, ok := extent.F16(65520); ok {
		t.Error("65520 rounds to 65536, which F16 does not have")
	}
	if h, ok := extent.F16(65519); !ok || h != 0x7bff {
		t.Errorf("65519 = %#04x, %v; want the largest F16", h, ok)
	}
}

// Weights are written rounded, and the folder computes what the rounded model computes.
func TestMergeRounds(t *testing.T) {
	for _, be := range []kernels.Backend{refBackend(), newCPU(t)} {
		for _, dtype := range []DType{BF16, F16} {
			m := newModel(t, be, toyQwen3, policyHeads, false)
			dir := filepath.Join(t.TempDir(), "m")
			if _, err := Merge(be, m, dir, MergeOptions{DType: dtype}); err != nil {
				t.Fatal(err)
			}
			files, err := OpenFolder(dir)
			if err != nil {
				t.Fatal(err)
			}
			defer files.Close()
			for _, tensor := range m.Tensors() {
				got, ok := files.Lookup(tensor.Name)
				if ok == tensor.Auxiliary() || ok && got.DType != dtype {
					t.Errorf("%s: %+v in the file, %v; want %s", tensor.Name, got, ok, dtype)
				}
			}
			raw := readFile(t, filepath.Join(dir, configFile))
			var c struct{ Dtype, Torch_dtype string }
			if err := json.Unmarshal(raw, &c); err != nil || c.Dtype != torchName(dtype) || c.Torch_dtype != c.Dtype {
				t.Errorf("config.json says %+v, %v; want %s", c, err, torchName(dtype))
			}
			// A folder whose numbers are not the rounded ones does not pass.
			name := "model.layers.0.self_attn.q_proj.weight"
			flipAt(t, filepath.Join(dir, weightsFile), files.where[name].begin+1)
			as, err := MergeOptions{DType: dtype}.dtypes(be)
			if err != nil {
				t.Fatal(err)
			}
			var e *ProbeError
			if err := probe(be, m, dir, as); !errors.As(err, &e) || e.What != "logits" {
				t.Errorf("a changed weight: %v, want a *ProbeError", err)
			}
		}
	}
}

// flipAt changes the second bit of the byte at a place of a file.
func flipAt(t *testing.T, path string, at int64) {
	t.Helper()
	b := readFile(t, path)
	b[at] ^= 2
	writeFile(t, path, b)
}

func TestMergeRefusesWhatF16CannotHold(t *testing.T) {
	be := refBackend()
	m := newModel(t, be, toyLlama, model.Heads{LM: true}, false)
	be.Copy(m.View("model.norm.weight").Slice(3, 4), kernels.Host([]float32{1e6}))
	parent := t.TempDir()
	_, err := Merge(be, m, filepath.Join(parent, "m"), MergeOptions{DType: F16})
	if err == nil || !strings.Contains(err.Error(), "model.norm.weight: 1e+06 is beyond F16") {
		t.Errorf("got %v", err)
	}
	if left := tree(t, parent); len(left) > 0 {
		t.Errorf("left %q", slices.Collect(maps.Keys(left)))
	}
}

// Shards hold what one file holds, each at most the limit unless it is one tensor.
func TestMergeInShards(t *testing.T) {
	be := refBackend()
	m := newModel(t, be, toyQwen2, policyHeads, false)
	const limit = 700
	one, many := filepath.Join(t.TempDir(), "one"), filepath.Join(t.TempDir(), "many")
	for dir, bytes := range map[string]int64{one: 0, many: limit} {
		if _, err := Merge(be, m, dir, MergeOptions{ShardBytes: bytes}); err != nil {
			t.Fatal(err)
		}
	}
	a, err := OpenFolder(one)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	b, err := OpenFolder(many)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	if x, y := contents(t, a), contents(t, b); !maps.Equal(x, y) {
		t.Error("the shards hold other tensors")
	}
	var index struct {
		Metadata  struct{ Total_size int64 }
		WeightMap map[string]string `json:"weight_map"`
	}
	if err := json.Unmarshal(readFile(t, filepath.Join(many, indexFile)), &index); err != nil {
		t.Fatal(err)
	}
	sizes, counts := map[string]int64{}, map[string]int{}
	var total int64
	for _, tensor := range a.List() {
		file := index.WeightMap[tensor.Name]
		sizes[file] += tensor.Bytes()
		counts[file]++
		total += tensor.Bytes()
	}
	if index.Metadata.Total_size != total || len(sizes) < 3 {
		t.Errorf("total_size is %d in %d files, want %d in several", index.Metadata.Total_size, len(sizes), total)
	}
	for file, size := range sizes {
		if size > limit && counts[file] > 1 {
			t.Errorf("%s has %d bytes of %d tensors", file, size, counts[file])
		}
		if want := fmt.Sprintf("-of-%05d.safetensors", len(sizes)); !strings.HasPrefix(file, "model-0") || !strings.HasSuffix(file, want) {
			t.Errorf("a file is named %s, want …%s", file, want)
		}
	}
}

// contents returns the bytes of tensors by name and type.
func contents(t *testing.T, x *Tensors) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, s := range x.Sources() {
		var b strings.Builder
		if err := s.Raw(&b); err != nil {
			t.Fatal(err)
		}
		all[s.Name+" "+s.kind()] = b.String()
	}
	return all
}

// What came from a folder goes back as it was: config.json, types of numbers, templates.
func TestMergeKeepsTheOrigin(t *testing.T) {
	be := refBackend()
	source := filepath.Join(t.TempDir(), "source")
	m := newModel(t, be, toyQwen2, model.Heads{LM: true}, false)
	if _, err := Merge(be, m, source, MergeOptions{DType: BF16}); err != nil {
		t.Fatal(err)
	}
	config := strings.Replace(string(readFile(t, filepath.Join(source, configFile))), "{", `{"_mine": 1.0,`, 1)
	writeFile(t, filepath.Join(source, configFile), []byte(config))
	origin, err := ReadOrigin(source)
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "m")
	kept := map[string][]byte{"chat_template.jinja": []byte("{{ x }}"), "additional_chat_templates/tool_use.jinja": []byte("{{ y }}"), "generation_config.json": []byte("{ }\n")}
	files, err := Merge(be, m, dir, MergeOptions{Origin: origin, Tokenizer: kept})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range kept {
		if got := readFile(t, filepath.Join(dir, name)); string(got) != string(want) {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
		if !slices.ContainsFunc(files, func(f FileInfo) bool { return f.Name == name }) {
			t.Errorf("%s is not among the files", name)
		}
	}
	if got := string(readFile(t, filepath.Join(dir, configFile))); !strings.HasPrefix(got, "{\n  \"_mine\": 1.0,\n") {
		t.Errorf("config.json begins with %q", got[:40])
	}
	again, err := ReadOrigin(dir)
	if err != nil || !maps.Equal(again.DTypes, origin.DTypes) {
		t.Errorf("types %v, %v; want %v", again, err, origin.DTypes)
	}
	if _, err := Merge(be, m, filepath.Join(t.TempDir(), "m"), MergeOptions{Tokenizer: map[string][]byte{"other/x": nil}}); err == nil {
		t.Error("a file in another folder: no error")
	}
}
