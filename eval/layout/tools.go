package layout

import (
	"bytes"
	"encoding/json"

	"exp/eval/rows"
)

// ToolsField is the field of a row with the definitions of tools that its chat offers.
const ToolsField = "tools"

// Tools returns the definitions of tools that a row has, as compact JSON: a list of
// objects, or a text that holds one, as some data sets write it. Nil: it has none; a field
// of that name with anything else in it is no definition of tools.
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
