package query

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"exp/experiments/store"
)

// Order is a sort key of runs: a field, whose values are the last of List.Values, or a
// headline result.
type Order struct {
	Name    string // without the sign
	Field   store.Field
	Result  string // headline result; empty: Field
	Descend bool
}

// Newest reports whether the store returns runs in this order.
func (o Order) Newest() bool {
	return o.Descend && o.Field == store.Field{Kind: store.FieldColumn, Name: "created"}
}

// Needs reports whether the order needs the values of Field.
func (o Order) Needs() bool { return o.Result == "" && !o.Newest() }

// Sort sorts the runs of a list; runs without the value come last, ties stay as they
// are.
func (l *List) Sort(o Order) {
	if o.Newest() {
		return
	}
	order := make([]int, len(l.Runs))
	keys := make([]any, len(l.Runs))
	for i := range order {
		order[i] = i
		if o.Result != "" {
			keys[i] = Result(&l.Runs[i], o.Result)
		} else {
			keys[i] = l.Values[i][len(l.Values[i])-1]
		}
	}
	slices.SortStableFunc(order, func(x, y int) int { return CompareValues(keys[x], keys[y], o.Descend) })
	sorted := List{Runs: make([]store.Run, len(order)), Values: make([][]any, len(order)), More: l.More}
	for to, from := range order {
		sorted.Runs[to], sorted.Values[to] = l.Runs[from], l.Values[from]
	}
	*l = sorted
}

// CompareValues orders values of one field, nil last whatever the direction. Values of different types, which only a
// configuration key can have, are ordered by type: numbers, times, and then what sorts as text.
func CompareValues(x, y any, descend bool) int {
	switch {
	case x == nil && y == nil:
		return 0
	case x == nil:
		return 1
	case y == nil:
		return -1
	}
	c := cmp.Compare(sortType(x), sortType(y))
	if c == 0 {
		switch x := x.(type) {
		case float64:
			c = cmp.Compare(x, y.(float64))
		case time.Time:
			c = x.Compare(y.(time.Time))
		default:
			c = strings.Compare(sortText(x), sortText(y))
		}
	}
	if descend {
		return -c
	}
	return c
}

// sortType ranks the types of values that compare with each other.
func sortType(v any) int {
	switch v.(type) {
	case float64:
		return 0
	case time.Time:
		return 1
	}
	return 2
}

// sortText is the text that orders texts, truth values and lists.
func sortText(v any) string {
	if list, ok := v.([]any); ok {
		b, err := json.Marshal(list)
		if err != nil {
			panic("query: " + err.Error()) // it came out of JSON
		}
		return string(b)
	}
	return fmt.Sprint(v)
}

// ResultNames lists the names of the runs' headline results, each once.
func ResultNames(runs []store.Run) []string {
	var names []string
	for i := range runs {
		for _, h := range runs[i].Headline {
			if !slices.Contains(names, h.Name) {
				names = append(names, h.Name)
			}
		}
	}
	return names
}

// Result returns one of a run's headline results, nil if not yet recorded.
func Result(r *store.Run, name string) any { return r.Result(name) }
