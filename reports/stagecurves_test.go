package reports

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"exp/experiments/store"
	"exp/reports/compare"
)

// staged records a stage before training of a run, or its reuse. It keeps a curve of five steps, whose third step has
// no finite loss if gap is set.
func (s *study) staged(run store.Run, kind, name string, gap bool) {
	s.t.Helper()
	ctx := context.Background()
	st := store.Stage{SID: digestOf(kind + name), Run: run.ID, Kind: kind, Code: digestOf("code")}
	hit, err := s.db.Hit(ctx, st.SID)
	s.must(err)
	if hit != nil {
		_, err := s.db.ReuseStage(ctx, st, hit)
		s.must(err)
		return
	}
	st, err = s.db.BeginStage(ctx, st)
	s.must(err)
	var lines strings.Builder
	for n := 1; n <= 5; n++ {
		row := map[string]float64{"step": float64(n), kind + "/loss": 3/float64(n) + float64(len(name)), kind + "/lr": 1e-3 / float64(n)}
		if kind == "prefer" {
			row["prefer/accuracy"], row["prefer/margin"] = 0.1*float64(n), float64(n)
		}
		if gap && n == 3 {
			delete(row, kind+"/loss")
		}
		b, err := json.Marshal(row)
		s.must(err)
		fmt.Fprintf(&lines, "%s\n", b)
	}
	d, err := s.db.Blobs.PutBytes([]byte(lines.String()))
	s.must(err)
	s.must(s.db.FinishStage(ctx, st.ID, []store.IO{{Role: "curve", Digest: d, Size: int64(lines.Len())}}, store.StageResult{}, nil))
}

// stageFigure is what a report says of a curve.
type stageFigure struct {
	Caption string
	X       string
	Arms    []struct {
		Name  string
		Seeds int
		Mean  []*float64
	}
}

// stageFigures returns the figures of stages before training, by name, and the omitted ones with the reasons.
func (s *study) stageFigures(in Input) (map[string]stageFigure, map[string]string) {
	s.t.Helper()
	var d struct {
		Figures []struct {
			Name, Caption string
			Data          json.RawMessage
		}
		Omitted []omitted
	}
	s.must(json.Unmarshal(s.bundle(in, Formats{})["data.json"], &d))
	drawn, left := map[string]stageFigure{}, map[string]string{}
	for _, f := range d.Figures {
		if strings.HasPrefix(f.Name, "sft") || strings.HasPrefix(f.Name, "prefer") {
			x := stageFigure{Caption: f.Caption}
			s.must(json.Unmarshal(f.Data, &x))
			drawn[f.Name] = x
		}
	}
	for _, o := range d.Omitted {
		left[o.Name] = o.Reason
	}
	return drawn, left
}

// Runs and arms that share a stage have one line, in the colour of the first; other arms have their own.
func TestStageCurves(t *testing.T) {
	s := newStudy(t)
	for _, r := range slices.Concat(s.flowrl, s.ppo) {
		s.staged(r, "sft", "shared", true)
	}
	in := Input{Comparison: s.comparison()}
	drawn, _ := s.stageFigures(in)
	f := drawn["sft-loss"]
	if len(drawn) != 1 || len(f.Arms) != 1 || f.Arms[0].Name != "all arms" || f.Arms[0].Seeds != 1 || f.X != "step of fine-tuning" {
		t.Fatalf("shared by all: %+v", drawn)
	}
	if m := f.Arms[0].Mean; len(m) != 5 || m[2] != nil || m[0] == nil || *m[0] != 9 {
		t.Errorf("means %v", m)
	}
	for _, want := range []string{"Negative log-prob of a target's token, mean over the step's tokens (sft/loss)", "Runs that share the stage have one curve",
		"all arms: flow and ppo & co", "1 seed.", "1 value left out"} {
		if !strings.Contains(f.Caption, want) {
			t.Errorf("the caption lacks %q: %s", want, f.Caption)
		}
	}

	for i, r := range s.ppo { // of two other stages
		s.staged(r, "prefer", strings.Repeat("x", i+1), false)
	}
	drawn, left := s.stageFigures(in)
	if len(drawn) != 4 || left["sft-loss"]+left["prefer-loss"] != "" {
		t.Fatalf("%d figures, omitted %v", len(drawn), left)
	}
	f = drawn["prefer-margin"]
	if len(f.Arms) != 1 || f.Arms[0].Name != "ppo & co" || f.Arms[0].Seeds != 2 ||
		!strings.Contains(f.Caption, "Not recorded for flow: only learning from preferences has it (prefer.steps)") || strings.Contains(f.Caption, "share") {
		t.Errorf("an arm of two stages: %+v", f)
	}

	md := string(s.bundle(Input{Arm: compare.Arm{Runs: s.flowrl}}, Formats{})["report.md"])
	if at := strings.Index(md, "Before training,"); at < 0 || at > strings.Index(md, "Optimization, ") {
		t.Error("the stages before training have no part before training's")
	}
	if one, err := One(context.Background(), Input{DB: s.db, Comparison: s.comparison()}, "prefer/lr"); err != nil || one.Name != "prefer-lr" {
		t.Errorf("a figure by its metric: %q, %v", one.Name, err)
	}
}

// A curve that the store lost leaves the rest of the report, which says so. Runs without such stages have none of it.
func TestStageCurveLost(t *testing.T) {
	s := newStudy(t)
	in := Input{Arm: compare.Arm{Runs: s.flowrl}}
	if drawn, left := s.stageFigures(in); len(drawn) != 0 || left["sft-loss"] != "" || left["prefer-loss"] != "" {
		t.Errorf("without such stages: drawn %v, omitted %v", drawn, left)
	}
	s.staged(s.flowrl[0], "sft", "a", false)
	stages, err := s.db.Stages(context.Background(), s.flowrl[0].ID)
	s.must(err)
	s.must(os.Remove(s.db.Blobs.Path(stages[len(stages)-1].Outputs[0].Digest)))
	drawn, left := s.stageFigures(in)
	if want := "the store lacks what stage sft kept of its steps; exp fsck names the file"; len(drawn) != 0 || left["sft-loss"] != want || left["prefer-loss"] != "" {
		t.Errorf("drawn %v, omitted %v", drawn, left)
	}
}

// Lines of several arms have short names.
func TestSharedLabel(t *testing.T) {
	arms := []*arm{{label: "a"}, {label: "b"}, {label: strings.Repeat("long", 6)}, {label: "d"}}
	for _, c := range []struct {
		of   []*arm
		want string
	}{
		{arms[:1], "a"}, {arms[:2], "a, b"}, {arms, "all arms"}, {arms[:3], "a and 2 more"},
	} {
		if got := sharedLabel(c.of, len(arms)); got != c.want {
			t.Errorf("%d arms: %q, want %q", len(c.of), got, c.want)
		}
	}
}
