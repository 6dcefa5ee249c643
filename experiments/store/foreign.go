package store

import "strings"

// foreignNumerics begins the numerics of a run that another program made: no class
// of machines gives its bits again.
const foreignNumerics = "foreign/"

// ForeignNumerics is the numerics of a run that a framework made ("verl").
func ForeignNumerics(framework string) string { return foreignNumerics + framework }

// Foreign is the framework that made a run that was imported; "" for runs of ours.
// What is recorded of a foreign run is what its files say: its series, perhaps
// completions. It has no chain, and nothing of it can be executed again.
func (r *Run) Foreign() string {
	framework, ok := strings.CutPrefix(r.Numerics, foreignNumerics)
	if !ok {
		return ""
	}
	return framework
}
