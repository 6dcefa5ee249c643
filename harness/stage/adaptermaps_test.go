package stage

import (
	"slices"
	"testing"

	"exp/harness/config"
	"exp/train/model"
)

// Adapters are on the maps that targets name and exclude does not.
func TestAdaptedBy(t *testing.T) {
	arch := model.Config{Layers: 1, Width: 8, Heads: 2, KVHeads: 1, Head: 4, FFN: 16, Vocab: 9}
	for _, tt := range []struct{ targets, exclude, want []string }{
		{[]string{"all"}, nil, []string{"q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"}},
		{[]string{"all"}, []string{"down_proj", "q_proj"}, []string{"k_proj", "v_proj", "o_proj", "gate_proj", "up_proj"}},
		{[]string{"v_proj", "q_proj"}, nil, []string{"v_proj", "q_proj"}},
		{[]string{"v_proj", "q_proj"}, []string{"q_proj", "k_proj"}, []string{"v_proj"}},
		{[]string{"v_proj"}, []string{"v_proj"}, nil},
	} {
		l := config.LoRA{Rank: 4, Alpha: 8, Targets: tt.targets, Exclude: tt.exclude, RankStabilized: true}
		a := adaptedBy(l, model.Heads{LM: true}, arch).Adapters
		if !slices.Equal(a.Targets, tt.want) || a.Scale() != 4 {
			t.Errorf("%v but %v: %v multiplied by %v, want %v by 4", tt.targets, tt.exclude, a.Targets, a.Scale(), tt.want)
		}
	}
}

// B learns faster in each stage by its own adapters' ratio; the critic and a process reward model by the policy's.
func TestRatioOfB(t *testing.T) {
	c := &load(t, "ppo_7b_math.yaml").Run
	c.Train.LoRA.BRatio, c.Prefer.LoRA.BRatio, c.RewardModel.LoRA.BRatio = 2, 3, 4
	c.Prefer.Optim, c.RewardModel.Optim = c.Train.Optim, c.Train.Optim
	prefer, unpaired, critic := *c, *c, TrainConfig(c)
	prefer.Prefer.Loss, unpaired.Prefer.Loss = "sigmoid", "kto"
	prime := load(t, "countdown_cpu_prime.yaml").Run
	prime.Train.LoRA.BRatio = 2
	for name, x := range map[string][2]float64{
		"policy": {PolicyOptim(config.Train, c).BRatio, 2}, "critic": {critic.Critic.BRatio, 2},
		"policy's updates": {critic.Policy.BRatio, 2}, "process": {TrainConfig(&prime).Process.BRatio, 2},
		"prefer": {PreferConfig(&prefer).Optim.BRatio, 3}, "unpaired": {UnpairedConfig(&unpaired).Optim.BRatio, 3},
		"prefer, planned": {PolicyOptim(config.Prefer, c).BRatio, 3},
		"pairs":           {RewardModelConfig(c).Optim.BRatio, 4}, "steps": {StepModelConfig(c).Optim.BRatio, 4},
		"rewards, planned": {PolicyOptim(config.RewardModel, c).BRatio, 4},
	} {
		if x[0] != x[1] {
			t.Errorf("%s: %v, want %v", name, x[0], x[1])
		}
	}
}
