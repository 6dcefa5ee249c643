package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"exp/experiments/ident"
	"exp/experiments/quantity"
	"exp/experiments/query"
	"exp/experiments/store"
)

// fixtureCall is a call of the real commands at fixtureNow, in UTC, on a terminal of
// some columns (0: a pipe).
func fixtureCall(t *testing.T, columns int, color bool) call {
	local := time.Local
	time.Local = time.UTC
	t.Cleanup(func() { time.Local = local })
	env := map[string]string{}
	if columns > 0 {
		env["EXP_FORCE_TTY"] = fmt.Sprint(columns)
	}
	if !color {
		env["NO_COLOR"] = "1"
	}
	return call{env: env, now: fixtureNow}
}

// pages runs commands and returns what they print, each under the command line.
// The store's directory, which differs each time, reads STORE.
func pages(t *testing.T, c call, dir string, lines ...string) string {
	t.Helper()
	var out strings.Builder
	for _, line := range lines {
		got := c.run(append(shellWords(line), "--store", dir)...)
		fmt.Fprintf(&out, "$ exp %s\n%s%s", line, got.stdout, got.stderr)
		if got.code != 0 {
			fmt.Fprintf(&out, "(exit %d)\n", got.code)
		}
		out.WriteByte('\n')
	}
	return strings.ReplaceAll(out.String(), dir, "STORE")
}

// shellWords splits at spaces outside of single quotes.
func shellWords(line string) []string {
	var words []string
	for i, part := range strings.Split(line, "'") {
		if i%2 == 1 {
			words = append(words, part)
			continue
		}
		words = append(words, strings.Fields(part)...)
	}
	return words
}

func TestLsPages(t *testing.T) {
	dir := fixtureStore(t)
	lines := []string{"ls", "ls --group xid", "ls --deleted", "ls -n 2", "ls nothing", "ls 'algo = sac'"}
	golden(t, "ls_80", pages(t, fixtureCall(t, 80, false), dir, lines...))
	golden(t, "ls_120_color", pages(t, fixtureCall(t, 120, true), dir, lines...))
	golden(t, "ls_pipe", pages(t, fixtureCall(t, 0, false), dir,
		"ls -o wide -n 1", "ls -o csv -n 2", "ls --json -n 1", "ls --group xid -o csv",
		"ls --group algo", "ls --group algo.flowrl.beta --json", "ls -o name", "ls -o md -n 1",
		"ls flowrl-a --cols config.algo.flowrl.beta,tag,metric.actor/entropy.min",
		"ls --group algo --cols metric.actor/entropy.min,config.algo.flowrl.beta,status,seed",
		"ls --group algo --cols metric.actor/entropy.min,seed -o csv"))
}

// Settings have all their digits, so that arms do not look alike; metrics have about three.
func TestFieldText(t *testing.T) {
	setting, metric := textOf(store.Field{Kind: store.FieldConfig, Name: "train.optim.lr"}), textOf(store.Field{Kind: store.FieldMetric, Name: "actor/lr"})
	for _, tt := range []struct {
		v               any
		setting, metric string
	}{
		{1.431e-5, "1.431e-05", "1.4e-05"}, {0.0015, "0.0015", "0.002"}, {15.0, "15", "15"}, {1e6, "1000000", "1000000"}, {nil, "", ""},
		{[]any{0.0012, 2.0, "x"}, "0.0012, 2, x", "0.001, 2, x"}, {true, "true", "true"},
	} {
		if s, m := setting(tt.v), metric(tt.v); s != tt.setting || m != tt.metric {
			t.Errorf("%v: %q and %q, want %q and %q", tt.v, s, m, tt.setting, tt.metric)
		}
	}
	if got := valueText([]any{0.00012}); got != "0.00012" {
		t.Errorf("exp diff has %s, want 0.00012", got)
	}
}

// Values that look alike in a list are still different groups.
func TestGroupRuns(t *testing.T) {
	l := &query.List{Runs: make([]store.Run, 7), Values: [][]any{{0.0015}, {0.0016}, {0.0015}, {nil}, {""}, {"1"}, {1.0}}}
	var got []string
	for _, g := range l.Groups(0) {
		got = append(got, fmt.Sprintf("%s×%d", exactText(g.Value), len(g.Runs)))
	}
	want := []string{"0.0015×2", "0.0016×1", "×1", "×1", "1×1", "1×1"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// listed returns the names with seeds that a list prints, in order.
func listed(t *testing.T, dir string, args ...string) []string {
	t.Helper()
	got := call{now: fixtureNow}.run(append([]string{"ls", "--store", dir, "-o", "csv", "--no-header", "--fields", "name,seed"}, args...)...)
	if got.code != 0 {
		t.Fatalf("exp ls %q: %+v", args, got)
	}
	return strings.Fields(strings.ReplaceAll(got.stdout, ",", "#"))
}

func TestLsSelects(t *testing.T) {
	dir := fixtureStore(t)
	all := []string{"grpo-c#0", "ppo-b#1", "ppo-b#0", "flowrl-a#2", "flowrl-a#1", "flowrl-a#0"}
	tests := []struct {
		name string
		args []string
		want []string
	}{
		{"all", nil, all},
		{"filter", []string{"-F", "algo = flowrl and seed > 0"}, []string{"flowrl-a#2", "flowrl-a#1"}},
		{"age", []string{"-F", "created < 2h"}, []string{"grpo-c#0", "ppo-b#1", "ppo-b#0"}},
		{"metric", []string{"-F", "metric.actor/entropy.min < 1.5"}, all[2:]},
		{"evaluation", []string{"-F", "eval.countdown/test.pass@1 > 0.4"}, []string{"flowrl-a#0"}},
		{"result", []string{"-F", "pass@1 > 0.4 and pass@16 < 0.69"}, []string{"flowrl-a#1", "flowrl-a#0"}},
		{"name in the list", []string{"-F", "age < 2h and took >= 0"}, []string{"grpo-c#0", "ppo-b#1", "ppo-b#0"}},
		{"a killed run is interrupted", []string{"-F", "status = interrupted"}, []string{"ppo-b#1"}},
		{"and not running", []string{"-F", "status = running"}, nil},
		{"as a selection too", []string{"status = interrupted"}, []string{"ppo-b#1"}},
		{"name", []string{"ppo-b"}, []string{"ppo-b#1", "ppo-b#0"}},
		{"name and seed", []string{"ppo-b#0"}, []string{"ppo-b#0"}},
		{"several", []string{"flowrl-a#1", "tag:baseline", "@last"}, []string{"grpo-c#0", "flowrl-a#1", "flowrl-a#0"}},
		{"selection and filter", []string{"flowrl-a", "-F", "seed = 2"}, []string{"flowrl-a#2"}},
		{"sorted by seed", []string{"--sort", "seed", "-F", "algo = flowrl"}, []string{"flowrl-a#0", "flowrl-a#1", "flowrl-a#2"}},
		{"descending", []string{"--sort", "-seed", "-n", "3"}, []string{"flowrl-a#2", "ppo-b#1", "flowrl-a#1"}},
		{"by a result, those without last", []string{"--sort", "pass@1"}, []string{"ppo-b#0", "flowrl-a#0", "flowrl-a#1", "flowrl-a#2", "grpo-c#0", "ppo-b#1"}},
		{"by a result, descending, those without last", []string{"--sort", "-pass@1"}, []string{"flowrl-a#2", "flowrl-a#1", "flowrl-a#0", "ppo-b#0", "grpo-c#0", "ppo-b#1"}},
		{"by a metric", []string{"--sort", "metric.critic/score/mean", "-F", "algo != grpo"}, []string{"ppo-b#1", "flowrl-a#0", "flowrl-a#1", "ppo-b#0", "flowrl-a#2"}},
		{"by time", []string{"--sort", "created", "-n", "2"}, []string{"flowrl-a#0", "flowrl-a#1"}},
		{"by the word of the heading", []string{"--sort", "-took", "-n", "1"}, []string{"grpo-c#0"}},
		{"deleted", []string{"--deleted"}, []string{"old#0"}},
		{"limit", []string{"-n", "2"}, all[:2]},
		{"zero is all", []string{"-n", "0"}, all},
		{"all wins", []string{"-n", "2", "--all"}, all},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := listed(t, dir, tt.args...); !slices.Equal(got, tt.want) {
				t.Errorf("got  %q\nwant %q", got, tt.want)
			}
		})
	}
}

func TestLsFromStdin(t *testing.T) {
	dir := fixtureStore(t)
	got := call{now: fixtureNow, stdin: "ppo-b#0\nflowrl-a#1"}.run("ls", "-", "--store", dir, "-o", "csv", "--no-header", "--fields", "name,seed")
	if got.stdout != "ppo-b,0\nflowrl-a,1\n" || got.code != 0 {
		t.Errorf("got %+v", got)
	}
}

func TestLsErrors(t *testing.T) {
	dir := fixtureStore(t)
	tests := []struct {
		args   string
		code   int
		stderr string
	}{
		{"ls flowl-a", 3, "did you mean flowrl-a?"},
		{"ls @running", 3, "nothing is running"},
		{"ls -F 'algo ='", 2, "filter, column 7: expected a value"},
		{"ls --sort statsu", 2, "did you mean status?"},
		{"ls --cols sed", 2, "did you mean seed?"},
		{"ls --group names", 2, "did you mean name?"},
		{"ls --group algo.knd", 2, "no field"},
		{"ls --group status", 2, "--group takes xid, name, algo"},
		{"ls --cols metric.actor/entropi", 0, "warning: no run has recorded metric.actor/entropi; did you mean metric.actor/entropy?"},
		{"ls --cols metric.actor/entropy,eval.test.pass@1", 0, ""},
		{"ls --cols eval.test.pass@3", 0, "no run has recorded eval.test.pass@3; did you mean eval.test.pass@"},
		{"ls 'metric.actor/entropi > 0'", 0, "warning: no run has recorded metric.actor/entropi"},
		{"ls flowrl-a#77", 3, "flowrl-a has no run with seed 77"},
		{"ls foo", 3, "exp ls shows names and ids"},
		{"ls abc", 3, "an id needs at least 4 digits"},
		{"ls -n -1", 2, "it must not be negative"},
		{"ls -F 'config.algo.kinds = x'", 0, "warning: unknown configuration key algo.kinds; did you mean config.algo.kind?"},
		{"ls -F 'status = finished'", 2, "status takes pending, running, done"},
		{"ls 'steps > abc'", 2, `steps takes a number, not "abc"`},
		{"ls -F 'config.train.optim.lr = fast'", 2, `config.train.optim.lr takes a number, not "fast"`},
		{"ls -F 'config.train.optim.lr > 0'", 0, ""},
		{"compare 'config.train.optim.lr = fast'", 2, `config.train.optim.lr takes a number, not "fast"`},
		{"ls --cols algo.flowrl.beta", 2, "did you mean config.algo.flowrl.beta?"},
		{"ls --sort algo.flowrl.beta", 2, "did you mean config.algo.flowrl.beta?"},
		{"ls -F 'algo.flowrl.beta > 1'", 2, "did you mean config.algo.flowrl.beta?"},
		{"ls -F 'actor/entropy > 1'", 2, "did you mean metric.actor/entropy?"},
		{"ls -F 'stats = done'", 2, "did you mean status?"},
		{"ls -F 'pass@1 > high'", 2, "pass@1 takes a number"},
		{"ls -F 'pass@77 > 0.1'", 0, "warning: no run has recorded pass@77"},
		{"ls --cols pass@1,took", 0, ""},
		{"ls --group pass@1", 2, "--group takes xid, name, algo"},
		{"ls --fields nothing", 2, "no field \"nothing\""},
		{"ls -n 1", 0, "5 of 6 runs left out; --all lists all"},
		{"ls nothing", 3, "exp ls shows names and ids"},
	}
	for _, tt := range tests {
		t.Run(tt.args, func(t *testing.T) {
			got := call{now: fixtureNow}.run(append(shellWords(tt.args), "--store", dir)...)
			if got.code != tt.code || !strings.Contains(got.stderr, tt.stderr) {
				t.Errorf("got code %d and stderr %q, want %d and %q", got.code, got.stderr, tt.code, tt.stderr)
			}
		})
	}
	empty := t.TempDir()
	if db, err := store.Open(empty, store.Options{Create: true}); err != nil {
		t.Fatal(err)
	} else {
		db.Close()
	}
	call{}.run("ls", "--store", empty, "--no-header").check(t, 0, "", "the store has no runs yet")
	call{}.run("ls", "--store", empty, "--no-header", "-q").check(t, 0, "")
	deleted := ownSmokeStore(t)
	tamper(t, deleted, `UPDATE runs SET deleted = created`)
	call{}.run("ls", "--store", deleted, "--no-header").check(t, 0, "", "the store has deleted runs only (3 runs): exp ls --deleted")
	call{}.run("show", "smoke", "--store", deleted).check(t, 3, "", "the store has deleted runs only (3 runs): exp ls --deleted")
	none := t.TempDir()
	call{}.run("ls", "--store", none).check(t, 3, "", "no experiment store in "+none, "exp run CONFIG creates it")
	file := filepath.Join(none, "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	call{}.run("ls", "--store", file).check(t, 3, "", "it is a file")
	t.Chdir(none)
	call{}.run("ls").check(t, 3, "", "no experiment store here", "(looked for "+filepath.Join(none, ".exp")+" and above)")
}

// TestLsNarrow: a small terminal keeps names and the columns that were asked for.
func TestLsNarrow(t *testing.T) {
	dir := fixtureStore(t)
	call := fixtureCall(t, 64, false)
	head := func(args ...string) string {
		text := call.run(append([]string{"ls", "--store", dir}, args...)...).stdout
		line, _, _ := strings.Cut(text, "\n")
		return line
	}
	if got := head(); strings.Contains(got, "took") || !strings.Contains(got, "age") {
		t.Errorf("got %q, want it without took", got)
	}
	if got := head("--cols", "config.algo.flowrl.beta"); strings.Contains(got, "took") || !strings.Contains(got, "beta") {
		t.Errorf("got %q, want it with beta in place of took", got)
	}
	if got := head("--cols", "status,model"); strings.Count(got, "status") != 1 || strings.Count(got, "model") != 1 {
		t.Errorf("got %q, want every column once", got)
	}
	for _, args := range [][]string{{"--fields", "run,xid,name,status,device,numerics,wall_s"}, {"-o", "wide"}} {
		if got := head(args...); !strings.Contains(got, "took") {
			t.Errorf("%v: got %q, want all that was asked for", args, got)
		}
	}
}

// TestLsSmoke lists runs that were really executed.
func TestLsSmoke(t *testing.T) {
	dir := smokeStore(t)
	got := call{}.run("ls", "--store", dir, "--json", "--sort", "created", "--cols", "tag")
	var list struct {
		Schema string
		Data   []struct {
			Name, Status, Algo string
			Run, XID           ident.Digest
			Seed, Steps        int64
			Wall               float64   `json:"wall_s"`
			Pass               float64   `json:"pass@1"`
			Tag                []string  `json:"tag"`
			Created            time.Time `json:"created"`
		}
	}
	if err := json.Unmarshal([]byte(got.stdout), &list); err != nil || got.code != 0 {
		t.Fatalf("%v: %+v", err, got)
	}
	if list.Schema != "exp.ls/1" || len(list.Data) != 3 {
		t.Fatalf("got %+v", list)
	}
	a, b, ppo := list.Data[0], list.Data[1], list.Data[2]
	if a.XID != b.XID || a.Run == b.Run || a.Seed != 0 || b.Seed != 1 || ppo.XID == a.XID {
		t.Errorf("identities are wrong: %+v", list.Data)
	}
	if ppo.Name != "smoke-ppo" || ppo.Algo != "ppo" || !slices.Equal(ppo.Tag, []string{"arm"}) {
		t.Errorf("got %+v", ppo)
	}
	for _, r := range list.Data {
		if r.Status != "done" || r.Steps != 4 || r.Wall <= 0 || time.Since(r.Created) > time.Hour {
			t.Errorf("got %+v", r)
		}
	}
}

func TestAge(t *testing.T) {
	tests := map[time.Duration]string{0: "0s", -time.Hour: "0s", 59 * time.Second: "59s", 60 * time.Second: "1m", 59*time.Minute + 59*time.Second: "59m",
		3 * time.Hour: "3h", 24 * time.Hour: "1d", 1000 * time.Hour: "41d"}
	for d, want := range tests {
		if got := quantity.Ago(fixtureNow, fixtureNow.Add(-d)); got != want {
			t.Errorf("age of %v: %q, want %q", d, got, want)
		}
	}
	if got := quantity.Ago(fixtureNow, time.Time{}); got != "" {
		t.Errorf("age of nothing: %q", got)
	}
}

// BenchmarkLs10000 runs the command in this process on a store of 10,000 runs: the default
// list and the full one.
func BenchmarkLs10000(b *testing.B) {
	dir := b.TempDir()
	manyRuns(b, dir, 10_000)
	for _, bench := range []struct {
		name  string
		args  []string
		lines int
	}{
		{"newest50", nil, 51},
		{"all", []string{"--all"}, 10_001},
		{"json", []string{"--json"}, 0},
		{"filter", []string{"-F", "config.train.steps > 10 and metric.loss < 1"}, 51},
		{"sort", []string{"--sort", "-pass@1"}, 51},
		{"group", []string{"--group", "xid"}, 51},
	} {
		b.Run("runs="+bench.name, func(b *testing.B) {
			for b.Loop() {
				got := call{}.run(append([]string{"ls", "--store", dir}, bench.args...)...)
				if n := strings.Count(got.stdout, "\n"); got.code != 0 || bench.lines > 0 && n != bench.lines {
					b.Fatalf("code %d, %d lines: %s", got.code, n, got.stderr)
				}
			}
		})
	}
}

// manyRuns makes a store of n runs, 5 seeds to an experiment, with a result and a
// step each.
func manyRuns(b testing.TB, dir string, n int) {
	db, err := store.Open(dir, store.Options{Create: true})
	if err != nil {
		b.Fatal(err)
	}
	defer db.Close()
	f := builder{t: b, db: db}
	for i := range n {
		r := f.run(fmt.Sprintf("experiment-%d", i/5), "flowrl", int64(i%5), `"flowrl":{"beta":15}`)
		f.headline(r, float64(i%100)/100)
		w := db.NewStepWriter(r.ID, 0, nil)
		f.must(w.Record(store.Step{Det: ident.Det{Step: 1, Metrics: map[string]float64{"loss": 0.5}}, Chain: r.RID}))
		f.must(w.Close())
		a, err := db.BeginAttempt(context.Background(), store.Attempt{Run: r.ID, Kind: store.AttemptRun})
		f.must(err)
		f.must(db.EndAttempt(context.Background(), a.ID, store.Done, 0))
	}
}

// Columns that are asked for fit a terminal of 80 columns: others give way.
func TestLsColsFit(t *testing.T) {
	dir := fixtureStore(t)
	got := call{env: map[string]string{"EXP_FORCE_TTY": "80", "NO_COLOR": "1"}}.run("ls", "--store", dir, "--cols",
		"config.algo.flowrl.beta,metric.critic/score/mean,eval.test.pass@1,config.train.steps")
	got.succeeds(t)
	first, _, _ := strings.Cut(got.stdout, "\n")
	for _, word := range []string{"run ", "name ", "beta ", " mean", " steps"} {
		if !strings.Contains(first+" ", word) {
			t.Errorf("no column %q: %s", word, first)
		}
	}
	for line := range strings.Lines(got.stdout) {
		if utf8.RuneCountInString(line) > 81 {
			t.Errorf("%q is wider than 80 columns", line)
		}
	}
}
