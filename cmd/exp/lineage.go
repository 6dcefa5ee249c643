package main

import (
	"slices"
	"strings"

	"exp/experiments/ident"
	"exp/experiments/store"
)

// shownEdge is something that a stage of the run read or wrote, with the stages
// that made it and, of what the run wrote, those of other runs that read it.
type shownEdge struct {
	Stage  string       `json:"stage"`
	Dir    string       `json:"dir"` // "in" or "out"
	Role   string       `json:"role"`
	Digest ident.Digest `json:"digest"`
	MadeBy string       `json:"made_by"` // "sft of 68a0d6ca"; empty: it came from outside
	UsedBy []string     `json:"used_by"` // runs, in short
}

func (r runReader) lineage() error {
	stages, err := r.db.Stages(r.ctx, r.run.ID)
	if err != nil {
		return err
	}
	r.s.Lineage = []shownEdge{}
	names := map[int64]string{r.run.ID: r.run.RID.Short()}
	for _, st := range stages {
		for _, dir := range []struct {
			name string
			list []store.IO
		}{{"in", st.Inputs}, {"out", st.Outputs}} {
			for _, io := range dir.list {
				e, err := r.edge(io.Digest, names)
				if err != nil {
					return err
				}
				e.Stage, e.Dir, e.Role = stageName(st.Kind, st.Label), dir.name, io.Role
				r.s.Lineage = append(r.s.Lineage, e)
			}
		}
	}
	return nil
}

// edge finds out who made a digest first and which other runs read it. names holds
// the short ids of runs by row.
func (r runReader) edge(d ident.Digest, names map[int64]string) (shownEdge, error) {
	e := shownEdge{Digest: d, UsedBy: []string{}}
	uses, err := r.db.Edges(r.ctx, d)
	if err != nil {
		return e, err
	}
	for _, u := range uses {
		if _, ok := names[u.Run]; !ok {
			run, err := r.db.RunByID(r.ctx, u.Run)
			if err != nil {
				return e, err
			}
			names[u.Run] = run.RID.Short()
		}
		name := names[u.Run]
		switch {
		case u.Out && e.MadeBy == "":
			e.MadeBy = u.Kind + " of " + name
		case !u.Out && u.Run != r.run.ID && !slices.Contains(e.UsedBy, name):
			e.UsedBy = append(e.UsedBy, name)
		}
	}
	return e, nil
}

// usedByText names up to three runs and counts the others.
func usedByText(list []string) string {
	const most = 3
	if len(list) <= most {
		return strings.Join(list, ", ")
	}
	return strings.Join(list[:most], ", ") + " and " + machineText(int64(len(list)-most)) + " more"
}
