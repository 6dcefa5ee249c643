package compare

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"testing"
	"time"

	"exp/eval"
	"exp/experiments/ident"
	"exp/experiments/store"
)

// fixture is a store that a test fills.
type fixture struct {
	t  testing.TB
	db *store.DB
}

func newFixture(t testing.TB) *fixture {
	t.Helper()
	now := time.Date(2026, 3, 10, 12, 0, 0, 0, time.UTC)
	db, err := store.Open(t.TempDir(), store.Options{Create: true, Clock: func() time.Time {
		now = now.Add(time.Second)
		return now
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return &fixture{t, db}
}

func (f *fixture) must(err error) {
	f.t.Helper()
	if err != nil {
		f.t.Fatal(err)
	}
}

// fakeRun is a run with what a test wants of it; the rest is as in plainRun.
type fakeRun struct {
	name, algo string
	xid        string // "" is name
	seed       int64
	status     store.Status
	numerics   string
	config     map[string]string      // JSON of keys, over plainRun's
	code       map[string]string      // by stage kind; "c" where nothing is said
	weights    string                 // that training began with
	outside    map[string]string      // further inputs of training, by role
	rated      bool                   // it has chosen problems by their pass rates
	protocol   map[string]string      // JSON of eval.final keys
	examples   string                 // that evaluations show; "" for none
	suites     map[string][]eval.Item // by label, "test" or "test@start"
	extra      map[string]float64
}

func plainRun(name, algo string, seed int64, items ...eval.Item) fakeRun {
	return fakeRun{name: name, algo: algo, seed: seed, status: store.Done, numerics: "cpu/fma", weights: "w",
		protocol: map[string]string{"eval.final.n": "2", "eval.final.temperature": "1"}, suites: map[string][]eval.Item{"test": items}}
}

func digest(text string) ident.Digest { return ident.Sum([]byte(text)) }

// put records a run.
func (f *fixture) put(r fakeRun) store.Run {
	f.t.Helper()
	ctx := context.Background()
	xid := r.xid
	if xid == "" {
		xid = r.name
	}
	text := r.configJSON()
	run, _, err := f.db.EnsureRun(ctx, store.NewRun{RID: digest(fmt.Sprint("rid", xid, r.seed, r.numerics)), XID: digest("xid" + xid), Name: r.name,
		Task: "countdown", Algo: r.algo, Model: "2x32", Seed: r.seed, Numerics: r.numerics, StepsTotal: 4,
		Config: store.Config{Digest: digest(text), JSON: text}})
	f.must(err)
	a, err := f.db.BeginAttempt(ctx, store.Attempt{Run: run.ID, Kind: store.AttemptRun, Device: "cpu/test"})
	f.must(err)
	f.stage(r, run, store.Stage{Kind: "prepare"}, 1, nil, nil)
	if r.rated {
		f.stage(r, run, store.Stage{Kind: "pass_rate"}, 1, nil, nil)
		f.stage(r, run, store.Stage{Kind: "select"}, 1, nil, nil)
	}
	inputs := []store.IO{{Role: "weights", Digest: digest(r.weights)}, {Role: "problems/train", Digest: digest("p")}}
	for role, text := range r.outside {
		inputs = append(inputs, store.IO{Role: role, Digest: digest(text)})
	}
	f.stage(r, run, store.Stage{Kind: "train", Inputs: inputs}, 2, nil, nil)
	for _, label := range sortedKeys(r.suites) {
		f.evaluate(r, run, label)
	}
	if r.status != store.Running {
		f.must(f.db.EndAttempt(ctx, a.ID, r.status, 0))
	}
	run, err = f.db.RunByID(ctx, run.ID)
	f.must(err)
	return run
}

// configJSON is the run's configuration, nested.
func (r *fakeRun) configJSON() string {
	flat := map[string]string{"name": quote(r.name), "algo.kind": quote(r.algo), "train.steps": "4", "train.optim.lr": "0.001", "compare.vary": `["algo"]`,
		"compare.min_seeds": "3", "eval.final.n": "2"}
	switch r.algo {
	case "flowrl":
		flat["algo.flowrl.beta"] = "15"
	case "ppo":
		flat["algo.gamma"] = "1"
	}
	for k, v := range r.config {
		flat[k] = v
	}
	return nested(flat)
}

func quote(s string) string { b, _ := json.Marshal(s); return string(b) }

// nested turns JSON values by dotted path into nested JSON.
func nested(flat map[string]string) string {
	root := map[string]any{}
	for path, text := range flat {
		m := root
		parts := splitPath(path)
		for _, p := range parts[:len(parts)-1] {
			if m[p] == nil {
				m[p] = map[string]any{}
			}
			m = m[p].(map[string]any)
		}
		m[parts[len(parts)-1]] = json.RawMessage(text)
	}
	b, err := json.Marshal(root)
	if err != nil {
		panic(err)
	}
	return string(b)
}

func splitPath(path string) (parts []string) {
	for at := 0; ; {
		i := at
		for i < len(path) && path[i] != '.' {
			i++
		}
		parts = append(parts, path[at:i])
		if i == len(path) {
			return parts
		}
		at = i + 1
	}
}

func (f *fixture) stage(r fakeRun, run store.Run, s store.Stage, wall float64, out []store.IO, evals []store.Eval) store.Stage {
	f.t.Helper()
	ctx := context.Background()
	code := r.code[s.Kind]
	if code == "" {
		code = "c"
	}
	s.Run, s.Code = run.ID, digest(code+s.Kind)
	s.SID = digest(fmt.Sprint(run.RID, s.Kind, s.Label, string(s.Params), r.examples))
	st, err := f.db.BeginStage(ctx, s)
	f.must(err)
	f.must(f.db.FinishStage(ctx, st.ID, out, store.StageResult{WallS: wall}, evals))
	return st
}

// evaluate records a suite's evaluation with the metrics of its problems.
func (f *fixture) evaluate(r fakeRun, run store.Run, label string) {
	f.t.Helper()
	params := map[string]any{}
	for k, v := range r.protocol {
		params[k] = json.RawMessage(v)
	}
	text, err := json.Marshal(params)
	f.must(err)
	var inputs []store.IO
	if r.examples != "" {
		inputs = append(inputs, store.IO{Role: "examples", Digest: digest(r.examples)})
	}
	gen := f.stage(r, run, store.Stage{Kind: "eval.gen", Label: label, Params: text, Inputs: inputs}, 0.5, nil, nil)

	items := r.suites[label]
	blob, err := json.Marshal(scores{Items: items})
	f.must(err)
	d, err := f.db.Blobs.PutBytes(blob)
	f.must(err)
	suite := store.Suite{Digest: digest("suite" + label), Name: "countdown/" + label}
	for _, it := range items {
		suite.Items = append(suite.Items, store.Item{ID: it.ProblemID, Cluster: it.Cluster, Difficulty: math.NaN()})
	}
	id, err := f.db.EnsureSuite(context.Background(), suite)
	f.must(err)
	var evals []store.Eval
	add := func(name string, v float64) {
		evals = append(evals, store.Eval{StageGen: gen.ID, Suite: id, Protocol: digest(string(text) + r.examples),
			N: int64(items[0].Samples), Metric: name, Value: v,
			SE: math.NaN(), Lo: math.NaN(), Hi: math.NaN()})
	}
	for _, d := range definitions([]int{1, 2}) {
		if run.Foreign() != "" && d.K == 0 {
			continue // imported
		}
		if len(items) > 0 && items[0].Belief != nil && eval.OfSamples(d.Name) {
			continue // options were compared
		}
		if mean := meanOf(valuesOf(d, items)); !math.IsNaN(mean) {
			add(d.Name, mean)
		}
	}
	for _, name := range sortedKeys(r.extra) {
		add(name, r.extra[name])
	}
	out := []store.IO{{Role: "scores", Digest: d, Size: int64(len(blob)), Kind: "scores"}}
	if math.IsNaN(r.extra["no scores"]) {
		out = nil
	}
	f.stage(r, run, store.Stage{Kind: "eval.score", Label: label, Params: text}, 0.25, out, evals)
}

// answers makes problems with two samples each, correct of them right, all with different
// answers.
func answers(correct ...int) []eval.Item {
	var items []eval.Item
	for i, c := range correct {
		items = append(items, eval.Item{ProblemID: fmt.Sprintf("p%d", i), Samples: 2, Graded: 2, Correct: c, Formatted: 2, DistinctCorrect: c, DistinctAnswers: 2,
			AnswerEntropy: math.Ln2, Reward: float64(c), Tokens: 10 + c, TokenEntropy: 5})
	}
	return items
}

// compareRuns compares arms given as lists of runs.
func (f *fixture) compareRuns(o Options, arms ...[]store.Run) (*Result, error) {
	list := make([]Arm, len(arms))
	for i := range arms {
		list[i].Runs = arms[i]
	}
	return Compare(context.Background(), f.db, list, o)
}

// near fails unless got is want to 1e-6.
func near(t *testing.T, what string, got *float64, want float64) {
	t.Helper()
	if got == nil {
		t.Errorf("%s is not known, want %g", what, want)
	} else if math.Abs(*got-want) > 1e-6 {
		t.Errorf("%s is %g, want %g", what, *got, want)
	}
}
