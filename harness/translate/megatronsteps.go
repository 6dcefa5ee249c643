package translate

import (
	"math"
	"strings"
)

// rate translates the optimizer's learning rate. Megatron counts iterations or completions, we steps.
func (m *megatron) rate() {
	const optim = "train.optim."
	m.optimizer(optim)
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

// optimizer translates the choice of an optimizer and the settings of those that are not Adam.
func (m *megatron) optimizer(optim string) {
	switch name := m.text("optimizer", "adam"); name {
	case "adam":
	case "sgd":
		m.put(optim+"kind", "sgd")
		m.putNumber(optim+"momentum", m.number("sgd-momentum", 0.9))
		if m.number("weight-decay", 0.01) > 0 {
			m.note("--weight-decay: Megatron's sgd adds it to the gradient; here the decay is decoupled")
		}
	case "muon", "dist_muon":
		m.put(optim+"kind", "muon")
		m.muon(optim)
	default:
		m.note("--optimizer %s: adamw, sgd and muon are the optimizers here", name)
	}
}

// muon translates Muon's settings; most are constants here.
func (m *megatron) muon(optim string) {
	if v := m.number("muon-momentum", -1); v >= 0 {
		m.putNumber(optim+"momentum", v)
	} else {
		m.note("--muon-momentum is not given: its default depends on Megatron's version; here it is 0.95")
	}
	nesterov, newer := m.on("muon-use-nesterov"), m.on("muon-nesterov")
	if !nesterov && !newer {
		m.note("--muon-nesterov is not given: muon takes Nesterov's step here")
	}
	mode, factor := m.text("muon-scale-mode", "spectral"), m.number("muon-extra-scale-factor", 1)
	if mode != "spectral" || factor != 0.2 {
		m.note("--muon-scale-mode %s, --muon-extra-scale-factor %g: the scale is spectral with 0.2 here", mode, factor)
	}
	if kind := m.text("muon-coefficient-type", "quintic"); kind != "simple" {
		m.note("--muon-coefficient-type %s: the coefficients here are simple's", kind)
	}
	if n := m.number("muon-num-ns-steps", 5); n != 5 {
		m.note("--muon-num-ns-steps %g: the iteration has 5 steps here", n)
	}
	if m.on("muon-no-split-qkv") {
		m.note("--muon-no-split-qkv: queries, keys and values are orthogonalised apart here")
	}
	m.used["muon-fp32-matmul-prec"], m.used["muon-tp-mode"] = true, true
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
