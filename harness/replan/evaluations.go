package replan

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"exp/experiments/ident"
	"exp/experiments/store"
	"exp/harness/config"
	"exp/harness/plan"
)

// evalKeys begins the keys that may differ between evaluations of one run.
const evalKeys = "eval.final."

// Evaluations plans the evaluations of a run that its recorded configuration does not describe: of suites
// that joined it (exp eval), and of other settings (exp run after an edit). p is the run's plan, class the
// numerics class of the device. What cannot be planned here is in the error; the plans are valid all the
// same.
func Evaluations(ctx context.Context, db *store.DB, run store.Run, p *plan.Run, class string,
	o Options) ([]*plan.Run, []error) {
	stages, err := db.Stages(ctx, run.ID)
	if err != nil {
		return nil, []error{err}
	}
	var plans []*plan.Run
	var failed []error
	for _, e := range evaluationsOf(stages, p) {
		values := append(slices.Clone(o.Values), e.values...)
		values = append(values, config.Value{Path: config.SuitesKey, Value: e.suites, From: evalFrom},
			config.Value{Path: "eval.final.max_not_graded", Value: "1", From: evalFrom}) // they kept to their limit
		r, err := Config(ctx, db, run, values, o.Getenv)
		var q *plan.Run
		if err == nil {
			q, err = planned(ctx, db, run, r, class, o.Kinds)
		}
		if err != nil {
			failed = append(failed, fmt.Errorf("the evaluation on %s: %w", strings.Join(e.suites, ", "), err))
			continue
		}
		plans = append(plans, q)
	}
	return plans, failed
}

// evalFrom is the origin of settings that a stage recorded.
const evalFrom = "the record of the evaluation"

// evaluation is the settings of evaluations, and the suites that were scored with them.
type evaluation struct {
	values []config.Value
	suites []string
}

// evaluationsOf groups the finished evaluations among a run's stages by their settings, without those that
// p plans.
func evaluationsOf(stages []store.Stage, p *plan.Run) []evaluation {
	known := map[string]bool{}
	for i, s := range p.Stages {
		known[string(s.Kind)+s.Label+canonical(p.Params(i))] = true
	}
	at := map[string]int{}
	var list []evaluation
	for _, score := range stages {
		gen, ok := sampledBy(stages, score)
		if !ok || known[score.Kind+score.Label+canonical(score.Params)] &&
			known[gen.Kind+gen.Label+canonical(gen.Params)] {
			continue
		}
		values := settings(gen.Params, score.Params)
		key := fmt.Sprint(values)
		if _, ok := at[key]; !ok {
			at[key] = len(list)
			list = append(list, evaluation{values: values})
		}
		e := &list[at[key]]
		if suite := strings.TrimSuffix(score.Label, ident.StartSuffix); !slices.Contains(e.suites, suite) {
			e.suites = append(e.suites, suite)
		}
	}
	return list
}

// sampledBy finds the stage that made the completions which a finished scoring read.
func sampledBy(stages []store.Stage, score store.Stage) (store.Stage, bool) {
	if score.Kind != string(config.EvalScore) || len(score.Outputs) == 0 {
		return store.Stage{}, false
	}
	read := map[ident.Digest]bool{}
	for _, in := range score.Inputs {
		read[in.Digest] = true
	}
	for _, gen := range slices.Backward(stages) {
		if gen.Kind == string(config.EvalGen) && gen.Label == score.Label &&
			slices.ContainsFunc(gen.Outputs, func(out store.IO) bool { return read[out.Digest] }) {
			return gen, true
		}
	}
	return store.Stage{}, false
}

// unasked are the settings of an evaluation that a stage does not record where they change nothing (plan.Run), and
// that the run's own evaluation may have.
var unasked = map[string]any{"eval.final.likelihood": config.LikelihoodOff, "eval.final.shots": 0,
	"eval.final.description": ""}

// settings returns what stages recorded of the evaluation's settings.
func settings(params ...json.RawMessage) []config.Value {
	found := maps.Clone(unasked)
	for _, text := range params {
		var all map[string]any
		d := json.NewDecoder(bytes.NewReader(text))
		d.UseNumber()
		if d.Decode(&all) != nil {
			continue // not written by this program
		}
		for path, v := range all {
			if _, known := config.Describe(path); known && strings.HasPrefix(path, evalKeys) {
				found[path] = v
			}
		}
	}
	var values []config.Value
	for _, path := range slices.Sorted(maps.Keys(found)) {
		v := config.Value{Path: path, From: evalFrom}
		if list, ok := found[path].([]any); ok {
			texts := make([]string, len(list))
			for i, item := range list {
				texts[i] = fmt.Sprint(item)
			}
			v.Value = texts
		} else {
			v.Value = fmt.Sprint(found[path])
		}
		values = append(values, v)
	}
	return values
}

// canonical is the text of settings by which equal ones are found.
func canonical(params any) string {
	text, err := json.Marshal(params)
	if err != nil {
		return ""
	}
	var all any
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if d.Decode(&all) != nil {
		return ""
	}
	if text, err = json.Marshal(all); err != nil {
		return ""
	}
	return string(text)
}
