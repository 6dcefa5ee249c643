package answers

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"exp/eval/grade/peer"
)

const answered = `{"id": "a", "gold": "\\frac{1}{2}", "prediction": "0.5", "expected": true, "tags": ["core", "decimal", "core"]}
{"id": 2, "gold": 42, "response": "So \\boxed{41}.", "expected": true, "tags": ["core"]}

{"id": "c", "gold": ["7", "8"], "prediction": "so \\boxed{8}", "kind": "response", "expected": false}
{"gold": "12 squared", "prediction": "144"}
`

// own judges with our grader.
func own(t *testing.T) func(*Row) Verdict {
	t.Helper()
	g, err := peer.ByName("exp")
	if err != nil {
		t.Fatal(err)
	}
	return func(r *Row) Verdict { return r.Judge(g, false) }
}

// TestGrade: each row has a verdict in its place, and counts under each of its tags once.
func TestGrade(t *testing.T) {
	var out strings.Builder
	var tally Tally
	lines, err := Grade(context.Background(), strings.NewReader(answered), &out, &tally, own(t))
	if err != nil || lines != 6 {
		t.Fatalf("%d lines, %v", lines, err)
	}
	var got []string
	for line := range strings.Lines(out.String()) {
		var v Verdict
		if err := json.Unmarshal([]byte(line), &v); err != nil {
			t.Fatal(err)
		}
		got = append(got, fmt.Sprintf("%s %v", v.ID, v.Correct))
	}
	if want := []string{`"a" true`, "2 false", `"c" true`, "null false"}; !slices.Equal(got, want) {
		t.Errorf("verdicts %q, want %q", got, want)
	}
	var counts []Count
	for _, c := range tally.Counts() {
		c.Unsure = 0 // the grader's own tests check how sure it is
		counts = append(counts, *c)
	}
	want := []Count{
		{Tag: "all", Rows: 4, Correct: 2, Labelled: 3, Agree: 1, FalsePositive: 1, FalseNegative: 1},
		{Tag: "core", Rows: 2, Correct: 1, Labelled: 2, Agree: 1, FalseNegative: 1},
		{Tag: "decimal", Rows: 1, Correct: 1, Labelled: 1, Agree: 1},
	}
	if !slices.Equal(counts, want) {
		t.Errorf("counts %+v\nwant %+v", counts, want)
	}
	if tally.Unread != 1 || len(tally.Golds) != 1 || tally.Golds[0].Gold != "12 squared" || tally.Golds[0].Err == nil {
		t.Errorf("%d unread gold answers: %+v", tally.Unread, tally.Golds)
	}
}

// TestGradeBatches: verdicts of several batches keep the order of the rows, and few unread gold answers are kept.
func TestGradeBatches(t *testing.T) {
	const n = 2*batch + 1
	var in, out strings.Builder
	for i := range n {
		fmt.Fprintf(&in, `{"id": %d, "gold": "1 squared", "prediction": "1"}`+"\n", i)
	}
	var tally Tally
	judge := func(r *Row) Verdict { return Verdict{ID: r.ID, Correct: true} }
	if _, err := Grade(context.Background(), strings.NewReader(in.String()), &out, &tally, judge); err != nil {
		t.Fatal(err)
	}
	i := 0
	for line := range strings.Lines(out.String()) {
		if want := fmt.Sprintf(`{"id":%d,`, i); !strings.HasPrefix(line, want) {
			t.Fatalf("row %d is %s", i, line)
		}
		i++
	}
	if i != n || tally.Counts()[0].Unsure != n || tally.Unread != n || len(tally.Golds) != unreadKept {
		t.Errorf("%d rows of %d, %d unread, %d kept", i, n, tally.Unread, len(tally.Golds))
	}
}

func TestGradeErrors(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	var line *RowError
	_, err := Grade(ctx, strings.NewReader(answered+"{oops"), &strings.Builder{}, &Tally{}, own(t))
	if !errors.As(err, &line) || line.Line != 6 {
		t.Errorf("a row that is not JSON: %v", err)
	}
	cancel()
	if _, err = Grade(ctx, strings.NewReader(answered), &strings.Builder{}, &Tally{}, own(t)); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// Files of Windows programs begin with a mark and end lines with \r\n.
func TestGradeByteOrderMark(t *testing.T) {
	var out strings.Builder
	in := "\ufeff{\"gold\":\"2\",\"prediction\":\"2\"}\r\n{\"gold\":\"2\",\"prediction\":\"3\"}\r\n"
	_, err := Grade(t.Context(), strings.NewReader(in), &out, &Tally{}, own(t))
	if err != nil || strings.Count(out.String(), `"correct":true`) != 1 {
		t.Errorf("%v: %s", err, out.String())
	}
}

// TestOpen: a file may have any form of rows; lines of JSON are read as they are.
func TestOpen(t *testing.T) {
	const one, two = `{"id": "a", "gold": "1/2", "prediction": "0.5"}`, `{"id": "b", "gold": "3", "prediction": "4"}`
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	if _, err := z.Write([]byte("\n" + one + "\n" + two)); err != nil || z.Close() != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"x.jsonl": "\ufeff\r\n" + one + "\r\n\r\n" + two, "x.json": "[" + one + ",\n" +
		strings.Replace(two, ",", ",\n", 1) + "\n]", "x.csv": "id,gold,prediction\na,1/2,0.5\nb,3,4\n", "x.jsonl.gz": zipped.String()} {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		in, err := Open(path)
		if err != nil {
			t.Fatal(err)
		}
		var out strings.Builder
		_, err = Grade(t.Context(), in, &out, &Tally{}, own(t))
		if got := out.String(); err != nil || strings.Count(got, "\n") != 2 || !strings.Contains(got, `{"id":"a","correct":true`) ||
			!strings.Contains(got, `{"id":"b","correct":false`) {
			t.Errorf("%s: %v\n%s", name, err, got)
		}
		if err := in.Close(); err != nil {
			t.Error(err)
		}
	}
	path := filepath.Join(t.TempDir(), "x.csv")
	if err := os.WriteFile(path, []byte("gold,prediction\n1,2,3\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	in, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Grade(t.Context(), in, &strings.Builder{}, &Tally{}, own(t)); err == nil || !strings.Contains(err.Error(), "x.csv:2: 3 cells") {
		t.Errorf("a broken table: %v", err)
	}
	if _, err := Open(path + "none"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a missing file: %v", err)
	}
}

// TestText: a prediction may be a number.
func TestText(t *testing.T) {
	var row Row
	for in, want := range map[string]Text{`12`: "12", `-0.50`: "-0.50", `"x"`: "x"} {
		if err := json.Unmarshal([]byte(`{"prediction":`+in+`}`), &row); err != nil || *row.Prediction != want {
			t.Errorf("%s: %v, %v", in, row.Prediction, err)
		}
	}
	for _, in := range []string{`["x"]`, `true`, `{}`} {
		if err := json.Unmarshal([]byte(`{"response":`+in+`}`), &row); err == nil || !strings.Contains(err.Error(), "a text or a number") {
			t.Errorf("%s: error %v", in, err)
		}
	}
}

// TestEndTurns: an answer ends at the first special token.
func TestEndTurns(t *testing.T) {
	g, err := peer.ByName("exp")
	if err != nil {
		t.Fatal(err)
	}
	text := Text(`So \boxed{7}.[STOP] And \boxed{8}.`)
	row := Row{Gold: Golds{"7"}, Response: &text}
	if row.Judge(g, false).Correct || !row.Judge(EndTurns(g, []string{"[STOP]"}), false).Correct {
		t.Errorf("whole: %v; up to the token: %v", row.Judge(g, false), row.Judge(EndTurns(g, []string{"[STOP]"}), false))
	}
}
