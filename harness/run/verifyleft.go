package run

import (
	"context"
	"fmt"

	"exp/experiments/ident"
	"exp/experiments/store"
	"exp/harness/config"
)

// LeftOutError reports that a verification would read something that the run was imported without.
type LeftOutError struct {
	RID   ident.Digest
	Level Level
	What  string // "weights" or "texts"
	Stage string // that would read it
}

func (e *LeftOutError) Error() string {
	return fmt.Sprintf("run %s was imported without %s, which --level %s needs to execute %s again; nothing is "+
		"damaged", e.RID.Short(), e.What, e.Level, e.Stage)
}

// Hint says what a person can do.
func (e *LeftOutError) Hint() string {
	less := LevelBlobs
	if e.What == "weights" {
		less = LevelScore
	}
	return fmt.Sprintf("import a bundle that has them over it; or exp resume %s computes them again; or check less: "+
		"--level %s", e.RID.Short(), less)
}

// ExitCode is the code for something that was not found.
func (e *LeftOutError) ExitCode() int { return 3 }

// inputsLeftOut returns a *LeftOutError if a stage that will be executed again reads what the run was imported
// without. LevelFull makes all of it again.
func (v *verifier) inputsLeftOut(ctx context.Context) error {
	if v.o.Level == LevelBlobs || v.o.Level == LevelFull {
		return nil
	}
	left, err := v.DB.LeftOut(ctx, v.run.ID)
	if err != nil || len(left) == 0 {
		return err
	}
	if err := v.recorded(ctx); err != nil {
		return err
	}
	for i, s := range v.p.Stages {
		if !v.wanted(s.Kind) || v.done[i].ID == 0 && s.Kind != config.Train {
			continue
		}
		_, in, _ := v.p.Inputs(i, v.output)
		for _, role := range sortedKeys(in) {
			kind, missing := left[in[role]]
			if !missing {
				continue
			}
			what := "weights"
			if kind == string(config.EvalGen) {
				what = "texts"
			}
			return &LeftOutError{RID: v.run.RID, Level: v.o.Level, What: what, Stage: s.Name()}
		}
	}
	return nil
}

// keptSteps returns the steps whose completions the record must have, all of them: from..to, none if from > to. A
// killed run may lack steps after its last checkpoint. A run that continues another lacks the steps it took over.
func (v *verifier) keptSteps(ctx context.Context) (from, to int64, err error) {
	row := v.done[v.p.TrainStage()]
	attempts, all, err := v.keepsAll(ctx, "store.samples.train", row)
	if err != nil || !all {
		return 1, 0, err
	}
	from, to = 1, v.run.Steps
	if row.ID == 0 {
		saved, err := v.DB.Checkpoints(ctx, v.run.ID)
		if err != nil {
			return 1, 0, err
		}
		to = 0
		for _, c := range saved {
			to = max(to, c.Step)
		}
	}
	if v.run.Parent == 0 && attempts == 1 {
		return from, to, nil
	}
	first, err := v.DB.Samples(ctx, v.run.ID, store.SampleQuery{Scope: "train", Limit: 1})
	if err != nil || len(first) == 0 {
		return 1, 0, err
	}
	return first[0].Step, to, nil
}

// keepsAll reports whether every completion of a stage was kept, and how many attempts began before the stage ended.
// key is the share to keep, which changes no id: only the first attempt and those that resume it are known to have the
// recorded one.
func (v *verifier) keepsAll(ctx context.Context, key string, row store.Stage) (n int, all bool, err error) {
	c, err := v.DB.Config(ctx, v.run.Config)
	if err != nil {
		return 0, false, err
	}
	stored, _, err := config.Stored(c.JSON)
	if err != nil {
		return 0, false, err
	}
	attempts, err := v.DB.Attempts(ctx, v.run.ID)
	if err != nil {
		return 0, false, err
	}
	rate, _ := config.StoredAt(stored, key)
	all = rate == 1.0
	for _, a := range attempts {
		if a.Kind == store.AttemptVerify || row.ID != 0 && a.Started.After(row.Ended) {
			continue
		}
		n++
		all = all && (n == 1 || a.Kind == store.AttemptResume)
	}
	return n, all, nil
}
