package store

import (
	"context"
	"database/sql"
	"maps"
	"slices"

	"exp/experiments/ident"
)

// insertIO records the inputs ("in") or outputs ("out") of a stage.
func insertIO(ctx context.Context, tx *sql.Tx, stage int64, dir string, list []IO) error {
	const insert = `INSERT INTO stage_io (stage, dir, role, digest, size) VALUES (?, ?, ?, ?, nullif(?, 0))`
	for _, io := range list {
		if _, err := tx.ExecContext(ctx, insert, stage, dir, io.Role, io.Digest, io.Size); err != nil {
			return err
		}
	}
	return nil
}

// readIO fills in the inputs and outputs of a stage. A Cached stage has the outputs of
// the stage it reused.
func readIO(ctx context.Context, q querier, s *Stage) error {
	type edge struct {
		dir string
		io  IO
	}
	edges, err := query(ctx, q, func(r *sql.Rows) (e edge, err error) {
		err = r.Scan(&e.dir, &e.io.Role, &e.io.Digest, &e.io.Size)
		return e, err
	}, `SELECT dir, role, digest, coalesce(size, 0) FROM stage_io
		WHERE stage = ?1 OR stage = ?2 AND dir = 'out' ORDER BY dir, role`, s.ID, s.ReusedFrom)
	for _, e := range edges {
		if e.dir == "in" {
			s.Inputs = append(s.Inputs, e.io)
		} else {
			s.Outputs = append(s.Outputs, e.io)
		}
	}
	return err
}

// Edge is one use of a digest by a stage.
type Edge struct {
	Stage int64
	Run   int64
	Kind  string // of the stage
	Out   bool   // written by the stage; otherwise read
	Role  string
}

// Edges returns the stages that wrote or read a digest, in starting order. Lineage walks
// in both directions use it.
func (db *DB) Edges(ctx context.Context, digest ident.Digest) ([]Edge, error) {
	all, err := query(ctx, db.r, func(r *sql.Rows) (e Edge, err error) {
		err = r.Scan(&e.Stage, &e.Run, &e.Kind, &e.Out, &e.Role)
		return e, err
	}, `SELECT s.id, s.run, s.kind, io.dir = 'out', io.role FROM stage_io io JOIN stages s ON s.id = io.stage
		WHERE io.digest = ? ORDER BY s.id, io.dir, io.role`, digest)
	return all, db.fail("read lineage of "+digest.Short(), err)
}

// sortedKeys returns the keys of both maps, each once.
func sortedKeys[V any](a, b map[string]V) []string {
	keys := slices.AppendSeq(slices.Collect(maps.Keys(a)), maps.Keys(b))
	slices.Sort(keys)
	return slices.Compact(keys)
}

// DigestsWith returns at most limit digests that stages read or wrote and that begin with
// the given hexadecimal digits, sorted.
func (db *DB) DigestsWith(ctx context.Context, prefix string, limit int) ([]ident.Digest, error) {
	low, high, err := prefixRange(prefix)
	if err != nil {
		return nil, db.fail("look up digest", err)
	}
	list, err := query(ctx, db.r, func(r *sql.Rows) (d ident.Digest, err error) {
		err = r.Scan(&d)
		return d, err
	}, `SELECT DISTINCT digest FROM stage_io WHERE digest BETWEEN ? AND ? ORDER BY digest LIMIT ?`, low, high, limit)
	return list, db.fail("look up digest", err)
}
