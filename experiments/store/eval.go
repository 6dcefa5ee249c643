package store

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"

	"exp/experiments/ident"
)

// Eval is one number of an evaluation: a metric of a run on a suite.
type Eval struct {
	Run         int64        // set by FinishStage
	StageGen    int64        // the stage that sampled; 0 if none
	StageScore  int64        // the stage that scored; FinishStage sets it if it is 0
	Suite       int64        // as EnsureSuite returned it
	SuiteName   string       // read only
	SuiteDigest ident.Digest // read only
	Protocol    ident.Digest // of the evaluation's settings: equal ones may be compared
	N           int64        // samples per item
	Metric      string       // "pass@1"
	Value       float64      // NaN if it has none
	SE          float64      // standard error; NaN if it has none
	Lo, Hi      float64      // 95 % interval; NaN if it has none
	Items       int64
	Clusters    int64
	InfraErrors int64 // samples that could not be graded
}

// addEvals records the scores of a stage. One that names an earlier scoring stage of the run joins its scores, in
// place of its own earlier value.
func addEvals(ctx context.Context, tx *sql.Tx, run, stage int64, evals []Eval) error {
	for _, e := range evals {
		text := insertEval
		if e.StageScore != 0 {
			text += ` ON CONFLICT (stage_score, metric) DO UPDATE SET value = excluded.value, se = excluded.se,
				lo = excluded.lo, hi = excluded.hi, n_items = excluded.n_items, n_clusters = excluded.n_clusters,
				infra_errors = excluded.infra_errors`
		}
		_, err := tx.ExecContext(ctx, text, run, e.StageGen, cmp.Or(e.StageScore, stage), e.Suite, e.Protocol, e.N,
			e.Metric, e.Value, e.SE, e.Lo, e.Hi, e.Items, e.Clusters, e.InfraErrors)
		if err != nil {
			return fmt.Errorf("evaluation %s: %w", e.Metric, err)
		}
	}
	return nil
}

const insertEval = `INSERT INTO evals (run, stage_gen, stage_score, suite, protocol, n, metric, value, se, lo, hi,
	n_items, n_clusters, infra_errors) VALUES (?, nullif(?, 0), ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`

// suiteOf is the name of the suite of score e of run r in stage g. Problems that a run brings itself carry its own
// task and their role in it, and a benchmark's carry the name by which the run was scored on it: row u has the name
// that it got last, from the first run with the same problems or from AddSuite.
const suiteOf = `CASE WHEN g.label IN ('test', 'val', 'test` + ident.StartSuffix + `', 'val` + ident.StartSuffix + `')
	AND u.name <> g.label THEN r.task || '/' || g.label WHEN instr(u.scorer, '/') > 0 THEN g.label ELSE u.name END`

// scoresOf joins the rows that suiteOf reads.
const scoresOf = `evals e JOIN suites u ON u.id = e.suite JOIN stages g ON g.id = e.stage_score`

// Evals returns the evaluations of a run in recording order, for each suite and protocol
// only the newest scores.
func (db *DB) Evals(ctx context.Context, run int64) ([]Eval, error) {
	all, err := query(ctx, db.r, func(r *sql.Rows) (e Eval, err error) {
		err = r.Scan(&e.Run, &e.StageGen, &e.StageScore, &e.Suite, &e.SuiteName, &e.SuiteDigest, &e.Protocol,
			&e.N, &e.Metric,
			number{&e.Value}, number{&e.SE}, number{&e.Lo}, number{&e.Hi}, &e.Items, &e.Clusters, &e.InfraErrors)
		return e, err
	}, `SELECT e.run, coalesce(e.stage_gen, 0), e.stage_score, e.suite, `+suiteOf+`, u.digest, e.protocol, e.n,
			e.metric, e.value, e.se, e.lo, e.hi, e.n_items, e.n_clusters, e.infra_errors
		FROM `+scoresOf+` JOIN runs r ON r.id = e.run
		WHERE e.run = ?1 AND e.stage_score = (SELECT max(x.stage_score) FROM evals x JOIN stages y ON y.id = x.stage_score
			WHERE x.run = ?1 AND x.suite = e.suite AND x.protocol = e.protocol AND y.label = g.label)
		ORDER BY e.id`, run)
	return all, db.fail("read evaluations", err)
}

// MetricsOfStage returns the names of the metrics that a scoring stage gave, in recording order. Newer scores may
// have replaced them.
func (db *DB) MetricsOfStage(ctx context.Context, stage int64) ([]string, error) {
	names, err := query(ctx, db.r, func(r *sql.Rows) (name string, err error) {
		err = r.Scan(&name)
		return name, err
	}, `SELECT metric FROM evals WHERE stage_score = ? ORDER BY id`, stage)
	return names, db.fail("read evaluations", err)
}
