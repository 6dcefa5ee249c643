package toolcall

import "strings"

// Marks of Granite's calls. Where the first is not a token, Granite 3.1 writes the second.
const (
	graniteOpen = "<|tool_call|>"
	graniteTag  = "<tool_call>"
)

// granite returns the syntax of Granite 3.1 to 3.3: a list of calls in JSON behind a mark. Granite 4 writes Hermes's.
func granite() Syntax {
	return Syntax{Name: Granite, Marks: []string{graniteOpen}, opens: []string{graniteOpen, graniteTag},
		read: func(_ definitions, text string, _ bool) attempt {
			open := graniteOpen
			if strings.HasPrefix(text, graniteTag) {
				open = graniteTag
			}
			rest := strings.TrimLeft(text[len(open):], space)
			if rest == "" {
				return attempt{}
			}
			calls, after, err := callList(rest)
			switch {
			case err == errMore:
				return attempt{}
			case err != nil:
				return attempt{n: len(open)}
			}
			return attempt{calls, len(text) - len(after)}
		}}
}
