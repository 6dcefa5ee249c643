package store

import (
	"context"
	"database/sql"
)

// migration0005 adds a last column to v_samples, the evaluation's protocol. Without it nothing
// told apart the samples of a suite that was evaluated in several ways. The view now takes the
// newest score's verdicts, as Samples does.
func migration0005(ctx context.Context, tx *sql.Tx) error {
	_, err := tx.ExecContext(ctx, `
DROP VIEW v_samples;

CREATE VIEW v_samples AS
WITH newest AS MATERIALIZED (
	SELECT o.stage, json_extract(t.params, '$."eval.final.graders"[0]') || '/1' AS scorer, max(t.id)
	FROM stage_io o JOIN stage_io i ON i.digest = o.digest AND i.dir = 'in' AND i.role = o.role
		JOIN stages t ON t.id = i.stage AND t.kind = 'eval.score' AND t.status IN ('done', 'cached', 'repeated')
	WHERE o.dir = 'out' AND o.role = 'completions'
	GROUP BY o.stage)
SELECT lower(hex(r.rid)) AS run, r.name, r.seed, s.scope, g.label AS evaluation, s.step, s.item AS problem, s.k,
	s.prompt_tokens, s.out_tokens AS tokens, s.finish, s.reward, s.logprob_sum, v.correct, v.answer, v.reason,
	c.name AS scorer, (SELECT lower(hex(e.protocol)) FROM evals e JOIN stages q ON q.id = e.stage_gen
		WHERE q.home = g.home AND e.run = r.id ORDER BY e.stage_score DESC LIMIT 1) AS protocol
FROM runs r JOIN stages g ON g.run = r.id JOIN samples s ON s.stage = g.home LEFT JOIN newest n ON n.stage = g.home
	LEFT JOIN verdicts v ON v.sample = s.id AND v.scorer = coalesce(
		(SELECT max(x.scorer) FROM verdicts x JOIN scorers y ON y.id = x.scorer AND y.name = n.scorer WHERE x.sample = s.id),
		(SELECT max(scorer) FROM verdicts WHERE sample = s.id))
	LEFT JOIN scorers c ON c.id = v.scorer
WHERE r.deleted IS NULL AND g.id = (SELECT max(id) FROM stages WHERE run = r.id AND home = g.home);
`)
	return err
}
