package run

import (
	"bytes"
	"context"
	"testing"

	"exp/experiments/recorded"
)

// The steps of a stage before training can be read while it runs and after it was stopped. Once it is done, the record
// has the same, and nothing else remains.
func TestLiveStepsOfStage(t *testing.T) {
	l := newLab(t)
	p := l.plan(0, "sft.steps=6", "train.steps=1")
	ctx, stop := context.WithCancel(context.Background())
	var lines []byte
	atStep := func(done int) {
		run, err := l.db.Run(context.Background(), p.RID)
		if err != nil {
			t.Fatal(err)
		}
		lines, _ = l.db.LiveSteps(p.RID, l.stageOf(run.ID, "sft").SID)
		if n := bytes.Count(lines, []byte("\n")); n != done {
			t.Errorf("after step %d: %d steps", done, n)
		}
	}
	seen := 0
	progress := func(stage string, done int) {
		if stage != "sft" {
			return
		}
		seen++
		atStep(done)
		if done == 3 {
			stop()
		}
	}
	if _, err := l.try(ctx, p, &quiet{progress: progress}); err == nil || seen != 3 {
		t.Fatalf("%d steps, %v; want 3 and a stop", seen, err)
	}
	atStep(3)
	res, err := l.try(context.Background(), p, &quiet{progress: progress})
	if err != nil || seen != 6 {
		t.Fatalf("%d steps, %v", seen, err)
	}
	stages, err := l.db.Stages(context.Background(), res.Run.ID)
	if err != nil {
		t.Fatal(err)
	}
	found := recorded.StageCurves(l.db, res.Run, stages, []string{"sft"}, true)
	if len(found) != 1 || found[0].Live {
		t.Fatalf("found %+v", found)
	}
	kept, err := l.db.Blobs.Bytes(found[0].Key)
	if err != nil || !bytes.Equal(kept, lines) {
		t.Errorf("%v; kept\n%s\nwhile it ran\n%s", err, kept, lines)
	}
	if n := l.db.LiveStepsBytes(p.RID); n != 0 {
		t.Errorf("%d bytes remain", n)
	}
}
