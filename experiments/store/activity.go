package store

import (
	"encoding/json"
	"os"
	"path/filepath"
	"time"

	"exp/experiments/ident"
)

// Activity is the current work of the process that executes a run. It is not part of the record:
// the process overwrites it, about once a second, in a file of the run's directory, and removes
// it at the end. It describes the run only while Alive.
type Activity struct {
	Stage string    `json:"stage"` // kind, with its label: "eval.gen test"
	Step  int64     `json:"step,omitempty"`
	Of    int64     `json:"of,omitempty"`    // steps of the stage
	Phase string    `json:"phase,omitempty"` // of the step
	Done  int64     `json:"done,omitempty"`  // of what the phase, or else the stage, works through
	Total int64     `json:"total,omitempty"` // 0: unknown
	Since time.Time `json:"since"`           // when the phase began
}

// activityPath is a name that bundles leave out.
func (db *DB) activityPath(rid ident.Digest) string {
	return filepath.Join(db.RunDir(rid), ".activity.json")
}

// partial ends the name of a file that is being written.
const partial = ".partial"

// WriteActivity replaces a run's activity. The run's directory must exist. An error, such as a full
// disk, leaves no file.
func (db *DB) WriteActivity(rid ident.Digest, a Activity) error {
	b, err := json.Marshal(a)
	if err != nil {
		return err
	}
	path := db.activityPath(rid)
	err = os.WriteFile(path+partial, b, 0o666)
	if err == nil {
		err = os.Rename(path+partial, path)
	}
	if err != nil {
		db.RemoveActivity(rid)
	}
	return db.fail("write activity", err)
}

// RemoveActivity removes a run's activity, if there is one.
func (db *DB) RemoveActivity(rid ident.Digest) {
	_ = os.Remove(db.activityPath(rid))
	_ = os.Remove(db.activityPath(rid) + partial) // of a killed process
}

// Activity returns what a run that is alive is doing; ok is false if that is unknown.
func (db *DB) Activity(rid ident.Digest) (a Activity, ok bool) {
	b, err := os.ReadFile(db.activityPath(rid))
	return a, err == nil && json.Unmarshal(b, &a) == nil && a.Stage != ""
}
