package reports

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"exp/eval/stat"
	"exp/experiments/store"
	"exp/reports/compare"
)

func TestReadContests(t *testing.T) {
	const row = `{"points": 5, "penalty": 0, "old_rating": 1500}`
	tests := []struct{ name, text, want string }{
		{"good", `{"schema": "exp.contests/1", "users": {"1200": 3}, "contests": [{"id": "7", "problems": {"A": 500}, "rows": [` + row + `]}]}`, ""},
		{"no JSON", `{`, "unexpected EOF"},
		{"another schema", `{"schema": "exp.contests/9"}`, `schema is "exp.contests/9", want "exp.contests/1"`},
		{"a word too many", `{"schema": "exp.contests/1", "ratings": {}}`, `unknown field "ratings"`},
		{"twice", `{"schema": "exp.contests/1", "contests": [{"id": "7", "problems": {"A": 0}}, {"id": "7", "problems": {"A": 0}}]}`, `contest "7" appears twice`},
		{"no problems", `{"schema": "exp.contests/1", "contests": [{"id": "7"}]}`, "contest 7 has no problems"},
		{"worst first", `{"schema": "exp.contests/1", "contests": [{"id": "7", "problems": {"A": 0}, "rows": [` + row + `, {"points": 6, "penalty": 0, "old_rating": 1}]}]}`,
			"contest 7: row 2 is better"},
		{"fewer than no users", `{"schema": "exp.contests/1", "users": {"1200": -3}}`, "-3 users"},
	}
	for _, tt := range tests {
		path := filepath.Join(t.TempDir(), "contests.json")
		if err := os.WriteFile(path, []byte(tt.text), 0o644); err != nil {
			t.Fatal(err)
		}
		_, err := ReadContests(path)
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), path)) {
			t.Errorf("%s: %v, want %q and the path", tt.name, err, tt.want)
		}
	}
}

// contests7 has contest 7 with 201 participants of old ratings 1200 to 2000, and
// contest 8 with too few. Who solves A at the first attempt beats everyone.
func contests7() *Contests {
	c := &Contests{Users: stat.Population{1000: 1, 2500: 3}}
	seven := stat.Contest{ID: "7", Problems: map[string]float64{"A": 1000, "B": 500}}
	for i := range 201 {
		seven.Rows = append(seven.Rows, stat.ContestParticipant{Points: 999 - float64(i), OldRating: 2000 - 4*i})
	}
	c.Contests = []stat.Contest{seven, {ID: "8", Problems: map[string]float64{"A": 1}}}
	return c
}

// Of arm a, the first sample of 7A is right in both runs: place 0, the greatest rating
// there is, 2000 + 100 - 1. Of arm b nothing is.
func TestRate(t *testing.T) {
	s := newStudy(t)
	made := func(seed int64, right bool) *run {
		var text string
		for k := range 2 {
			text += fmt.Sprintf(`{"problem":"cf/7A","k":%d,"correct":%v}`+"\n", 1-k, right && k == 1)
		}
		d, err := s.db.Blobs.PutBytes([]byte(text))
		s.must(err)
		return &run{Run: store.Run{Seed: seed}, scores: map[string][]item{"cf": {{"cf/7A", 2, 1}, {"cf/8A", 2, 0}, {"cf/9A", 2, 0}}, "test": {{"p0", 2, 1}}},
			counted: map[string]compare.Evaluation{"cf": {Scored: store.Stage{Outputs: []store.IO{{Role: "verdicts", Digest: d}}}}}}
	}
	src := &source{db: s.db, contests: contests7(), arms: []*arm{{Name: "a", Runs: []*run{made(0, true), made(1, true)}}, {Name: "b", Runs: []*run{made(0, false)}}}}
	var err error
	src.rated, err = src.rate(src.contests)
	s.must(err)
	if len(src.rated) != 1 || src.rated[0].suite != "cf" || src.rated[0].samples != 2 {
		t.Fatalf("rated %+v", src.rated)
	}
	r := src.rated[0]
	if got := r.mean[0].Value; got != 2099 {
		t.Errorf("first of all is rated %v, want 2099", got)
	}
	if r.mean[1].Value >= 1200 {
		t.Errorf("last of all is rated %v, above the last participant", r.mean[1].Value)
	}
	if got, want := listed(r.skipped), listed([]string{"8 has 0 rated participants", "9 is not in the file"}); got != want {
		t.Errorf("skipped %q, want %q", got, want)
	}
	b, err := json.Marshal(src.ratingGrid().Rows)
	s.must(err)
	for _, want := range []string{"2099", "25.0"} { // one of four users is below
		if !strings.Contains(string(b), want) {
			t.Errorf("table without %s: %s", want, b)
		}
	}
	if _, err := src.ratingFigure().draw(); err != nil {
		t.Error(err)
	}

	// Contests that no suite has problems of.
	for _, a := range src.arms {
		for _, r := range a.Runs {
			delete(r.scores, "cf")
		}
	}
	if _, err := src.rate(src.contests); err == nil || !strings.Contains(err.Error(), "rates none of these runs") {
		t.Errorf("no problem of a contest: %v", err)
	}
}
