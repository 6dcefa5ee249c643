// Package pyjson turns what Python writes as JSON into JSON: config.json files of models may have Infinity, which is
// none. NaN stays an error.
package pyjson

import "bytes"

// Infinity stands for Python's Infinity in JSON. Python reads it as that, too.
const Infinity = "1e999"

// Plain returns a text with Infinity, outside strings, replaced.
func Plain(raw []byte) []byte {
	const python = "Infinity"
	if !bytes.Contains(raw, []byte(python)) {
		return raw
	}
	var out []byte
	inside := false
	for i := 0; i < len(raw); i++ {
		switch c := raw[i]; {
		case inside && c == '\\' && i+1 < len(raw):
			out = append(out, c, raw[i+1])
			i++
			continue
		case c == '"':
			inside = !inside
		case !inside && bytes.HasPrefix(raw[i:], []byte(python)):
			out = append(out, Infinity...)
			i += len(python) - 1
			continue
		}
		out = append(out, raw[i])
	}
	return out
}
