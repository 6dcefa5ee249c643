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
