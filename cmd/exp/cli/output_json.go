package cli

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"
)

// envelope wraps data in what every JSON and YAML result has.
func (o *Output) envelope(schema string, data any) Object {
	var store any
	if o.Store != "" {
		store = o.Store
	}
	warnings := make([]any, len(o.warnings))
	for i, w := range o.warnings {
		warnings[i] = w
	}
	o.warnings = nil
	return Object{{"schema", schema}, {"store", store}, {"data", data}, {"warnings", warnings}}
}

func (o *Output) printEnvelope(schema string, data any) error {
	e := o.envelope(schema, data)
	if o.Format == FormatYAML {
		return writeYAML(o.W, e)
	}
	return writeJSON(o.W, e, "  ")
}

// printLines prints one object per line. Warnings go to stderr in this format.
func (o *Output) printLines(list []any) error {
	var buf bytes.Buffer
	for _, v := range list {
		if err := writeJSON(&buf, v, ""); err != nil {
			return err
		}
	}
	_, err := o.W.Write(buf.Bytes())
	return err
}

// writeJSON writes a tree and a newline, on one line if indent is empty. The characters
// < > & are not escaped.
func writeJSON(w io.Writer, tree any, indent string) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", indent)
	return enc.Encode(tree)
}

// jsonText is a tree as JSON on one line.
func jsonText(tree any) string {
	var b strings.Builder
	_ = writeJSON(&b, tree, "") // a tree has only what JSON has
	return strings.TrimSuffix(b.String(), "\n")
}

// MarshalJSON keeps the order of the members.
func (o Object) MarshalJSON() ([]byte, error) {
	var buf bytes.Buffer
	buf.WriteByte('{')
	for i, m := range o {
		if i > 0 {
			buf.WriteByte(',')
		}
		if err := writeJSON(&buf, m.Key, ""); err != nil {
			return nil, err
		}
		buf.WriteByte(':')
		if err := writeJSON(&buf, m.Value, ""); err != nil {
			return nil, err
		}
	}
	buf.WriteByte('}')
	return buf.Bytes(), nil
}
