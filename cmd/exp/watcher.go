package main

import (
	"exp/cmd/exp/term"
	"exp/experiments/quantity"
	"exp/harness/metric"
	harness "exp/harness/run"
)

// watcher shows the progress of the harness.
type watcher struct{ p term.Progress }

func (w *watcher) StageStart(s harness.StageInfo) {
	w.p.StageStart(term.Stage{Kind: s.Kind, Label: s.Label, Total: s.Steps, Unit: s.Unit})
}

func (w *watcher) StageProgress(done, total int, headline []harness.Metric) {
	step := term.Step{Step: done, Of: total}
	for _, m := range headline {
		step.Metrics = append(step.Metrics, term.Metric{Name: m.Name, Value: m.Value})
	}
	w.p.StageProgress(step)
}

func (w *watcher) StagePhase(phase string, done, total int) {
	work, unit := metric.Activity(phase)
	w.p.StagePhase(term.Phase{Work: work, Done: done, Total: total, Unit: unit})
}

func (w *watcher) StageDone(s harness.StageInfo, r harness.StageEnd) {
	if r.Cached {
		w.p.StageCached(term.Stage{Kind: s.Kind, Label: s.Label}, r.From.Short())
		return
	}
	res := term.Result{Status: term.Done, Wall: r.Wall}
	switch {
	case r.Stopped:
		res.Status = term.Stopped
	case r.Failed:
		res.Status = term.Failed
	}
	for _, f := range r.Facts {
		res.Facts = append(res.Facts, factOf(f))
	}
	w.p.StageDone(res)
}

// factOf formats a fact about a stage for people: counts with their noun, scores with
// three digits.
func factOf(f harness.Metric) term.Fact {
	switch f.Name {
	case "train", "val", "test", "images", "conversations", "rollouts", "pairs", "labelled answers", "rated pairs",
		"answers with labelled steps", "held out", "steps", "files", "parameters", "samples", "reused", "kept",
		"never solved", "always solved", "options":
		return term.Fact{Name: f.Name, Text: quantity.Count(int64(f.Value)), Counts: true}
	}
	name := f.Name
	if name == "best step" {
		return term.Fact{Name: name, Text: quantity.Count(int64(f.Value))}
	}
	if m, _ := metric.Find(name); m.Heading != "" {
		name = m.Heading
	}
	return term.Fact{Name: name, Text: quantity.Short(f.Value)}
}

func (w *watcher) Note(text string) { w.p.Note(text) }

func (w *watcher) Warn(text string) { w.p.Warn(text) }
