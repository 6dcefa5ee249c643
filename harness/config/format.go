package config

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Format writes a plain value of the key as a file could have it, in flow style: 0.001,
// 10s, 4GiB, sampled(0.02), [1, 2, 4], "two words".
func Format(k *Key, v any) string {
	switch x := v.(type) {
	case nil:
		return "null"
	case []any:
		parts := make([]string, len(x))
		for i := range x {
			parts[i] = Format(k, x[i])
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case map[string]any:
		if k.Kind == Values {
			return formatValues(x)
		}
		var parts []string
		for i := range k.Fields {
			f := &k.Fields[i]
			parts = append(parts, f.Path+": "+Format(f, x[f.Path]))
		}
		return "{" + strings.Join(parts, ", ") + "}"
	}
	return formatScalar(k.Kind, v)
}

func formatValues(m map[string]any) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(m)) {
		text := "null"
		if m[name] != nil {
			text = formatScalar(Values, m[name])
		}
		parts = append(parts, quoteText(name)+": "+text)
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

func formatScalar(kind Kind, v any) string {
	switch x := v.(type) {
	case bool:
		return strconv.FormatBool(x)
	case int64:
		switch kind {
		case Duration:
			return formatDuration(time.Duration(x))
		case Size:
			return formatSize(x)
		}
		return strconv.FormatInt(x, 10)
	case float64:
		if kind == Share {
			return formatShare(x)
		}
		return formatFloat(x)
	case string:
		return quoteText(x)
	}
	return ""
}

// formatFloat writes the shortest text that reads back as x, without padded exponents:
// 1e-6, not 1e-06.
func formatFloat(x float64) string {
	s := strconv.FormatFloat(x, 'g', -1, 64)
	if i := strings.IndexByte(s, 'e'); i >= 0 {
		sign := ""
		if s[i+1] == '-' {
			sign = "-"
		}
		s = s[:i+1] + sign + strings.TrimLeft(s[i+1:], "+-0")
	}
	return s
}

// formatDuration drops the zero parts of Go's notation: 1h30m, not 1h30m0s.
func formatDuration(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// sizeUnits lists the units from largest to smallest.
func sizeUnits() []struct {
	name  string
	bytes int64
} {
	return []struct {
		name  string
		bytes int64
	}{{"TiB", 1 << 40}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, {"B", 1}}
}

func formatSize(n int64) string {
	for _, u := range sizeUnits() {
		if n%u.bytes == 0 && (n != 0 || u.bytes == 1) {
			return strconv.FormatInt(n/u.bytes, 10) + u.name
		}
	}
	return ""
}

func formatShare(p float64) string {
	switch p {
	case 0:
		return "none"
	case 1:
		return "all"
	}
	return "sampled(" + formatFloat(p) + ")"
}

// bare matches text that YAML reads unchanged without quotes, in any context.
var bare = regexp.MustCompile(`^[A-Za-z_/][A-Za-z0-9_./+-]*$`)

// quoteText writes a string so that the loader reads it back: bare if safe, else in
// JSON's double quotes, which YAML accepts.
func quoteText(s string) string {
	switch strings.ToLower(s) {
	case "true", "false", "null", "yes", "no", "on", "off", "y", "n":
	default:
		if bare.MatchString(s) {
			return s
		}
	}
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(s); err != nil {
		panic("config: a string cannot be encoded: " + err.Error())
	}
	return strings.TrimSuffix(b.String(), "\n")
}
