package reward

import (
	"context"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"exp/kernels/cpu"
	"exp/train/rollout"
	"exp/train/tokenizer"
)

// fill sets a tensor to random numbers.
func (m *tiny) fill(name string, shape ...int) {
	n := 1
	for _, d := range shape {
		n *= d
	}
	r := rand.New(rand.NewPCG(uint64(len(name)), uint64(n)))
	x := make([]float64, n)
	for i := range x {
		x[i] = float64(float32(r.Float64()*2 - 1))
	}
	m.w[name], m.shape[name] = x, shape
}

// hidden gives m the head of Qwen2.5-Math's reward models, and returns what it computes: Linear, ReLU, Linear, as in
// their own code.
func (m *tiny) hidden(class string, labels int) func(ids []int32) []float64 {
	m.class = class
	delete(m.w, "score.weight")
	m.fill("score.0.weight", tinyWidth, tinyWidth)
	m.fill("score.0.bias", tinyWidth)
	m.fill("score.2.weight", labels, tinyWidth)
	m.fill("score.2.bias", labels)
	return func(ids []int32) []float64 {
		h := linear(m.w["score.0.weight"], m.w["score.0.bias"], m.state(ids))
		for i := range h {
			h[i] = max(0, h[i])
		}
		return linear(m.w["score.2.weight"], m.w["score.2.bias"], h)
	}
}

// The heads of published reward models, and language models that score by two next tokens, score as the plain
// computation; batches change no bit.
func TestHeads(t *testing.T) {
	be, err := cpu.Open(cpu.Options{Threads: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer be.Close()
	list := []rollout.Item{}
	for _, s := range []string{"bcad", "dddacb", "a"} {
		list = append(list, rollout.Item{Problem: &rollout.Problem{}, Completion: &rollout.Completion{Text: s}})
	}
	for name, make := range map[string]func(o *ModelOptions) (*tiny, func(ids []int32) float64){
		"Qwen2.5-Math-RM": func(*ModelOptions) (*tiny, func([]int32) float64) {
			m := newTiny("Qwen2", 1)
			head := m.hidden("ForRewardModel", 1)
			return m, func(ids []int32) float64 { return head(ids)[0] }
		},
		"a label": func(o *ModelOptions) (*tiny, func([]int32) float64) {
			m := newTiny("Qwen2", 1)
			head := m.hidden("ForRewardModel", 3)
			o.Label = 2
			return m, func(ids []int32) float64 { return head(ids)[2] }
		},
		"Qwen2.5-Math-PRM": func(*ModelOptions) (*tiny, func([]int32) float64) {
			m := newTiny("Qwen2", 1)
			head := m.hidden("ForProcessRewardModel", 2)
			return m, func(ids []int32) float64 { z := head(ids); return z[1] - z[0] }
		},
		"Skywork-o1-Open-PRM": func(*ModelOptions) (*tiny, func([]int32) float64) {
			m := newTiny("Qwen2", 1)
			m.class = "ForPrmModel"
			delete(m.w, "score.weight")
			m.fill("v_head.summary.weight", 1, tinyWidth)
			m.fill("v_head.summary.bias", 1)
			return m, func(ids []int32) float64 {
				return linear(m.w["v_head.summary.weight"], m.w["v_head.summary.bias"], m.state(ids))[0]
			}
		},
		"next tokens": func(o *ModelOptions) (*tiny, func([]int32) float64) {
			return choosing(o, "Qwen2", "lm_head.weight", map[string]any{"tie_word_embeddings": false})
		},
		"tied": func(o *ModelOptions) (*tiny, func([]int32) float64) {
			return choosing(o, "Llama", "model.embed_tokens.weight", nil)
		},
	} {
		o := ModelOptions{Text: "{response}"}
		m, want := make(&o)
		dir := m.write(t)
		var first []Score
		for _, o.BatchTokens = range []int{1, 100} {
			r, err := OpenModel(be, dir, o)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			got, err := r.Score(context.Background(), list)
			if err != nil {
				t.Fatal(err)
			}
			for i, it := range list {
				x, err := r.encode(it)
				if err != nil {
					t.Fatal(err)
				}
				if w := want(x.ids); !got[i].Graded || math.Abs(got[i].Value-w) > 2e-5*(1+math.Abs(w)) {
					t.Errorf("%s of %q: got %+v, want %g", name, it.Completion.Text, got[i], w)
				}
				if first != nil && first[i].Value != got[i].Value {
					t.Errorf("%s of %q: batches give %v and %v", name, it.Completion.Text, first[i].Value, got[i].Value)
				}
			}
			if first = got; r.Close() != nil {
				t.Error("not closed")
			}
		}
	}
}

// choosing is a language model that scores by c against b, whose output projection is a tensor.
func choosing(o *ModelOptions, arch, output string, more map[string]any) (*tiny, func(ids []int32) float64) {
	m := newTiny(arch, 1)
	m.class, m.more = "ForCausalLM", more
	delete(m.w, "score.weight")
	if m.w[output] == nil {
		m.fill(output, tinyVocab, tinyWidth)
	}
	o.Choice = []string{"c", "b"}
	return m, func(ids []int32) float64 {
		z := linear(m.w[output], nil, m.state(ids))
		return z[3] - z[2] // the tokenizer ends texts with token 0
	}
}

// Logits that a family divides are divided.
func TestChoiceDividesLogits(t *testing.T) {
	be, err := cpu.Open(cpu.Options{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer be.Close()
	item := []rollout.Item{{Problem: &rollout.Problem{}, Completion: &rollout.Completion{Text: "bcad"}}}
	score := func(divisor float64) float64 {
		o := ModelOptions{Text: "{response}", BatchTokens: 16}
		m, _ := choosing(&o, "Granite", "model.embed_tokens.weight", map[string]any{"logits_scaling": divisor})
		r, err := OpenModel(be, m.write(t), o)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		got, err := r.Score(context.Background(), item)
		if err != nil {
			t.Fatal(err)
		}
		return got[0].Value
	}
	if one, four := score(1), score(4); one == 0 || one != 4*four {
		t.Errorf("undivided %g, divided by 4 %g", one, four)
	}
}

func TestHeadsRefuse(t *testing.T) {
	be, err := cpu.Open(cpu.Options{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer be.Close()
	for _, tt := range []struct {
		name  string
		spoil func(m *tiny, o *ModelOptions)
		want  string
	}{
		{"no hidden layer", func(m *tiny, _ *ModelOptions) { delete(m.w, "score.0.weight") }, "missing: score.0.weight"},
		{"another width", func(m *tiny, _ *ModelOptions) { m.shape["score.0.bias"] = []int{2, 4} },
			"shape: score.0.bias: the file has F32 [2,4], wanted F32 [8]"},
		{"no last map", func(m *tiny, _ *ModelOptions) { delete(m.w, "score.2.weight") }, "missing: score.2.weight"},
		{"a label of two", func(_ *tiny, o *ModelOptions) { o.Label = 1 }, "label 0 is the logit of right"},
		{"a bias of another length", func(m *tiny, _ *ModelOptions) { m.fill("score.2.bias", 3) },
			"shape: score.2.bias: the file has F32 [3], wanted F32 [2]"},
		{"no begin", func(_ *tiny, o *ModelOptions) { o.Begin = true }, "bos_token"},
		{"no language model", func(_ *tiny, o *ModelOptions) { o.Choice = []string{"a", "b"} }, "Qwen2ForProcessRewardModel"},
		{"no token", func(_ *tiny, o *ModelOptions) { o.Choice = []string{"ab", "b"} }, `"ab" is not one token`},
		{"capped", func(m *tiny, o *ModelOptions) {
			m.arch, m.class, o.Choice = "Gemma2", "ForCausalLM", []string{"a", "b"}
		}, "its logits are capped"},
	} {
		m, o := newTiny("Qwen2", 1), ModelOptions{Text: "{response}", BatchTokens: 16}
		m.hidden("ForProcessRewardModel", 2)
		tt.spoil(m, &o)
		if _, err := OpenModel(be, m.write(t), o); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, want %q", tt.name, err, tt.want)
		}
	}
}

// Separators in one text score at their last tokens, wherever tokens begin.
func TestMarkedSteps(t *testing.T) {
	be, err := cpu.Open(cpu.Options{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer be.Close()
	m := newTiny("Qwen2", 1)
	r, err := OpenModel(be, m.write(t), ModelOptions{Text: "{prompt}{response}", BatchTokens: 64,
		Steps: &Steps{Score: rollout.StepsLast, Split: "d", Separator: "bc", Marks: true}})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	item := func(text string) rollout.Item {
		return rollout.Item{Problem: &rollout.Problem{Prompt: "ab"}, Completion: &rollout.Completion{Text: text}}
	}
	got, err := r.Score(context.Background(), []rollout.Item{item("adbad"), item("acda")})
	if err != nil {
		t.Fatal(err)
	}
	ids := []int32{}
	for _, c := range "ab" + "abc" + "d" + "babc" {
		ids = append(ids, c-'a'+1) // the tokenizer ends texts with token 0
	}
	if want := 1 / (1 + math.Exp(-m.value(ids, 0))); !got[0].Graded || math.Abs(got[0].Value-want) > 2e-5 {
		t.Errorf("got %+v, want %g", got[0], want)
	}
	if got[1].Graded || !strings.Contains(got[1].Reason, "3 times, not once for each of 2 steps") {
		t.Errorf("a step with the separator's last token: %+v", got[1])
	}
}

// begun is a tokenizer whose texts begin with its token 0.
type begun struct{ tokenizer.Tokenizer }

func (b begun) SpecialTokens() tokenizer.Special { return tokenizer.Special{BOS: "<s>"} }

func (b begun) TokenID(text string) (int32, bool) { return 0, text == "<s>" }

func TestBegin(t *testing.T) {
	chars, err := tokenizer.NewChar("abcd")
	if err != nil {
		t.Fatal(err)
	}
	tok := begun{chars}
	begin, err := beginToken(tok)
	if err != nil {
		t.Fatal(err)
	}
	item := rollout.Item{Problem: &rollout.Problem{Prompt: "ab"}, Completion: &rollout.Completion{Text: "cdb"}}
	for _, steps := range []*Steps{nil, {Split: "d", Separator: "a"}, {Split: "d", Separator: "a", Marks: true}} {
		r := &Model{opt: ModelOptions{Text: "{prompt}{response}", Steps: steps}, tok: tok, begin: begin}
		if steps != nil {
			item.Problem.Prompt = "b" // the separator's token is in the steps alone
		}
		for range 2 { // which shares no memory with the first
			x, err := r.encode(item)
			if err != nil || x.ids[0] != 0 || x.ids[1] == 0 || x.ends[0] < 3 {
				t.Errorf("%+v: %v, %v", steps, x, err)
			}
		}
	}
}
