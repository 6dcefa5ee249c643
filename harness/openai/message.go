package openai

import (
	"fmt"

	"exp/eval/layout"
	"exp/train/rollout"
)

// ForTemplate returns the messages of a request as chat templates take them, like messages of data files: without
// fields that are null, with the arguments of calls as objects where clients have their texts, and with an empty text
// where a message that calls has no content.
func ForTemplate(list []rollout.Message) ([]rollout.Message, error) {
	out := make([]rollout.Message, len(list))
	for i, m := range list {
		fields, calls := m.More, false
		m.More = nil
		for _, f := range fields {
			v := string(f.Value)
			if v == "null" || f.Name == "tool_calls" && v == "[]" {
				continue
			}
			if f.Name == "tool_calls" {
				var err error
				if f.Value, err = layout.ToolCalls(f.Value); err != nil {
					return nil, fmt.Errorf("[%d]: %w", i, err)
				}
				calls = true
			}
			m.More = append(m.More, f)
		}
		if calls && (len(m.Parts) == 0 || string(m.Parts) == "null") {
			m.Parts = nil
		}
		out[i] = m
	}
	return out, nil
}
