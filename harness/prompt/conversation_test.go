package prompt

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"exp/eval/layout"
	"exp/eval/rows"
	"exp/harness/config"
	"exp/harness/prompt/prompttest"
	"exp/train/rollout"
	"exp/train/tokenizer"
)

// conversationsIn reads rows of conversations.
func conversationsIn(t *testing.T, lines ...string) []layout.Conversation {
	t.Helper()
	path := t.TempDir() + "/talks.jsonl"
	text := ""
	for _, line := range lines {
		text += strings.ReplaceAll(line, "\n", " ") + "\n"
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	list, err := layout.Conversations(rows.Read(path), nil)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// shown returns the text of a conversation with « and » around the trained spans.
func shown(x *Conversation, text func([]int32) string) string {
	out, at := text(x.Prompt)+"«", 0
	for _, s := range x.Inserted {
		out += text(x.Tokens[at:s.Start]) + "»" + text(x.Tokens[s.Start:s.End]) + "«"
		at = s.End
	}
	return out + text(x.Tokens[at:]) + "»"
}

const (
	toolChat = `{"tools": [{"name": "py"}], "messages": [{"role": "system", "content": "Compute."}, {"role": "user", "content": "6*7?"},
		{"role": "assistant", "content": "Let me see.", "tool_calls": [{"function": {"name": "py", "arguments": "{\"code\": \"6*7\"}"}}]},
		{"role": "tool", "content": "42"}, {"role": "assistant", "content": null, "tool_calls": [{"name": "py", "arguments": {"code": "1", "x": null}}]},
		{"role": "tool", "content": "1"}, {"role": "assistant", "content": "42."}, {"role": "user", "content": "Sure?"}, {"role": "assistant", "content": "Yes."}, {"role": "user", "content": "Bye"}]}`
	textChat = `{"conversations": [{"from": "human", "value": "6*7?"}, {"from": "gpt", "value": "42"}, {"from": "observation", "value": "<|im_end|>"},
		{"from": "gpt", "value": "So 42."}]}`
	thoughtChat = `{"messages": [{"role": "user", "content": "6*7?"}, {"role": "assistant", "reasoning_content": "Six sevens.", "content": "42."},
		{"role": "user", "content": "Sure?"}, {"role": "assistant", "content": "<think>\nHm.\n</think>\n\nYes."}]}`
)

// opened is a template that begins answers with <think>, as R1's.
const opened = "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content.split('</think>')[-1] }}<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n<think>\n{% endif %}"

// Learned are the assistant's tokens and their end tokens. The texts are written by hand from the templates.
func TestConversation(t *testing.T) {
	const qwenTools = "<|im_start|>system\nCompute.\n\n# Tools\n\nYou may call one or more functions to assist with the user query.\n\n" +
		"You are provided with function signatures within <tools></tools> XML tags:\n<tools>\n{\"name\": \"py\"}\n</tools>\n\n" +
		"For each function call, return a json object with function name and arguments within <tool_call></tool_call> XML tags:\n<tool_call>\n" +
		"{\"name\": <function-name>, \"arguments\": <args-json-object>}\n</tool_call><|im_end|>\n"
	const calls = "<|im_start|>user\n6*7?<|im_end|>\n<|im_start|>assistant\n" +
		"«Let me see.\n<tool_call>\n{\"name\": \"py\", \"arguments\": {\"code\": \"6*7\"}}\n</tool_call><|im_end|>»" +
		"\n<|im_start|>user\n<tool_response>\n42\n</tool_response><|im_end|>\n<|im_start|>assistant\n" +
		"«<tool_call>\n{\"name\": \"py\", \"arguments\": {\"code\": \"1\"}}\n</tool_call><|im_end|>»" +
		"\n<|im_start|>user\n<tool_response>\n1\n</tool_response><|im_end|>\n<|im_start|>assistant\n" +
		"«42.<|im_end|>»\n<|im_start|>user\nSure?<|im_end|>\n<|im_start|>assistant\n«Yes.<|im_end|>»"
	const plain = "<|im_start|>user\n6*7?<|im_end|>\n<|im_start|>assistant\n«42<|im_end|>»\n<|im_start|>tool\n<|im_end|><|im_end|>\n" +
		"<|im_start|>assistant\n«So 42.<|im_end|>»"
	for _, tt := range []struct{ name, template, row, want string }{
		{"prompttest.ChatML", prompttest.ChatML, textChat, "<|im_start|>system\nYou help.<|im_end|>\n" + plain},
		{"hermes", "openhermes-2.5", textChat, plain},
		{"qwen2.5", "qwen2.5", toolChat, qwenTools + calls},
		{"qwen3", "qwen3", toolChat, qwenTools + calls},
		{"opened thoughts", opened, `{"messages": [{"role": "user", "content": "?"}, {"role": "assistant", "content": "<think>\na</think>b"},
			{"role": "user", "content": "!"}, {"role": "assistant", "content": "<think>c</think>d"}]}`,
			"<|im_start|>user\n?<|im_end|>\n<|im_start|>assistant\n<think>\n«a</think>b<|im_end|>»\n<|im_start|>user\n!<|im_end|>\n<|im_start|>assistant\n<think>\n«c</think>d<|im_end|>»"},
		{"qwen3 thinks", "qwen3", thoughtChat, "<|im_start|>user\n6*7?<|im_end|>\n<|im_start|>assistant\n«<think>\nSix sevens.\n</think>\n\n42.<|im_end|>»" +
			"\n<|im_start|>user\nSure?<|im_end|>\n<|im_start|>assistant\n«<think>\nHm.\n</think>\n\nYes.<|im_end|>»"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			text := tt.template
			if !strings.Contains(text, "{") {
				b, err := os.ReadFile(prompttest.DataPath(t, "chat_templates/"+tt.template+".jinja"))
				if err != nil {
					t.Fatal(err)
				}
				text = string(b)
			}
			p, err := prompterOf(t, prompttest.ModelFolder(t, false, map[string]string{"chat_template.jinja": text}), nil)
			if err != nil {
				t.Fatal(err)
			}
			q := conversationsIn(t, tt.row)[0]
			x, err := p.conversation(&q, p.learning())
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, shown(x, prompttest.Written)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if err := x.Check(); err != nil {
				t.Error(err)
			}
			parts := ""
			for _, part := range p.parts(&q, x) {
				if parts += part.Text; part.Learned {
					parts = strings.TrimSuffix(parts, part.Text) + "«" + part.Text + "»"
				}
			}
			if diff := cmp.Diff(tt.want, parts); diff != "" {
				t.Errorf("the plan (-want +got):\n%s", diff)
			}
			// What a tool says is text, the turns' ends are tokens.
			end, _ := p.Tokenizer.TokenID("<|im_end|>")
			if n, want := countOf(x.Tokens, end), strings.Count(strings.ReplaceAll(tt.want, "tool\n<|im_end|>", ""), "<|im_end|>")-
				countOf(x.Prompt, end); n != want {
				t.Errorf("%d end tokens, want %d", n, want)
			}
		})
	}
}

// Of TRL's rows the completion is learned. The template writes all of the prompt, as in sampling: Qwen3's drops the
// thoughts of an answer there.
func TestCompletionRows(t *testing.T) {
	const ask, said = `{"role": "user", "content": "6*7?"}`, `{"role": "assistant", "content": "<think>\nHm.\n</think>\n\n41."}`
	chat := `{"prompt": [` + ask + `, ` + said + `, {"role": "user", "content": "Sure?"}], "completion": [{"role": "assistant", "content": "42."},
		{"role": "user", "content": "So?"}, {"role": "assistant", "content": "42!"}]}`
	const text = `{"prompt": "6*7=", "completion": "4<c>x</c>2"}`
	for _, tt := range []struct{ name, template, row, want string }{
		{"messages", "chat_templates/qwen3.jinja", chat, "<|im_start|>user\n6*7?<|im_end|>\n<|im_start|>assistant\n41.<|im_end|>\n<|im_start|>user\nSure?<|im_end|>\n" +
			"<|im_start|>assistant\n«42.<|im_end|>»\n<|im_start|>user\nSo?<|im_end|>\n<|im_start|>assistant\n«42!<|im_end|>»"},
		{"texts", "", text, "6*7=«4»<c>x</c>«2</s>»"},
		{"texts and a template", "chat_templates/qwen3.jinja", text, "talks.jsonl:1: prompt and completion are texts, which are learned as they are, and the run " +
			"samples with a chat template; make them lists of messages, or set data.chat: none"},
		{"an empty prompt", "", `{"prompt": "", "completion": "x"}`, "talks.jsonl:1: prompt: it is empty"},
		{"messages without a template", "", chat, "no chat template"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p, err := prompterOf(t, prompttest.ModelFolder(t, false, nil), func(c *config.Run) {
				c.SFT.Mask, c.Data.MaxPromptTokens = []string{"<c>", "</c>"}, 1
				if tt.template != "" {
					c.Data.Chat = prompttest.DataPath(t, tt.template)
				}
			})
			if err != nil {
				t.Fatal(err)
			}
			q := conversationsIn(t, tt.row)
			b, err := json.Marshal(&q[0]) // as stage prepare keeps it
			kept := []layout.Conversation{{Where: q[0].Where}}
			if err != nil || json.Unmarshal(b, &kept[0]) != nil {
				t.Fatal(err)
			}
			switch list, _, err := p.Conversations(t.Context(), kept); {
			case err != nil && !strings.Contains(err.Error(), tt.want):
				t.Errorf("%v, want %q", err, tt.want)
			case err == nil && shown(list[0], prompttest.Written) != tt.want:
				t.Errorf("got\n%s\nwant\n%s", shown(list[0], prompttest.Written), tt.want)
			}
		})
	}
}

// With the published tokenizer of Qwen2.5, a conversation gets the token ids that a sampler sees: the prompt, each
// turn tokenized by itself, and the environment's replies.
func TestConversationIsWhatSamplersSee(t *testing.T) {
	p, err := prompterOf(t, prompttest.QwenTokenizer(t), func(c *config.Run) {
		c.Data.MaxPromptTokens, c.Rollout.Tools = 2048, config.Tools{Kind: "python", Format: "hermes"}
	})
	if err != nil {
		t.Fatal(err)
	}
	q := conversationsIn(t, toolChat)[0]
	x, err := p.conversation(&q, p.learning())
	if err != nil {
		t.Fatal(err)
	}
	prompt, err := p.Encode(&rollout.Problem{Messages: q.Messages[:2], Tools: q.Tools})
	if err != nil || !slices.Equal(x.Prompt, prompt) {
		t.Errorf("prompt %v, %v, want %v", x.Prompt, err, prompt)
	}
	end, _ := p.End()
	var want []int32
	say := func(text string) {
		ids, err := p.Tokenizer.Encode(text, tokenizer.Options{Added: true})
		if err != nil {
			t.Fatal(err)
		}
		want = append(append(want, ids...), end)
	}
	hear := func(role, text string) {
		ids, err := p.Reply(end, []rollout.Message{{Role: role, Content: text}})
		if err != nil {
			t.Fatal(err)
		}
		want = append(want, ids...)
	}
	say("Let me see.\n<tool_call>\n{\"name\": \"py\", \"arguments\": {\"code\": \"6*7\"}}\n</tool_call>")
	hear("tool", "42")
	say("<tool_call>\n{\"name\": \"py\", \"arguments\": {\"code\": \"1\"}}\n</tool_call>")
	hear("tool", "1")
	say("42.")
	hear("user", "Sure?")
	say("Yes.")
	if !slices.Equal(x.Tokens, want) {
		t.Errorf("tokens %v, want %v", x.Tokens, want)
	}
	// They begin the ids of the text that the template makes of the whole conversation.
	whole, err := p.EncodeChat(q.Messages[:9], q.Tools, false)
	if err != nil || !slices.Equal(whole[:len(whole)-1], slices.Concat(x.Prompt, x.Tokens)) {
		t.Errorf("%v, the template's ids are %v", err, whole)
	}
	if call, ok := p.Tokenizer.TokenID("<tool_call>"); !ok || countOf(x.Tokens, call) != 2 {
		t.Errorf("%d tokens <tool_call>, want 2", countOf(x.Tokens, call))
	}
}

// A conversation of one question and answer is the problem with this target, token for token.
func TestConversationOfOneTurn(t *testing.T) {
	p, err := prompterOf(t, prompttest.ModelFolder(t, false, map[string]string{"chat_template.jinja": prompttest.ChatML}), func(c *config.Run) { c.Data.System = "S" })
	if err != nil {
		t.Fatal(err)
	}
	q := conversationsIn(t, `{"messages": [{"role": "user", "content": "6*7?"}, {"role": "assistant", "content": "It is\n42. "}]}`)[0]
	x, err := p.conversation(&q, p.learning())
	if err != nil {
		t.Fatal(err)
	}
	end, _ := p.End()
	want, err := p.Taught(&rollout.Problem{Prompt: "6*7?", Target: "It is\n42. "}, end)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(shown(want, prompttest.Written), shown(x, prompttest.Written)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	ids, _ := p.Tokenizer.Encode("It is\n42. ", tokenizer.Options{})
	if !slices.Equal(x.Tokens, append(ids, end)) {
		t.Errorf("tokens %v", x.Tokens)
	}
}

// sft.mask, weights, sft.max_tokens and data.escape_special decide which tokens the loss covers.
func TestConversationSettings(t *testing.T) {
	const head = "<|im_start|>system\nYou help.<|im_end|>\n<|im_start|>user\n?<|im_end|>\n<|im_start|>assistant\n"
	row := func(answers ...string) string {
		list := []string{`{"role": "user", "content": "?"}`}
		for _, a := range answers {
			list = append(list, `{"role": "assistant", `+a+`}`, `{"role": "user", "content": "!"}`)
		}
		return `{"messages": [` + strings.Join(list, ", ") + `]}`
	}
	const again = "<|im_end|>\n<|im_start|>user\n!<|im_end|>\n<|im_start|>assistant\n"
	n := len(head) - len("<|im_start|>")*3 - len("<|im_end|>")*2 + 5 // tokens of the prompt: bytes, and 5 special ones
	most := func(tokens int) func(c *config.Run) { return func(c *config.Run) { c.SFT.MaxTokens = n + tokens } }
	mask := func(c *config.Run) { c.SFT.Mask = []string{"<out>", "</out>"} }
	for _, tt := range []struct {
		name, row string
		set       func(c *config.Run)
		want      string // after head; empty: nothing
	}{
		{"mask", row(`"content": "<c>1</c><out>x</out> so <out>y</out>"`), mask, "«<c>1</c>»<out>x</out>« so »<out>y</out>«<|im_end|>»"},
		{"mask at the start, and without an end", row(`"content": "<out>x</out>1<out>y"`), mask, "«»<out>x</out>«1»<out>y«<|im_end|>»"},
		{"no mask", row(`"content": "<out>x</out>"`), nil, "«<out>x</out><|im_end|>»"},
		{"weight", row(`"content": "a", "weight": 0`, `"content": "b", "weight": 1.0`, `"content": "c", "weight": 0.0`), nil, "«»a" + again + "«b<|im_end|>»"},
		{"all fits", row(`"content": "abc"`), most(4), "«abc<|im_end|>»"},
		{"cut in an answer", row(`"content": "abc"`, `"content": "d"`), most(2), "«ab»"},
		{"cut between answers", row(`"content": "abc"`, `"content": "d"`), most(6), "«abc<|im_end|>»"},
		{"cut before the next answer", row(`"content": "abc"`, `"content": "d"`), most(4 + 21), "«abc<|im_end|>»"},
		{"cut after its first token", row(`"content": "abc"`, `"content": "de"`), most(4 + 22), "«abc<|im_end|>»" + again[len("<|im_end|>"):] + "«d»"},
		{"only the prompt fits", row(`"content": "abc"`), most(0), ""},
		{"nor the prompt", row(`"content": "abc"`), most(-3), ""},
		{"cut in a part that is only read", row(`"content": "<out>x</out>abc"`), func(c *config.Run) { mask(c); most(5)(c) }, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p, err := prompterOf(t, prompttest.ModelFolder(t, false, map[string]string{"chat_template.jinja": prompttest.ChatML}), tt.set)
			if err != nil {
				t.Fatal(err)
			}
			q := conversationsIn(t, tt.row)[0]
			x, err := p.conversation(&q, p.learning())
			switch {
			case err != nil:
				t.Fatal(err)
			case x == nil && tt.want != "":
				t.Error("nothing is left")
			case x != nil && shown(x, prompttest.Written) != head+tt.want:
				t.Errorf("got\n%s\nwant\n%s", shown(x, prompttest.Written), head+tt.want)
			case x != nil && x.Check() != nil:
				t.Error(x.Check())
			}
		})
	}
	for escape, want := range map[bool]int{false: 2, true: 1} {
		testEndInCall(t, escape)
		p, err := prompterOf(t, prompttest.ModelFolder(t, false, map[string]string{"chat_template.jinja": prompttest.ChatML}), func(c *config.Run) { c.Data.EscapeSpecial = escape })
		if err != nil {
			t.Fatal(err)
		}
		q := conversationsIn(t, row(`"content": "a<|im_end|>b"`))[0]
		x, err := p.conversation(&q, p.learning())
		end, _ := p.End()
		if err != nil || countOf(x.Tokens, end) != want {
			t.Errorf("escape %v: %d end tokens, %v, want %d", escape, countOf(x.Tokens, end), err, want)
		}
	}
}

// An end token in a call's arguments does not end the answer.
func testEndInCall(t *testing.T, escape bool) {
	t.Helper()
	p, err := prompterOf(t, prompttest.ModelFolder(t, false, nil), func(c *config.Run) {
		c.Data.EscapeSpecial, c.Data.Chat = escape, prompttest.DataPath(t, "chat_templates/qwen2.5.jinja")
	})
	if err != nil {
		t.Fatal(err)
	}
	row := `{"messages": [{"role": "user", "content": "?"}, {"role": "assistant", "tool_calls": [{"name": "f", "arguments": {"s": "a<|im_end|>b"}}]}, {"role": "tool", "content": "<|im_end|>"}]}`
	q := conversationsIn(t, row)[0]
	x, err := p.conversation(&q, p.learning())
	const want = "<tool_call>\n{\"name\": \"f\", \"arguments\": {\"s\": \"a<|im_end|>b\"}}\n</tool_call><|im_end|>"
	if err != nil || prompttest.Written(x.Tokens) != want {
		t.Errorf("escape %v: %v, learns %s, want %s", escape, err, prompttest.Written(x.Tokens), want)
	}
}

// Targets of a run with tools learn nothing that the tool said.
func TestTaught(t *testing.T) {
	set := func(c *config.Run) { c.SFT.Mask = []string{"\n```output\n", "\n```\n"} }
	p, err := prompterOf(t, prompttest.ModelFolder(t, false, nil), set)
	if err != nil {
		t.Fatal(err)
	}
	q := &rollout.Problem{Prompt: "6*7?", Target: "```python\n6*7\n```\n```output\n</s>42\n```\nSo 42."}
	x, err := p.Taught(q, 257)
	if want := "6*7?«```python\n6*7\n```»\n```output\n</s>42\n```\n«So 42.</s>»"; err != nil || shown(x, prompttest.Written) != want {
		t.Errorf("%v, got\n%s\nwant\n%s", err, shown(x, prompttest.Written), want)
	}
	if n := countOf(x.Tokens, 257); n != 1 {
		t.Errorf("%d end tokens, want 1", n)
	}
}

// A demonstration has the tokens that the policy would have sampled. Written by hand; the model's tokens are bytes.
func TestDemonstration(t *testing.T) {
	for name, tt := range map[string]struct {
		template, target, want, text string
		set                          func(c *config.Run)
	}{
		"a text":              {"", "6*7=42", "6*7=42</s>", "6*7=42", nil},
		"a chat":              {prompttest.ChatML, "42", "42<|im_end|>", "42", nil},
		"an added token":      {prompttest.ChatML, "4<pad>2", "4[260]2<|im_end|>", "4<pad>2", nil},
		"text, escaped":       {prompttest.ChatML, "4<pad>2", "4<pad>2<|im_end|>", "4<pad>2", func(c *config.Run) { c.Data.EscapeSpecial = true }},
		"text of an end":      {prompttest.ChatML, "4<|im_end|>2", "4<|im_end|>2<|im_end|>", "4<|im_end|>2", nil},
		"thoughts opened":     {opened, " <think>\na</think>b", "a</think>b<|im_end|>", "a</think>b", nil},
		"thoughts gone on":    {opened, "a</think>b", "a</think>b<|im_end|>", "a</think>b", nil},
		"thoughts of its own": {prompttest.ChatML, "<think>\na</think>b", "<think>\na</think>b<|im_end|>", "<think>\na</think>b", nil},
		"stop strings":        {prompttest.ChatML, "a b!! c.", "a b!", "a b", func(c *config.Run) { c.Rollout.Stop = []string{".", "b!!", "!"} }},
		"an end within": {prompttest.ChatML, "a.b", "", "token 2 of the target, \".\", ends completions",
			func(c *config.Run) { c.Rollout.StopIDs = []int{259, '.'} }},
		"an end at the stop": {prompttest.ChatML, "ab.", "ab.", "ab",
			func(c *config.Run) { c.Rollout.Stop, c.Rollout.StopIDs = []string{"."}, []int{259, '.'} }},
	} {
		var files map[string]string
		if tt.template != "" {
			files = map[string]string{"chat_template.jinja": tt.template}
		}
		p, err := prompterOf(t, prompttest.ModelFolder(t, false, files), tt.set)
		if err != nil {
			t.Fatal(err)
		}
		c, err := p.Demonstration(&rollout.Problem{Prompt: "?", Target: tt.target})
		if err != nil || tt.want == "" {
			if err == nil || tt.want != "" || !strings.Contains(err.Error(), tt.text) {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		last := len(c.Tokens)
		if id := c.Tokens[last-1]; id == 257 || id == 259 { // else a stop string ends it
			last--
		}
		var got strings.Builder
		for _, id := range c.Tokens[:last] {
			if id < 256 {
				got.WriteByte(p.Tokenizer.Piece(id)[0])
			} else {
				fmt.Fprintf(&got, "[%d]", id)
			}
		}
		got.WriteString(prompttest.Written(c.Tokens[last:]))
		if got.String() != tt.want || c.Text != tt.text {
			t.Errorf("%s: tokens %q, text %q; want %q, %q", name, got.String(), c.Text, tt.want, tt.text)
		}
		end, _ := p.End()
		x, err := p.Taught(&rollout.Problem{Prompt: "?", Target: tt.target}, end)
		if same := err == nil && slices.Equal(x.Tokens, c.Tokens); same != (len(p.stop) == 0) || err != nil { // which cut a demonstration
			t.Errorf("%s: fine-tuning learns %v (%v), a demonstration has %v", name, x, err, c.Tokens)
		}
		if c, err := p.Demonstration(&rollout.Problem{Prompt: "?"}); c != nil || err != nil {
			t.Errorf("%s: without a target %v, %v", name, c, err)
		}
		if x, err := p.Taught(&rollout.Problem{Prompt: "?"}, end); err == nil {
			t.Errorf("%s: fine-tuning without a target learns %v", name, x)
		}
	}
}

// A message that the template cannot write is an error, not a message less.
func TestConversationErrors(t *testing.T) {
	const refuses = "{% for m in messages %}{% if m.role == 'tool' %}{{ raise_exception('no tools') }}{% endif %}{{ m.content }}</s>{% endfor %}"
	for _, tt := range []struct{ name, template, row, want string }{
		{"calls are dropped", prompttest.ChatML, toolChat, "talks.jsonl:1: message 3: the chat template drops its tool_calls"},
		{"reasoning is dropped", prompttest.ChatML, thoughtChat, "message 2: the chat template drops its reasoning_content"},
		{"a message after the system column", prompttest.ChatML, `{"system": "s",` + strings.TrimPrefix(thoughtChat, "{"), "talks.jsonl:1: message 2: the chat template drops its reasoning_content"},
		{"no thoughts", opened, textChat, "message 2: the chat template begins every answer with <think>, and this one does not"},
		{"no template", "", textChat, "no chat template"},
		{"the template refuses", refuses, strings.ReplaceAll(textChat, "<|im_end|>", "x"), "between messages 2 and 4: template line 1"},
	} {
		files := map[string]string{"chat_template.jinja": tt.template}
		if tt.template == "" {
			files = nil
		}
		p, err := prompterOf(t, prompttest.ModelFolder(t, false, files), nil)
		if err != nil {
			t.Fatal(err)
		}
		list := conversationsIn(t, tt.row)
		if _, _, err = p.Conversations(t.Context(), list); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.want)
		}
	}
}
