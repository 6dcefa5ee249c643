package stage

import (
	"fmt"

	"exp/experiments/ident"
	"exp/harness/config"
	"exp/harness/prompt"
	"exp/train/rollout"
	"exp/train/tokenizer"
)

// plainRewardText is the default of reward.text.
const plainRewardText = "{prompt}{response}"

// rewardPrompter renders the input of a reward model by the chat template in the model's own
// folder, if the policy's prompts are chats and neither reward.chat nor reward.text says otherwise.
// If it is nil, the model reads reward.text.
func rewardPrompter(c *config.Run, policy *prompt.Prompter) (*prompt.Prompter, error) {
	r := c.Reward
	if r.Chat == config.None || r.Text != plainRewardText || policy == nil || !policy.Chats() {
		return nil, nil
	}
	own := &config.Run{Tokenizer: config.Tokenizer{Kind: "model"},
		Model: config.Model{Init: "pretrained", Base: r.Weights},
		Data:  config.Data{Chat: config.Auto, TemplateDate: c.Data.TemplateDate, EscapeSpecial: c.Data.EscapeSpecial}}
	p, err := NewPrompter(own)
	if err != nil {
		return nil, fmt.Errorf("reward model %s: %w", r.Weights, err)
	}
	if !p.Chats() {
		return nil, nil
	}
	return p, nil
}

// rewardChat returns the ids of a whole chat for a reward model: the policy's messages, and the
// completion as the assistant's.
func rewardChat(policy, own *prompt.Prompter) func(p *rollout.Problem, response string) ([]int32, error) {
	return func(q *rollout.Problem, response string) ([]int32, error) {
		asked, tools := policy.Chat(q)
		list := append(rollout.WithoutImages(asked), rollout.Message{Role: "assistant", Content: response})
		return own.EncodeChat(list, tools, false)
	}
}

// rewardSteps returns the ids of a chat up to where the assistant speaks, and of the steps of its answer.
func rewardSteps(policy, own *prompt.Prompter, separator string) func(*rollout.Problem, []string) ([]int32, []int,
	error) {
	return func(q *rollout.Problem, steps []string) ([]int32, []int, error) {
		asked, tools := policy.Chat(q)
		ids, err := own.EncodeChat(rollout.WithoutImages(asked), tools, true)
		if err != nil {
			return nil, nil, err
		}
		return tokenizer.Steps(own.Tokenizer, ids, steps, separator)
	}
}

// rewardTemplate returns the digest of the chat template that formats a reward model's input; zero
// for plain text.
func rewardTemplate(c *config.Run, policy *prompt.Prompter) (ident.Digest, error) {
	p, err := rewardPrompter(c, policy)
	if err != nil || p == nil {
		return ident.Digest{}, err
	}
	return p.TemplateDigest(), nil
}

// rewardTemplateUse names the digest of that template among External.Reward.
const rewardTemplateUse = "reward/chat template"

// rewardModelNote describes a reward model's input.
func rewardModelNote(c *config.Run, x External) string {
	if d, chats := x.Reward[rewardTemplateUse]; chats {
		return fmt.Sprintf("the reward model reads the whole chat, formatted by its own folder's template (sha256 %s)",
			d.String()[:12])
	}
	return fmt.Sprintf("the reward model reads plain text: reward.text %q", c.Reward.Text)
}
