package run

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"exp/experiments/store"
	"exp/harness/config"
)

// conditionsEvent is the kind of the event that says that a run goes on under other conditions of run.stop_if
// than before. They are not part of its identity, so the recorded configuration may have others.
const conditionsEvent = "conditions"

// Conditions returns the conditions under which a run was last executed.
func Conditions(ctx context.Context, db *store.DB, run store.Run) ([]string, error) {
	events, err := db.Events(ctx, run.ID, 0)
	if err != nil {
		return nil, err
	}
	for _, e := range slices.Backward(events) {
		var data struct {
			Conditions []string `json:"conditions"`
		}
		if e.Kind == conditionsEvent && json.Unmarshal(e.Data, &data) == nil {
			return data.Conditions, nil
		}
	}
	conf, err := db.Config(ctx, run.Config)
	if err != nil {
		return nil, err
	}
	var recorded struct {
		Run struct {
			StopIf []string `json:"stop_if"`
		} `json:"run"`
	}
	err = json.Unmarshal([]byte(conf.JSON), &recorded)
	return recorded.Run.StopIf, err
}

// newConditions returns the conditions of this execution if the run was last executed under others.
func (x *execution) newConditions(ctx context.Context) (list []string, changed bool, err error) {
	list = append([]string{}, x.p.Config.Run.Control.StopIf...)
	had, err := Conditions(ctx, x.DB, x.run)
	return list, err == nil && !slices.Equal(list, had), err
}

// recordConditions records the conditions, so that exp resume keeps them.
func (x *execution) recordConditions(ctx context.Context) error {
	if x.Options.Joins || x.Options.NoCache || x.run.Status == store.Done {
		return nil
	}
	list, changed, err := x.newConditions(ctx)
	if err != nil || !changed {
		return err
	}
	text := "it stops if " + strings.Join(list, ", or if ")
	if len(list) == 0 {
		text = "no condition stops it"
	}
	data, err := json.Marshal(map[string]any{"conditions": list, "text": text})
	if err != nil {
		return err
	}
	return x.DB.AddEvent(ctx, store.Event{Run: x.run.ID, Attempt: x.attempt.ID, Level: store.LevelInfo,
		Kind: conditionsEvent, Data: data})
}

// noteUnheeded says that conditions which were not given before come too late: training is done.
func (x *execution) noteUnheeded(ctx context.Context, kind config.Stage) error {
	if kind != config.Train || x.Options.Joins || len(x.p.Config.Run.Control.StopIf) == 0 {
		return nil
	}
	list, changed, err := x.newConditions(ctx)
	if err != nil || !changed {
		return err
	}
	x.Watch.Note(fmt.Sprintf("run %s has finished its training, so this condition stops nothing: %s",
		x.run.RID.Short(), strings.Join(list, "; ")))
	return nil
}
