package serve

import (
	"context"
	"strings"
	"testing"
)

// The mean over one step is not over 1 steps.
func TestPhasesOfOneStep(t *testing.T) {
	study := newStudy(t)
	run, at, _ := study.begin("one", "ppo", 0, 100)
	study.steps(run, at.ID, 1, 1, 0.3)
	if page := newSite(t, study).get("/run/" + run.RID.String()[:selDigits]); !strings.Contains(page, "mean of 1 step<") {
		t.Error("no mean of 1 step")
	}
}

// A deleted run, which its address still shows, says so.
func TestDeletedRun(t *testing.T) {
	study := newStudy(t)
	run := study.run("gone", "ppo", 0, 0.3)
	s := newSite(t, study)
	path := "/run/" + run.RID.String()[:selDigits]
	if strings.Contains(s.get(path), "exp restore") {
		t.Error("deleted before it is")
	}
	study.must(study.db.DeleteRun(context.Background(), run.ID))
	if !strings.Contains(s.get(path), "deleted; until exp gc removes it, exp restore brings it back") {
		t.Error("the page does not say that its run is deleted")
	}
}
