package config

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Names of the user's own: each value has the type that it is written as, --set adds to
// them, and the file that is written reads back.
func TestTemplateVars(t *testing.T) {
	file := folder(t, map[string]string{"a.yaml": "extends: " + base(t) + "\ndata:\n  template_vars:\n    enable_thinking: false\n    depth: 3\n    name: \"3\"\n    share: 0.5\n    none: null\n    effort: high\n"}) + "/a.yaml"
	r := load(t, Input{File: file, Sets: []string{"data.template_vars.depth=4", "data.template_vars.more=yes please", "data.system=Be short."}})
	want := map[string]any{"enable_thinking": false, "depth": int64(4), "name": "3", "share": 0.5, "none": nil, "effort": "high", "more": "yes please"}
	if diff := cmp.Diff(want, r.Run.Data.TemplateVars); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	again := load(t, Input{File: "again.yaml", Data: []byte(r.YAML())})
	if diff := cmp.Diff(r.Run, again.Run); diff != "" {
		t.Errorf("written and read again (-want +got)\n%s", diff)
	}
	if got := r.Params(Train)["data.template_vars"]; cmp.Diff(any(want), got) != "" {
		t.Errorf("the stage reads %v", got)
	}
	whole := load(t, Input{File: file, Sets: []string{"data.template_vars={a: 1}"}})
	if diff := cmp.Diff(map[string]any{"a": int64(1)}, whole.Run.Data.TemplateVars); diff != "" {
		t.Errorf("set as a whole (-want +got)\n%s", diff)
	}
}

// A list of tools becomes JSON with the file's order of keys and spelling of values; a
// path stays a path. Both read back.
func TestToolsKey(t *testing.T) {
	file := folder(t, map[string]string{"a.yaml": "extends: " + base(t) + `
data:
  tools:
    - type: function
      function:
        name: f
        description: "a <b> & \"c\": 3"
        parameters: {type: object, properties: {z: {type: integer, default: 1.0, enum: [1, 2e3, yes please]}, a: {strict: true, null: null, id: "7"}}}
`}) + "/a.yaml"
	const want = `[{"type":"function","function":{"name":"f","description":"a <b> & \"c\": 3","parameters":{"type":"object","properties":{"z":{"type":"integer","default":1.0,"enum":[1,2e3,"yes please"]},"a":{"strict":true,"null":null,"id":"7"}}}}}]`
	for _, tt := range []struct {
		sets []string
		want string
	}{{nil, want}, {[]string{"data.tools=my tools.json"}, "my tools.json"}, {[]string{`data.tools=[{"b": 1, a: [x]}]`}, `[{"b":1,"a":["x"]}]`}, {[]string{"data.tools=none"}, None}} {
		r := load(t, Input{File: file, Sets: tt.sets})
		if r.Run.Data.Tools != tt.want {
			t.Errorf("%q: got %s, want %s", tt.sets, r.Run.Data.Tools, tt.want)
		}
		again := load(t, Input{File: "again.yaml", Data: []byte(r.YAML())})
		if again.Run.Data.Tools != tt.want {
			t.Errorf("read again: %s, want %s", again.Run.Data.Tools, tt.want)
		}
		if got := r.Params(Train)["data.tools"]; (got == None) != (tt.want == None) || got == tt.want && got != None {
			t.Errorf("the stage reads %v of %s", got, tt.want)
		}
	}
}

func TestChatKeyErrors(t *testing.T) {
	for _, tt := range []struct{ set, want string }{
		{"data.template_vars=[1]", "must be a block of names with values, got a list"},
		{"data.template_vars.a={b: 1}", "data.template_vars.a must be a text, a number, true, false or null, got a block"},
		{"data.template_vars.a.b=1", `unknown key "data.template_vars.a.b"`},
		{"data.template_date=2024-13-01", "must be a day"},
		{"data.truncate=center", "must be one of error, left, right, middle"},
		{"rollout.stop_ids=[-1]", "rollout.stop_ids[0] must be"},
		{"data.apply_chat_template_kwargs={}", "it is called data.template_vars here"},
		{"tokenizer.path=dir", "tokenizer.path has no effect: model.init is random by default"},
		{"tokenizer.kind=file", "tokenizer.path is required"},
	} {
		_, err := Load(Input{File: "testdata/base.yaml", Sets: []string{tt.set}})
		var errs Errors
		if !errors.As(err, &errs) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("--set %s: %v, want %q", tt.set, err, tt.want)
		}
	}
	if _, err := Load(Input{File: "testdata/base.yaml", Sets: []string{"data.chat=none", "data.system=x"}}); err == nil || !strings.Contains(err.Error(), "data.system has no effect: data.chat is none") {
		t.Errorf("a system message without a template: %v", err)
	}
}

// The path of a template does not enter the id of a run; using one does.
func TestChatIdentity(t *testing.T) {
	chat := func(value string) any {
		return load(t, Input{File: "testdata/base.yaml", Sets: []string{"data.chat=" + value}}).Params(Train)["data.chat"]
	}
	if a, b := chat("one.jinja"), chat("two.jinja"); a != b || a != "external" {
		t.Errorf("files: %v and %v", a, b)
	}
	if chat("auto") != "auto" || chat("none") != "none" {
		t.Errorf("words: %v, %v", chat("auto"), chat("none"))
	}
}
