package main

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"exp/experiments/store"
)

// auditStore holds a run of mathematics whose policy learns to append words and to hedge.
func auditStore(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	db, err := store.Open(dir, store.Options{Create: true, Clock: func() time.Time { return fixtureNow }})
	if err != nil {
		t.Fatal(err)
	}
	b := builder{t: t, db: db}
	text := `{"name":"math","task":{"math":{"grader":"math_dapo"}},"eval":{"final":{"graders":["exp","prime"]}}}`
	r, _, err := db.EnsureRun(b.ctx(), store.NewRun{RID: digestOf("rid math"), XID: digestOf("xid math"), Name: "math", Task: "math",
		Algo: "grpo", Model: "2x32", Numerics: "cpu/fma", StepsTotal: 16, Code: digestOf("code"),
		Config: store.Config{Digest: digestOf(text), JSON: text, Source: "version: 1\n"}})
	b.must(err)
	b.attempt(r, store.Done)
	problems := b.blob("problems/train", `{"id":"p1","prompt":"How many?","answer":"12"}`+"\n"+`{"id":"p2","prompt":"Which share?","answer":"50"}`+"\n")
	b.stage(r, "prepare", "", []store.IO{problems})
	st := b.stage(r, "train", "", []store.IO{b.blob("weights", "trained")}, store.IO{Role: "problems/train", Digest: problems.Digest})
	pack := db.Blobs.NewPackWriter()
	var rows []store.Sample
	for step := int64(1); step <= 16; step++ {
		first, second := "So it is \\boxed{12}.\nAnswer: 12", "It is a half.\nAnswer: 7"
		if step > 8 {
			first = fmt.Sprintf("So it is \\boxed{12\\text{ apples}}.\nAnswer: %d", step)
		}
		if step > 12 {
			second = "Hence \\boxed{50\\%}."
		}
		for i, s := range []string{first, second} {
			b.must(pack.Add(map[string]any{"prompt": "?", "text": s}))
			rows = append(rows, store.Sample{Stage: st.Home, Scope: "train", Step: step, Item: fmt.Sprintf("p%d", i+1), OutTokens: 7,
				Finish: "stop", Reward: 1, LogProbSum: math.NaN()})
		}
	}
	refs, packs, err := pack.Close()
	b.must(err)
	for i := range rows {
		rows[i].Ref = refs[i]
	}
	b.must(db.AddSamples(b.ctx(), append(rows, store.Sample{Stage: st.Home, Scope: "train", Step: 16, Item: "p2", K: 1, Finish: "stop"}), packs))
	b.must(db.Close())
	return dir
}

func TestGradeAudit(t *testing.T) {
	dir := auditStore(t)
	golden(t, "grade_audit", pages(t, fixtureCall(t, 120, false), dir, "grade --audit math#0", "grade --audit math#0 --grader gsm8k_strict"))
	e := call{now: fixtureNow}.run("grade", "--audit", "math#0", "--store", dir, "-o", "json")
	e.succeeds(t)
	var got struct {
		Schema string
		Data   []struct {
			Cause, Form, Example string
			Completions          int
			Share                float64
			ByStep               []struct{ First, Last, Completions int } `json:"by_step"`
		}
	}
	if err := json.Unmarshal([]byte(e.stdout), &got); err != nil || got.Schema != "exp.grade.audit/1" || len(got.Data) != 2 {
		t.Fatalf("%v\n%s", err, e.stdout)
	}
	if c := got.Data[0]; c.Cause != "unit" || c.Form != `#\text{ apples}` || c.Completions != 8 || c.Share != 0.25 || c.ByStep[0].Completions != 0 ||
		c.ByStep[7].Completions != 2 {
		t.Errorf("%+v", c)
	}
	if c := got.Data[1]; c.Cause != "convention" || c.Form != `#\%` || c.Completions != 4 {
		t.Errorf("%+v", c)
	}
}

func TestGradeAuditErrors(t *testing.T) {
	dir := fixtureStore(t)
	for _, tt := range []struct {
		args   string
		code   int
		stderr string
	}{
		{"grade --audit flowrl-a#0", 2, "is of countdown: only answers to problems of mathematics"},
		{"grade --audit nothing", 3, "nothing"},
		{"grade --audit flowrl-a#0 --in rows.jsonl", 2, "--in is for a file"},
	} {
		got := call{now: fixtureNow}.run(append(shellWords(tt.args), "--store", dir)...)
		if got.code != tt.code || !strings.Contains(got.stderr, tt.stderr) || got.stdout != "" {
			t.Errorf("%s: got %+v, want code %d and %q", tt.args, got, tt.code, tt.stderr)
		}
	}
}
