package main

import (
	"encoding/csv"
	"slices"
	"strconv"
	"strings"
	"testing"

	"exp/experiments/recorded"
	"exp/harness/config"
	"exp/harness/metric"
)

func TestMetricsPages(t *testing.T) {
	dir := fixtureStore(t)
	golden(t, "metrics_80", pages(t, fixtureCall(t, 80, false), dir, "metrics flowrl-a#0", "metrics flowrl-a ppo-b#1 --steps 4:5",
		"metrics flowrl-a#0 --every 10", "metrics flowrl-a#0 --list", "metrics flowrl-a#0 -m actor/* -m perf/* --steps :2"))
	golden(t, "metrics_pipe", pages(t, fixtureCall(t, 0, false), dir, "metrics ppo-b#1 -m actor/entropy -o csv", "metrics ppo-b#1 -m *mean -o jsonl --steps 2",
		"metrics ppo-b --list -o csv -m actor/lr", "metrics flowrl-a#0 -m val/* -o tsv"))
}

// TestMetricsExplain: the catalogue for people and for programs, without a store.
func TestMetricsExplain(t *testing.T) {
	dir := t.TempDir()
	golden(t, "metrics_explain", pages(t, fixtureCall(t, 80, false), dir,
		"metrics --explain critic/vf_explained_var", "metrics --explain val/pass@4",
		"metrics --explain kl/ref_* actor/log_z", "metrics --explain actor/kl_coef -o json",
		"metrics --explain rollout_corr/*ppl -o name"))
	got := call{}.run("metrics", "--explain", "-o", "name")
	var names []string
	for _, m := range metric.All() {
		names = append(names, m.Name)
	}
	if want := strings.Join(names, "\n") + "\n"; got.stdout != want {
		t.Errorf("printed %q, want the catalogue's %q", got.stdout, want)
	}
}

// The steps of a stage before training are those that the stage kept.
func TestMetricsOfStage(t *testing.T) {
	if testing.Short() {
		t.Skip("trains a model")
	}
	dir := smokeStore(t)
	metrics := func(args ...string) ended {
		return call{}.run(append([]string{"metrics", "smoke#0", "--store", dir}, args...)...)
	}
	rows, err := csv.NewReader(strings.NewReader(metrics("--stage", "sft", "-o", "csv").stdout)).ReadAll()
	if err != nil || len(rows) != 1+30*5 {
		t.Fatalf("%d rows, %v; want 30 steps of 5 metrics", len(rows), err)
	}
	last := metrics("--stage", "sft", "-o", "csv", "-m", "sft/*", "-m", "*/loss", "-m", "sft/[a]x", "--steps", "30",
		"--no-header", "--fields", "metric")
	if want := "sft/loss\nsft/entropy\nsft/grad_norm\nsft/lr\nsft/epoch\n"; last.stdout != want {
		t.Errorf("metrics of the last step: %q, want %q", last.stdout, want)
	}
	loss := metrics("--stage", "sft", "-m", "sft/loss", "-o", "csv", "--steps", "29:30", "--no-header", "--fields", "step,value").stdout
	shown := metrics("--stage", "sft", "--every", "1", "-m", "sft/loss").stdout
	for line := range strings.Lines(loss) {
		step, value, _ := strings.Cut(strings.TrimSpace(line), ",")
		v, err := strconv.ParseFloat(value, 64)
		if err != nil || !strings.Contains(shown, step+"  "+strconv.FormatFloat(v, 'f', 2, 64)) {
			t.Errorf("step %s, loss %s, %v, not in\n%s", step, value, err, shown)
		}
	}
	metrics("--stage", "sft", "-m", "sft/los").check(t, 3, "", "has no matching point of its stage sft")
	metrics("--stage", "prefer").check(t, 3, "", "no finished stage prefer")
	metrics("--stage", "train").check(t, 2, "", "--stage train: want one of sft, reward_model, prefer")
	metrics("--stage", "sft", "--list").check(t, 2, "", "does not go with --stage")
	metrics("--stage", "sft", "--decimate", "3").check(t, 2, "", "does not go with --stage")
}

// The stages that --stage takes are those that keep a curve, in the order of a run.
func TestCurveStages(t *testing.T) {
	var want []string
	for _, s := range config.StagesOf() {
		if slices.Contains(s.Facts().Makes, recorded.RoleCurve) {
			want = append(want, string(s))
		}
	}
	if got := curveStages(); !slices.Equal(got, want) {
		t.Errorf("the catalogue of metrics has stages %q, the table of stages has %q", got, want)
	}
}

// A run in place of a metric stands for those it recorded.
func TestMetricsExplainRun(t *testing.T) {
	dir := fixtureStore(t)
	got := call{}.run("metrics", "flowrl-a#0", "--explain", "-o", "name", "--store", dir)
	listed := call{}.run("metrics", "flowrl-a#0", "--list", "-o", "csv", "--no-header", "--fields", "metric", "--store", dir)
	if got.stdout == "" || got.stdout != listed.stdout {
		t.Errorf("printed %q, want %q", got.stdout, listed.stdout)
	}
	call{}.run("metrics", "@lost", "--explain", "--store", dir).check(t, 3, "", "valid are @last")
	call{}.run("metrics", "actor/entropi", "--explain", "--store", dir).check(t, 3, "", "did you mean actor/entropy?")
}

// TestMetricsHasEveryPoint: programs get every point.
func TestMetricsHasEveryPoint(t *testing.T) {
	dir := fixtureStore(t)
	got := call{}.run("metrics", "flowrl-a", "--store", dir, "-o", "csv")
	rows, err := csv.NewReader(strings.NewReader(got.stdout)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	// Per run 20 steps of 4 metrics, log_z at the 17 from the fourth on, val/pass@1 at 4.
	if want := 1 + 3*(20*4+17+4); len(rows) != want {
		t.Errorf("%d rows, want %d", len(rows), want)
	}
	if want := []string{"run", "name", "seed", "metric", "step", "value"}; !slices.Equal(rows[0], want) {
		t.Errorf("head %q, want %q", rows[0], want)
	}
	got = call{}.run("metrics", "flowrl-a#1", "--store", dir, "-o", "csv", "--every", "5", "--no-header", "-m", "actor/lr", "--fields", "step")
	if got.stdout != "5\n10\n15\n20\n" {
		t.Errorf("every fifth: %q", got.stdout)
	}
}

// TestMetricsDecimate: 20 steps in 4 spans; each span has the extent of its points.
func TestMetricsDecimate(t *testing.T) {
	dir := fixtureStore(t)
	rows := func(args ...string) [][]string {
		got := call{}.run(append([]string{"metrics", "flowrl-a#1", "--store", dir, "-o", "csv", "--no-header", "-m", "actor/entropy"}, args...)...)
		list, err := csv.NewReader(strings.NewReader(got.stdout)).ReadAll()
		if err != nil || got.code != 0 {
			t.Fatalf("%+v: %v", got, err)
		}
		return list
	}
	points, spans := rows("--fields", "step,value"), rows("--decimate", "4", "--fields", "from,to,points,min,max")
	if len(points) != 20 || len(spans) != 4 {
		t.Fatalf("%d points in %d spans, want 20 in 4", len(points), len(spans))
	}
	number := func(text string) float64 {
		v, err := strconv.ParseFloat(text, 64)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	for i, span := range spans {
		var values []float64
		for _, p := range points[5*i : 5*i+5] {
			values = append(values, number(p[1]))
		}
		want := []float64{number(points[5*i][0]), number(points[5*i+4][0]), 5, slices.Min(values), slices.Max(values)}
		for k, w := range want {
			if number(span[k]) != w {
				t.Errorf("span %d is %v, want %v", i, span, want)
				break
			}
		}
	}
}

func TestMetricsErrors(t *testing.T) {
	dir := fixtureStore(t)
	tests := []struct {
		args   string
		code   int
		stderr string
	}{
		{"metrics flowrl-a -m actor/entrpy", 3, "did you mean actor/entropy?"},
		{"metrics flowrl-a --steps 30:40", 3, "has no matching point"},
		{"metrics flowrl-a -m 'actor/*' --steps 30:40", 3, "--list shows its metrics"},
		{"metrics grpo-c", 3, "these runs have no recorded steps of training yet"},
		{"metrics flowrl-a --steps 5:2", 2, "not a range of steps"},
		{"metrics flowrl-a --steps x", 2, "not a range of steps"},
		{"metrics flowrl-a --every 0", 2, "must be at least 1"},
		{"metrics flowrl-a --decimate 0", 2, "must be at least 1"},
		{"metrics flowrl-a --decimate 5 --steps 2:4", 2, "it does not go with --steps"},
		{"metrics flowrl-a --decimate 5 -m actor/entrpy", 3, "did you mean actor/entropy?"},
		{"metrics", 2, "exp metrics needs RUN..."},
		{"metrics 'algo = sac'", 3, "no run matches"},
		{"metrics --explain actor/kl_koef", 3, "did you mean actor/kl_coef?"},
		{"metrics --explain 'x[' ", 2, "is not a valid GLOB"},
		{"metrics --explain --list", 2, "does not go with --list"},
	}
	for _, tt := range tests {
		t.Run(tt.args, func(t *testing.T) {
			got := call{now: fixtureNow}.run(append(shellWords(tt.args), "--store", dir)...)
			if got.code != tt.code || !strings.Contains(got.stderr, tt.stderr) || got.stdout != "" {
				t.Errorf("got %+v, want code %d and %q", got, tt.code, tt.stderr)
			}
		})
	}
}

// TestMetricsSmoke: people and programs get the same values.
func TestMetricsSmoke(t *testing.T) {
	dir := smokeStore(t)
	people := call{}.run("metrics", "smoke#0", "-m", "actor/entropy", "--store", dir, "--no-header")
	programs := call{}.run("metrics", "smoke#0", "-m", "actor/entropy", "--store", dir, "--no-header", "-o", "csv", "--fields", "step,value")
	var want []string
	for line := range strings.Lines(programs.stdout) {
		step, value, _ := strings.Cut(strings.TrimSpace(line), ",")
		v, err := strconv.ParseFloat(value, 64)
		if err != nil {
			t.Fatal(err)
		}
		want = append(want, step, strconv.FormatFloat(v, 'f', 2, 64))
	}
	if got := strings.Fields(people.stdout); len(got) != 8 || !slices.Equal(got, want) {
		t.Errorf("people see %q, programs %q", got, want)
	}
}

func TestRoundStep(t *testing.T) {
	tests := []struct{ n, most, want int64 }{
		{0, 40, 1}, {40, 40, 1}, {41, 40, 2}, {80, 40, 2}, {81, 40, 5}, {200, 40, 5}, {201, 40, 10}, {600, 40, 20}, {100_000, 40, 5000},
	}
	for _, tt := range tests {
		if got := roundStep(tt.n, tt.most); int64(got) != tt.want {
			t.Errorf("roundStep(%d, %d) = %d, want %d", tt.n, tt.most, got, tt.want)
		}
	}
}

func TestMetricTitle(t *testing.T) {
	names := []string{"actor/entropy", "actor/grad_norm", "critic/grad_norm", "critic/score/mean", "response_length/mean", "critic/rewards/mean", "a/x/mean", "loss"}
	tests := map[string]string{"actor/entropy": "entropy", "actor/grad_norm": "grad", "critic/grad_norm": "critic/grad_norm", "critic/score/mean": "reward",
		"critic/rewards/mean": "rewards/mean", "a/x/mean": "x/mean", "loss": "loss"}
	for name, want := range tests {
		if got := metricTitle(name, names); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}
