package keep

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"exp/experiments/blob"
	"exp/experiments/ident"
	"exp/experiments/store"
)

// Fault is a kind of finding.
type Fault string

const (
	Database   Fault = "database"   // SQLite's own check, or a reference to a row that is not there
	Missing    Fault = "missing"    // a blob that a run needs is missing
	Corrupt    Fault = "corrupt"    // a blob's size or bytes differ from the record
	Chain      Fault = "chain"      // a run's steps and chain contradict each other
	Summary    Fault = "summary"    // what lists print of a run does not follow from its rows
	Checkpoint Fault = "checkpoint" // a checkpoint's files were changed
	Config     Fault = "config"     // a run's configuration was changed
	Stage      Fault = "stage"      // a stage's record was changed
	Sources    Fault = "sources"    // a list of source files was changed
	Stale      Fault = "stale"      // recorded as running, but the process is gone; not damage
)

// Finding is a problem found by Check.
type Finding struct {
	Fault    Fault  `json:"fault"`
	What     string `json:"what"`     // the blob's digest, the checkpoint's folder, the run
	Detail   string `json:"detail"`   // the error
	Runs     []Run  `json:"runs"`     // that depend on it
	Repaired string `json:"repaired"` // the repair; empty: none
}

// Run is a run affected by a finding. Its text is its id.
type Run struct{ *store.Run }

// MarshalText implements encoding.TextMarshaler.
func (r Run) MarshalText() ([]byte, error) { return r.RID.MarshalText() }

// Damage reports whether recorded data is lost or wrong.
func (f Finding) Damage() bool { return f.Fault != Stale }

// CheckOptions configures Check.
type CheckOptions struct {
	Deep   bool // hash all blobs and checkpoints; otherwise compare sizes only
	Repair bool // quarantine corrupt blobs, close runs of killed processes
	// Checkpoint checks the files in a checkpoint's folder if Deep; nil: skip
	// checkpoints.
	Checkpoint func(dir string) error
	// Config says how a configuration was changed after it was recorded, "" if it was not;
	// nil: skip configurations.
	Config func(store.Config) string
	// Stage does the same for a stage; nil: skip stages.
	Stage func(store.Stage) string
	// Progress receives the bytes hashed and in total; may be nil.
	Progress func(done, total int64)
	Now      time.Time
}

// Report is the result of Check.
type Report struct {
	OK          bool      `json:"ok"` // no finding is damage
	Deep        bool      `json:"deep"`
	Runs        int       `json:"runs"`
	Blobs       int       `json:"blobs"`       // recorded and needed
	Bytes       int64     `json:"bytes"`       // of these, hashed if Deep
	Steps       int64     `json:"steps"`       // whose chain was checked
	Recomputed  int64     `json:"recomputed"`  // of these, recomputed from the record
	Checkpoints int       `json:"checkpoints"` // whose files were read; 0 unless Deep
	WallS       float64   `json:"wall_s"`      // seconds
	Findings    []Finding `json:"findings"`
}

// Damage counts the findings that are damage.
func (r *Report) Damage() (n int) {
	for _, f := range r.Findings {
		if f.Damage() {
			n++
		}
	}
	return n
}

type check struct {
	ctx    context.Context
	db     *store.DB
	o      CheckOptions
	runs   map[int64]*store.Run
	report *Report
}

// Check checks a store: the database itself; that every blob that a run needs exists with
// its size or, if o.Deep, with its bytes; that configurations, stages and lists of source files are as
// recorded; that every run's chain and summaries match its rows; and that nothing recorded as running has
// stopped. Without o.Repair it changes nothing. It ignores blobs that no run needs; Sweep
// finds them.
func Check(ctx context.Context, db *store.DB, o CheckOptions) (*Report, error) {
	start := time.Now()
	c := &check{ctx: ctx, db: db, o: o, runs: map[int64]*store.Run{},
		report: &Report{Deep: o.Deep, Findings: []Finding{}}}
	for _, deleted := range []bool{false, true} {
		runs, err := db.Runs(ctx, store.RunQuery{Deleted: deleted})
		if err != nil {
			return c.report, err
		}
		for i := range runs {
			c.runs[runs[i].ID] = &runs[i]
		}
	}
	for _, f := range []func() error{c.database, c.stale, c.blobs, c.configs, c.stages, c.sources, c.chains,
		c.summaries, c.checkpoints} {
		if err := f(); err != nil {
			return c.report, err
		}
	}
	c.report.OK = c.report.Damage() == 0
	c.report.WallS = time.Since(start).Seconds()
	return c.report, nil
}

func (c *check) found(f Finding) { c.report.Findings = append(c.report.Findings, f) }

func (c *check) database() error {
	err := c.db.Check(c.ctx)
	if errors.Is(err, store.ErrCorrupt) {
		c.found(Finding{Fault: Database, What: "exp.db", Detail: err.Error(), Runs: []Run{}})
		return nil
	}
	return err
}

// stale finds runs recorded as running whose lock nobody holds.
func (c *check) stale() error {
	runs, err := c.db.Unfinished(c.ctx)
	if err != nil {
		return err
	}
	for i := range runs {
		r := &runs[i]
		if _, alive := c.db.Alive(r.RID); alive {
			continue
		}
		f := Finding{Fault: Stale, What: r.RID.String(), Detail: "recorded as running, but its process is gone",
			Runs: []Run{{r}}}
		if c.o.Repair {
			if f.Repaired, err = c.closeKilled(r); err != nil {
				return err
			}
		}
		c.found(f)
	}
	return nil
}

func (c *check) closeKilled(r *store.Run) (string, error) {
	lock, err := c.db.LockRun(r.RID)
	if errors.Is(err, store.ErrBusy) {
		return "", nil // it was just resumed
	}
	if err != nil {
		return "", err
	}
	defer lock.Release()
	return "marked as interrupted", c.db.CloseKilled(c.ctx, r.ID)
}

// blobs checks the blobs that runs need.
func (c *check) blobs() error {
	uses, err := c.db.Uses(c.ctx)
	if err != nil {
		return err
	}
	needed := map[ident.Digest][]int64{}
	for _, u := range uses {
		if list := needed[u.Digest]; !slices.Contains(list, u.Run) {
			needed[u.Digest] = append(list, u.Run)
		}
	}
	recorded, err := c.db.RecordedBlobs(c.ctx)
	if err != nil {
		return err
	}
	recorded = slices.DeleteFunc(recorded, func(b store.RecordedBlob) bool { return needed[b.Digest] == nil })
	verified := make([]error, len(recorded))
	if c.o.Deep {
		verified = c.verify(recorded)
	}
	for i, b := range recorded {
		if err := c.ctx.Err(); err != nil {
			return err
		}
		c.report.Blobs++
		c.report.Bytes += b.Size
		if err := c.blob(b, verified[i], needed[b.Digest]); err != nil {
			return err
		}
	}
	return nil
}

// verify hashes blobs and returns the error of each.
func (c *check) verify(recorded []store.RecordedBlob) []error {
	var total int64
	list := make([]blob.Recorded, len(recorded))
	for i, b := range recorded {
		list[i] = blob.Recorded{Digest: b.Digest, Size: b.Size}
		total += b.Size
	}
	return c.db.Blobs.VerifyAll(c.ctx, list, func(_ int, bytes int64) {
		if c.o.Progress != nil {
			c.o.Progress(bytes, total)
		}
	})
}

// blob judges a blob; verified is the error of its bytes if Deep.
func (c *check) blob(b store.RecordedBlob, verified error, runs []int64) error {
	f := Finding{What: b.Digest.String(), Runs: []Run{}}
	size, err := c.db.Blobs.Stat(b.Digest)
	if err == nil && size == b.Size {
		err = verified
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		f.Fault, f.Detail = Missing, b.Kind+": "+c.db.Blobs.Path(b.Digest)+" is missing"
	case errors.Is(err, blob.ErrCorrupt):
		f.Fault, f.Detail = Corrupt, b.Kind+": "+c.db.Blobs.Path(b.Digest)+" has the wrong bytes"
	case err != nil: // an unreadable disk is damage, but moving the file does not help
		f.Fault, f.Detail = Corrupt, b.Kind+": "+err.Error()
	case size != b.Size:
		f.Fault, f.Detail = Corrupt, fmt.Sprintf("%s: %s has %d bytes, recorded as %d", b.Kind,
			c.db.Blobs.Path(b.Digest), size, b.Size)
	default:
		return nil
	}
	for _, id := range runs {
		if r := c.runs[id]; r != nil {
			f.Runs = append(f.Runs, Run{r})
		}
	}
	slices.SortFunc(f.Runs, func(a, b Run) int { return int(a.ID - b.ID) })
	if f.Fault == Corrupt && c.o.Repair && (err == nil || errors.Is(err, blob.ErrCorrupt)) {
		if err := c.quarantine(&f, b.Digest); err != nil {
			return err
		}
	}
	c.found(f)
	return nil
}

// quarantine moves a corrupt blob away and records an event in every run that needs it.
func (c *check) quarantine(f *Finding, d ident.Digest) error {
	to, err := c.db.Blobs.Quarantine(d, c.o.Now)
	if err != nil {
		return err
	}
	f.Repaired = "moved to " + to
	data, err := json.Marshal(map[string]string{"text": f.Detail + "; moved to " + to, "blob": d.String()})
	if err != nil {
		return err
	}
	for _, r := range f.Runs {
		if err := c.db.AddEvent(c.ctx, store.Event{Run: r.ID, Level: store.LevelError, Kind: "blob-quarantined",
			Data: data}); err != nil {
			return err
		}
	}
	return nil
}

// configs runs o.Config on the configurations of runs.
func (c *check) configs() error {
	if c.o.Config == nil {
		return nil
	}
	of := map[ident.Digest][]Run{}
	for _, r := range c.ordered() {
		of[r.Config] = append(of[r.Config], Run{r})
	}
	for _, r := range c.ordered() {
		if of[r.Config][0].Run != r {
			continue
		}
		conf, err := c.db.Config(c.ctx, r.Config)
		if errors.Is(err, store.ErrNotFound) {
			continue // a broken reference, which database finds, or a run that was just removed
		}
		if err != nil {
			return err
		}
		if changed := c.o.Config(conf); changed != "" {
			c.found(Finding{Fault: Config, What: r.Config.String(), Detail: changed, Runs: of[r.Config]})
		}
	}
	return nil
}

// stages runs o.Stage on the stages of runs.
func (c *check) stages() error {
	if c.o.Stage == nil {
		return nil
	}
	for _, r := range c.ordered() {
		list, err := c.db.Stages(c.ctx, r.ID)
		if err != nil {
			return err
		}
		for _, s := range list {
			if changed := c.o.Stage(s); changed != "" {
				c.found(Finding{Fault: Stage, What: strings.TrimSpace(s.Kind + " " + s.Label), Detail: changed,
					Runs: []Run{{r}}})
			}
		}
	}
	return nil
}

// sources compares the recorded lists of source files with the digests of code that were made of them.
func (c *check) sources() error {
	codes, err := c.db.SourceCodes(c.ctx)
	if err != nil {
		return err
	}
	for _, code := range codes {
		s, err := c.db.Source(c.ctx, code)
		if errors.Is(err, store.ErrNotFound) {
			continue // a broken reference, which database finds, or removed meanwhile
		}
		detail := "the list of its files gives another digest"
		if errors.Is(err, store.ErrCorrupt) {
			detail = err.Error()
		} else if err != nil {
			return err
		} else if got, err := ident.Code(s.Go, s.Files); err != nil {
			return err
		} else if got == code {
			continue
		}
		f := Finding{Fault: Sources, What: code.String(), Detail: detail, Runs: []Run{}}
		for _, r := range c.ordered() {
			if r.Code == code {
				f.Runs = append(f.Runs, Run{r})
			}
		}
		c.found(f)
	}
	return nil
}

// checkpoints runs o.Checkpoint on the existing checkpoints.
func (c *check) checkpoints() error {
	if !c.o.Deep || c.o.Checkpoint == nil {
		return nil
	}
	for _, r := range c.ordered() {
		if _, alive := c.db.Alive(r.RID); alive {
			continue // the process writes and removes them
		}
		list, err := Saved(c.db, r.RID)
		if err != nil {
			return err
		}
		for _, s := range list {
			if err := c.ctx.Err(); err != nil {
				return err
			}
			c.report.Checkpoints++
			if err := c.o.Checkpoint(s.Dir); err != nil {
				c.found(Finding{Fault: Checkpoint, What: s.Dir, Detail: err.Error(), Runs: []Run{{r}}})
			}
		}
	}
	return nil
}

// ordered returns all runs in creation order.
func (c *check) ordered() []*store.Run {
	list := make([]*store.Run, 0, len(c.runs))
	for _, r := range c.runs {
		list = append(list, r)
	}
	slices.SortFunc(list, func(a, b *store.Run) int { return int(a.ID - b.ID) })
	return list
}
