package plan

import (
	"maps"

	"exp/harness/config"
	"exp/harness/stage"
)

// scorerBlock begins the keys of what scores completions.
const scorerBlock = "eval.final.scorer."

// ScoredByModel reports whether a scorer, besides graders, scores the completions of a suite.
func (p *Run) ScoredByModel(suite string) bool {
	c := &p.Config.Run
	own := p.suite(suite)
	return c.Eval.Final.Scorer.Used() && (own == nil || own.AskingOf(c).Likelihood == "")
}

// setScorer adds to the settings that score a label's completions where its scorer's files lie, to find them again,
// and the prompt of a benchmark, which it reads.
func (p *Run) setScorer(settings map[string]any, label string) {
	_, scores := settings["eval.final.pass_k"]
	if !scores || !p.ScoredByModel(stage.SuiteOf(label)) {
		return
	}
	for _, path := range config.ScorerFiles() {
		if _, ok := settings[path]; ok {
			settings[path], _ = p.Config.Value(path)
		}
	}
	if p.Suite(label) != nil {
		settings["eval.final.prompt"] = p.Config.Run.Eval.Final.Prompt
	}
}

// addLearned adds what the run's reward model learns from to settings. It stands for the model, which is not there
// yet.
func (p *Run) addLearned(settings map[string]any) {
	maps.Copy(settings, p.Config.Params(config.RewardModel))
	settings[stage.RoleRated] = p.External.Data[stage.RoleRated].String()
}
