package main

import (
	"bytes"
	"regexp"
	"strings"
)

// appendYAML appends a tree as block YAML at the given depth, each line with its
// newline. Strings are quoted as in JSON, of which YAML is a superset, unless
// they can be taken for nothing else. Floats always have a point, without which
// YAML 1.1 reads 1e-07 as a string.
func appendYAML(dst []byte, v any, depth int) []byte {
	switch v := v.(type) {
	case object:
		for _, m := range v {
			dst = appendYAMLMargin(dst, depth)
			dst = append(appendYAMLScalar(dst, m.key), ':')
			dst = appendYAMLValue(dst, m.value, depth)
		}
		return dst
	case []any:
		for _, item := range v {
			dst = append(appendYAMLMargin(dst, depth), '-')
			if isScalar(item) {
				dst = appendYAMLValue(dst, item, depth)
				continue
			}
			// The first line of the item follows the dash in place of its margin.
			block := appendYAML(nil, item, depth+1)
			dst = append(append(dst, ' '), block[2*(depth+1):]...)
		}
		return dst
	}
	return append(appendYAMLScalar(appendYAMLMargin(dst, depth), v), '\n')
}

// appendYAMLValue appends what follows a colon or a dash.
func appendYAMLValue(dst []byte, v any, depth int) []byte {
	if isScalar(v) {
		return append(appendYAMLScalar(append(dst, ' '), v), '\n')
	}
	return appendYAML(append(dst, '\n'), v, depth+1)
}

func appendYAMLMargin(dst []byte, depth int) []byte {
	return append(dst, bytes.Repeat([]byte("  "), depth)...)
}

// plainYAML matches texts that no reader of YAML takes for anything but a
// string, unless they are reserved words.
var plainYAML = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_./-]*( [A-Za-z0-9_./-]+)*$`)

func appendYAMLScalar(dst []byte, v any) []byte {
	switch v := v.(type) {
	case string:
		if plainYAML.MatchString(v) && !isYAMLWord(v) {
			return append(dst, v...)
		}
		// DEL and the C1 controls are legal in JSON strings, not in YAML.
		for _, r := range string(appendJSONString(nil, v)) {
			if r >= 0x7f && r < 0xa0 {
				dst = append(dst, `\x`+hexDigits(byte(r))...)
				continue
			}
			dst = append(dst, string(r)...)
		}
		return dst
	case number:
		text := string(v)
		mantissa, exponent, ok := strings.Cut(text, "e")
		if ok && !strings.Contains(mantissa, ".") {
			text = mantissa + ".0e" + exponent
		}
		return append(dst, text...)
	}
	return appendJSON(dst, v, compact)
}

// isYAMLWord is true of words that mean a boolean or null in YAML 1.1 or 1.2.
func isYAMLWord(s string) bool {
	switch strings.ToLower(s) {
	case "y", "n", "yes", "no", "on", "off", "true", "false", "null":
		return true
	}
	return false
}

func hexDigits(b byte) string {
	const digits = "0123456789abcdef"
	return string([]byte{digits[b>>4], digits[b&15]})
}
