package translate

import (
	"regexp"
	"strings"
)

// innermost matches an interpolation of Hydra's that has no other within.
var innermost = regexp.MustCompile(`\$\{([^${}]*)\}`)

// limits of what interpolations may become: settings can refer to each other in a circle.
const (
	mostInterpolations = 64
	longestValue       = 1 << 16
)

// resolved returns a setting with its interpolations replaced: ${a.b}, ${oc.select:a.b,default} and
// ${oc.env:NAME,default}. If one cannot be resolved the setting stands as it is written.
func (t *verl) resolved(key string) string {
	v := t.in[key]
	for range mostInterpolations {
		m := innermost.FindStringSubmatchIndex(v)
		if m == nil {
			return v
		}
		value, ok := t.interpolated(v[m[2]:m[3]])
		if !ok || len(v)+len(value) > longestValue {
			break
		}
		v = v[:m[0]] + value + v[m[1]:]
	}
	return t.in[key]
}

// interpolated returns what stands for the inside of an interpolation.
func (t *verl) interpolated(inside string) (value string, ok bool) {
	resolver, args, called := strings.Cut(inside, ":")
	if !called {
		return t.other(strings.TrimSpace(inside))
	}
	name, absent, has := strings.Cut(args, ",")
	name, absent = strings.TrimSpace(name), unquoted(strings.TrimSpace(absent))
	switch strings.TrimSpace(resolver) {
	case "oc.select":
		if value, ok = t.other(name); !ok && !has {
			return "null", true
		}
	case "oc.env":
		value, ok = t.env[name]
	case "oc.decode":
		return unquoted(strings.TrimSpace(args)), true
	default:
		return "", false
	}
	if !ok && has {
		return absent, true
	}
	return value, ok
}

// other returns another setting, or its value in verl's base if that is known here.
func (t *verl) other(key string) (value string, ok bool) {
	if value, ok = t.in[key]; ok {
		return value, true
	}
	for _, r := range plainRules() {
		if r[0] == key {
			return r[1], true
		}
	}
	return "", false
}
