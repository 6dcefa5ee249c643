package compare

import (
	"context"
	"slices"
	"strings"

	"exp/experiments/store"
)

// Evaluation holds the stages of an evaluation of a run on a suite. Sampled is zero if it
// is not in the store.
type Evaluation struct {
	Sampled, Scored store.Stage
}

// Counted returns, by row, the evaluations of each run that count. A run may have been
// evaluated on a suite several times, for example with more samples. As in Compare, the
// newest scoring settings that all runs on the suite share decide, else each run's newest
// do. The weights before training count under the settings of the trained ones.
func Counted(ctx context.Context, db *store.DB, runs []store.Run) (map[int64][]Evaluation, error) {
	rd := newReader(db)
	var records []*record
	var names []string
	for _, run := range runs {
		r, err := rd.record(ctx, run)
		if err != nil {
			return nil, err
		}
		records = append(records, r)
		for i := range r.evaluations {
			names = append(names, strings.TrimSuffix(r.evaluations[i].suite, startSuffix))
		}
	}
	slices.Sort(names)
	out := map[int64][]Evaluation{}
	for _, name := range slices.Compact(names) {
		var trained, untrained []*record
		for _, r := range records {
			if r.find(name, "") != nil {
				trained = append(trained, r)
			} else if r.find(name+startSuffix, "") != nil {
				untrained = append(untrained, r)
			}
		}
		how := sharedSettings(trained, name)
		for _, r := range trained {
			ev := r.find(name, how)
			out[r.run.ID] = append(out[r.run.ID], Evaluation{ev.gen, ev.score})
			if before := r.find(name+startSuffix, ev.how); before != nil {
				out[r.run.ID] = append(out[r.run.ID], Evaluation{before.gen, before.score})
			}
		}
		how = sharedSettings(untrained, name+startSuffix)
		for _, r := range untrained {
			ev := r.find(name+startSuffix, how)
			out[r.run.ID] = append(out[r.run.ID], Evaluation{ev.gen, ev.score})
		}
	}
	return out, nil
}

// sharedSettings returns the newest scoring settings that all runs share on a suite, or "".
func sharedSettings(runs []*record, name string) string {
	times, newest := map[string]int{}, map[string]int64{}
	for _, r := range runs {
		own := map[string]bool{}
		for i := range r.evaluations {
			ev := &r.evaluations[i]
			if ev.suite != name {
				continue
			}
			newest[ev.how] = max(newest[ev.how], ev.score.ID)
			if !own[ev.how] {
				own[ev.how] = true
				times[ev.how]++
			}
		}
	}
	best := ""
	for _, how := range sortedKeys(times) {
		if times[how] == len(runs) && (best == "" || newest[how] > newest[best]) {
			best = how
		}
	}
	return best
}
