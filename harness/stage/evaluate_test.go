package stage

import (
	"bytes"
	"math"
	"strings"
	"testing"

	"exp/eval"
	"exp/train/rollout"
)

// Completions of broken weights are refused by name.
func TestNonFiniteCompletions(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(-1))
	for _, bad := range []float32{nan, inf} {
		_, err := completionLines([]eval.Sample{{ProblemID: "p7", K: 1,
			Completion: rollout.Completion{Tokens: []int32{4, 5}, LogProbs: []float32{-0.5, bad}}}})
		if err == nil || !strings.Contains(err.Error(), "problem p7, sample 1, token 1") || !strings.Contains(err.Error(), "weights are broken") {
			t.Errorf("%v: error %v", bad, err)
		}
	}
}

// Graders find the policy's last turn in stored completions too, if an earlier turn broke off within a character.
func TestStoredTurns(t *testing.T) {
	lines, err := completionLines([]eval.Sample{{ProblemID: "p", Completion: rollout.Completion{
		Tokens: []int32{1, 2, 3}, LogProbs: make([]float32, 3), Entropies: make([]float32, 3), Finish: rollout.FinishStop,
		Text: "add(1)\xe2\x82[answer 2]so 2", Inserted: []rollout.Span{{Start: 1, End: 2, TextStart: 8, TextEnd: 18}}}}})
	if err != nil {
		t.Fatal(err)
	}
	samples, err := readCompletions(lines[0])
	if err != nil {
		t.Fatal(err)
	}
	c := samples[0].Completion
	if got := c.LastTurn().Text; got != "so 2" {
		t.Errorf("last turn %q, want %q", got, "so 2")
	}
	if got, want := c.Own().Text, "add(1)\ufffd\ufffdso 2"; got != want {
		t.Errorf("the policy wrote %q, want %q", got, want)
	}
}

// Conversations of an episode read back, with their places in the text as it was stored.
func TestStoredConversations(t *testing.T) {
	c := rollout.Completion{Tokens: []int32{1, 2, 3, 4}, LogProbs: make([]float32, 4), Entropies: make([]float32, 4),
		Finish: rollout.FinishStop, Text: "ab\xe2\x82[x]cde", Inserted: []rollout.Span{{Start: 1, End: 2, TextStart: 4, TextEnd: 7}},
		Asked: &rollout.Asked{Tokens: []int32{9}, Text: "first", Later: []rollout.Later{{Start: 3, TextStart: 8, Tokens: []int32{8}, Text: "second"}}}}
	lines, err := completionLines([]eval.Sample{{ProblemID: "p", Completion: c}})
	if err != nil {
		t.Fatal(err)
	}
	samples, err := readCompletions(lines[0])
	if err != nil {
		t.Fatal(err)
	}
	got := samples[0].Completion
	if later := got.Later(); len(later) != 1 || got.Text[later[0].TextStart:] != "de" || later[0].Text != "second" || got.LastTurn().Text != "c" {
		t.Errorf("%+v, last turn %q", later, got.LastTurn().Text)
	}
	lines[0] = bytes.Replace(lines[0], []byte(`"start":3,"text_start"`), []byte(`"start":4,"text_start"`), 1)
	if _, err := readCompletions(lines[0]); err == nil || !strings.Contains(err.Error(), "conversation 2") {
		t.Errorf("a conversation without tokens: %v", err)
	}
}
