package store

import (
	"context"
	"database/sql"

	"exp/experiments/ident"
)

// Reasons why a run needs a blob.
const (
	UseStage    = "stage"            // a stage read or wrote it
	UseSamples  = "samples"          // it holds completions of an evaluation
	UseTraining = "training samples" // it holds completions of training only
	UseArtifact = "artifact"
	UseSources  = "sources" // of a stage's code
	UseSuite    = "suite"   // problems the run was scored on; for run 0, all suites in the store
)

// Use records that a run needs a digest. Stage inputs that are not blobs in the store are
// included.
type Use struct {
	Run    int64
	Digest ident.Digest
	For    string // UseStage, …
}

// Uses returns the needs of all runs, deleted ones included, each (run, digest, for)
// once; run 0 stands for the suites, which stay until they are removed.
func (db *DB) Uses(ctx context.Context) ([]Use, error) {
	uses, err := query(ctx, db.r, scanUse, usesOf("")+` UNION SELECT 0, digest, 'suite' FROM suites`)
	return uses, db.fail("read uses of blobs", err)
}

// UsesOf is Uses of one run.
func (db *DB) UsesOf(ctx context.Context, run int64) ([]Use, error) {
	uses, err := query(ctx, db.r, scanUse, usesOf(" AND s.run = ?1"), run)
	return uses, db.fail("read uses of blobs", err)
}

func scanUse(r *sql.Rows) (u Use, err error) {
	err = r.Scan(&u.Run, &u.Digest, &u.For)
	return u, err
}

// usesOf returns the query of uses, with a condition on s.run. A cached stage uses the
// outputs of the one it reused; samples belong to a stage's home.
func usesOf(condition string) string {
	return `SELECT s.run, io.digest, 'stage' FROM stages s JOIN stage_io io ON io.stage = s.id WHERE 1` + condition + `
		UNION SELECT s.run, io.digest, 'stage' FROM stages s JOIN stage_io io ON io.stage = s.reused_from AND io.dir = 'out' WHERE 1` + condition + `
		UNION SELECT s.run, p.pack, iif(max(p.scope <> 'train'), 'samples', 'training samples')
			FROM stages s JOIN samples p ON p.stage = s.home WHERE p.pack IS NOT NULL` + condition + ` GROUP BY s.run, p.pack
		UNION SELECT s.run, s.digest, 'artifact' FROM artifacts s WHERE 1` + condition + `
		UNION SELECT s.run, u.digest, 'suite' FROM evals s JOIN suites u ON u.id = s.suite WHERE 1` + condition + `
		UNION SELECT s.run, c.archive, 'sources' FROM stages s JOIN sources c ON c.code = s.code WHERE 1` + condition + `
		UNION SELECT s.run, c.archive, 'sources' FROM (SELECT id AS run, code FROM runs) s JOIN sources c ON c.code = s.code WHERE 1` + condition
}

// Dependency means that removing one run would take data from another.
type Dependency struct {
	Run int64 // the dependent run
	On  int64
	Why string // "continues it", "reuses its stages", "shares its samples"
}

// Dependencies returns all dependencies between runs.
func (db *DB) Dependencies(ctx context.Context) ([]Dependency, error) {
	list, err := query(ctx, db.r, scanDependency, dependencies+` ORDER BY 1, 2, 3`)
	return list, db.fail("read dependencies", err)
}

// Dependants returns the dependencies on one run.
func (db *DB) Dependants(ctx context.Context, run int64) ([]Dependency, error) {
	list, err := query(ctx, db.r, scanDependency, `SELECT * FROM (`+dependencies+`) WHERE on_run = ? ORDER BY 1, 3`,
		run)
	return list, db.fail("read dependencies", err)
}

func scanDependency(r *sql.Rows) (d Dependency, err error) {
	err = r.Scan(&d.Run, &d.On, &d.Why)
	return d, err
}

// dependencies covers every column of a run's rows that may point to another run's.
const dependencies = `SELECT id AS run, parent AS on_run, 'continues it' AS why FROM runs WHERE parent IS NOT NULL AND parent <> id
	UNION SELECT s.run, o.run, 'reuses its stages' FROM stages s JOIN stages o ON o.id = s.reused_from WHERE o.run <> s.run
	UNION SELECT e.run, o.run, 'reuses its stages' FROM evals e JOIN stages o ON o.id = e.stage_gen WHERE o.run <> e.run
	UNION SELECT a.run, o.run, 'reuses its stages' FROM artifacts a JOIN stages o ON o.id = a.stage WHERE o.run <> a.run
	UNION SELECT s.run, o.run, 'shares its samples' FROM stages s JOIN stages o ON o.id = s.home WHERE o.run <> s.run AND s.reused_from IS NULL`

// BlobSizes returns the sizes of the recorded blobs among the digests of uses, each once.
func (db *DB) BlobSizes(ctx context.Context, uses []Use) ([]RecordedBlob, error) {
	seen := make(map[ident.Digest]bool, len(uses))
	var list []RecordedBlob
	for _, u := range uses {
		if seen[u.Digest] {
			continue
		}
		seen[u.Digest] = true
		rows, err := query(ctx, db.r, scanBlob, `SELECT digest, size, kind FROM blobs WHERE digest = ?`, u.Digest)
		if err != nil {
			return nil, db.fail("list blobs", err)
		}
		list = append(list, rows...)
	}
	return list, nil
}
