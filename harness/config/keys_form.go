package config

import (
	"encoding/json"
	"errors"

	"exp/train/form"
)

// Keys of the form of completions.

// formPath begins their paths.
const formPath = "rollout.form."

func formKeys() []Key {
	of := func(kind string) []Clause { return []Clause{only(formPath+"kind", kind)} }
	keys := []Key{
		{Path: formPath + "kind", Kind: Enum,
			Words:   []string{None, "regex", "choice", "json_object", "json_schema", "grammar", "structural_tag"},
			Default: is(None),
			Help: "form that completions must have, in training and all evaluations: tokens that cannot lead to one " +
				"are not drawn; log-probs still count all tokens"},
		{Path: formPath + "regex", Kind: String, When: of("regex"), Pattern: pattern("a regular expression", `(?s).+`),
			Help: "expression that a whole completion matches, in RE2's syntax, such as <think>(?s:.*)</think>[0-9]+"},
		{Path: formPath + "choice", Kind: String, List: true, When: of("choice"), Pattern: pattern("a text", `(?s).+`),
			Help: "a completion is one of these texts"},
		{Path: formPath + "schema", Kind: String, When: of("json_schema"), Pattern: pattern("JSON", `(?s).+`),
			Help: "JSON schema that a completion follows, as a text (docs/commands.md has the keywords)"},
		{Path: formPath + "grammar", Kind: String, When: of("grammar"), Pattern: pattern("a grammar", `(?s).+`),
			Help: "context-free grammar in GBNF, llama.cpp's notation: a line for each rule, and root is a whole " +
				"completion, as in root ::= n ([-+] n)* and then n ::= [0-9]+ | \"(\" root \")\""},
		{Path: formPath + "tags", Kind: String, When: of("structural_tag"), Pattern: pattern("JSON", `(?s).+`),
			Help: "structural tag that a completion follows, as a text: other forms between texts or in free text, " +
				"as XGrammar has them (docs/commands.md)"},
	}
	for i := range keys {
		keys[i].Late, keys[i].Stages = true, at(Train, EvalGen)
	}
	return keys
}

// Spec returns the form; nil: any text.
func (f Form) Spec() *form.Spec {
	switch f.Kind {
	case "regex":
		return &form.Spec{Regex: f.Regex}
	case "choice":
		return &form.Spec{Choice: f.Choice}
	case "json_object":
		return &form.Spec{Object: true}
	case "json_schema":
		return &form.Spec{Schema: json.RawMessage(f.Schema)}
	case "grammar":
		return &form.Spec{Grammar: f.Grammar}
	case "structural_tag":
		return &form.Spec{Tags: json.RawMessage(f.Tags)}
	}
	return nil
}

func formChecks() []check {
	fits := func(name string) check {
		path := formPath + name
		return check{[]string{path}, func(r *Run) (string, string) {
			var bad *form.Error
			if spec := r.Rollout.Form.Spec(); spec != nil && errors.As(spec.Check(), &bad) {
				return path + ": " + bad.Err.Error(), "docs/commands.md says what forms may have"
			}
			return "", ""
		}}
	}
	return []check{
		fits("regex"), fits("choice"), fits("schema"), fits("grammar"), fits("tags"),
		{[]string{formPath + "kind", toolsPath + "kind"}, func(r *Run) (string, string) {
			if r.Rollout.Form.Spec() != nil && r.Rollout.Tools.Used() {
				return formPath + "kind is " + r.Rollout.Form.Kind + ", and completions with rollout.tools have " +
					"turns that others write between", "leave one out; requests of agents may have forms of their own"
			}
			return "", ""
		}},
	}
}
