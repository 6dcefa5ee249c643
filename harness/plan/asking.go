package plan

import (
	"maps"
	"strings"

	"exp/harness/config"
	"exp/harness/stage"
)

// The keys that say how the problems of suites are asked.
const (
	promptKey      = "eval.final.prompt"
	likelihoodKey  = "eval.final.likelihood"
	shotsKey       = "eval.final.shots"
	shotsSuiteKey  = "eval.final.shots_suite"
	descriptionKey = "eval.final.description"
)

// truncateKey says how the prompts of suites are cut.
const truncateKey = "eval.final.truncate"

// setAsking gives the final evaluation the settings of one suite, nil for the run's own data: it sets how the
// suite is asked, whether the configuration or the suite's definition says so, and leaves out what has no effect then.
// Suites that are asked as they were before there was a choice keep their settings.
func (p *Run) setAsking(settings map[string]any, own *stage.Suite) {
	_, generates := settings[promptKey]
	_, scores := settings["eval.final.pass_k"]
	for _, key := range []string{likelihoodKey, shotsKey, shotsSuiteKey, descriptionKey} {
		delete(settings, key)
	}
	if own == nil {
		delete(settings, truncateKey)
		if settings[promptKey] == config.None {
			settings[promptKey] = config.ProblemMark
		}
		return
	}
	a := own.AskingOf(&p.Config.Run)
	if a.Likelihood != "" {
		maps.DeleteFunc(settings, func(path string, _ any) bool { return samplingOnly(path) })
		maps.DeleteFunc(settings, func(path string, _ any) bool { return strings.HasPrefix(path, scorerBlock) })
		if scores {
			settings["eval.final.pass_k"] = []any{int64(1)}
		}
	}
	if !generates {
		return
	}
	settings[promptKey] = a.Prompt
	if a.Prompt == config.ProblemMark && own.Asking.Prompt != "" && own.Asking.Prompt != config.ProblemMark {
		settings[promptKey] = config.None // the mark alone stands for the suite's own
	}
	switch {
	case a.Likelihood != "":
		settings[likelihoodKey] = a.Likelihood
	case own.Asking.Likelihood != "":
		settings[likelihoodKey] = config.LikelihoodOff
	}
	switch {
	case a.Shots > 0:
		settings[shotsKey], settings[shotsSuiteKey] = int64(a.Shots), a.ShotsSuite
	case own.Asking.Shots > 0:
		settings[shotsKey] = int64(0)
	}
	switch {
	case a.Description != "":
		settings[descriptionKey] = a.Description
	case own.Asking.Description != "":
		settings[descriptionKey] = config.None
	}
}

// samplingOnly reports whether a setting of the final evaluation has an effect on sampled answers alone.
func samplingOnly(path string) bool {
	name, ok := strings.CutPrefix(path, "eval.final.")
	switch name {
	case "n", "temperature", "top_k", "top_p", "min_p", "repetition_penalty", "presence_penalty", "frequency_penalty",
		"max_new_tokens":
		return ok
	}
	return false
}
