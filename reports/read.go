package reports

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"math"
	"slices"
	"strings"

	"exp/experiments/ident"
	"exp/experiments/recorded"
	"exp/experiments/store"
	"exp/harness/config"
	"exp/reports/compare"
)

// arm is a set of replicate runs and its name in the report.
type arm struct {
	Name  string
	label string // in figures: the name without what all arms share
	focus bool   // its band is drawn where there are many arms
	Place int    // among the arms: its colour
	file  string // its name as a file's
	Runs  []*run // by seed
}

func (a *arm) span() span { return span{Text: a.Name, Style: armName, Place: a.Place % len(armColors)} }

// run holds the data that a report needs from a run.
type run struct {
	store.Run
	config   map[string]any // by dotted path
	yaml     string
	curves   map[string]store.Curve
	staged   map[string]recorded.KeyedCurve // of stages before training, by metric
	lost     []string                       // stages whose curve is missing in the store
	counted  map[string]compare.Evaluation  // by suite label; evals, scores and policies are theirs
	evals    []store.Eval
	stages   []store.Stage
	attempts []store.Attempt
	diverged []store.Divergence
	events   []store.Event
	scores   map[string][]item    // by suite label
	policies map[string][]outcome // by suite label; of enumerable tasks
}

// item is a problem in a scores blob; see eval.Item.
type item struct {
	Problem string `json:"problem"`
	Graded  int    `json:"n"`
	Correct int    `json:"c"`
}

// share returns the problem's share of right completions, NaN if none was graded.
func (it item) share() float64 { return float64(it.Correct) / float64(it.Graded) }

// outcome is a completion of an enumerable task in a policy blob.
type outcome struct {
	Text       string  `json:"text"`
	Reward     float64 `json:"reward"`
	LogProb    float64 `json:"logprob"`
	RefLogProb float64 `json:"reference_logprob"`
}

// readRun reads a run from the store, with the evaluations that count.
func readRun(ctx context.Context, db *store.DB, r store.Run, counted []compare.Evaluation) (*run, error) {
	out := &run{Run: r, curves: map[string]store.Curve{}, staged: map[string]recorded.KeyedCurve{},
		counted: map[string]compare.Evaluation{},
		scores:  map[string][]item{}, policies: map[string][]outcome{}}
	for _, e := range counted {
		out.counted[e.Scored.Label] = e
	}
	c, err := db.Config(ctx, r.Config)
	if err != nil {
		return nil, err
	}
	if out.config, err = flatten(c.JSON); err != nil {
		return nil, fmt.Errorf("configuration of run %s: %w", r.RID.Short(), err)
	}
	out.yaml = c.Source
	curves, err := db.Metrics(ctx, r.ID, "", 0, store.AllSteps)
	if err != nil {
		return nil, err
	}
	for _, c := range curves {
		out.curves[c.Name] = c
	}
	evals, err := db.Evals(ctx, r.ID)
	if err != nil {
		return nil, err
	}
	out.evals = slices.DeleteFunc(evals, func(e store.Eval) bool {
		return !slices.ContainsFunc(counted, func(c compare.Evaluation) bool { return c.Scored.ID == e.StageScore })
	})
	if out.stages, err = db.Stages(ctx, r.ID); err != nil {
		return nil, err
	}
	if out.attempts, err = db.Attempts(ctx, r.ID); err != nil {
		return nil, err
	}
	if out.diverged, err = db.Divergences(ctx, r.ID); err != nil {
		return nil, err
	}
	if out.events, err = db.Events(ctx, r.ID, 0); err != nil {
		return nil, err
	}
	return out, out.readBlobs(db)
}

// readBlobs reads the problems' scores and exact policies.
func (r *run) readBlobs(db *store.DB) error {
	for label, e := range r.counted {
		for _, o := range slices.Concat(e.Sampled.Outputs, e.Scored.Outputs) {
			switch o.Role {
			case config.RoleScores:
				var scores struct {
					Items []item `json:"items"`
				}
				if err := readJSON(db, o.Digest, &scores); err != nil {
					return fmt.Errorf("scores of run %s on %s: %w", r.RID.Short(), label, err)
				}
				r.scores[label] = scores.Items
			case config.RolePolicy:
				var policy []outcome
				if err := readJSON(db, o.Digest, &policy); err != nil {
					return fmt.Errorf("policy of run %s on %s: %w", r.RID.Short(), label, err)
				}
				r.policies[label] = policy
			}
		}
	}
	return nil
}

func readJSON(db *store.DB, d ident.Digest, v any) error {
	b, err := db.Blobs.Bytes(d)
	if err != nil {
		return err
	}
	return json.Unmarshal(b, v)
}

// flatten turns nested objects into values by dotted path. Numbers keep their text.
func flatten(text string) (map[string]any, error) {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	var nested map[string]any
	if err := d.Decode(&nested); err != nil {
		return nil, err
	}
	flat := map[string]any{}
	var walk func(prefix string, m map[string]any)
	walk = func(prefix string, m map[string]any) {
		for k, v := range m {
			if inner, ok := v.(map[string]any); ok {
				walk(prefix+k+".", inner)
				continue
			}
			flat[prefix+k] = v
		}
	}
	walk("", nested)
	return flat, nil
}

// setting returns a configuration value as text, "" if the key has no effect.
func (r *run) setting(path string) string {
	v, ok := r.config[path]
	if !ok {
		return ""
	}
	return settingText(v)
}

func settingText(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case string:
		return v
	case json.Number:
		return v.String()
	}
	b, err := json.Marshal(v)
	if err != nil {
		panic("reports: " + err.Error()) // it came out of JSON
	}
	return string(b)
}

// eachRun yields the runs of all arms, arm by arm.
func eachRun(arms []*arm) iter.Seq2[*arm, *run] {
	return func(yield func(*arm, *run) bool) {
		for _, a := range arms {
			for _, r := range a.Runs {
				if !yield(a, r) {
					return
				}
			}
		}
	}
}

// settings lists the paths of an arm's configurations.
func settings(arms []*arm) []string {
	all := map[string]bool{}
	for _, r := range eachRun(arms) {
		for k := range r.config {
			all[k] = true
		}
	}
	return slices.Sorted(maps.Keys(all))
}

// suites lists the labels that any run was scored on, except evaluations before training.
func suites(arms []*arm) []string {
	all := map[string]bool{}
	for _, r := range eachRun(arms) {
		for label := range r.scores {
			if !strings.HasSuffix(label, startSuffix) {
				all[label] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(all))
}

// startSuffix marks the evaluation of the weights that training started from.
const startSuffix = ident.StartSuffix

// eval returns a metric of a suite, by the suite's name.
func (r *run) eval(suite, metric string) (store.Eval, bool) {
	for _, e := range r.evals {
		if e.SuiteName == suite && e.Metric == metric {
			return e, true
		}
	}
	return store.Eval{}, false
}

// evalValue returns the value of a metric, NaN if it is missing.
func (r *run) evalValue(suite, metric string) float64 {
	if e, ok := r.eval(suite, metric); ok {
		return e.Value
	}
	return math.NaN()
}

// suiteNames lists the suites' names in evaluations, except those before training.
func suiteNames(arms []*arm) []string {
	all := map[string]bool{}
	for _, r := range eachRun(arms) {
		for _, e := range r.evals {
			if !strings.HasSuffix(e.SuiteName, startSuffix) {
				all[e.SuiteName] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(all))
}

// mean returns the mean of a value over an arm's seeds, ignoring NaN.
func (a *arm) mean(value func(*run) float64) (v float64, n int) {
	var sum float64
	for _, r := range a.Runs {
		if x := value(r); !math.IsNaN(x) {
			sum += x
			n++
		}
	}
	return sum / float64(n), n
}
