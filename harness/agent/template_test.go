package agent

import (
	"context"
	"strings"
	"testing"

	"exp/harness/prompt"
	"exp/harness/prompt/prompttest"
	"exp/train/rollout"
	"exp/train/toolcall"
)

// Templates that write calls and answers as GLM-4.5's, gpt-oss's and MiniMax-M2's do, in few words. The first and
// the last end turns with a token of the tests'. The others refuse a tool's answer unless the message before calls.
const (
	glmTemplate = "{%- for t in tools or [] %}[{{ t.function.name }}]{% endfor %}{% for m in messages %}{% if m.role == 'user' %}<|user|>\n{{ m.content }}" +
		"{% elif m.role == 'tool' %}<|im_end|>\n<tool_response>\n{{ m.content }}\n</tool_response>{% else %}<|assistant|>\n<think></think>\n{{ m.content }}{% for c in m.tool_calls %}\n" +
		"{{ '\\n<tool_call>' + c.function.name }}\n{% for k, v in c.function.arguments.items() %}\n<arg_key>{{ k }}</arg_key>\n<arg_value>{{ v | tojson if v is not string else v }}</arg_value>\n{% endfor %}\n" +
		"</tool_call>{% endfor %}{% endif %}{% endfor %}{% if add_generation_prompt %}<|assistant|>\n<think></think>\n{% endif %}"
	called         = "{%- set last = namespace(name=none) %}{%- for t in tools or [] %}[{{ t.function.name }}]{% endfor %}{% for m in messages %}{% if m.role == 'tool' and last.name is none %}{{ raise_exception('no call') }}{% endif %}"
	gptOssTemplate = called + "{% if m.role == 'user' %}<|start|>user<|message|>{{ m.content }}<|end|>{% elif m.role == 'tool' %}<|start|>{{ 'functions.' + last.name }} to=assistant<|channel|>commentary<|message|>{{ m.content | tojson }}<|end|>" +
		"{% elif m.tool_calls %}{% set f = m.tool_calls[0].function %}{% set last.name = f.name %}<|start|>assistant to={{ 'functions.' + f.name }}<|channel|>commentary json<|message|>{{ f.arguments | tojson }}<|call|>" +
		"{% else %}<|start|>assistant<|channel|>final<|message|>{{ m.content }}<|end|>{% endif %}{% endfor %}{% if add_generation_prompt %}<|start|>assistant{% endif %}"
	miniMaxTemplate = called + "{% if m.role == 'tool' %}]~b]tool\n<response>{{ m.content }}</response><|im_end|>\n{% else %}]~b]{{ m.role }}\n{{ m.content }}{% for c in m.tool_calls %}{% set last.name = c.function.name %}" +
		"\n<minimax:tool_call>\n{{ '<invoke name=\"' + c.function.name + '\">' }}\n{% for k, v in c.function.arguments | items %}<parameter name=\"{{ k }}\">{{ v | tojson if v is not string else v }}</parameter>\n{% endfor %}</invoke>\n</minimax:tool_call>{% endfor %}" +
		"<|im_end|>\n{% endif %}{% endfor %}{% if add_generation_prompt %}]~b]assistant\n{% endif %}"
)

// An episode with calls in the chat template of a model's own. The second turn's prompt is the first, the turn with the
// token that ended it, and what the template writes of the tool's answer. Clients may write arguments in another order,
// and leave out thoughts.
func TestCallsOfTemplates(t *testing.T) {
	const tools = `, "tools": [{"type": "function", "function": {"name": "w", "parameters": {"properties": {"s": {"type": "string"}, "n": {"type": "number"}}}}}]`
	for _, tt := range []struct{ name, template, turn, end, content, reply string }{
		{"glm", glmTemplate, "I look.\n<tool_call>w\n<arg_key>s</arg_key>\n<arg_value>7</arg_value>\n<arg_key>n</arg_key>\n<arg_value>2.50</arg_value>\n</tool_call>",
			"<|im_end|>", "I look.", "\n<tool_response>\n21\n</tool_response><|assistant|>\n<think></think>\n"},
		{"harmony", gptOssTemplate, "<|channel|>analysis<|message|>hm<|end|><|start|>assistant<|channel|>commentary to=functions.w <|constrain|>json<|message|>{\"s\": \"7\", \"n\": 2.50}",
			"<|call|>", "<think>hm</think>", "<|start|>functions.w to=assistant<|channel|>commentary<|message|>\"21\"<|end|><|start|>assistant"},
		{"minimax", miniMaxTemplate, "I look.\n<minimax:tool_call>\n<invoke name=\"w\">\n<parameter name=\"s\">7</parameter>\n<parameter name=\"n\">2.50</parameter>\n</invoke>\n</minimax:tool_call>",
			"<|im_end|>", "I look.", "\n]~b]tool\n<response>21</response><|im_end|>\n]~b]assistant\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := prompttest.ModelFolder(t, false, map[string]string{"chat_template.jinja": tt.template, "generation_config.json": `{"eos_token_id": [257, 259]}`})
			prompttest.Rename(t, dir, "<pad>", "<|call|>")
			p, err := prompt.New(prompttest.Run(dir), 0)
			if err != nil {
				t.Fatal(err)
			}
			calls, ok := toolcall.SyntaxOf(p.ToolTemplate())
			if !ok || calls.Name != tt.name {
				t.Fatalf("calls are %q", calls.Name)
			}
			vocab := p.Vocabulary()
			end, _ := vocab.TokenID(tt.end)
			o := roomy()
			o.MaxPrompt, o.Calls, o.Spelled, o.Ends, o.Piece = 1000, calls, prompt.Spelled(vocab, calls.Marks), vocab.EndIDs(), vocab.Piece
			o.Chat, o.Reply = p.AskedChat, p.Answered
			var asked []string
			says := []string{tt.turn, "sunny"}
			a := New(o)
			e := episodeOf(&policy{}, "", "")
			e.Params.MaxNewTokens = 900
			e.Ask = func(_ context.Context, ids []int32, _ uint64, _ rollout.Params) (c rollout.Completion, err error) {
				asked = append(asked, strings.ReplaceAll(prompttest.Written(ids), "<pad>", "<|call|>"))
				c.Text = says[len(asked)-1]
				c.Tokens, c.Finish = append(bytesOf(c.Text), end), rollout.FinishStop
				c.LogProbs, c.Entropies = make([]float32, len(c.Tokens)), make([]float32, len(c.Tokens))
				return c, nil
			}
			s, err := a.begin(context.Background(), e).strand("")
			if err != nil {
				t.Fatal(err)
			}
			x := &played{s, t, nil}
			t.Cleanup(func() { x.end(); _ = a.Close() })
			got, why := x.chat(tools, user("a"))
			content := strings.NewReplacer("<", `\u003c`, ">", `\u003e`).Replace(tt.content)
			want := `{"content":"` + content + `","refusal":null,"role":"assistant","tool_calls":[{"function":{"arguments":"{\"s\": \"7\", \"n\": 2.50}","name":"w"},"id":"call00000","type":"function"}]}`
			if got != want || why != "tool_calls" {
				t.Fatalf("%s, %s", got, why)
			}
			again := func(arguments string) string {
				return `{"role": "assistant", "content": "` + toolcall.AfterThoughts(tt.content) + `", "tool_calls": [{"id": "call00000", "type": "function", "function": {"name": "w", "arguments": ` + arguments + `}}]}`
			}
			tool := `{"role": "tool", "tool_call_id": "call00000", "content": "21"}`
			if got, _ := x.chat(tools, user("a"), again(`"{\"s\": 7, \"n\": 2.50}"`), tool); got != "400 other_conversation <nil>" {
				t.Errorf("a number for a text: %s", got)
			}
			if got, why := x.chat(tools, user("a"), again(`"{\"n\":2.50,\"s\":\"7\"}"`), tool); !strings.Contains(got, "sunny") || why != "stop" {
				t.Fatalf("%s, %s", got, why)
			}
			if want := asked[0] + tt.turn + tt.end + tt.reply; asked[1] != want {
				t.Errorf("asked\n%q, want\n%q", asked[1], want)
			}
		})
	}
}
