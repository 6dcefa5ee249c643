package store

import (
	"os"
	"testing"

	"exp/experiments/ident"
)

// The steps of a stage can be read while it runs; a process that continues it replaces the steps that it takes again.
func TestLiveSteps(t *testing.T) {
	db := open(t)
	rid, sid := ident.Sum([]byte("run")), ident.Sum([]byte("sft"))
	if err := os.MkdirAll(db.RunDir(rid), 0o777); err != nil {
		t.Fatal(err)
	}
	want := func(text string) {
		t.Helper()
		if got, err := db.LiveSteps(rid, sid); string(got) != text || err != nil || db.LiveStepsSize(rid, sid) != int64(len(text)) {
			t.Errorf("read %q, %v, size %d; want %q", got, err, db.LiveStepsSize(rid, sid), text)
		}
	}
	l := db.NewLiveSteps(rid, sid)
	l.Add(1, map[string]float64{"sft/loss": 2})
	l.Add(2, map[string]float64{"sft/loss": 1.5, "sft/lr": 1e-3})
	want("{\"sft/loss\":2,\"step\":1}\n{\"sft/loss\":1.5,\"sft/lr\":0.001,\"step\":2}\n")
	l.Add(3, nil)
	l.Close()
	l.Add(4, nil)

	l = db.NewLiveSteps(rid, sid) // step 2 was not in the checkpoint
	l.Add(2, map[string]float64{"sft/loss": 1.25})
	want("{\"sft/loss\":2,\"step\":1}\n{\"sft/loss\":1.25,\"step\":2}\n")
	if got := db.LiveStepsBytes(rid); got != db.LiveStepsSize(rid, sid) {
		t.Errorf("%d bytes of all stages", got)
	}
	if _, err := l.file.WriteString(`{"step":`); err != nil { // a reader comes before the line ends
		t.Fatal(err)
	}
	if got, _ := db.LiveSteps(rid, sid); string(got) != "{\"sft/loss\":2,\"step\":1}\n{\"sft/loss\":1.25,\"step\":2}\n" {
		t.Errorf("read %q", got)
	}
	l.Close()
	db.RemoveLiveSteps(rid, sid)
	if n := db.LiveStepsBytes(rid); n != 0 {
		t.Errorf("%d bytes remain", n)
	}

	lost := db.NewLiveSteps(ident.Sum([]byte("no such run")), sid) // its directory is not there: nothing happens
	lost.Add(1, nil)
	lost.Add(2, nil)
	lost.Close()
}
