package config

import (
	"slices"
	"strings"
	"testing"
)

// Pass rates have two sources and a range. Where nothing is sampled or learned they have no effect, and say why.
func TestPassRateKeys(t *testing.T) {
	for _, tt := range []struct {
		sets []string
		want string // of the error; "" for none
	}{
		{nil, ""},
		{[]string{"data.pass_rate.samples=8"}, ""},
		{[]string{"data.pass_rate={samples: 16, min: 0.1, max: 80%, seed: 3}"}, ""},
		{[]string{"data.pass_rate={column: extra_info.solve_rate, max: 0.5}"}, ""},
		{[]string{"data.pass_rate={samples: 8, column: rate}"}, "data.pass_rate.column reads the pass rates that " +
			"data.pass_rate.samples (8) measures\n   help: leave one of them out"},
		{[]string{"data.pass_rate={samples: 8, min: 0.6, max: 0.5}"}, "data.pass_rate.min (0.6) is above " +
			"data.pass_rate.max (0.5): no problem passes"},
		{[]string{"data.pass_rate.samples=1"}, "data.pass_rate.samples (1) gives no pass rate from " +
			"data.pass_rate.min (0.001) to data.pass_rate.max (0.999)\n   help: more data.pass_rate.samples"},
		{[]string{"data.pass_rate={samples: 4, min: 0.3, max: 0.4}"}, "data.pass_rate.samples (4) gives no pass " +
			"rate from"},
		{[]string{"data.pass_rate={samples: 4, min: 0.25, max: 0.25}"}, ""},
		{[]string{"data.pass_rate={samples: 1, min: 1, max: 1}"}, ""},
		{[]string{"data.pass_rate.samples=513"}, "data.pass_rate.samples must be >= 0 and <= 512"},
		{[]string{"data.pass_rate={samples: 8, max: 1.5}"}, "data.pass_rate.max must be >= 0 and <= 1"},
		{[]string{"data.pass_rate.column=rate", `task={kind: mixed, mixed: {kinds: {"*": math}, generate: {train: ` +
			`{countdown: 5}}}}`}, "data.pass_rate.column reads pass rates from rows, but 5 training problems are " +
			"generated"},
		{[]string{"data.pass_rate.samples=4", `task={kind: mixed, mixed: {kinds: {"*": math}, generate: {train: ` +
			`{countdown: 5}}}}`}, ""},
		{[]string{"data.pass_rate.max=0.5"}, "data.pass_rate.max has no effect: data.pass_rate.samples is 0"},
		{[]string{"data.pass_rate={column: rate, seed: 1}"}, "data.pass_rate.seed has no effect: " +
			"data.pass_rate.samples is 0"},
		{[]string{"data.pass_rate.samples=8", "rollout={source: recorded, recorded: r.jsonl}"},
			"data.pass_rate.samples has no effect: rollout.source is recorded"},
		{[]string{"data.pass_rate.column=rate", "rollout={source: recorded, recorded: r.jsonl}"},
			"data.pass_rate.column has no effect: rollout.source is recorded"},
		{[]string{"data.pass_rate.samples=8", "train.steps=0"}, "data.pass_rate.samples has no effect: train.steps " +
			"is 0"},
	} {
		_, err := Load(Input{File: "x.yaml", Data: []byte(dataRecipe), Sets: tt.sets})
		got := ""
		if err != nil {
			got = err.Error()
		}
		if (tt.want == "") != (got == "") || !strings.Contains(got, tt.want) {
			t.Errorf("%v: %s, want %s", tt.sets, got, tt.want)
		}
	}
}

// A run without pass rates has none of their keys in its identity, and each key belongs to the stages that it changes.
func TestPassRateIdentity(t *testing.T) {
	at := func(sets ...string) *Resolved {
		return load(t, Input{File: "x.yaml", Data: []byte(dataRecipe), Sets: sets})
	}
	has := func(values map[string]any) (list []string) {
		for path := range values {
			if strings.HasPrefix(path, passRatePath) {
				list = append(list, strings.TrimPrefix(path, passRatePath))
			}
		}
		slices.Sort(list)
		return list
	}
	if got := has(at().Semantic(RunStages()...)); got != nil {
		t.Errorf("without pass rates: %v", got)
	}
	if got := has(at("data.pass_rate={samples: 0, column: none}").Semantic(RunStages()...)); got != nil {
		t.Errorf("with defaults: %v", got)
	}
	r := at("data.pass_rate={samples: 8, min: 0.1, max: 0.8, seed: 3}")
	if got := strings.Join(has(r.Semantic(RunStages()...)), " "); got != "max min samples seed" {
		t.Errorf("an experiment has %s", got)
	}
	for stage, want := range map[Stage]string{PassRate: "samples seed", Select: "max min", Train: "", Prepare: ""} {
		if got := strings.Join(has(r.Params(stage)), " "); got != want {
			t.Errorf("%s reads %q, want %q", stage, got, want)
		}
	}
	if got := strings.Join(has(at("data.pass_rate.column=rate").Params(Prepare)), " "); got != "column" {
		t.Errorf("prepare reads %q", got)
	}
}

// Measuring reads what completions and verdicts depend on, and nothing that only updates or other numbers of
// completions do. A reward counts where it judges alone.
func TestPassRateReads(t *testing.T) {
	r := load(t, Input{File: "x.yaml", Data: []byte(dataRecipe), Sets: []string{"data.pass_rate.samples=8"}})
	params := r.Params(PassRate)
	for path, want := range map[string]bool{
		"rollout.temperature": true, "rollout.max_new_tokens": true, "rollout.top_p": true, "rollout.stop": true,
		"task.math.grader": true, "model.dtype": true,
		"data.max_prompt_tokens": true, "data.chat": true, "rollout.tools.kind": true,
		"rollout.n": false, "rollout.staleness": false, "rollout.max_sequences": false, "data.order": false,
		"reward.kind": false, "reward.correct": false,
		"train.prompts_per_step": false, "train.optim.lr": false, "algo.loss": false, "eval.final.n": false,
		"seed": false,
	} {
		if _, got := params[path]; got != want {
			t.Errorf("%s: read %t, want %t", path, got, want)
		}
	}
	judged := load(t, Input{File: "x.yaml", Data: []byte(dataRecipe), Sets: []string{"data.pass_rate.samples=8",
		"task.kind=prompts",
		"reward={kind: command, command: [./r]}"}}).Params(PassRate)
	for _, path := range []string{"task.prompts.pass", "reward.kind", "reward.command"} {
		if _, ok := judged[path]; !ok {
			t.Errorf("of task prompts, %s is not read", path)
		}
	}
	if _, ok := judged["reward.components"]; ok {
		t.Error("reward.components changes no pass rate")
	}
}

// What a later layer leaves without effect is dropped: recorded rollouts take the place of pass rates.
func TestPassRateIsDropped(t *testing.T) {
	text := strings.Replace(dataRecipe, "data: {", "data: {pass_rate: {samples: 8, max: 0.5}, ", 1)
	r := load(t, Input{File: "x.yaml", Data: []byte(text), Sets: []string{"rollout={source: recorded, recorded: " +
		"r.jsonl}"}})
	var paths []string
	for _, d := range r.Dropped {
		paths = append(paths, d.Path)
	}
	if got := strings.Join(paths, " "); got != "data.pass_rate.samples data.pass_rate.max" ||
		r.Run.Data.PassRate.Selects() {
		t.Errorf("dropped %s", got)
	}
}
