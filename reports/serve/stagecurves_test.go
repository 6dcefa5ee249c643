package serve

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"exp/experiments/store"
)

// tuned records fine-tuning of runs, which share it. Its loss falls from 2 in n steps.
func (s *study) tuned(sid string, n int, runs ...store.Run) {
	s.t.Helper()
	ctx := context.Background()
	var lines strings.Builder
	for i := 1; i <= n; i++ {
		fmt.Fprintf(&lines, `{"sft/loss":%g,"sft/lr":0.001,"step":%d}`+"\n", 2/float64(i), i)
	}
	d, err := s.db.Blobs.PutBytes([]byte(lines.String()))
	s.must(err)
	for i, r := range runs {
		st := store.Stage{SID: digestOf(sid), Run: r.ID, Kind: "sft", Code: digestOf("code")}
		if i > 0 {
			hit, err := s.db.Hit(ctx, st.SID)
			s.must(err)
			_, err = s.db.ReuseStage(ctx, st, hit)
			s.must(err)
			continue
		}
		st, err = s.db.BeginStage(ctx, st)
		s.must(err)
		s.must(s.db.FinishStage(ctx, st.ID, []store.IO{{Role: "curve", Digest: d, Size: int64(lines.Len())}}, store.StageResult{}, nil))
	}
}

// The page of a run draws the stages before training first; a page of several arms draws them if it is asked to, once
// for the arms that share them.
func TestStageCurves(t *testing.T) {
	study := newStudy(t)
	flow, ppo, alone := study.run("flow", "flowrl", 0, 0.3), study.run("ppo", "ppo", 0, 0.2), study.run("alone", "ppo", 0, 0.2)
	study.tuned("sft", 30, flow, ppo)
	s := newSite(t, study)
	id := func(r store.Run) string { return r.RID.String()[:selDigits] }
	page := s.get("/run/" + id(ppo))
	loss, reward := strings.Index(page, `data-metric="sft/loss" data-whole`), strings.Index(page, `data-metric="critic/score/mean"`)
	if loss < 0 || reward < loss || !strings.Contains(page, "x: step of fine-tuning") || !strings.Contains(page, `value="sft/lr"`) ||
		strings.Contains(page, `data-metric="sft/lr"`) {
		t.Errorf("loss at %d, reward at %d", loss, reward)
	}
	if page := s.get("/run/" + id(alone)); strings.Contains(page, "sft/") {
		t.Error("a run without fine-tuning has its curves")
	}
	if page := s.get("/curves?sel=flow&sel=ppo"); strings.Contains(page, `data-metric="sft/loss"`) || !strings.Contains(page, `value="sft/loss"`) {
		t.Error("a page of arms draws the stage unasked, or does not offer it")
	}
	page = s.get("/curves?sel=flow&sel=ppo&sel=alone&metric=sft/loss&x=tokens&from=20&to=40")
	if n := strings.Count(page, `class="line c`); n != 1 || !strings.Contains(page, "one line for flow, ppo, which share the stage") ||
		!strings.Contains(page, "not recorded for alone<") || strings.Contains(page, "for ppo<") || strings.Contains(page, "No value") {
		t.Errorf("%d lines", n)
	}
	if n := strings.Count(page, `<td class="r">0.067</td>`); n != 2 { // the last value, for each that has it
		t.Errorf("%d last values", n)
	}
	var data struct {
		X    string
		Arms []struct {
			Name string
			Step []float64
			Mean []float64
		}
	}
	s.must(json.Unmarshal([]byte(s.get("/points?sel=flow&sel=ppo&metric=sft/loss&x=time")), &data))
	if len(data.Arms) != 1 || data.X != "step of fine-tuning" || data.Arms[0].Name != "flow" || len(data.Arms[0].Step) != 30 || data.Arms[0].Mean[1] != 1 {
		t.Errorf("%+v", data)
	}
}

// The page of a run shows the steps of a stage that has not ended; a step is told to open pages.
func TestLiveStageCurves(t *testing.T) {
	study := newStudy(t)
	ctx := context.Background()
	run, _, train := study.begin("live", "ppo", 0, 9)
	study.must(study.db.FailStage(ctx, train.ID, "not yet"))
	st, err := study.db.BeginStage(ctx, store.Stage{SID: digestOf("sft"), Run: run.ID, Kind: "sft", Code: digestOf("code")})
	study.must(err)
	lock, err := study.db.LockRun(run.RID)
	study.must(err)
	defer lock.Release()
	s := newSite(t, study)
	path := "/run/" + run.RID.String()[:selDigits]
	if page := s.get(path); strings.Contains(page, "sft/loss") || !strings.Contains(page, "No step of training is recorded") {
		t.Error("before the first step")
	}
	l := study.db.NewLiveSteps(run.RID, st.SID)
	defer l.Close()
	l.Add(1, map[string]float64{"sft/loss": 2})
	l.Add(2, map[string]float64{"sft/loss": 1.5})
	one := s.get(path)
	if !strings.Contains(one, `data-metric="sft/loss"`) || !strings.Contains(one, `class="line c0`) {
		t.Error("no curve while it runs")
	}
	l.Add(3, map[string]float64{"sft/loss": 1.25})
	if s.get(path) == one {
		t.Error("the curve does not grow")
	}

	r, err := http.NewRequest("GET", s.http.URL+"/changes?run="+run.RID.String()[:selDigits], nil)
	study.must(err)
	r.AddCookie(&http.Cookie{Name: s.server.guard.cookie, Value: "secret"})
	answer, err := s.http.Client().Do(r)
	study.must(err)
	defer answer.Body.Close()
	next := func() string {
		buffer := make([]byte, 1000)
		n, err := answer.Body.Read(buffer)
		study.must(err)
		return string(buffer[:n])
	}
	if got := next(); !strings.HasPrefix(got, "event: open") {
		t.Errorf("first %q", got)
	}
	l.Add(4, map[string]float64{"sft/loss": 1})
	if got := next(); got != "event: change\ndata: {}\n\n" {
		t.Errorf("after a step: %q", got)
	}
}

// The page of a run whose curve is lost shows the rest, and names the loss.
func TestLostStageCurve(t *testing.T) {
	study := newStudy(t)
	run := study.run("flow", "flowrl", 0, 0.3)
	study.tuned("sft", 3, run)
	stages, err := study.db.Stages(context.Background(), run.ID)
	study.must(err)
	study.must(os.Remove(study.db.Blobs.Path(stages[len(stages)-1].Outputs[0].Digest)))
	page := newSite(t, study).get("/run/" + run.RID.String()[:selDigits])
	if !strings.Contains(page, "damaged: sft: output curve") || !strings.Contains(page, `data-metric="critic/score/mean"`) {
		t.Error("no word of the loss, or no other curve")
	}
}

// Spans of a curve are those that the store makes of the same points.
func TestSpansOf(t *testing.T) {
	nan := math.NaN()
	c := store.Curve{Steps: []int64{1, 2, 3, 4, 5, 6, 9}, Values: []float64{1, 5, nan, 2, nan, nan, 7}}
	got := spansOf(c, store.Grid{To: 9, N: 5})
	want := []store.Span{{Start: 0, From: 1, To: 1, N: 1, Min: 1, Max: 1, Mean: 1}, {Start: 2, From: 2, To: 3, N: 2, Min: 5, Max: 5, Mean: 5},
		{Start: 4, From: 4, To: 5, N: 2, Min: 2, Max: 2, Mean: 2}, {Start: 6, From: 6, To: 6, N: 1, Min: nan, Max: nan, Mean: nan},
		{Start: 8, From: 9, To: 9, N: 1, Min: 7, Max: 7, Mean: 7}}
	if diff := cmp.Diff(want, got, cmpopts.EquateNaNs()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Kept curves are dropped before they are too many.
func TestStageCacheIsBounded(t *testing.T) {
	study := newStudy(t)
	run := study.run("flow", "flowrl", 0, 0.3)
	s := newSite(t, study)
	for i := range mostStages + 2 {
		study.tuned(fmt.Sprint("sft", i), i+1, run)
		found, err := s.server.stageCurves(context.Background(), run)
		study.must(err)
		curves, err := s.server.stages.read(study.db, found[0])
		if study.must(err); curves[0].N != int64(i+1) {
			t.Fatalf("stage %d: %d points", i, curves[0].N)
		}
	}
	if n := len(s.server.stages.kept); n == 0 || n > mostStages {
		t.Errorf("%d are kept", n)
	}
}
