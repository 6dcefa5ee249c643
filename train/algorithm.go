package train

import (
	"fmt"

	"exp/kernels"
	"exp/train/rl"
)

// An algorithm is an advantage estimator, a policy loss and their settings. The
// loop does not know which ones run: the estimator is chosen by name in
// advantages, the loss in tokenLoss.policy and newLoss, each in one place. The
// mathematics is in package rl, a file each.

// Advantage names an advantage estimator, by verl's name where it has one.
type Advantage string

const (
	AdvScore                     Advantage = "score"                        // the reward itself, on every token
	AdvGAE                       Advantage = "gae"                          // rl.GAE, whitened; needs a critic
	AdvGRPO                      Advantage = "grpo"                         // rl.GroupAdvantage
	AdvGRPOPassK                 Advantage = "grpo_passk"                   // rl.PassKAdvantage
	AdvReinforcePlusPlus         Advantage = "reinforce_plus_plus"          // rl.ReinforcePlusPlus
	AdvReinforcePlusPlusBaseline Advantage = "reinforce_plus_plus_baseline" // rl.ReinforcePlusPlusBaseline
	AdvReMax                     Advantage = "remax"                        // rl.ReMax; one greedy completion per problem
	AdvRLOO                      Advantage = "rloo"                         // rl.RLOO
	AdvOPO                       Advantage = "opo"                          // rl.OPO
	AdvGPG                       Advantage = "gpg"                          // rl.GPGAdvantage
	AdvGDPO                      Advantage = "gdpo"                         // rl.GDPO, of the components of the reward
	AdvOTB                       Advantage = "optimal_token_baseline"       // rl.OptimalTokenBaseline by columns
	AdvTIROTB                    Advantage = "tir_optimal_token_baseline"   // rl.OptimalTokenBaseline
	AdvMegatron                  Advantage = "megatron"                     // rl.MegatronAdvantage
)

func (a Advantage) known() bool {
	switch a {
	case AdvScore, AdvGAE, AdvGRPO, AdvGRPOPassK, AdvReinforcePlusPlus, AdvReinforcePlusPlusBaseline, AdvReMax, AdvRLOO, AdvOPO, AdvGPG, AdvGDPO, AdvOTB, AdvTIROTB, AdvMegatron:
		return true
	}
	return false
}

// Loss names a policy loss.
type Loss string

const (
	LossFlowRL    Loss = "flowrl"    // rl.FlowRL
	LossPPO       Loss = "ppo"       // rl.PPO; verl's vanilla
	LossReinforce Loss = "reinforce" // rl.Reinforce; verl's gpg
	LossGSPO      Loss = "gspo"      // rl.GSPO
	LossSAPO      Loss = "sapo"      // rl.SAPO
	LossGMPO      Loss = "gmpo"      // rl.GMPO; verl's geo_mean
	LossCISPO     Loss = "cispo"     // rl.CISPO
	LossClipCov   Loss = "clip_cov"  // rl.ClipCov
	LossKLCov     Loss = "kl_cov"    // rl.KLCov
	LossDPPOTV    Loss = "dppo_tv"   // rl.DPPO, rl.BinaryTV
	LossDPPOKL    Loss = "dppo_kl"   // rl.DPPO, rl.BinaryKL
	LossDRO       Loss = "dro"       // rl.DRO
	LossMegatron  Loss = "megatron"  // rl.MegatronGRPO, with its KL and entropy terms inside
)

func (l Loss) known() bool {
	switch l {
	case LossFlowRL, LossPPO, LossReinforce, LossGSPO, LossSAPO, LossGMPO, LossCISPO, LossClipCov, LossKLCov, LossDPPOTV, LossDPPOKL, LossDRO, LossMegatron:
		return true
	}
	return false
}

// advantages fills b.adv and b.ret from b.reward, b.value and b.baseline.
func advantages(c Config, b *batch) error {
	perRow := b.rewardSums()
	switch c.Advantage {
	case AdvGAE:
		rl.GAE(b.adv, b.ret, b.reward, b.value, b.mask, b.rows, c.Gamma, c.Lambda)
		return rl.Whiten(b.adv, b.mask, true)
	case AdvReinforcePlusPlus:
		return rl.ReinforcePlusPlus(b.adv, b.ret, b.reward, b.mask, b.rows, c.Gamma)
	case AdvReinforcePlusPlusBaseline:
		err := rl.ReinforcePlusPlusBaseline(b.adv, perRow, b.group, b.mask, b.rows)
		copy(b.ret, b.adv)
		return err
	case AdvReMax:
		rl.ReMax(b.adv, b.ret, b.reward, b.baseline, b.mask, b.rows)
		return nil
	case AdvGDPO:
		err := rl.GDPO(b.adv, b.components(), c.ComponentWeights, b.group, b.mask, b.rows, c.ScaleStd)
		copy(b.ret, b.adv)
		return err
	case AdvOTB, AdvTIROTB:
		c.Baseline.Columns = c.Advantage == AdvOTB
		rl.OptimalTokenBaseline(b.adv, b.ret, b.part(0, len(b.traj), b.old), b.reward, b.sumPiSquared, b.group, c.Baseline)
		return nil
	case AdvGRPO:
		rl.GroupAdvantage(perRow, perRow, b.group, c.ScaleStd)
	case AdvGRPOPassK:
		if err := rl.PassKAdvantage(perRow, perRow, b.group, c.ScaleStd); err != nil {
			return err
		}
	case AdvRLOO:
		rl.RLOO(perRow, perRow, b.group, false)
	case AdvOPO:
		rl.OPO(perRow, perRow, b.group, b.mask, b.rows)
	case AdvGPG:
		rl.GPGAdvantage(perRow, perRow, b.group, 1)
	case AdvMegatron:
		rl.MegatronAdvantage(perRow, perRow, b.group, nil)
	case AdvScore:
	default:
		panic("train: unknown advantage estimator " + string(c.Advantage))
	}
	rl.Spread(b.adv, perRow, b.mask, b.rows)
	copy(b.ret, b.adv)
	return nil
}

// resample draws the rows that PF-PPO trains on, with replacement, by their scores
// (arXiv:2409.06957).
func (t *Trainer) resample(b *batch, step int) {
	if t.cfg.Reweighting == 0 {
		return
	}
	n := len(b.traj)
	weight, uniform, index := make([]float64, n), make([]float64, n), make([]int, n)
	rl.ResamplingWeights(weight, b.score, t.cfg.Reweighting, t.cfg.ReweightPower)
	key := kernels.PhiloxKey(t.Seed(fmt.Sprintf("pf_ppo/step=%d", step)))
	for i := range uniform {
		uniform[i] = float64(philox64(key, i)>>11) / (1 << 53)
	}
	rl.Resample(index, weight, uniform)
	b.pick(index, t.cfg.Samples)
}
