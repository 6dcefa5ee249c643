package train

import (
	"encoding/json"
	"math"
	"os"
	"testing"

	"exp/train/rl"
	"exp/train/rollout"
)

// goldenFlow is a batch of four problems with three completions each and what verl's trainer makes of it:
// it charges the KL to the reward, rejects tokens, then estimates advantages with gamma 0.9 and lambda 0.8.
type goldenFlow struct {
	Reward, Greedy []float64
	Roll, Old, Ref [][]float32
	Value          [][]float32
	KL, Coef       float64   // the mean KL; the controller's coefficient afterwards
	TokenRewards   []float32 `json:"token_rewards"`
	Weight         []float32
	Kept           []int
	Advantages     map[string]struct{ Adv, Ret []float32 }
}

// batch lays out the completions, with the penalty of DAPO over the last three of six tokens. Only ReMax
// has baselines.
func (f *goldenFlow) batch(greedy bool) *batch {
	problems := make([]rollout.Problem, len(f.Greedy))
	baselines := map[*rollout.Problem]float64{}
	var all []Trajectory
	for i, lp := range f.Roll {
		p := &problems[i/3]
		baselines[p] = f.Greedy[i/3]
		all = append(all, Trajectory{Problem: p, Sample: i % 3,
			Completion: &rollout.Completion{Tokens: make([]int32, len(lp)), LogProbs: lp},
			Verdict:    rollout.Verdict{Status: rollout.Graded, Reward: f.Reward[i]}})
	}
	if !greedy {
		baselines = nil
	}
	b := newBatch(all, rl.Overlong{MaxResponse: 6, Buffer: 3, Penalty: 0.5}, baselines)
	b.old = nil
	for i := range f.Old {
		b.old, b.ref, b.value = append(b.old, f.Old[i]...), append(b.ref, f.Ref[i]...), append(b.value, f.Value[i]...)
	}
	return b
}

// A step turns verdicts into advantages in the order of verl's fit.
func TestGoldenFlow(t *testing.T) {
	text, err := os.ReadFile("testdata/flow.json")
	if err != nil {
		t.Fatal(err)
	}
	var f goldenFlow
	if err := json.Unmarshal(text, &f); err != nil {
		t.Fatal(err)
	}
	near := func(t *testing.T, what string, got, want []float32, on []bool) {
		t.Helper()
		if len(got) != len(want) {
			t.Fatalf("%s has %d numbers, want %d", what, len(got), len(want))
		}
		for i := range got {
			if on[i] && math.Abs(float64(got[i]-want[i])) > 2e-6*(1+math.Abs(float64(want[i]))) {
				t.Errorf("%s[%d] = %v, want %v", what, i, got[i], want[i])
			}
		}
	}
	for name, want := range f.Advantages {
		t.Run(name, func(t *testing.T) {
			reject, err := rl.ParseRejections("token_k1,seq_mean_k3", "0.6_1.8,0.2")
			if err != nil {
				t.Fatal(err)
			}
			settings := with(with(rl.Defaults(name, "ppo"), "gamma", 0.9), "lambda", 0.8)
			tr := &Trainer{klCoef: 0.2, cfg: Config{Advantage: name, Loss: "ppo", Samples: 3, Settings: settings,
				KL:         KL{RewardCoef: 0.2, RewardEstimator: rl.KL{Kind: rl.KLK1}, Control: rl.KLControl{Adaptive: true, Target: 0.1, Horizon: 100}},
				Correction: rl.Correction{Weights: rl.TokenWeights, High: 1.2, Reject: reject}}}
			b := f.batch(name == "remax")
			all := append([]bool(nil), b.mask...)
			kl := tr.rewardKL(b)
			if got := find(kl, "actor/reward_kl_penalty"); math.Abs(got-f.KL) > 1e-6 || math.Abs(tr.klCoef-f.Coef) > 1e-7 {
				t.Errorf("KL %v, want %v; then the coefficient %v, want %v", got, f.KL, tr.klCoef, f.Coef)
			}
			near(t, "reward", b.reward, f.TokenRewards, all)
			tr.correct(b)
			for i, on := range b.mask {
				if on != (f.Kept[i] == 1) {
					t.Errorf("token %d is kept: %t", i, on)
				}
			}
			near(t, "weight", b.weight, f.Weight, all)
			if _, err := advantages(tr.cfg, b); err != nil {
				t.Fatal(err)
			}
			near(t, "advantage", b.adv, want.Adv, b.mask)
			near(t, "return", b.ret, want.Ret, b.mask)
		})
	}
}
