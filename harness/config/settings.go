package config

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"exp/train/rl"
)

// Package rl declares the settings of algorithms, next to the functions that read them.
// This file turns them into keys, so an algorithm with a new setting needs no
// change here.

// reader is an estimator or a loss and the settings that it lists.
type reader struct {
	name     string
	settings []rl.Setting
}

func lossReaders() []reader {
	var list []reader
	for _, l := range rl.PolicyLosses() {
		list = append(list, reader{l.Name, l.Settings})
	}
	return list
}

func estimatorReaders() []reader {
	var list []reader
	for _, e := range rl.Estimators() {
		list = append(list, reader{e.Name, e.Settings})
	}
	return list
}

// settingKeys returns the keys of all settings of the readers, in the order of their first
// listing. The key at path selects a reader by name.
func settingKeys(path string, readers []reader) []Key {
	var keys []Key
	seen := map[string]bool{}
	for _, r := range readers {
		for _, s := range r.settings {
			if !seen[s.Key] {
				seen[s.Key] = true
				keys = append(keys, settingKey(s, path, readers))
			}
		}
	}
	return keys
}

// settingKey returns the key of a setting. It has an effect if the selected reader
// lists and reads it.
func settingKey(s rl.Setting, path string, readers []reader) Key {
	k := Key{Path: algoPath(s.Key), Null: s.Null, Words: s.Words, Unit: s.Unit, Help: s.Help, Late: s.Late,
		Stages: at(Train)}
	k.Range = parseRange(s.Range)
	switch s.Default.(type) {
	case nil, float64:
		k.Kind = Float
	case []float64:
		k.Kind, k.List = Float, true
	case int:
		k.Kind = Int
	case bool:
		k.Kind = Bool
	case string:
		k.Kind = Enum
	default:
		panic(fmt.Sprintf("config: %s: a default of type %T", k.Path, s.Default))
	}
	if s.Preset {
		k.Role = Expanded
	}
	k.Default = byKind(k.Path, settingDefault(s, s.Default))
	var always []string
	var sometimes Clause
	for _, r := range readers {
		i := slices.IndexFunc(r.settings, func(o rl.Setting) bool { return o.Key == s.Key })
		if i < 0 {
			continue
		}
		listed := r.settings[i]
		if listed.From != "" {
			var cases []Case
			for _, c := range listed.Cases {
				cases = append(cases, when(c.Word, settingDefault(s, c.Value)))
			}
			k.Default = by(algoPath(listed.From), k.Default, cases...)
		}
		if listed.Where == nil {
			always = append(always, r.name)
		}
		for _, c := range listed.Where {
			sometimes = append(sometimes, settingTerm(c))
		}
	}
	read := sometimes
	if always != nil {
		read = append(only(path, always...), sometimes...)
	}
	k.When = []Clause{read}
	for _, c := range s.While {
		k.When = append(k.When, Clause{settingTerm(c)})
	}
	return k
}

// algoPath returns the path of a setting's key.
func algoPath(key string) string { return "algo." + key }

func settingTerm(c rl.Condition) Term {
	return Term{Path: algoPath(c.Key), Words: c.Words, Above: c.Words == nil}
}

// settingDefault turns a declared value into a default.
func settingDefault(s rl.Setting, v any) Default {
	switch f, isFloat := v.(float64); {
	case v == nil:
		return Default{}
	case s.Null && isFloat && math.IsInf(f, 1):
		return null()
	}
	return is(v)
}

// settingsOf collects the values of settings from the values of all keys.
func settingsOf(values map[string]any) rl.Settings {
	settings := rl.Settings{}
	for _, k := range schema().keys {
		x, ok := values[k.Path]
		if !ok || !schema().settings[k.Path] {
			continue
		}
		name := strings.TrimPrefix(k.Path, "algo.")
		switch x := x.(type) {
		case nil:
			settings[name] = math.Inf(1)
		case int64:
			settings[name] = int(x)
		case []any:
			list := make([]float64, len(x))
			for i := range x {
				list[i] = x[i].(float64)
			}
			settings[name] = list
		default:
			settings[name] = x
		}
	}
	return settings
}

// settingChecks returns the checks of the orders that settings declare.
func settingChecks() []check {
	var list []check
	seen := map[string]bool{}
	add := func(s rl.Setting, other, relation string, fails func(x, y float64) bool) {
		path, than := algoPath(s.Key), algoPath(other)
		list = append(list, check{[]string{path, than}, func(r *Run) (string, string) {
			x, y := r.Algo.Settings.Float(s), r.Algo.Settings.Float(rl.Setting{Key: other})
			if fails(x, y) {
				return fmt.Sprintf("%s (%s) %s %s (%s)", path, formatFloat(x), relation, than, formatFloat(y)), ""
			}
			return "", ""
		}})
	}
	for _, r := range append(lossReaders(), estimatorReaders()...) {
		for _, s := range r.settings {
			if seen[s.Key] {
				continue
			}
			seen[s.Key] = true
			if s.Below != "" {
				add(s, s.Below, "is not below", func(x, y float64) bool { return x >= y })
			}
			if s.UpTo != "" {
				add(s, s.UpTo, "is above", func(x, y float64) bool { return x > y })
			}
		}
	}
	return list
}

// settingNames returns the names of settings in verl and FlowRL's scripts, except those
// that are part of our keys.
func settingNames() []foreignName {
	var list []foreignName
	seen := map[string]bool{}
	for _, r := range append(lossReaders(), estimatorReaders()...) {
		for _, s := range r.settings {
			for _, name := range s.Verl {
				if !seen[name] && !slices.Contains(strings.Split(s.Key, "."), name) {
					seen[name] = true
					list = append(list, foreignName{name, algoPath(s.Key), ""})
				}
			}
		}
	}
	return list
}

// parseRange parses an interval, "(0, 1]" or "[0, inf)"; the empty text allows every
// number. It panics on anything else, since declarations are part of the program.
func parseRange(text string) Range {
	if text == "" {
		return Range{}
	}
	first, last := text[:1], text[len(text)-1:]
	low, high, ok := strings.Cut(strings.Trim(text, "()[]"), ", ")
	min, err1 := strconv.ParseFloat(low, 64)
	max, err2 := strconv.ParseFloat(high, 64)
	if !ok || err1 != nil || err2 != nil || !strings.Contains("([", first) || !strings.Contains(")]", last) {
		panic("config: " + text + " is not an interval")
	}
	r := Range{Min: min, HasMin: true, OpenMin: first == "("}
	if !math.IsInf(max, 1) {
		r.Max, r.HasMax, r.OpenMax = max, true, last == ")"
	}
	return r
}
