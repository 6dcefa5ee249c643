package stage

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"

	"exp/experiments/ident"
	"exp/experiments/quantity"
	"exp/harness/config"
	"exp/harness/prompt"
	"exp/train"
	"exp/train/generate"
	"exp/train/model"
	"exp/train/ranks"
	"exp/train/reward"
	"exp/train/rollout"
)

// passRate is a line of the blob of pass rates: a training problem, in the order of the data. Counts are absent where
// the rows of the data brought the rates along.
type passRate struct {
	Problem   string `json:"problem"`
	Samples   int    `json:"samples,omitempty"`
	Graded    int    `json:"graded,omitempty"`  // completions with a verdict
	Correct   int    `json:"correct,omitempty"` // of these
	Truncated int    `json:"truncated,omitempty"`
	Tokens    int    `json:"tokens,omitempty"` // sampled
	// Score is the mean reward, where the reward judges alone; null without a verdict.
	Score *float64 `json:"score,omitempty"`
	Rate  *float64 `json:"rate"` // right ones of those with a verdict; null: unknown
}

// passRateOf returns the line of a rating; scored adds the score.
func passRateOf(r train.Rating, scored bool) passRate {
	x := passRate{Problem: r.Problem, Samples: r.Samples, Graded: r.Graded, Correct: r.Correct,
		Truncated: r.Truncated, Tokens: r.Tokens}
	if r.Graded == 0 {
		return x
	}
	rate := float64(r.Correct) / float64(r.Graded)
	x.Rate = &rate
	if scored {
		score := r.Reward / float64(r.Graded)
		x.Score = &score
	}
	return x
}

// rater measures pass rates while its stage runs.
type rater struct {
	*Env
	problems []rollout.Problem
	rater    *train.Rater
	progress rateProgress
	lines    []passRate // of the first problems; on the first rank
	cut      int        // training prompts that are too long
	done     int        // problems rated
}

// rateProblems samples completions of every training problem from the weights that reinforcement learning starts from,
// and grades them. It does not depend on the run's seed.
func rateProblems(ctx context.Context, e *Env, in Inputs) (*Outcome, error) {
	e.scorer, e.rating = in[RoleScorer], true
	r := &rater{Env: e}
	var owned closers
	defer owned.close()
	if err := r.build(ctx, in, &owned); err != nil {
		return nil, err
	}
	if err := r.resume(); err != nil {
		return nil, err
	}
	c := e.run()
	for together := RatedTogether(c, e.group().Size()); r.done < len(r.problems); {
		stop, err := ranks.Any(e.group(), e.Hooks.Stop != nil && e.Hooks.Stop())
		switch {
		case err != nil:
			return nil, err
		case stop:
			return nil, ErrStopped
		}
		if err := r.rate(ctx, min(r.done+together, len(r.problems))); err != nil {
			return nil, err
		}
	}
	if !e.leads() {
		return nil, nil
	}
	return r.outcome()
}

// RatedTogether returns how many problems are rated in one call, after which the stage can be resumed: at least a
// training step's completions, and enough for the sampler of each of so many ranks.
func RatedTogether(c *config.Run, ranks int) int {
	groups := ranks / Everyone(c, ranks).Tensor
	n := max(c.Train.PromptsPerStep*c.Rollout.N, groups*c.Rollout.MaxSequences)
	return max(1, n/c.Data.PassRate.Samples)
}

// RatingCalls returns the largest calls of a rank's sampler.
func RatingCalls(c *config.Run, ranks int) []generate.Call {
	groups := ranks / Everyone(c, ranks).Tensor
	call := generate.Call{Requests: (RatedTogether(c, ranks) + groups - 1) / groups, Samples: c.Data.PassRate.Samples,
		Prompt: c.Data.MaxPromptTokens, New: c.Rollout.MaxNewTokens}
	return []generate.Call{call}
}

// build makes what samples and grades.
func (r *rater) build(ctx context.Context, in Inputs, owned *closers) (err error) {
	c := r.run()
	if r.problems, err = r.problemsOf(in, RoleTrain); err != nil {
		return err
	}
	if err := r.showPlayed(in, owned, r.problems); err != nil {
		return err
	}
	prompts, err := r.prompter()
	if err != nil {
		return err
	}
	r.cut = r.warnTruncated(prompts, "data.train", r.problems)
	m, err := r.loadModel(in, RoleWeights, model.Heads{LM: true}, false)
	if err != nil {
		return err
	}
	owned.add(m.Close)
	engine, err := r.newEngine(r.Backend, m, prompts.Vocabulary(), c.Rollout.MaxNewTokens,
		RatingCalls(c, r.group().Size()))
	if err != nil {
		return err
	}
	owned.add(engine.Close)
	params, end, err := r.ratingParams(ctx, prompts)
	if err != nil {
		return err
	}
	owned.add(func() { _ = end() }) // all calls have ended
	grader, end, err := r.ratingGrader(ctx)
	if err != nil {
		return err
	}
	owned.add(func() { _ = end() }) // all verdicts are there
	judging, err := r.judging(c.JudgesAlone())
	if err != nil {
		return err
	}
	r.rater, err = train.NewRater(
		train.RaterConfig{Samples: c.Data.PassRate.Samples, Sampling: params, MaxNotGraded: c.Reward.MaxNotGraded},
		train.Parts{Sampler: engine, Grader: grader, Judging: judging, Prompt: prompts.Encode,
			Problems: r.problems,
			Seed:     func(label string) uint64 { return ident.Seed(r.Seed, "pass rate/"+label) },
			Ranks:    r.Ranks, Tensor: Everyone(c, r.group().Size()).Tensor, Phase: r.phase, Show: r.showsBrought()})
	return err
}

// ratingParams returns how completions are sampled: as in training. end frees what answers their calls.
func (r *rater) ratingParams(ctx context.Context, prompts *prompt.Prompter) (p rollout.Params, end func() error,
	err error) {
	p = samplingParams(r.run().Rollout)
	end, err = r.equip(ctx, &p, prompts)
	return p, end, err
}

// ratingGrader returns what says which completions are right: the task, or the reward where it judges alone, on the
// ranks that judge.
func (r *rater) ratingGrader(ctx context.Context) (g rollout.Grader, end func() error, err error) {
	t, endTask, err := r.newTask(ctx)
	if err != nil || !r.run().JudgesAlone() {
		return t, endTask, err
	}
	if !r.judges() {
		return reward.NewGrader(t, nil, nil), endTask, nil
	}
	g, endReward, err := r.newJudgeAlone(t, nil, nil)
	if err != nil {
		return nil, nil, errors.Join(err, endTask())
	}
	return g, func() error { return errors.Join(endReward(), endTask()) }, nil
}

// phase adds a call's progress to the completions of earlier calls, and passes it on.
func (r *rater) phase(_ int, phase string, done, _ int) {
	n := r.run().Data.PassRate.Samples
	done, all := r.done*n+done, len(r.problems)*n
	if r.Hooks.Phase != nil {
		r.Hooks.Phase(0, phase, done, all)
	}
	if phase == "rollout" && r.leads() {
		r.Env.progress(done, all)
	}
}

// rate rates the next problems, before problem hi, and saves them.
func (r *rater) rate(ctx context.Context, hi int) error {
	list, events, err := r.rater.Rate(ctx, r.done, hi)
	if err != nil {
		return err
	}
	r.done = hi
	if !r.leads() {
		return nil
	}
	for _, ev := range events {
		r.event(ev.Kind, "%s", ev.Text)
	}
	fresh := make([]passRate, len(list))
	for i, x := range list {
		fresh[i] = passRateOf(x, r.run().JudgesAlone())
	}
	r.lines = append(r.lines, fresh...)
	return r.progress.add(fresh)
}

// resume continues where an earlier attempt ended.
func (r *rater) resume() error {
	var err error
	if r.leads() {
		r.progress = rateProgress{dir: checkpointDir(r.Dir, string(config.PassRate), r.SID)}
		if r.Again {
			r.progress.dir = ""
		}
		r.lines, err = r.progress.read(r.problems, r.run().Data.PassRate.Samples, r.Start.Fresh)
		if n := len(r.lines); err == nil && n > 0 {
			r.warn("resuming with %s of %d rated", quantity.Plural(n, "problem"), len(r.problems))
		}
	}
	if err := ranks.Agree(r.group(), err); err != nil {
		return err
	}
	all, err := ranks.Share(r.group(), must(json.Marshal(len(r.lines))))
	if err != nil {
		return err
	}
	return json.Unmarshal(all[0], &r.done)
}

// outcome stores the pass rates.
func (r *rater) outcome() (*Outcome, error) {
	o, n, err := putLines(r.Env, RolePassRates, r.lines)
	if err == nil {
		err = r.progress.drop()
	}
	if err != nil {
		return nil, err
	}
	o.Kind = "pass rates"
	var correct, graded, samples, tokens, truncated int
	for _, x := range r.lines {
		correct, graded, samples = correct+x.Correct, graded+x.Graded, samples+x.Samples
		tokens, truncated = tokens+x.Tokens, truncated+x.Truncated
	}
	summary := map[string]any{"problems": n, "samples": samples, "graded": graded, "correct": correct,
		"tokens": tokens, "truncated_completions": truncated}
	if r.cut > 0 {
		summary["truncated"] = r.cut
	}
	facts := metrics(fact("samples", float64(samples)))
	if graded > 0 {
		facts = append(facts, fact("pass@1", float64(correct)/float64(graded)))
	}
	return &Outcome{Outputs: []Output{o}, Summary: summary, Facts: facts}, nil
}

// addRecordedRates stores the pass rates, by id, that the rows of training problems brought along; nil: none did.
func (e *Env) addRecordedRates(out *Outcome, problems []rollout.Problem, rates map[string]float64) error {
	if rates == nil {
		return nil
	}
	lines := make([]passRate, len(problems))
	for i := range problems {
		lines[i].Problem = problems[i].ID
		if x, ok := rates[problems[i].ID]; ok && !math.IsNaN(x) {
			lines[i].Rate = &x
		}
	}
	o, _, err := putLines(e, RolePassRates, lines)
	o.Kind = "pass rates"
	out.Outputs = append(out.Outputs, o)
	return err
}

// rateProgress keeps the ratings so far in a file. A killed process leaves whole lines, and at most a part of one.
type rateProgress struct{ dir string } // empty: nothing is kept

func (p rateProgress) path() string { return filepath.Join(p.dir, "rated.jsonl") }

// read returns the lines that an earlier attempt wrote, for the first problems, and cuts off an unfinished last line.
// With fresh it deletes them and returns none.
func (p rateProgress) read(problems []rollout.Problem, samples int, fresh bool) (list []passRate, err error) {
	if p.dir == "" {
		return nil, nil
	}
	if fresh {
		return nil, os.RemoveAll(p.dir)
	}
	b, err := os.ReadFile(p.path())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	whole := 0
	for line := range bytes.Lines(b) {
		var x passRate
		at := len(list)
		if !bytes.HasSuffix(line, []byte{'\n'}) || json.Unmarshal(line, &x) != nil || at == len(problems) ||
			x.Problem != problems[at].ID || x.Samples != samples {
			break
		}
		list, whole = append(list, x), whole+len(line)
	}
	return list, os.Truncate(p.path(), int64(whole))
}

// add appends lines.
func (p rateProgress) add(list []passRate) (err error) {
	if p.dir == "" {
		return nil
	}
	if err := os.MkdirAll(p.dir, 0o777); err != nil {
		return err
	}
	f, err := os.OpenFile(p.path(), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o666)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	for i := range list {
		if err := enc.Encode(&list[i]); err != nil {
			return fmt.Errorf("problem %s: %w", list[i].Problem, err)
		}
	}
	if _, err := f.Write(b.Bytes()); err != nil {
		return err
	}
	return f.Sync()
}

// drop removes the file of a stage that is done.
func (p rateProgress) drop() error {
	if p.dir == "" {
		return nil
	}
	return os.RemoveAll(p.dir)
}
