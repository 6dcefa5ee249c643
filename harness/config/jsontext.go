package config

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// jsonText writes a list as JSON, with keys in file order: the value of a key with JSON
// set. Numbers stay as written if that is valid JSON.
func jsonText(n *node) string {
	var b bytes.Buffer
	writeJSON(&b, n)
	return b.String()
}

func writeJSON(b *bytes.Buffer, n *node) {
	switch n.kind {
	case listNode:
		b.WriteByte('[')
		for i, item := range n.items {
			if i > 0 {
				b.WriteByte(',')
			}
			writeJSON(b, item)
		}
		b.WriteByte(']')
	case mapNode:
		b.WriteByte('{')
		for i, f := range n.fields {
			if i > 0 {
				b.WriteByte(',')
			}
			writeJSONString(b, f.name)
			b.WriteByte(':')
			writeJSON(b, f.value)
		}
		b.WriteByte('}')
	case scalarNode:
		writeJSONScalar(b, n)
	default:
		b.WriteString("null")
	}
}

func writeJSONScalar(b *bytes.Buffer, n *node) {
	switch v := anyScalar(n).(type) {
	case string:
		writeJSONString(b, v)
	case bool:
		fmt.Fprint(b, v)
	default:
		if json.Valid([]byte(n.text)) {
			b.WriteString(n.text)
			return
		}
		raw, _ := json.Marshal(v) // a number that is finite
		b.Write(raw)
	}
}

func writeJSONString(b *bytes.Buffer, s string) {
	e := json.NewEncoder(b)
	e.SetEscapeHTML(false)
	_ = e.Encode(s)         // a string has no error
	b.Truncate(b.Len() - 1) // the line end
}
