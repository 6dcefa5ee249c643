package run

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"time"

	"exp/experiments/ident"
	"exp/experiments/store"
	"exp/harness/stage"
	"exp/train/rollout"
)

// sampleAgain samples some completions of an evaluation again, other ones each time, and compares them with the
// record.
func (v *verifier) sampleAgain(ctx context.Context, i int) error {
	s, row := v.p.Stages[i], v.done[i]
	_, in, ok := v.p.Inputs(i, v.output)
	completions, had := v.output(i, stage.RoleCompletions)
	switch {
	case !ok || !had:
		return nil // it was never made
	case v.late():
		v.v.Unsampled++
		return nil
	}
	info := v.info(i)
	v.Watch.StageStart(info)
	start := time.Now()
	var list []stage.Repeated
	err := func() (err error) {
		defer recovered(&err)
		list, err = stage.SampleAgain(ctx, v.againEnv(i, row.SID), s.Label, in, completions, func(n int) []int {
			return rand.Perm(n)[:min(n, v.completions())]
		})
		return err
	}()
	took := time.Since(start)
	v.sampling += took
	v.Watch.StageDone(info, StageEnd{Wall: took, Failed: err != nil})
	if err != nil {
		return &StageError{Stage: s.Name(), Err: err}
	}
	v.v.Evaluated++
	for _, c := range list {
		where := fmt.Sprintf("%s: sample %d of %s", s.Label, c.K, c.Problem)
		v.v.Sampled = append(v.v.Sampled, where)
		if c.Field == "" {
			continue
		}
		if err := v.diverged(where, &store.DivergenceError{SID: row.SID, Kind: row.Kind, Field: c.Field, Want: c.Want,
			Got: c.Got}); err != nil {
			return err
		}
	}
	return nil
}

// completions returns how many completions to sample again of each evaluation and training step.
func (v *verifier) completions() int { return cmp.Or(v.o.Completions, DefaultCompletions) }

// late reports whether no time is left for sampling again.
func (v *verifier) late() bool { return v.o.SampleLimit > 0 && v.sampling > v.o.SampleLimit }

// sampleSteps samples and grades some completions of training steps again, other ones each time: of all steps whose
// policy is there, in its checkpoint or as the weights that training started from, and that were not executed again.
// However long it takes, it samples from one policy at least.
func (v *verifier) sampleSteps(ctx context.Context, i int) error {
	hashed, in, ok := v.p.Inputs(i, v.output)
	if !ok || v.v.Diverged() || v.p.Config.Run.Rollout.Recorded != "" || v.run.Foreign() != "" {
		return nil // it proves no more, or nothing was sampled here
	}
	sid, err := v.p.SID(i, hashed)
	if err != nil {
		return err
	}
	dir := v.DB.RunDir(v.run.RID)
	saved, err := stage.Checkpoints(dir, sid)
	if err != nil {
		return err
	}
	policies := append([]int{0}, saved...)
	rand.Shuffle(len(policies), func(i, j int) { policies[i], policies[j] = policies[j], policies[i] })
	for _, after := range policies {
		if err := ctx.Err(); err != nil {
			return err
		}
		steps := v.stepsOf(after)
		if v.late() && v.v.SampledSteps > 0 {
			v.v.UnsampledSteps += len(steps)
			continue
		}
		kept, err := v.keptOf(ctx, steps)
		if err != nil {
			return err
		}
		kept = slices.DeleteFunc(kept, func(k keptRollout) bool { return v.demonstration(&k.row) })
		if len(kept) == 0 {
			continue
		}
		e := v.againEnv(i, sid)
		e.Start = stage.Start{Checkpoints: stage.CheckpointsDir(dir), Accept: v.acceptCheckpoint}
		if err := v.sampleAfter(ctx, e, i, in, after, kept); err != nil {
			return err
		}
	}
	return nil
}

// stepsOf returns the recorded steps that the policy after so many steps sampled, without those that were executed
// again.
func (v *verifier) stepsOf(after int) (list []int64) {
	ahead := v.p.Config.Run.Rollout.Staleness
	first := int64(after + 1 + ahead)
	if after == 0 {
		first = 1
	}
	for s := first; s <= min(int64(after+1+ahead), v.run.Steps); s++ {
		if v.v.FromStep == 0 || s < v.v.FromStep || s > v.v.ToStep {
			list = append(list, s)
		}
	}
	return list
}

// demonstration reports whether a completion of training is the one of its group that no policy sampled.
func (v *verifier) demonstration(s *store.Sample) bool {
	c := v.p.Config.Run
	return c.Algo.Demonstrations.Weight > 0 && s.K == c.Rollout.N-1 && s.Finish == store.FinishShown
}

// keptRollout is a completion of training in the record.
type keptRollout struct {
	row  store.Sample
	text keptSample
}

func (k *keptRollout) where() string {
	return fmt.Sprintf("step %d: sample %d of %s", k.row.Step, k.row.K, k.row.Item)
}

// keptOf returns the completions of steps that the store has, and compares them with their rows and the run's chain.
func (v *verifier) keptOf(ctx context.Context, steps []int64) (list []keptRollout, err error) {
	packs := v.DB.Blobs.NewPackReader()
	defer packs.Close()
	wholeFrom, wholeTo, err := v.keptSteps(ctx)
	if err != nil {
		return nil, err
	}
	for _, s := range steps {
		rows, err := v.DB.Samples(ctx, v.run.ID, store.SampleQuery{Scope: "train", Step: s,
			Scorer: v.scorer(trainLabel).Digest})
		if err != nil {
			return nil, err
		}
		before := len(list)
		for _, row := range rows {
			k := keptRollout{row: row}
			switch err := packs.Read(row.Ref, &k.text); {
			case row.Ref.Pack.IsZero(), errors.Is(err, fs.ErrNotExist): // the run was imported without texts
			case err != nil:
				return nil, err
			case row.OutTokens != int64(len(k.text.Tokens)) || !sameBits(row.LogProbSum, sum(k.text.LogProbs)):
				v.found(false, k.where(), "the row has %d tokens and log-prob %v, the completion %d and %v",
					row.OutTokens, row.LogProbSum, len(k.text.Tokens), sum(k.text.LogProbs))
			default:
				list = append(list, k)
			}
		}
		all := list[before:]
		if len(all) > 0 && len(all) == len(rows) && wholeFrom <= s && s <= wholeTo {
			if err := v.whole(ctx, s, all); err != nil {
				return nil, err
			}
		}
	}
	return list, nil
}

// whole compares all completions of a step with the digests in the run's chain.
func (v *verifier) whole(ctx context.Context, step int64, kept []keptRollout) error {
	recorded, err := v.DB.Steps(ctx, v.run.ID, step, step)
	if err != nil || len(recorded) == 0 {
		return err
	}
	all := make([]*rollout.Completion, len(kept))
	for i, k := range kept {
		all[i] = &rollout.Completion{Tokens: k.text.Tokens, LogProbs: k.text.LogProbs}
		all[i].Asked, all[i].Acts = k.text.asked(), k.text.Acts
	}
	tokens, logProbs := stage.RolloutDigests(all)
	where := fmt.Sprintf("step %d: completions", step)
	if want := recorded[0].Det.Tokens; tokens != want {
		v.found(false, where, "their tokens have digest %s, but the chain %s", tokens.Short(), want.Short())
	}
	if want := recorded[0].Det.LogProbs; logProbs != want {
		v.found(false, where, "their log-probs have digest %s, but the chain %s", logProbs.Short(), want.Short())
	}
	return nil
}

// sampleAfter samples some of the kept completions again by the policy that sampled them.
func (v *verifier) sampleAfter(ctx context.Context, e *stage.Env, i int, in stage.Inputs, after int,
	kept []keptRollout) error {
	var chosen []keptRollout
	var list []stage.Rollout
	steps := map[int64]bool{}
	for _, at := range rand.Perm(len(kept))[:min(len(kept), v.completions())] {
		k := kept[at]
		chosen = append(chosen, k)
		list = append(list, stage.Rollout{Step: int(k.row.Step), Problem: k.row.Item, K: k.row.K})
		steps[k.row.Step] = true
	}
	info := StageInfo{Kind: "rollouts", Label: stepsText(steps), Steps: len(list)}
	v.Watch.StageStart(info)
	start := time.Now()
	var got []stage.Redrawn
	err := func() (err error) {
		defer recovered(&err)
		got, err = stage.SampleRollouts(ctx, e, in, after, list)
		return err
	}()
	took := time.Since(start)
	v.sampling += took
	v.Watch.StageDone(info, StageEnd{Wall: took, Failed: err != nil})
	if err != nil {
		return &StageError{Stage: v.p.Stages[i].Name(), Err: err}
	}
	v.v.SampledSteps += len(steps)
	for n, k := range chosen {
		where := k.where()
		v.v.Sampled = append(v.v.Sampled, where)
		d, err := k.compare(&got[n].Completion)
		if err != nil {
			return err
		}
		if d == nil {
			v.compareReward(where, &k, &got[n])
			continue
		}
		d.RID, d.Step = v.run.RID, k.row.Step
		if err := v.diverged(where, d); err != nil {
			return err
		}
	}
	return nil
}

// compareReward compares what training's grader says of a completion with the record.
func (v *verifier) compareReward(where string, kept *keptRollout, again *stage.Redrawn) {
	got, row := again.Verdict, &kept.row
	if got == nil {
		return
	}
	v.v.Verdicts++
	if again.Voted {
		got.Reward = row.Reward // only steps that are executed again count votes
	}
	reward, what := got.Reward, ""
	if got.Status != rollout.Graded {
		reward = math.NaN()
	}
	if row.Verdict != nil {
		what = differsVerdict(row.Verdict, *got)
	}
	if what == "" && !sameBits(row.Reward, reward) {
		what = "reward"
	}
	if what == "" && !slices.Equal(kept.text.Steps, got.Steps) {
		what = "list of steps"
	}
	if what != "" {
		v.found(false, where, "the recorded %s differs from the grader's", what)
	}
}

// stepsText names steps: "step 3", "steps 1–3".
func stepsText(steps map[int64]bool) string {
	list := slices.Sorted(maps.Keys(steps))
	if first, last := list[0], list[len(list)-1]; first != last {
		return fmt.Sprintf("steps %d–%d", first, last)
	}
	return fmt.Sprintf("step %d", list[0])
}

// compare returns how a completion sampled again differs from the record; nil if it does not.
func (k *keptRollout) compare(c *rollout.Completion) (*store.DivergenceError, error) {
	had := k.text
	had.Prompt, had.Graded, had.Components, had.Basis, had.Steps = "", nil, nil, "", nil
	want, err := json.Marshal(had)
	if err != nil {
		return nil, err
	}
	is, err := json.Marshal(keptOf(c))
	if err != nil {
		return nil, err
	}
	var got keptSample // as the record keeps it
	if err := json.Unmarshal(is, &got); err != nil {
		return nil, err
	}
	d := &store.DivergenceError{}
	switch {
	case !reflect.DeepEqual(had.asked(), got.asked()):
		d.Field = "prompt"
	case !slices.Equal(had.Tokens, got.Tokens):
		d.Field = "tokens"
	case !slices.Equal(had.LogProbs, got.LogProbs):
		d.Field = "logprobs"
	case !slices.Equal(had.Entropies, got.Entropies):
		d.Field = "entropies"
	case had.Text != got.Text || !slices.Equal(had.Inserted, got.Inserted):
		d.Field = "text"
	case !slices.Equal(had.Acts, got.Acts):
		d.Field = "turns"
	case k.row.Finish != c.Finish.String():
		d.Field, want, is = "finish", []byte(k.row.Finish), []byte(c.Finish.String())
	default:
		return nil, nil
	}
	d.Want, d.Got = ident.Sum(want), ident.Sum(is)
	return d, nil
}
