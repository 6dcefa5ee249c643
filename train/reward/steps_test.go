package reward

import (
	"context"
	"math"
	"slices"
	"strings"
	"testing"

	"exp/kernels/cpu"
	"exp/train/rollout"
)

// A process reward model scores each step by the state at the last token of the separator behind it; batches change
// no bit.
func TestStepsScoreAsThePlainComputation(t *testing.T) {
	be, err := cpu.Open(cpu.Options{Threads: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer be.Close()
	m := newTiny("Qwen2", 1)
	dir := m.write(t)
	texts := []string{"abdcad", "b", "ddaddb", "acbd"}
	var list []rollout.Item
	for _, s := range texts {
		list = append(list, rollout.Item{Problem: &rollout.Problem{Prompt: "ab"}, Completion: &rollout.Completion{Text: s}})
	}
	probability := func(text string) float64 {
		var ids []int32
		tok, err := OpenModel(be, dir, ModelOptions{Text: "{response}", BatchTokens: 1})
		if err != nil {
			t.Fatal(err)
		}
		defer tok.Close()
		for _, piece := range strings.Split(text, "") {
			x, err := tok.encode(rollout.Item{Problem: &rollout.Problem{}, Completion: &rollout.Completion{Text: piece}})
			if err != nil {
				t.Fatal(err)
			}
			ids = append(ids, x.ids...)
		}
		return 1 / (1 + math.Exp(-m.value(ids, 0)))
	}
	// Steps are split at d, and the model reads c behind each: the steps of abdcad are ab and ca.
	for _, way := range rollout.StepScores() {
		var first []Score
		for _, budget := range []int{1, 12, 1000} {
			r, err := OpenModel(be, dir, ModelOptions{Text: "{prompt}{response}", BatchTokens: budget,
				Steps: &Steps{Score: way, Split: "d", Separator: "c"}})
			if err != nil {
				t.Fatal(err)
			}
			got, err := r.Score(context.Background(), list)
			if err != nil {
				t.Fatal(err)
			}
			if err := r.Close(); err != nil {
				t.Error(err)
			}
			for i, s := range texts {
				var each []float64
				read := "ab"
				for _, step := range strings.Split(s, "d") {
					if step != "" {
						read += step + "c"
						each = append(each, probability(read))
					}
				}
				want := map[string]float64{rollout.StepsMin: slices.Min(each), rollout.StepsLast: each[len(each)-1],
					rollout.StepsProduct: 1}[way]
				for _, p := range each {
					if way == rollout.StepsProduct {
						want *= p
					} else if way == rollout.StepsMean {
						want += p / float64(len(each))
					}
				}
				if !got[i].Graded || math.Abs(got[i].Value-want) > 2e-5 {
					t.Errorf("%s of %q: got %v, want %g", way, s, got[i], want)
				}
				if first != nil && first[i].Value != got[i].Value {
					t.Errorf("%s of %q: batches of %d tokens give %v, others %v", way, s, budget, got[i].Value, first[i].Value)
				}
			}
			first = got
		}
	}
}

// The score of a model of TRL's, which classifies tokens as wrong or right, is the difference of its logits.
func TestTokenClassifier(t *testing.T) {
	be, err := cpu.Open(cpu.Options{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer be.Close()
	for labels, labelled := range map[int]func(m *tiny, ids []int32) float64{
		1: func(m *tiny, ids []int32) float64 { return m.value(ids, 0) + 0.25 },
		2: func(m *tiny, ids []int32) float64 { return m.value(ids, 1) - m.value(ids, 0) - 0.75 - 0.25 },
	} {
		m := newTiny("Qwen2", labels)
		m.tokens = true
		m.w["score.bias"], m.shape["score.bias"] = []float64{0.25, -0.75}[:labels], []int{labels}
		r, err := OpenModel(be, m.write(t), ModelOptions{Text: "{response}", BatchTokens: 16})
		if err != nil {
			t.Fatal(err)
		}
		item := rollout.Item{Problem: &rollout.Problem{}, Completion: &rollout.Completion{Text: "bcad"}}
		x, err := r.encode(item)
		if err != nil {
			t.Fatal(err)
		}
		got, err := r.Score(context.Background(), []rollout.Item{item})
		if want := labelled(m, x.ids); err != nil || math.Abs(got[0].Value-want) > 2e-5*(1+math.Abs(want)) {
			t.Errorf("%d labels: %+v, %v, want %g", labels, got, err, want)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
	m := newTiny("Qwen2", 3)
	m.tokens = true
	_, err = OpenModel(be, m.write(t), ModelOptions{Text: "{response}", BatchTokens: 16})
	if err == nil || !strings.Contains(err.Error(), "it has 3 labels") {
		t.Errorf("three labels: %v", err)
	}
}

func TestStepsOf(t *testing.T) {
	s := Steps{Split: "\n\n"}
	for answer, want := range map[string]string{"a": "a", "a\n\nb": "a|b", "\n\na\n\n \n\nb\nc\n\n": "a|b\nc", "": "", "\n\n": "\n\n"} {
		if got := strings.Join(s.of(answer), "|"); got != want {
			t.Errorf("steps of %q: %q, want %q", answer, got, want)
		}
	}
}
