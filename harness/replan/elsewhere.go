package replan

import (
	"context"
	"encoding/json"
	"errors"
	"os"

	"exp/experiments/store"
	"exp/harness/config"
	harness "exp/harness/run"
)

// Elsewhere adds to an error about files that a run reads where the run was started, if that is another folder: its
// configuration may have relative paths. It returns err.
func Elsewhere(ctx context.Context, db *store.DB, run store.Run, err error) error {
	var faults config.Errors
	var lack *harness.RequireError
	if !errors.As(err, &faults) && !errors.As(err, &lack) {
		return err
	}
	dir := startedIn(ctx, db, run)
	if here, e := os.Getwd(); e != nil || dir == "" || dir == here {
		return err
	}
	advice := "the run was started in " + dir + ", and relative paths count from the current directory: run it from " +
		"there, if one is meant"
	for _, f := range faults {
		switch {
		case f.Code != config.CodeData:
		case f.Help == "":
			f.Help = advice
		default:
			f.Help += "; " + advice
		}
	}
	if lack != nil {
		lack.Do = append(lack.Do, advice)
	}
	return err
}

// startedIn returns the working directory of a run's first attempt; empty if it is not known.
func startedIn(ctx context.Context, db *store.DB, run store.Run) string {
	attempts, err := db.Attempts(ctx, run.ID)
	if err != nil || len(attempts) == 0 {
		return "" // it is advice only
	}
	var env struct {
		Dir string `json:"dir"`
	}
	if json.Unmarshal(attempts[0].Env, &env) != nil {
		return ""
	}
	return env.Dir
}
