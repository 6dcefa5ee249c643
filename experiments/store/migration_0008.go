package store

import (
	"context"
	"database/sql"
)

// migration0008 names scores in v_results as suiteOf does, whether a run or a benchmark's file brought the problems
// first.
func migration0008(ctx context.Context, tx *sql.Tx) error {
	_, err := tx.ExecContext(ctx, `
DROP VIEW v_results;
CREATE VIEW v_results AS
SELECT lower(hex(r.rid)) AS run, r.name, r.seed,
	CASE WHEN g.label IN ('test', 'val', 'test@start', 'val@start') AND u.name <> g.label THEN r.task || '/' || g.label
		WHEN instr(u.scorer, '/') > 0 THEN g.label ELSE u.name END AS suite,
	g.label AS evaluation, e.metric, e.value, e.se, e.lo, e.hi, e.n AS samples, e.n_items AS problems,
	e.infra_errors, lower(hex(e.protocol)) AS protocol
FROM runs r JOIN evals e ON e.run = r.id JOIN suites u ON u.id = e.suite JOIN stages g ON g.id = e.stage_score
WHERE r.deleted IS NULL AND e.stage_score = (SELECT max(x.stage_score) FROM evals x JOIN stages y ON y.id = x.stage_score
	WHERE x.run = e.run AND x.suite = e.suite AND x.protocol = e.protocol AND y.label = g.label);
`)
	return err
}
