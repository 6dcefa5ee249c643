package main

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"exp/cmd/exp/cli"
	"exp/experiments/query"
	"exp/experiments/spelling"
	"exp/experiments/store"
)

// sortKey is the sort key of runs: a field, the last of query.List.Values, or a headline
// result.
type sortKey struct {
	text    string
	field   store.Field
	result  string
	descend bool
}

func (a *app) sortKeyOf(text string) sortKey {
	name, descend := strings.CutPrefix(text, "-")
	k := sortKey{text: name, descend: descend}
	var err error
	if k.field, err = a.fieldOf("--sort", name); err != nil {
		// Perhaps a result; their names are known once the runs are read.
		k.result = name
	}
	return k
}

// native reports whether the store returns runs in this order.
func (k sortKey) native() bool {
	return k.descend && k.field == store.Field{Kind: store.FieldColumn, Name: "created"}
}

// apply sorts runs; runs without the value come last, ties stay newest first.
func (k sortKey) apply(l *query.List) error {
	if k.native() {
		return nil
	}
	if k.result != "" && len(l.Runs) > 0 && !slices.Contains(headlineNames(l.Runs), k.result) {
		err := cli.Usagef("--sort: no field or result is called %q", k.text).See("exp ls")
		if s := spelling.Nearest(k.text, append(headlineNames(l.Runs), store.Columns()...)); s != "" {
			err.Help = "did you mean " + s + "?"
		}
		return err
	}
	value := func(i int) any {
		if k.result != "" {
			return headlineOf(&l.Runs[i], k.result)
		}
		row := l.Values[i]
		return row[len(row)-1]
	}
	order := make([]int, len(l.Runs))
	keys := make([]any, len(l.Runs))
	for i := range order {
		order[i], keys[i] = i, value(i)
	}
	slices.SortStableFunc(order, func(x, y int) int { return compareValues(keys[x], keys[y], k.descend) })
	sorted := query.List{Runs: make([]store.Run, len(order)), Values: make([][]any, len(order))}
	for to, from := range order {
		sorted.Runs[to], sorted.Values[to] = l.Runs[from], l.Values[from]
	}
	*l = sorted
	return nil
}

// compareValues orders values of one field, nil last whatever the direction. Values
// of different types, which only a configuration key can have, are equal.
func compareValues(x, y any, descend bool) int {
	if x != nil && y == nil {
		return -1
	}
	c := 0
	switch x := x.(type) {
	case nil:
		if y == nil {
			return 0
		}
		return 1
	case float64:
		if y, ok := y.(float64); ok {
			c = cmp.Compare(x, y)
		}
	case time.Time:
		if y, ok := y.(time.Time); ok {
			c = x.Compare(y)
		}
	default:
		c = strings.Compare(cli.MachineText(cli.TreeOf(x)), cli.MachineText(cli.TreeOf(y)))
	}
	if descend {
		return -c
	}
	return c
}
