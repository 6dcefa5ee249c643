package main

import (
	"math"
	"slices"
	"strings"

	"exp/experiments/ident"
	"exp/experiments/store"
	"exp/harness/stage"
)

// shownResult is a score on a suite: of the weights that training began with, and
// of the trained ones. What was not measured is null.
type shownResult struct {
	Suite  string      `json:"suite"`
	Metric string      `json:"metric"`
	N      int64       `json:"n"` // samples per item
	Items  int64       `json:"items"`
	Before *shownScore `json:"before"`
	After  *shownScore `json:"after"`
}

type shownScore struct {
	Value float64  `json:"value"`
	Lo    *float64 `json:"lo"` // 95 % interval; null if it has none
	Hi    *float64 `json:"hi"`
}

func (r runReader) results() error {
	evals, err := r.db.Evals(r.ctx, r.run.ID)
	r.s.Results = resultsOf(evals)
	return err
}

// resultsOf pairs scores of the start with those of the trained weights, suite by
// suite, in the order in which they were recorded.
func resultsOf(evals []store.Eval) []shownResult {
	list := []shownResult{}
	for _, e := range newestOfSuites(evals) {
		suite, start := strings.CutSuffix(e.SuiteName, stage.StartSuffix)
		i := slices.IndexFunc(list, func(r shownResult) bool { return r.Suite == suite && r.Metric == e.Metric })
		if i < 0 {
			i = len(list)
			list = append(list, shownResult{Suite: suite, Metric: e.Metric})
		}
		if list[i].N, list[i].Items = e.N, e.Items; start {
			list[i].Before = scoreOf(e)
		} else {
			list[i].After = scoreOf(e)
		}
	}
	return list
}

// newestOfSuites are the scores of each suite's newest evaluation of the trained
// weights, and of the newest of the start under its protocol. A suite may have been
// evaluated several times: with more samples, or otherwise.
func newestOfSuites(evals []store.Eval) (list []store.Eval) {
	type evaluation struct {
		stage    int64
		protocol ident.Digest
	}
	newest := map[string]evaluation{}
	var suites []string
	for _, e := range evals {
		suite, start := strings.CutSuffix(e.SuiteName, stage.StartSuffix)
		if !slices.Contains(suites, suite) {
			suites = append(suites, suite)
		}
		if !start && e.StageScore >= newest[suite].stage {
			newest[suite] = evaluation{e.StageScore, e.Protocol}
		}
	}
	for _, e := range evals {
		suite, start := strings.CutSuffix(e.SuiteName, stage.StartSuffix)
		after, trained := newest[suite]
		if start && e.StageScore >= newest[e.SuiteName].stage && (!trained || e.Protocol == after.protocol) {
			newest[e.SuiteName] = evaluation{e.StageScore, e.Protocol}
		}
	}
	for _, suite := range suites {
		for _, e := range evals {
			if name, _ := strings.CutSuffix(e.SuiteName, stage.StartSuffix); name == suite && e.StageScore == newest[e.SuiteName].stage {
				list = append(list, e)
			}
		}
	}
	return list
}

func scoreOf(e store.Eval) *shownScore {
	s := &shownScore{Value: e.Value}
	if !math.IsNaN(e.Lo) && !math.IsNaN(e.Hi) {
		s.Lo, s.Hi = &e.Lo, &e.Hi
	}
	return s
}

// mainResults are those that the narrow page shows, suite by suite, in this order; of
// pass@k the first and the last k.
func mainResults(list []shownResult) (out []shownResult) {
	for len(list) > 0 {
		n := slices.IndexFunc(list, func(r shownResult) bool { return r.Suite != list[0].Suite })
		if n < 0 {
			n = len(list)
		}
		out = append(out, mainResultsOf(list[:n])...)
		list = list[n:]
	}
	return out
}

func mainResultsOf(list []shownResult) []shownResult {
	var passes, rest []shownResult
	for _, r := range list {
		switch {
		case strings.HasPrefix(r.Metric, "pass@"):
			passes = append(passes, r)
		case slices.Contains(secondaryResults, r.Metric), strings.HasPrefix(r.Metric, "pass_gap@"), r.Metric == "not_graded" && r.zero():
		default:
			rest = append(rest, r)
		}
	}
	if len(passes) > 2 {
		passes = []shownResult{passes[0], passes[len(passes)-1]}
	}
	return append(passes, rest...)
}

// secondaryResults follow from others.
var secondaryResults = []string{"answer_entropy_norm", "reward_mean", "distinct_answers", "majority_tied", "distinct_1", "distinct_3", "distinct_4", "two_correct_clusters"}

func (r shownResult) zero() bool {
	return (r.Before == nil || r.Before.Value == 0) && (r.After == nil || r.After.Value == 0)
}

// shownSeries is a metric over the steps.
type shownSeries struct {
	Name     string  `json:"name"`
	Unit     string  `json:"unit"`
	N        int64   `json:"n"` // points
	Last     float64 `json:"last"`
	LastStep int64   `json:"last_step"`
	Min      float64 `json:"min"`
	Max      float64 `json:"max"`

	values []float64 // for people
}

// metrics reads the headline metrics with their points.
func (r runReader) metrics() error {
	r.s.Metrics = []shownSeries{}
	curves, err := headlineCurves(r.ctx, r.db, r.run, 0, store.AllSteps)
	for _, c := range curves {
		r.s.Metrics = append(r.s.Metrics, shownSeries{Name: c.Name, Unit: c.Unit, N: c.N, Last: c.Last, LastStep: c.LastStep,
			Min: c.Min, Max: c.Max, values: c.Values})
	}
	return err
}
