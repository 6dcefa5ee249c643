package run

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"exp/experiments/ident"
	"exp/experiments/store"
	"exp/harness/config"
	"exp/harness/device"
	"exp/harness/plan"
	"exp/harness/stage"
	"exp/train/reward"
	"exp/train/rollout"
)

// ratedFile writes pairs of sums as chats, the first with a margin; the ninth has equal answers, the tenth a long one.
func ratedFile(t *testing.T, wrong int) string {
	t.Helper()
	path := pairFile(t, wrong)
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(strings.Replace(string(b), "}\n", `, "margin": 0.5}`+"\n", 1)), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// rewardRun plans a run that trains a reward model and rewards chats with it.
func rewardRun(l *lab, file string, sets ...string) *plan.Run {
	l.t.Helper()
	all := append(chatSets(l, testTemplate, "reward.kind=trained"), "train.steps=1",
		"reward_model={steps: 20, pairs_per_step: 4, max_tokens: 60, optim: {lr: 0.01}}", "reward_model.source="+file)
	return l.plan(0, append(all, sets...)...)
}

// A run learns a reward model from pairs, validates it, rewards completions with it and publishes its folder.
func TestRewardModelRun(t *testing.T) {
	l := newLab(t)
	file := ratedFile(t, 1)
	p := rewardRun(l, file, "reward_model.val="+pairFile(t, 2), "reward_model.val_every=8")
	// <user>0+1?\n<assistant>1\n against 2\n, as the template writes the whole chat.
	plans := p.External.Prompter.Plan()
	const line = "8 pairs of up to 24 tokens a side, 208 in all; 1 with a margin; 1 left out, as both answers are the same; " +
		"1 longer than reward_model.max_tokens left out"
	if got := plans.Rated.String(); got != line {
		t.Errorf("the plan says %q, want %q", got, line)
	}
	if r := plans.Rated; r.Begins != "<user>0+1?\n<assistant>" || r.Chosen != "1\n" || r.Rejected != "2\n" {
		t.Errorf("the first pair is %q, %q, %q", r.Begins, r.Chosen, r.Rejected)
	}
	if plans.HeldOut == nil || plans.HeldOut.Pairs != 8 {
		t.Errorf("held-out pairs: %+v", plans.HeldOut)
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
	for name, want := range map[string]float64{"pairs": 8, "tokens": 208, "same": 1, "long": 1, "margins": 1, "val_pairs": 8, "step": 20} {
		if got[name] != want {
			t.Errorf("%s: %v, want %v", name, got[name], want)
		}
	}
	for _, name := range []string{"rm/val_accuracy", "rm/val_loss", "rm/accuracy"} {
		if _, ok := got[name].(float64); !ok {
			t.Errorf("the last step has no %s", name)
		}
	}
	if !strings.Contains(strings.Join(q.warnings, "\n"), "reward_model.source: 8 pairs") {
		t.Errorf("nobody is told of the pairs left out: %q", q.warnings)
	}
	if v := l.verify(p, VerifyOptions{Level: LevelFull}); !v.OK {
		t.Errorf("repeating it: %+v", v)
	}
	before := l.stageOf(res.Run.ID, "reward_model").SID
	other, q := l.execute(rewardRun(l, file, "reward_model.val="+pairFile(t, 2), "reward_model.val_every=8", "algo={kind: ppo}", "algo.critic.optim.lr=0.01"))
	if l.stageOf(other.Run.ID, "reward_model").SID != before || strings.Contains(executedStages(q), "reward_model") {
		t.Errorf("another algorithm trains another reward model: %s", executedStages(q))
	}
	for _, x := range []*plan.Run{rewardRun(l, ratedFile(t, 2)), rewardRun(l, file, "reward_model.center=0.2")} {
		if x.RID == res.Run.RID {
			t.Error("another file or setting is the same run")
		}
	}
}

// scoresIn returns the rewards that a reward model in a folder gives texts of a task.
func scoresIn(t *testing.T, l *lab, dir string, prompts []string, responses []string) (list []float64) {
	t.Helper()
	m, err := reward.OpenModel(l.be, dir, reward.ModelOptions{Text: "{prompt}{response}", End: true, BatchTokens: 64})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	var items []rollout.Item
	for i := range prompts {
		items = append(items, rollout.Item{Problem: &rollout.Problem{ID: fmt.Sprint(i), Prompt: prompts[i]}, Completion: &rollout.Completion{Text: responses[i]}})
	}
	got, err := m.Score(context.Background(), items)
	if err != nil {
		t.Fatal(err)
	}
	for i, s := range got {
		if !s.Graded {
			t.Errorf("%q: %s", responses[i], s.Reason)
		}
		list = append(list, s.Value)
	}
	return list
}

// ratedSample is a completion of training with its reward.
type ratedSample struct {
	prompt, text string
	reward       float64
}

// trainSamples returns the completions of training, in order.
func (l *lab) trainSamples(run int64) (list []ratedSample) {
	l.t.Helper()
	samples, err := l.db.Samples(l.t.Context(), run, store.SampleQuery{Scope: "train"})
	if err != nil {
		l.t.Fatal(err)
	}
	packs := l.db.Blobs.NewPackReader()
	defer packs.Close()
	for _, x := range samples {
		var kept keptSample
		if err := packs.Read(x.Ref, &kept); err != nil {
			l.t.Fatal(err)
		}
		list = append(list, ratedSample{kept.Prompt, kept.Text, x.Reward})
	}
	return list
}

// rewardRecipe loads the recipe with its files; with a reward model of its own unless a folder gives the reward.
func rewardRecipe(t *testing.T, sets ...string) *config.Resolved {
	const dir = "../../configs/preferences/meals"
	sets = append([]string{"compute.threads=2", "data.train.source=" + dir + "_prompts.jsonl", "data.test.source=" + dir + "_test.jsonl"}, sets...)
	if !slices.Contains(sets, "reward_model.steps=0") {
		sets = append(sets, "reward_model.source="+dir+".jsonl", "reward_model.val="+dir+"_val.jsonl")
	}
	if !slices.Contains(sets, "sft.steps=0") {
		sets = append(sets, "sft.source="+dir+"_sft.jsonl")
	}
	return recipe(t, "reward_cpu.yaml", sets...)
}

// The recipe's reward model tells held-out pairs apart, the policy learns to please it, and the folder of the model
// gives the scores that the record has.
func TestRewardRecipe(t *testing.T) {
	l := newLab(t)
	p, err := plan.New(rewardRecipe(t), 0, l.be.Class(), l.sources)
	if err != nil {
		t.Fatal(err)
	}
	res, q := l.execute(p)
	if got := executedStages(q); got != "prepare init sft reward_model train merge eval.gen[test@start] eval.score[test@start] eval.gen[test] eval.score[test]" {
		t.Errorf("stages %s", got)
	}
	var got map[string]any
	if err := json.Unmarshal(l.stageOf(res.Run.ID, "reward_model").Result, &got); err != nil {
		t.Fatal(err)
	}
	if held, _ := got["rm/val_accuracy"].(float64); held < 0.85 {
		t.Errorf("accuracy %v on held-out pairs", got["rm/val_accuracy"])
	}
	evals, err := l.db.Evals(context.Background(), res.Run.ID)
	if err != nil {
		t.Fatal(err)
	}
	pass := map[string]float64{}
	for _, e := range evals {
		if e.Metric == "pass@1" {
			pass[e.SuiteName] = e.Value
		}
	}
	t.Logf("held out %v, pass@1 %v", got["rm/val_accuracy"], pass)
	if !(pass["prompts/test"] > pass["prompts/test@start"]+0.2) {
		t.Errorf("pass@1 %v: the policy does not please the reward model", pass)
	}
	samples := l.trainSamples(res.Run.ID)
	var prompts, responses []string
	samples = slices.DeleteFunc(samples, func(s ratedSample) bool { return strings.ContainsRune(s.text, utf8.RuneError) }) // bytes that the record replaced
	for _, s := range samples {
		prompts, responses = append(prompts, s.prompt), append(responses, s.text)
	}
	dir := filepath.Join(l.db.RunDir(res.Run.RID), stage.RewardModelDir)
	var conf struct {
		Architectures []string
		Pad           int `json:"pad_token_id"`
		End           int `json:"eos_token_id"`
	}
	text, err := os.ReadFile(filepath.Join(dir, "config.json"))
	if err == nil {
		err = json.Unmarshal(text, &conf)
	}
	if err != nil || conf.Architectures[0] != "LlamaForSequenceClassification" || conf.Pad == conf.End || conf.End != 256 { // the byte tokenizer pads with its end token
		t.Errorf("config.json has %+v, %v", conf, err)
	}
	for i, v := range scoresIn(t, l, dir, prompts, responses) {
		if v != samples[i].reward {
			t.Errorf("%q: the folder gives %v, the run gave %v", responses[i], v, samples[i].reward)
		}
	}
	other, _ := plan.New(rewardRecipe(t, "reward.kind=model", "reward.end=true", "reward.weights="+dir, "reward_model.steps=0", "train.steps=2", "eval.final.suites=[]"), 0,
		l.be.Class(), l.sources)
	if other == nil {
		t.Fatal("no run with the folder")
	}
	again, _ := l.execute(other)
	for i, s := range l.trainSamples(again.Run.ID)[:8] {
		if s != samples[i] {
			t.Errorf("sample %d: the folder rewards %+v, the stage %+v", i, s, samples[i])
		}
	}
}

// Pairs alone are enough: the run ends with the reward model's folder; a stage that breaks continues from its
// checkpoint to the same weights.
func TestRewardModelOnly(t *testing.T) {
	l := newLab(t)
	file := ratedFile(t, 1)
	sets := append(onlyTuned(), "eval.final.suites=[]")
	p := rewardRun(l, file, sets...)
	res, q := l.execute(p)
	if got := executedStages(q); got != "prepare init reward_model merge" {
		t.Errorf("stages %s", got)
	}
	run := l.db.RunDir(res.Run.RID)
	if _, err := os.Stat(filepath.Join(run, stage.RewardModelDir, "model.safetensors")); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(run, stage.MergedDir)); err == nil {
		t.Error("there is a folder of a policy that learned nothing")
	}
	if v := l.verify(p, VerifyOptions{Level: LevelFull}); !v.OK {
		t.Errorf("repeating it: %+v", v)
	}
	plain, _ := l.execute(rewardRun(l, pairFile(t, 1), sets...))
	const weights = "reward_model[]/" + stage.RoleScorer
	if a, b := l.outputs(res.Run.ID)[weights], l.outputs(plain.Run.ID)[weights]; a.IsZero() || a == b {
		t.Errorf("weights %s with a margin, %s without", a.Short(), b.Short())
	}
	other := newLab(t)
	good := other.be
	other.be = &breaking{Backend: good, at: 9}
	p = rewardRun(other, file, append(sets, "checkpoint.every_steps=5")...)
	if _, err := other.try(context.Background(), p, &quiet{}); err == nil {
		t.Fatal("the device did not break")
	}
	counted := &breaking{Backend: good, at: 1 << 30}
	other.be = counted
	again, _ := other.execute(p)
	if counted.updates != 20-5 {
		t.Errorf("%d updates after the checkpoint of step 5", counted.updates)
	}
	sameOutputs(t, other.outputs(again.Run.ID), l.outputs(res.Run.ID))
}

// What a pair lacks is found before any work, with its line.
func TestRewardModelErrorsInPlan(t *testing.T) {
	l := newLab(t)
	file := ratedFile(t, 1)
	broken, margin := filepath.Join(t.TempDir(), "broken.jsonl"), filepath.Join(t.TempDir(), "margin.jsonl")
	for path, text := range map[string]string{broken: `{"prompt": "?", "chosen": "a"}`, margin: `{"prompt": "?", "chosen": "a", "rejected": "b", "margin": "much"}`} {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for set, want := range map[string]string{
		"reward_model.max_tokens=0":      file + ":10: an answer with its prompt has 123 tokens, the model has 100 positions; reward_model.max_tokens: 100 leaves such pairs out",
		"reward_model.pairs_per_step=9":  file + " has 8 pairs; 1 left out, as both answers are the same; 1 longer than reward_model.max_tokens left out, and reward_model.pairs_per_step asks for 9",
		"data.chat=none":                 file + ":1: chosen: the run has no chat template",
		"reward_model.source=" + broken:  broken + ":1: no pair: looked for the columns chosen and rejected; rejected is missing",
		"reward_model.source=" + margin:  margin + ":1: field \"margin\": a text, not a number",
		"reward_model.val=" + broken:     broken + ":1: no pair",
		"reward_model.source=gone.jsonl": "no such file",
	} {
		sets := append([]string{"name=x", "task={kind: math, math: {grader: math_dapo}}", "tokenizer.kind=byte", "sft.steps=0",
			"model.arch.max_positions=100", "data={max_prompt_tokens: 64, test: {source: none, size: 0}}", "data.chat=" + chatFile(t), "eval.final.suites=[]",
			"reward_model={steps: 1, pairs_per_step: 4, max_tokens: 60, optim: {lr: 0.01}}", "reward_model.source=" + file}, onlyTuned()...)
		_, err := plan.New(smoke(t, append(sets, set)...), 0, l.be.Class(), l.sources)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", set, err, want)
		}
	}
	for _, key := range []string{"source", "val"} {
		err := RequireFiles(smoke(t, "reward_model={steps: 1, source: nowhere.jsonl, val: nowhere.jsonl, optim: {lr: 0.1}}"))
		if err == nil || !strings.Contains(err.Error(), "reward_model."+key+": nowhere.jsonl cannot be read") {
			t.Errorf("a file that is not there: %v", err)
		}
	}
	_, err := config.Load(config.Input{File: "../../configs/smoke_cpu.yaml", Sets: []string{"reward.kind=trained"}})
	if err == nil || !strings.Contains(err.Error(), "reward.kind is trained, but the run trains no reward model") {
		t.Errorf("no reward model to reward with: %v", err)
	}
}

// rewardStage runs the recipe's stage on a device and returns its result, its use of memory and all outputs.
func rewardStage(t *testing.T, on string, sets ...string) (got map[string]any, use memoryUse, outputs map[string]ident.Digest) {
	t.Helper()
	r := rewardRecipe(t, append(append([]string{"sft.steps=0", "reward.kind=task", "eval.final.suites=[]", "train.steps=0",
		"data.train.source=none", "data.test.source=none", "compute.device=" + on}, sets...), "task={kind: words}")...)
	be, err := device.ForRun(&r.Run, os.Getenv)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(be.Close)
	l := labOn(t, be)
	p, err := plan.New(r, 0, l.be.Class(), l.sources)
	if err != nil {
		t.Fatal(err)
	}
	res, _ := l.execute(p)
	if err := json.Unmarshal(l.stageOf(res.Run.ID, "reward_model").Result, &got); err != nil {
		t.Fatal(err)
	}
	return got, l.memoryOf(res.Run.ID)["reward_model"], l.outputs(res.Run.ID)
}

// The device takes the memory that the plan says, with adapters too, and adapters learn.
func TestRewardModelMemory(t *testing.T) {
	for _, sets := range [][]string{{"reward_model.steps=10"}, {"compute={micro_batch_tokens: 100, recompute: true}", "model.dtype=bf16", "reward_model.steps=5"},
		{"reward_model={lora: {rank: 8, alpha: 32}, optim: {lr: 0.01}}"}, {"reward_model.lora={rank: 2, targets: [q_proj, down_proj]}", "model.dtype=bf16", "reward_model.steps=5"}} {
		got, use, _ := rewardStage(t, "cpu", sets...)
		if held, _ := got["rm/val_accuracy"].(float64); strings.Contains(sets[0], "rank: 8") && held < 0.8 {
			t.Errorf("%q: accuracy %v on held-out pairs", sets, held)
		}
		t.Logf("%q: peak %d, planned %d", sets, use.Peak, use.Planned)
		if p, planned := float64(use.Peak), float64(use.Planned); !(p > 0 && p <= 1.05*planned && planned <= 1.2*p) {
			t.Errorf("%q: peak %d, planned %d: %.3f times", sets, use.Peak, use.Planned, p/planned)
		}
	}
}

// On the fake driver (make cuda) it has the CPU's bits, in the memory that its plan says.
func TestRewardModelOnCUDA(t *testing.T) {
	if _, ok := os.LookupEnv("FAKECUDA"); !ok {
		t.Skip("needs the fake driver: make cuda")
	}
	for _, sets := range [][]string{{"compute.recompute=true"}, {"model.dtype=bf16", "compute.numerics=matrix/16x25"}, {"reward_model.lora.rank=4"}} {
		sets = append(sets, "reward_model.steps=3")
		_, _, want := rewardStage(t, "cpu", sets...)
		_, use, got := rewardStage(t, device.CUDA, sets...)
		if len(want) < 5 || !maps.Equal(got, want) {
			t.Errorf("%q: on the GPU %v, on the CPU %v", sets, got, want)
		}
		t.Logf("%q: peak %d, planned %d", sets, use.Peak, use.Planned)
		if p, planned := float64(use.Peak), float64(use.Planned); !(p > 0 && p <= 1.02*planned && planned <= 1.2*p) {
			t.Errorf("%q: peak %d, planned %d: %.3f times", sets, use.Peak, use.Planned, p/planned)
		}
	}
}
