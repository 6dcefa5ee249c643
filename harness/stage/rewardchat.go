package stage

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"exp/experiments/ident"
	"exp/harness/config"
	"exp/harness/prompt"
	"exp/train/rollout"
	"exp/train/tokenizer"
)

// plainRewardText is the default of reward.text.
const plainRewardText = "{prompt}{response}"

// rewardPrompter renders the input of a reward model by the chat template in the model's own
// folder, if the policy's prompts are chats and neither reward.chat nor reward.text says otherwise, or if reward.chat
// is always. If it is nil, the model reads reward.text.
func rewardPrompter(c *config.Run, policy *prompt.Prompter) (*prompt.Prompter, error) {
	r := c.Reward
	always := r.Chat == config.Always || r.Layout == rollout.StepsTurns
	switch {
	case policy == nil || r.Chat == config.None || r.Layout == rollout.StepsMarks:
		return nil, nil
	case !always && (r.Text != plainRewardText || !policy.Chats()):
		return nil, nil
	}
	own := &config.Run{Tokenizer: config.Tokenizer{Kind: "model"},
		Model: config.Model{Init: "pretrained", Base: r.Weights},
		Data:  config.Data{Chat: config.Auto, TemplateDate: c.Data.TemplateDate, EscapeSpecial: c.Data.EscapeSpecial}}
	p, err := NewPrompter(own)
	if err != nil {
		return nil, fmt.Errorf("reward model %s: %w", r.Weights, err)
	}
	switch {
	case !p.Chats() && always:
		return nil, fmt.Errorf("reward model %s: it is to read chats, and its folder has no chat template", r.Weights)
	case !p.Chats():
		return nil, nil
	}
	return p, nil
}

// rewardChat returns the ids of a whole chat for a reward model: the policy's messages, and the
// completion as the assistant's.
func rewardChat(policy, own *prompt.Prompter) func(p *rollout.Problem, response string) ([]int32, error) {
	return func(q *rollout.Problem, response string) ([]int32, error) {
		asked, tools := chatOf(policy, own, q)
		list := append(rollout.WithoutImages(asked), rollout.Message{Role: "assistant", Content: response})
		return own.EncodeChat(list, tools, false)
	}
}

// rewardSteps returns the ids of a chat up to where the assistant speaks, and of the steps of its answer.
func rewardSteps(policy, own *prompt.Prompter, separator string) func(*rollout.Problem, []string) ([]int32, []int,
	error) {
	return func(q *rollout.Problem, steps []string) ([]int32, []int, error) {
		asked, tools := chatOf(policy, own, q)
		ids, err := own.EncodeChat(rollout.WithoutImages(asked), tools, true)
		if err != nil {
			return nil, nil, err
		}
		return tokenizer.Steps(own.Tokenizer, ids, steps, separator)
	}
}

// chatOf returns the messages and the tools of a problem's prompt: as the policy reads them or, if its prompts are
// plain, as the reward model's template has one message of the user.
func chatOf(policy, own *prompt.Prompter, q *rollout.Problem) ([]rollout.Message, json.RawMessage) {
	if policy.Chats() {
		return policy.Chat(q)
	}
	return own.Chat(q)
}

// rewardLayout returns what makes the reader of steps in chats.
func rewardLayout(r *config.Reward) func(policy, own *prompt.Prompter, separator string) func(*rollout.Problem,
	[]string) ([]int32, []int, error) {
	if r.Layout == rollout.StepsTurns {
		return rewardTurns
	}
	return rewardSteps
}

// rewardTurns returns the ids of a chat in which the user says the problem and the first step, and then step by step,
// and the assistant answers each with separator, up to where it would answer the last one. A step's place is the
// token before the assistant's answer, as in RLHFlow's process reward models.
func rewardTurns(policy, own *prompt.Prompter, separator string) func(*rollout.Problem, []string) ([]int32, []int,
	error) {
	return func(q *rollout.Problem, steps []string) (ids []int32, ends []int, err error) {
		asked, tools := chatOf(policy, own, q)
		list := rollout.WithoutImages(asked)
		for i, step := range steps {
			last := len(list) - 1
			if i == 0 && last >= 0 && list[last].Role == "user" && len(list[last].Parts) == 0 {
				list[last].Content += " " + step
			} else {
				list = append(list, rollout.Message{Role: "user", Content: step})
			}
			more, err := own.EncodeChat(list, tools, true)
			if err != nil {
				return nil, nil, err
			}
			if len(more) < len(ids) || !slices.Equal(ids, more[:len(ids)]) {
				return nil, nil, errors.New("its chat template does not keep a turn as it is when others follow")
			}
			ids, ends = more, append(ends, len(more)-1)
			list = append(list, rollout.Message{Role: "assistant", Content: separator})
		}
		return ids, ends, nil
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
