package translate

import (
	"maps"
	"regexp"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"
)

// Arrays with keys: declare -A LR=([7B]=1e-6 [32B]=5e-7).

// assignKeys takes the assignment of such an array over; false if the elements have no keys.
func (v variables) assignKeys(config *expand.Config, a *syntax.Assign) bool {
	values := map[string]string{}
	if old := v.set[a.Name.Value]; a.Append && old.Kind == expand.Associative {
		maps.Copy(values, old.Map)
	}
	for _, e := range a.Array.Elems {
		key, ok := keyOf(config, e.Index)
		if !ok || e.Value == nil {
			return false
		}
		value, err := expand.Literal(config, e.Value)
		if err != nil {
			return false
		}
		values[key] = value
	}
	if len(values) == 0 || len(values) > mostElements {
		return false
	}
	return v.Set(a.Name.Value, expand.Variable{Set: true, Kind: expand.Associative, Map: values}) == nil
}

// assignElement takes LR[7B]=1e-6 over, for an array with keys. Other arrays are then unknown.
func (v variables) assignElement(config *expand.Config, a *syntax.Assign) {
	name := a.Name.Value
	key, ok := keyOf(config, a.Index)
	old := v.set[name]
	if !ok || a.Value == nil || a.Append || old.Kind != expand.Associative && old.IsSet() {
		delete(v.set, name)
		v.computed[name] = true
		return
	}
	value, err := expand.Literal(config, a.Value)
	if err != nil || len(old.Map) >= mostElements {
		delete(v.set, name)
		v.computed[name] = true
		return
	}
	if old.Map == nil {
		old = expand.Variable{Set: true, Kind: expand.Associative, Map: map[string]string{}}
		_ = v.Set(name, old) // never fails
	}
	old.Map[key] = value
}

var isNumber = regexp.MustCompile(`^[0-9]+$`)

// keyOf returns the key in brackets; false for a number and for nothing.
func keyOf(config *expand.Config, index syntax.ArithmExpr) (key string, ok bool) {
	w, ok := index.(*syntax.Word)
	if !ok {
		return "", false
	}
	key, err := expand.Literal(config, w)
	return key, err == nil && !isNumber.MatchString(key)
}
