package reward

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"exp/kernels/cpu"
	"exp/train/checkpoint"
	"exp/train/rollout"
	"exp/train/tokenizer"
)

// tiny is a hand-made sequence-classification model: its weights by name, as float64.
type tiny struct {
	arch   string
	labels int
	tokens bool           // it classifies tokens
	class  string         // what the name of its class ends in, if it is neither classifier of transformers
	more   map[string]any // further settings
	w      map[string][]float64
	shape  map[string][]int
}

// The sizes of tiny models: 2 layers, width 8, 2 heads and 1 key/value head of 4.
const (
	tinyLayers, tinyWidth, tinyHeads, tinyHead, tinyFFN, tinyVocab = 2, 8, 2, 4, 6, 5
	tinyTheta, tinyEps                                             = 100.0, 1e-5
)

func newTiny(arch string, labels int) *tiny {
	m := &tiny{arch: arch, labels: labels, w: map[string][]float64{}, shape: map[string][]int{}}
	r := rand.New(rand.NewPCG(5, 0))
	add := func(name string, shape ...int) {
		n := 1
		for _, d := range shape {
			n *= d
		}
		x := make([]float64, n)
		for i := range x {
			x[i] = float64(float32(r.Float64()*2 - 1))
		}
		m.w[name], m.shape[name] = x, shape
	}
	add("model.embed_tokens.weight", tinyVocab, tinyWidth)
	for l := range tinyLayers {
		p := fmt.Sprintf("model.layers.%d.", l)
		add(p+"input_layernorm.weight", tinyWidth)
		for _, x := range []struct {
			name string
			out  int
		}{{"q", tinyHeads * tinyHead}, {"k", tinyHead}, {"v", tinyHead}} {
			add(p+"self_attn."+x.name+"_proj.weight", x.out, tinyWidth)
			if arch == "Qwen2" {
				add(p+"self_attn."+x.name+"_proj.bias", x.out)
			}
		}
		add(p+"self_attn.o_proj.weight", tinyWidth, tinyHeads*tinyHead)
		add(p+"post_attention_layernorm.weight", tinyWidth)
		add(p+"mlp.gate_proj.weight", tinyFFN, tinyWidth)
		add(p+"mlp.up_proj.weight", tinyFFN, tinyWidth)
		add(p+"mlp.down_proj.weight", tinyWidth, tinyFFN)
	}
	add("model.norm.weight", tinyWidth)
	add("score.weight", labels, tinyWidth)
	return m
}

// write makes the model's folder.
func (m *tiny) write(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	var sources []checkpoint.Source
	for name, x := range m.w {
		sources = append(sources, checkpoint.Source{Tensor: checkpoint.Tensor{Name: name, DType: checkpoint.F32, Shape: m.shape[name]},
			Raw: func(w io.Writer) error {
				b := make([]byte, 0, 4*len(x))
				for _, v := range x {
					u := math.Float32bits(float32(v))
					b = append(b, byte(u), byte(u>>8), byte(u>>16), byte(u>>24))
				}
				_, err := w.Write(b)
				return err
			}})
	}
	slices.SortFunc(sources, func(a, b checkpoint.Source) int { return strings.Compare(a.Name, b.Name) })
	f, err := os.Create(filepath.Join(dir, "model.safetensors"))
	if err != nil {
		t.Fatal(err)
	}
	if err := checkpoint.WriteSafetensors(f, sources); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	class := "ForSequenceClassification"
	if m.tokens {
		class = "ForTokenClassification"
	}
	config := map[string]any{"architectures": []string{m.arch + cmp.Or(m.class, class)}, "model_type": strings.ToLower(m.arch),
		"vocab_size": tinyVocab, "hidden_size": tinyWidth, "num_hidden_layers": tinyLayers, "num_attention_heads": tinyHeads,
		"num_key_value_heads": 1, "head_dim": tinyHead, "intermediate_size": tinyFFN, "rope_theta": tinyTheta, "rms_norm_eps": tinyEps,
		"max_position_embeddings": 24, "tie_word_embeddings": true, "pad_token_id": 0}
	maps.Copy(config, m.more)
	raw, err := json.Marshal(config)
	if err != nil {
		t.Fatal(err)
	}
	tok, err := tokenizer.NewChar("abcd")
	if err != nil {
		t.Fatal(err)
	}
	files := tok.Files()
	files["config.json"] = raw
	for name, b := range files {
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// The plain computation, written from the description of the architecture in package
// model alone: y = W x + b, vectors as slices.
func linear(w, b, x []float64) []float64 {
	y := make([]float64, len(w)/len(x))
	for i := range y {
		for j := range x {
			y[i] += w[i*len(x)+j] * x[j]
		}
		if b != nil {
			y[i] += b[i]
		}
	}
	return y
}

func rmsnorm(w, x []float64) []float64 {
	var ss float64
	for _, v := range x {
		ss += v * v
	}
	y := make([]float64, len(x))
	for i := range x {
		y[i] = w[i] * x[i] / math.Sqrt(ss/float64(len(x))+tinyEps)
	}
	return y
}

// rotate turns the pairs (i, i+D/2) of a head at a position.
func rotate(x []float64, pos int) []float64 {
	y, half := make([]float64, len(x)), len(x)/2
	for i := range half {
		a := float64(pos) * math.Pow(tinyTheta, -2*float64(i)/float64(len(x)))
		y[i] = x[i]*math.Cos(a) - x[i+half]*math.Sin(a)
		y[i+half] = x[i+half]*math.Cos(a) + x[i]*math.Sin(a)
	}
	return y
}

func plus(x, y []float64) []float64 {
	z := slices.Clone(x)
	for i := range z {
		z[i] += y[i]
	}
	return z
}

// value is the score of a label at the last token.
func (m *tiny) value(ids []int32, label int) float64 {
	return linear(m.w["score.weight"][label*tinyWidth:(label+1)*tinyWidth], nil, m.state(ids))[0]
}

// state is the final hidden state of the last token.
func (m *tiny) state(ids []int32) []float64 {
	x := make([][]float64, len(ids))
	for t, id := range ids {
		x[t] = m.w["model.embed_tokens.weight"][int(id)*tinyWidth : (int(id)+1)*tinyWidth]
	}
	for l := range tinyLayers {
		p := fmt.Sprintf("model.layers.%d.", l)
		var q, k, v [][]float64
		for t := range x {
			h := rmsnorm(m.w[p+"input_layernorm.weight"], x[t])
			project := func(name string) []float64 {
				return linear(m.w[p+"self_attn."+name+"_proj.weight"], m.w[p+"self_attn."+name+"_proj.bias"], h)
			}
			q, k, v = append(q, project("q")), append(k, rotate(project("k"), t)), append(v, project("v"))
		}
		for t := range x {
			var out []float64
			for h := range tinyHeads {
				qh := rotate(q[t][h*tinyHead:(h+1)*tinyHead], t)
				sum, o := 0.0, make([]float64, tinyHead)
				for s := range t + 1 {
					dot := 0.0
					for i := range qh {
						dot += qh[i] * k[s][i]
					}
					e := math.Exp(dot / math.Sqrt(tinyHead))
					sum += e
					for i := range o {
						o[i] += e * v[s][i]
					}
				}
				for i := range o {
					out = append(out, o[i]/sum)
				}
			}
			x[t] = plus(x[t], linear(m.w[p+"self_attn.o_proj.weight"], nil, out))
			h := rmsnorm(m.w[p+"post_attention_layernorm.weight"], x[t])
			gate, up := linear(m.w[p+"mlp.gate_proj.weight"], nil, h), linear(m.w[p+"mlp.up_proj.weight"], nil, h)
			for i := range gate {
				gate[i] = gate[i] / (1 + math.Exp(-gate[i])) * up[i]
			}
			x[t] = plus(x[t], linear(m.w[p+"mlp.down_proj.weight"], nil, gate))
		}
	}
	return rmsnorm(m.w["model.norm.weight"], x[len(x)-1])
}

func TestModelScoresAsThePlainComputation(t *testing.T) {
	be, err := cpu.Open(cpu.Options{Threads: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer be.Close()
	texts := []string{"a", "bca", "dddd", "abcdabcdabcd", "c", "ba"}
	var list []rollout.Item
	for i, s := range texts {
		list = append(list, rollout.Item{Problem: &rollout.Problem{ID: fmt.Sprint(i), Prompt: "ab"}, Completion: &rollout.Completion{Text: s}})
	}
	list = append(list, rollout.Item{Problem: &rollout.Problem{ID: "long"}, Completion: &rollout.Completion{Text: strings.Repeat("a", 24)}},
		rollout.Item{Problem: &rollout.Problem{ID: "foreign"}, Completion: &rollout.Completion{Text: "ax"}})
	for _, tt := range []struct {
		arch          string
		labels, label int
	}{{"Qwen2", 1, 0}, {"Llama", 3, 2}} {
		m := newTiny(tt.arch, tt.labels)
		dir := m.write(t)
		var first []Score
		for _, budget := range []int{1, 7, 16, 1000} {
			r, err := OpenModel(be, dir, ModelOptions{Text: "{prompt}{response}", Label: tt.label, BatchTokens: budget})
			if err != nil {
				t.Fatal(err)
			}
			got, err := r.Score(context.Background(), list)
			if err != nil {
				t.Fatal(err)
			}
			for i, s := range texts {
				ids, err := r.tok.Encode("ab"+s, tokenizer.Options{})
				if err != nil {
					t.Fatal(err)
				}
				want := m.value(ids, tt.label)
				if !got[i].Graded || math.Abs(got[i].Value-want) > 2e-5*(1+math.Abs(want)) {
					t.Errorf("%s, %q: got %v, want %v", tt.arch, s, got[i], want)
				}
				if first != nil && math.Float64bits(first[i].Value) != math.Float64bits(got[i].Value) {
					t.Errorf("%s, %q: batches of %d tokens give %v, others %v", tt.arch, s, budget, got[i].Value, first[i].Value)
				}
			}
			if n := len(texts); got[n].Reason != "the reward model: 24 tokens exceed its limit of 23" || got[n].Graded || got[n+1].Graded || got[n+1].Reason == "" {
				t.Errorf("%s: unreadable ones: got %+v", tt.arch, got[n:])
			}
			first = got
			if err := r.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

func TestOpenModelRefuses(t *testing.T) {
	be, err := cpu.Open(cpu.Options{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer be.Close()
	o := ModelOptions{Text: "{response}", BatchTokens: 16}
	for _, tt := range []struct {
		name  string
		spoil func(m *tiny, o *ModelOptions)
		want  string
	}{
		{"label", func(_ *tiny, o *ModelOptions) { o.Label = 1 }, "it has 1 labels, counted from 0, so no label 1"},
		{"no head", func(m *tiny, _ *ModelOptions) { delete(m.w, "score.weight") }, "missing: score.weight"},
		{"bias", func(m *tiny, _ *ModelOptions) { m.w["score.bias"], m.shape["score.bias"] = []float64{1}, []int{1} }, "unexpected: score.bias"},
		{"no layer", func(m *tiny, _ *ModelOptions) { delete(m.w, "model.layers.1.mlp.up_proj.weight") }, "missing: model.layers.1.mlp.up_proj.weight"},
		{"another head", func(m *tiny, _ *ModelOptions) { m.shape["score.weight"] = []int{2, 4} }, "shape: score.weight: the file has F32 [2,4], wanted F32 [labels,8]"},
	} {
		m, o := newTiny("Qwen2", 1), o
		tt.spoil(m, &o)
		if _, err := OpenModel(be, m.write(t), o); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, want %q", tt.name, err, tt.want)
		}
	}
	m := newTiny("Qwen2", 1)
	dir := m.write(t)
	if err := os.WriteFile(filepath.Join(dir, "config.json"), []byte(`{"architectures": ["Qwen2ForCausalLM"]}`), 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenModel(be, dir, o); err == nil ||
		!strings.Contains(err.Error(), "not one name that ends in ForSequenceClassification or ForTokenClassification") {
		t.Errorf("a language model: got %v", err)
	}
}
