package grade

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// dataFile opens a file from EXP_DATA or, by default, shared/data next to the repository; the test is
// skipped if it is missing.
func dataFile(t testing.TB, name ...string) *os.File {
	t.Helper()
	dir := os.Getenv("EXP_DATA")
	if dir == "" {
		dir = filepath.Join("..", "..", "..", "shared", "data")
	}
	f, err := os.Open(filepath.Join(append([]string{dir}, name...)...))
	if err != nil {
		t.Skipf("no data: %v", err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// labelled is a row of math_grading_sample.jsonl.
type labelled struct {
	ID         string
	Gold       string
	Prediction string
	Expected   bool
	Tags       []string
	Kind       string
	MathVerify bool `json:"math_verify"`
}

func (r labelled) grade() Verdict {
	if r.Kind == "response" {
		return Response(r.Gold, r.Prediction)
	}
	return Answer(r.Gold, r.Prediction)
}

func readLabelled(t testing.TB) []labelled {
	t.Helper()
	var rows []labelled
	s := bufio.NewScanner(dataFile(t, "math_grading_sample.jsonl"))
	s.Buffer(nil, 1<<24)
	for s.Scan() {
		var r labelled
		if err := json.Unmarshal(s.Bytes(), &r); err != nil {
			t.Fatal(err)
		}
		rows = append(rows, r)
	}
	if err := s.Err(); err != nil {
		t.Fatal(err)
	}
	return rows
}

// TestLabelledSample: every core row is right and sure, and no row, convention or not, is a false positive.
func TestLabelledSample(t *testing.T) {
	rows := readLabelled(t)
	core, agree, conventions, conventionsAgree, peer := 0, 0, 0, 0, 0
	for _, r := range rows {
		v := r.grade()
		right := v.Correct == r.Expected
		if v.Correct && !r.Expected {
			t.Errorf("%s: false positive: gold %q, extracted %q: %s", r.ID, r.Gold, v.Extracted, v.Reason)
		}
		if !slices.Contains(r.Tags, "core") {
			conventions++
			if right {
				conventionsAgree++
			} else {
				t.Logf("%s: %v by convention: gold %q, extracted %q, got %+v", r.ID, r.Expected, r.Gold, v.Extracted,
					v)
			}
			continue
		}
		core++
		if r.MathVerify == r.Expected {
			peer++
		}
		if right {
			agree++
		} else {
			t.Errorf("%s: want %v, got %+v, gold %q", r.ID, r.Expected, v, r.Gold)
		}
	}
	t.Logf("core %d of %d (Math-Verify %d), conventions %d of %d", agree, core, peer, conventionsAgree, conventions)
}
