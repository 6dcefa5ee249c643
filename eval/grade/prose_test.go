package grade

import (
	"bufio"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"exp/eval/grade/extract"
	"exp/eval/grade/latex"
)

// TestUnmarkedSolutions: the answer is found in most reference solutions after removing the mark (box or last line).
// Not in all: many solutions continue after the answer.
func TestUnmarkedSolutions(t *testing.T) {
	for _, tt := range []struct {
		file     string
		unmarked func(row map[string]any) (gold, text string)
		share    float64 // at least
	}{
		{"math_test.jsonl", withoutBox, 0.91}, {"gsm8k_test.jsonl", withoutLastLine, 0.97},
	} {
		step := 5
		if os.Getenv("EXP_TEST_ALL") == "1" {
			step = 1
		}
		s := bufio.NewScanner(dataFile(t, "benchmarks", tt.file))
		s.Buffer(nil, 1<<20)
		n, found := 0, 0
		for i := 0; s.Scan(); i++ {
			var row map[string]any
			if err := json.Unmarshal(s.Bytes(), &row); err != nil {
				t.Fatal(err)
			}
			gold, text := tt.unmarked(row)
			if gold == "" || i%step != 0 {
				continue
			}
			n++
			if Response(gold, text).Correct {
				found++
			}
		}
		t.Logf("%s: %d of %d", tt.file, found, n)
		if n == 0 || float64(found) < tt.share*float64(n) {
			t.Errorf("%s: found in %d of %d, want %v", tt.file, found, n, tt.share)
		}
	}
}

// withoutBox returns the only boxed answer of a solution, and the solution without the box.
func withoutBox(row map[string]any) (gold, text string) {
	text, _ = row["solution"].(string)
	k := strings.Index(text, "\\boxed{")
	if k < 0 || strings.Count(text, "\\boxed") > 1 {
		return "", ""
	}
	open := k + len("\\boxed")
	end := latex.MatchBrace(text, open)
	if end < 0 {
		return "", ""
	}
	gold, _ = extract.LastBox(text)
	return gold, text[:k] + text[open:]
}

// withoutLastLine returns the answer behind #### and the solution before it without its calculator's notes.
func withoutLastLine(row map[string]any) (gold, text string) {
	answer, _ := row["answer"].(string)
	text, gold, _ = strings.Cut(answer, "\n#### ")
	for {
		before, rest, ok := strings.Cut(text, "<<")
		_, after, closed := strings.Cut(rest, ">>")
		if !ok || !closed {
			return gold, text
		}
		text = before + after
	}
}
