package replan

import (
	"strings"
	"testing"

	"exp/experiments/ident"
)

func TestExtendedName(t *testing.T) {
	if got := extendedName("smoke", 6); got != "smoke-6steps" {
		t.Error(got)
	}
	if got := extendedName(strings.Repeat("x", 64), 100); len(got) != longestName || !strings.HasSuffix(got, "x-100steps") {
		t.Error(got)
	}
}

// The errors say what differs, with their exit codes and what to do.
func TestErrors(t *testing.T) {
	run := ident.Sum(nil)
	many := strings.Split("a b c d e f g h", " ")
	for _, tt := range []struct {
		err interface {
			error
			Hint() string
			ExitCode() int
		}
		code       int
		text, hint string
	}{
		{&NumericsError{Run: run, Recorded: "cpu/fma", Here: "cpu/bf16"}, 7, "run e3b0c442 was computed in numerics class cpu/fma; this machine, with this program, is of class cpu/bf16", "EXP_CPU"},
		{&SourcesError{Run: run, Kinds: []string{"sft", "train"}}, 7, "run e3b0c442 was made by other sources than this program's: of sft, train", "exp show e3b0c442 --source DIR"},
		{&SourcesError{Run: run, Kinds: []string{"train"}, Files: many}, 7, "of train (a, b, c, d, e, f and 2 more)", "go build"},
		{&InputsError{Run: run, Plan: run}, 4, "its configuration, data, weights or tokenizer changed (the plan's id is e3b0c442)", "--config"},
		{&InputsError{Run: run, Changed: []string{"tokenizer"}}, 4, "its tokenizer changed", "--config"},
		{&InputsError{Run: run, Changed: []string{"data/train", "tokenizer"}}, 4, "its data/train, tokenizer changed", "--config"},
	} {
		if tt.err.ExitCode() != tt.code || !strings.Contains(tt.err.Error(), tt.text) || !strings.Contains(tt.err.Hint(), tt.hint) {
			t.Errorf("%v (%d; %s), want %q", tt.err, tt.err.ExitCode(), tt.err.Hint(), tt.text)
		}
	}
}
