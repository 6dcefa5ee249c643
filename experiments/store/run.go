package store

import (
	"context"
	"database/sql"
	"fmt"
	"math"
	"strings"
	"time"

	"exp/experiments/ident"
)

// Status is the status of a run, an attempt or a stage. Not every status applies to each.
type Status string

const (
	Pending     Status = "pending"     // planned, never executed
	Running     Status = "running"     // or killed: see DB.Alive
	Done        Status = "done"        // finished; of a stage: first to finish, a cache candidate
	Failed      Status = "failed"      // ended with an error
	Interrupted Status = "interrupted" // ended by a person or a crash; can resume
	Stopped     Status = "stopped"     // ended by its own condition (run.stop_if); can resume
	Cached      Status = "cached"      // stage: reused the outputs of a done one
	Repeated    Status = "repeated"    // stage: executed again, with equal outputs
	Diverged    Status = "diverged"    // stage: executed again, with other outputs
)

// NewRun describes a run to record: one experiment with one seed.
type NewRun struct {
	RID        ident.Digest
	XID        ident.Digest
	Name       string
	Task       string // "countdown"
	Algo       string // "flowrl"
	Model      string // architecture or base model, for display
	Seed       int64
	Numerics   string
	StepsTotal int64 // steps that the run will have
	Config     Config
	Code       ident.Digest // of the training stage's sources
	Parent     int64        // the run that this one continues; 0 if none
}

// Run is one row of runs. Missing times are zero, missing numbers NaN.
type Run struct {
	ID         int64
	RID, XID   ident.Digest
	Name       string
	Task       string
	Algo       string
	Model      string
	Seed       int64
	Numerics   string
	Device     string // of the newest attempt
	Status     Status
	Created    time.Time
	Started    time.Time // of the first attempt
	Ended      time.Time // of the newest attempt
	Steps      int64     // recorded
	StepsTotal int64
	Tokens     int64   // of all recorded steps
	WallS      float64 // seconds, of all attempts that ended
	Config     ident.Digest
	Code       ident.Digest
	Chain      ident.Digest // after the last recorded step
	Headline   []Headline   // up to three results for lists, without a join
	Parent     int64        // 0 if none
	Deleted    time.Time    // zero unless deleted
}

// Headline is a result that lists show.
type Headline struct {
	Name  string
	Value float64 // NaN if not there yet
}

// Took returns the duration of all attempts; of a running first attempt, so far.
func (r *Run) Took(now time.Time) (d time.Duration, known bool) {
	switch {
	case r.WallS > 0:
		return time.Duration(r.WallS * float64(time.Second)), true
	case r.Status == Running && !r.Started.IsZero():
		return now.Sub(r.Started), true
	}
	return 0, false
}

// EnsureRun returns the run with n's rid and creates it if needed; created reports
// whether it did. An existing run stays unchanged, but a deleted one is restored.
func (db *DB) EnsureRun(ctx context.Context, n NewRun) (run Run, created bool, err error) {
	err = db.write(ctx, "record run "+n.RID.Short(), func(tx *sql.Tx) error {
		if err := addConfig(ctx, tx, n.Config); err != nil {
			return err
		}
		res, err := tx.ExecContext(ctx, `INSERT INTO runs
			(rid, xid, name, task, algo, model, seed, numerics, created, steps_total, config, code, parent)
			VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, nullif(?, 0)) ON CONFLICT (rid) DO NOTHING`,
			n.RID, n.XID, n.Name, n.Task, n.Algo, n.Model, n.Seed, n.Numerics, db.now(), n.StepsTotal,
			n.Config.Digest, n.Code, n.Parent)
		if err != nil {
			return err
		}
		rows, err := res.RowsAffected()
		if err != nil {
			return err
		}
		created = rows == 1
		if _, err := tx.ExecContext(ctx, `UPDATE runs SET deleted = NULL WHERE rid = ? AND deleted IS NOT NULL`,
			n.RID); err != nil {
			return err
		}
		run, err = queryOne(ctx, tx, newRunScanner().scan, `SELECT `+runColumns+` FROM runs r WHERE r.rid = ?`, n.RID)
		if err == nil && (run.XID != n.XID || run.Seed != n.Seed || run.Numerics != n.Numerics) {
			err = fmt.Errorf("%w: run %s is recorded with another experiment, seed or numerics", ErrConstraint,
				n.RID.Short())
		}
		return err
	})
	return run, created, err
}

// Result returns one of the results that lists show, nil if not yet recorded.
func (r *Run) Result(name string) any {
	for _, h := range r.Headline {
		if h.Name == name && !math.IsNaN(h.Value) {
			return h.Value
		}
	}
	return nil
}

// SetHeadline sets the results that lists show, at most three. Names must not contain
// commas.
func (db *DB) SetHeadline(ctx context.Context, run int64, results []Headline) error {
	var names []string
	values := [3]float64{math.NaN(), math.NaN(), math.NaN()}
	for i, h := range results {
		if i == len(values) || strings.Contains(h.Name, ",") {
			return db.fail("headline", fmt.Errorf("%w: %d results, the last named %q", ErrConstraint,
				len(results), h.Name))
		}
		names = append(names, h.Name)
		values[i] = h.Value
	}
	return db.updateRun(ctx, "headline", run, `UPDATE runs SET headline = ?, h1 = ?, h2 = ?, h3 = ? WHERE id = ?`,
		strings.Join(names, ","), values[0], values[1], values[2], run)
}

// DeleteRun hides a run from lists without removing anything. RestoreRun undoes it.
func (db *DB) DeleteRun(ctx context.Context, run int64) error {
	return db.updateRun(ctx, "delete", run, `UPDATE runs SET deleted = ? WHERE id = ?`, db.now(), run)
}

// RestoreRun undoes DeleteRun.
func (db *DB) RestoreRun(ctx context.Context, run int64) error {
	return db.updateRun(ctx, "restore", run, `UPDATE runs SET deleted = NULL WHERE id = ?`, run)
}

// updateRun runs an update that must change one row.
func (db *DB) updateRun(ctx context.Context, what string, run int64, text string, args ...any) error {
	return db.write(ctx, fmt.Sprintf("%s run %d", what, run), func(tx *sql.Tx) error {
		return execOne(ctx, tx, text, args...)
	})
}

// execOne runs a statement that must change one row, else ErrNotFound.
func execOne(ctx context.Context, tx *sql.Tx, text string, args ...any) error {
	res, err := tx.ExecContext(ctx, text, args...)
	if err != nil {
		return err
	}
	n, err := res.RowsAffected()
	if err == nil && n != 1 {
		err = ErrNotFound
	}
	return err
}

// runColumns lists the columns that runScanner reads.
const runColumns = `r.id, r.rid, r.xid, r.name, r.task, r.algo, r.model, r.seed, r.numerics, r.device, r.status,
	r.created, coalesce(r.started, 0), coalesce(r.ended, 0), r.steps, r.steps_total, r.tokens, r.wall_s,
	r.config, r.code, r.chain, r.headline, r.h1, r.h2, r.h3, coalesce(r.parent, 0), coalesce(r.deleted, 0)`

// runScanner reads rows of runColumns into the same buffers, since a list may have
// thousands. Most rows name the same three results, so it splits these once.
type runScanner struct {
	headlines map[string][]string

	r                                Run
	created, started, ended, deleted int64
	headline                         string
	h                                [3]float64
	dest                             []any // pointers to these
}

func newRunScanner() *runScanner {
	s := &runScanner{headlines: map[string][]string{"": nil}}
	r := &s.r
	s.dest = []any{
		&r.ID, &r.RID, &r.XID, &r.Name, &r.Task, &r.Algo, &r.Model, &r.Seed, &r.Numerics, &r.Device, &r.Status,
		&s.created, &s.started, &s.ended, &r.Steps, &r.StepsTotal, &r.Tokens, &r.WallS,
		&r.Config, &r.Code, &r.Chain, &s.headline, number{&s.h[0]}, number{&s.h[1]}, number{&s.h[2]},
		&r.Parent, &s.deleted,
	}
	return s
}

func (s *runScanner) scan(rows *sql.Rows) (Run, error) { return s.scanWith(rows, nil) }

// scanWith reads a run and the columns after it into rest.
func (s *runScanner) scanWith(rows *sql.Rows, rest []any) (Run, error) {
	if err := rows.Scan(append(s.dest, rest...)...); err != nil {
		return Run{}, err
	}
	r := s.r
	r.Created, r.Started, r.Ended, r.Deleted = fromMilli(s.created), fromMilli(s.started), fromMilli(s.ended),
		fromMilli(s.deleted)
	names, ok := s.headlines[s.headline]
	if !ok {
		names = strings.Split(s.headline, ",")
		s.headlines[s.headline] = names
	}
	if n := min(len(names), len(s.h)); n > 0 {
		r.Headline = make([]Headline, n)
		for i, name := range names[:n] {
			r.Headline[i] = Headline{Name: name, Value: s.h[i]}
		}
	}
	return r, nil
}

// number scans a REAL column, NULL as NaN: SQLite stores NaN as NULL.
type number struct{ p *float64 }

// Scan implements sql.Scanner.
func (n number) Scan(src any) error {
	switch v := src.(type) {
	case nil:
		*n.p = math.NaN()
	case float64:
		*n.p = v
	case int64:
		*n.p = float64(v)
	default:
		return fmt.Errorf("number column holds a %T", src)
	}
	return nil
}
