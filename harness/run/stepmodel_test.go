package run

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"exp/harness/config"
	"exp/harness/plan"
	"exp/harness/prompt"
	"exp/harness/stage"
)

// stepFile writes answers in steps to sums as chats: the second step is wrong in every other one. The first has a step
// without a label, the last is too long.
func stepFile(t *testing.T) string {
	t.Helper()
	var rows []string
	for i := range 9 {
		step, label := fmt.Sprint(i+1), "true"
		if i%2 == 1 {
			step, label = fmt.Sprint(i+3), "false"
		}
		first := "true"
		if i == 0 {
			first = "null"
		}
		const row = `{"prompt": [{"role": "user", "content": "%d+1?"}], "completions": ["%d+1", %q], "labels": [%s, %s]}`
		rows = append(rows, fmt.Sprintf(row, i, i, step, first, label))
	}
	rows = append(rows, fmt.Sprintf(`{"prompt": [{"role": "user", "content": "1?"}], "completions": [%q], "labels": [true]}`,
		strings.Repeat("x", 80)))
	path := filepath.Join(t.TempDir(), "steps.jsonl")
	if err := os.WriteFile(path, []byte(strings.Join(rows, "\n")), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// A run learns a process reward model from labelled steps, validates it, rewards completions by their steps, scores its
// evaluation with the published folder, and computes everything again. The folder gives the stage's rewards.
func TestStepModelRun(t *testing.T) {
	l := newLab(t)
	file := stepFile(t)
	sets := append(chatSets(l, testTemplate, "reward={kind: trained, steps: mean, split: '1'}"), "train.steps=1",
		"reward_model={kind: steps, steps: 40, answers_per_step: 4, max_tokens: 60, separator: '|', optim: {lr: 0.01}}", "reward_model.source="+file,
		"reward_model.val="+file, "eval.final.scorer={weights: trained, steps: min, split: '1'}")
	p := l.plan(0, sets...)
	shown := p.External.Prompter.Plan().Stepped
	const want = "9 answers of up to 29 tokens, 253 in all; 17 steps with a label, 13 of them right; " +
		"1 longer than reward_model.max_tokens left out"
	if shown.String() != want {
		t.Errorf("the plan says %q, want %q", shown, want)
	}
	if s := shown.First; shown.Begins != "<user>0+1?\n<assistant>" || len(s) != 2 ||
		s[0] != promptStep("0+1|", "reads") || s[1] != promptStep("1|", "right") {
		t.Errorf("the first answer is %q, %+v", shown.Begins, s)
	}
	res, q := l.execute(p)
	if got := executedStages(q); got != "prepare init reward_model train merge eval.gen[test] eval.score[test]" {
		t.Errorf("stages %s", got)
	}
	l.checkRoles(res.Run.ID, config.SFT, config.Prefer, config.PassRate, config.Select)
	var got map[string]any
	if err := json.Unmarshal(l.stageOf(res.Run.ID, "reward_model").Result, &got); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]float64{"answers": 9, "labels": 17, "right": 13, "long": 1, "val_answers": 9, "step": 40} {
		if got[name] != want {
			t.Errorf("%s: %v, want %v", name, got[name], want)
		}
	}
	if held, ok := got["rm/val_step_accuracy"].(float64); !ok || held <= 13.0/17 {
		t.Errorf("accuracy of steps: %v", got["rm/val_step_accuracy"])
	}
	told := map[string]float64{}
	for _, f := range q.facts["reward_model"] {
		told[f.Name] = f.Value
	}
	if told["held-out accuracy"] != got["rm/val_step_accuracy"] || told["loss"] != got["rm/step_loss"] {
		t.Errorf("the stage ends with %v", told)
	}
	if v := l.verify(p, VerifyOptions{Level: LevelFull}); !v.OK {
		t.Errorf("repeating it: %+v", v)
	}
	samples := l.trainSamples(res.Run.ID)
	dir := filepath.Join(l.db.RunDir(res.Run.RID), stage.RewardModelDir)
	model := append(chatSets(l, testTemplate, "reward={kind: model, steps: mean, split: '1', separator: '|'}"),
		"train.steps=1", "reward.weights="+dir)
	scored := l.plan(0, append(model, "eval.final.scorer={steps: min, split: '1', separator: '|'}", "eval.final.scorer.weights="+dir)...)
	other, _ := l.execute(scored)
	for i, s := range l.trainSamples(other.Run.ID) {
		if s != samples[i] || !(s.reward > 0 && s.reward < 1) {
			t.Errorf("sample %d: the folder rewards %+v, the stage %+v", i, s, samples[i])
		}
	}
	for _, run := range []int64{res.Run.ID, other.Run.ID} {
		evals, err := l.db.Evals(t.Context(), run)
		if err != nil {
			t.Fatal(err)
		}
		found := map[string]bool{}
		for _, e := range evals {
			found[e.Metric] = true
		}
		if !found["best@4"] || !found["maj@4"] || !found["weighted_majority"] {
			t.Errorf("metrics %v", found)
		}
	}
	if v := l.verify(scored, VerifyOptions{Level: LevelScore}); !v.OK {
		t.Errorf("scoring again: %+v", v)
	}
	before := p.XID
	for _, set := range []string{"reward_model.separator='#'", "reward_model.last_step_only=true", "reward.steps=min", "reward.split='2'"} {
		if l.plan(0, append(sets, set)...).XID == before {
			t.Errorf("%s is the same experiment", set)
		}
	}
	for set, want := range map[string]string{"reward={kind: trained, steps: none}": "reward.steps is none",
		"eval.final.scorer={weights: trained, steps: none}": "eval.final.scorer.steps is none",
		"eval.final.scorer.text='{response}'":               "eval.final.scorer.text has no effect"} {
		_, err := config.Load(config.Input{File: "../../configs/smoke_cpu.yaml", Sets: append(sets, set)})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", set, err, want)
		}
	}
	last, _ := l.execute(l.plan(0, append(append(sets, onlyTuned()...), "reward_model={last_step_only: true, steps: 1, answers_per_step: 9}",
		"eval.final.suites=[]")...))
	if err := json.Unmarshal(l.stageOf(last.Run.ID, "reward_model").Result, &got); err != nil ||
		got["rm/steps_right"] != 5.0/9 || got["rm/val_steps_right"] != 13.0/17 {
		t.Errorf("of last steps %v are right, of held-out ones %v, %v", got["rm/steps_right"], got["rm/val_steps_right"], err)
	}
	if plain := l.plan(0, model...); protocolOf(t, scored) == protocolOf(t, plain) || scored.RID != plain.RID {
		t.Error("a scorer belongs to the run, or not to the protocol")
	}
}

func promptStep(text, label string) prompt.ShownStep {
	return prompt.ShownStep{Text: text, Label: label}
}

func protocolOf(t *testing.T, p *plan.Run) string {
	t.Helper()
	d, err := p.Protocol("test")
	if err != nil {
		t.Fatal(err)
	}
	return d.String()
}
