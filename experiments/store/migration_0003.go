package store

import (
	"context"
	"database/sql"
)

// migration0003 makes the views v_*, for notebooks and other programs. Later versions add
// columns at their ends and change nothing else of them (docs/python.md).
func migration0003(ctx context.Context, tx *sql.Tx) error {
	_, err := tx.ExecContext(ctx, `
CREATE VIEW v_runs AS
SELECT lower(hex(r.rid)) AS run, lower(hex(r.xid)) AS xid, r.name, r.seed, r.algo, r.task, r.model, r.status,
	r.steps, r.steps_total, r.tokens, r.wall_s, r.numerics, r.device,
	strftime('%Y-%m-%dT%H:%M:%SZ', r.created / 1000, 'unixepoch') AS created, c.json AS config
FROM runs r JOIN configs c ON c.digest = r.config
WHERE r.deleted IS NULL;

CREATE VIEW v_metrics AS
SELECT lower(hex(r.rid)) AS run, r.name, r.seed, s.name AS metric, s.unit, m.step, m.value
FROM runs r JOIN series s ON s.run = r.id JOIN metrics m ON m.run = r.id AND m.series = s.id
WHERE r.deleted IS NULL;

CREATE VIEW v_results AS
SELECT lower(hex(r.rid)) AS run, r.name, r.seed, u.name AS suite, g.label AS evaluation, e.metric, e.value, e.se,
	e.lo, e.hi, e.n AS samples, e.n_items AS problems, e.infra_errors, lower(hex(e.protocol)) AS protocol
FROM runs r JOIN evals e ON e.run = r.id JOIN suites u ON u.id = e.suite JOIN stages g ON g.id = e.stage_score
WHERE r.deleted IS NULL AND e.stage_score = (SELECT max(x.stage_score) FROM evals x JOIN stages y ON y.id = x.stage_score
	WHERE x.run = e.run AND x.suite = e.suite AND x.protocol = e.protocol AND y.label = g.label);

CREATE VIEW v_samples AS
SELECT lower(hex(r.rid)) AS run, r.name, r.seed, s.scope, g.label AS evaluation, s.step, s.item AS problem, s.k,
	s.prompt_tokens, s.out_tokens AS tokens, s.finish, s.reward, s.logprob_sum, v.correct, v.answer, v.reason,
	c.name AS scorer
FROM runs r JOIN stages g ON g.run = r.id JOIN samples s ON s.stage = g.home
	LEFT JOIN verdicts v ON v.sample = s.id AND v.scorer = (SELECT max(scorer) FROM verdicts WHERE sample = s.id)
	LEFT JOIN scorers c ON c.id = v.scorer
WHERE r.deleted IS NULL AND g.id = (SELECT max(id) FROM stages WHERE run = r.id AND home = g.home);
`)
	return err
}
