package translate

import (
	"math"
	"strings"
)

// rate translates the optimizer's learning rate. Megatron counts iterations or completions, we steps.
func (m *megatron) rate() {
	const optim = "train.optim."
	if name := m.text("optimizer", "adam"); name != "adam" {
		m.note("--optimizer %s: AdamW is the optimizer here", name)
	}
	if m.number("weight-decay", 0.01) > 0 {
		m.note("--weight-decay: Megatron leaves biases and norms out; train.optim.weight_decay is for all parameters")
	}
	peak, least := m.number("lr", 0), m.number("min-lr", 0)
	if peak <= 0 {
		m.note("--lr is not given: set train.optim.lr")
	} else {
		m.putNumber(optim+"lr", peak)
	}
	style, ratio := m.text("lr-decay-style", "linear"), 0.0
	if peak > 0 {
		ratio = min(1, least/peak)
	}
	over := m.length("lr-decay-iters", "lr-decay-samples", m.iterations())
	switch {
	case style == "constant" || ratio == 1:
	case style == "cosine" || style == "WSD" || style == "linear":
		m.put(optim+"schedule", strings.ToLower(style))
		m.putNumber(optim+"min_lr_ratio", ratio)
		if all := m.iterations(); over > 0 && over != all {
			m.note("--lr-decay-…: Megatron's rate falls over %g of its %g iterations; here over all steps", over, all)
		}
	case over > 0:
		m.note("--lr-decay-style %s is not offered: Megatron's rate falls to %g over %g iterations; here it is "+
			"constant", style, least, over)
	default:
		m.note("--lr-decay-style %s is not offered: the rate is constant", style)
	}
	warm := m.length("lr-warmup-iters", "lr-warmup-samples", 0)
	if share := m.number("lr-warmup-fraction", 0); share > 0 {
		warm = share * over
	}
	m.putNumber(optim+"warmup_steps", math.Ceil(warm/m.updates()))
	if first := m.number("lr-warmup-init", 0); first > 0 && warm > 0 {
		m.note("--lr-warmup-init %g: the warm-up starts at 0", first)
	}
}

// length returns a number of iterations that one argument gives, or another one in completions.
func (m *megatron) length(iterations, samples string, absent float64) float64 {
	if n := m.number(iterations, 0); n > 0 {
		m.used[samples] = true
		return n
	}
	if n := m.number(samples, 0); n > 0 {
		return n / m.number("global-batch-size", m.samples())
	}
	return absent
}

// iterations returns the updates of the whole run; 0 if they are not given.
func (m *megatron) iterations() float64 {
	return math.Floor(m.length("train-iters", "train-samples", 0))
}

// steps puts the length of the run and what happens every so many steps.
func (m *megatron) steps() {
	updates := m.updates()
	if all := m.iterations(); all > 0 {
		m.putNumber("train.steps", max(1, math.Floor(all/updates)))
	} else {
		m.note("neither --train-iters nor --train-samples is given: set train.steps")
	}
	if save := m.number("save-interval", 0); save > 0 {
		m.putNumber("checkpoint.every_steps", math.Ceil(save/updates))
	}
	every, problems := m.number("eval-interval", 0), m.number("rl-prompts-per-eval", 32)
	if every > 0 && m.out["data.val.source"] != "none" {
		m.putNumber("eval.online.every_steps", math.Ceil(every/updates))
		m.putNumber("eval.online.problems", problems)
		m.put("eval.online.temperature", m.out["rollout.temperature"])
	}
	if seed := m.text("seed", ""); seed != "" {
		m.note("--seed %s: seeds are given to exp run, --seeds %s", seed, seed)
	}
}
