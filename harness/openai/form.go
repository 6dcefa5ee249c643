package openai

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"

	"exp/train/form"
	"exp/train/toolcall"
)

// Wanted is the form that a request wants its answers to have.
type Wanted struct {
	Spec  *form.Spec
	Field string // that says so
	// Calls says that answers call tools; Tool may name the one to call.
	Calls bool
	Tool  string
}

// formFields are the fields that restrict an answer's text, as in OpenAI's API, vLLM and llama.cpp's server.
func formFields() map[string]field {
	set := func(read func(raw json.RawMessage) (*form.Spec, error)) func(name string) field {
		return func(name string) field {
			return func(r *Request, raw json.RawMessage) error {
				spec, err := read(raw)
				if err != nil || spec == nil {
					return err
				}
				if r.Wanted.Spec != nil {
					return fmt.Errorf("restricts the answer, and so does %s: leave one out", r.Wanted.Field)
				}
				r.Wanted.Spec, r.Wanted.Field = spec, name
				return nil
			}
		}
	}
	m := map[string]field{}
	for name, of := range map[string]func(string) field{"response_format": set(readResponseFormat),
		"structured_outputs": set(readStructured), "guided_json": set(schemaSpec), "guided_regex": set(regexSpec),
		"guided_choice": set(choiceSpec), "guided_grammar": set(grammarSpec), "grammar": set(grammarSpec),
		"json_schema": set(schemaSpec)} {
		m[name] = of(name)
	}
	return m
}

// readResponseFormat reads OpenAI's field; nil: any text.
func readResponseFormat(raw json.RawMessage) (*form.Spec, error) {
	var f struct {
		Type   string `json:"type"`
		Schema *struct {
			Schema json.RawMessage `json:"schema"`
		} `json:"json_schema"`
		Object json.RawMessage `json:"schema"` // llama.cpp's, of the type json_object
	}
	if json.Unmarshal(raw, &f) == nil {
		switch f.Type {
		case "text":
			return nil, nil
		case "json_object":
			if len(f.Object) > 0 && string(f.Object) != "null" {
				return schemaSpec(f.Object)
			}
			return &form.Spec{Object: true}, nil
		case "json_schema":
			if f.Schema == nil || len(f.Schema.Schema) == 0 {
				return nil, errors.New(`of the type json_schema needs "json_schema": {"name": …, "schema": {…}}`)
			}
			return schemaSpec(f.Schema.Schema)
		case "structural_tag":
			return &form.Spec{Tags: raw}, nil
		}
	}
	return nil, fmt.Errorf(`is %s, its "type" must be text, json_object, json_schema or structural_tag`, short(raw))
}

// readStructured reads vLLM's field.
func readStructured(raw json.RawMessage) (spec *form.Spec, err error) {
	var given map[string]json.RawMessage
	if json.Unmarshal(raw, &given) != nil {
		return nil, fmt.Errorf("must be an object, not %s", short(raw))
	}
	compact := false
	for _, name := range sortedNames(given) {
		raw := given[name]
		switch {
		case string(raw) == "null" || string(raw) == "false":
			continue
		case name == "disable_any_whitespace":
			if compact = string(raw) == "true"; !compact {
				return nil, fmt.Errorf("has a %s that must be true or false, not %s", name, short(raw))
			}
			continue
		}
		if spec != nil {
			return nil, errors.New("has several forms: one of json, regex, choice, grammar, json_object and " +
				"structural_tag fits")
		}
		switch name {
		case "json":
			spec, err = schemaSpec(raw)
		case "regex":
			spec, err = regexSpec(raw)
		case "choice":
			spec, err = choiceSpec(raw)
		case "grammar":
			spec, err = grammarSpec(raw)
		case "structural_tag":
			spec, err = tagsSpec(raw)
		case "json_object":
			if spec = (&form.Spec{Object: true}); string(raw) != "true" {
				err = errors.New("must be true or false")
			}
		default:
			return nil, fmt.Errorf("has %q, which is not supported: json, regex, choice, grammar, json_object and "+
				"structural_tag are", name)
		}
		if err != nil {
			return nil, fmt.Errorf("has a %s that %w", name, err)
		}
	}
	if spec != nil {
		spec.Compact = compact
	}
	return spec, nil
}

// schemaSpec reads a JSON schema, which may be written as a text.
func schemaSpec(raw json.RawMessage) (*form.Spec, error) {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		raw = json.RawMessage(text)
	}
	return &form.Spec{Schema: raw}, nil
}

func regexSpec(raw json.RawMessage) (*form.Spec, error) {
	var text string
	if json.Unmarshal(raw, &text) != nil || text == "" {
		return nil, fmt.Errorf("must be a regular expression, not %s", short(raw))
	}
	return &form.Spec{Regex: text}, nil
}

func choiceSpec(raw json.RawMessage) (*form.Spec, error) {
	var list []string
	if json.Unmarshal(raw, &list) != nil || len(list) == 0 || slices.Contains(list, "") {
		return nil, fmt.Errorf("must be a list of texts, none of them empty, not %s", short(raw))
	}
	return &form.Spec{Choice: list}, nil
}

func grammarSpec(raw json.RawMessage) (*form.Spec, error) {
	var text string
	if json.Unmarshal(raw, &text) != nil || text == "" {
		return nil, fmt.Errorf("must be a grammar in GBNF, such as root ::= [0-9]+, not %s", short(raw))
	}
	return &form.Spec{Grammar: text}, nil
}

// tagsSpec reads a structural tag, which may be written as a text.
func tagsSpec(raw json.RawMessage) (*form.Spec, error) {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		raw = json.RawMessage(text)
	}
	if json.Unmarshal(raw, &map[string]json.RawMessage{}) != nil {
		return nil, fmt.Errorf(`must be a structural tag, such as {"type": "structural_tag", "format": {…}}, not %s`,
			short(raw))
	}
	return &form.Spec{Tags: raw}, nil
}

// readToolChoice reads whether answers call tools.
func readToolChoice(r *Request, raw json.RawMessage) error {
	var word string
	var named struct {
		Type     string `json:"type"`
		Function struct {
			Name string `json:"name"`
		} `json:"function"`
	}
	switch {
	case json.Unmarshal(raw, &word) == nil && (word == "none" || word == "auto"):
	case word == "required":
		r.Wanted.Calls = true
	case json.Unmarshal(raw, &named) == nil && named.Type == "function" && named.Function.Name != "":
		r.Wanted.Calls, r.Wanted.Tool = true, named.Function.Name
	default:
		return fmt.Errorf(`is %s, must be "none", "auto", "required" or {"type": "function", "function": {"name": …}}`,
			short(raw))
	}
	return nil
}

// checkWanted returns an error for a form that does not fit the rest of a request.
func (r *Request) checkWanted() error {
	w := r.Wanted
	if !w.Calls {
		return nil
	}
	tools := r.tools()
	switch {
	case len(tools) == 0:
		return Bad("tool_choice", "tool_choice asks for a call, but the request has no tools")
	case w.Spec != nil:
		return Bad(w.Field, "%s restricts the answer, and tool_choice asks for calls: leave one out", w.Field)
	case w.Tool != "" && !slices.ContainsFunc(tools, func(t form.Tool) bool { return t.Name == w.Tool }):
		return Bad("tool_choice", "tool_choice names %q, which is none of the tools", w.Tool)
	}
	return nil
}

// tools returns the tools that a request offers.
func (r *Request) tools() (list []form.Tool) {
	var defined []struct {
		Function struct {
			Name       string          `json:"name"`
			Parameters json.RawMessage `json:"parameters"`
		} `json:"function"`
	}
	_ = json.Unmarshal(r.Tools, &defined) // which readTools has read
	for _, d := range defined {
		t := form.Tool{Name: d.Function.Name}
		if p := d.Function.Parameters; len(p) > 0 && string(p) != "null" {
			t.Parameters = p
		}
		list = append(list, t)
	}
	return list
}

// Form returns the form of a request's answers, which write calls in a syntax with marks that are tokens; nil: any
// text. thinking says that the prompt has opened thoughts.
func (r *Request) Form(calls toolcall.Syntax, marks map[int32]string, thinking bool) (*form.Spec, error) {
	w := r.Wanted
	if w.Spec == nil && !w.Calls {
		return nil, nil
	}
	spec := &form.Spec{}
	if w.Spec != nil {
		*spec = *w.Spec
	}
	if r.Chat {
		spec.Channels, spec.Marks = calls.Parts(), marks
	}
	if thinking {
		spec.Thoughts = toolcall.ThoughtsEnd
	}
	if len(r.Tools) == 0 {
		return spec, nil
	}
	spec.Calls = &form.Calls{Frames: calls.Frames(marks), Many: !r.OneCall && w.Tool == ""}
	for _, t := range r.tools() {
		if !goodName.MatchString(t.Name) {
			return nil, Bad("tools", "tools: %q is not a name: use letters, digits, _, - and .", t.Name)
		}
		if w.Tool == "" || t.Name == w.Tool {
			spec.Calls.Tools = append(spec.Calls.Tools, t)
		}
	}
	return spec, nil
}

// goodName matches names of tools that all formats of calls can write.
var goodName = regexp.MustCompile(`^[A-Za-z0-9_.-]+$`)

// formField returns the field that restricts answers.
func (r *Request) formField() string {
	if r.Wanted.Calls {
		return "tool_choice"
	}
	return r.Wanted.Field
}

// BadForm returns the error for a form that cannot be made.
func (r *Request) BadForm(err error) error {
	var e *form.Error
	if errors.As(err, &e) && e.Part == "tools" {
		return Bad("tools", "tools: %v", e.Err)
	}
	if errors.As(err, &e) {
		err = e.Err
	}
	return Bad(r.formField(), "%s: %v", r.formField(), err)
}
