package main

import (
	"encoding/json"
	"strings"
	"testing"

	"exp/cmd/exp/cli"
	"exp/reports/compare"
)

// TestConfigForPrograms: config schema KEY and config explain speak JSON too.
func TestConfigForPrograms(t *testing.T) {
	for _, tt := range []struct {
		args         []string
		schema       string
		n            int
		value, wants string // of the first key
	}{
		{[]string{"schema", "algo.flowrl.logz.layers"}, "exp.config.schema/1", 1, "", "3"},
		{[]string{"schema", "task.countdown"}, "exp.config.schema/1", 7, "", "3"},
		{[]string{"explain", smokeConfig, "task.countdown.min_numbers"}, "exp.config.explain/1", 1, "2", "3"},
		{[]string{"explain", smokeConfig, "task.countdown"}, "exp.config.explain/1", 7, "2", "3"},
		{[]string{"explain", smokeConfig, "algo.gamma"}, "exp.config.explain/1", 1, "", "1"},
		{[]string{"explain", "algo.gamma"}, "exp.config.explain/1", 1, "", "1"},
	} {
		t.Run(strings.Join(tt.args, " "), func(t *testing.T) {
			got := call{}.run(append([]string{"config", "--json"}, tt.args...)...)
			var page struct {
				Schema string
				Data   []struct{ Key, Default, Value, Origin string }
			}
			if err := json.Unmarshal([]byte(got.stdout), &page); err != nil || got.code != 0 {
				t.Fatalf("%v: %+v", err, got)
			}
			if page.Schema != tt.schema || len(page.Data) != tt.n || page.Data[0].Value != tt.value || page.Data[0].Default != tt.wants {
				t.Errorf("got %+v", page)
			}
		})
	}
}

func TestConfigMistakes(t *testing.T) {
	call{}.run("config", "schema", "beta").check(t, 2, "",
		`did you mean "task.outcomes.beta" or "prefer.beta" or "algo.flowrl.beta" or "algo.dro.beta" or "algo.gvpo.beta"?`)
	call{}.run("config", "explain", smokeConfig, "algo.flowrl.bta").check(t, 2, "", `did you mean "algo.flowrl.beta"?`)
	call{}.run("config", "schema", "zzz").check(t, 2, "", "exp config schema lists all keys")
	call{}.run("config", "diff", smokeConfig, smokeConfig, "--no-header").check(t, 0, "", "no key differs")
}

// TestConfigComplete: the shell completes what --set, --until and the second
// argument of explain may be.
func TestConfigComplete(t *testing.T) {
	for _, tt := range []struct{ words, want string }{
		{"run x.yaml --set algo.ki", "algo.kind="},
		{"run --set=algo.kind=p", "--set=algo.kind=ppo --set=algo.kind=pf_ppo --set=algo.kind=pure --set=algo.kind=prime"},
		{"config show x.yaml --set algo.flowrl.use_logz=", "algo.flowrl.use_logz=true algo.flowrl.use_logz=false"},
		{"run --set train.steps=", ""},
		{"run --until eval", "eval.gen eval.score"},
		{"run --device cud", "cuda cuda:"},
		{"run --seeds ../", ""},
		{"run ../../configs/smo", smokeConfig},
		{"config check --overlay ../../configs/smo", smokeConfig},
		{"config explain " + smokeConfig + " algo.ki", "algo.kind"},
	} {
		got := call{}.run(append(strings.Fields(tt.words), cli.CompletionFlag)...)
		var texts []string
		for line := range strings.Lines(got.stdout) {
			text, _, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
			texts = append(texts, text)
		}
		if strings.Join(texts, " ") != tt.want {
			t.Errorf("%s: got %q, want %q", tt.words, texts, tt.want)
		}
	}
}

// TestTreatmentText: arms that differ only in waived keys still have different
// configurations.
func TestTreatmentText(t *testing.T) {
	r := &compare.Result{}
	p := &comparePage{r: r}
	if got, want := p.treatment(), "none: the arms have the same configuration"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	r.Comparability.Differences = []compare.Difference{{Key: "train.optim.lr", Class: compare.Controlled, Values: []string{"1", "2"}, Waived: true}}
	if got, want := p.treatment(), "none: the arms differ only in waived keys"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
