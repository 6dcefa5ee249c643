package differ

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"exp/experiments/ident"
	"exp/experiments/store"
	"exp/harness/config"
)

func digest(text string) ident.Digest { return ident.Sum([]byte(text)) }

// house is a store under construction.
type house struct {
	*testing.T
	db  *store.DB
	ctx context.Context
}

func newHouse(t *testing.T) *house {
	t.Helper()
	db, err := store.Open(t.TempDir(), store.Options{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return &house{t, db, context.Background()}
}

func (h *house) must(err error) {
	h.Helper()
	if err != nil {
		h.Fatal(err)
	}
}

func (h *house) run(name string, seed int64, configuration string) store.Run {
	h.Helper()
	return h.runFrom(name, seed, configuration, "")
}

// runFrom adds a run whose configuration has the given origins.
func (h *house) runFrom(name string, seed int64, configuration, origins string) store.Run {
	h.Helper()
	r, _, err := h.db.EnsureRun(h.ctx, store.NewRun{RID: digest(fmt.Sprint(name, seed)), XID: digest(name),
		Name: name, Seed: seed, Numerics: "cpu/fma",
		Config: store.Config{Digest: digest(configuration), JSON: configuration, Origins: origins}})
	h.must(err)
	return r
}

func (h *house) attempt(r store.Run, host, env string) {
	h.Helper()
	a, err := h.db.BeginAttempt(h.ctx, store.Attempt{Run: r.ID, Kind: store.AttemptRun, Host: host,
		Env: json.RawMessage(env)})
	h.must(err)
	h.must(h.db.EndAttempt(h.ctx, a.ID, store.Done, 0))
}

// stage records a finished stage; its inputs and outputs are role=text.
func (h *house) stage(r store.Run, kind, code string, in, out []string) {
	h.Helper()
	ios := func(list []string) (ios []store.IO) {
		for _, text := range list {
			role, text, _ := strings.Cut(text, "=")
			d, err := h.db.Blobs.PutBytes([]byte(text))
			h.must(err)
			ios = append(ios, store.IO{Role: role, Digest: d, Size: int64(len(text)), Kind: "text"})
		}
		return ios
	}
	s, err := h.db.BeginStage(h.ctx, store.Stage{SID: digest(fmt.Sprint(r.ID, kind)), Run: r.ID, Kind: kind,
		Code: digest(code), Inputs: ios(in)})
	h.must(err)
	h.must(h.db.FinishStage(h.ctx, s.ID, ios(out), store.StageResult{}, nil))
}

func (h *house) steps(r store.Run, list ...ident.Det) {
	h.Helper()
	w := h.db.NewStepWriter(r.ID, 0, nil)
	for i, d := range list {
		d.Step = int64(i + 1)
		h.must(w.Record(store.Step{Det: d, Chain: digest(fmt.Sprint(r.ID, i))}))
	}
	h.must(w.Close())
}

func (h *house) diff(a, b store.Run, p Parts) *Diff {
	h.Helper()
	d, err := Runs(h.ctx, h.db, a, b, Options{Parts: p, Lines: true, EnvText: func(_ string,
		v any) string {
		return fmt.Sprint(v)
	}})
	h.must(err)
	return d
}

func (h *house) same(what string, got, want any) {
	h.Helper()
	if d := cmp.Diff(want, got); d != "" {
		h.Errorf("%s (-want +got):\n%s", what, d)
	}
}

func TestConfig(t *testing.T) {
	h := newHouse(t)
	a := h.runFrom("a", 0, `{"name":"a","seed":0,"algo":{"kind":"ppo","gamma":1,"lambda":0.9,"epochs":1},
		"train":{"steps":4},"odd":{"key":[1]},"compare":{"vary":["algo"]}}`,
		`{"algo.gamma":"default","algo.lambda":"a.yaml:1:2","algo.epochs":"default (algo.kind)"}`)
	b := h.runFrom("b", 1, `{"name":"b","seed":5,"algo":{"kind":"grpo","epochs":2},"train":{"steps":5},
		"compare":{"vary":["algo","train"]},"odd":{"null":null}}`, `{"algo.epochs":"default (algo.kind)"}`)
	h.same("changes", h.diff(a, b, Parts{Config: true}).Config, []ConfigChange{
		{Key: "seed", A: int64(0), B: int64(1), Class: config.Replication, Set: true}, // of the runs
		{Key: "name", A: "a", B: "b", Class: config.Free, Set: true},
		{Key: "algo.kind", A: "ppo", B: "grpo", Class: config.Treatment, Set: true},
		{Key: "algo.epochs", A: 1.0, B: 2.0, Class: config.Treatment},
		{Key: "algo.gamma", A: 1.0, Class: config.Treatment, Only: "a"},
		{Key: "algo.lambda", A: 0.9, Class: config.Treatment, Set: true, Only: "a"},
		{Key: "train.steps", A: 4.0, B: 5.0, Class: config.Controlled, Set: true}, // only one varies train
		{Key: "compare.vary", A: []any{"algo"}, B: []any{"algo", "train"}, Class: config.Free, Set: true},
		{Key: "odd.key", A: []any{1.0}, Class: config.Free, Set: true, Only: "a"},
		{Key: "odd.null", Class: config.Free, Set: true, Only: "b"},
	})
}

func TestCode(t *testing.T) {
	h := newHouse(t)
	for code, tree := range map[string]fstest.MapFS{
		"1": {"a.go": {Data: []byte("one\ntwo\n")}, "gone.go": {Data: []byte("gone\n")}},
		"2": {"a.go": {Data: []byte("one\n2\n")}, "new.go": {Data: []byte("new\n")}},
	} {
		archive, size, err := h.db.Blobs.PutTree(tree, slices.Sorted(maps.Keys(tree)))
		h.must(err)
		s := store.Source{Code: digest(code), Go: "go" + code, Archive: archive, Size: size}
		for _, path := range slices.Sorted(maps.Keys(tree)) {
			s.Files = append(s.Files, ident.File{Path: path, SHA256: ident.Sum(tree[path].Data)})
		}
		h.must(h.db.AddSource(h.ctx, s))
	}
	a, b := h.run("a", 0, "{}"), h.run("b", 0, "{}")
	for r, code := range map[*store.Run]string{&a: "1", &b: "2"} {
		h.stage(*r, "prepare", "1", nil, nil)
		h.stage(*r, "train", code, nil, nil)
		h.stage(*r, "merge", code, nil, nil)
		h.stage(*r, "init", "lost "+code, nil, nil)
	}
	h.stage(a, "sft", "1", nil, nil) // which b does not have
	both := []string{"train", "merge"}
	h.same("changes", h.diff(a, b, Parts{Code: true}).Code, []CodeChange{
		{Path: "Go compiler: go1, go2", Change: ident.Changed, Stages: both},
		{Path: "a.go", Change: ident.Changed, Stages: both,
			Lines: "--- a/a.go\n+++ b/a.go\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n"},
		{Path: "gone.go", Change: ident.OnlyInA, Stages: both,
			Lines: "--- a/gone.go\n+++ /dev/null\n@@ -1 +0,0 @@\n-gone\n"},
		{Path: "new.go", Change: ident.OnlyInB, Stages: both, Lines: "--- /dev/null\n+++ b/new.go\n@@ -0,0 +1 @@\n+new\n"},
		{Path: "sources of init", Change: Unknown, Stages: []string{"init"}},
	})
}

// Problems and what training began with count, other inputs do not.
func TestInputs(t *testing.T) {
	h := newHouse(t)
	a, b := h.run("a", 0, "{}"), h.run("b", 0, "{}")
	for r, x := range map[*store.Run]string{&a: "1", &b: "2"} {
		h.stage(*r, "prepare", "c", []string{"file=" + x}, []string{"problems/train=" + x, "problems/test=same"})
		h.stage(*r, "init", "c", []string{"adapter=" + x, "tokenizer=" + x}, []string{"weights=" + x})
		h.stage(*r, "train", "c", []string{"weights=" + x, "tokenizer=same", "stop ids=" + x, "problems/train=" + x},
			[]string{"weights=of " + x})
	}
	h.stage(b, "eval.gen", "c", []string{"weights=" + "2"}, nil)
	one, two := digest("1"), digest("2")
	h.same("changes", h.diff(a, b, Parts{Inputs: true}).Inputs, []InputChange{
		{"problems/train", one, two}, {"adapter", one, two}, {"stop ids", one, two}, {"initial weights", one, two},
	})
}

// The newest attempts are compared; how the program was called is not.
func TestEnv(t *testing.T) {
	h := newHouse(t)
	a, b := h.run("a", 0, "{}"), h.run("b", 0, "{}")
	h.attempt(a, "first", `{}`)
	h.attempt(a, "here", `{"cpus":2,"args":["exp"],"go":"go1"}`)
	h.attempt(b, "there", `{"cpus":2,"args":["x"],"os":"linux"}`)
	h.same("changes", h.diff(a, b, Parts{Env: true}).Env, []EnvChange{{"host", "here", "there"}, {"go", "go1", ""},
		{"os", "", "linux"}})
	c := h.run("c", 0, "{}")
	if got := h.diff(c, c, Parts{Env: true}); len(got.Env) > 0 || !got.Identical {
		t.Errorf("never executed: %+v", got)
	}
}

func TestTrajectory(t *testing.T) {
	step := func(items string, metrics map[string]float64) ident.Det {
		return ident.Det{Items: digest(items), Params: digest("p"), Metrics: metrics}
	}
	first := step("items 1", map[string]float64{"loss": 1})
	unmeasured := first
	unmeasured.Params = ident.Digest{}
	x, y := 1.0, 2.0
	for _, tt := range []struct {
		name string
		b    []ident.Det
		want Trajectory
	}{
		{"equal", []ident.Det{first, first}, Trajectory{StepsA: 2, StepsB: 2, Equal: 2}},
		{"shorter", []ident.Det{first}, Trajectory{StepsA: 2, StepsB: 1, Equal: 1}},
		{"weights not taken", []ident.Det{unmeasured, first}, Trajectory{StepsA: 2, StepsB: 2, Equal: 2}},
		{"items", []ident.Det{first, step("other", map[string]float64{"loss": 1})},
			Trajectory{StepsA: 2, StepsB: 2, Equal: 1, Step: 2, Field: ident.FieldItems}},
		{"metrics", []ident.Det{step("items 1", map[string]float64{"loss": 2, "kl": 2})},
			Trajectory{StepsA: 2, StepsB: 1, Step: 1, Field: "metrics.kl", Metrics: []MetricChange{{"loss", &x, &y},
				{"kl", nil, &y}}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := newHouse(t)
			a, b := h.run("a", 0, "{}"), h.run("b", 0, "{}")
			h.steps(a, first, first)
			h.steps(b, tt.b...)
			if tt.want.Metrics == nil {
				tt.want.Metrics = []MetricChange{}
			}
			got := h.diff(a, b, Parts{Trajectory: true})
			h.same("trajectory", got.Trajectory, &tt.want)
			if got.Identical != (tt.name == "equal" || tt.name == "weights not taken") {
				t.Errorf("identical: %v", got.Identical)
			}
		})
	}
}

// Runs of other seeds are not identical, unless only a part is asked for.
func TestIdentical(t *testing.T) {
	h := newHouse(t)
	a, b, c := h.run("a", 0, "{}"), h.run("b", 0, "{}"), h.run("a", 1, "{}")
	for _, tt := range []struct {
		b     store.Run
		parts Parts
		want  bool
	}{{b, All(), true}, {c, All(), false}, {c, Parts{Code: true}, true}, {c, Parts{Config: true}, false}} {
		d := h.diff(a, tt.b, tt.parts)
		if d.Identical != tt.want {
			t.Errorf("%s#%d, %+v: identical %v", tt.b.Name, tt.b.Seed, tt.parts, d.Identical)
		}
		if (d.Config != nil) != tt.parts.Config || (d.Code != nil) != tt.parts.Code ||
			(d.Env != nil) != tt.parts.Env || (d.Trajectory != nil) != tt.parts.Trajectory {
			t.Errorf("%+v: got other parts: %+v", tt.parts, d)
		}
	}
}

// The first thing that differs is the cause, not what later stages made of it.
func TestFirst(t *testing.T) {
	for _, tt := range []struct {
		name string
		b    func(h *house, r store.Run)
		want string // stage, cause and name
	}{
		{"nothing", func(h *house, r store.Run) {
			h.stage(r, "init", "c", nil, []string{"weights=w"})
			h.stage(r, "train", "c", []string{"weights=w"}, nil)
		}, ""},
		{"an input", func(h *house, r store.Run) {
			h.stage(r, "init", "c", []string{"adapter=x"}, []string{"weights=v"})
			h.stage(r, "train", "c", []string{"weights=v"}, nil)
		}, "init input adapter"},
		{"code", func(h *house, r store.Run) {
			h.stage(r, "init", "d", nil, []string{"weights=v"})
			h.stage(r, "train", "c", []string{"weights=v"}, nil)
		}, "init code "},
		{"other bits from the same inputs", func(h *house, r store.Run) {
			h.stage(r, "init", "c", nil, []string{"weights=v"})
			h.stage(r, "train", "c", []string{"weights=v"}, nil)
		}, "train input weights"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := newHouse(t)
			a, b := h.run("a", 0, `{"name":"a"}`), h.run("b", 0, `{"name":"b"}`)
			h.stage(a, "init", "c", nil, []string{"weights=w"})
			h.stage(a, "train", "c", []string{"weights=w"}, nil)
			tt.b(h, b)
			d, err := Runs(h.ctx, h.db, a, b, Options{Parts: Parts{Config: true}})
			h.must(err)
			got := ""
			if d.First != nil {
				got = fmt.Sprintf("%s %s %s", d.First.Stage, d.First.What, d.First.Name)
			}
			if got != tt.want {
				t.Errorf("first %q, want %q", got, tt.want)
			}
		})
	}
}
