package serve

import (
	"fmt"
	"time"

	"exp/experiments/ident"
	"exp/experiments/quantity"
	"exp/experiments/store"
	"exp/harness/metric"
)

// activityEvery is how often the page of a run checks what the run is doing.
const activityEvery = time.Second

// activityShown describes a run's current work for its page.
type activityShown struct {
	Text  string `json:"text"`
	Done  int64  `json:"done"`
	Total int64  `json:"total"`
}

// activityOf returns what a run is doing: empty if it does not run.
func (s *Server) activityOf(rid ident.Digest) activityShown {
	a, ok := s.db.Activity(rid)
	if !ok {
		return activityShown{}
	}
	if _, alive := s.db.Alive(rid); !alive {
		return activityShown{} // killed
	}
	return showActivity(a, s.clock())
}

// showActivity says "train, step 13 of 120: scoring, 34 of 64 completions, for 2s".
func showActivity(a store.Activity, now time.Time) activityShown {
	text, unit := a.Stage, ""
	if a.Of > 0 && (a.Step > 0 || a.Phase != "") {
		text += fmt.Sprintf(", step %d of %d", a.Step, a.Of)
	}
	if work, of := metric.Activity(a.Phase); work != "" {
		text, unit = text+": "+work, " "+of
	}
	if a.Total > 0 {
		text += fmt.Sprintf(", %s of %s%s", quantity.Count(a.Done), quantity.Count(a.Total), unit)
	}
	if took := now.Sub(a.Since); took >= time.Second && !a.Since.IsZero() {
		text += ", for " + quantity.Remaining(took)
	}
	return activityShown{text, a.Done, a.Total}
}
