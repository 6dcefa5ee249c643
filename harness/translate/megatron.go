package translate

import (
	"cmp"
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"exp/experiments/spelling"
)

// megatron translates arguments of Megatron-LM's RL trainer, train_rl.py. A missing one has the default of
// Megatron-LM's d98e8a64dd.
type megatron struct {
	draft
	args   map[string]argument // by name, without --
	used   map[string]bool
	places places
}

// argument is the value of an argument, "" if it has none, and the variables that it needs and nobody sets.
type argument struct {
	text  string
	unset []string
}

// megatronRules are arguments that mean the same under another name: Megatron's, its default, ours.
func megatronRules() [][3]string {
	return [][3]string{
		{"grpo-prompts-per-step", "32", "train.prompts_per_step"},
		{"grpo-group-size", "2", "rollout.n"},
		{"grpo-iterations", "2", "algo.epochs"},
		{"grpo-clamp-eps-lower", "0.01", "algo.clip.low"},
		{"grpo-clamp-eps-upper", "0.01", "algo.clip.high"},
		{"grpo-kl-beta", "0.001", "algo.kl.loss_coef"},
		{"grpo-entropy-term-weight", "0.0", "algo.entropy_coef"},
		{"adam-beta1", "0.9", "train.optim.beta1"},
		{"adam-beta2", "0.999", "train.optim.beta2"},
		{"adam-eps", "1e-8", "train.optim.eps"},
		{"clip-grad", "1.0", "train.optim.grad_clip"},
		{"weight-decay", "0.01", "train.optim.weight_decay"},
	}
}

// fromMegatron writes the recipe of arguments. whole says that they are all: a script may set some for others.
func fromMegatron(file string, words []word, whole bool, places places) (*Recipe, error) {
	m := &megatron{draft: draft{out: map[string]string{}}, used: map[string]bool{}, places: places}
	m.read(words)
	if err := m.check(file); err != nil {
		return nil, err
	}
	for _, r := range megatronRules() {
		value := m.text(r[0], r[1])
		if _, err := strconv.ParseFloat(value, 64); err != nil {
			m.note("--%s is %q, not a number", r[0], value)
			value = r[1]
		}
		m.put(r[2], value)
	}
	m.put("algo.kind", "megatron_grpo")
	m.putText("name", cmp.Or(slugged(m.args["wandb-exp-name"].text), slugged(base(file)), "megatron"))
	m.model()
	m.environments()
	m.lengths()
	m.batch(whole)
	m.sampling()
	m.loss()
	m.rate()
	m.steps()
	notes := slices.Concat(m.lacking(), m.notes, m.rest())
	return newRecipe(file+" of Megatron-LM", m.out, notes), nil
}

// base returns a file's name without its extension, or its folder's: all tests of Megatron's have one name.
func base(file string) string {
	name := strings.TrimSuffix(filepath.Base(file), filepath.Ext(file))
	if abs, err := filepath.Abs(file); err == nil && name == "model_config" {
		return filepath.Base(filepath.Dir(abs))
	}
	return name
}

// read takes words over: a name, and the words up to the next one.
func (m *megatron) read(words []word) {
	m.args = map[string]argument{}
	name := ""
	for _, w := range words {
		text, names := unset(w.text)
		names = append(names, w.unset...)
		if isArgument(text) {
			key, value, _ := strings.Cut(text[2:], "=")
			name = key
			delete(m.args, strings.TrimPrefix(name, "no-"))
			delete(m.args, "no-"+name)
			m.args[name] = argument{value, names}
			continue
		}
		if name != "" {
			a := m.args[name]
			m.args[name] = argument{strings.TrimSpace(a.text + " " + text), append(a.unset, names...)}
		}
	}
}

// translatedArgs are the arguments that code here reads, besides megatronRules.
const translatedArgs = ` perform-rl-step langrl-env-config grpo-filter-groups-with-same-reward rl-default-temperature
	rl-default-top-p rl-default-top-k rl-partial-rollouts rl-generation-lag rl-max-inflight-requests
	rl-submission-granularity rl-consumption-granularity rl-inference-logprobs-is-correction
	rl-importance-sampling-truncation-coef rl-use-sequence-packing rl-prompts-per-eval seq-length
	inference-max-seq-length global-batch-size micro-batch-size calculate-per-token-loss lr min-lr lr-decay-style
	lr-decay-iters lr-decay-samples lr-warmup-fraction lr-warmup-init lr-warmup-iters lr-warmup-samples optimizer
	train-iters train-samples save-interval eval-interval seed bf16 fp16 recompute-activations
	recompute-granularity load pretrained-checkpoint tokenizer-model hidden-dropout attention-dropout
	use-checkpoint-args wandb-exp-name `

// launcherArgs are torchrun's arguments, which stand before the trainer's.
const launcherArgs = ` nproc-per-node nnodes node-rank master-addr master-port rdzv-id rdzv-backend rdzv-endpoint `

// check refuses names that are none of Megatron's.
func (m *megatron) check(file string) error {
	names := strings.Fields(translatedArgs)
	for _, r := range megatronRules() {
		names = append(names, r[0])
	}
	var wrong []string
	for _, name := range slices.Sorted(maps.Keys(m.args)) {
		plain := strings.ReplaceAll(strings.TrimPrefix(name, "no-"), "_", "-")
		if kind, _ := kindOf(name); kind != "" || slices.Contains(names, strings.TrimPrefix(name, "no-")) ||
			slices.Contains(strings.Fields(launcherArgs), plain) {
			continue
		}
		hint := ""
		if near := spelling.Nearest(name, names); near != "" {
			hint = fmt.Sprintf(" (did you mean --%s?)", near)
		}
		wrong = append(wrong, "--"+name+hint)
	}
	if len(wrong) > 0 {
		return fmt.Errorf("%s has arguments that Megatron-LM's train_rl.py does not: %s; remove them", file,
			strings.Join(wrong, ", "))
	}
	return nil
}

// text returns an argument's value, or absent.
func (m *megatron) text(name, absent string) string {
	first := !m.used[name]
	m.used[name] = true
	a, ok := m.args[name]
	switch {
	case !ok || a.text == "" && len(a.unset) > 0:
		return absent
	case a.text == "" && first:
		m.note("--%s has no value: Megatron's default, %s, stands for it", name, cmp.Or(absent, "none"))
	case computed.MatchString(a.text):
		if first {
			m.note("--%s is %s: only a shell can compute it", name, a.text)
		}
		return absent
	}
	return cmp.Or(a.text, absent)
}

// on reports whether a flag is set.
func (m *megatron) on(name string) bool {
	m.used[name], m.used["no-"+name] = true, true
	a, ok := m.args[name]
	return ok && !strings.EqualFold(a.text, "false")
}

// number returns an argument that is a number; another is noted and counts as absent.
func (m *megatron) number(name string, absent float64) float64 {
	first := !m.used[name]
	text := m.text(name, strconv.FormatFloat(absent, 'g', -1, 64))
	v, err := strconv.ParseFloat(strings.ReplaceAll(text, "_", ""), 64)
	if err != nil {
		if first {
			m.note("--%s is %q, not a number", name, text)
		}
		return absent
	}
	return v
}

// lacking notes the variables of the script that a translated argument needs.
func (m *megatron) lacking() []string {
	needed := map[string][]string{}
	for _, name := range slices.Sorted(maps.Keys(m.args)) {
		for _, variable := range m.args[name].unset {
			if m.used[name] {
				needed[variable] = append(needed[variable], "--"+name)
			}
		}
	}
	return missing(needed)
}

// rest notes the arguments that nothing here has translated, a line for each kind.
func (m *megatron) rest() (notes []string) {
	kinds := map[string][]string{}
	for _, name := range slices.Sorted(maps.Keys(m.args)) {
		kind, why := kindOf(name)
		a := m.args[name]
		off := strings.HasPrefix(name, "no-") || strings.EqualFold(a.text, "false") || zero.MatchString(a.text)
		switch {
		case m.used[name] || kind == "":
		case kind == "refused" && !off:
			notes = append(notes, strings.TrimSpace("not offered: --"+name+" "+a.text)+": "+why)
		case kind == "refused":
			kinds["computing"] = append(kinds["computing"], "--"+name)
		default:
			kinds[kind] = append(kinds[kind], "--"+name)
		}
	}
	for _, x := range [][2]string{{"shape", "the model's own files say what these do"},
		{"pretraining", "without meaning here, about other data and losses than RL's"},
		{"computing", "without meaning here, about where and how fast to compute and what to write"}} {
		if list := kinds[x[0]]; len(list) > 0 {
			notes = append(notes, x[1]+": "+strings.Join(list, " "))
		}
	}
	return notes
}

var zero = regexp.MustCompile(`^-?0*\.?0+$`)

func slugged(name string) string {
	if name == "" {
		return ""
	}
	return slug(name)
}
