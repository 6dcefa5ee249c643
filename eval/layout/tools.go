package layout

import (
	"bytes"
	"encoding/json"

	"exp/eval/rows"
)

// ToolsField is the field with the definitions of the tools that a chat offers.
const ToolsField = "tools"

// Tools returns the tool definitions of a row as compact JSON. The field is a list of objects, or a text
// that holds such a list, as some data sets have it. Tools returns nil if the row has none or the field
// holds anything else.
func Tools(r rows.Row) json.RawMessage {
	raw, err := r.Raw(ToolsField)
	if err != nil {
		return nil
	}
	var text string
	if json.Unmarshal(raw, &text) == nil {
		raw = json.RawMessage(text)
	}
	var list []map[string]json.RawMessage
	if json.Unmarshal(raw, &list) != nil || len(list) == 0 {
		return nil
	}
	for _, object := range list {
		if object == nil {
			return nil
		}
	}
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil {
		return nil
	}
	return b.Bytes()
}
