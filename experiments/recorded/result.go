package recorded

import (
	"slices"
	"strings"

	"exp/experiments/ident"
	"exp/experiments/store"
)

// Result is a score on a suite before and after training, nil if not measured.
type Result struct {
	Suite  string `json:"suite"`
	Metric string `json:"metric"`
	N      int64  `json:"n"` // samples per item
	Items  int64  `json:"items"`
	Before *Score `json:"before"`
	After  *Score `json:"after"`
}

// Score is a value with its 95 % interval.
type Score struct {
	Value float64  `json:"value"`
	Lo    *float64 `json:"lo"` // nil: no interval, or one without width
	Hi    *float64 `json:"hi"`
}

func (r reader) results() error {
	evals, err := r.db.Evals(r.ctx, r.row.ID)
	r.run.Results, r.run.Earlier = Results(evals), Earlier(evals)
	return err
}

// Results pairs the scores before and after training, suite by suite, in recording order.
func Results(evals []store.Eval) []Result {
	list := []Result{}
	for _, e := range newestOfSuites(evals) {
		suite, start := strings.CutSuffix(e.SuiteName, ident.StartSuffix)
		i := slices.IndexFunc(list, func(r Result) bool { return r.Suite == suite && r.Metric == e.Metric })
		if i < 0 {
			i = len(list)
			list = append(list, Result{Suite: suite, Metric: e.Metric})
		}
		if list[i].N, list[i].Items = e.N, e.Items; start {
			list[i].Before = scoreOf(e)
		} else {
			list[i].After = scoreOf(e)
		}
	}
	return list
}

// Earlier returns pass@1 of the trained weights by evaluations that Results leaves out, the newest of
// each protocol, in recording order.
func Earlier(evals []store.Eval) (list []Result) {
	type setting struct {
		suite    string
		protocol ident.Digest
	}
	last := map[setting]store.Eval{}
	for _, e := range newestOfSuites(evals) {
		last[setting{e.SuiteName, e.Protocol}] = store.Eval{}
	}
	for i := len(evals) - 1; i >= 0; i-- {
		e := evals[i]
		key := setting{e.SuiteName, e.Protocol}
		if _, seen := last[key]; seen || e.Metric != "pass@1" || strings.HasSuffix(e.SuiteName, ident.StartSuffix) {
			continue
		}
		last[key] = e
		list = append(list, Result{Suite: e.SuiteName, Metric: e.Metric, N: e.N, Items: e.Items, After: scoreOf(e)})
	}
	slices.Reverse(list)
	return list
}

// newestOfSuites returns, per suite, the scores of the newest evaluation of the trained
// weights and of the newest one before training under the same protocol. A suite may have
// been evaluated several times, for example with more samples.
func newestOfSuites(evals []store.Eval) (list []store.Eval) {
	type evaluation struct {
		stage    int64
		protocol ident.Digest
	}
	newest := map[string]evaluation{}
	var suites []string
	for _, e := range evals {
		suite, start := strings.CutSuffix(e.SuiteName, ident.StartSuffix)
		if !slices.Contains(suites, suite) {
			suites = append(suites, suite)
		}
		if !start && e.StageScore >= newest[suite].stage {
			newest[suite] = evaluation{e.StageScore, e.Protocol}
		}
	}
	for _, e := range evals {
		suite, start := strings.CutSuffix(e.SuiteName, ident.StartSuffix)
		after, trained := newest[suite]
		if start && e.StageScore >= newest[e.SuiteName].stage && (!trained || e.Protocol == after.protocol) {
			newest[e.SuiteName] = evaluation{e.StageScore, e.Protocol}
		}
	}
	for _, suite := range suites {
		for _, e := range evals {
			name, _ := strings.CutSuffix(e.SuiteName, ident.StartSuffix)
			if name == suite && e.StageScore == newest[e.SuiteName].stage {
				list = append(list, e)
			}
		}
	}
	return list
}

func scoreOf(e store.Eval) *Score {
	s := &Score{Value: e.Value}
	if HasWidth(e.Lo, e.Hi) {
		s.Lo, s.Hi = &e.Lo, &e.Hi
	}
	return s
}

// rounding is what the ends of an interval without spread may differ by.
const rounding = 1e-12

// HasWidth reports whether an interval says anything: not if an end is NaN, nor if all problems scored the same, since
// then its width is 0, as if the next problem would score the same, too.
func HasWidth(lo, hi float64) bool { return hi-lo > rounding }
