package stage

import (
	"cmp"
	"context"
	"errors"

	"exp/eval"
	"exp/eval/stat"
	"exp/experiments/ident"
	"exp/harness/config"
	"exp/harness/prompt"
	"exp/train/ranks"
	"exp/train/rl"
	"exp/train/rollout"
)

// onlineEval samples a few validation problems from the current policy, with separate
// random streams, so it does not affect training.
type onlineEval struct {
	n        int
	turns    bool              // completions may have several
	judged   bool              // by the run's reward alone
	kinds    []string          // of problems
	sources  map[string]string // of the problems, for verl's metrics, by id
	problems []rollout.Problem
	gen      eval.Generator
	grader   rollout.Grader
	scoring  eval.Scoring
	together bool        // all ranks that sample call grader
	overlong rl.Overlong // counts in verl's reward
}

// newOnlineEval returns nil if none is configured, or if this rank does not sample for it. Its generator has no
// Sampler yet.
func (r *reinforcement) newOnlineEval(in Inputs, prompts *prompt.Prompter,
	grader rollout.Grader) (*onlineEval, error) {
	o := r.run().Eval.Online
	if !r.validates() {
		return nil, nil
	}
	problems, err := r.problemsOf(in, RoleVal)
	if err != nil {
		return nil, err
	}
	if o.Problems > 0 && o.Problems < len(problems) {
		problems = problems[:o.Problems]
	}
	r.warnTruncated(prompts, "data.val", problems)
	params := samplingParams(r.run().Rollout)
	params.Temperature, params.TopK, params.TopP, params.MinP = o.Temperature, o.TopK, o.TopP, o.MinP
	params.Penalties = penalties(o.Repetition, o.Presence, o.Frequency)
	params.Environment, params.Agent = r.cfg.Sampling.Environment, r.cfg.Sampling.Agent
	params.Form = r.cfg.Sampling.Form
	e := &onlineEval{n: o.N, turns: r.run().Rollout.Tools.Used(), judged: r.run().JudgesAlone(),
		kinds: r.run().Task.Kinds(), sources: dataSources(problems, r.run().Task.Kind),
		problems: problems, grader: grader, overlong: r.cfg.Overlong,
		scoring: eval.Scoring{Limit: eval.Limit{Share: o.MaxNotGraded, Key: "eval.online.max_not_graded"}},
		gen: eval.Generator{Prompt: prompts.Encode, Params: params,
			Seed: func(label string) uint64 { return ident.Seed(r.Seed, "eval/online/"+label) }}}
	return e, r.checkBest(e)
}

// validationGrader returns what grades validations: the task or, where the reward judges alone, the grader of
// training. If another rank judges in training, the first one has a scorer of its own.
func (r *reinforcement) validationGrader(training rollout.Grader, owned *closers) (rollout.Grader, error) {
	switch {
	case !r.run().JudgesAlone():
		return r.task, nil
	case r.judges() || !r.leads() || !r.validates():
		return training, nil
	}
	g, end, err := r.newJudgeAlone(r.task, nil, nil)
	if err == nil {
		owned.add(func() { _ = end() }) // all scores are there
	}
	return g, err
}

// shareValidations divides validations among the ranks that sample them: problems and, unless others sample in
// training, the grading.
func (r *reinforcement) shareValidations() error {
	if r.online == nil {
		return nil
	}
	if r.online.gen.Sampler = r.trainer.Sampler; r.crew().Apart() {
		return nil
	}
	judging, err := r.judging(r.online.judged)
	r.online.grader, r.online.together = r.trainer.Together(r.online.grader, judging), true
	return err
}

// validationDue reports whether to validate after a step: every so many steps and, like verl, at the end.
func (e *Env) validationDue(step, of int) bool {
	every := e.run().Eval.Online.EverySteps
	return every > 0 && (step%every == 0 || step == of)
}

// assist does what the first rank needs of this one for a validation: it gives its part of the weights, and samples
// and grades its share, or waits if others do.
func (r *reinforcement) assist(step int) error {
	if err := r.trainer.PrepareSampler(); err != nil {
		return err // others may be within an exchange, so nobody can meet
	}
	var err error
	if o := r.online; o != nil {
		err = o.assist(context.Background(), r.validating(step))
	}
	if err := r.trainer.Meet(err); err != nil {
		return err
	}
	return r.keepBest(step, nil, nil)
}

// validating returns a function that tells how many completions of a validation are sampled.
func (r *reinforcement) validating(step int) func(done int) {
	total := len(r.online.problems) * r.online.n
	return func(done int) {
		if r.Hooks.Phase != nil {
			r.Hooks.Phase(step, "validation", done, total)
		}
	}
}

// validationUngraded is the kind of the event of a validation that its grader failed.
const validationUngraded = "online-evaluation-not-graded"

// validateStart scores the weights that training starts from, as step 0 of the validation
// curves. A run that goes on from a checkpoint has these scores already, unless its last validation could not be
// graded.
func (r *reinforcement) validateStart() error {
	step := r.trainer.State().Step
	if r.run().Eval.Online.EverySteps == 0 || step > 0 && !r.best.waits() {
		return nil
	}
	stop, err := ranks.Any(r.group(), r.Hooks.Stop != nil && r.Hooks.Stop())
	switch {
	case err == nil && stop && step > 0: // there may be no further step
		return ErrStopped
	case err != nil || stop:
		return err
	case !r.leads():
		if err := r.assist(step); err != nil || !r.best.waits() {
			return err
		}
		return r.endUnscored()
	}
	val, ungraded, err := r.validate(step)
	if err != nil {
		return err
	}
	if ungraded != nil {
		r.event(validationUngraded, "step %d: %s", step, ungraded)
	}
	if err := r.keepBest(step, val, ungraded); err != nil {
		return err
	}
	if r.best.waits() {
		return r.endUnscored()
	}
	if len(val) == 0 {
		return nil
	}
	r.progress(step, r.cfg.Steps, val...)
	if r.Hooks.Validated == nil {
		return nil
	}
	measured := make(map[string]float64, len(val))
	for _, m := range val {
		measured[m.Name] = m.Value
	}
	return r.Hooks.Validated(step, measured)
}

// validate returns our val/ metrics of the policy after a step, and verl's. If the grader fails it returns why and no
// metrics.
func (r *reinforcement) validate(step int) (list []rl.Metric, ungraded *eval.NotGradedError, err error) {
	if err := r.trainer.PrepareSampler(); err != nil {
		return nil, nil, err
	}
	list, err = r.online.measure(context.Background(), r.validating(step))
	if errors.As(err, &ungraded) {
		list, err = nil, nil
	}
	return list, ungraded, r.trainer.Meet(err)
}

// assist samples and grades a share, and keeps nothing.
func (o *onlineEval) assist(ctx context.Context, done func(int)) error {
	samples, err := o.gen.Generate(ctx, o.problems, 0, o.n, done)
	if err != nil || !o.together {
		return err
	}
	_, err = eval.Score(ctx, o.grader, o.problems, samples, o.scoring)
	if failed := (*eval.NotGradedError)(nil); errors.As(err, &failed) {
		return nil // the first rank says so
	}
	return err
}

// measure samples and grades completions and tells done how many are sampled. A grader that fails is
// an *eval.NotGradedError.
func (o *onlineEval) measure(ctx context.Context, done func(int)) ([]rl.Metric, error) {
	samples, err := o.gen.Generate(ctx, o.problems, 0, o.n, done)
	if err != nil {
		return nil, err
	}
	verdicts, err := eval.Score(ctx, o.grader, o.problems, samples, o.scoring)
	if err != nil {
		return nil, err
	}
	items, err := eval.Items(o.problems, samples, verdicts)
	if err != nil {
		return nil, err
	}
	if o.judged {
		eval.Judged(items, o.problems, config.PromptsTask)
	}
	sum, err := eval.Summarize(items, []int{o.n}, 0)
	if err != nil {
		return nil, err
	}
	kinds, err := eval.KindMetrics(items, o.problems, o.kinds, 0)
	if err != nil {
		return nil, err
	}
	var out []rl.Metric
	for _, m := range append(sum, kinds...) {
		out = append(out, fact("val/"+m.Name, m.Value))
	}
	return append(out, validation(o.sources, o.turns, samples, verdicts, o.overlong)...), nil
}

// mostSources limits how many data sets have metrics of their own: each has dozens.
const mostSources = 32

// dataSources returns the data set of each problem, by id: verl's data_source, or else the task. Many
// data sets count as one, the task.
func dataSources(problems []rollout.Problem, kind string) map[string]string {
	of, all := map[string]string{}, map[string]bool{}
	for i := range problems {
		source := problems[i].DataSource(cmp.Or(problems[i].Kind, kind))
		of[problems[i].ID], all[source] = source, true
	}
	if len(all) > mostSources {
		for id := range of {
			of[id] = kind
		}
	}
	return of
}

// verlDraws has the number of draws and the seed of verl's bootstrap_metric.
var verlDraws = stat.SubsetDraws{Draws: 1000, Seed: 42}

// validation returns verl's validation metrics (val-core/…, val-aux/…; stat.Validation) of the
// graded samples of a validation; verdicts are in the samples' order. The variables are reward, the
// verdict's less the overlong penalty, which verl's dapo manager subtracts here as in training, and
// acc, 1 if it is correct; the vote is over answers, where no answer counts as one too. sources has
// each problem's data set.
//
// Its best@n is lower than the pass@n next to it, the chance that one of n samples is right. With several turns it
// counts their messages, too.
func validation(sources map[string]string, several bool, samples []eval.Sample, verdicts []rollout.Verdict,
	overlong rl.Overlong) []rl.Metric {
	v := stat.Validation{Answer: []string{}, Variables: []stat.Variable{{Name: "reward"}, {Name: "acc"}}}
	for i, s := range samples {
		x := verdicts[i]
		if x.Status != rollout.Graded {
			continue
		}
		acc := 0.0
		if x.Correct {
			acc = 1
		}
		if several {
			v.Turns = append(v.Turns, s.Completion.Messages())
		}
		v.Source, v.Problem, v.Answer = append(v.Source, sources[s.ProblemID]), append(v.Problem, s.ProblemID),
			append(v.Answer, x.Answer)
		v.Variables[0].Values = append(v.Variables[0].Values, x.Reward+overlong.Reward(len(s.Completion.Tokens)))
		v.Variables[1].Values = append(v.Variables[1].Values, acc)
	}
	var out []rl.Metric
	for _, m := range v.Metrics(verlDraws) {
		out = append(out, fact(m.Name, m.Value))
	}
	return out
}
