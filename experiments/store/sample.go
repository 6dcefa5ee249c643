package store

import (
	"context"
	"database/sql"
	"fmt"
	"strings"

	"exp/experiments/blob"
	"exp/experiments/ident"
)

// Sample is one stored completion, from training or an evaluation.
type Sample struct {
	ID           int64  // set by the store
	Stage        int64  // a Stage's Home: the same for all executions of a sid
	Scope        string // "train", "eval", "val" (online evaluation, of imported runs)
	Step         int64  // of training; 0 in an evaluation
	Item         string // problem id
	K            int    // index among the item's samples
	PromptTokens int64
	OutTokens    int64
	Finish       string   // "stop", "length", "turns", "shown"
	Reward       float64  // NaN if none
	LogProbSum   float64  // of the sampled tokens under the policy; NaN if unknown
	Ref          blob.Ref // where prompt, text and tokens lie; zero if they were not kept
	Verdict      *Verdict // read only; nil without one
}

// AddSamples records samples and the packs with their texts, and sets the samples' IDs.
// An existing sample (same stage, scope, step, item and k) stays unchanged, so a resumed
// stage may record its samples again; one whose text was not kept gets its text. Each
// transaction holds a thousand samples.
func (db *DB) AddSamples(ctx context.Context, samples []Sample, packs []blob.Pack) error {
	err := db.write(ctx, "record packs", func(tx *sql.Tx) error {
		for _, p := range packs {
			if err := db.addBlob(ctx, tx, p.Digest, p.Size, "samples"); err != nil {
				return err
			}
		}
		return nil
	})
	for len(samples) > 0 && err == nil {
		n := min(len(samples), maxRows)
		chunk := samples[:n]
		samples = samples[n:]
		err = db.write(ctx, "record samples", func(tx *sql.Tx) error {
			insert, err := tx.PrepareContext(ctx, `INSERT INTO samples (stage, scope, step, item, k, prompt_tokens, out_tokens, finish,
					reward, logprob_sum, pack, off, len)
				VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`)
			if err != nil {
				return err
			}
			defer insert.Close()
			ctx := context.WithoutCancel(ctx) // cancellation would cost a goroutine per row
			for i := range chunk {
				if err := insertSample(ctx, tx, insert, &chunk[i]); err != nil {
					return fmt.Errorf("sample %d of %q: %w", chunk[i].K, chunk[i].Item, err)
				}
			}
			return nil
		})
	}
	return err
}

func insertSample(ctx context.Context, tx *sql.Tx, insert *sql.Stmt, s *Sample) error {
	var off, length any
	if !s.Ref.Pack.IsZero() {
		off, length = s.Ref.Off, s.Ref.Len
	}
	res, err := insert.ExecContext(ctx, s.Stage, s.Scope, s.Step, s.Item, s.K, s.PromptTokens, s.OutTokens, s.Finish,
		s.Reward, s.LogProbSum,
		s.Ref.Pack, off, length)
	if err != nil {
		return err
	}
	if n, err := res.RowsAffected(); err != nil {
		return err
	} else if n == 1 {
		s.ID, err = res.LastInsertId()
		return err
	}
	s.ID, err = queryOne(ctx, tx, scanInt,
		`SELECT id FROM samples WHERE stage = ? AND scope = ? AND step = ? AND item = ? AND k = ?`,
		s.Stage, s.Scope, s.Step, s.Item, s.K)
	if err == nil && off != nil {
		_, err = tx.ExecContext(ctx, `UPDATE samples SET pack = ?, off = ?, len = ? WHERE id = ? AND pack IS NULL`,
			s.Ref.Pack, off, length, s.ID)
	}
	return err
}

// SampleQuery selects samples of a run. Zero fields match all samples.
type SampleQuery struct {
	Scope   string       // "train", "val", "eval"
	Label   string       // of the stage: the suite
	Stage   int64        // their stage (Stage.Home)
	Item    string       // problem id
	Step    int64        // of training, where steps count from 1
	Correct *bool        // by the verdict; excludes samples without one
	Scorer  ident.Digest // whose verdict; zero is the newest of each sample
	After   int64        // samples with a greater id, for paging
	Limit   int          // at most that many
	Sampled bool         // no demonstrations

	MinReward, MaxReward *float64 // by the verdict, else as recorded; excludes samples without one
	MinTokens, MaxTokens int64    // of the completion
	Disputed             bool     // only samples that one scorer calls right and another wrong
}

// Samples returns samples of a run, with their verdicts, in recording order, including
// samples of stages that the run reused.
func (db *DB) Samples(ctx context.Context, run int64, q SampleQuery) ([]Sample, error) {
	where, args := q.where(run)
	limit := -1
	if q.Limit > 0 {
		limit = q.Limit
	}
	args = append(args, limit)
	all, err := query(ctx, db.r, scanSample, newest+`SELECT s.id, s.stage, s.scope, s.step, s.item, s.k, s.prompt_tokens, s.out_tokens, s.finish,
			s.reward, s.logprob_sum, s.pack, coalesce(s.off, 0), coalesce(s.len, 0), `+verdictColumns+`
		FROM `+judged+` LEFT JOIN scorers c ON c.id = v.scorer
		WHERE `+where+` ORDER BY s.id LIMIT ?`, args...)
	return all, db.fail("read samples", err)
}

// newest names the scorer that last scored the samples of each stage of run ?2: the first
// grader of the newest score. A scorer may be older than the one before it.
const newest = `WITH newest AS MATERIALIZED (
	SELECT o.stage, json_extract(t.params, '$."eval.final.graders"[0]') || '/1' AS scorer, max(t.id)
	FROM stage_io o JOIN stage_io i ON i.digest = o.digest AND i.dir = 'in' AND i.role = o.role
		JOIN stages t ON t.id = i.stage AND t.kind = 'eval.score' AND t.status IN ('done', 'cached', 'repeated')
	WHERE o.dir = 'out' AND o.role = 'completions' AND o.stage IN (SELECT home FROM stages WHERE run = ?2)
	GROUP BY o.stage) `

// judged joins samples with the verdict of scorer ?1, or of the scorer that newest names,
// or else of the newest scorer of each.
const judged = `samples s LEFT JOIN newest n ON n.stage = s.stage LEFT JOIN verdicts v ON v.sample = s.id
	AND v.scorer = iif(?1 IS NULL, coalesce(
		(SELECT max(x.scorer) FROM verdicts x JOIN scorers y ON y.id = x.scorer AND y.name = n.scorer WHERE x.sample = s.id),
		(SELECT max(scorer) FROM verdicts WHERE sample = s.id)), (SELECT id FROM scorers WHERE digest = ?1))`

// where returns the condition on judged samples of a run, with its parameters. The first
// two are the scorer and the run.
func (q SampleQuery) where(run int64) (text string, args []any) {
	where := []string{`s.stage IN (SELECT home FROM stages WHERE run = ?2)`}
	args = []any{q.Scorer, run}
	add := func(condition string, set bool, params ...any) {
		if set {
			where = append(where, condition)
			args = append(args, params...)
		}
	}
	add(`s.stage IN (SELECT home FROM stages WHERE label = ?)`, q.Label != "", q.Label)
	add(`s.stage = ?`, q.Stage != 0, q.Stage)
	add(`s.scope = ?`, q.Scope != "", q.Scope)
	add(`s.step = ?`, q.Step != 0, q.Step)
	add(`s.item = ?`, q.Item != "", q.Item)
	add(`s.id > ?`, q.After != 0, q.After)
	add(`s.out_tokens >= ?`, q.MinTokens != 0, q.MinTokens)
	add(`s.out_tokens <= ?`, q.MaxTokens != 0, q.MaxTokens)
	if q.Correct != nil {
		add(`v.correct = ?`, true, *q.Correct)
	}
	add(`s.finish <> '`+FinishShown+`'`, q.Sampled)
	if q.MinReward != nil {
		add(`coalesce(v.reward, s.reward) >= ?`, true, *q.MinReward)
	}
	if q.MaxReward != nil {
		add(`coalesce(v.reward, s.reward) <= ?`, true, *q.MaxReward)
	}
	add(`(SELECT count(DISTINCT correct) FROM verdicts WHERE sample = s.id) > 1`, q.Disputed)
	return strings.Join(where, " AND "), args
}

// FinishShown is the Finish of demonstrations (rollout.FinishShown).
const FinishShown = "shown"

// ItemCount counts the samples of a problem that a policy sampled: no demonstrations.
type ItemCount struct {
	Item   string
	N      int64
	Graded int64
	Right  int64
	Tokens float64  // of a completion, mean
	First  blob.Ref // the first sample whose text was kept; zero if none was
}

// ItemCounts counts a run's samples by problem, by problem id. It ignores Limit.
func (db *DB) ItemCounts(ctx context.Context, run int64, q SampleQuery) ([]ItemCount, error) {
	q.Sampled = true
	where, args := q.where(run)
	all, err := query(ctx, db.r, func(r *sql.Rows) (c ItemCount, err error) {
		var first sql.NullInt64
		err = r.Scan(&c.Item, &c.N, &c.Graded, &c.Right, &c.Tokens, &first, &c.First.Pack, &c.First.Off, &c.First.Len)
		return c, err
	}, newest+`SELECT s.item, count(*), count(v.correct), coalesce(sum(v.correct), 0), avg(s.out_tokens),
			min(iif(s.pack IS NULL, NULL, s.id)), s.pack, coalesce(s.off, 0), coalesce(s.len, 0) -- of the row with min
		FROM `+judged+` WHERE `+where+` GROUP BY s.item ORDER BY s.item`, args...)
	return all, db.fail("count samples", err)
}

func scanSample(r *sql.Rows) (s Sample, err error) {
	dest := []any{&s.ID, &s.Stage, &s.Scope, &s.Step, &s.Item, &s.K, &s.PromptTokens, &s.OutTokens, &s.Finish,
		number{&s.Reward}, number{&s.LogProbSum}, &s.Ref.Pack, &s.Ref.Off, &s.Ref.Len}
	s.Verdict, err = scanVerdict(r, dest)
	if s.Verdict != nil {
		s.Verdict.Sample = s.ID
	}
	return s, err
}
