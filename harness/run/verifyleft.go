package run

import (
	"context"
	"fmt"

	"exp/experiments/ident"
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
