package diversity

import (
	"cmp"
	"context"
	"fmt"
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

// Gather takes the kept completions of runs, read by the queries, which belong to one suite. Each problem has equally
// many completions in all runs, the first ones, unless only right ones count.
func Gather(ctx context.Context, runs []recorded.Completions, c Choice) (Gathered, error) {
	var g Gathered
	all := make([]map[string]*Problem, len(runs))
	most := map[string]int{} // completions that each run has of a problem
	for i, r := range runs {
		list, _, err := r.Read(ctx, 0)
		if err != nil {
			return g, err
		}
		if all[i], err = byProblem(list, r.Run, c.Right); err != nil {
			return g, err
		}
		for id, p := range all[i] {
			if n, ok := most[id]; !ok && i == 0 || ok && len(p.Responses) < n {
				most[id] = len(p.Responses)
			}
		}
		for id := range most {
			if all[i][id] == nil {
				delete(most, id)
			}
		}
	}
	for id, n := range most {
		if n < MinResponses {
			g.Few++
			continue
		}
		g.IDs = append(g.IDs, id)
	}
	slices.Sort(g.IDs)
	if n := c.Problems; n > 0 && n < len(g.IDs) {
		r := rand.New(rand.NewPCG(c.Seed, 0))
		r.Shuffle(len(g.IDs), func(i, j int) { g.IDs[i], g.IDs[j] = g.IDs[j], g.IDs[i] })
		g.IDs = g.IDs[:n]
		slices.Sort(g.IDs)
	}
	for i := range runs {
		var list []Problem
		for _, id := range g.IDs {
			p := *all[i][id]
			if !c.Right {
				p.Responses = p.Responses[:most[id]]
			}
			list = append(list, p)
		}
		g.Runs = append(g.Runs, list)
	}
	return g, nil
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
