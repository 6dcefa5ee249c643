package stage

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"exp/eval/task"
	"exp/experiments/ident"
	"exp/experiments/quantity"
	"exp/harness/config"
	"exp/harness/prompt"
	"exp/kernels"
	"exp/train"
	"exp/train/checkpoint"
	"exp/train/generate"
	"exp/train/model"
	"exp/train/ranks"
	"exp/train/rl"
	"exp/train/rollout"
)

// reinforcement is the RL stage while it runs.
type reinforcement struct {
	*Env
	context context.Context
	cfg     train.Config
	task    rollout.Grader
	engine  *generate.Engine // nil on a rank that samples nothing
	trainer *train.Trainer
	saver   *saver
	online  *onlineEval
	best    *bestWeights // nil: the last weights count
	chain   ident.Digest
	last    []rl.Metric
	cut     int // training prompts that are too long
	alike   rl.Alike
	reward  func() error // closes the grader
	// sampled are the engine's counts after the last step.
	sampled generate.Stats
}

// reinforce trains the policy from the weights of the input.
func reinforce(ctx context.Context, e *Env, in Inputs) (*Outcome, error) {
	e.scorer = in[RoleScorer]
	r := &reinforcement{Env: e, context: ctx, cfg: TrainConfig(e.run()), chain: ident.ChainStart(e.RID)}
	r.cfg.Offload = e.Offload
	var owned closers
	defer owned.close()
	if err := r.build(in, &owned); err != nil {
		return nil, err
	}
	if note := OverlongNote(e.run()); note != "" && e.leads() {
		e.event("overlong-off", "%s", note)
	}
	saved, resumed, err := r.saver.load()
	if err != nil {
		return nil, err
	}
	if resumed && e.leads() {
		r.chain = saved.Chain
		if e.Hooks.Resumed != nil {
			e.Hooks.Resumed(saved.Saved)
		} else {
			e.warn("resuming from the checkpoint of step %d", saved.Step)
		}
	}
	if err = r.validateStart(); err == nil {
		err = r.trainer.Run(ctx, e.Hooks.Stop)
	}
	if err == nil {
		err = r.reward()
	}
	if errors.Is(err, ErrStopped) && !e.Again {
		return nil, errors.Join(err, r.checkpoint())
	}
	if err != nil {
		return nil, r.keepGraded(err)
	}
	return r.outcome()
}

// ungradedExit is the exit code of an evaluation whose infrastructure failed.
const ungradedExit = 8

// keepGraded saves the finished steps if the next one could not be graded: a program or a server is
// down, and the run goes on when it is up again. Several ranks might disagree about the error, so they
// save nothing.
func (r *reinforcement) keepGraded(err error) error {
	var coded interface{ ExitCode() int }
	if r.Again || r.group().Size() > 1 || !errors.As(err, &coded) || coded.ExitCode() != ungradedExit ||
		!r.trainer.Whole() || r.trainer.State().Step == r.saver.at {
		return err
	}
	if failed := r.checkpoint(); failed != nil {
		return errors.Join(err, failed)
	}
	return err
}

// closers frees things in reverse order.
type closers []func()

func (c *closers) add(f func()) { *c = append(*c, f) }

func (c *closers) close() {
	for i := len(*c) - 1; i >= 0; i-- {
		(*c)[i]()
	}
}

// build makes models, engine and trainer.
func (r *reinforcement) build(in Inputs, owned *closers) error {
	c := r.run()
	all := Everyone(c, r.group().Size())
	parts := train.Parts{Backend: r.Backend, Seed: seedFunc(r.Seed), Recorder: r, AfterStep: r.afterStep, Wait: r.Wait,
		Ranks: r.Ranks, Tensor: all.Tensor, RolloutTensor: all.Rollout, Samplers: Samplers(c, all.Ranks).Ranks,
		Phase: r.Hooks.Phase}
	var err error
	if parts.Problems, err = r.trainingProblems(in, owned); err != nil {
		return err
	}
	drawn, err := r.loadModels(in, &parts, owned)
	if err != nil {
		return err
	}
	var end func() error
	if r.task, end, err = r.newTask(r.context); err != nil {
		return err
	}
	owned.add(func() { _ = end() }) // all programs have ended
	if err = teachersHavePupils(c.Algo, parts.Problems); err != nil {
		return err
	}
	prompts, err := r.prompter()
	if err != nil {
		return err
	}
	tok := prompts.Vocabulary()
	r.cut = r.warnTruncated(prompts, "data.train", parts.Problems)
	if err := r.buildReward(&parts, prompts, owned); err != nil {
		return err
	}
	parts.Prompt, parts.Demonstration = prompts.Encode, prompts.Demonstration
	if err := r.buildEnvironment(prompts, owned); err != nil {
		return err
	}
	if r.samples() {
		if r.engine, err = r.newEngine(cmp.Or(r.Sampling, r.Backend), drawn, tok, c.Rollout.MaxNewTokens,
			r.crew().Calls(c)); err != nil {
			return err
		}
		owned.add(r.engine.Close)
		parts.Sampler = r.engine
	}
	if c.Rollout.Source == recordedSource {
		var others int
		if parts.Recorded, others, err = r.recording(in, tok, parts.Problems); err != nil {
			return err
		}
		if others > 0 {
			r.event("recorded-rollouts", "left out: %s of problems that are not in data.train",
				quantity.Plural(others, "recorded rollout"))
		}
	}
	grader, err := r.validationGrader(parts.Grader, owned)
	if err != nil {
		return err
	}
	if r.online, err = r.newOnlineEval(in, prompts, grader); err != nil {
		return err
	}
	if r.trainer, err = train.New(r.cfg, parts); err != nil {
		return err
	}
	owned.add(r.trainer.Close)
	if err := r.shareValidations(); err != nil {
		return err
	}
	r.save()
	return nil
}

// save makes what saves checkpoints and, if validations choose the weights, the best ones.
func (r *reinforcement) save() {
	r.saver = r.Env.saver(string(config.Train), r.trainer)
	r.best = newBestWeights(r.Env, r.saver.dir)
	r.saver.best = r.best
}

// trainingProblems reads the problems to train on, and prepares their images and the validations'.
func (e *Env) trainingProblems(in Inputs, owned *closers) ([]rollout.Problem, error) {
	problems, err := e.problemsOf(in, RoleTrain)
	if err != nil {
		return nil, err
	}
	lists := [][]rollout.Problem{problems}
	if _, ok := in[RoleVal]; ok && ReadsImages(e.run()) {
		val, err := e.problemsOf(in, RoleVal)
		if err != nil {
			return nil, err
		}
		lists = append(lists, val)
	}
	return problems, e.showPlayed(in, owned, lists...)
}

// buildReward makes what rewards completions.
func (r *reinforcement) buildReward(parts *train.Parts, prompts *prompt.Prompter, owned *closers) (err error) {
	if parts.Grader, r.reward, err = r.newReward(r.task); err != nil {
		return err
	}
	owned.add(func() { _ = r.reward() }) // a second time if training failed
	if parts.Judging, err = r.judging(!r.run().Reward.ByTask()); err != nil {
		return err
	}
	parts.Agreement = r.agreement
	if !r.cfg.Self.ReadsAnswers() {
		return nil
	}
	answers, err := r.newAnswers(prompts)
	if err != nil {
		return err
	}
	parts.Answer = answers.Answer
	return nil
}

// buildEnvironment makes what answers calls or asks the policy, on ranks that sample.
func (r *reinforcement) buildEnvironment(prompts *prompt.Prompter, owned *closers) error {
	if !r.samples() {
		return nil
	}
	end, err := r.equip(r.context, &r.cfg.Sampling, prompts)
	if err != nil {
		return err
	}
	owned.add(func() { _ = end() }) // nothing is under way
	return nil
}

// newEngine makes a sampler for m on a device, whose completions have at most maxNew tokens.
func (e *Env) newEngine(be kernels.Backend, m *model.Model, vocab generate.Vocabulary, maxNew int,
	calls []generate.Call) (*generate.Engine, error) {
	o := EngineOptions(e.run(), m.Config, maxNew, calls)
	o.CacheTokens = e.CacheTokens
	return e.openEngine(be, m, vocab, o)
}

// openEngine makes an engine of a size for m on a device.
func (e *Env) openEngine(be kernels.Backend, m *model.Model, vocab generate.Vocabulary, o generate.Options) (
	*generate.Engine, error) {
	o.Ridge = Ridge(e.run(), be, m.Config)
	if b, ok := be.(interface{ Products() ranks.Group }); ok {
		o.Products = b.Products()
	}
	return generate.New(be, m, vocab, o)
}

// prefillRows is the number of prompt tokens that a sampling step may compute next to the running
// completions.
const prefillRows = 256

// Step records a finished step: it extends the trajectory chain and passes the step on.
func (r *reinforcement) Step(s *train.Step) error {
	every := r.run().Verify.ParamEvery
	digest := every > 0 && s.Step%every == 0 || s.Step == s.Of
	if !r.leads() {
		return r.follow(s, digest)
	}
	measured := make(map[string]float64, len(s.System))
	for _, m := range s.System {
		measured[m.Name] = m.Value
	}
	if r.validationDue(s.Step, s.Of) {
		start := time.Now()
		val, ungraded, err := r.validate(s.Step)
		if err != nil {
			return err
		}
		if ungraded != nil {
			s.Events = append(s.Events, train.Event{Kind: validationUngraded, Text: ungraded.Error()})
		}
		for _, m := range val {
			measured[m.Name] = m.Value
		}
		measured["timing_s/testing"] = time.Since(start).Seconds()
		s.System = append(s.System, val...)
		if err := r.keepBest(s.Step, val, ungraded); err != nil {
			return err
		}
	}
	if r.engine != nil {
		all := r.engine.Stats()
		for _, m := range []rl.Metric{
			{Name: "perf/sampler_restarts", Value: float64(all.Restarts - r.sampled.Restarts)},
			{Name: "perf/sampler_speculated", Value: float64(all.KeptDrafts - r.sampled.KeptDrafts)},
		} {
			if m.Value > 0 {
				measured[m.Name], s.System = m.Value, append(s.System, m)
			}
		}
		r.sampled = all
	}
	if text := r.alike.Add(s.Step, s.Metrics); text != "" {
		text = fmt.Sprintf("%s; exp samples %s --step %d shows them", text, r.RID.Short(), s.Step)
		s.Events = append(s.Events, train.Event{Kind: "equal-rewards", Text: text})
	}
	det := detOf(s)
	if digest {
		var err error
		if det.Params, err = r.learnedDigest(r.trainer); err != nil {
			return err
		}
	}
	chain, err := det.Next(r.chain)
	if err != nil {
		return err
	}
	r.chain, r.last = chain, s.Metrics
	for _, ev := range s.Events {
		r.warn("%s", ev.Text)
	}
	r.progress(s.Step, s.Of, append(s.Metrics, s.System...)...)
	if r.Hooks.Step == nil {
		return nil
	}
	return r.Hooks.Step(Step{Det: det, Chain: chain, Measured: measured, Tokens: sampledTokens(s),
		Trajectories: s.Trajectories,
		Components:   rollout.ComponentNames(r.trainer.Grader), Events: s.Events})
}

// follow does what the first rank needs of this one to record a step.
func (r *reinforcement) follow(s *train.Step, digest bool) error {
	if r.validationDue(s.Step, s.Of) {
		if err := r.assist(s.Step); err != nil {
			return err
		}
	}
	if !digest {
		return nil
	}
	_, err := r.learnedDigest(r.trainer)
	return err
}

// detOf digests the values that a repeated step must reproduce.
func detOf(s *train.Step) ident.Det {
	var items []string
	var rewards []float64
	completions := make([]*rollout.Completion, len(s.Trajectories))
	for i := range s.Trajectories {
		t := &s.Trajectories[i]
		if i == 0 || t.Problem != s.Trajectories[i-1].Problem {
			items = append(items, t.Problem.ID)
		}
		completions[i] = t.Completion
		rewards = append(rewards, t.Verdict.Reward)
		for _, s := range t.Verdict.Steps {
			rewards = append(rewards, s.Reward)
		}
	}
	det := ident.Det{Step: int64(s.Step), Items: must(ident.Hash("exp/items/1", items)),
		Rewards: ident.SumLE(rewards), Metrics: make(map[string]float64, len(s.Metrics))}
	det.Tokens, det.LogProbs = RolloutDigests(completions)
	for _, m := range s.Metrics {
		det.Metrics[m.Name] = m.Value
	}
	return det
}

// RolloutDigests returns the digests of a step's tokens and log-probs, from all its completions in order. Prompts that
// agents wrote are among the tokens, after their negative lengths; prompts of further conversations come last, each
// with the place where it starts, and then the number of the final one. Images that agents brought follow, each with
// the number of its tokens and its digest, as text: the ids of their tokens say only which of them they are of. Turns
// that are told apart come behind them: their number, and for each where it lies, its reward's bits, and as text its
// state and its conversation.
func RolloutDigests(all []*rollout.Completion) (tokens, logProbs ident.Digest) {
	var ids []int32
	var values []float32
	for _, c := range all {
		c = c.Named()
		if c.Asked != nil {
			ids = append(append(ids, -int32(len(c.Asked.Tokens))), c.Asked.Tokens...)
		}
		ids = append(append(ids, int32(len(c.Tokens))), c.Tokens...)
		for _, x := range c.Later() {
			ids = append(append(ids, -int32(len(x.Tokens)), int32(x.Start)), x.Tokens...)
		}
		if len(c.Later()) > 0 {
			ids = append(ids, int32(c.Asked.Final))
		}
		for _, im := range c.Brought() {
			ids = append(ids, int32(im.Tokens))
			ids = appendText(ids, im.Digest)
		}
		ids = appendActs(ids, c.Acts)
		values = append(values, c.LogProbs...)
	}
	return ident.SumLE(ids), ident.SumLE(values)
}

// appendActs appends turns, if there are any.
func appendActs(ids []int32, acts []rollout.Act) []int32 {
	if len(acts) == 0 {
		return ids
	}
	ids = append(ids, -int32(len(acts)))
	for _, a := range acts {
		bits := math.Float64bits(a.Reward)
		ids = append(ids, int32(a.Start), int32(a.End), int32(bits>>32), int32(uint32(bits)),
			int32(len(a.Conversation)))
		ids = appendText(appendText(ids, a.State), a.Conversation)
	}
	return ids
}

// appendText appends the bytes of a text.
func appendText(ids []int32, text string) []int32 {
	for _, char := range []byte(text) {
		ids = append(ids, int32(char))
	}
	return ids
}

func sampledTokens(s *train.Step) int64 {
	n := s.GreedyTokens
	for i := range s.Trajectories {
		if c := s.Trajectories[i].Completion; c.Finish != rollout.FinishShown {
			n += c.SampledTokens()
		}
	}
	return int64(n)
}

// afterStep saves checkpoints at the configured cadence. Ranks that only sample record no step, so they wait
// here for its validation.
func (r *reinforcement) afterStep(step int) error {
	if !r.crew().Learns && r.validationDue(step, r.cfg.Steps) {
		if err := r.assist(step); err != nil {
			return err
		}
	}
	if r.best.waits() {
		return r.endUnscored()
	}
	if r.Again || step == r.cfg.Steps {
		return nil
	}
	due, err := r.saver.due(step)
	if err != nil || !due {
		return err
	}
	return r.checkpoint()
}

func (r *reinforcement) checkpoint() error {
	if r.Hooks.Save != nil && r.leads() {
		if err := r.Hooks.Save(); err != nil {
			return err
		}
	}
	if r.Hooks.Brought != nil && r.leads() {
		if err := r.Hooks.Brought(r.trainer.Brought()); err != nil {
			return err
		}
	}
	dir, err := r.saver.save(r.chain, nil)
	if err != nil || !r.leads() {
		return err
	}
	if r.Hooks.Checkpoint != nil {
		if err := r.Hooks.Checkpoint(dir, r.trainer.State().Step, r.chain); err != nil {
			return err
		}
	}
	_, err = checkpoint.Prune(r.saver.dir, max(1, r.run().Checkpoint.Keep), r.Hooks.Pinned)
	return err
}

// outcome stores the trained weights, auxiliary heads included.
func (r *reinforcement) outcome() (*Outcome, error) {
	w, err := r.weights()
	if err != nil || !r.leads() {
		return nil, err
	}
	summary := map[string]any{"steps": r.cfg.Steps, "chain": r.chain, "final": finite(r.last)}
	facts := metrics(fact("steps", float64(r.cfg.Steps)))
	if b := r.best.found(); b != nil {
		summary["best"] = b
		facts = append(facts, fact("best step", float64(b.Step)), fact(r.best.metric, b.Value))
	}
	if r.cut > 0 {
		summary["truncated"] = r.cut
	}
	return &Outcome{Outputs: []Output{w}, Summary: summary, Facts: facts}, nil
}

// finite returns metrics as a JSON object without values that JSON cannot hold.
func finite(list []rl.Metric) map[string]float64 {
	m := map[string]float64{}
	for _, x := range list {
		if !math.IsNaN(x.Value) && !math.IsInf(x.Value, 0) {
			m[x.Name] = x.Value
		}
	}
	return m
}

// agreement is for train.Parts.
func (r *reinforcement) agreement(ctx context.Context, p *rollout.Problem,
	list []*rollout.Completion) ([]string, error) {
	return task.Agreement(ctx, r.task, p, list)
}
