package config

import (
	"strings"
	"testing"
)

const dataRecipe = "version: 1\nname: x\ntask: {kind: math}\nalgo: {kind: flowrl}\nsft: {steps: 0}\nrollout: {max_new_tokens: 9}\n" +
	"model: {init: pretrained, base: dir}\ntrain: {prompts_per_step: 1, steps: 1, optim: {lr: 1e-5}}\neval: {final: {suites: [math500]}}\n" +
	"data: {train: {source: a.jsonl, max_samples: 5}, select: first, seed: 3}\n"

// The keys that choose rows have no effect without rows to choose, and say so.
func TestDataKeys(t *testing.T) {
	for _, tt := range []struct {
		sets []string
		want string // of the error; "" for none
	}{
		{nil, ""},
		{[]string{"data.val={source: b.parquet, max_samples: 7}"}, ""},
		{[]string{"data.prompt_key=question"}, ""},
		{[]string{"data.train.source=a.json"}, ""},
		{[]string{"data.train.source=a-*.jsonl.gz"}, ""},
		{[]string{"data.train.source=a.parquet.gz"}, "data.train.source must be generated, none, a path ending in .jsonl, .json, .csv, .tsv or .parquet, or"},
		{[]string{`data.prompt_key=""`}, "data.prompt_key must be auto or the name of a column"},
		{[]string{"data.train.max_samples=-1"}, "data.train.max_samples must be >= 0, got -1"},
		{[]string{"data.val.max_samples=7"}, "data.val.max_samples has no effect: task.kind is math\n   help: remove it, or make it count: data.val.source is not generated or none"},
		{[]string{"data.train.max_samples=0", "data.select=random"}, "data.select has no effect: data.train.max_samples is 0"},
		{[]string{"task.kind=countdown", "data.prompt_key=question"}, "data.prompt_key has no effect: task.kind is countdown"},
		{[]string{"data.train_max_samples=3"}, `unknown key "data.train_max_samples": it is called data.train.max_samples here`},
		{[]string{"data.max_samples=3"}, `unknown key "data.max_samples"`},
		{[]string{"data.shuffle=true"}, "the rows that max_samples takes are data.select"},
	} {
		r, err := Load(Input{File: "x.yaml", Data: []byte(dataRecipe), Sets: tt.sets})
		got := ""
		if err != nil {
			got = err.Error()
		} else if r.Run.Data.Train.MaxSamples != 5 || r.Run.Data.Select != "first" || r.Run.Data.Seed != 3 {
			t.Errorf("%v: data %+v", tt.sets, r.Run.Data)
		}
		if (tt.want == "") != (got == "") || !strings.Contains(got, tt.want) {
			t.Errorf("%v: %s, want %s", tt.sets, got, tt.want)
		}
	}
}

// What a later layer leaves without effect is dropped, whichever of several switches it
// turns off.
func TestDataKeysAreDropped(t *testing.T) {
	r := load(t, Input{File: "x.yaml", Data: []byte(dataRecipe), Sets: []string{"data.train.max_samples=0"}})
	var paths []string
	for _, d := range r.Dropped {
		paths = append(paths, d.Path+" because "+d.Because)
	}
	got := strings.Join(paths, ", ")
	want := "data.seed because data.train.max_samples is 0, data.select because data.train.max_samples is 0"
	if got != want {
		t.Errorf("dropped %s, want %s", got, want)
	}
}
