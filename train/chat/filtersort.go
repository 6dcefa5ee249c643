package chat

import (
	"slices"
	"strings"
)

// sortIndex returns the stable ascending order of keys; the error is the first of a
// comparison.
func (st *state) sortIndex(keys []Value, reverse bool) ([]int, error) {
	order := make([]int, len(keys))
	for i := range order {
		order[i] = i
	}
	var failed error
	slices.SortStableFunc(order, func(i, j int) int {
		if failed == nil {
			failed = st.charge(1)
		}
		if failed != nil {
			return 0
		}
		less, err := st.order("<", keys[i], keys[j])
		if err == nil && !less {
			var more bool
			if more, err = st.order("<", keys[j], keys[i]); more {
				if !reverse {
					return 1
				}
				return -1
			}
			failed = err
			return 0
		}
		failed = err
		if reverse {
			return 1
		}
		return -1
	})
	return order, failed
}

func sortFilter(st *state, v Value, args []Value) (Value, error) {
	items, err := st.list(v)
	if err != nil {
		return nil, err
	}
	paths := [][]Value{attributePath(args[2])}
	if s, ok := textOf(optional(args[2], None{})); ok {
		paths = nil
		for _, part := range strings.Split(s, ",") {
			paths = append(paths, attributePath(Str(part)))
		}
	}
	keys := make([]Value, len(items))
	for i, x := range items {
		key := make([]Value, len(paths))
		for j, path := range paths {
			k, err := st.follow(x, path, nil)
			if err == nil {
				key[j], err = st.foldCase(k, given(args[1]))
			}
			if err != nil {
				return nil, err
			}
		}
		keys[i] = &List{key}
	}
	order, err := st.sortIndex(keys, given(args[0]))
	if err != nil {
		return nil, err
	}
	return pickAll(items, order), nil
}

func pickAll(items []Value, order []int) Value {
	l := &List{make([]Value, len(order))}
	for i, j := range order {
		l.Items[i] = items[j]
	}
	return l
}

func dictsortFilter(st *state, v Value, args []Value) (Value, error) {
	by, _ := textOf(optional(args[1], Str("key")))
	if by != "key" && by != "value" {
		return nil, valueErr("dictsort sorts by key or value")
	}
	d, ok := v.(*Dict)
	if !ok {
		if u, ok := v.(*undefined); ok {
			return nil, undefErr(u)
		}
		return nil, typeErr("dictsort needs a mapping, not %s", v.typeName())
	}
	source := d.keys
	if by == "value" {
		source = d.vals
	}
	keys := make([]Value, len(source))
	pairs := make([]Value, len(source))
	for i, k := range source {
		var err error
		if keys[i], err = st.foldCase(k, given(args[0])); err != nil {
			return nil, err
		}
		pairs[i] = newTuple(d.keys[i], d.vals[i])
	}
	order, err := st.sortIndex(keys, given(args[2]))
	if err != nil {
		return nil, err
	}
	return pickAll(pairs, order), nil
}

// groupbyFilter returns pairs (value of the attribute, elements with that value), sorted by
// value.
func groupbyFilter(st *state, v Value, args []Value) (Value, error) {
	items, err := st.list(v)
	if err != nil {
		return nil, err
	}
	path := attributePath(args[0])
	keys, names := make([]Value, len(items)), make([]Value, len(items))
	for i, x := range items {
		if names[i], err = st.follow(x, path, notNone(args[1])); err != nil {
			return nil, err
		}
		if keys[i], err = st.foldCase(names[i], given(args[2])); err != nil {
			return nil, err
		}
	}
	order, err := st.sortIndex(keys, false)
	if err != nil {
		return nil, err
	}
	groups := &List{}
	var last *List
	var lastKey Value
	for _, i := range order {
		same := false
		if last != nil {
			if same, err = st.equal(keys[i], lastKey); err != nil {
				return nil, err
			}
		}
		if !same {
			last, lastKey = &List{}, keys[i]
			groups.Items = append(groups.Items, &tuple{[]Value{names[i], last}, true})
		}
		last.Items = append(last.Items, items[i])
	}
	return groups, nil
}
