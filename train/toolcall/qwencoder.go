package toolcall

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"exp/train/form"
)

// Texts of Qwen3-Coder's calls.
const (
	functionOpen   = "<function="
	functionClose  = "</function>"
	parameterOpen  = "<parameter="
	parameterClose = "</parameter>"
)

// definitions tell by the name of a function which types its arguments may have.
type definitions map[string]func(name string) []string

// definitionsIn reads a list of tools; it leaves out what it cannot read.
func definitionsIn(tools json.RawMessage) definitions {
	var list []json.RawMessage
	_ = json.Unmarshal(tools, &list) // none
	out := definitions{}
	for _, raw := range list {
		var t struct {
			Function struct {
				Name       string          `json:"name"`
				Parameters json.RawMessage `json:"parameters"`
			} `json:"function"`
		}
		if json.Unmarshal(raw, &t) == nil {
			out[t.Function.Name] = form.Types(t.Function.Parameters)
		}
	}
	return out
}

// readQwen reads a function, within tags or without: Qwen3-Coder sometimes leaves out the first one, and the second
// at the end of an answer.
func (d definitions) readQwen(text, open, shut string, whole bool) attempt {
	rest, tagged := strings.CutPrefix(text, open)
	no := attempt{n: len(functionOpen)}
	if tagged {
		no.n = len(open)
		rest = strings.TrimLeft(rest, " \n")
	}
	rest, ok := strings.CutPrefix(rest, functionOpen)
	if !ok {
		if strings.HasPrefix(functionOpen, rest) {
			return attempt{}
		}
		return no
	}
	name, rest, ok := strings.Cut(rest, ">")
	if strings.IndexFunc(name, func(c rune) bool { return !nameRune(c) }) >= 0 || ok && name == "" {
		return no
	}
	if !ok {
		return attempt{}
	}
	args, rest, err := d.readParameters(name, rest, whole)
	switch {
	case err == errMore:
		return attempt{}
	case err != nil:
		return no
	}
	if tagged {
		after := strings.TrimLeft(rest, " \n")
		if left, ok := strings.CutPrefix(after, shut); ok {
			rest = left
		} else if strings.HasPrefix(shut, after) && !whole {
			return attempt{}
		}
	}
	return attempt{[]Call{{name, args}}, len(text) - len(rest)}
}

// errNoParameter says that something else stands between a function's tags.
var errNoParameter = errors.New("toolcall: no parameter")

// readParameters reads the parameters of a function up to its close, as an object, and returns what follows. The error
// is errMore if they go on beyond the text.
func (d definitions) readParameters(function, text string, whole bool) (args json.RawMessage, rest string,
	err error) {
	var out fields
	for {
		text = strings.TrimLeft(text, " \n")
		if after, ok := strings.CutPrefix(text, functionClose); ok {
			return out.object(), after, nil
		}
		after, ok := strings.CutPrefix(text, parameterOpen)
		switch {
		case ok:
		case strings.HasPrefix(functionClose, text), strings.HasPrefix(parameterOpen, text):
			return nil, "", errMore
		default:
			return nil, "", errNoParameter
		}
		name, inner, ok1 := strings.Cut(after, ">")
		kinds := d.kinds(function, name)
		said, next, ok2 := cutTyped(inner, parameterClose, kinds, whole)
		if !ok1 || !ok2 {
			return nil, "", errMore
		}
		said = strings.TrimSuffix(strings.TrimPrefix(said, "\n"), "\n")
		out.set(name, typed(said, kinds))
		text = next
	}
}

// kinds returns the types that an argument may have; none if its function's schema does not say.
func (d definitions) kinds(function, name string) []string {
	if of := d[function]; of != nil {
		return of(name)
	}
	return nil
}

// cutTyped cuts a text at the first mark, as cutValue does where a list or an object may begin it.
func cutTyped(text, mark string, kinds []string, whole bool) (before, after string, ok bool) {
	kind := ""
	switch raw := strings.TrimLeft(text, space); {
	case strings.HasPrefix(raw, "{"):
		kind = "object"
	case strings.HasPrefix(raw, "["):
		kind = "array"
	}
	if kind != "" && (len(kinds) == 0 || slices.Contains(kinds, kind)) {
		return cutValue(text, mark, whole)
	}
	return strings.Cut(text, mark)
}

// typed returns the value that a text is under a schema with these types. The chat template writes texts as they are,
// lists and objects as JSON, and other values as Python does. A value of no type in kinds is the text; without kinds,
// so is all but lists and objects. null stands for any type but texts.
func typed(text string, kinds []string) json.RawMessage {
	raw := strings.TrimSpace(text)
	if python, ok := map[string]string{"True": "true", "False": "false", "None": "null"}[raw]; ok {
		raw = python
	}
	kind := kindOf(raw)
	known := slices.Contains(kinds, kind) || kind == "number" && slices.Contains(kinds, "integer")
	switch {
	case len(kinds) == 0:
		known = kind == "object" || kind == "array"
	case kind == "null":
		known = known || !slices.Contains(kinds, "string")
	}
	if known && kind != "string" {
		return json.RawMessage(raw)
	}
	return quoted(text)
}

// kindOf returns the type of a JSON value as schemas name it; empty for other texts.
func kindOf(raw string) string {
	if !json.Valid([]byte(raw)) {
		return ""
	}
	switch raw[0] {
	case '{':
		return "object"
	case '[':
		return "array"
	case '"':
		return "string"
	case 't', 'f':
		return "boolean"
	case 'n':
		return "null"
	}
	return "number"
}
