package stage

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"sync"

	"exp/eval/layout"
	"exp/harness/config"
	"exp/train"
	"exp/train/checkpoint"
	"exp/train/model"
	"exp/train/reward"
	"exp/train/rl"
	"exp/train/rollout"
	"exp/train/tokenizer"
)

// RewardModelDir is the folder of the reward model that a run trained within the run's directory, and begins the
// roles of its files.
const RewardModelDir = "reward_model"

// trainRewardModel teaches the weights with a score head to tell the better of two answers, or right steps from wrong
// ones, from a file. It does not depend on the run's seed, so all runs with the same upstream configuration share its
// result.
func trainRewardModel(ctx context.Context, e *Env, in Inputs) (*Outcome, error) {
	c, seed := e.run(), seedFunc(e.run().RewardModel.Seed)
	tensor := Everyone(c, e.group().Size()).Tensor
	if c.RewardModel.OfSteps() {
		parts := train.StepModelParts{Backend: e.Backend, Seed: seed, Ranks: e.Ranks, Tensor: tensor}
		counts, err := e.steppedAnswers(ctx, in, &parts)
		if err != nil {
			return nil, err
		}
		return e.trainScorer(ctx, in, counts, "step_", func(m *model.Model, r train.Recorder) (scorer, error) {
			conf := StepModelConfig(c)
			conf.Offload = e.Offload
			parts.Model, parts.Recorder = m, r
			return train.NewStepModel(conf, parts)
		})
	}
	parts := train.RewardModelParts{Backend: e.Backend, Seed: seed, Ranks: e.Ranks, Tensor: tensor}
	counts, err := e.ratedPairs(ctx, in, &parts)
	if err != nil {
		return nil, err
	}
	return e.trainScorer(ctx, in, counts, "", func(m *model.Model, r train.Recorder) (scorer, error) {
		conf := RewardModelConfig(c)
		conf.Offload = e.Offload
		parts.Model, parts.Recorder = m, r
		return train.NewRewardModel(conf, parts)
	})
}

// scorer is a reward model that learns.
type scorer interface {
	tuner
	Close()
}

// trainScorer trains the run's reward model with what open returns. counts are of the examples, and the names of its
// loss and accuracy begin with what.
func (e *Env) trainScorer(ctx context.Context, in Inputs, counts map[string]float64, what string,
	open func(*model.Model, train.Recorder) (scorer, error)) (*Outcome, error) {
	c := e.run().RewardModel
	heads, err := e.rewardModelHeads()
	if err != nil {
		return nil, err
	}
	m, err := e.startModel(in, heads, seedFunc(c.Seed))
	if err != nil {
		return nil, err
	}
	x := tuning{e: e, kind: config.RewardModel, counts: counts}
	t, err := open(m, recorder(x.record))
	if err != nil {
		m.Close()
		return nil, err
	}
	free := sync.OnceFunc(func() {
		t.Close()
		m.Close()
	})
	defer free()
	x.put = func(t learns) (Output, error) { return e.putScorer(in, t, m, free) }
	last, outputs, err := x.run(ctx, t)
	if err != nil || outputs == nil {
		return nil, err
	}
	facts := metrics(fact("steps", float64(c.Steps)), fact("loss", last["rm/"+what+"loss"]))
	if held, ok := last["rm/val_"+what+"accuracy"]; ok {
		facts = append(facts, fact("held-out accuracy", held))
	} else {
		facts = append(facts, fact("accuracy", last["rm/"+what+"accuracy"]))
	}
	return &Outcome{Outputs: outputs, Summary: last, Facts: facts}, nil
}

// putScorer stores the reward model m that t has learned. free frees both.
func (e *Env) putScorer(in Inputs, t learns, m *model.Model, free func()) (o Output, err error) {
	if m.Heads.Adapters == nil {
		o, err = e.putLearned(t)
	} else {
		o, err = e.putFolded(in, t, m.Config, m.Heads, free)
	}
	o.Role = RoleScorer
	return o, err
}

// rewardModelHeads returns the heads of the reward model that the run trains.
func (e *Env) rewardModelHeads() (model.Heads, error) {
	arch, err := e.architecture()
	return RewardModelHeads(e.run(), arch), err
}

// startModel makes a model that learns from examples with the stage's weights: all of them, or adapters on frozen
// ones. seed draws heads and adapters.
func (e *Env) startModel(in Inputs, h model.Heads, seed func(label string) uint64) (*model.Model, error) {
	if h.Adapters == nil {
		m, err := e.loadModel(in, RoleWeights, h, true)
		if err == nil {
			m.InitHeads(seed)
		}
		return m, err
	}
	t, _, err := e.openWeights(in, RoleWeights)
	if err != nil {
		return nil, err
	}
	defer t.Close()
	base, err := e.newBackbone(e.uncut(), t, h.LM)
	if err != nil {
		return nil, err
	}
	m, err := model.NewOn(base, h, true)
	if err != nil {
		base.Close()
		return nil, err
	}
	m.OwnBackbone()
	m.Init(seed)
	if err := e.openTower(t); err != nil {
		m.Close()
		return nil, err
	}
	return e.shown(m, nil)
}

// ratedPairs sets the pairs that the stage learns from, and those that it is validated on. It returns counts for its
// summary.
func (e *Env) ratedPairs(ctx context.Context, in Inputs, parts *train.RewardModelParts) (map[string]float64, error) {
	counts := map[string]float64{}
	for _, file := range []struct {
		role, key, prefix string
		list              *[]train.RatedPair
	}{
		{RoleRated, "reward_model.source", "", &parts.Pairs},
		{RoleRatedVal, "reward_model.val", "val_", &parts.HeldOut},
	} {
		if _, ok := in[file.role]; !ok {
			continue
		}
		prompts, err := e.prompter()
		if err != nil {
			return nil, err
		}
		read, err := linesOf[layout.Pair](e, in, file.role)
		if err != nil {
			return nil, err
		}
		pairs, plan, err := prompts.RatedPairs(ctx, read)
		if err != nil {
			return nil, err
		}
		for i, x := range pairs {
			if x == nil {
				continue
			}
			p := train.RatedPair{ID: read[i].Chosen.ID, Prompt: x.Prompt, Chosen: x.Chosen, Rejected: x.Rejected}
			if m := read[i].Margin; m != nil {
				p.Margin = *m
			}
			*file.list = append(*file.list, p)
		}
		if plan.Same+plan.Long > 0 {
			e.event("pairs-left-out", "%s: %s", file.key, &plan)
		}
		for name, n := range map[string]int{"pairs": plan.Pairs, "tokens": plan.Tokens, "same": plan.Same,
			"long": plan.Long, "margins": plan.Margins} {
			counts[file.prefix+name] = float64(n)
		}
	}
	return counts, nil
}

// RewardModelConfig returns the settings of training a reward model.
func RewardModelConfig(c *config.Run) train.RewardModelConfig {
	r := c.RewardModel
	return train.RewardModelConfig{
		Steps: r.Steps, PairsPerStep: r.PairsPerStep, MicroBatchTokens: c.Compute.MicroBatchTokens,
		Recompute: c.Compute.Recompute, Slices: c.Train.Slices, Optim: adaptedOptim(r.Optim, r.LoRA, r.Steps),
		Loss: rl.RewardPairConfig{Center: r.Center}, ValidateEvery: r.ValEvery,
	}
}

// publishRewardModel writes the reward model that the run trained as a Hugging Face folder.
func (e *Env) publishRewardModel(in Inputs, out *Outcome) error {
	o, err := e.mergeOptions()
	if err != nil {
		return err
	}
	x := checkpoint.Trained{Heads: model.Heads{Score: true}}
	if x.Config, err = e.architecture(); err != nil {
		return err
	}
	if x.Learned, _, err = e.openWeights(in, RoleScorer); err != nil {
		return err
	}
	defer x.Learned.Close()
	x.Weights = x.Learned
	pad, err := e.padding()
	if err != nil {
		return err
	}
	dir := filepath.Join(e.Dir, RewardModelDir)
	files, err := checkpoint.MergeClassifier(e.Backend, x, pad, dir, o)
	if err != nil {
		return err
	}
	return e.putFolder(out, dir, RewardModelDir+"/", files)
}

// padding returns the token that fills batches of a reward model's texts up. None of them ends with it: the
// tokenizer's own, if that is so, or else the first token that ends no text.
func (e *Env) padding() (int32, error) {
	p, err := e.prompter()
	if err != nil {
		return 0, err
	}
	last, err := p.RatedEnd()
	if err != nil {
		return 0, err
	}
	pad, ok := p.Tokenizer.TokenID(p.Tokenizer.SpecialTokens().Named["pad_token"])
	if ok && pad != last {
		return pad, nil
	}
	ends := append(p.Tokenizer.EndIDs(), last)
	for _, s := range p.Stops {
		ends = append(ends, s.ID)
	}
	for id := range int32(p.Tokenizer.VocabSize()) {
		if !slices.Contains(ends, id) {
			return id, nil
		}
	}
	return 0, errors.New("the vocabulary has no token for padding: every one may end a text")
}

// newTrainedScorer opens the reward model that the run trained.
func (e *Env) newTrainedScorer() (reward.Scorer, error) {
	if e.scorer.IsZero() {
		return nil, errors.New("the run's reward model is not trained yet, or not loaded here")
	}
	arch, err := e.architecture()
	if err != nil {
		return nil, err
	}
	t, _, err := e.openWeights(Inputs{RoleScorer: e.scorer}, RoleScorer)
	if err != nil {
		return nil, err
	}
	defer t.Close()
	arch.TieEmbeddings = false // it has no output projection to tie
	m, err := checkpoint.LoadClassifierFrom(e.alone(), arch, t, 0)
	if err != nil {
		if m != nil {
			m.Close()
		}
		return nil, err
	}
	p, err := e.prompter()
	if err != nil {
		m.Close()
		return nil, err
	}
	separator := e.run().RewardModel.Separator
	return reward.NewModel(e.alone(), m, reward.ModelOptions{BatchTokens: e.run().Compute.MicroBatchTokens,
		Steps: stepsOf(&e.run().Reward, separator, p),
		ReadSteps: func(q *rollout.Problem, steps []string) ([]int32, []int, error) {
			asked, err := p.AskedOf(q, reward.Concatenation(q))
			if err != nil {
				return nil, nil, err
			}
			return tokenizer.Steps(p.Tokenizer, asked, steps, separator)
		},
		Read: func(q *rollout.Problem, response string) ([]int32, error) {
			if !p.Chats() {
				return p.RatedText(reward.Concatenation(q) + response)
			}
			asked, _ := p.Chat(q)
			asked = append(rollout.WithoutImages(asked), rollout.Message{Role: "assistant", Content: response})
			return p.RatedChat(asked, q)
		}}), nil
}

// trainedRewardNote describes the input of the reward model that the run trains.
func trainedRewardNote(c *config.Run, x External) string {
	switch {
	case x.Prompter != nil && x.Prompter.Chats():
		return "the run's own reward model reads the whole chat, formatted by the run's chat template"
	case c.RewardModel.OfSteps():
		return "the run's own reward model reads plain text: prompt, and the response step by step"
	}
	return "the run's own reward model reads plain text: prompt, response and an end token"
}

// steppedAnswers sets the answers that the stage learns from, and those that it is validated on. It returns counts for
// its summary.
func (e *Env) steppedAnswers(ctx context.Context, in Inputs, parts *train.StepModelParts) (map[string]float64, error) {
	counts := map[string]float64{}
	for _, file := range []struct {
		role, key, prefix string
		list              *[]train.SteppedAnswer
		last              bool // only the last step's label counts
	}{
		{RoleRated, "reward_model.source", "", &parts.Answers, e.run().RewardModel.LastStepOnly},
		{RoleRatedVal, "reward_model.val", "val_", &parts.HeldOut, false},
	} {
		if _, ok := in[file.role]; !ok {
			continue
		}
		prompts, err := e.prompter()
		if err != nil {
			return nil, err
		}
		read, err := linesOf[layout.Stepwise](e, in, file.role)
		if err != nil {
			return nil, err
		}
		answers, plan, err := prompts.SteppedAnswers(ctx, read)
		if err != nil {
			return nil, err
		}
		for i, x := range answers {
			if x == nil {
				continue
			}
			a := train.SteppedAnswer{ID: read[i].Asked.ID, Prompt: x.Prompt, Tokens: x.Tokens}
			for k, right := range read[i].Labels {
				if right != nil && (!file.last || k == len(x.Ends)-1) {
					a.Ends, a.Right = append(a.Ends, x.Ends[k]), append(a.Right, *right)
				}
			}
			if len(a.Ends) > 0 {
				*file.list = append(*file.list, a)
			}
		}
		if left := plan.LeftOut(); left != "" {
			e.event("answers-left-out", "%s: %s", file.key, &plan)
		}
		for name, n := range map[string]int{"answers": plan.Answers, "tokens": plan.Tokens, "labels": plan.Steps,
			"right": plan.Right, "unlabelled": plan.Unlabelled, "long": plan.Long} {
			counts[file.prefix+name] = float64(n)
		}
	}
	return counts, nil
}

// StepModelConfig returns the settings of training a process reward model.
func StepModelConfig(c *config.Run) train.StepModelConfig {
	r := c.RewardModel
	return train.StepModelConfig{
		Steps: r.Steps, AnswersPerStep: r.AnswersPerStep, MicroBatchTokens: c.Compute.MicroBatchTokens,
		Recompute: c.Compute.Recompute, Slices: c.Train.Slices, Optim: adaptedOptim(r.Optim, r.LoRA, r.Steps),
		ValidateEvery: r.ValEvery,
	}
}
