package main

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"exp/cmd/exp/cli"
	"exp/cmd/exp/term"
	"exp/experiments/store"
	"exp/harness/metric"
	"exp/reports/compare"
)

// comparisonStore is a store whose every number is fixed: countdown-flowrl and
// countdown-ppo with three finished seeds each; flowrl gets more right and
// in more ways, a fourth of ppo that was interrupted, and countdown-grpo with one
// seed and another learning rate.
func comparisonStore(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	now := fixtureNow
	db, err := store.Open(dir, store.Options{Create: true, Clock: func() time.Time {
		now = now.Add(time.Second)
		return now
	}})
	if err != nil {
		t.Fatal(err)
	}
	b := builder{t: t, db: db}
	for seed := range int64(3) {
		b.scored(b.run("countdown-flowrl", "flowrl", seed, `"flowrl":{"beta":15}`), 0.45)
		b.scored(b.run("countdown-ppo", "ppo", seed, `"gamma":1`), 0.3)
	}
	b.scored(b.run("countdown-grpo", "grpo", 0, `"grpo":{"scale_std":true},"epochs":2`), 0.35)
	stopped := b.run("countdown-ppo", "ppo", 3, `"gamma":1`)
	b.attempt(stopped, store.Interrupted)
	b.steps(stopped, 12, 0)
	b.must(db.Close())
	return dir
}

// scored gives a run everything that a comparison reads: stages, steps, and evaluations
// before and after training with 60 problems and 8 samples each. A share of about right
// is correct.
func (b builder) scored(r store.Run, right float64) {
	b.t.Helper()
	a, err := b.db.BeginAttempt(b.ctx(), store.Attempt{Run: r.ID, Kind: store.AttemptRun, Device: "cpu/avx512"})
	b.must(err)
	problems, weights := b.blob("problems/train", "problems"), b.blob("weights", "fine-tuned")
	b.fresh(r, "prepare", "", nil, nil)
	b.fresh(r, "sft", "", nil, nil)
	b.steps(r, 20, 0)
	b.fresh(r, "train", "", nil, nil, problems, weights)
	b.fresh(r, "merge", "", nil, nil)
	b.fixedScores(r, "test@start", 0.15, 99)
	b.fixedScores(r, "test", right, uint64(r.ID))
	b.must(b.db.EndAttempt(b.ctx(), a.ID, store.Done, 0))
}

// fresh is a stage of this run alone.
func (b builder) fresh(r store.Run, kind, label string, out []store.IO, evals []store.Eval, in ...store.IO) {
	b.t.Helper()
	st, err := b.db.BeginStage(b.ctx(), store.Stage{SID: digestOf(fmt.Sprint(r.ID, kind, label)), Run: r.ID, Kind: kind, Label: label,
		Params: json.RawMessage(`{"eval.final.n":8,"eval.final.temperature":1}`), Code: digestOf("code " + kind), Inputs: in})
	b.must(err)
	b.must(b.db.FinishStage(b.ctx(), st.ID, out, store.StageResult{WallS: 12.5}, evals))
}

// fixedScores records an evaluation whose numbers follow from the seed.
func (b builder) fixedScores(r store.Run, label string, right float64, seed uint64) {
	b.t.Helper()
	rng := rand.New(rand.NewPCG(seed, 7))
	suite := store.Suite{Digest: digestOf("suite " + label), Name: "countdown/" + label}
	var items []string
	var pass1 float64
	for i := range 60 {
		hard := float64(i%5) / 10 // problems differ in the same way for all runs
		correct, distinct := 0, 0
		for range 8 {
			if rng.Float64() < right+0.2-hard {
				correct++
				if rng.Float64() < right {
					distinct++
				}
			}
		}
		if correct > 0 {
			distinct = max(distinct, 1)
		}
		pass1 += float64(correct) / 8 / 60
		items = append(items, fmt.Sprintf(`{"problem":"p%02d","samples":8,"n":8,"c":%d,"formatted":8,"distinct_correct":%d,"distinct_answers":%d,`+
			`"answer_entropy":%.3f,"reward":%d,"tokens":%d,"token_entropy":40}`, i, correct, distinct, 8-correct/2, 2-float64(correct)/5, correct, 150+rng.IntN(40)))
		suite.Items = append(suite.Items, store.Item{ID: fmt.Sprintf("p%02d", i), Difficulty: math.NaN()})
	}
	id, err := b.db.EnsureSuite(b.ctx(), suite)
	b.must(err)
	var evals []store.Eval
	for _, k := range []int{1, 2, 4, 8} {
		evals = append(evals, store.Eval{Suite: id, Protocol: digestOf("protocol"), N: 8, Metric: fmt.Sprintf("pass@%d", k), Value: pass1, SE: math.NaN(), Lo: math.NaN(), Hi: math.NaN()})
	}
	b.fresh(r, "eval.gen", label, nil, nil)
	b.fresh(r, "eval.score", label, []store.IO{b.blob("scores", `{"items":[`+strings.Join(items, ",\n")+`],"metrics":[]}`)}, evals)
}

func TestCompareGolden(t *testing.T) {
	dir := comparisonStore(t)
	exp := call{env: map[string]string{"EXP_FORCE_TTY": "100", "NO_COLOR": "1"}}
	for _, test := range []struct {
		golden string // testdata
		code   cli.ExitCode
		args   string
	}{
		{"compare_two_arms", cli.ExitOK, "countdown-flowrl countdown-ppo"},
		{"compare_three_arms", cli.ExitOK, "countdown-flowrl countdown-grpo --vs countdown-ppo --metric pass@1 --metric distinct_correct --boot 500"},
		{"compare_waived", cli.ExitOK, "countdown-flowrl countdown-ppo --metric pass@1 --allow train.steps"},
		{"compare_condition", cli.ExitCondition, "countdown-ppo countdown-flowrl --metric pass@1 --fail-if 'delta(test) < -0.01 and p < 0.05'"},
		{"compare_bad_condition", cli.ExitUsage, "countdown-ppo countdown-flowrl --fail-if 'delta(test) < '"},
		{"compare_unknown_suite", cli.ExitUsage, "countdown-ppo countdown-flowrl --suite math"},
	} {
		got := exp.run(append([]string{"compare", "--store", dir}, fieldsOf(test.args)...)...)
		if got.code != int(test.code) {
			t.Errorf("%s: exit code %d, want %d", test.golden, got.code, test.code)
		}
		golden(t, test.golden, got.stdout+"--- stderr\n"+got.stderr)
		for line := range strings.Lines(got.stdout) {
			if n := len([]rune(strings.TrimRight(line, "\n"))); n > 100 {
				t.Errorf("%s: a line of %d columns: %s", test.golden, n, line)
			}
		}
	}
}

// fieldsOf splits a command line; 'single quotes' hold a word together.
func fieldsOf(line string) []string {
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

// comparedSmoke is a store with three seeds of the smoke recipe by flowrl and by
// ppo, and one of ppo with another learning rate; once for all tests, which must not
// change it.
func comparedSmoke(t *testing.T) string {
	t.Helper()
	comparedOnce.Do(func() {
		dir := filepath.Join(smokeStore(t), "compared") // which is removed at the end
		for _, args := range []string{"--seeds 0-2 --set name=smoke-flowrl", "--seeds 0-2 --set algo.kind=ppo --set name=smoke-ppo",
			"--seeds 0-2 --set algo.kind=ppo --set name=smoke-fast --set train.optim.lr=2e-3"} {
			args := append([]string{"run", filepath.Join("..", "..", "configs", "smoke_cpu.yaml"), "--store", dir, "-q"}, strings.Fields(args)...)
			if got := (call{}).run(args...); got.code != 0 {
				t.Fatalf("exp %s: exit code %d: %s", strings.Join(args, " "), got.code, got.stderr)
			}
		}
		comparedDir = dir
	})
	return comparedDir
}

var (
	comparedOnce sync.Once
	comparedDir  string
)

// envelopeOf reads the JSON of a comparison.
func envelopeOf(t *testing.T, text string) (e struct {
	Schema string `json:"schema"`
	Data   struct {
		Arms []struct {
			Label string `json:"label"`
			Runs  []struct {
				Seed int64 `json:"seed"`
			} `json:"runs"`
		} `json:"arms"`
		Comparability struct {
			OK          bool `json:"ok"`
			Differences []struct {
				Key, Class string
				Values     []string
			} `json:"differences"`
		} `json:"comparability"`
		Suites []struct {
			Suite   string `json:"suite"`
			Items   int    `json:"items"`
			Metrics []struct {
				Metric string `json:"metric"`
				ByRun  bool   `json:"by_run"`
				Arms   []struct {
					Seeds []struct {
						RID   string  `json:"run"`
						Value float64 `json:"value"`
					} `json:"seeds"`
					Start *float64 `json:"start"`
				} `json:"arms"`
			} `json:"metrics"`
		} `json:"suites"`
	} `json:"data"`
}) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &e); err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	return e
}

// End to end: six runs, a comparison, and every run's value equal to the recorded one.
// Distances in nats keep two digits where others round to zero.
func TestFormatted(t *testing.T) {
	nats, share := &compare.Metric{Unit: metric.Nats}, &compare.Metric{Unit: metric.Share}
	for _, tt := range []struct {
		m    *compare.Metric
		v    float64
		sign bool
		want string
	}{
		{nats, 4.16, false, "4.16"}, {nats, 1.9e-5, false, "1.9e-05"}, {nats, 1.9e-5, true, "+1.9e-05"},
		{nats, -1.9e-5, true, "-1.9e-05"}, {nats, 0, true, "0.00"}, {nats, 0.005, true, "+0.01"}, {nats, 2, true, "+2.00"},
		{share, 1.9e-5, true, "0.000"}, {share, -0.02, true, "-0.020"},
	} {
		if got := formatted(tt.m, tt.v, tt.sign); got != tt.want {
			t.Errorf("%g %s: %q, want %q", tt.v, tt.m.Unit, got, tt.want)
		}
	}
}

func TestCompareSmoke(t *testing.T) {
	dir := comparedSmoke(t)
	exp := call{}
	got := exp.run("compare", "smoke-flowrl", "smoke-ppo", "--json", "--store", dir)
	if got.code != 0 || got.stderr != "" {
		t.Fatalf("exit code %d: %s", got.code, got.stderr)
	}
	e := envelopeOf(t, got.stdout)
	if e.Schema != "exp.compare/1" || !e.Data.Comparability.OK || len(e.Data.Arms) != 2 || len(e.Data.Arms[1].Runs) != 3 || len(e.Data.Suites) != 1 {
		t.Fatalf("comparison %+v", e)
	}
	for _, d := range e.Data.Comparability.Differences {
		if d.Class != "treatment" || !strings.HasPrefix(d.Key, "algo.") {
			t.Errorf("%s differs (%s): the child recipe changes the algorithm alone", d.Key, d.Class)
		}
	}
	recorded := recordedMetrics(t, dir)
	compared := 0
	for _, m := range e.Data.Suites[0].Metrics {
		for _, arm := range m.Arms {
			for _, s := range arm.Seeds {
				want, ok := recorded[s.RID][m.Metric]
				if !ok || want != s.Value {
					t.Errorf("%s of run %.8s: %v, recorded %v", m.Metric, s.RID, s.Value, want)
				}
				compared++
			}
			if arm.Start == nil {
				t.Errorf("%s has no score before training", m.Metric)
			}
		}
	}
	if len(recorded) == 0 || compared < 14*6 {
		t.Errorf("%d values of %d runs compared", compared, len(recorded))
	}
	if again := exp.run("compare", "smoke-flowrl", "smoke-ppo", "--json", "--store", dir); again.stdout != got.stdout {
		t.Error("the same runs give other bytes a second time")
	}
	// Single runs, in any order, are the same arms.
	if split := exp.run("compare", "smoke-flowrl#2", "smoke-ppo", "smoke-flowrl#0", "smoke-flowrl#1", "--json", "--store", dir); split.stdout != got.stdout {
		t.Error("runs that are named one by one give other arms")
	}
}

// recordedMetrics holds what evaluations after training recorded, by run and metric.
func recordedMetrics(t *testing.T, dir string) map[string]map[string]float64 {
	t.Helper()
	db, err := store.Open(dir, store.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	runs, err := db.Runs(t.Context(), store.RunQuery{})
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]map[string]float64{}
	for _, r := range runs {
		evals, err := db.Evals(t.Context(), r.ID)
		if err != nil {
			t.Fatal(err)
		}
		all[r.RID.String()] = map[string]float64{}
		for _, e := range evals {
			if e.SuiteName == "countdown/test" {
				all[r.RID.String()][e.Metric] = e.Value
			}
		}
	}
	return all
}

// Long names of arms wrap, so arms that begin alike can be told apart.
func TestCompareLongNames(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	if err := os.CopyFS(dir, os.DirFS(smokeStore(t))); err != nil {
		t.Fatal(err)
	}
	if _, err := openRaw(t, dir).Exec(`UPDATE runs SET name = 'the-common-beginning-of-names-' || algo`); err != nil {
		t.Fatal(err)
	}
	got := call{env: map[string]string{"EXP_FORCE_TTY": "60", "NO_COLOR": "1"}}.run("compare",
		"the-common-beginning-of-names-flowrl", "--vs", "the-common-beginning-of-names-ppo", "--store", dir)
	_, cost, _ := strings.Cut(got.stdout, "cost of a run")
	if got.code != 0 || strings.Contains(cost, "…") || !strings.Contains(cost, "flowrl") || !strings.Contains(cost, "ppo") {
		t.Errorf("exit code %d, the arms' names are cut:\n%s%s", got.code, got.stdout, got.stderr)
	}
}

// The legend wraps at the terminal's width.
func TestCompareLegendWraps(t *testing.T) {
	got := call{env: map[string]string{"EXP_FORCE_TTY": "60", "NO_COLOR": "1"}}.
		run("compare", "--store", comparedSmoke(t), "smoke-flowrl", "smoke-ppo")
	_, legend, ok := strings.Cut(got.stdout, "± reaches")
	if !ok {
		t.Fatalf("no legend in %q", got.stdout)
	}
	legend, _, _ = strings.Cut("± reaches"+legend, "\n\n")
	lines := strings.Split(legend, "\n")
	if len(lines) < 2 || utf8.RuneCountInString(lines[0]) > 60 || utf8.RuneCountInString(lines[1]) > 60 {
		t.Errorf("%q does not wrap at 60 columns", lines)
	}
}

// A refusal names the runs of its arms that do not count.
func TestRefusalNamesExcluded(t *testing.T) {
	e := &compare.NotComparableError{Arms: []compare.ArmResult{{Label: "flow"}, {Label: "ppo"}}, Comparability: compare.Comparability{
		Differences: []compare.Difference{{Key: "train.steps", Class: compare.Controlled, Values: []string{"1", "2"}}},
		Excluded:    []compare.Excluded{{Run: compare.Run{RID: "0123456789ab", Seed: 3}, Arm: 1, Reason: "stopped at step 1 of 2"}}}}
	const notCounted = "\n  not counted: run 01234567 (ppo, seed 3): stopped at step 1 of 2\n"
	if text := refusalText(e, term.Layout{Width: 100}); !strings.Contains(text, notCounted) {
		t.Error(text)
	}
}

func TestCompareRefused(t *testing.T) {
	dir := comparedSmoke(t)
	got := call{}.run("compare", "smoke-flowrl", "smoke-fast", "--store", dir)
	got.check(t, int(cli.ExitNotComparable), "", "error: arms are not comparable (exit 6)\n",
		"  key               smoke-flowrl  smoke-fast  class\n",
		"  train.optim.lr    0.001         0.002       controlled  --allow train.optim.lr\n",
		"  algo.kind         flowrl        ppo         treatment   ok\n", "--vary KEY makes a key part of the treatment")

	got = call{}.run("compare", "smoke-flowrl", "smoke-fast", "--store", dir, "--json")
	e := envelopeOf(t, got.stdout)
	if got.code != int(cli.ExitNotComparable) || e.Schema != "exp.compare/1" || e.Data.Comparability.OK || len(e.Data.Suites) != 0 {
		t.Errorf("exit code %d, %+v", got.code, e)
	}
	for _, want := range []string{`"schema":"exp.error/1"`, `"code":6`, `"kind":"not_comparable"`, `"id":"train.optim.lr"`, "--allow train.optim.lr"} {
		if !strings.Contains(got.stderr, want) {
			t.Errorf("stderr %s lacks %s", got.stderr, want)
		}
	}
	for _, args := range []string{"--vary train.optim.lr", "--allow train.optim.lr"} {
		got := call{}.run(append([]string{"compare", "smoke-flowrl", "smoke-fast", "--store", dir}, strings.Fields(args)...)...)
		if got.code != 0 || !strings.Contains(got.stdout, "train.optim.lr") {
			t.Errorf("%s: exit code %d, and every output says what was waived or varied: %s%s", args, got.code, got.stdout, got.stderr)
		}
	}
}

func TestCompareArms(t *testing.T) {
	dir := comparedSmoke(t)
	for _, test := range []struct{ args, want string }{
		{"'name ~ smoke-*' --vary train.optim.lr", "smoke-fast smoke-flowrl smoke-ppo"},
		{"'name ~ smoke-*' --vary train.optim.lr --vs smoke-ppo", "smoke-fast smoke-flowrl smoke-ppo"},
		{"'name ~ smoke-*' --by train.optim.lr --vs smoke-flowrl", "lr=0.001 lr=0.002 smoke-flowrl"},
		{"smoke-ppo smoke-flowrl", "smoke-ppo smoke-flowrl"},
	} {
		got := call{}.run(append([]string{"compare", "--json", "--store", dir}, fieldsOf(test.args)...)...)
		if got.code != 0 {
			t.Errorf("%s: exit code %d: %s", test.args, got.code, got.stderr)
			continue
		}
		var labels []string
		for _, a := range envelopeOf(t, got.stdout).Data.Arms {
			labels = append(labels, a.Label)
		}
		if strings.Join(labels, " ") != test.want {
			t.Errorf("%s: arms %q, want %q", test.args, labels, test.want)
		}
	}
	for _, test := range []struct {
		args string
		code cli.ExitCode
		want string
	}{
		{"", cli.ExitUsage, "no runs given"},
		{"smoke-ppo", cli.ExitUsage, "smoke-ppo is the only one"},
		{"smoke-ppo smoke-nothing", cli.ExitNotFound, "smoke-nothing"},
		{"'name = x' smoke-ppo", cli.ExitNotFound, "selects no runs"},
		{"smoke-ppo --vs 'name = x'", cli.ExitNotFound, "selects no runs"},
		{"smoke-ppo --vs smoke-ppo", cli.ExitUsage, "selects all runs that are named"},
		{"smoke-ppo smoke-flowrl --alpha 0", cli.ExitUsage, "--alpha must be above 0"},
		{"smoke-ppo smoke-flowrl --boot 0", cli.ExitUsage, "--boot must be above 0"},
		{"smoke-ppo smoke-flowrl --k 2,x", cli.ExitUsage, `"x" is not a number`},
		{"smoke-ppo smoke-flowrl --k 99", cli.ExitUsage, "exceeds the 4 samples"},
	} {
		got := call{}.run(append([]string{"compare", "--store", dir}, fieldsOf(test.args)...)...)
		got.check(t, int(test.code), "", test.want)
	}
}

func TestCompareFormats(t *testing.T) {
	dir := comparedSmoke(t)
	for format, want := range map[string]string{
		"md":    "| suite | metric | arm a | arm b |",
		"csv":   "suite,metric,arm_a,arm_b,mean_a,mean_b,delta,lo,hi,p,p_holm,mde,effect,verdict\ncountdown/test,pass@1,smoke-flowrl,smoke-ppo,",
		"jsonl": `{"arms":[{"label":"smoke-flowrl"`,
		"yaml":  "schema: exp.compare/1",
	} {
		got := call{}.run("compare", "smoke-flowrl", "smoke-ppo", "--store", dir, "-o", format)
		if got.code != 0 || !strings.HasPrefix(got.stdout, want) {
			t.Errorf("-o %s: exit code %d: %.200s", format, got.code, got.stdout)
		}
	}
}

func TestCompareForPapers(t *testing.T) {
	e := exp(t, "compare", "smoke", "--vs", "smoke-ppo", "--store", smokeStore(t), "-o", "latex")
	e.says(t, `\begin{tabular}`, "\n    smoke & $", "\n    smoke-ppo & $", `\bottomrule`)
	e = exp(t, "compare", "smoke", "--vs", "smoke-ppo", "--store", smokeStore(t), "-o", "typst")
	e.says(t, "#figure(", "\n    [smoke], [", "\n    [smoke\\-ppo], [", "<tab-smoke-smoke-ppo-1>")
	exp(t, "ls", "--store", smokeStore(t), "-o", "latex").refuses(t, 2, `--output is "latex"`)
}

// Of many pairs, those with the first arm and those with a difference get a table.
func TestCompareTablesOfManyPairs(t *testing.T) {
	m := &compare.Metric{Name: "pass@1", Tested: true}
	for a := range 5 {
		for b := a + 1; b < 5; b++ {
			m.Pairs = append(m.Pairs, compare.Pair{A: a, B: b, Verdict: compare.NoDifference})
		}
	}
	m.Pairs[5].Verdict, m.Pairs[6].Verdict = compare.Worse, compare.Underpowered
	var tabled []int
	p := &comparePage{}
	for i := range m.Pairs {
		if p.tabled([]*compare.Metric{m}, i) {
			tabled = append(tabled, i)
		}
	}
	if !slices.Equal(tabled, []int{0, 1, 2, 3, 5}) {
		t.Errorf("tables of pairs %v", tabled)
	}
	m.Pairs = m.Pairs[:mostPairs]
	if !p.tabled([]*compare.Metric{m}, 4) {
		t.Error("few pairs have all tables")
	}
}

// One key more than those that are listed is not 1 more keys.
func TestTreatmentLine(t *testing.T) {
	r := &compare.Result{Arms: make([]compare.ArmResult, 2)}
	r.Comparability.Differences = []compare.Difference{
		{Key: "algo.kind", Class: compare.Treatment, Values: []string{"grpo", "rloo"}},
		{Key: "algo.scale_std", Class: compare.Treatment, Values: []string{"true", ""}}}
	if got, want := (&comparePage{r: r}).treatment(), "algo.kind grpo | rloo, 1 more key"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
