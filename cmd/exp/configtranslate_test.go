package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A script's files lie where --config-path says, and the recipe plans: only its inputs are missing.
func TestConfigTranslate(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		return path
	}
	environments := filepath.Dir(write("environments/count.yaml", "- {agent_type: CountdownAgent, agent_args: {}, weight: 1.0}\n"))
	write("hydra/mine.yaml", "defaults: [ppo_trainer]\ndata: {train_batch_size: 48}\nactor_rollout_ref: {actor: {ppo_mini_batch_size: 24}}\n")
	megatron := write("scripts/megatron.sh", "torchrun train_rl.py --perform-rl-step --langrl-env-config $ENVS --tokenizer-model none/m "+
		"--lr 1e-6 --train-iters 8 --global-batch-size 64\n")
	verl := write("scripts/verl.sh", "python3 -m verl.trainer.main_ppo --config-path=$HERE/hydra --config-name=mine algorithm.adv_estimator=grpo "+
		"data.train_files=none/t.parquet actor_rollout_ref.model.path=none/m actor_rollout_ref.rollout.n=4 trainer.total_training_steps=5\n")
	maths := write("data/gsm8k/train.jsonl", `{"data_source": "openai/gsm8k", "prompt": [{"role": "user", "content": "6*7?"}], `+
		`"reward_model": {"style": "rule", "ground_truth": "42"}}`+"\n")
	programs := write("data/code/train.jsonl", `{"data_source": "codecontests", "prompt": [{"role": "user", "content": "Echo."}], `+
		`"reward_model": {"style": "rule", "ground_truth": "{\"inputs\": [\"1\"], \"outputs\": [\"1\"]}"}}`+"\n")
	kinds := write("scripts/kinds.sh", "python3 -m verl.trainer.main_ppo algorithm.adv_estimator=grpo "+
		"data.train_files=\"['$MATHS','$PROGRAMS']\" "+
		"data.val_files=$MATHS actor_rollout_ref.model.path=none/m actor_rollout_ref.rollout.n=4 trainer.total_training_steps=5 "+
		"data.train_batch_size=2 actor_rollout_ref.actor.ppo_mini_batch_size=2\n")
	for i, tt := range []struct {
		args []string
		want []string
	}{
		{[]string{megatron, "ENVS=count.yaml", "--config-path", environments}, []string{"kind: megatron_grpo", "steps: 4", "kind: countdown"}},
		{[]string{verl, "--config-path", dir}, []string{"prompts_per_step: 48", "prompts_per_update: 24", "read "}},
		{[]string{kinds, "MATHS=" + maths, "PROGRAMS=" + programs}, []string{"kind: mixed", `"codecontests": code`, `"openai/gsm8k": math`}},
	} {
		out := filepath.Join(dir, fmt.Sprintf("recipe%d.yaml", i))
		exp(t, append([]string{"config", "translate", "--out", out}, tt.args...)...).succeeds(t)
		text, err := os.ReadFile(out)
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range tt.want {
			if !strings.Contains(string(text), want) {
				t.Errorf("%v: it lacks %q:\n%s", tt.args, want, text)
			}
		}
		exp(t, "config", "check", out).succeeds(t)
		if got := exp(t, "run", out, "--dry-run", "--store", filepath.Join(dir, "store")).stdout; !strings.Contains(got, "missing  model.base") {
			t.Errorf("the plan does not name the missing key:\n%s", got)
		}
	}
	exp(t, "config", "translate", write("wrong.sh", "torchrun train_rl.py --grpo-clamp-eps 0.2\n")).refuses(t, 2, "--grpo-clamp-eps")
	exp(t, "config", "translate", write("trl.sh", "accelerate launch grpo.py --num_generations 8\n")).refuses(t, 2, "docs/recipes.md")
	exp(t, "config", "translate", filepath.Join(dir, "none.sh")).refuses(t, 3, "no such file")
}
