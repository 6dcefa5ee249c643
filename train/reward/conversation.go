package reward

import (
	"bytes"
	"encoding/json"
	"strings"

	"exp/train/rollout"
)

// Transcript returns the judge's {prompt}: the prompt of a problem without messages, else
// its messages under their roles,
//
//	[system]
//	Be short.
//
//	[user]
//	What is 1+1?
//
// Further fields of a message, such as tool_calls, follow its text as JSON, one per line.
func Transcript(p *rollout.Problem) string {
	if len(p.Messages) == 0 {
		return p.Prompt
	}
	parts := make([]string, len(p.Messages))
	for i, m := range p.Messages {
		parts[i] = "[" + m.Role + "]"
		if text := messageText(m); text != "" {
			parts[i] += "\n" + text
		}
		for _, f := range m.More {
			parts[i] += "\n" + f.Name + ": " + string(f.Value)
		}
	}
	return strings.Join(parts, "\n\n")
}

// Concatenation returns the {prompt} of a reward model without a chat template: the prompt
// of a problem without messages, else the texts of its messages separated by blank lines.
func Concatenation(p *rollout.Problem) string {
	if len(p.Messages) == 0 {
		return p.Prompt
	}
	var parts []string
	for _, m := range p.Messages {
		if text := messageText(m); text != "" {
			parts = append(parts, text)
		}
	}
	return strings.Join(parts, "\n\n")
}

// messageText returns the content of a message: its text, or its parts, images as <image> and others as
// JSON.
func messageText(m rollout.Message) string {
	if len(m.Parts) == 0 || string(m.Parts) == "null" {
		return m.Content
	}
	var parts []json.RawMessage
	if json.Unmarshal(m.Parts, &parts) != nil {
		return string(m.Parts)
	}
	var b bytes.Buffer
	for _, part := range parts {
		var x struct {
			Type string  `json:"type"`
			Text *string `json:"text"`
		}
		if json.Unmarshal(part, &x) == nil && x.Text != nil {
			b.WriteString(*x.Text)
		} else if x.Type == "image" {
			b.WriteString(rollout.ImageMark)
		} else if x.Type == "video" {
			b.WriteString(rollout.VideoMark)
		} else {
			b.Write(part)
		}
	}
	return b.String()
}
