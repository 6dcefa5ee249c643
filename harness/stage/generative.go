package stage

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"

	"exp/experiments/ident"
	"exp/harness/config"
	"exp/harness/prompt"
	"exp/train/generate"
	"exp/train/reward"
	"exp/train/rollout"
)

// JudgeRun returns the configuration of the language model that judges completions (reward.kind genrm), as if a run
// sampled from it: it computes as the run does, with the chat template of its own folder. Text that spells a special
// token stays text, so that no completion can speak for the judge.
func JudgeRun(c *config.Run) *config.Run {
	j := c.Reward.Judge
	return &config.Run{
		Tokenizer: config.Tokenizer{Kind: "model"},
		Model:     config.Model{Init: "pretrained", Base: c.Reward.Weights, DType: c.Model.DType},
		Data: config.Data{Chat: config.Auto, TemplateDate: c.Data.TemplateDate, TemplateVars: j.TemplateVars,
			EscapeSpecial: true, MaxPromptTokens: j.Context - j.MaxTokens},
		Rollout: config.Rollout{Temperature: j.Temperature, TopP: 1, MaxNewTokens: j.MaxTokens,
			MaxSequences: j.Sequences, PageTokens: c.Rollout.PageTokens},
		Compute: c.Compute,
		Eval:    config.Eval{Final: config.Final{MaxNewTokens: j.MaxTokens}},
	}
}

func (e *Env) newGenerative(parts []string) (s *reward.Generative, err error) {
	c := JudgeRun(e.run())
	template, err := os.ReadFile(e.run().Reward.Judge.Template)
	if err != nil {
		return nil, err
	}
	asks, err := NewPrompter(c)
	if err != nil {
		return nil, fmt.Errorf("the judge %s: %w", c.Model.Base, err)
	}
	m, err := Pretrained(&config.Resolved{Run: *c}, e.alone())
	if err != nil {
		return nil, fmt.Errorf("the judge %s: %w", c.Model.Base, err)
	}
	o := EngineOptions(c, m.Config, c.Rollout.MaxNewTokens, nil)
	o.Ridge = Ridge(e.run(), e.alone(), m.Config)
	sampler, err := generate.New(e.alone(), m, asks.Vocabulary(), o)
	if err != nil {
		m.Close()
		return nil, fmt.Errorf("the judge %s: %w", c.Model.Base, err)
	}
	return reward.NewGenerative(reward.GenerativeOptions{Template: string(template),
		Reading: reading(&e.run().Reward, parts), Encode: judgeMessage(asks),
		Limit: o.MaxTokens - c.Rollout.MaxNewTokens, Sampler: sampler, Params: samplingParams(c.Rollout),
		Seed: judgeSeed, Close: func() { sampler.Close(); m.Close() }}), nil
}

// judgeMessage returns the function that makes the judge's prompt of a message: a chat, where its folder has a
// template.
func judgeMessage(asks *prompt.Prompter) func(message string) ([]int32, error) {
	if !asks.Chats() {
		return asks.EncodeText
	}
	return func(message string) ([]int32, error) {
		return asks.EncodeChat([]rollout.Message{{Role: "user", Content: message}}, nil, true)
	}
}

// judgeSeed is the seed of the judge's answer to a message. It does not depend on the run, so that scores of a
// completion are equal in all of them.
func judgeSeed(message string) uint64 {
	sum := sha256.Sum256([]byte(message))
	return ident.Seed(0, "judge/message="+hex.EncodeToString(sum[:]))
}

func generativeFiles(c *config.Run, _ *prompt.Prompter,
	add func(key, use string, digest func() (ident.Digest, error))) {
	add("reward.judge.template", "template",
		func() (ident.Digest, error) { return ident.Paths([]string{c.Reward.Judge.Template}) })
	judge := JudgeRun(c)
	add("reward.weights", "model", func() (ident.Digest, error) { return judgeDigest(judge) })
	add("reward.weights", "chat template", func() (ident.Digest, error) {
		p, err := NewPrompter(judge)
		if err != nil || !p.Chats() {
			return ident.Digest{}, err
		}
		return p.TemplateDigest(), nil
	})
}

// judgeDigest covers the judge: architecture, weights and tokenizer, with the tokens that end its answers.
func judgeDigest(c *config.Run) (ident.Digest, error) {
	dir := c.Model.Base
	arch, err := ReadArchitecture(c)
	if err != nil {
		return ident.Digest{}, err
	}
	if most := c.Data.MaxPromptTokens + c.Rollout.MaxNewTokens; most > arch.MaxPositions {
		return ident.Digest{}, fmt.Errorf("%s has %d positions: set reward.judge.context, which is %d, to at most "+
			"that", dir, arch.MaxPositions, most)
	}
	shape, err := architectureDigest(arch)
	if err != nil {
		return ident.Digest{}, err
	}
	parts, err := tokensAndWeights(dir)
	if err != nil {
		return ident.Digest{}, err
	}
	parts["architecture"] = shape
	return ident.Hash("exp/generative-reward-model/1", parts)
}

// generativeNote describes what the judge reads.
func generativeNote(_ *config.Run, x External) string {
	text := "a plain text"
	if d, chats := x.Reward[rewardTemplateUse]; chats {
		text = fmt.Sprintf("a chat, formatted by its own folder's template (sha256 %s)", d.String()[:12])
	}
	return "the generative reward model reads " + text
}
