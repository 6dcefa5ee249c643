package task

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// fileOf writes lines to a file.
func fileOf(t *testing.T, name string, lines ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")+"\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	return path
}

// ratedIDs reads a source: "P0 0.25, P1 NaN".
func ratedIDs(t *testing.T, x Task, s Source) string {
	t.Helper()
	problems, rates, _, err := s.ReadRated(x)
	if err != nil {
		t.Fatal(err)
	}
	if len(rates) != len(problems) {
		t.Fatalf("%d rates of %d problems", len(rates), len(problems))
	}
	var list []string
	for i := range problems {
		list = append(list, fmt.Sprint(problems[i].Prompt, " ", rates[i]))
	}
	return strings.Join(list, ", ")
}

// The rows of problems bring their pass rates, at a path too. Copies and rows without an answer have no problem, so
// their rates count for none; null and an absent column are unknown.
func TestRatesOfRows(t *testing.T) {
	path := fileOf(t, "m.jsonl",
		`{"problem": "P0", "answer": "1", "rate": 0.25, "extra_info": {"rate": 1}}`,
		`{"problem": "P0", "answer": "1", "rate": 0.75}`,
		`{"problem": "P1", "answer": "2", "rate": null, "extra_info": {"rate": 0.5}}`,
		`{"problem": "P2", "answer": "", "rate": 1}`,
		`{"problem": "P3", "answer": "4"}`,
		`{"problem": "P4", "answer": "5", "rate": 1}`)
	m := mathOf(t, "math_dapo")
	for column, want := range map[string]string{
		"rate":            "P0 0.25, P1 NaN, P3 NaN, P4 1",
		"extra_info.rate": "P0 1, P1 0.5, P3 NaN, P4 NaN",
	} {
		if got := ratedIDs(t, m, Source{Path: path, Rate: column}); got != want {
			t.Errorf("%s: %s, want %s", column, got, want)
		}
	}
	table := fileOf(t, "m.csv", "problem,answer,rate", "P0,1,0.25", "P1,2,", "P2,3,1")
	if got, want := ratedIDs(t, m, Source{Path: table, Rate: "rate"}), "P0 0.25, P1 NaN, P2 1"; got != want {
		t.Errorf("of a table: %s, want %s", got, want)
	}
	if _, rates, _, err := (Source{Path: path}).ReadRated(m); err != nil || rates != nil {
		t.Errorf("no column: %v, %v", rates, err)
	}
	for column, want := range map[string]string{
		"solve_rate": "m.jsonl: no row has a number in the column solve_rate, which data.pass_rate.column names",
		"problem":    "m.jsonl:1: field \"problem\": a text, not a number",
	} {
		if _, _, _, err := (Source{Path: path, Rate: column}).ReadRated(m); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", column, err, want)
		}
	}
	last := fileOf(t, "n.jsonl", `{"problem": "P0", "answer": "1", "rate": 0.25}`,
		`{"problem": "P1", "answer": "1", "rate": 12}`)
	if _, _, _, err := (Source{Path: last, Rate: "rate"}).ReadRated(m); err == nil || !strings.Contains(err.Error(),
		"12 is not a pass rate, a number from 0 to 1") {
		t.Errorf("12: %v", err)
	}
}

// Rows that are drawn, rows of several kinds, and problems of a task's own files keep their rates.
func TestRatesKeepTheirProblems(t *testing.T) {
	var lines []string
	for i := range 12 { // as in TestSource, without copies
		lines = append(lines, fmt.Sprintf(`{"problem": "P%d", "answer": "1", "rate": %v}`, i, float64(i)/16))
	}
	drawn := Source{Path: fileOf(t, "d.jsonl", lines...), MaxRows: 5, Drawn: true, Seed: 5, Rate: "rate"}
	if got, want := ratedIDs(t, mathOf(t, "math_dapo"), drawn), "P8 0.5, P7 0.4375, P5 0.3125, P11 0.6875, P0 "+
		"0"; got != want {
		t.Errorf("drawn: %s, want %s", got, want)
	}
	kinds := fileOf(t, "k.jsonl", `{"data_source": "m", "prompt": "A", "answer": "1", "rate": 0.5}`,
		`{"data_source": "c", "prompt": "B", "rate": 0.25}`, `{"data_source": "m", "prompt": "A", "answer": "1", `+
			`"rate": 0.75}`,
		`{"data_source": "c", "prompt": "C"}`, `{"data_source": "m", "prompt": "D", "answer": "1", "rate": 1}`)
	x := newMixedTask(t, map[string]string{"m": "math", "c": "prompts"})
	if got, want := ratedIDs(t, x, Source{Path: kinds, Rate: "rate"}), "A 0.5, B 0.25, C NaN, D 1"; got != want {
		t.Errorf("several kinds: %s, want %s", got, want)
	}
	countdown, err := New(Config{Kind: "countdown", Countdown: Countdown{MinNumbers: 2, MaxNumbers: 3,
		LargestNumber: 9, LargestTarget: 20,
		Operators: "+-*/", Use: "any", MinSolutions: 1}, Reward: Reward{Correct: 1}})
	if err != nil {
		t.Fatal(err)
	}
	nums := Source{Path: fileOf(t, "c.jsonl", `{"nums": [2, 3], "target": 5, "rate": 0.5}`,
		`{"nums": [2, 4], "target": 6}`,
		`{"nums": [2, 5], "target": 7, "rate": 1}`), Rate: "rate"}
	_, rates, _, err := nums.ReadRated(countdown)
	if err != nil || len(rates) != 3 || rates[0] != 0.5 || !math.IsNaN(rates[1]) || rates[2] != 1 {
		t.Errorf("countdown: %v, %v", rates, err)
	}
	nums.MaxRows = 2
	if _, rates, _, err = nums.ReadRated(countdown); err != nil || len(rates) != 2 || rates[0] != 0.5 {
		t.Errorf("the first two: %v, %v", rates, err)
	}
}
