package rl

import (
	"fmt"
	"maps"
	"slices"
)

// Setting declares one configuration key of an estimator or a policy loss. It stands next
// to the functions that read it, and the Estimator or PolicyLoss lists it. The
// configuration collects keys, defaults, conditions, checks and explanations from these
// lists; settings are declared nowhere else.
type Setting struct {
	Key string // without the leading algo: "sapo.tau_pos"
	// Default has the setting's type: float64, int, bool, string (one of Words) or
	// []float64. nil is a float64 without default, which must be set.
	Default any
	Range   string   // interval of a number: "(0, 1]"; empty allows every number
	Null    bool     // null is allowed: no limit, +Inf
	Words   []string // allowed strings
	Unit    string   // what a number counts
	Help    string   // one line
	// Verl lists its names in verl and in FlowRL's scripts: the golden vectors use them,
	// and a configuration that uses one gets a pointer to Key.
	Verl []string

	// Late: the setting came when runs had ids, which its default must not change.
	Late bool

	Preset bool   // only chooses defaults of other settings
	From   string // the preset that chooses the default; empty: none
	Cases  []Case // of From: the words with another default

	While []Condition // has an effect only while all hold
	Where []Condition // read by the loss that lists it only if one holds; empty: always
	Below string      // the key of a setting that must be greater
	UpTo  string      // the key of a setting that must not be less
}

// Case is the default that a preset's word selects.
type Case struct {
	Word  string
	Value any
}

// Condition holds while the setting at Key is one of Words, or, without Words, while it is
// true or above 0.
type Condition struct {
	Key   string
	Words []string
}

// Settings are values by Setting.Key, as the configuration resolved them. Settings without
// effect are absent: reading one panics, as does reading a value as another type. Settings
// are immutable once made.
type Settings map[string]any

// Float returns the value of a setting that is a float64.
func (c Settings) Float(s Setting) float64 { return value[float64](c, s) }

// Int returns the value of a setting that is an int.
func (c Settings) Int(s Setting) int { return value[int](c, s) }

// Bool returns the value of a setting that is a bool.
func (c Settings) Bool(s Setting) bool { return value[bool](c, s) }

// Word returns the value of a setting that is one of its Words.
func (c Settings) Word(s Setting) string { return value[string](c, s) }

// place returns the place among words of the value of a setting that is one of them.
func (c Settings) place(s Setting, words []string) int {
	i := slices.Index(words, c.Word(s))
	if i < 0 {
		panic(fmt.Sprintf("rl: the setting %s is %q, want one of %q", s.Key, c.Word(s), words))
	}
	return i
}

// Floats returns the value of a setting that is a []float64.
func (c Settings) Floats(s Setting) []float64 { return value[[]float64](c, s) }

func value[V any](c Settings, s Setting) V {
	v, ok := c[s.Key].(V)
	if !ok {
		panic(fmt.Sprintf("rl: the setting %s is %v, want a %T", s.Key, c[s.Key], v))
	}
	return v
}

// With returns the settings with one value replaced.
func (c Settings) With(s Setting, value any) Settings {
	out := maps.Clone(c)
	if out == nil {
		out = Settings{}
	}
	out[s.Key] = value
	return out
}

// Defaults returns the settings that the named estimator and loss read, at their declared
// defaults. Settings without a default are missing.
func Defaults(estimator, loss string) Settings {
	c := Settings{}
	e, _ := EstimatorNamed(estimator)
	l, _ := PolicyLossNamed(loss)
	for _, list := range [][]Setting{e.Settings, l.Settings} {
		for _, s := range list {
			if s.Default != nil {
				c[s.Key] = s.Default
			}
		}
	}
	return c
}
