package store

import "strings"

// foreignNumerics is the prefix of the numerics of a foreign run, which another
// program executed: no machine here reproduces its bits.
const foreignNumerics = "foreign/"

// ForeignNumerics returns the numerics of a run executed by a framework ("verl").
func ForeignNumerics(framework string) string { return foreignNumerics + framework }

// Foreign returns the framework that executed an imported run, "" for our runs. The
// record of a foreign run comes from its files: series, perhaps completions. It has no
// chain and cannot be executed again.
func (r *Run) Foreign() string {
	framework, ok := strings.CutPrefix(r.Numerics, foreignNumerics)
	if !ok {
		return ""
	}
	return framework
}
