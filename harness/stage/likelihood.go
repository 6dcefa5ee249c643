package stage

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"

	"exp/eval"
	"exp/eval/suite"
	"exp/harness/ask"
	"exp/harness/config"
	"exp/harness/prompt"
	"exp/train/generate"
	"exp/train/model"
	"exp/train/rl"
	"exp/train/rollout"
)

// chooseSuite answers the problems of a suite with their likeliest options under plain weights.
func (e *Env) chooseSuite(ctx context.Context, s *openedSuite) (*Outcome, error) {
	cut := e.warnTruncated(s.prompts, s.label, s.problems)
	e.warnOptions(s)
	samples, err := e.choose(ctx, s, s.problems)
	if err != nil {
		return nil, err
	}
	lines, err := completionLines(samples)
	if err != nil {
		return nil, err
	}
	o, err := e.put(RoleCompletions, "completions", bytes.Join(lines, nil))
	if err != nil {
		return nil, err
	}
	scored := 0
	for i := range samples {
		scored += len(samples[i].Completion.Options)
	}
	summary := map[string]any{"samples": len(samples), "tokens": tokensOf(samples), "options": scored}
	if cut > 0 {
		summary["truncated"] = cut
	}
	return &Outcome{Outputs: []Output{o}, Summary: summary,
		Evaluation: &Evaluation{Label: s.label, N: 1, Problems: s.problems, Samples: samples,
			Prompts: e.promptsOf(s.label)},
		Facts: []rl.Metric{fact("options", float64(scored))}}, nil
}

// choose compares the options of some of a suite's problems.
func (e *Env) choose(ctx context.Context, s *openedSuite, problems []rollout.Problem) ([]eval.Sample, error) {
	options, all := make([][]eval.Option, len(problems)), 0
	for i := range problems {
		var err error
		if options[i], err = optionsOf(s.label, &problems[i], s.asking, s.prompts); err != nil {
			return nil, err
		}
		all += len(options[i])
		if err := longOption(s.label, problems[i].ID, options[i], s.m.Config.MaxPositions); err != nil {
			return nil, err
		}
	}
	engine, err := e.openEngine(e.Backend, s.m, s.prompts.Vocabulary(),
		scorerOptions(e.run(), s.m.Config, eval.Questions(options), e.CacheTokens))
	if err != nil {
		return nil, err
	}
	defer engine.Close()
	return eval.Choose(ctx, engine, problems, options, func(n int) { e.progress(n, all) })
}

// optionsOf returns the options of a problem of a suite behind its prompt, or each behind a prompt of its own.
func optionsOf(label string, p *rollout.Problem, a suite.Asking, prompts *prompt.Prompter) ([]eval.Option, error) {
	texts := ask.Options(p, a)
	options := make([]eval.Option, len(texts))
	if a.Likelihood != eval.ByBlank {
		list, err := prompts.Continue(p, texts)
		if err != nil {
			return nil, fmt.Errorf("suite %s: problem %s: %w", label, p.ID, err)
		}
		for i, x := range list {
			options[i] = eval.Option{Text: texts[i], Answer: texts[i], Prompt: x.Prompt, Tokens: x.Text}
		}
		return options, nil
	}
	for i, text := range texts {
		q, rest := ask.Filled(p, p.Choice.Options[i])
		list, err := prompts.Continue(&q, texts[i:i+1])
		if err != nil {
			return nil, fmt.Errorf("suite %s: problem %s with option %s: %w", label, p.ID, rollout.Letter(i), err)
		}
		options[i] = eval.Option{Text: text, Answer: rest, Prompt: list[0].Prompt, Tokens: list[0].Text}
	}
	return options, nil
}

// scorerOptions sizes the engine that scores questions; most is the room of its cache, in tokens, if that is limited.
func scorerOptions(c *config.Run, arch model.Config, list []rollout.Question, most int) generate.Options {
	call := generate.Call{Requests: len(list), Prompt: 1, New: 1}
	for _, q := range list {
		call.Prompt, call.Samples = max(call.Prompt, len(q.Prompt)), max(call.Samples, len(q.Options))
		for _, o := range q.Options {
			call.New = max(call.New, len(o))
		}
	}
	o := EngineOptions(c, arch, call.New, []generate.Call{call})
	if o.CacheTokens = o.ScoreRoom(arch, list); most > 0 {
		o.CacheTokens = min(o.CacheTokens, most)
	}
	return o
}

// SuiteNeeds is what evaluating a benchmark needs of a sampler.
type SuiteNeeds struct {
	Engine generate.Options
	// Held is the most room of the cache, in tokens, that its problems take at once.
	Held int
	// Scored says that options are scored, whose tokens' logits change, and nothing is sampled.
	Scored bool
}

// NeedsOfSuites returns the needs of the benchmarks that e names, which CheckSuites has checked, of a model of
// architecture arch; nil if a problem cannot be read.
func NeedsOfSuites(e *Env, arch model.Config) (list []SuiteNeeds) {
	p, err := e.prompter()
	if err != nil {
		return nil
	}
	for _, s := range e.Suites {
		problems, err := e.suiteProblems(Inputs{RoleProblems: s.Digest}, s.Name)
		if err != nil {
			return nil
		}
		if problems, err = e.rendered(problems, s.Name); err != nil {
			return nil
		}
		prompts := e.promptsOf(s.Name)(p)
		a := s.AskingOf(e.run())
		if a.Likelihood == "" {
			lengths := make([]int, len(problems))
			for i := range problems {
				ids, err := prompts.Encode(&problems[i])
				if err != nil {
					return nil
				}
				lengths[i] = len(ids)
			}
			list = append(list, sampledNeeds(e.run(), arch, lengths))
			continue
		}
		options := make([][]eval.Option, len(problems))
		for i := range problems {
			if options[i], err = optionsOf(s.Name, &problems[i], a, prompts); err != nil {
				return nil
			}
		}
		o := scorerOptions(e.run(), arch, eval.Questions(options), e.CacheTokens)
		list = append(list, SuiteNeeds{Engine: o, Held: o.CacheTokens, Scored: true})
	}
	return list
}

// sampledNeeds returns what sampling completions of prompts of such lengths needs in a final evaluation.
func sampledNeeds(c *config.Run, arch model.Config, lengths []int) SuiteNeeds {
	f := c.Eval.Final
	o := EngineOptions(c, arch, f.MaxNewTokens, []generate.Call{{Requests: len(lengths), Samples: f.N,
		Prompt: c.Data.MaxPromptTokens, New: f.MaxNewTokens}})
	return SuiteNeeds{Engine: o, Held: o.SampleRoom(lengths, f.N, f.MaxNewTokens)}
}

// longOption returns an error if an option does not fit behind its prompt.
func longOption(label, id string, options []eval.Option, positions int) error {
	for k, o := range options {
		if need := len(o.Prompt) + len(o.Tokens); need > positions {
			return fmt.Errorf("suite %s: problem %s needs %d positions (a prompt of %d tokens and option %s of %d), "+
				"the model has %d; ask with fewer examples (eval.final.shots), cut prompts (data.max_prompt_tokens "+
				"with data.truncate), or leave the suite out", label, id, need, len(o.Prompt), rollout.Letter(k),
				len(o.Tokens), positions)
		}
	}
	return nil
}

// warnOptions reports questions with equal options, whose texts nothing tells apart, and prompts that end in thoughts.
func (e *Env) warnOptions(s *openedSuite) {
	var ids []string
	n := 0
	for i := range s.problems {
		p := &s.problems[i]
		if a, b, equal := p.Choice.Equal(); equal && s.asking.Likelihood != eval.ByLetter {
			if n++; len(ids) < shownGolds {
				ids = append(ids, fmt.Sprintf("%s (%s and %s)", p.ID, rollout.Letter(a), rollout.Letter(b)))
			}
		}
	}
	if n > len(ids) {
		ids = append(ids, "…")
	}
	if n > 0 {
		e.event("equal-options", "%s: %d of %d problems have two options with the same text, and the first of them "+
			"is chosen: %s", s.label, n, len(s.problems), strings.Join(ids, ", "))
	}
	if len(s.problems) > 0 && s.prompts.OpensThought(&s.problems[0]) {
		e.event("options-in-thoughts", "%s: the chat template ends a prompt within the model's thoughts, and "+
			"options are compared there; data.template_vars: {enable_thinking: false} ends them in many "+
			"templates", s.label)
	}
}

// checkAsked finds the first problem of a benchmark that its options cannot be compared for.
func (e *Env) checkAsked(prompts *prompt.Prompter, s Suite, problems []rollout.Problem) error {
	a := s.AskingOf(e.run())
	bad := func(key, message, help string) error {
		return config.Errors{e.Config.ErrorAt(key, config.CodeConflict, message, help)}
	}
	chosen := e.run().Eval.Final.Graders
	if a.Likelihood == "" {
		if len(chosen) > 0 && !slices.ContainsFunc(chosen, func(g string) bool { return !eval.ByLikelihood(g) }) {
			return bad("eval.final.graders", fmt.Sprintf("suite %s: answers are sampled, and the grader %s compares "+
				"options", s.Name, chosen[0]), "eval.final.likelihood: option or letter, or another grader")
		}
		return e.checkPositions(prompts, "suite "+s.Name, problems, "eval.final.max_new_tokens",
			e.run().Eval.Final.MaxNewTokens)
	}
	if a.Likelihood == eval.ByBlank && !strings.HasSuffix(a.Prompt, config.ProblemMark) {
		return bad("eval.final.prompt", fmt.Sprintf("suite %s: the text behind a problem's blank is compared, and "+
			"the prompt does not end with %s", s.Name, config.ProblemMark), "put everything else before it")
	}
	if e.run().Rollout.Tools.Used() {
		return bad("eval.final.likelihood", fmt.Sprintf("suite %s: likelihoods of options are compared without "+
			"tools, and rollout.tools is set", s.Name), "eval.final.likelihood: off, or exp eval on the merged folder")
	}
	arch, err := e.architecture()
	if err != nil {
		return nil // the model is at fault: whoever loads it says so
	}
	for i := range problems {
		ids, err := prompts.Encode(&problems[i])
		if err != nil {
			continue // checked before
		}
		longest := 0 // a bound on tokens
		texts := ask.Options(&problems[i], a)
		for _, text := range texts {
			longest = max(longest, len(text)+2)
		}
		for k, text := range problems[i].Choice.Options {
			if a.Likelihood == eval.ByBlank {
				longest = max(longest, len(text)+len(texts[k])+2)
			}
		}
		if len(ids)+longest <= arch.MaxPositions {
			continue
		}
		options, err := optionsOf(s.Name, &problems[i], a, prompts)
		if err != nil {
			continue
		}
		if err := longOption(s.Name, problems[i].ID, options, arch.MaxPositions); err != nil {
			return bad("eval.final.likelihood", err.Error(), "")
		}
	}
	return nil
}

// notNumbers returns the first option whose log-prob is not finite; -1 if all are.
func notNumbers(options []rollout.OptionScore) int {
	return slices.IndexFunc(options, func(o rollout.OptionScore) bool { return o.LogProb-o.LogProb != 0 })
}
