package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"

	"exp/experiments/ident"
)

// Scorer is a grader with one version of its sources.
type Scorer struct {
	Digest ident.Digest
	Name   string // "countdown/1"
}

// Verdict is a scorer's verdict on a sample.
type Verdict struct {
	Sample  int64  // Sample.ID
	Scorer  Scorer // read only
	Graded  bool   // false: the scorer could not tell, which is not "wrong"
	Correct bool   // false if not graded
	Reward  float64
	Answer  string // canonical: equal answers are the same solution; empty if none
	Reason  string
	CPUMS   float64 // milliseconds
	WallMS  float64
	MemKB   int64
}

// AddVerdicts records a scorer's verdicts on samples. Existing verdicts stay unchanged.
// Each transaction holds a thousand verdicts.
func (db *DB) AddVerdicts(ctx context.Context, scorer Scorer, verdicts []Verdict) error {
	var id int64
	err := db.write(ctx, "record scorer "+scorer.Name, func(tx *sql.Tx) (err error) {
		if _, err := tx.ExecContext(ctx, `INSERT INTO scorers (digest, name) VALUES (?, ?) ON CONFLICT DO NOTHING`,
			scorer.Digest, scorer.Name); err != nil {
			return err
		}
		id, err = queryOne(ctx, tx, scanInt, `SELECT id FROM scorers WHERE digest = ?`, scorer.Digest)
		return err
	})
	for len(verdicts) > 0 && err == nil {
		n := min(len(verdicts), maxRows)
		chunk := verdicts[:n]
		verdicts = verdicts[n:]
		err = db.write(ctx, "record verdicts", func(tx *sql.Tx) error {
			insert, err := tx.PrepareContext(ctx, `INSERT INTO verdicts (sample, scorer, correct, reward, answer, reason, cpu_ms, wall_ms, mem_kb)
				VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`)
			if err != nil {
				return err
			}
			defer insert.Close()
			ctx := context.WithoutCancel(ctx) // which would cost a goroutine for each row
			for i := range chunk {
				if err := insertVerdict(ctx, insert, id, &chunk[i]); err != nil {
					return fmt.Errorf("verdict on sample %d: %w", chunk[i].Sample, err)
				}
			}
			return nil
		})
	}
	return err
}

func insertVerdict(ctx context.Context, insert *sql.Stmt, scorer int64, v *Verdict) error {
	var correct any // NULL is not graded
	if v.Graded {
		correct = v.Correct
	}
	_, err := insert.ExecContext(ctx, v.Sample, scorer, correct, v.Reward, v.Answer, v.Reason, v.CPUMS,
		v.WallMS, v.MemKB)
	return err
}

// Verdicts returns the verdicts of all scorers on samples, by sample, the oldest scorer
// first.
func (db *DB) Verdicts(ctx context.Context, samples []int64) ([]Verdict, error) {
	ids, err := json.Marshal(samples)
	if err != nil {
		return nil, db.fail("read verdicts", err)
	}
	all, err := query(ctx, db.r, func(r *sql.Rows) (Verdict, error) {
		var sample int64
		v, err := scanVerdict(r, []any{&sample})
		if err != nil {
			return Verdict{}, err
		}
		v.Sample = sample
		return *v, nil
	}, `SELECT v.sample, `+verdictColumns+` FROM verdicts v JOIN scorers c ON c.id = v.scorer
		WHERE v.sample IN (SELECT value FROM json_each(?)) ORDER BY v.sample, v.scorer`, string(ids))
	return all, db.fail("read verdicts", err)
}

// verdictColumns lists the columns that scanVerdict reads after other columns; c is the
// scorer, and all are NULL without a verdict.
const verdictColumns = `c.digest, coalesce(c.name, ''), v.sample IS NOT NULL, v.correct IS NOT NULL, coalesce(v.correct, 0), v.reward,
	coalesce(v.answer, ''), coalesce(v.reason, ''), coalesce(v.cpu_ms, 0), coalesce(v.wall_ms, 0), coalesce(v.mem_kb, 0)`

func scanVerdict(r *sql.Rows, before []any) (*Verdict, error) {
	var v Verdict
	var there bool
	err := r.Scan(append(before, &v.Scorer.Digest, &v.Scorer.Name, &there, &v.Graded, &v.Correct, number{&v.Reward},
		&v.Answer, &v.Reason, &v.CPUMS, &v.WallMS, &v.MemKB)...)
	if err != nil || !there {
		return nil, err
	}
	return &v, nil
}
