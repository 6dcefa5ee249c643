package cluster

import (
	"context"
	"errors"
	"strconv"

	"exp/experiments/store"
	"exp/harness/run"
)

// Results collects what the processes of a study did to its runs, by their index among the plans.
type Results []run.Result

// Add notes the end of a run (a run_end) that a process reports. A run has one process at a time, and the
// last one finds in the cache what the earlier ones executed.
func (r Results) Add(i int, e *Event) {
	if n, err := strconv.Atoi(e.Facts["executed"]); err == nil {
		r[i].Executed += n
	}
	if n, err := strconv.Atoi(e.Facts["cached"]); err == nil {
		r[i].Cached = n
	}
}

// InStore returns the results of the runs that db has after the jobs ended, in their order. It leaves
// out a run that another process executes instead of its job.
func (r Results) InStore(ctx context.Context, db *store.DB, jobs []Job, ends []End) ([]run.Result, error) {
	var list []run.Result
	for i, j := range jobs {
		if j.Until != "" {
			continue
		}
		row, err := db.Run(ctx, j.Run.RID)
		if errors.Is(err, store.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if ends[i].Err == nil || row.Status != store.Running {
			result := r[j.Index]
			result.Run = row
			if result.Start, err = run.StartScore(ctx, db, j.Run, row.ID); err != nil {
				return nil, err
			}
			list = append(list, result)
		}
	}
	return list, nil
}
