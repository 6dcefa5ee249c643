package agent

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"exp/harness/prompt"
	"exp/harness/prompt/prompttest"
	"exp/train/rollout"
	"exp/train/toolcall"
)

// glmTemplate writes calls and answers as GLM-4.5's does, in few words, and ends turns with a token of the tests'.
const glmTemplate = "{%- for t in tools or [] %}[{{ t.function.name }}]{% endfor %}{% for m in messages %}{% if m.role == 'user' %}<|user|>\n{{ m.content }}" +
	"{% elif m.role == 'tool' %}<|im_end|>\n<tool_response>\n{{ m.content }}\n</tool_response>{% else %}<|assistant|>\n<think></think>\n{{ m.content }}{% for c in m.tool_calls %}\n" +
	"{{ '\\n<tool_call>' + c.function.name }}\n{% for k, v in c.function.arguments.items() %}\n<arg_key>{{ k }}</arg_key>\n<arg_value>{{ v | tojson if v is not string else v }}</arg_value>\n{% endfor %}\n" +
	"</tool_call>{% endfor %}{% endif %}{% endfor %}{% if add_generation_prompt %}<|assistant|>\n<think></think>\n{% endif %}"

// An episode with calls in the chat template of a model's own: the prompt of the second turn is what the template
// writes of all the conversation, and a client may write arguments in another order.
func TestCallsOfTemplates(t *testing.T) {
	const tools = `, "tools": [{"type": "function", "function": {"name": "w", "parameters": {"properties": {"s": {"type": "string"}, "n": {"type": "number"}}}}}]`
	for _, tt := range []struct{ name, template, call string }{
		{"glm", glmTemplate, "<tool_call>w\n<arg_key>s</arg_key>\n<arg_value>7</arg_value>\n<arg_key>n</arg_key>\n<arg_value>2.50</arg_value>\n</tool_call>"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p, err := prompt.New(prompttest.Run(prompttest.ModelFolder(t, false, map[string]string{"chat_template.jinja": tt.template})), 0)
			if err != nil {
				t.Fatal(err)
			}
			calls, ok := toolcall.SyntaxOf(p.ToolTemplate())
			if !ok || calls.Name != tt.name {
				t.Fatalf("calls are %q", calls.Name)
			}
			vocab := p.Vocabulary()
			end, _ := vocab.TokenID("<|im_end|>")
			o := roomy()
			o.MaxPrompt, o.Calls, o.Spelled, o.Ends, o.Piece = 1000, calls, prompt.Spelled(vocab, calls.Marks), []int32{end}, vocab.Piece
			o.Chat, o.Reply = p.AskedChat, p.Reply
			var asked []string
			says := []string{"I look.\n" + tt.call, "sunny"}
			a := New(o)
			e := episodeOf(&policy{}, "", "")
			e.Params.MaxNewTokens = 600
			e.Ask = func(_ context.Context, ids []int32, _ uint64, _ rollout.Params) (c rollout.Completion, err error) {
				asked = append(asked, prompttest.Written(ids))
				c.Text = says[len(asked)-1]
				c.Tokens, c.Finish = append(bytesOf(c.Text), end), rollout.FinishStop
				c.LogProbs, c.Entropies = make([]float32, len(c.Tokens)), make([]float32, len(c.Tokens))
				return c, nil
			}
			x := &played{a.begin(context.Background(), e), t, nil}
			t.Cleanup(func() { x.end(); _ = a.Close() })
			got, why := x.chat(tools, user("a"))
			want := `{"content":"I look.","refusal":null,"role":"assistant","tool_calls":[{"function":{"arguments":"{\"s\": \"7\", \"n\": 2.50}","name":"w"},"id":"call00000","type":"function"}]}`
			if got != want || why != "tool_calls" {
				t.Fatalf("%s, %s", got, why)
			}
			again := func(arguments string) string {
				return `{"role": "assistant", "content": "I look.", "tool_calls": [{"id": "call00000", "type": "function", "function": {"name": "w", "arguments": ` + arguments + `}}]}`
			}
			tool := `{"role": "tool", "tool_call_id": "call00000", "content": "21"}`
			if got, _ := x.chat(tools, user("a"), again(`"{\"s\": 7, \"n\": 2.50}"`), tool); got != "400 other_conversation <nil>" {
				t.Errorf("a number for a text: %s", got)
			}
			if got, why := x.chat(tools, user("a"), again(`"{\"n\":2.50,\"s\":\"7\"}"`), tool); !strings.Contains(got, "sunny") || why != "stop" {
				t.Fatalf("%s, %s", got, why)
			}
			list := []rollout.Message{{Role: "user", Content: "a"}, {Role: "assistant", Content: says[0]}, {Role: "tool", Content: "21"}}
			_, text, err := p.AskedChat(list, []byte(tools[len(`, "tools": `):]))
			if err != nil || len(asked) != 2 || asked[1] != text || !bytes.Contains([]byte(text), []byte("21")) {
				t.Errorf("asked %q, want %q (%v)", asked, text, err)
			}
		})
	}
}
