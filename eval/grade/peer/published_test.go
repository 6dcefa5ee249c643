package peer

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// golds reads the gold answers of a benchmark; the test is skipped if they are missing.
func golds(t *testing.T, name string) []string {
	t.Helper()
	dir := os.Getenv("EXP_DATA")
	if dir == "" {
		dir = filepath.Join("..", "..", "..", "..", "shared", "data")
	}
	f, err := os.Open(filepath.Join(dir, "benchmarks", name))
	if err != nil {
		t.Skipf("no data: %v", err)
	}
	defer f.Close()
	var list []string
	s := bufio.NewScanner(f)
	s.Buffer(nil, 1<<24)
	for s.Scan() {
		var r struct {
			Answer any      `json:"answer"`
			Final  []string `json:"final_answer"`
		}
		if err := json.Unmarshal(s.Bytes(), &r); err != nil {
			t.Fatal(err)
		}
		gold, _ := r.Answer.(string)
		if len(r.Final) > 0 {
			gold = r.Final[0]
		}
		list = append(list, gold)
	}
	return list
}

// The number of gold answers that math_dapo accepts when written back in several forms, counted once with its own
// code, and here from the stored benchmarks. The files for AMC (83 rows) and
// Minerva are not stored.
func TestPublishedFormTable(t *testing.T) {
	grader, err := ByName("math_dapo_original")
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		file  string
		rows  int
		plain int // accepted of "Answer: g", $ removed
		money int // of "Answer: $g$"
	}{
		{"aime24.jsonl", 30, 30, 30},
		{"math500.jsonl", 500, 497, 497},
		{"olympiadbench.jsonl", 675, 660, 661},
	} {
		t.Run(tt.file, func(t *testing.T) {
			list := golds(t, tt.file)
			if len(list) != tt.rows {
				t.Fatalf("%d rows, want %d", len(list), tt.rows)
			}
			var plain, money, others int
			for _, gold := range list {
				g := strings.ReplaceAll(gold, "$", "")
				for form, n := range map[string]*int{"Answer: " + g: &plain, "Answer: $" + g + "$": &money, "\\boxed{" + g + "}": &others, "Answer: " + g + ".": &others, "Answer: \\(" + g + "\\)": &others} {
					if grader.Response(gold, form).Correct {
						*n++
					}
				}
			}
			if plain != tt.plain || money != tt.money || others != 0 {
				t.Errorf("accepted %d plain, %d in dollars, %d in other forms; published %d, %d, 0", plain, money, others, tt.plain, tt.money)
			}
		})
	}
}
