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

// auditStore holds a run of mathematics whose policy learns to append words and to hedge. Its verdicts are recorded,
// but for step 1, and one of step 3 that our grader does not give today.
func auditStore(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	db, err := store.Open(dir, store.Options{Create: true, Clock: func() time.Time { return fixtureNow }})
	if err != nil {
		t.Fatal(err)
	}
	b := builder{t: t, db: db}
	text := `{"name":"math","task":{"math":{"grader":"exp"}},"eval":{"final":{"graders":["math_dapo","prime"]}}}`
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
	var verdicts []store.Verdict
	for step := int64(1); step <= 16; step++ {
		texts := []string{"So it is \\boxed{12}.\nAnswer: 12", "It is a half.\nAnswer: 7"}
		bases := []string{"proof", ""}
		if step > 8 {
			texts[0], bases[0] = fmt.Sprintf("So it is \\boxed{12\\text{ apples}}.\nAnswer: %d", step), "unit"
		}
		switch {
		case step > 12:
			texts[1], bases[1] = "Hence \\boxed{50\\%}.", "convention"
		case step == 3:
			bases[1] = "guess"
		}
		for i, s := range texts {
			b.must(pack.Add(map[string]any{"prompt": "?", "text": s, "basis": bases[i]}))
			v := store.Verdict{Graded: true, Correct: bases[i] != "", Reason: "as recorded"}
			if v.Correct {
				v.Reward = 1
			}
			rows = append(rows, store.Sample{Stage: st.Home, Scope: "train", Step: step, Item: fmt.Sprintf("p%d", i+1), OutTokens: 7,
				Finish: "stop", Reward: v.Reward, LogProbSum: math.NaN()})
			verdicts = append(verdicts, v)
		}
	}
	refs, packs, err := pack.Close()
	b.must(err)
	for i := range rows {
		rows[i].Ref = refs[i]
	}
	b.must(db.AddSamples(b.ctx(), rows, packs))
	b.must(db.AddSamples(b.ctx(), []store.Sample{{Stage: st.Home, Scope: "train", Step: 16, Item: "p2", K: 1, Finish: "stop"}}, nil))
	for i := range verdicts {
		verdicts[i].Sample = rows[i].ID
	}
	b.must(db.AddVerdicts(b.ctx(), store.Scorer{Digest: digestOf("exp/1"), Name: "exp/1"}, verdicts[2:]))
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
			Cause, Form, Example, Graders string
			Completions                   int
			Share                         float64
			ByStep                        []struct{ First, Last, Completions int } `json:"by_step"`
		}
	}
	if err := json.Unmarshal([]byte(e.stdout), &got); err != nil || got.Schema != "exp.grade.audit/1" || len(got.Data) != 3 {
		t.Fatalf("%v\n%s", err, e.stdout)
	}
	if c := got.Data[0]; c.Cause != "unit" || c.Form != `#\text{ apples}` || c.Completions != 8 || c.Share != 0.25 || c.ByStep[0].Completions != 0 ||
		c.ByStep[7].Completions != 2 {
		t.Errorf("%+v", c)
	}
	if c := got.Data[1]; c.Cause != "convention" || c.Form != `#\%` || c.Completions != 4 {
		t.Errorf("%+v", c)
	}
	if c := got.Data[2]; c.Cause != "changed" || c.Graders != "exp, not exp today" || c.Completions != 1 {
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
