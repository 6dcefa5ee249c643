// Package recorded reads the record of one run into one value: identity, stages, results,
// metrics, checkpoints, files, events, attempts, lineage and damage. It also extracts the
// sources that made the run. It does not change the store.
package recorded

import (
	"context"
	"encoding/json"
	"time"

	"exp/experiments/ident"
	"exp/experiments/lineage"
	"exp/experiments/store"
)

// Parts selects the parts of a run to read. The zero value selects the summary:
// everything except configuration and lineage.
type Parts struct{ Stages, Config, Env, Lineage bool }

// Summary reports whether no part is selected.
func (p Parts) Summary() bool { return p == Parts{} }

// Options configures Read.
type Options struct {
	Parts   Parts
	Metrics []string // globs of the metrics of a summary, in their order
	Model   string   // name of the merged model's folder within the run's
	// Unchecked leaves out the search for missing blobs, which takes a look at each.
	Unchecked bool
}

// Run is the record of one run, with the schema exp.show/1. Parts that were not selected
// are absent.
type Run struct {
	Run        ident.Digest `json:"run"`
	XID        ident.Digest `json:"xid"`
	Name       string       `json:"name"`
	Task       string       `json:"task"`
	Algo       string       `json:"algo"`
	Model      string       `json:"model"`
	Seed       int64        `json:"seed"`
	Numerics   string       `json:"numerics"`
	Foreign    string       `json:"foreign,omitempty"` // the framework that made it
	Device     string       `json:"device"`
	Status     store.Status `json:"status"`
	Reason     string       `json:"reason,omitempty"` // why it did not finish: a condition or an error
	Steps      int64        `json:"steps"`
	StepsTotal int64        `json:"steps_total"`
	Tokens     int64        `json:"tokens"`
	Created    time.Time    `json:"created"`
	Started    time.Time    `json:"started"`
	Ended      time.Time    `json:"ended"`
	WallS      float64      `json:"wall_s"`
	Config     ident.Digest `json:"config"`
	Code       ident.Digest `json:"code"`
	Chain      ident.Digest `json:"chain"`
	Parent     ident.Digest `json:"parent,omitempty"`
	Deleted    time.Time    `json:"deleted,omitempty"`
	Tags       []string     `json:"tags"`
	AlsoNamed  []string     `json:"also_named,omitempty"` // names that find it besides its own
	Notes      []store.Note `json:"notes"`
	// Damage lists the stored results that are missing.
	Damage      []Damage     `json:"damage"`
	Divergences []Divergence `json:"divergences"`
	// Verifications are the proofs of the record, oldest first.
	Verifications []Verification `json:"verifications"`

	Stages []Stage `json:"stages,omitempty"`
	// Selection says which training problems pass rates chose; nil if none did.
	Selection *Selection `json:"selection,omitempty"`
	Best      *Best      `json:"best,omitempty"` // validation that chose the weights; nil: the last ones count
	Results   []Result   `json:"results,omitempty"`
	// Earlier are the accuracies of earlier evaluations on the same suites under other settings.
	Earlier       []Result        `json:"earlier,omitempty"`
	Metrics       []store.Curve   `json:"metrics,omitempty"`
	Checkpoints   []Checkpoint    `json:"checkpoints,omitempty"`
	ModelDir      string          `json:"model_dir,omitempty"`
	Artifacts     []Artifact      `json:"artifacts,omitempty"`
	Events        []Event         `json:"events,omitempty"`
	Configuration map[string]any  `json:"configuration,omitempty"`
	Attempts      []Attempt       `json:"attempts,omitempty"`
	Lineage       []lineage.Trace `json:"lineage,omitempty"`

	Row    store.Run `json:"-"`
	Parts  Parts     `json:"-"` // that were read
	Source string    `json:"-"` // the user's configuration file; with Parts.Config
}

// Divergence is work that was repeated with a different result.
type Divergence struct {
	Time time.Time `json:"time"`
	Text string    `json:"text"`
	Host string    `json:"host"`
}

// Verification is one proof, or refutation, of the record.
type Verification struct {
	Time     time.Time `json:"time"`
	Level    string    `json:"level"`
	OK       bool      `json:"ok"`
	FromStep int64     `json:"from_step"`
	ToStep   int64     `json:"to_step"`
	Detail   any       `json:"detail"`

	Raw json.RawMessage `json:"-"` // Detail as it was recorded
}

// Checkpoint is an announced checkpoint and where its files are.
type Checkpoint struct {
	store.Checkpoint
	Path string `json:"path"` // empty: its files have been removed
}

// Artifact is a file that the run produced.
type Artifact struct {
	store.Artifact
	Path string `json:"path"`
}

// Event is an event of the run.
type Event struct {
	Time  time.Time   `json:"time"`
	Level store.Level `json:"level"`
	Kind  string      `json:"kind"`
	Data  any         `json:"data"`

	Raw json.RawMessage `json:"-"` // Data as it was recorded
}

// Attempt is one execution of the run.
type Attempt struct {
	N        int64             `json:"n"`
	Kind     store.AttemptKind `json:"kind"`
	Status   store.Status      `json:"status"`
	ExitCode int               `json:"exit_code"`
	Host     string            `json:"host"`
	PID      int               `json:"pid"`
	Device   string            `json:"device"`
	Build    string            `json:"build"`
	Started  time.Time         `json:"started"`
	Ended    time.Time         `json:"ended"`
	Env      any               `json:"env"`
}

// Read reads the record of a run whose status is current (store.DB.StatusNow).
func Read(ctx context.Context, db *store.DB, run store.Run, o Options) (*Run, error) {
	r := reader{ctx: ctx, db: db, row: run, o: o, run: &Run{
		Run: run.RID, XID: run.XID, Name: run.Name, Task: run.Task, Algo: run.Algo, Model: run.Model, Seed: run.Seed,
		Numerics: run.Numerics, Foreign: run.Foreign(), Device: run.Device, Status: run.Status,
		Steps: run.Steps, StepsTotal: run.StepsTotal, Tokens: run.Tokens,
		Created: run.Created, Started: run.Started, Ended: run.Ended, WallS: run.WallS,
		Config: run.Config, Code: run.Code, Chain: run.Chain, Deleted: run.Deleted,
		Tags: []string{}, Notes: []store.Note{},
		Damage: []Damage{}, Divergences: []Divergence{}, Verifications: []Verification{},
		Row: run, Parts: o.Parts,
	}}
	wanted := []func() error{r.remarks, r.divergences, r.verifications}
	add := func(on bool, f ...func() error) {
		if on {
			wanted = append(wanted, f...)
		}
	}
	summary := o.Parts.Summary()
	add(o.Parts.Stages || summary, r.stages)
	add((o.Parts.Stages || summary) && !o.Unchecked, r.damage)
	add(summary, r.results, r.metrics, r.checkpoints, r.files, r.events)
	add(o.Parts.Config, r.config)
	add(o.Parts.Env || summary, r.attempts)
	add(o.Parts.Lineage, r.lineage)
	for _, f := range wanted {
		if err := f(); err != nil {
			return nil, err
		}
	}
	return r.run, nil
}
