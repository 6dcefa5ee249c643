package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"exp/experiments/ident"
)

// Stage is one execution or reuse of a unit of work. The caller sets the first group of
// fields; the store fills in the rest.
type Stage struct {
	SID      ident.Digest
	Run      int64
	Attempt  int64           // 0 if none
	Kind     string          // "train"
	Label    string          // the suite, to distinguish a run's stages of one kind; may be empty
	Params   json.RawMessage // the semantic keys that the kind reads, to explain cache misses
	Inputs   []IO
	Code     ident.Digest
	Numerics string // empty if the outputs are the same on all machines
	Seed     string // ident.Stage.Seed

	ID         int64
	Status     Status
	Home       int64        // the first row of this sid; it owns the samples
	ReusedFrom int64        // of a Cached stage, the Done one; 0 otherwise
	ReusedRun  ident.Digest // its run
	Started    time.Time
	Ended      time.Time // zero while running
	Outputs    []IO      // of a Cached stage, the outputs of the Done one
	StageResult
	Error string
}

// IO is an edge of the lineage: a digest that a stage read or wrote, with its role.
type IO struct {
	Role   string       `json:"role"` // "weights", "problems"
	Digest ident.Digest `json:"digest"`
	Size   int64        `json:"size"` // bytes; 0 for an input that is not a blob
	Kind   string       `json:"-"`    // kind of an output's blob, for accounting; not read back
}

// DigestOf returns the digest of the edge with a role; zero if no edge has it.
func DigestOf(list []IO, role string) ident.Digest {
	for _, x := range list {
		if x.Role == role {
			return x.Digest
		}
	}
	return ident.Digest{}
}

// StageName returns a stage's kind, and its label if it has one.
func StageName(kind, label string) string { return strings.TrimSuffix(kind+" "+label, " ") }

// Name returns StageName of the stage.
func (s *Stage) Name() string { return StageName(s.Kind, s.Label) }

// StageResult holds an execution's results other than outputs. Repeated executions are
// compared by outputs only.
type StageResult struct {
	Result  json.RawMessage // small; for lists and reports
	WallS   float64         // seconds
	CPUS    float64         // seconds, of all threads
	PeakMem int64           // bytes
}

// Hit returns the Done stage with that sid if all its outputs exist with the recorded
// sizes; otherwise nil. It does not hash them.
func (db *DB) Hit(ctx context.Context, sid ident.Digest) (*Stage, error) {
	found, err := db.stages(ctx, `s.sid = ? AND s.status = 'done'`, sid)
	if err != nil || len(found) == 0 {
		return nil, db.fail("look up stage "+sid.Short(), err)
	}
	for _, out := range found[0].Outputs {
		if !db.Blobs.Has(out.Digest, out.Size) {
			return nil, nil
		}
	}
	return &found[0], nil
}

// BeginStage records that a stage is being executed and returns s with ID, Home,
// Started and Status set.
func (db *DB) BeginStage(ctx context.Context, s Stage) (Stage, error) {
	err := db.write(ctx, fmt.Sprintf("begin stage %s", s.Kind), func(tx *sql.Tx) error {
		s.Status, s.ReusedFrom = Running, 0
		return db.insertStage(ctx, tx, &s)
	})
	return s, err
}

// ReuseStage records that a run takes the outputs of hit, from Hit, instead of executing
// s. The evaluations of hit become the run's too. If the run already has a finished stage
// with this sid, ReuseStage returns it and writes nothing. The error
// wraps ErrGone if exp gc removed hit meanwhile.
func (db *DB) ReuseStage(ctx context.Context, s Stage, hit *Stage) (Stage, error) {
	op := fmt.Sprintf("reuse stage %s", s.Kind)
	had, err := db.stages(ctx, `s.run = ? AND s.sid = ? AND s.status IN ('done', 'cached', 'repeated')`, s.Run, s.SID)
	if err != nil || len(had) > 0 {
		return first(had), db.fail(op, err)
	}
	err = db.write(ctx, op, func(tx *sql.Tx) error {
		there, err := queryOne(ctx, tx, scanInt, `SELECT count(*) FROM stages WHERE id = ? AND sid = ? AND run = ?`,
			hit.ID, s.SID, hit.Run)
		if err == nil && there == 0 {
			err = ErrGone
		}
		if err != nil {
			return err
		}
		s.Status, s.ReusedFrom = Cached, hit.ID
		s.Outputs, s.Result = hit.Outputs, hit.Result
		if s.ReusedRun, err = rid(ctx, tx, hit.Run); err != nil {
			return err
		}
		if err := db.insertStage(ctx, tx, &s); err != nil {
			return err
		}
		s.Ended = s.Started
		if _, err := tx.ExecContext(ctx, `UPDATE stages SET ended = started WHERE id = ?`, s.ID); err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, `INSERT INTO evals (run, stage_gen, stage_score, suite, protocol, n, metric, value, se, lo, hi,
				n_items, n_clusters, infra_errors)
			SELECT ?, stage_gen, ?, suite, protocol, n, metric, value, se, lo, hi, n_items, n_clusters, infra_errors
			FROM evals WHERE stage_score = ? ORDER BY id`, s.Run, s.ID, hit.ID)
		return err
	})
	return s, err
}

func (db *DB) insertStage(ctx context.Context, tx *sql.Tx, s *Stage) error {
	t := db.now()
	s.Started = fromMilli(t)
	err := tx.QueryRowContext(ctx, `INSERT INTO stages
		(sid, run, attempt, kind, label, status, reused_from, params, code, numerics, seed, started)
		VALUES (?, ?, nullif(?, 0), ?, ?, ?, nullif(?, 0), ?, ?, ?, ?, ?) RETURNING id`,
		s.SID, s.Run, s.Attempt, s.Kind, s.Label, s.Status, s.ReusedFrom, orEmpty(string(s.Params), "{}"),
		s.Code, s.Numerics, s.Seed, t).Scan(&s.ID)
	if err != nil {
		return err
	}
	s.Home, err = queryOne(ctx, tx, scanInt, `UPDATE stages SET home = (SELECT min(id) FROM stages WHERE sid = ?)
		WHERE id = ? RETURNING home`, s.SID, s.ID)
	if err != nil {
		return err
	}
	return insertIO(ctx, tx, s.ID, "in", s.Inputs)
}

// FinishStage records, in one durable transaction, that stage id is done: its outputs,
// which must already be stored as blobs, its result and its evaluations (it sets their
// Run, and their StageScore unless they add to an earlier stage's scores).
//
// If the same sid was done before, FinishStage compares the outputs with that stage's. If
// equal, this stage becomes Repeated; otherwise it becomes Diverged, the divergence is
// recorded and returned as a *DivergenceError, and the first stage does not change.
func (db *DB) FinishStage(ctx context.Context, id int64, outputs []IO, result StageResult, evals []Eval) error {
	var diverged *DivergenceError
	err := db.writeDurable(ctx, fmt.Sprintf("finish stage %d", id), func(tx *sql.Tx) error {
		stages, err := stagesOf(ctx, tx, `s.id = ? AND s.status = 'running'`, id)
		if err != nil {
			return err
		}
		if len(stages) == 0 {
			return fmt.Errorf("%w: it is not running", ErrConstraint)
		}
		s := stages[0]
		originals, err := stagesOf(ctx, tx, `s.sid = ? AND s.status = 'done'`, s.SID)
		if err != nil {
			return err
		}
		status := Done
		if len(originals) > 0 {
			if diverged = compareOutputs(s, originals[0].Outputs, outputs); diverged == nil {
				status = Repeated
			} else {
				status = Diverged
			}
		}
		if err := db.closeStage(ctx, tx, Stage{ID: id, Status: status, StageResult: result}); err != nil {
			return err
		}
		if diverged != nil {
			return db.addDivergence(ctx, tx, s.Run, s.Attempt, diverged)
		}
		for _, out := range outputs {
			if err := db.addBlob(ctx, tx, out.Digest, out.Size, out.Kind); err != nil {
				return fmt.Errorf("output %s: %w", out.Role, err)
			}
		}
		if err := insertIO(ctx, tx, id, "out", outputs); err != nil {
			return err
		}
		return addEvals(ctx, tx, s.Run, id, evals)
	})
	if err == nil && diverged != nil {
		return diverged
	}
	return err
}

// FailStage records that a stage ended with an error. It is never a hit.
func (db *DB) FailStage(ctx context.Context, id int64, message string) error {
	return db.endStage(ctx, Stage{ID: id, Status: Failed, Error: message})
}

// InterruptStage records that a stage was stopped and can resume later.
func (db *DB) InterruptStage(ctx context.Context, id int64) error {
	return db.endStage(ctx, Stage{ID: id, Status: Interrupted})
}

func (db *DB) endStage(ctx context.Context, s Stage) error {
	return db.write(ctx, fmt.Sprintf("end stage %d", s.ID), func(tx *sql.Tx) error {
		return db.closeStage(ctx, tx, s)
	})
}

// closeStage writes how a running stage ended.
func (db *DB) closeStage(ctx context.Context, tx *sql.Tx, s Stage) error {
	return execOne(ctx, tx, `UPDATE stages SET status = ?, ended = ?, wall_s = ?, cpu_s = ?, peak_mem = ?, result = ?, error = ?
		WHERE id = ? AND status = 'running'`,
		s.Status, db.now(), s.WallS, s.CPUS, s.PeakMem, orEmpty(string(s.Result), "null"), s.Error, s.ID)
}

// compareOutputs returns an error about the first output, by role, where got differs
// from want.
func compareOutputs(s Stage, want, got []IO) *DivergenceError {
	wantBy, gotBy := byRole(want), byRole(got)
	for _, role := range sortedKeys(wantBy, gotBy) {
		if wantBy[role] != gotBy[role] {
			return &DivergenceError{SID: s.SID, Kind: s.Kind, Field: "output " + role, Want: wantBy[role],
				Got: gotBy[role]}
		}
	}
	return nil
}

func byRole(list []IO) map[string]ident.Digest {
	m := make(map[string]ident.Digest, len(list))
	for _, io := range list {
		m[io.Role] = io.Digest
	}
	return m
}

// Stages returns the stages of a run in starting order, with their inputs and outputs.
func (db *DB) Stages(ctx context.Context, run int64) ([]Stage, error) {
	all, err := db.stages(ctx, `s.run = ?`, run)
	return all, db.fail("read stages", err)
}

// StagesBySID returns all stages with a sid, of any run and status, in starting order.
func (db *DB) StagesBySID(ctx context.Context, sid ident.Digest) ([]Stage, error) {
	all, err := db.stages(ctx, `s.sid = ?`, sid)
	return all, db.fail("read stages "+sid.Short(), err)
}

// StagesBefore returns the Done stages of a kind that began before stage id, in starting
// order.
func (db *DB) StagesBefore(ctx context.Context, kind string, id int64) ([]Stage, error) {
	all, err := db.stages(ctx, `s.kind = ? AND s.status = 'done' AND s.id < ?`, kind, id)
	return all, db.fail("read stages of kind "+kind, err)
}

// StagesLike returns the Done stages that did the work of s with other settings: those
// with the same kind, label, sources, numerics, seed and inputs whose outputs all exist,
// in starting order.
func (db *DB) StagesLike(ctx context.Context, s Stage) ([]Stage, error) {
	all,
		err := db.stages(ctx,
		`s.kind = ? AND s.label = ? AND s.code = ? AND s.numerics = ? AND s.seed = ? AND s.status = 'done' AND s.sid <> ?`,
		s.Kind, s.Label, s.Code, s.Numerics, s.Seed, s.SID)
	inputs := byRole(s.Inputs)
	like := slices.DeleteFunc(all, func(o Stage) bool {
		return !maps.Equal(byRole(o.Inputs), inputs) ||
			slices.ContainsFunc(o.Outputs, func(out IO) bool { return !db.Blobs.Has(out.Digest, out.Size) })
	})
	return like, db.fail("read stages of kind "+s.Kind, err)
}

// NewestStage returns the newest finished stage of a kind and label in a run, or
// ErrNotFound. Its samples belong to its Home.
func (db *DB) NewestStage(ctx context.Context, run int64, kind, label string) (Stage, error) {
	all,
		err := db.stages(ctx,
		`s.run = ? AND s.kind = ? AND s.label = ? AND s.status IN ('done', 'cached', 'repeated')`, run, kind, label)
	if err == nil && len(all) == 0 {
		err = ErrNotFound
	}
	if err != nil {
		return Stage{}, db.fail("read stages of kind "+kind, err)
	}
	return all[len(all)-1], nil
}

func (db *DB) stages(ctx context.Context, where string, args ...any) ([]Stage, error) {
	return stagesOf(ctx, db.r, where, args...)
}

// stagesOf reads stages and their lineage. A Cached stage has the result of the stage it
// reused.
func stagesOf(ctx context.Context, q querier, where string, args ...any) ([]Stage, error) {
	all, err := query(ctx, q, scanStage, `SELECT s.id, s.sid, s.run, coalesce(s.attempt, 0), s.kind, s.label, s.status, s.home,
			coalesce(s.reused_from, 0), r.rid, s.params, s.code, s.numerics, s.seed, s.started, coalesce(s.ended, 0),
			s.wall_s, s.cpu_s, s.peak_mem, coalesce(o.result, s.result), s.error
		FROM stages s LEFT JOIN stages o ON o.id = s.reused_from LEFT JOIN runs r ON r.id = o.run WHERE `+where+` ORDER BY s.id`, args...)
	if err != nil {
		return nil, err
	}
	for i := range all {
		if err := readIO(ctx, q, &all[i]); err != nil {
			return nil, err
		}
	}
	return all, nil
}

func scanStage(r *sql.Rows) (Stage, error) {
	var s Stage
	var params, result string
	var started, ended int64
	err := r.Scan(&s.ID, &s.SID, &s.Run, &s.Attempt, &s.Kind, &s.Label, &s.Status, &s.Home, &s.ReusedFrom,
		&s.ReusedRun, &params, &s.Code,
		&s.Numerics, &s.Seed, &started, &ended, &s.WallS, &s.CPUS, &s.PeakMem, &result, &s.Error)
	s.Params, s.Result = json.RawMessage(params), json.RawMessage(result)
	s.Started, s.Ended = fromMilli(started), fromMilli(ended)
	return s, err
}

// StageByID returns a stage by its row, with its inputs and outputs, or
// ErrNotFound.
func (db *DB) StageByID(ctx context.Context, id int64) (Stage, error) {
	all, err := db.stages(ctx, `s.id = ?`, id)
	if err == nil && len(all) == 0 {
		err = ErrNotFound
	}
	return first(all), db.fail(fmt.Sprintf("read stage %d", id), err)
}
