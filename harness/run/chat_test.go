package run

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"exp/eval/rows"
	"exp/experiments/store"
	"exp/harness/plan"
	"exp/harness/stage"
)

// verlRow is a row of verl's RL data sets.
type verlRow struct {
	Source string        `parquet:"data_source"`
	Prompt []verlMessage `parquet:"prompt,list"`
	Reward struct {
		Style string `parquet:"style"`
		Truth string `parquet:"ground_truth"`
	} `parquet:"reward_model"`
	Extra struct {
		Index string `parquet:"index"`
	} `parquet:"extra_info"`
}

type verlMessage struct {
	Role    string `parquet:"role"`
	Content string `parquet:"content"`
}

// verlFile writes sums as chats, three copies of each; the last problem is too long.
func verlFile(t *testing.T) string {
	t.Helper()
	var list []verlRow
	add := func(id, question, answer string) {
		row := verlRow{Source: "math_dapo", Prompt: []verlMessage{{"system", "Add."}, {"user", question}}}
		row.Reward.Style, row.Reward.Truth, row.Extra.Index = "rule", answer, id
		list = append(list, row, row, row)
	}
	for i := range 16 {
		add(fmt.Sprintf("sum-%d", i), fmt.Sprintf("%d+%d?", i, i+1), fmt.Sprint(2*i+1))
	}
	add("long", strings.Repeat("1+", 60)+"1?", "61")
	path := filepath.Join(t.TempDir(), "train.parquet")
	f, err := os.Create(path)
	if err == nil {
		err = rows.WriteParquet(f, list)
	}
	if err != nil || f.Close() != nil {
		t.Fatal(err)
	}
	return path
}

const testTemplate = "{% for m in messages %}<{{ m.role }}>{{ m.content }}\n{% endfor %}{% if add_generation_prompt %}<assistant>{% endif %}"

// chatRun plans a run on verl's rows with a random model of bytes, a chat template and
// further settings.
func chatRun(l *lab, template string, sets ...string) *plan.Run {
	l.t.Helper()
	return l.plan(0, append(chatSets(l, template, "reward={correct: 1, wrong: -1}"), sets...)...)
}

// chatSets are the settings of chatRun with a reward.
func chatSets(l *lab, template, reward string) []string {
	l.t.Helper()
	data, file := verlFile(l.t), filepath.Join(l.t.TempDir(), "chat.jinja")
	if err := os.WriteFile(file, []byte(template), 0o644); err != nil {
		l.t.Fatal(err)
	}
	all := []string{"name=chat", "task={kind: math, math: {grader: math_dapo}}", "tokenizer.kind=byte", "sft.steps=0", "train.steps=2", reward,
		"model.arch.max_positions=128", "data.max_prompt_tokens=64", "data.chat=" + file, "data.filter_overlong=true"}
	for _, split := range []string{"train", "val", "test"} {
		all = append(all, fmt.Sprintf("data.%s={source: %s, size: 0}", split, data))
	}
	return all
}

// The record counts what became of every row: taken, or left out and why.
func TestRowsAreCounted(t *testing.T) {
	l := newLab(t)
	res, q := l.execute(chatRun(l, testTemplate, "data.seed=3", "train.prompts_per_step=4", "train.prompts_per_update=2",
		"data.train={max_samples: 40, size: 12}", "data.val.max_samples=30", "data.select=random"))
	var got map[string]int
	if err := json.Unmarshal(l.stageOf(res.Run.ID, "prepare").Result, &got); err != nil {
		t.Fatal(err)
	}
	// numpy.random.default_rng(3).choice(51, size=40, replace=False) // 3 has all 17 problems, and the long one
	// among the first 12; of 30 drawn rows it has 16, and the long one.
	want := map[string]int{"train": 11, "train_rows": 51, "train_unselected": 11, "train_repeated": 23, "train_further": 5,
		"train_overlong": 1, "val": 15, "val_rows": 51, "val_unselected": 21, "val_repeated": 14, "val_overlong": 1,
		"test": 16, "test_rows": 51, "test_repeated": 34, "test_overlong": 1}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	told := "data.train: 51 rows give 12 problems; left out: 11 not selected (data.train.max_samples), 23 copies of " +
		"another, 5 after the first data.train.size"
	if !slices.Contains(q.warnings, told) {
		t.Errorf("nobody is told %q: %q", told, q.warnings)
	}
}

// FlowRL's data from the file to the scores: chats are rendered, long ones are left out and
// counted, and the record has the prompts as the model read them.
func TestChatRun(t *testing.T) {
	l := newLab(t)
	res, q := l.execute(chatRun(l, testTemplate))
	if !slices.ContainsFunc(q.warnings, func(w string) bool { return strings.Contains(w, "data.train: 1 of 17 problems") }) {
		t.Errorf("nobody is told of the problem that is too long: %q", q.warnings)
	}
	var summary map[string]int
	if err := json.Unmarshal(l.stageOf(res.Run.ID, "prepare").Result, &summary); err != nil {
		t.Fatal(err)
	}
	counts := map[string]int{}
	for _, split := range []string{"train", "val", "test"} {
		counts[split], counts[split+"_rows"], counts[split+"_repeated"], counts[split+"_overlong"] = 16, 51, 34, 1
	}
	if diff := cmp.Diff(counts, summary); diff != "" {
		t.Errorf("the record counts (-want +got):\n%s", diff)
	}
	packs := l.db.Blobs.NewPackReader()
	defer packs.Close()
	for _, scope := range []string{"train", "eval"} {
		samples, err := l.db.Samples(t.Context(), res.Run.ID, store.SampleQuery{Scope: scope})
		if err != nil || len(samples) == 0 {
			t.Fatalf("%s: %d samples, %v", scope, len(samples), err)
		}
		for _, s := range samples {
			var kept keptSample
			if err := packs.Read(s.Ref, &kept); err != nil {
				t.Fatal(err)
			}
			if want := "<system>Add.\n<user>"; !strings.HasPrefix(kept.Prompt, want) || !strings.HasSuffix(kept.Prompt, "?\n<assistant>") || int(s.PromptTokens) != len(kept.Prompt) {
				t.Fatalf("%s: prompt %q of %d tokens", scope, kept.Prompt, s.PromptTokens)
			}
		}
	}
	merged := filepath.Join(l.db.RunDir(res.Run.RID), stage.MergedDir, "chat_template.jinja")
	if b, err := os.ReadFile(merged); err != nil || string(b) != testTemplate {
		t.Errorf("the merged folder has the template %q, %v", b, err)
	}
	if again, _ := l.execute(chatRun(l, testTemplate)); again.Executed != 0 {
		t.Errorf("the same from files of other names executes %d stages", again.Executed)
	}
}

// The template, its settings and the stop ids are part of what a run is.
func TestChatIdentity(t *testing.T) {
	l := newLab(t)
	first := chatRun(l, testTemplate)
	if same := chatRun(l, testTemplate); same.RID != first.RID {
		t.Error("a template of another path is another run")
	}
	for _, tt := range []struct {
		name, template string
		set            string
	}{
		{"template", testTemplate + " ", "name=a"},
		{"system", testTemplate, "data.system=S"},
		{"date", testTemplate, "data.template_date=2020-01-01"},
		{"variables", testTemplate, "data.template_vars={a: 1}"},
		{"stop ids", testTemplate, "rollout.stop_ids=[10]"},
		{"none", testTemplate, "data.chat=none"},
		{"tools", testTemplate, "data.tools=[{name: f}]"},
	} {
		if other := chatRun(l, tt.template, tt.set); other.RID == first.RID {
			t.Errorf("%s: the same run", tt.name)
		}
	}
	names := map[string]bool{}
	for role := range first.Stages[first.TrainStage()].Outside {
		names[role] = true
	}
	if !names["chat template"] || !names["stop ids"] {
		t.Errorf("the train stage depends on %v", names)
	}
}
