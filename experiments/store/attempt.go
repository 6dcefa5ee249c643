package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"time"
)

// AttemptKind is the reason for executing a run.
type AttemptKind string

const (
	AttemptRun    AttemptKind = "run"
	AttemptResume AttemptKind = "resume"
	AttemptVerify AttemptKind = "verify"
	AttemptForced AttemptKind = "forced" // despite existing outputs
)

// Attempt is one execution of a run.
type Attempt struct {
	ID       int64 // set by BeginAttempt
	Run      int64
	N        int64 // 1, 2, … within the run; set by BeginAttempt
	Kind     AttemptKind
	Host     string
	PID      int
	Device   string
	Build    string // version and commit of the program
	Started  time.Time
	Ended    time.Time // zero while running
	Status   Status
	ExitCode int             // meaningful once ended
	Env      json.RawMessage // CPU, memory, libraries
	// Aside leaves the run's status alone, as AttemptVerify does: the attempt adds something to a finished run.
	// It is not stored.
	Aside bool
}

// BeginAttempt records that a run is being executed and returns a with ID, N, Started and
// Status set. The caller holds the run's lock, so any attempt or stage of the run that is
// still "running" was killed and becomes "interrupted". A verify attempt and one aside do not
// change the run's status.
func (db *DB) BeginAttempt(ctx context.Context, a Attempt) (Attempt, error) {
	t := db.now()
	err := db.write(ctx, fmt.Sprintf("begin attempt of run %d", a.Run), func(tx *sql.Tx) error {
		if err := endKilled(ctx, tx, a.Run); err != nil {
			return err
		}
		if a.Kind != AttemptVerify && !a.Aside {
			err := execOne(ctx, tx, `UPDATE runs SET status = 'running', device = ?2, started = coalesce(started, ?1), ended = NULL
				WHERE id = ?3`, t, a.Device, a.Run)
			if err != nil {
				return err
			}
		}
		return tx.QueryRowContext(ctx, `INSERT INTO attempts (run, n, kind, host, pid, device, build, started, env)
			SELECT ?1, 1 + coalesce(max(n), 0), ?2, ?3, ?4, ?5, ?6, ?7, ?8 FROM attempts WHERE run = ?1
			RETURNING id, n`, a.Run, a.Kind, a.Host, a.PID, a.Device, a.Build, t, orEmpty(string(a.Env), "{}")).Scan(&a.ID, &a.N)
	})
	a.Started, a.Status = fromMilli(t), Running
	return a, err
}

// endKilled closes the attempts and stages of a killed process. An attempt ends with its
// last recorded step.
func endKilled(ctx context.Context, tx *sql.Tx, run int64) error {
	for _, text := range []string{
		`UPDATE attempts SET status = 'interrupted',
			ended = coalesce((SELECT max(t) FROM steps WHERE run = ?1 AND t >= attempts.started), started)
			WHERE run = ?1 AND status = 'running'`,
		`UPDATE stages SET status = 'interrupted',
			ended = coalesce((SELECT max(t) FROM steps WHERE run = ?1 AND t >= stages.started), started)
			WHERE run = ?1 AND status = 'running'`,
		sumWall,
	} {
		if _, err := tx.ExecContext(ctx, text, run); err != nil {
			return err
		}
	}
	return nil
}

// sumWall sets the wall time of run ?1.
const sumWall = `UPDATE runs SET wall_s = (SELECT coalesce(sum(ended - started), 0) / 1000.0 FROM attempts
	WHERE run = ?1 AND ended IS NOT NULL AND kind <> 'verify') WHERE id = ?1`

// EndAttempt records how an attempt ended: Done, Failed, Interrupted or Stopped, and the process's
// exit code. The run gets the same status and end if BeginAttempt set it running. A run that was done
// stays done if repeating it ends early.
func (db *DB) EndAttempt(ctx context.Context, id int64, status Status, exitCode int) error {
	return db.writeDurable(ctx, fmt.Sprintf("end attempt %d", id), func(tx *sql.Tx) error {
		run, err := queryOne(ctx, tx, scanInt, `UPDATE attempts SET status = ?, exit_code = ?, ended = ?
			WHERE id = ? AND status = 'running' RETURNING run`, status, exitCode, db.now(), id)
		if err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, `UPDATE runs SET ended = a.ended,
			status = CASE WHEN a.kind = 'forced' AND a.status IN ('interrupted', 'stopped') AND 'done' = (
				SELECT b.status FROM attempts b WHERE b.run = a.run AND b.n < a.n AND b.kind <> 'verify'
				AND NOT (b.kind = 'forced' AND b.status IN ('interrupted', 'stopped')) ORDER BY b.n DESC LIMIT 1)
				THEN 'done' ELSE a.status END
			FROM attempts a WHERE a.id = ? AND runs.id = a.run AND a.kind <> 'verify' AND runs.status = 'running'`, id); err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, sumWall, run)
		return err
	})
}

func scanInt(r *sql.Rows) (n int64, err error) {
	err = r.Scan(&n)
	return n, err
}

// Attempts returns the attempts of a run, oldest first.
func (db *DB) Attempts(ctx context.Context, run int64) ([]Attempt, error) {
	all, err := query(ctx, db.r, func(r *sql.Rows) (a Attempt, err error) {
		var started, ended int64
		var env string
		err = r.Scan(&a.ID, &a.Run, &a.N, &a.Kind, &a.Host, &a.PID, &a.Device, &a.Build, &started, &ended, &a.Status,
			&a.ExitCode, &env)
		a.Started, a.Ended, a.Env = fromMilli(started), fromMilli(ended), json.RawMessage(env)
		return a, err
	}, `SELECT id, run, n, kind, host, pid, device, build, started, coalesce(ended, 0), status, coalesce(exit_code, 0), env
		FROM attempts WHERE run = ? ORDER BY n`, run)
	return all, db.fail("read attempts", err)
}
