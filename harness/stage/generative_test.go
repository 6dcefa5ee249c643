package stage

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"exp/experiments/ident"
	"exp/harness/config"
	"exp/harness/prompt/prompttest"
	"exp/train/model"
	"exp/train/rollout"
)

// judged returns a run whose completions the model in a folder judges.
func judged(folder, template string) *config.Run {
	c := &config.Run{Reward: config.Reward{Kind: "genrm", Weights: folder, Judge: config.Judge{Template: template,
		MaxTokens: 8, Context: 64, Sequences: 2}}}
	c.Data.TemplateDate = "2024-07-26"
	return c
}

// The judge reads a message in its own template with its own variables, and no text of a completion ends its turn.
func TestJudgeMessage(t *testing.T) {
	const own = "{% for m in messages %}[{{ m.role }}] {{ m.content }}</s>{% endfor %}{% if add_generation_prompt %}[judge{{ mood }}] {% endif %}"
	chats, plain := prompttest.ModelFolder(t, true, map[string]string{"chat_template.jinja": own}), prompttest.ModelFolder(t, true, nil)
	const end = 257 // </s>
	for _, tt := range []struct {
		folder string
		want   string
		ends   int
	}{
		{chats, "<s>[user] Is 4</s> right?</s>[judge, strict] ", 1},
		{plain, "<s>Is 4</s> right?", 0},
	} {
		c := judged(tt.folder, "")
		c.Reward.Judge.TemplateVars = map[string]any{"mood": ", strict"}
		p, err := NewPrompter(JudgeRun(c))
		if err != nil {
			t.Fatal(err)
		}
		ids, err := judgeMessage(p)("Is 4</s> right?")
		ends := len(slices.DeleteFunc(slices.Clone(ids), func(id int32) bool { return id != end }))
		if err != nil || prompttest.Written(ids) != tt.want || ends != tt.ends {
			t.Errorf("%q with %d end tokens, %v; want %q with %d", prompttest.Written(ids), ends, err, tt.want, tt.ends)
		}
	}
}

// The judge samples as reward.judge says, whatever the policy does.
func TestJudgeSampling(t *testing.T) {
	c := judged("folder", "")
	c.Reward.Judge.Temperature = 0.7
	c.Rollout = config.Rollout{Temperature: 2, TopK: 3, TopP: 0.5, MaxNewTokens: 99, PageTokens: 16, Stop: []string{"x"}}
	own := JudgeRun(c)
	if got, want := samplingParams(own.Rollout), (rollout.Params{Temperature: 0.7, TopP: 1, MaxNewTokens: 8}); !reflect.DeepEqual(got, want) {
		t.Errorf("sampled with %+v, want %+v", got, want)
	}
	o := EngineOptions(own, model.Config{MaxPositions: 1000}, own.Rollout.MaxNewTokens, nil)
	if o.MaxTokens != 64 || o.MaxSequences != 2 || o.PageTokens != 16 {
		t.Errorf("a sampler with %+v", o)
	}
}

// Equal messages have equal seeds in every run.
func TestJudgeSeed(t *testing.T) {
	if judgeSeed("a") != judgeSeed("a") || judgeSeed("a") == judgeSeed("b") {
		t.Error("the seed of an answer does not follow from its message")
	}
}

// What the judge reads and is changes the run; a folder that cannot judge is refused with its key.
func TestJudgeDigests(t *testing.T) {
	const arch = `{"architectures": ["LlamaForCausalLM"], "vocab_size": 261, "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 1,
		"num_key_value_heads": 1, "intermediate_size": 16, "max_position_embeddings": 64, "rms_norm_eps": 1e-5, "rope_theta": 1e4}`
	weights := func(values byte) string { // a tensor of one float
		return "\x40\x00\x00\x00\x00\x00\x00\x00" + `{"x":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}          ` + strings.Repeat(string(values), 4)
	}
	folder := func(changed map[string]string) string {
		files := map[string]string{"config.json": arch, "model.safetensors": weights('a'), "chat_template.jinja": "{{ messages[0].content }}"}
		for name, text := range changed {
			files[name] = text
		}
		return prompttest.ModelFolder(t, true, files)
	}
	template := func(text string) string {
		path := filepath.Join(t.TempDir(), "judge.txt")
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		return path
	}
	digests := func(c *config.Run) (map[string]ident.Digest, string) {
		problem := ""
		d := rewardDigests(c, nil, func(key, _, message, _ string) { problem += key + ": " + message })
		return d, problem
	}
	base, problem := digests(judged(folder(nil), template("{response}")))
	if len(base) != 3 || problem != "" {
		t.Fatalf("%v, %s", base, problem)
	}
	for name, tt := range map[string]struct {
		files    map[string]string
		template string
		changed  string
	}{
		"the same":  {nil, "{response}", ""},
		"message":   {nil, "{response}?", "reward/template"},
		"weights":   {map[string]string{"model.safetensors": weights('b')}, "{response}", "reward/model"},
		"layers":    {map[string]string{"config.json": strings.Replace(arch, "1e4", "1e6", 1)}, "{response}", "reward/model"},
		"template":  {map[string]string{"chat_template.jinja": "{{ messages[0].content }}!"}, "{response}", "reward/chat template"},
		"end token": {map[string]string{"generation_config.json": `{"eos_token_id": [257, 258]}`}, "{response}", "reward/model"},
	} {
		got, problem := digests(judged(folder(tt.files), template(tt.template)))
		if problem != "" {
			t.Errorf("%s: %s", name, problem)
		}
		for use := range base {
			if changed := got[use] != base[use]; changed != (use == tt.changed) {
				t.Errorf("another %s: %s changed: %v", name, use, changed)
			}
		}
	}
	c := judged(folder(nil), template("{response}"))
	c.Reward.Judge.Context = 65
	if _, problem := digests(c); !strings.Contains(problem, "reward.weights: ") || !strings.Contains(problem, "has 64 positions: set reward.judge.context, which is 65") {
		t.Errorf("problem %q", problem)
	}
}
