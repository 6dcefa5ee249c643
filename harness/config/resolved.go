package config

// Resolved is a configuration after all layers, with the origin of every value. Load
// returns it; it is immutable and safe for concurrent use.
type Resolved struct {
	Run     Run       // typed values
	Dropped []Dropped // inherited settings that a later layer turned off, in table order
	Remotes []Remote  // values that name something on a hub, in table order

	cells map[string]*cell
	main  *source
}

// Dropped is an inherited setting without effect.
type Dropped struct {
	Path, Value, Origin string
	Because             string // such as "algo.kind is ppo"
	Switch              string // where Because was set
}

// Has reports whether the key has an effect in this configuration.
func (r *Resolved) Has(path string) bool {
	c := r.cells[path]
	return c != nil && c.active == yes && c.ok
}

// Value returns the plain value of a key (see Kind) and whether the key has an effect.
// A null value is nil and true.
func (r *Resolved) Value(path string) (any, bool) {
	if !r.Has(path) {
		return nil, false
	}
	return r.cells[path].value, true
}

// Origin returns where a key's value came from: file:line:col, --set #2, default, or
// default with the key that it follows. It is empty for a key without effect.
func (r *Resolved) Origin(path string) string {
	if !r.Has(path) {
		return ""
	}
	if s := r.cells[path].set; s != nil {
		return s.at.String()
	}
	switch d := lookup(path).Default; {
	case d.same != "":
		return "default (" + d.same + ")"
	case d.powers != "":
		return "default (" + d.powers + ")"
	case d.by != "":
		return "default (" + d.by + ")"
	}
	return "default"
}

// Keys lists the keys that have an effect, in table order.
func (r *Resolved) Keys() []*Key {
	var keys []*Key
	for _, k := range schema().keys {
		if r.Has(k.Path) {
			keys = append(keys, k)
		}
	}
	return keys
}

// ErrorAt returns an error at the place where a key's value was set, for faults that
// only a caller can see, such as a missing data file.
func (r *Resolved) ErrorAt(path, code, message, help string) *Error {
	if c := r.cells[path]; c != nil && c.set != nil {
		return c.set.at.fault(code, message, help)
	}
	src := r.main
	if src == nil {
		src = &source{name: "configuration"}
	}
	return pos{src: src}.fault(code, message, help)
}
