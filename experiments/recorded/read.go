package recorded

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"exp/experiments/keep"
	"exp/experiments/lineage"
	"exp/experiments/store"
)

// reader reads the parts of a run.
type reader struct {
	ctx context.Context
	db  *store.DB
	row store.Run
	o   Options
	run *Run
}

func (r reader) remarks() (err error) {
	if r.run.Reason, err = r.db.Reason(r.ctx, r.row.ID); err != nil {
		return err
	}
	tags, err := r.db.Tags(r.ctx, r.row.ID)
	if err != nil {
		return err
	}
	r.run.Tags = append(r.run.Tags, tags...)
	others, err := r.db.OtherNames(r.ctx)
	if err != nil {
		return err
	}
	r.run.AlsoNamed = others[r.row.ID]
	notes, err := r.db.Notes(r.ctx, r.row.ID)
	if err != nil {
		return err
	}
	r.run.Notes = append(r.run.Notes, notes...)
	if r.row.Parent != 0 {
		parent, err := r.db.RunByID(r.ctx, r.row.Parent)
		if err != nil {
			return err
		}
		r.run.Parent = parent.RID
	}
	return nil
}

func (r reader) divergences() error {
	list, err := r.db.Divergences(r.ctx, r.row.ID)
	for _, d := range list {
		r.run.Divergences = append(r.run.Divergences, Divergence{d.Time, d.What.Text(), d.Host})
	}
	return err
}

func (r reader) verifications() error {
	list, err := r.db.Verifications(r.ctx, r.row.ID)
	for _, v := range list {
		r.run.Verifications = append(r.run.Verifications, Verification{
			Time: v.Time, Level: v.Level, OK: v.OK, FromStep: v.FromStep, ToStep: v.ToStep,
			Detail: Decode(v.Detail), Raw: v.Detail,
		})
	}
	return err
}

// metrics reads the summary's metrics with their points.
func (r reader) metrics() error {
	curves, err := r.db.MetricsOf(r.ctx, r.row.ID, r.o.Metrics, 0, store.AllSteps)
	r.run.Metrics = append([]store.Curve{}, curves...)
	return err
}

func (r reader) checkpoints() error {
	list, err := r.db.Checkpoints(r.ctx, r.row.ID)
	if err != nil {
		return err
	}
	saved, err := keep.Saved(r.db, r.row.RID)
	if err != nil {
		return err
	}
	r.run.Checkpoints = []Checkpoint{}
	for _, c := range list {
		shown := Checkpoint{Checkpoint: c}
		i := slices.IndexFunc(saved, func(s keep.SavedCheckpoint) bool {
			return s.Step == c.Step && strings.HasPrefix(s.Stage, "train-")
		})
		if i >= 0 {
			shown.Path = saved[i].Dir
		}
		r.run.Checkpoints = append(r.run.Checkpoints, shown)
	}
	return nil
}

func (r reader) files() error {
	dir := filepath.Join(r.db.RunDir(r.row.RID), r.o.Model)
	if _, err := os.Stat(dir); err == nil {
		r.run.ModelDir = dir
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	list, err := r.db.Artifacts(r.ctx, r.row.ID)
	r.run.Artifacts = []Artifact{}
	for _, f := range list {
		r.run.Artifacts = append(r.run.Artifacts, Artifact{f, r.db.Blobs.Path(f.Digest)})
	}
	return err
}

func (r reader) events() error {
	list, err := r.db.Events(r.ctx, r.row.ID, 0)
	r.run.Events = []Event{}
	for _, e := range list {
		r.run.Events = append(r.run.Events, Event{e.Time, e.Level, e.Kind, Decode(e.Data), e.Data})
	}
	return err
}

func (r reader) config() error {
	c, err := r.db.Config(r.ctx, r.row.Config)
	if err != nil {
		return err
	}
	r.run.Source = c.Source
	return json.Unmarshal([]byte(c.JSON), &r.run.Configuration)
}

func (r reader) attempts() error {
	list, err := r.db.Attempts(r.ctx, r.row.ID)
	r.run.Attempts = []Attempt{}
	for _, a := range list {
		r.run.Attempts = append(r.run.Attempts, Attempt{
			N: a.N, Kind: a.Kind, Status: r.statusNow(a.Status), ExitCode: a.ExitCode, Host: a.Host, PID: a.PID,
			Device: a.Device, Build: a.Build, Started: a.Started, Ended: a.Ended, Env: Decode(a.Env),
		})
	}
	return err
}

func (r reader) lineage() (err error) {
	w := &lineage.Walker{DB: r.db}
	r.run.Lineage, err = w.Traces(r.ctx, r.row.ID)
	return err
}

// statusNow returns the current status of a stage or an attempt: if it is recorded as
// running but its run is not running, it was interrupted.
func (r reader) statusNow(s store.Status) store.Status {
	if s == store.Running && r.row.Status != store.Running {
		return store.Interrupted
	}
	return s
}

// Decode decodes JSON from the store, which validates it on writing; nil if empty.
func Decode(text json.RawMessage) any {
	var v any
	if json.Unmarshal(text, &v) != nil {
		return nil
	}
	return v
}
