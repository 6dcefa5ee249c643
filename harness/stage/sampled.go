package stage

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"exp/eval"
	"exp/experiments/ident"
	"exp/harness/prompt"
	"exp/train"
	"exp/train/generate"
	"exp/train/model"
	"exp/train/rollout"
)

// Sampled holds completions of a suite that were sampled before, of the same problems by the same
// weights with the same streams and settings, but another number of them. Completion k of a problem
// does not depend on their number (eval.SampleLabel), so they equal the first ones of this
// evaluation bit for bit.
type Sampled struct {
	Completions ident.Digest
	N           int // of each problem
}

// earlier are completions that were sampled before, and their lines in the completions blob. The lines are
// written again as they are: JSON keeps bytes that are not UTF-8 as escapes, which a text read back has not.
type earlier struct {
	samples []eval.Sample
	lines   [][]byte
	each    int // of each problem
}

// earlier returns the completions in Env.Sampled that are among the first n of each problem. If they cannot
// be read it says so and returns none: all are sampled again.
func (e *Env) earlier(problems []rollout.Problem, n int) earlier {
	if e.Sampled == nil {
		return earlier{}
	}
	had, err := e.readSampled(problems, n)
	if err != nil {
		e.event("sampled-again", "the earlier completions are unusable, sampling all again: %v", err)
		return earlier{}
	}
	return had
}

func (e *Env) readSampled(problems []rollout.Problem, n int) (had earlier, err error) {
	b, err := e.Blobs.Bytes(e.Sampled.Completions)
	if err != nil {
		return had, err
	}
	all, err := readCompletions(b)
	if err != nil {
		return had, err
	}
	if want := len(problems) * e.Sampled.N; len(all) != want {
		return had, fmt.Errorf("there are %d, not %d of each of %d problems", len(all), e.Sampled.N, len(problems))
	}
	lines := bytes.SplitAfter(b, []byte{'\n'})
	had.each = min(n, e.Sampled.N)
	for i, s := range all {
		if p, k := problems[i/e.Sampled.N].ID, i%e.Sampled.N; s.ProblemID != p || s.K != k {
			return earlier{}, fmt.Errorf("completion %d is number %d of problem %s, not number %d of %s", i, s.K,
				s.ProblemID, k, p)
		}
		if s.K < n {
			had.samples = append(had.samples, s)
			had.lines = append(had.lines, lines[i])
		}
	}
	return had, nil
}

// joined puts the fresh completions, or lines, of each problem after its earlier ones; all problems have the
// same number of each.
func joined[T any](earlier, fresh []T, problems int) []T {
	if len(earlier) == 0 {
		return fresh
	}
	all := make([]T, 0, len(earlier)+len(fresh))
	had, added := len(earlier)/problems, len(fresh)/problems
	for i := range problems {
		all = append(all, earlier[i*had:(i+1)*had]...)
		all = append(all, fresh[i*added:(i+1)*added]...)
	}
	return all
}

// Repeated is a completion of an evaluation that was sampled again.
type Repeated struct {
	Problem   string
	K         int
	Want, Got ident.Digest // of the lines in the completions blob
	Field     string       // the first that differs, else empty
}

// SampleAgain samples some completions of an evaluation again, those that choose names by their places among all n
// recorded ones.
func SampleAgain(ctx context.Context, e *Env, label string, in Inputs, completions ident.Digest,
	choose func(n int) []int) ([]Repeated, error) {
	b, err := e.Blobs.Bytes(completions)
	if err != nil {
		return nil, err
	}
	all, err := readCompletions(b)
	if err != nil {
		return nil, err
	}
	places := choose(len(all))
	s, err := e.openSuite(ctx, label, in)
	if err != nil {
		return nil, err
	}
	defer s.close()
	had := make([]eval.Sample, len(places))
	for i, at := range places {
		had[i] = all[at]
	}
	got, err := e.drawnAgain(ctx, s, had)
	if err != nil {
		return nil, err
	}
	lines, err := completionLines(got)
	if err != nil {
		return nil, err
	}
	recorded := bytes.SplitAfter(b, []byte{'\n'})
	list := make([]Repeated, len(places))
	for i, at := range places {
		list[i] = Repeated{had[i].ProblemID, had[i].K, ident.Sum(recorded[at]), ident.Sum(lines[i]), ""}
		if list[i].Want != list[i].Got {
			list[i].Field = firstDifference(had[i].Completion, *got[i].Completion.Named())
		}
	}
	return list, nil
}

// drawnAgain samples the samples of an evaluation again, or compares the options of their problems again.
func (e *Env) drawnAgain(ctx context.Context, s *openedSuite, had []eval.Sample) ([]eval.Sample, error) {
	if s.asking.Likelihood != "" {
		list := slices.DeleteFunc(slices.Clone(s.problems), func(p rollout.Problem) bool {
			return !slices.ContainsFunc(had, func(x eval.Sample) bool { return x.ProblemID == p.ID })
		})
		got, err := e.choose(ctx, s, list)
		if err != nil {
			return nil, err
		}
		place := make(map[string]int, len(had))
		for i, x := range had {
			place[x.ProblemID] = i
		}
		slices.SortFunc(got, func(a, b eval.Sample) int { return place[a.ProblemID] - place[b.ProblemID] })
		return got, nil
	}
	engine, gen, err := e.generator(s, len(had), 1)
	if err != nil {
		return nil, err
	}
	defer engine.Close()
	return gen.Again(ctx, s.problems, had, func(n int) { e.progress(n, len(had)) })
}

// Rollout names a completion of a training step.
type Rollout struct {
	Step    int
	Problem string
	K       int
}

// Redrawn is a rollout that was sampled and graded again.
type Redrawn struct {
	Completion rollout.Completion
	Verdict    *rollout.Verdict // nil: the reward asks a server, so nothing was graded
	Voted      bool             // the reward in training was a vote of all completions; Verdict has the task's
}

// SampleRollouts samples completions of training again, by the policy as it was after so many steps, grades them and
// returns them in order. That policy sampled step after+1+rollout.staleness; the one that training started from also
// sampled all earlier steps.
func SampleRollouts(ctx context.Context, e *Env, in Inputs, after int, list []Rollout) ([]Redrawn, error) {
	var owned closers
	defer owned.close()
	problems, err := e.trainingProblems(in, &owned)
	if err != nil {
		return nil, err
	}
	prompts, err := e.prompter()
	if err != nil {
		return nil, err
	}
	reqs, err := e.requests(list, problems, prompts)
	if err != nil {
		return nil, err
	}
	m, err := e.policyAfter(after, in, &owned)
	if err != nil {
		return nil, err
	}
	got, err := e.drawAgain(ctx, m, reqs, prompts)
	if err != nil {
		return nil, err
	}
	out, items := make([]Redrawn, len(list)), make([]rollout.Item, len(list))
	for i := range list {
		out[i].Completion = got[i][0]
		items[i] = rollout.Item{Problem: reqs[i].Problem, Sample: list[i].K, Completion: &out[i].Completion}
	}
	e.scorer = in[RoleScorer]
	if e.run().Reward.ByServer() {
		return out, nil
	}
	verdicts, err := e.gradeAgain(ctx, items)
	if err != nil {
		return out, err
	}
	return out, e.rewardAgain(m, reqs, prompts, verdicts, out)
}

// rewardAgain sets training's verdicts, with the rewards that the policy or a completion alone gives.
func (e *Env) rewardAgain(m *model.Model, reqs []rollout.Request, prompts *prompt.Prompter, verdicts []rollout.Verdict,
	out []Redrawn) error {
	conf := TrainConfig(e.run())
	all := make([]train.Trajectory, len(out))
	for i := range verdicts {
		v := &verdicts[i]
		train.KeepFinite(v)
		out[i].Verdict = v
		all[i] = train.Trajectory{Problem: reqs[i].Problem, Prompt: out[i].Completion.PromptOf(reqs[i].Prompt),
			Completion: &out[i].Completion, Verdict: *v}
	}
	var answer func(*rollout.Problem, *rollout.Completion) (*train.Answer, error)
	if conf.Self.ReadsAnswers() {
		answers, err := e.newAnswers(prompts)
		if err != nil {
			return err
		}
		answer = answers.Answer
	}
	voted, err := train.RewardAgain(e.Backend, m, conf, answer, all)
	for i := range all {
		*out[i].Verdict, out[i].Voted = all[i].Verdict, voted
	}
	return err
}

// drawAgain samples from a policy as training did.
func (e *Env) drawAgain(ctx context.Context, m *model.Model, reqs []rollout.Request,
	prompts *prompt.Prompter) ([][]rollout.Completion, error) {
	var owned closers
	defer owned.close()
	params := TrainConfig(e.run()).Sampling
	engine, err := e.newEngine(e.Backend, m, prompts.Vocabulary(), params.MaxNewTokens, []generate.Call{{
		Requests: len(reqs), Samples: 1, Prompt: e.run().Data.MaxPromptTokens, New: params.MaxNewTokens}})
	if err != nil {
		return nil, err
	}
	owned.add(engine.Close)
	end, err := e.equip(ctx, &params, prompts)
	if err != nil {
		return nil, err
	}
	owned.add(func() { _ = end() }) // all calls have ended
	return engine.Sample(ctx, reqs, params, func(n int) { e.progress(n, len(reqs)) })
}

// gradeAgain gives training's verdicts.
func (e *Env) gradeAgain(ctx context.Context, items []rollout.Item) (list []rollout.Verdict, err error) {
	var owned closers
	defer owned.close()
	task, end, err := e.newTask(ctx)
	if err != nil {
		return nil, err
	}
	owned.add(func() { _ = end() }) // all programs have ended
	g, end, err := e.newReward(task)
	if err != nil {
		return nil, err
	}
	owned.add(func() { _ = end() })
	if batch, ok := g.(rollout.BatchGrader); ok {
		return batch.GradeAll(ctx, items)
	}
	for _, x := range items {
		v, err := g.Grade(ctx, x.Problem, x.Completion)
		if err != nil {
			return nil, fmt.Errorf("problem %s: %w", x.Problem.ID, err)
		}
		list = append(list, v)
	}
	return list, nil
}

// requests returns what training asked the sampler for these completions.
func (e *Env) requests(list []Rollout, problems []rollout.Problem,
	prompts *prompt.Prompter) ([]rollout.Request, error) {
	seed, byID := seedFunc(e.Seed), map[string]*rollout.Problem{}
	for i := range problems {
		byID[problems[i].ID] = &problems[i]
	}
	reqs := make([]rollout.Request, len(list))
	for i, x := range list {
		p := byID[x.Problem]
		if p == nil {
			return nil, fmt.Errorf("data.train has no problem %s", x.Problem)
		}
		prompt, err := prompts.Encode(p)
		if err != nil {
			return nil, fmt.Errorf("problem %s: prompt: %w", p.ID, err)
		}
		reqs[i] = rollout.Request{Prompt: prompt, Seeds: []uint64{seed(train.RolloutLabel(x.Step, p.ID, x.K))},
			Problem: p}
	}
	return reqs, nil
}

func samePrompt(a, b rollout.Conversation) bool { return slices.Equal(a.Prompt, b.Prompt) }

// firstDifference names the first part in which completions with different lines differ.
func firstDifference(a, b rollout.Completion) string {
	switch {
	case !slices.EqualFunc(a.Conversations(a.PromptOf(nil)), b.Conversations(b.PromptOf(nil)), samePrompt):
		return "prompt"
	case !slices.Equal(a.Options, b.Options):
		return "likelihoods"
	case !slices.Equal(a.Tokens, b.Tokens):
		return "tokens"
	case !slices.Equal(a.LogProbs, b.LogProbs):
		return "logprobs"
	case a.Text != b.Text:
		return "text"
	case !slices.Equal(a.Acts, b.Acts):
		return "turns"
	}
	return "record"
}
