package toolcall

import (
	"maps"
	"slices"
)

// Frame is what a syntax writes around the names and the arguments of calls, where it writes these as JSON: Begin,
// then calls with Separator between them, then End. A call is Open, the name, Between, the arguments, and Close.
type Frame struct {
	Begin, End           string
	Open, Between, Close string
	Separator            string
}

// Frame returns what models write around calls. spelled are the marks that are tokens without a text. ok is false
// where arguments are not JSON, and for answers in channels.
func (s Syntax) Frame(spelled map[int32]string) (f Frame, ok bool) {
	const named, arguments = `{"name": "`, `", "arguments": `
	token := func(text string) bool { return slices.Contains(slices.Collect(maps.Values(spelled)), text) }
	switch s.Name {
	case Hermes:
		return Frame{Open: "<tool_call>\n" + named, Between: arguments, Close: "}\n</tool_call>",
			Separator: "\n"}, true
	case Llama3:
		return Frame{Open: named, Between: `", "parameters": `, Close: "}", Separator: "; "}, true
	case Mistral:
		if token(mistralArgs) {
			return Frame{Open: s.opens[0], Between: mistralArgs}, true
		}
		return Frame{Begin: s.opens[0] + "[", Open: named, Between: arguments, Close: "}", Separator: ", ", End: "]"},
			true
	case Granite:
		return Frame{Begin: graniteOpen + "[", Open: named, Between: arguments, Close: "}", Separator: ", ", End: "]"},
			true
	}
	return f, false
}

// ThoughtsEnd closes the thoughts that OpensThoughts finds open.
const ThoughtsEnd = thoughtClose
