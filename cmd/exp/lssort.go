package main

import (
	"cmp"
	"slices"
	"strings"

	"exp/cmd/exp/cli"
	"exp/experiments/query"
	"exp/experiments/spelling"
	"exp/experiments/store"
	"exp/harness/config"
)

// orderOf reads --sort.
func (a *app) orderOf(text string) query.Order {
	name, descend := strings.CutPrefix(text, "-")
	o := query.Order{Name: name, Descend: descend}
	var err error
	if o.Field, err = a.fieldOf("--sort", name); err != nil || o.Field.Kind == store.FieldResult {
		// Perhaps a result; their names are known once the runs are read.
		o.Field, o.Result = store.Field{}, name
	}
	return o
}

// sortRuns sorts a list; naming a result that no run has is an error.
func sortRuns(l *query.List, o query.Order) error {
	if o.Result != "" && len(l.Runs) > 0 && !slices.Contains(query.ResultNames(l.Runs), o.Result) {
		err := cli.Usagef("--sort: no field or result is called %q", o.Name).See("exp ls")
		s := cmp.Or(spelling.Nearest(o.Name, query.ResultNames(l.Runs)), config.Fields().Suggest(o.Name))
		if s != "" {
			err.Help = "did you mean " + s + "?"
		}
		return err
	}
	l.Sort(o)
	return nil
}
