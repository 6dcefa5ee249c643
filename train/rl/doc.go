// Package rl is the mathematics of reinforcement learning on token log-probs:
// advantages, losses with their gradients, and statistics, as pure functions on
// slices. Log-probs, masks and rewards come in; advantages, losses and
// dLoss/dlogProb go out. It knows no model, no device, no file and no clock,
// holds no state and imports nothing of ours.
//
// # Shapes
//
//	N  tokens of all rows, one row after another       B  rows (trajectories)
//
// Batches are ragged: a flat array [N] per quantity and offsets Rows [B+1]. A padded (B,T)
// batch is the case of equal rows. Mask [N] is true where the policy sampled the token and
// we train on it. A masked-out element has no effect, whatever it holds: not even NaN
// reaches a loss, a gradient or a statistic; in the peers it does (0·NaN). Functions that
// write to masked-out places say what they write.
//
// # Micro-batches
//
// A loss over a mini-batch is a sum over its tokens with coefficients computed from counts
// of the whole mini-batch (Aggregation), so a mini-batch can be cut into micro-batches of
// whole rows. Losses and statistics accumulate in float64, term by term in index order,
// into a value that the caller carries from one micro-batch to the next: the cut changes no
// bit. The peers average statistics over micro-batches instead.
//
// Losses add to gradients, at unmasked tokens only, so a policy loss, a KL loss and further
// terms of one objective can share a slice. The caller clears it first.
//
// # Which bits
//
// Arrays are float32 or float64; every formula is evaluated in float64 and rounded once
// when stored. Compilers for some processors fuse x*y+z, which changes bits: every product
// here is converted explicitly, which forbids fusing (a test checks the sources). exp and
// log are our own, for the same reason.
//
// # Which functions make which algorithm
//
//	PPO     GAE, Whiten; PPO, ValueLoss; EntropyBonus and KLLoss optional
//	GRPO    GroupAdvantage, Spread; PPO; KLLoss. GRPO has no separate loss:
//	        it is the clipped loss of PPO on group advantages, with the KL
//	        estimator k3 as a further loss term
//	FlowRL  GroupAdvantage, Spread; FlowRL
//	DAPO    GRPO's, Clip with High above Low, TokenMean; Overlong on the score
//
// Other policy losses replace PPO (verl's loss_mode in brackets): Reinforce (gpg), GSPO
// (gspo), SAPO (sapo), CISPO (cispo), DPPO (dppo_tv, dppo_kl), DRO (dro), GMPO (geo_mean),
// GVPO after GVPOMeans (the recipe's gvpo), DPO after DPOPairs (the recipe spin),
// ClipCov after ClipCovTokens (clip_cov), KLCov after KLCovTokens (kl_cov), Bypass
// (bypass_mode). GSPO and SAPO expect coefficients of SeqMeanTokenMean, GMPO and GVPO read
// none. Megatron-LM's GRPO is MegatronAdvantage and MegatronGRPO, which includes the KL
// and entropy terms.
//
// The other advantage estimators replace GroupAdvantage (RLOO, OPO, GPGAdvantage,
// PassKAdvantage), GroupAdvantage and Spread (GDPO, ReinforcePlusPlusBaseline), or, without
// a critic, GAE (ReinforcePlusPlus, ReMax, OptimalTokenBaseline). PF-PPO is PPO on the rows
// that ResamplingWeights and Resample draw. RLPR, VeriFree and JEPO are Likelihood for the
// score, and AnswerTerm next to the policy loss.
// PRIME has PrimeAdvantage, on the ImplicitRewards of a reward model that learns by PrimeLoss.
//
// The reference for formulas is the current verl (verl-project/verl at 1dda039b9,
// verl/trainer/ppo/core_algos.py) and its FlowRL recipe (verl-project/verl-recipe at
// 48ea0a7, flowrl/); the comments of exported names say where ours differs. Wrong lengths
// panic, because they are bugs in the caller.
//
// # Rollout correction
//
// Correct provides a batch's Weight and a mask without rejected tokens. It compares the
// trainer's log-probs with the sampler's: once the old log-probs exist, or, in bypass mode,
// before each loss from the current ones. FlowRL takes weights like every policy loss.
// FlowRLVariants and CorrectionPresets are the published settings by name.
//
// # Adding an algorithm
//
// Add one file here: a function on a Batch that adds to a gradient and to statistics, or
// one that sets advantages; below it the Settings that only it has, and the Estimator or
// PolicyLoss that names it and lists the settings it reads. Add one row to the table
// Algorithms; the loop, the configuration, its checks and its explanation follow from that.
// Add a test of hand-computed or recorded cases; an entry in the objectives or estimators
// of the tests checks gradients, bits under any cut into micro-batches, padding, row order
// and NaN behind the mask. Add one configuration that trains it. TestAlgorithmsTrain of
// harness/stage records the outcome of that training with -update.
package rl
