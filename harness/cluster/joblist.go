package cluster

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"exp/experiments/ident"
	"exp/experiments/store"
	"exp/harness/config"
	"exp/harness/plan"
)

// Job is one process of a study: a run, or the first stages of a run that several runs
// share.
type Job struct {
	Run   *plan.Run
	Index int          // of the run among the plans
	Until config.Stage // last stage of a shared job; empty: the whole run
	Needs []int        // earlier jobs of the list that must end before this one starts
}

// Name names the job for people: "smoke#0", or "smoke#0 until sft".
func (j *Job) Name() string {
	name := fmt.Sprintf("%s#%d", j.Run.Config.Run.Name, j.Run.Seed)
	if j.Until != "" {
		name += " until " + string(j.Until)
	}
	return name
}

// List returns the jobs that execute the runs: shared stages first, then the runs in
// their order. Stages whose results db holds need no job; db may be nil.
func List(ctx context.Context, db *store.DB, runs []*plan.Run) ([]Job, error) {
	tree := sharing{groups: map[string]*group{}, runs: runs}
	for i, p := range runs {
		path, err := prefixes(p)
		if err != nil {
			return nil, err
		}
		tree.paths = append(tree.paths, path)
		for depth, key := range path {
			g := tree.groups[key]
			if g == nil {
				g = &group{first: i, depth: depth, job: -1}
				tree.groups[key] = g
				tree.order = append(tree.order, key)
			}
			g.runs++
		}
	}
	jobs, err := tree.shared(ctx, db)
	if err != nil {
		return nil, err
	}
	made := map[ident.Digest]int{}
	for i, p := range runs {
		j := Job{Run: p, Index: i, Needs: tree.needs(i, len(tree.paths[i]))}
		if twin, twice := made[p.RID]; twice { // two processes cannot execute one run
			j.Needs = []int{twin}
		}
		made[p.RID] = len(jobs)
		jobs = append(jobs, j)
	}
	return jobs, nil
}

// Alone returns a job for each run, which executes all its stages and waits for no other.
func Alone(runs []*plan.Run) []Job {
	var jobs []Job
	for i, p := range runs {
		jobs = append(jobs, Job{Run: p, Index: i})
	}
	return jobs
}

// sharing is the tree of the runs' upstream stages: runs with equal first stages share
// the path from the root.
type sharing struct {
	runs   []*plan.Run
	paths  [][]string // of each run, keys of groups
	groups map[string]*group
	order  []string // keys of groups as they came
}

// group is the runs that have their first stages, up to one, in common.
type group struct {
	first int // run
	depth int // index of the last common stage
	runs  int // how many
	job   int // index of the job that makes the stages; -1: none
}

// shared makes a job for each group of several runs where their paths end or part.
func (t *sharing) shared(ctx context.Context, db *store.DB) ([]Job, error) {
	var jobs []Job
	depth := func(key string) int { return t.groups[key].depth }
	slices.SortStableFunc(t.order, func(a, b string) int { return depth(a) - depth(b) })
	for _, key := range t.order {
		g := t.groups[key]
		path, p := t.paths[g.first], t.runs[g.first]
		if g.runs < 2 || g.depth+1 < len(path) && t.groups[path[g.depth+1]].runs == g.runs {
			continue
		}
		stored, err := has(ctx, db, p, g.depth+1)
		if err != nil {
			return nil, err
		}
		if stored {
			continue
		}
		g.job = len(jobs)
		jobs = append(jobs, Job{Run: p, Index: g.first, Until: p.Stages[g.depth].Kind,
			Needs: t.needs(g.first, g.depth)})
	}
	return jobs, nil
}

// needs returns the job that makes most of the first n stages of run i.
func (t *sharing) needs(i, n int) []int {
	for d := n - 1; d >= 0; d-- {
		if j := t.groups[t.paths[i][d]].job; j >= 0 {
			return []int{j}
		}
	}
	return nil
}

// prefixes returns a key for each upstream stage of a run: runs with equal keys do equal
// work up to that stage. The stages' ids cannot tell, because they hold digests of inputs
// that do not exist yet.
func prefixes(p *plan.Run) ([]string, error) {
	var path, sids []string
	made := func(i int, role string) (ident.Digest, bool) {
		d, err := ident.Hash("exp/planned/1", map[string]any{"stage": sids[i], "output": role})
		return d, err == nil
	}
	for i, s := range p.Stages {
		if s.Kind.Facts().Part != config.Upstream {
			break
		}
		in, _, ok := p.Inputs(i, made)
		if !ok {
			return nil, fmt.Errorf("%s: an input is missing", s.Name())
		}
		sid, err := p.SID(i, in)
		if err != nil {
			return nil, err
		}
		sids = append(sids, sid.String())
		path = append(path, strings.Join(sids, " "))
	}
	return path, nil
}

// has reports whether db holds the results of the first n stages of a run.
func has(ctx context.Context, db *store.DB, p *plan.Run, n int) (bool, error) {
	if db == nil {
		return false, nil
	}
	found, err := hits(ctx, db, p, n)
	return len(found) == n, err
}

// hits returns the cached results of the first n stages of a run, up to the first stage that db
// lacks.
func hits(ctx context.Context, db *store.DB, p *plan.Run, n int) (stages []*store.Stage, err error) {
	output := func(i int, role string) (ident.Digest, bool) {
		for _, o := range stages[i].Outputs {
			if o.Role == role {
				return o.Digest, true
			}
		}
		return ident.Digest{}, false
	}
	for i := range n {
		if slices.ContainsFunc(p.Stages[i].Needs, func(n plan.Need) bool { return n.From >= len(stages) }) {
			return stages, nil
		}
		in, _, ok := p.Inputs(i, output)
		if !ok {
			return stages, nil
		}
		sid, err := p.SID(i, in)
		if err != nil {
			return stages, err
		}
		hit, err := db.Hit(ctx, sid)
		if hit == nil || err != nil {
			return stages, err
		}
		stages = append(stages, hit)
	}
	return stages, nil
}

// Holders returns the runs of db that made shared stages which the given runs reuse.
func Holders(ctx context.Context, db *store.DB, runs []*plan.Run) ([]store.Run, error) {
	var list []store.Run
	known := map[int64]bool{}
	for _, p := range runs {
		path, err := prefixes(p)
		if err != nil {
			return nil, err
		}
		found, err := hits(ctx, db, p, len(path))
		if err != nil {
			return nil, err
		}
		for _, s := range found {
			if known[s.Run] {
				continue
			}
			known[s.Run] = true
			r, err := db.RunByID(ctx, s.Run)
			if err != nil {
				return nil, err
			}
			list = append(list, r)
		}
	}
	return list, nil
}
