package reward

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"exp/kernels/cpu"
	"exp/train/rl"
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
				Steps: &Steps{Score: way, Split: "d", Separator: "c", Piece: func(id int32) []byte { return []byte("abcd")[id : id+1] }}})
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
				for k, p := range each {
					if x := got[i].Steps; len(x) != len(each) || math.Abs(x[k].Right-p) > 2e-5 {
						t.Errorf("steps of %q: %v, want %v", s, x, each)
					}
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
	for answer, want := range map[string]string{"a": "a [1]", "a\n\nb": "a|b [3 4]", "\n\na\n\n \n\nb\nc\n\n": "a|b\nc [5 13]",
		"": " [0]", "\n\n": "\n\n [2]", "a\n": "a\n [2]", "a\n\n\nb": "a|\nb [3 5]"} {
		steps, ends := s.of(answer)
		if got := strings.Join(steps, "|") + fmt.Sprint(" ", ends); got != want {
			t.Errorf("steps of %q: %q, want %q", answer, got, want)
		}
	}
}

// A step ends behind the token that holds its last byte, its separator included; the last one takes all that is left.
func TestPlacesOfSteps(t *testing.T) {
	pieces := []string{"", "a", "b", "\n", "a\n", "\nb", "ab\n\na\n", "\xe2", "\x82"}
	s := Steps{Split: "\n", Piece: func(id int32) []byte { return []byte(pieces[id]) }}
	for _, tt := range []struct {
		tokens []int32
		text   string
		want   []int
	}{
		{[]int32{1, 3, 2, 3, 1, 0}, "a\nb\na", []int{2, 4, 6}},
		{[]int32{1, 3, 2, 3, 0}, "a\nb\n", []int{2, 5}},    // the end token is the last step's
		{[]int32{4, 5, 3, 1}, "a\n\nb\na", []int{1, 3, 4}}, // with an empty step between
		{[]int32{6, 2}, "ab\n\na\nb", []int{1, 1, 2}},      // two steps end in one token
		{[]int32{1, 2, 2}, "a", []int{3}},                  // a stop string is cut off the text
		{[]int32{7, 8, 3, 7}, "\xe2\x82\n\xe2", []int{3, 4}},
	} {
		c := &rollout.Completion{Tokens: tt.tokens, Text: tt.text}
		_, ends := s.of(tt.text)
		if got := s.places(c, ends); !slices.Equal(got, tt.want) {
			t.Errorf("steps of %q end at %v, want %v", tt.text, got, tt.want)
		}
	}
}

// A grader that rewards steps adds their rewards to the weighed verdict, and keeps apart what no step earned.
func TestCredit(t *testing.T) {
	scored := scorerFunc(func(items []rollout.Item) (list []Score) {
		for range items {
			list = append(list, Score{Graded: true, Value: 0.25, Steps: []rollout.Step{{End: 2, Right: 1}, {End: 3, Right: 0.25}}})
		}
		return list
	})
	verdicts := []rollout.Verdict{{Status: rollout.Graded, Correct: true, Reward: 1}, {Status: rollout.Graded}, {Reason: "no tests"}}
	grade := func(c *Credit, parts ...string) []rollout.Verdict {
		g := NewGrader(listGrader(verdicts), scored, parts).Credits(c)
		got, err := g.GradeAll(context.Background(), make([]rollout.Item, 3))
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	got := grade(&Credit{Outcome: 2, Steps: rl.StepCredit{Wrong: -1, Right: 1, Weight: 0.5}}, PartScore)
	steps := []rollout.Step{{End: 2, Right: 1, Reward: 0.5}, {End: 3, Right: 0.25, Reward: -0.25}}
	want := []rollout.Verdict{{Status: rollout.Graded, Correct: true, Reward: 2.25, Outcome: 2, Steps: steps, Components: []float64{2.25}},
		{Status: rollout.Graded, Reward: 0.25, Steps: steps, Components: []float64{0.25}}, {Reason: "no tests"}}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if got := grade(&Credit{Steps: rl.StepCredit{Right: 1, Weight: 1}})[2]; got.Status != rollout.Graded || got.Reward != 1.25 {
		t.Errorf("without a verdict, which has no weight: %+v", got)
	}
	alone := NewAlone(scored, 0.3, nil).Credits(&Credit{Steps: rl.StepCredit{Right: 1, Weight: 1}})
	if got, err := alone.GradeAll(context.Background(), []rollout.Item{{Completion: &rollout.Completion{Text: "a"}}}); err != nil ||
		got[0].Reward != 1.25 || got[0].Correct || len(got[0].Steps) != 2 { // it is judged by its score, 0.25
		t.Errorf("without a task: %+v, %v", got, err)
	}
	if got := grade(nil)[0]; got.Reward != 0.25 || got.Steps != nil {
		t.Errorf("without rewards of steps: %+v", got)
	}
}

// scorerFunc is a Scorer.
type scorerFunc func(items []rollout.Item) []Score

func (f scorerFunc) Score(_ context.Context, items []rollout.Item) ([]Score, error) {
	return f(items), nil
}
func (scorerFunc) Close() error { return nil }

// listGrader gives the verdicts of a list.
type listGrader []rollout.Verdict

func (g listGrader) Grade(context.Context, *rollout.Problem, *rollout.Completion) (rollout.Verdict, error) {
	panic("one at a time")
}

func (g listGrader) GradeAll(context.Context, []rollout.Item) ([]rollout.Verdict, error) {
	return slices.Clone(g), nil
}
