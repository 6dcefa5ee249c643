package recorded

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"

	"exp/experiments/store"
)

// Stages and roles in which scores are found (harness/config names them).
const (
	scoreStage      = "eval.score"
	roleCompletions = "completions"
	roleVerdicts    = "verdicts"
)

// AddScores fills in the scores that a reward model gave completions of a run's evaluation, by the newest scoring of
// them. Without a reward model they have none.
func AddScores(ctx context.Context, db *store.DB, run store.Run, list []Completion) error {
	stages, err := db.Stages(ctx, run.ID)
	if err != nil {
		return err
	}
	type key struct {
		item string
		k    int
	}
	known := map[int64]map[key]*float64{} // by the stage that sampled
	for i := range list {
		c := &list[i]
		if c.scope != "eval" {
			continue
		}
		scores, read := known[c.stage]
		if !read {
			scores = map[key]*float64{}
			known[c.stage] = scores
			err := readScores(db, scoringOf(stages, c.stage), func(item string, k int, score *float64) {
				scores[key{item, k}] = score
			})
			if err != nil {
				return err
			}
		}
		c.ModelScore = scores[key{c.Item, c.K}]
	}
	return nil
}

// scoringOf returns the verdicts of the newest scoring of a stage's samples; nil if nobody scored them.
func scoringOf(stages []store.Stage, home int64) *store.IO {
	var sampled []store.IO
	for _, s := range stages {
		if s.Home == home {
			sampled = s.Outputs
		}
	}
	made := store.DigestOf(sampled, roleCompletions)
	for _, s := range slices.Backward(stages) {
		if s.Kind != scoreStage || made.IsZero() || store.DigestOf(s.Inputs, roleCompletions) != made {
			continue
		}
		for i := range s.Outputs {
			if s.Outputs[i].Role == roleVerdicts {
				return &s.Outputs[i]
			}
		}
	}
	return nil
}

// readScores calls add with each score among verdicts, as stages write them.
func readScores(db *store.DB, verdicts *store.IO, add func(item string, k int, score *float64)) error {
	if verdicts == nil {
		return nil
	}
	f, err := db.Blobs.Open(verdicts.Digest)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // a bundle left it out
	}
	if err != nil {
		return err
	}
	defer f.Close()
	for lines := bufio.NewReaderSize(f, 1<<16); ; {
		line, err := lines.ReadBytes('\n')
		if err == io.EOF && len(line) == 0 {
			return nil
		}
		if err != nil && err != io.EOF {
			return err
		}
		var v struct {
			Problem string   `json:"problem"`
			K       int      `json:"k"`
			Score   *float64 `json:"score"`
		}
		if err := json.Unmarshal(line, &v); err != nil {
			return fmt.Errorf("verdicts %s: %w", verdicts.Digest.Short(), err)
		}
		if v.Score != nil {
			add(v.Problem, v.K, v.Score)
		}
	}
}
