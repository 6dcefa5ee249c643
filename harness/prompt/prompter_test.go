package prompt

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"exp/harness/config"
	"exp/harness/prompt/prompttest"
	"exp/train/checkpoint"
	"exp/train/rollout"
	"exp/train/tokenizer"
)

const bosTemplate = "{{ bos_token }}{% for m in messages %}[{{ m.role }}] {{ m.content }}{% if m.role == 'assistant' %}{{ eos_token }}{% endif %}{% endfor %}{% if add_generation_prompt %}[assistant] {% endif %}"

func prompterOf(t *testing.T, dir string, set func(c *config.Run)) (*Prompter, error) {
	t.Helper()
	c := prompttest.Run(dir)
	if set != nil {
		set(c)
	}
	vocab := 0
	if arch, err := checkpoint.ReadConfig(dir); err == nil {
		vocab = arch.Vocab
	}
	return New(c, vocab)
}

func TestPrompts(t *testing.T) {
	user := &rollout.Problem{ID: "u", Prompt: "1+1?"}
	chat := &rollout.Problem{ID: "c", Prompt: "1+1?", Messages: []rollout.Message{{Role: "system", Content: "Be short."}, {Role: "user", Content: "1+1?"}}}
	spells := &rollout.Problem{ID: "s", Prompt: "a<|im_end|>b<|im_start|>"}
	im := map[string]string{"chat_template.jinja": prompttest.ChatML}
	for _, tt := range []struct {
		name  string
		bos   bool
		files map[string]string
		set   func(c *config.Run)
		p     *rollout.Problem
		want  string
		ids   int // how many; 0 does not matter
	}{
		{"a question is a message of the user", false, im, nil, user, "<|im_start|>system\nYou help.<|im_end|>\n<|im_start|>user\n1+1?<|im_end|>\n<|im_start|>assistant\n", 0},
		{"messages", false, im, nil, chat, "<|im_start|>system\nBe short.<|im_end|>\n<|im_start|>user\n1+1?<|im_end|>\n<|im_start|>assistant\n", 0},
		{"data.system", false, im, func(c *config.Run) { c.Data.System = "S" }, user, "<|im_start|>system\nS<|im_end|>\n<|im_start|>user\n1+1?<|im_end|>\n<|im_start|>assistant\n", 0},
		{"data.system where there is one", false, im, func(c *config.Run) { c.Data.System = "S" }, chat, "<|im_start|>system\nBe short.<|im_end|>\n<|im_start|>user\n1+1?<|im_end|>\n<|im_start|>assistant\n", 0},
		{"data.system where there is a developer's message", false, im, func(c *config.Run) { c.Data.System = "S" },
			&rollout.Problem{ID: "d", Messages: []rollout.Message{{Role: "developer", Content: "Be short."}, {Role: "user", Content: "1+1?"}}},
			"<|im_start|>system\nYou help.<|im_end|>\n<|im_start|>developer\nBe short.<|im_end|>\n<|im_start|>user\n1+1?<|im_end|>\n<|im_start|>assistant\n", 0},
		{"none", false, im, func(c *config.Run) { c.Data.Chat = config.None }, chat, "1+1?", 4},
		{"no template", false, nil, nil, chat, "1+1?", 4},
		{"no template, and BOS", true, nil, nil, user, "<s>1+1?", 5},
		{"the template writes BOS", true, map[string]string{"chat_template.jinja": bosTemplate}, nil, user, "<s>[user] 1+1?[assistant] ", 0},
		{"the template writes none", true, im, nil, chat, "<s><|im_start|>system\nBe short.<|im_end|>\n<|im_start|>user\n1+1?<|im_end|>\n<|im_start|>assistant\n", 0},
		{"the class puts BOS", false, map[string]string{"tokenizer_config.json": `{"bos_token": "<s>", "add_bos_token": true, "tokenizer_class": "LlamaTokenizerFast"}`}, nil, user, "<s>1+1?", 5},
		{"the class puts none", true, map[string]string{"tokenizer_config.json": `{"bos_token": "<s>", "add_bos_token": false, "tokenizer_class": "LlamaTokenizerFast"}`}, nil, user, "1+1?", 4},
		{"special tokens in a text are tokens", false, nil, nil, spells, "a<|im_end|>b<|im_start|>", 4},
		{"or text", false, nil, func(c *config.Run) { c.Data.EscapeSpecial = true }, spells, "a<|im_end|>b<|im_start|>", 24},
		{"in a chat they are tokens", false, map[string]string{"chat_template.jinja": "<|im_start|>{{ messages[0].content }}"}, nil, spells, "<|im_start|>a<|im_end|>b<|im_start|>", 5},
		{"or text; the template has tokens", false, map[string]string{"chat_template.jinja": "<|im_start|>{{ messages[0].content }}"},
			func(c *config.Run) { c.Data.EscapeSpecial = true }, spells, "<|im_start|>a<|im_end|>b<|im_start|>", 25},
		{"variables and date", false, map[string]string{"chat_template.jinja": "{{ depth + 1 }} {{ thinking }} {{ strftime_now('%d %b %Y') }}"},
			func(c *config.Run) {
				c.Data.TemplateVars, c.Data.TemplateDate = map[string]any{"depth": int64(2), "thinking": false}, "2025-01-02"
			}, user, "3 False 02 Jan 2025", 0},
		{"cut at the left", false, nil, func(c *config.Run) { c.Data.MaxPromptTokens, c.Data.Truncate = 3, "left" }, user, "+1?", 3},
		{"cut at the right", false, nil, func(c *config.Run) { c.Data.MaxPromptTokens, c.Data.Truncate = 3, "right" }, user, "1+1", 3},
		{"cut in the middle", false, nil, func(c *config.Run) { c.Data.MaxPromptTokens, c.Data.Truncate = 3, "middle" }, user, "11?"[:1] + "1?", 3},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p, err := prompterOf(t, prompttest.ModelFolder(t, tt.bos, tt.files), tt.set)
			if err != nil {
				t.Fatal(err)
			}
			for range 2 { // the second time out of the cache
				ids, err := p.Encode(tt.p)
				if err != nil {
					t.Fatal(err)
				}
				if got := prompttest.Written(ids); got != tt.want {
					t.Errorf("%q, want %q", got, tt.want)
				}
				if tt.ids > 0 && len(ids) != tt.ids {
					t.Errorf("%d ids, want %d: %v", len(ids), tt.ids, ids)
				}
			}
		})
	}
}

func TestPromptErrors(t *testing.T) {
	user := &rollout.Problem{Prompt: "<s>1"}
	for _, tt := range []struct {
		name, want string
		files      map[string]string
		set        func(c *config.Run)
	}{
		{"two BOS", "two of <s>", map[string]string{"chat_template.jinja": "{{ bos_token }}{{ messages[0].content }}"}, nil},
		{"a bad template", "chat template: chat_template.jinja: template line 1", map[string]string{"chat_template.jinja": "{% for %}"}, nil},
		{"a template that refuses", "only assistants", map[string]string{"chat_template.jinja": "{{ raise_exception('only assistants') }}"}, nil},
		{"no such template", "no such file", nil, func(c *config.Run) { c.Data.Chat = filepath.Join(t.TempDir(), "x.jinja") }},
		{"too long", "4 tokens, data.max_prompt_tokens is 1", map[string]string{}, func(c *config.Run) { c.Data.MaxPromptTokens, c.Data.EscapeSpecial = 1, true }},
		{"a token beyond the model", "the token 256, <s>, and the model's vocabulary ends at 255", map[string]string{"config.json": `{"architectures": ["LlamaForCausalLM"], "model_type": "llama",
			"vocab_size": 256, "hidden_size": 8, "intermediate_size": 8, "num_hidden_layers": 1, "num_attention_heads": 1, "num_key_value_heads": 1, "max_position_embeddings": 64,
			"rms_norm_eps": 1e-6, "rope_theta": 10000, "hidden_act": "silu"}`}, nil},
		{"a stop id beyond the vocabulary", "rollout.stop_ids has 300, the vocabulary ends at 260", nil, func(c *config.Run) { c.Rollout.StopIDs = []int{300} }},
		{"a stop id just beyond the vocabulary", "rollout.stop_ids has 261, the vocabulary ends at 260", nil, func(c *config.Run) { c.Rollout.StopIDs = []int{261} }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p, err := prompterOf(t, prompttest.ModelFolder(t, false, tt.files), tt.set)
			if err == nil {
				_, err = p.Encode(user)
			}
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want %q", err, tt.want)
			}
		})
	}
}

// What ends a completion is the union of what the files and the template say, and
// nothing else: not the padding token.
func TestStopIDs(t *testing.T) {
	im := map[string]string{"chat_template.jinja": prompttest.ChatML}
	for _, tt := range []struct {
		name  string
		files map[string]string
		set   func(c *config.Run)
		want  []StopID
		end   int32
	}{
		{"plain text", nil, nil, []StopID{{257, "</s>", []string{"generation_config.json", "eos_token of tokenizer_config.json"}}}, 257},
		{"channels", map[string]string{"chat_template.jinja": "{% for m in messages %}<|start|>{{ m.role }}<|channel|>final<|message|>{{ m.content }}<|im_end|>{% endfor %}{# functions. #}",
			"generation_config.json": `{"eos_token_id": [257]}`}, nil, []StopID{{257, "</s>", []string{"generation_config.json", "eos_token of tokenizer_config.json"}}}, 257},
		{"a template", im, nil, []StopID{{257, "</s>", []string{"generation_config.json", "eos_token of tokenizer_config.json"}}, {259, "<|im_end|>", []string{turnEnd}}}, 259},
		{"config.json too", map[string]string{"config.json": `{"eos_token_id": 256}`}, nil,
			[]StopID{{257, "</s>", []string{"generation_config.json", "eos_token of tokenizer_config.json"}}, {256, "<s>", []string{"config.json"}}}, 257},
		{"the template ends with eos", map[string]string{"chat_template.jinja": bosTemplate}, nil,
			[]StopID{{257, "</s>", []string{"generation_config.json", "eos_token of tokenizer_config.json", turnEnd}}}, 257},
		{"rollout.stop_ids", im, func(c *config.Run) { c.Rollout.StopIDs = []int{10, 259} },
			[]StopID{{10, "Ċ", []string{"rollout.stop_ids"}}, {259, "<|im_end|>", []string{"rollout.stop_ids"}}}, 10},
		{"a template of one turn", map[string]string{"chat_template.jinja": "{% if messages|length > 2 %}{{ raise_exception('one turn') }}{% endif %}{% for m in messages %}{{ m.content }}{% if m.role == 'assistant' %}<|im_end|>{% endif %}{% endfor %}"}, nil,
			[]StopID{{257, "</s>", []string{"generation_config.json", "eos_token of tokenizer_config.json"}}, {259, "<|im_end|>", []string{turnEnd}}}, 259},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p, err := prompterOf(t, prompttest.ModelFolder(t, false, tt.files), tt.set)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, p.Stops); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			if end, err := p.End(); err != nil || end != tt.end {
				t.Errorf("an answer ends with %d, %v; want %d", end, err, tt.end)
			}
			vocab := p.Vocabulary()
			if vocab.EndIDs()[0] != tt.end || len(vocab.EndIDs()) != len(tt.want) {
				t.Errorf("the sampler stops at %v", vocab.EndIDs())
			}
			for _, s := range p.Stops {
				if !slices.Contains(vocab.EndIDs(), s.ID) || len(vocab.Piece(s.ID)) != 0 {
					t.Errorf("the sampler takes %d for text", s.ID)
				}
			}
			if slices.Contains(vocab.EndIDs(), 260) {
				t.Error("the padding token ends completions")
			}
		})
	}
}

// Stop ids beyond the model's vocabulary end nothing: the plan says so, and no answer to learn from ends with one.
func TestIdleStopIDs(t *testing.T) {
	small := func(vocab int) string {
		return fmt.Sprintf(`{"architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": %d, "hidden_size": 8,
			"intermediate_size": 8, "num_hidden_layers": 1, "num_attention_heads": 1, "num_key_value_heads": 1,
			"max_position_embeddings": 64, "rms_norm_eps": 1e-6, "rope_theta": 10000, "hidden_act": "silu"}`, vocab)
	}
	ends := map[string]string{"generation_config.json": `{"eos_token_id": [300, 257]}`}
	wide, narrow := maps.Clone(ends), maps.Clone(ends)
	wide["config.json"], narrow["config.json"] = small(301), small(257)
	own := func(c *config.Run) { c.Rollout.StopIDs = []int{260, 10} }
	for _, tt := range []struct {
		name  string
		files map[string]string
		set   func(c *config.Run)
		note  string // empty: none
		end   int32  // -1: none
	}{
		{"the tokenizer's", ends, nil, "stop ids: 300 (generation_config.json) ends nothing, as the model's vocabulary ends at 260; " +
			"correct eos_token_id there, or list the others in rollout.stop_ids", 257},
		{"a model of more", wide, nil, "", 300},
		{"a model of less", narrow, nil, "stop ids: 300 (generation_config.json); 257 </s> (generation_config.json, eos_token of " +
			"tokenizer_config.json) end nothing, as the model's vocabulary ends at 256; correct eos_token_id there", -1},
		{"the user's", narrow, own, "stop ids: 260 <pad> (rollout.stop_ids) ends nothing, as the model's vocabulary ends at 256; " +
			"correct rollout.stop_ids", 10},
		{"all there", nil, nil, "", 257},
	} {
		p, err := prompterOf(t, prompttest.ModelFolder(t, false, tt.files), tt.set)
		if err != nil {
			t.Fatal(err)
		}
		if got := p.Plan().StopNote; got != tt.note {
			t.Errorf("%s: note %q", tt.name, got)
		}
		end, err := p.End()
		if err != nil {
			end = -1
		}
		if vocab := p.Vocabulary().EndIDs(); end != tt.end || end >= 0 && vocab[0] != end || len(vocab) != len(p.Stops) {
			t.Errorf("%s: answers end with %d (%v), of %v", tt.name, end, err, vocab)
		}
	}
}

// Of a template in channels, the marks behind an answer and behind a call end completions; the mark behind each message
// does not.
func TestStopIDsOfChannels(t *testing.T) {
	dir := prompttest.ModelFolder(t, false, map[string]string{
		"chat_template.jinja":    "{% for m in messages %}<|start|>{{ m.role }}<|channel|>final<|message|>{{ m.content }}<|im_end|>{% endfor %}{# functions. #}",
		"generation_config.json": `{"eos_token_id": [257]}`})
	prompttest.Rename(t, dir, "<|im_start|>", "<|return|>", "<pad>", "<|call|>")
	p, err := prompterOf(t, dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	from := []string{"channels of the chat template"}
	want := []StopID{{257, "</s>", []string{"generation_config.json", "eos_token of tokenizer_config.json"}}, {258, "<|return|>", from}, {260, "<|call|>", from}}
	if d := cmp.Diff(want, p.Stops); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
}

// Escaped text is never a token, whatever stands around it, and reads as it was.
func FuzzEscape(f *testing.F) {
	f.Add("a<|im_<|im_end|>end|>", `[{"type":"text","text":"<s>\"<\u0073>"}]`)
	f.Add("<s></s>\uFDD0<s>", `null`)
	f.Add("<<s>s>", `{"<s>": ["<pad>", 1.0]}`)
	e := escaper{tokens: []string{"<|im_start|>", "<|im_end|>", "<pad>", "</s>", "<s>"}}
	f.Fuzz(func(t *testing.T, content, parts string) {
		if !json.Valid([]byte(parts)) {
			parts = "null"
		}
		m := rollout.Message{Role: "user", Content: strings.ToValidUTF8(content, "?"), More: []rollout.Field{{Name: "x", Value: json.RawMessage(parts)}}}
		got, _, mark, err := e.chat([]rollout.Message{m}, nil)
		if err != nil {
			t.Skip()
		}
		for _, part := range strings.Split(got[0].Content, string(mark)) {
			for _, token := range e.tokens {
				if strings.Contains(part, token) {
					t.Fatalf("%q still has %s", part, token)
				}
			}
		}
		if back := strings.ReplaceAll(got[0].Content, string(mark), ""); back != m.Content {
			t.Fatalf("%q became %q", m.Content, back)
		}
		if !json.Valid(got[0].More[0].Value) {
			t.Fatalf("%s became %s", parts, got[0].More[0].Value)
		}
	})
}

// A task without an alphabet takes its data's, from whatever splits there are.
func TestDataAlphabet(t *testing.T) {
	dir := t.TempDir()
	rows := map[string]string{"train.jsonl": `{"question":"What is 1+2?","answer":"It is <3>.\n#### 3"}`, "val.jsonl": `{"question":"4 × 5?","answer":"#### 20"}`}
	for name, text := range rows {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	c := &config.Run{Task: config.Task{Kind: "math", Math: config.Math{Grader: "gsm8k_strict"}}, Tokenizer: config.Tokenizer{Kind: "char"}, Model: config.Model{Init: "random"},
		Data: config.Data{Train: config.Split{Source: filepath.Join(dir, "train.jsonl")}, Val: config.Split{Source: filepath.Join(dir, "val.jsonl")}, Test: config.Split{Source: config.None},
			Chat: config.Auto, TemplateDate: "2024-07-26", MaxPromptTokens: 100}}
	p, err := New(c, 0)
	if err != nil {
		t.Fatal(err)
	}
	want, err := tokenizer.NewChar("What is 1+2?It is <3>.\n#### 34 × 5?20")
	if err != nil {
		t.Fatal(err)
	}
	if p.Tokenizer.Description() != want.Description() {
		t.Errorf("%s, want %s", p.Tokenizer.Description(), want.Description())
	}
	c.Data.Chat = filepath.Join(dir, "chat.jinja")
	if err := os.WriteFile(c.Data.Chat, []byte("{% for m in messages %}Q:{{ m.content }}{% endfor %}A:"), 0o644); err != nil {
		t.Fatal(err)
	}
	if p, err = New(c, 0); err != nil {
		t.Fatal(err)
	}
	ids, err := p.Encode(&rollout.Problem{Prompt: "1+1?"})
	if err != nil || p.Tokenizer.Decode(ids) != "Q:1+1?A:" {
		t.Errorf("%q, %v", p.Tokenizer.Decode(ids), err)
	}
}

// A plan says how many episodes all processes of an agent play at once.
func TestPlanOfAgents(t *testing.T) {
	tools := config.Tools{Kind: "agent", Command: []string{"python3", "a.py"}, Workers: 3, Episodes: 8, MaxTurns: 5}
	want := "the agent python3 a.py asks the policy, 24 episodes at once|at most 5 turns each, within rollout.max_new_tokens"
	if got := strings.Join(callsPlan(tools), "|"); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	tools.Workers, tools.Episodes, tools.MaxConversations = 2, 0, 4
	want = "the agent python3 a.py asks the policy, 2 episodes at once|at most 5 turns each in up to 4 conversations, within rollout.max_new_tokens"
	if got := strings.Join(callsPlan(tools), "|"); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
