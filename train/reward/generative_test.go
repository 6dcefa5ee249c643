package reward

import (
	"context"
	"errors"
	"regexp"
	"slices"
	"strings"
	"testing"

	"exp/train/rollout"
)

// scripted answers prompts of one token per byte.
type scripted struct {
	answer func(prompt string) (text string, finish rollout.Finish)
	asked  []string
	seeds  []uint64
	params rollout.Params
}

func (s *scripted) Sample(ctx context.Context, reqs []rollout.Request, p rollout.Params, _ func(n int)) ([][]rollout.Completion, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.params = p
	out := make([][]rollout.Completion, len(reqs))
	for i, r := range reqs {
		var prompt strings.Builder
		for _, id := range r.Prompt {
			prompt.WriteByte(byte(id))
		}
		s.asked, s.seeds = append(s.asked, prompt.String()), append(s.seeds, r.Seeds...)
		text, finish := s.answer(prompt.String())
		out[i] = []rollout.Completion{{Text: text, Finish: finish}}
	}
	return out, nil
}

// Equal messages are asked once, and each completion has the score in its own answer, or the reason why it has none.
func TestGenerativeScores(t *testing.T) {
	s := &scripted{answer: func(prompt string) (string, rollout.Finish) {
		switch {
		case strings.Contains(prompt, "cut"):
			return "score: 3", rollout.FinishLength
		case strings.Contains(prompt, "mute"):
			return "I cannot say.", rollout.FinishStop
		case strings.Contains(prompt, "high"):
			return "score: 11", rollout.FinishStop
		}
		return "score: 1, no, score: " + prompt[len(prompt)-1:], rollout.FinishStop
	}}
	high, closed := 10.0, 0
	g := NewGenerative(GenerativeOptions{Template: "{prompt}|{gold}|{response}", Limit: 16, Sampler: s,
		Reading: Reading{Pattern: regexp.MustCompile(`score: ([0-9]+)`), High: &high},
		Params:  rollout.Params{Temperature: 0.5, MaxNewTokens: 9},
		Encode: func(message string) ([]int32, error) {
			if strings.Contains(message, "é") {
				return nil, errors.New("unknown letters")
			}
			var ids []int32
			for _, b := range []byte(message) {
				ids = append(ids, int32(b))
			}
			return ids, nil
		},
		Seed: func(message string) uint64 { return uint64(len(message)) }, Close: func() { closed++ }})
	p := &rollout.Problem{Prompt: "q", Answer: "g"}
	var items []rollout.Item
	for _, text := range []string{"a 7", "far too long for it", "cut", "a 8", "mute", "é", "a 7", "high"} {
		items = append(items, rollout.Item{Problem: p, Completion: &rollout.Completion{Text: text}})
	}
	got, err := g.Score(context.Background(), items)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []struct {
		value  float64
		reason string
	}{{7, ""}, {0, "its prompt has 23 tokens, more than the 16 that reward.judge.context leaves it"},
		{0, "its answer was cut at reward.judge.max_tokens: score: 3"}, {8, ""}, {0, "no match of reward.judge.pattern in its answer: I cannot say."},
		{0, "the judge: unknown letters"}, {7, ""}, {0, "its score 11 is above reward.judge.high"}} {
		if s := got[i]; s.Value != want.value && s.Graded || s.Graded != (want.reason == "") || !strings.Contains(s.Reason, want.reason) {
			t.Errorf("completion %d: %+v, want %+v", i, s, want)
		}
	}
	if want := []string{"q|g|a 7", "q|g|cut", "q|g|a 8", "q|g|mute", "q|g|high"}; !slices.Equal(s.asked, want) || !slices.Equal(s.seeds, []uint64{7, 7, 7, 8, 8}) {
		t.Errorf("asked %q with seeds %v", s.asked, s.seeds)
	}
	if s.params.Temperature != 0.5 || s.params.MaxNewTokens != 9 {
		t.Errorf("sampled with %+v", s.params)
	}

	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := g.Score(ctx, items); !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled call: %v", err)
	}
	if errors.Join(g.Close(), g.Close()) != nil || closed != 1 {
		t.Errorf("closed %d times", closed)
	}
}

// A call none of whose messages fit asks nothing.
func TestGenerativeWithoutRoom(t *testing.T) {
	s := &scripted{}
	g := NewGenerative(GenerativeOptions{Template: "{response}", Limit: 1, Sampler: s,
		Encode: func(message string) ([]int32, error) { return make([]int32, len(message)), nil }})
	got, err := g.Score(context.Background(), []rollout.Item{{Problem: &rollout.Problem{}, Completion: &rollout.Completion{Text: "ab"}}})
	if err != nil || got[0].Graded || len(s.asked) > 0 {
		t.Errorf("%+v, %v", got, err)
	}
}
