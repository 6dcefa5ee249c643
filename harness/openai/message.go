package openai

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"exp/eval/layout"
	"exp/train/rollout"
	"exp/train/toolcall"
)

// ForTemplate returns the messages of a request as chat templates take them, like messages of data files: without
// fields that are null, with the arguments of calls as objects where clients have their texts, and with an empty text
// where a message that calls has no content. channels says that the template writes answers in channels: it takes the
// thoughts of an answer in a field of their own.
func ForTemplate(list []rollout.Message, channels bool) ([]rollout.Message, error) {
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
		if channels && m.Role == "assistant" {
			m = thoughtsApart(m, calls)
		}
		out[i] = m
	}
	return out, nil
}

// thoughtsApart moves the thoughts with which an answer's content begins to the field thinking, as gpt-oss's template
// has it. The template takes either thoughts or a content in a message with calls: there both become thoughts.
func thoughtsApart(m rollout.Message, calls bool) rollout.Message {
	has := slices.ContainsFunc(m.More, func(f rollout.Field) bool { return f.Name == "thinking" })
	thoughts, rest, ok := toolcall.CutThoughts(m.Content)
	if has || !ok {
		return m
	}
	if calls && rest != "" {
		thoughts, rest = strings.TrimSpace(thoughts+"\n\n"+rest), ""
	}
	value, _ := json.Marshal(thoughts) // a text can be written
	m.Content = rest
	m.More = append(slices.Clone(m.More), rollout.Field{Name: "thinking", Value: value})
	return m
}
