package config

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// evaluation is a configuration that a program makes and that trains nothing.
func evaluation(more ...Value) []Value {
	return append([]Value{{Path: "version", Value: 1}, {Path: "name", Value: "123"}, {Path: "task.kind", Value: "math"},
		{Path: "data.train.source", Value: None}, {Path: "data.val.source", Value: None}, {Path: "data.test.source", Value: None},
		{Path: "model.init", Value: "pretrained"}, {Path: "model.base", Value: "a \"b\": c"},
		{Path: "rollout.max_new_tokens", Value: 9}, {Path: "train.steps", Value: 0}, {Path: SuitesKey, Value: []string{"s"}}}, more...)
}

// Settings that a program makes have types, and say where they came from; settings from flags
// come after files, and before --set.
func TestValues(t *testing.T) {
	r, err := Load(Input{File: "exp eval x", Made: evaluation(), Sets: []string{"eval.final.n=3"}, Values: []Value{
		{Path: SuitesKey, Value: []string{"a", "7"}, From: "--suite"}, {Path: "eval.final.temperature", Value: "0.5", From: "--temperature"},
		{Path: "eval.final.n", Value: 2, From: "--n"}, {Path: "eval.final.pass_k", Value: []string{"1", "2"}, From: "--k"}}})
	if err != nil {
		t.Fatal(err)
	}
	c := &r.Run
	if f := c.Eval.Final; f.N != 3 || f.Temperature != 0.5 || len(f.PassK) != 2 || f.PassK[1] != 2 || strings.Join(f.Suites, " ") != "a 7" {
		t.Errorf("%+v", f)
	}
	if c.Name != "123" || c.Model.Base != `a "b": c` {
		t.Errorf("name %q, base %q", c.Name, c.Model.Base)
	}
	for path, want := range map[string]string{"model.base": "exp eval x", "eval.final.temperature": "--temperature", "eval.final.n": "--set #1", "rollout.n": "default"} {
		if got := r.Origin(path); got != want {
			t.Errorf("%s comes from %q, want %q", path, got, want)
		}
	}

	vars := map[string]any{"a": "1", "b": 2.0, "c": 0.5, "d": true, "e": nil}
	own := evaluation(Value{Path: "data.template_vars", Value: vars}, Value{Path: "rollout.stop_ids", Value: []string{"7", "9"}})
	if r, err = Load(Input{File: "x", Made: own}); err != nil || !slices.Equal(r.Run.Rollout.StopIDs, []int{7, 9}) ||
		!reflect.DeepEqual(r.Run.Data.TemplateVars, map[string]any{"a": "1", "b": int64(2), "c": 0.5, "d": true, "e": nil}) {
		t.Errorf("%v %v, %v", r.Run.Rollout.StopIDs, r.Run.Data.TemplateVars, err)
	}
	plain := []Value{{Path: "data.chat", Value: None, From: "--template"}}
	if r, err = Load(Input{File: "x", Made: own, Values: plain}); err != nil || r.Run.Data.TemplateVars != nil {
		t.Errorf("a flag that takes the template away: %v, %v", r.Run.Data.TemplateVars, err)
	}

	unset := []Value{{Path: "rollout.stop_ids", From: "--unset"}, {Path: "data.chat", From: "--unset"}}
	if r, err = Load(Input{File: "x", Made: own, Values: unset}); err != nil || len(r.Run.Rollout.StopIDs) != 0 ||
		r.Origin("rollout.stop_ids") != "default" || len(r.Run.Data.TemplateVars) != 5 {
		t.Errorf("default again: %v from %s, %v", r.Run.Rollout.StopIDs, r.Origin("rollout.stop_ids"), err)
	}

	_, err = Load(Input{File: "exp eval x", Made: evaluation(), Values: []Value{{Path: "eval.final.temperature", Value: "hot", From: "--temperature"}}})
	var bad Errors
	if !errors.As(err, &bad) || len(bad) != 1 || !strings.HasPrefix(bad[0].Error(), `--temperature: error[E111]: eval.final.temperature must be a number, got "hot"`) {
		t.Errorf("%v", err)
	}
}

// Where nothing is trained the algorithm and its settings may be left out, and a
// configuration that is written down stays the same.
func TestUntrained(t *testing.T) {
	r, err := Load(Input{File: "exp eval x", Made: evaluation()})
	if err != nil {
		t.Fatal(err)
	}
	if r.Run.Algorithm() != None || r.Has("algo.kind") || r.Has("train.optim.lr") {
		t.Errorf("the algorithm is %s", r.Run.Algorithm())
	}
	again, err := Load(Input{File: "again", Data: []byte(r.YAML())})
	if err != nil || again.YAML() != r.YAML() {
		t.Errorf("%v\n%s", err, again.YAML())
	}
	var bad Errors
	made := evaluation(Value{Path: "data.train.source", Value: "train.jsonl"})
	if _, err := Load(Input{File: "exp eval x", Made: made}); !errors.As(err, &bad) || !strings.Contains(err.Error(), "algo.kind") {
		t.Errorf("training without an algorithm: %v", err)
	}
}
