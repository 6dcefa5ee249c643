package diversity

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"

	"exp/experiments/recorded"
	"exp/experiments/store"
)

// Choice says which completions of a run's evaluation are compared.
type Choice struct {
	Right    bool // only right ones
	Problems int  // at most so many problems, drawn with Seed; 0: all
	Seed     uint64
}

// Gathered are the completions of runs on the same problems.
type Gathered struct {
	IDs  []string
	Runs [][]Problem // of each run, in the order of IDs
	Few  int         // problems left out: a run has fewer than MinResponses completions of them
}

// Gather takes the kept completions of runs, read by the queries, which belong to one suite. It takes the first
// ones of each problem, as many as every run has.
func Gather(ctx context.Context, runs []recorded.Completions, c Choice) (Gathered, error) {
	all := make([]map[string]*Problem, len(runs))
	for i, r := range runs {
		list, _, err := r.Read(ctx, 0)
		if err != nil {
			return Gathered{}, err
		}
		if all[i], err = byProblem(list, r.Run, c.Right); err != nil {
			return Gathered{}, err
		}
	}
	return shared(all, c), nil
}

// shared takes the problems that all runs have.
func shared(runs []map[string]*Problem, c Choice) (g Gathered) {
	least := map[string]int{} // completions that every run has of a problem
	for id, p := range runs[0] {
		least[id] = len(p.Responses)
	}
	for _, run := range runs[1:] {
		for id, n := range least {
			if run[id] == nil {
				delete(least, id)
				continue
			}
			least[id] = min(n, len(run[id].Responses))
		}
	}
	for _, id := range slices.Sorted(maps.Keys(least)) {
		if least[id] < MinResponses {
			g.Few++
			continue
		}
		g.IDs = append(g.IDs, id)
	}
	if n := c.Problems; n > 0 && n < len(g.IDs) {
		r := rand.New(rand.NewPCG(c.Seed, 0))
		r.Shuffle(len(g.IDs), func(i, j int) { g.IDs[i], g.IDs[j] = g.IDs[j], g.IDs[i] })
		g.IDs = g.IDs[:n]
		slices.Sort(g.IDs)
	}
	for _, run := range runs {
		var list []Problem
		for _, id := range g.IDs {
			p := *run[id]
			p.Responses = p.Responses[:least[id]]
			list = append(list, p)
		}
		g.Runs = append(g.Runs, list)
	}
	return g
}

// byProblem groups completions by problem, in the order of sampling. A problem all of whose completions were left out
// stays, without any.
func byProblem(list []recorded.Completion, run store.Run, right bool) (map[string]*Problem, error) {
	slices.SortStableFunc(list, func(a, b recorded.Completion) int {
		return cmp.Or(cmp.Compare(a.Item, b.Item), cmp.Compare(a.K, b.K))
	})
	out := map[string]*Problem{}
	for _, x := range list {
		p := out[x.Item]
		if p == nil {
			p = &Problem{ID: x.Item, Prompt: x.Prompt}
			out[x.Item] = p
		}
		switch {
		case right && (x.Correct == nil || !*x.Correct):
		case !x.Kept:
			return nil, fmt.Errorf("run %s did not keep the text of completion %d of problem %s (store.samples.eval)",
				run.RID.Short(), x.K, x.Item)
		default:
			p.Prompt = cmp.Or(p.Prompt, x.Prompt)
			p.Responses = append(p.Responses, x.Text)
		}
	}
	return out, nil
}
