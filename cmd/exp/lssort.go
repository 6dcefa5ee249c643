package main

import (
	"slices"
	"strings"

	"exp/cmd/exp/cli"
	"exp/experiments/query"
	"exp/experiments/spelling"
	"exp/experiments/store"
)

// orderOf reads --sort.
func (a *app) orderOf(text string) query.Order {
	name, descend := strings.CutPrefix(text, "-")
	o := query.Order{Name: name, Descend: descend}
	var err error
	if o.Field, err = a.fieldOf("--sort", name); err != nil {
		// Perhaps a result; their names are known once the runs are read.
		o.Result = name
	}
	return o
}

// sortRuns sorts a list; naming a result that no run has is an error.
func sortRuns(l *query.List, o query.Order) error {
	if o.Result != "" && len(l.Runs) > 0 && !slices.Contains(query.ResultNames(l.Runs), o.Result) {
		err := cli.Usagef("--sort: no field or result is called %q", o.Name).See("exp ls")
		if s := spelling.Nearest(o.Name, append(query.ResultNames(l.Runs), store.Columns()...)); s != "" {
			err.Help = "did you mean " + s + "?"
		}
		return err
	}
	l.Sort(o)
	return nil
}
