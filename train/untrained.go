package train

import (
	"math"
	"slices"

	"exp/train/rl"
	"exp/train/rollout"
)

// Tokens that a step samples and does not train on. Their rewards count in the advantages of others.

// maskTruncated takes completions that the token limit cut off out of the mask (DAPO's overlong filtering,
// arXiv:2503.14476 §3.4): whether they would have become right is unknown.
func (t *Trainer) maskTruncated(b *batch) {
	if !t.cfg.MaskTruncated {
		return
	}
	for i, tr := range b.traj {
		if tr.Completion.Finish == rollout.FinishLength {
			clear(b.mask[b.rows[i]:b.rows[i+1]])
		}
	}
}

// masking names what takes tokens out of the mask.
func (c Config) masking() string {
	switch {
	case !c.MaskTruncated:
		return "rollout correction"
	case len(c.Correction.Reject) == 0:
		return "algo.mask_truncated"
	}
	return "rollout correction with algo.mask_truncated"
}

// keepEntropic leaves in the policy loss only the share Config.TopEntropy of the step's tokens at which the old policy
// was least certain (arXiv:2506.01939 eq. 5), by weights of 0 for the others: denominators count them, and a KL
// term and the critic learn from them. Demonstrations, whose term reads no weights, take no part. It returns the
// entropy from which tokens stay.
func (t *Trainer) keepEntropic(b *batch) []rl.Metric {
	share := t.cfg.TopEntropy
	if share == 0 || share == 1 {
		return nil
	}
	entropy := b.entropies()
	var known []float64
	_, own := b.shown()
	for i, on := range own {
		if on {
			known = append(known, float64(entropy[i]))
		}
	}
	if len(known) == 0 {
		return nil
	}
	least := quantile(known, 1-share)
	if b.weight == nil {
		b.weight = make([]float32, len(b.mask))
		for i := range b.weight {
			b.weight[i] = 1
		}
	}
	for i := range b.weight {
		if float64(entropy[i]) < least {
			b.weight[i] = 0
		}
	}
	return []rl.Metric{{Name: "actor/entropy_threshold", Value: least}}
}

// quantile sorts x, which is not empty, and returns its quantile, with linear interpolation as numpy's default.
func quantile(x []float64, q float64) float64 {
	slices.Sort(x)
	at := float64(q * float64(len(x)-1))
	lo := int(math.Floor(at))
	hi := min(lo+1, len(x)-1)
	return x[lo] + float64((at-float64(lo))*(x[hi]-x[lo]))
}

// entropies returns the entropies of the policy before the step, [N].
func (b *batch) entropies() []float32 {
	if b.entropy != nil {
		return b.entropy
	}
	list := make([]float32, 0, len(b.mask))
	for _, tr := range b.traj {
		list = append(list, tr.Completion.Entropies...)
	}
	return list
}
