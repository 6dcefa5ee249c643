package stage

import (
	"encoding/json"
	"strings"
	"testing"

	"exp/experiments/ident"
	"exp/harness/config"
	"exp/harness/prompt"
	"exp/harness/prompt/prompttest"
	"exp/train/rollout"
)

// A reward model reads the chat that the policy was asked with and the completion, by its
// own template, if the policy's prompts are chats and it has one.
func TestRewardChat(t *testing.T) {
	const own = "{{ bos_token }}{% if tools %}{{ tools | length }} tools{% endif %}{% for m in messages %}[{{ m.role }}] {{ m.content }}{% endfor %}{% if add_generation_prompt %}OPEN{% endif %}"
	chats, plain := prompttest.ModelFolder(t, false, map[string]string{"chat_template.jinja": prompttest.ChatML}), prompttest.ModelFolder(t, false, nil)
	scorer, mute := prompttest.ModelFolder(t, true, map[string]string{"chat_template.jinja": own}), prompttest.ModelFolder(t, true, nil)
	conf := func(weights string) *config.Run {
		c := &config.Run{Reward: config.Reward{Kind: "model", Weights: weights, Text: plainRewardText, Chat: config.Auto}}
		c.Data.TemplateDate = "2024-07-26"
		return c
	}
	policy := mustPrompter(t, chats, func(c *config.Run) { c.Data.System = "Short." })
	q := &rollout.Problem{Prompt: "b", Messages: []rollout.Message{{Role: "user", Content: "a"}, {Role: "assistant", Content: "A"}, {Role: "user", Content: "b"}}, Tools: json.RawMessage(`[{"x":1},{"y":2}]`)}
	p, err := rewardPrompter(conf(scorer), policy)
	if err != nil || p == nil {
		t.Fatal(p, err)
	}
	for _, tt := range []struct {
		problem *rollout.Problem
		want    string
	}{
		{q, "<s>2 tools[system] Short.[user] a[assistant] A[user] b[assistant] B</s>"},
		{&rollout.Problem{Prompt: "1+1?"}, "<s>[system] Short.[user] 1+1?[assistant] B</s>"},
	} {
		ids, err := rewardChat(policy, p)(tt.problem, "B</s>")
		if err != nil || prompttest.Written(ids) != tt.want {
			t.Errorf("%q, %v; want %q", prompttest.Written(ids), err, tt.want)
		}
	}
	d, err := rewardTemplate(conf(scorer), policy)
	if err != nil || d != p.TemplateDigest() {
		t.Errorf("digest %s, %v", d, err)
	}
	if note := RewardNote(conf(scorer), External{Reward: map[string]ident.Digest{rewardTemplateUse: d}}); !strings.Contains(note, "whole chat") || !strings.Contains(note, p.TemplateDigest().String()[:12]) {
		t.Errorf("the plan says %q", note)
	}

	other := conf(scorer)
	other.Reward.Text = "{prompt} -> {response}"
	none := conf(scorer)
	none.Reward.Chat = config.None
	for name, tt := range map[string]struct {
		c      *config.Run
		policy *prompt.Prompter
	}{
		"plain prompts": {conf(scorer), mustPrompter(t, plain, nil)},
		"no template":   {conf(mute), policy},
		"another text":  {other, policy},
		"asked not to":  {none, policy},
	} {
		if p, err := rewardPrompter(tt.c, tt.policy); err != nil || p != nil {
			t.Errorf("%s: it reads chats: %v", name, err)
		}
		if note := RewardNote(tt.c, External{}); !strings.Contains(note, tt.c.Reward.Text) {
			t.Errorf("%s: the plan says %q", name, note)
		}
	}
	escaping := conf(scorer)
	escaping.Data.EscapeSpecial = true
	p, err = rewardPrompter(escaping, policy)
	if err != nil {
		t.Fatal(err)
	}
	ids, err := rewardChat(policy, p)(&rollout.Problem{Prompt: "1"}, "B</s>")
	if err != nil || ids[len(ids)-1] == 257 { // the id of </s>
		t.Errorf("a completion that spells a token became it: %q, %v", prompttest.Written(ids), err)
	}
}

// With reward.layout turns the steps are the user's turns, which the assistant answers; each is scored before the
// answer. With reward.chat always a reward model reads plain prompts by its template, too.
func TestRewardTurns(t *testing.T) {
	const own = "{% for m in messages %}[{{ m.role[0] }}]{{ m.content }};{% endfor %}{% if add_generation_prompt %}[a]{% endif %}"
	const renders = "{% for m in messages %}{{ m.role[0] }}{{ loop.length }}{% endfor %}"
	chats, plain := prompttest.ModelFolder(t, false, map[string]string{"chat_template.jinja": prompttest.ChatML}), prompttest.ModelFolder(t, false, nil)
	scorer, mute := prompttest.ModelFolder(t, true, map[string]string{"chat_template.jinja": own}), prompttest.ModelFolder(t, true, nil)
	conf := func(weights, chat, layout string) *config.Run {
		return &config.Run{Reward: config.Reward{Kind: "model", Weights: weights, Text: "{prompt} {response}", Chat: chat, Layout: layout},
			Data: config.Data{TemplateDate: "2024-07-26"}}
	}
	system := func(c *config.Run) { c.Data.System = "Short." }
	talk := &rollout.Problem{Messages: []rollout.Message{{Role: "user", Content: "Q"}, {Role: "assistant", Content: "A"}}}
	for _, tt := range []struct {
		policy  *prompt.Prompter
		problem *rollout.Problem
		want    []string // up to each step's place
	}{
		{mustPrompter(t, chats, system), &rollout.Problem{Prompt: "1+1?"}, []string{"<s>[s]Short.;[u]1+1? 1;[a]", "+;[u]2;[a]"}},
		{mustPrompter(t, plain, nil), &rollout.Problem{Prompt: "1+1?"}, []string{"<s>[u]1+1? 1;[a]", "+;[u]2;[a]"}},
		{mustPrompter(t, chats, nil), talk, []string{"<s>[u]Q;[a]A;[u]1;[a]", "+;[u]2;[a]"}},
	} {
		c := conf(scorer, config.Auto, rollout.StepsTurns)
		p, err := rewardPrompter(c, tt.policy)
		if err != nil || p == nil {
			t.Fatal(p, err)
		}
		before := len(tt.problem.Messages)
		ids, ends, err := rewardLayout(&c.Reward)(tt.policy, p, "+")(tt.problem, []string{"1", "2"})
		if err != nil || len(ends) != 2 || ends[1] != len(ids)-1 {
			t.Fatalf("%d ids, places %v, %v", len(ids), ends, err)
		}
		got := []string{prompttest.Written(ids[:ends[0]+1]), prompttest.Written(ids[ends[0]+1:])}
		if got[0] != tt.want[0] || got[1] != tt.want[1] || len(tt.problem.Messages) != before {
			t.Errorf("%q, want %q", got, tt.want)
		}
	}

	policy := mustPrompter(t, plain, nil)
	p, err := rewardPrompter(conf(scorer, config.Always, rollout.StepsApart), policy)
	if err != nil || p == nil {
		t.Fatal(p, err)
	}
	if ids, err := rewardChat(policy, p)(&rollout.Problem{Prompt: "1+1?"}, "2"); err != nil || prompttest.Written(ids) != "<s>[u]1+1?;[a]2;" {
		t.Errorf("a plain prompt in a chat: %q, %v", prompttest.Written(ids), err)
	}
	if p, err := rewardPrompter(conf(scorer, config.Auto, rollout.StepsMarks), mustPrompter(t, chats, nil)); p != nil || err != nil {
		t.Errorf("marks are in a chat: %v", err)
	}
	for _, c := range []*config.Run{conf(mute, config.Always, rollout.StepsApart), conf(mute, config.Auto, rollout.StepsTurns)} {
		if _, err := rewardPrompter(c, policy); err == nil || !strings.Contains(err.Error(), "no chat template") {
			t.Errorf("a folder without a template: %v", err)
		}
	}
	forgets := prompttest.ModelFolder(t, true, map[string]string{"chat_template.jinja": renders})
	c := conf(forgets, config.Auto, rollout.StepsTurns)
	if p, err = rewardPrompter(c, policy); err != nil {
		t.Fatal(err)
	}
	if _, _, err := rewardTurns(policy, p, "+")(talk, []string{"1", "2"}); err == nil || !strings.Contains(err.Error(), "does not keep a turn") {
		t.Errorf("a template that counts messages: %v", err)
	}
}

// A separator that spells a special token is that token; a step stays text.
func TestRewardStepsSeparator(t *testing.T) {
	chats := prompttest.ModelFolder(t, false, map[string]string{"chat_template.jinja": prompttest.ChatML})
	policy := mustPrompter(t, chats, nil)
	q := &rollout.Problem{Prompt: "1+1?"}
	ids, ends, err := rewardSteps(policy, policy, "<pad>")(q, []string{"a", "<pad>"})
	if err != nil || len(ends) != 2 || ids[ends[0]] != 260 || ids[ends[1]] != 260 || ends[1]-ends[0] != len("<pad>")+1 {
		t.Errorf("%q, places %v, %v", prompttest.Written(ids), ends, err)
	}
}
