package checkpoint

import (
	"encoding/json"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"exp/kernels"
	"exp/kernels/ref"
	"exp/train/model"
)

// Published reward models score every token as torch computes it with the modules of their own code
// (testdata/scoreheads.py), and language models the log-odds of two next tokens.
func TestScoreHeadsComputeAsTorch(t *testing.T) {
	var all struct {
		Tokens []int32
		Models []struct {
			Config map[string]any
			Heads  map[string][]int
			Scores []float64
		}
	}
	if err := json.Unmarshal(readFile(t, filepath.Join("testdata", "scoreheads.json")), &all); err != nil {
		t.Fatal(err)
	}
	for _, x := range all.Models {
		class := x.Config["architectures"].([]any)[0].(string)
		dir := t.TempDir()
		raw, err := json.Marshal(x.Config)
		if err != nil {
			t.Fatal(err)
		}
		writeFile(t, filepath.Join(dir, configFile), raw)
		open := LoadClassifier
		read := ReadClassifierConfig
		if class == "Qwen2ForCausalLM" {
			read = ReadConfig
			open = func(be kernels.Backend, dir string, _ int) (*model.Model, error) { return LoadChoice(be, dir, 7, 4) }
		}
		c, err := read(dir)
		if err != nil {
			t.Fatal(err)
		}
		tensors, _ := model.Layout(c, model.Heads{})
		shapes := maps.Clone(x.Heads)
		for _, tensor := range tensors {
			shapes[tensor.Name] = tensor.Shape
		}
		writeTensors(t, filepath.Join(dir, "model.safetensors"), wavesOf(shapes)...)
		if d, err := Describe(dir); err != nil || !d.Known || (d.Backbone == "Qwen2ForCausalLM") == (class == "Qwen2ForCausalLM") {
			t.Errorf("%s: described as %+v, %v", class, d, err)
		}
		for _, b := range []struct {
			be    kernels.Backend
			limit float64
		}{{ref.New[float64](), 1e-6}, {openCPU(t, kernels.F32), 1e-5}} {
			m, err := open(b.be, dir, 0)
			if err != nil {
				t.Fatalf("%s: %v", class, err)
			}
			got := valuesOf(t, b.be, m, all.Tokens)
			for i, want := range x.Scores {
				if !(math.Abs(got[i]-want) <= b.limit) {
					t.Errorf("%s on %s: token %d scores %g, torch's %g", class, b.be.Name(), i, got[i], want)
				}
			}
			m.Close()
		}
	}
}

// wavesOf are the weights of testdata/scoreheads.py.
func wavesOf(shapes map[string][]int) (list []Source) {
	for k, name := range slices.Sorted(maps.Keys(shapes)) {
		n := 1
		for _, d := range shapes[name] {
			n *= d
		}
		var raw []byte
		for i := range n {
			v := math.Sin(0.37*float64(i)*float64(1+k%3)+float64(k)) / 2
			if strings.Contains(name, "norm") {
				v = 1 + 0.6*v
			}
			raw = appendF32(raw, float32(v))
		}
		list = append(list, source(name, F32, shapes[name], string(raw)))
	}
	return list
}

// valuesOf returns the value at every token. The engine has the value before each token of a completion, so one more
// token follows, and the prompt is one token long.
func valuesOf(t *testing.T, be kernels.Backend, m *model.Model, ids []int32) []float64 {
	t.Helper()
	n := len(ids) + 1
	ws, err := model.NewWorkspace(be, m.Config, m.Heads, model.Capacity{Tokens: n, Sequences: 1}, model.KeepNothing)
	if err != nil {
		t.Fatal(err)
	}
	defer ws.Close()
	ws.Load(model.Batch{Tokens: append(slices.Clone(ids), 0), Offsets: []int32{0, int32(n)}, Prompt: []int32{1}})
	m.Forward(ws)
	m.Values(ws)
	out := make([]float64, ws.Rows())
	be.Copy(kernels.Host(out), ws.Value())
	be.Sync()
	return out
}
