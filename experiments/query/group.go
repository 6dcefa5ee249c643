package query

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"exp/experiments/store"
)

// Group is the runs that have one value of a field.
type Group struct {
	Value  any
	Runs   []store.Run
	Values [][]any // of Runs, the rows of List.Values
}

// Groups groups the runs of a list by the values in a column of the list, in the order
// of their first run.
func (l *List) Groups(column int) []Group {
	var groups []Group
	at := map[string]int{}
	for i, r := range l.Runs {
		value := l.Values[i][column]
		key := fmt.Sprintf("%T %s", value, sortText(value)) // exact, and of one type
		k, ok := at[key]
		if !ok {
			k = len(groups)
			at[key] = k
			groups = append(groups, Group{Value: value})
		}
		groups[k].Runs = append(groups[k].Runs, r)
		groups[k].Values = append(groups[k].Values, l.Values[i])
	}
	return groups
}

// Numbers returns the numbers that the group's runs have in a column of the list.
func (g Group) Numbers(column int) (list []float64) {
	for _, row := range g.Values {
		if v, ok := row[column].(float64); ok {
			list = append(list, v)
		}
	}
	return list
}

// Different returns the different values that the group's runs have in a column of the list, in order.
func (g Group) Different(column int) (list []any) {
	for _, row := range g.Values {
		same := func(v any) bool { return CompareValues(v, row[column], false) == 0 }
		if row[column] != nil && !slices.ContainsFunc(list, same) {
			list = append(list, row[column])
		}
	}
	slices.SortFunc(list, func(x, y any) int { return CompareValues(x, y, false) })
	return list
}

// Averaged reports whether a group shows the mean of a field; otherwise it shows the different values.
func Averaged(f store.Field) bool {
	return f.IsNumber() && f != (store.Field{Kind: store.FieldColumn, Name: "seed"})
}

// Seeds lists the seeds of runs in the form of --seeds: "0-2,7".
func Seeds(runs []store.Run) string {
	var seeds []int64
	for _, r := range runs {
		seeds = append(seeds, r.Seed)
	}
	slices.Sort(seeds)
	seeds = slices.Compact(seeds)
	var parts []string
	for i := 0; i < len(seeds); {
		k := i
		for k+1 < len(seeds) && seeds[k+1] == seeds[k]+1 {
			k++
		}
		part := strconv.FormatInt(seeds[i], 10)
		if k > i {
			part += "-" + strconv.FormatInt(seeds[k], 10)
		}
		parts = append(parts, part)
		i = k + 1
	}
	return strings.Join(parts, ",")
}
