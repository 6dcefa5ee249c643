package compare

import (
	"cmp"
	"slices"
	"strings"

	"exp/harness/config"
)

// protocolKeys is the prefix of the keys of the final evaluation's protocol.
const protocolKeys = "eval.final."

// checkKeys refuses options that match no key.
func (c *comparison) checkKeys() error {
	for _, glob := range c.o.Vary {
		if !slices.ContainsFunc(config.Keys(), func(k *config.Key) bool { return matches(glob, k.Path) }) &&
			!special(glob) {
			return &OptionError{Option: "vary", Value: glob, Problem: "matches no key",
				Advice: "a key or a block, such as algo or train.optim.lr; exp config schema lists them"}
		}
	}
	for _, key := range c.o.Allow {
		if _, ok := config.Lookup(key); !ok && !special(key) {
			return &OptionError{Option: "allow", Value: key, Problem: "is not a key",
				Advice: "a waiver takes one key, as named in the refusal"}
		}
	}
	return nil
}

// special reports whether a key is one of Difference's that is not in configurations.
func special(key string) bool {
	first, rest, _ := strings.Cut(key, ".")
	switch first {
	case "code", "weights", "suite":
		return true
	case "data":
		return rest == "" || strings.HasPrefix(rest, "problems/")
	}
	return key == "tokenizer" || slices.ContainsFunc(outsiders(), func(o outsider) bool { return o.key == key })
}

func matches(glob, key string) bool {
	return config.ClassOf(&config.Key{Path: key}, []string{glob}) == config.Treatment
}

// compareSettings collects the differences and refuses the ones that are not allowed.
func (c *comparison) compareSettings() error {
	d := &differences{comparison: c, vary: c.commonVary()}
	d.settings()
	d.protocol()
	d.sources()
	d.inputs()
	d.machines()
	d.waive()

	order := []Class{Protocol, Controlled, Flagged, Treatment}
	slices.SortStableFunc(d.list, func(a, b Difference) int {
		return cmp.Compare(slices.Index(order, a.Class), slices.Index(order, b.Class))
	})
	out := &c.result.Comparability
	*out = Comparability{OK: true, Differences: d.list, Vary: d.vary, Allow: []string{}, Excluded: c.excluded()}
	for i := range d.list {
		diff := &d.list[i]
		if diff.Waived {
			out.Allow = append(out.Allow, diff.Key)
		}
		if diff.Refused() {
			out.OK = false
		}
		if diff.Class == Treatment {
			for a := range c.arms {
				c.result.Arms[a].Treatment[diff.Key] = diff.Values[a]
			}
		}
	}
	if !out.OK {
		return &NotComparableError{Arms: c.result.Arms, Comparability: *out}
	}
	return nil
}

// excluded lists the runs that do not count.
func (c *comparison) excluded() []Excluded {
	list := []Excluded{}
	for _, s := range c.arms {
		list = append(list, s.excluded...)
	}
	return list
}

// commonVary returns the globs of keys that may vary: those in every run's compare.vary,
// and the options'.
func (c *comparison) commonVary() []string {
	vary := slices.Clone(c.arms[0].runs[0].vary)
	c.records(func(_ int, r *record) {
		vary = slices.DeleteFunc(vary, func(glob string) bool { return !slices.Contains(r.vary, glob) })
	})
	for _, glob := range c.o.Vary {
		if !slices.Contains(vary, glob) {
			vary = append(vary, glob)
		}
	}
	if vary == nil {
		vary = []string{}
	}
	return vary
}

// differences collects differences.
type differences struct {
	*comparison
	vary []string
	list []Difference
}

// add records a value that differs.
func (d *differences) add(key string, class Class, value func(r *record) string) {
	var all []string
	diff := Difference{Key: key, Class: class}
	for _, s := range d.arms {
		var own []string
		for _, r := range s.runs {
			own = append(own, value(r))
		}
		slices.Sort(own)
		own = slices.Compact(own)
		diff.Within = diff.Within || len(own) > 1
		diff.Values = append(diff.Values, strings.Join(own, valueSep))
		all = append(all, own...)
	}
	slices.Sort(all)
	if len(slices.Compact(all)) > 1 {
		d.list = append(d.list, diff)
	}
}

// valueSep separates the values of one arm.
const valueSep = " | "

// Text formats an arm's value for display, with digests cut to 8 digits. One of several that is absent, as where a
// key has no effect, is a dash; an absent value alone is "".
func (d *Difference) Text(arm int) string {
	parts := strings.Split(d.Values[arm], valueSep)
	for i, p := range parts {
		if p == "" && len(parts) > 1 {
			parts[i] = "–"
		}
		if len(p) == 64 && strings.Trim(p, "0123456789abcdef") == "" {
			parts[i] = p[:8]
		}
	}
	return strings.Join(parts, valueSep)
}

// classed returns the class of a difference, Treatment if the key may vary.
func (d *differences) classed(key string, class Class) Class {
	if slices.ContainsFunc(d.vary, func(glob string) bool { return matches(glob, key) }) {
		return Treatment
	}
	return class
}

// settings compares the configurations except the protocol.
func (d *differences) settings() {
	known := map[string]bool{}
	for _, k := range config.Keys() {
		known[k.Path] = true
		// Paths of files may differ: their contents are compared instead.
		if k.Role != config.Semantic || strings.HasPrefix(k.Path, protocolKeys) {
			continue
		}
		d.add(k.Path, d.classed(k.Path, Controlled), func(r *record) string { return r.config[k.Path] })
	}
	var foreign []string
	d.records(func(_ int, r *record) {
		for path := range r.config {
			if !known[path] && !slices.Contains(foreign, path) {
				foreign = append(foreign, path)
			}
		}
	})
	slices.Sort(foreign)
	for _, path := range foreign {
		d.add(path, d.classed(path, Controlled), func(r *record) string { return r.config[path] })
	}
}

// protocol compares how the suites were scored, by the settings of the evaluations: they
// may differ from the run's configuration.
func (d *differences) protocol() {
	for _, k := range config.Keys() {
		if scoring(k.Path) && k.Role == config.Semantic {
			for _, m := range d.suites {
				n := len(d.list)
				d.add(k.Path, d.classed(k.Path, Protocol), func(r *record) string { return m.of[r].settings[k.Path] })
				if len(d.list) > n {
					break // once is enough
				}
			}
		}
	}
	for _, m := range d.suites {
		d.add("suite."+m.name, Protocol, func(r *record) string { return m.of[r].digest.String() })
		d.add("suite."+m.name+".examples", Protocol, func(r *record) string { return m.of[r].examples })
		d.add("suite."+m.name+".reward", Protocol, func(r *record) string { return m.of[r].reward })
	}
	for i, kind := range config.StagesOf(config.Evaluating) {
		for _, m := range d.suites {
			n := len(d.list)
			d.code(kind, Protocol, func(r *record) string { return m.of[r].code[i].String() })
			if len(d.list) > n {
				break
			}
		}
	}
}

// sources compares the code of all stages up to the trained model. That only some runs choose problems by their pass
// rates counts as treatment if the treatment says so.
func (d *differences) sources() {
	for _, kind := range config.RunStages() {
		class := Controlled
		if (kind == config.PassRate || kind == config.Select) && d.partly(kind) {
			class = d.follows(config.PassRate, config.Select, config.Prepare)
		}
		d.code(kind, class, func(r *record) string {
			s, ok := r.stages[stageKey(string(kind), "")]
			if !ok || s.Code.IsZero() {
				return ""
			}
			return s.Code.String()
		})
	}
}

// partly reports whether some runs have a stage of a kind and others have none.
func (d *differences) partly(kind config.Stage) bool {
	with, without := 0, 0
	d.records(func(_ int, r *record) {
		if _, ok := r.stages[stageKey(string(kind), "")]; ok {
			with++
		} else {
			without++
		}
	})
	return with > 0 && without > 0
}

// follows returns the class of a difference in what these stages make: treatment if the treatment changes one of them.
func (d *differences) follows(stages ...config.Stage) Class {
	for i := range d.list {
		k, ok := config.Lookup(d.list[i].Key)
		if ok && d.list[i].Class == Treatment && k.Reads(stages...) {
			return Treatment
		}
	}
	return Controlled
}

// chosen lists the stages that training problems depend on: with measured pass rates, also on the weights.
func (d *differences) chosen() []config.Stage {
	list, measured := []config.Stage{config.Prepare, config.Select}, false
	d.records(func(_ int, r *record) {
		_, ok := r.stages[stageKey(string(config.PassRate), "")]
		measured = measured || ok
	})
	if measured {
		list = append(list, config.PassRate, config.Init, config.SFT, config.RewardModel, config.Prefer)
	}
	return list
}

func (d *differences) code(kind config.Stage, class Class, digest func(r *record) string) {
	key := "code." + string(kind)
	d.add(key, d.classed(key, class), digest)
}

// inputs compares the inputs of training. A difference counts as treatment if the
// treatment changes an earlier stage.
func (d *differences) inputs() {
	input := func(role string) func(r *record) string {
		return func(r *record) string {
			for _, in := range r.stages[stageKey(string(config.Train), "")].Inputs {
				if in.Role == role {
					return in.Digest.String()
				}
			}
			return ""
		}
	}
	d.add("data.problems/train", d.classed("data.problems/train", d.follows(d.chosen()...)), input("problems/train"))
	starts := d.follows(config.Prepare, config.Init, config.SFT, config.Prefer)
	d.add("weights.start", d.classed("weights.start", starts), input("weights"))
	d.add("tokenizer", d.classed("tokenizer", d.follows(config.Prepare, config.Init)), input("tokenizer"))
	d.add("chat template", d.classed("data.chat", d.follows(config.Init)), input("chat template"))
	d.add("tools", d.classed("data.tools", d.follows(config.Init)), input("tools"))
	d.add("stop ids", d.classed("rollout.stop_ids", d.follows(config.Init)), input("stop ids"))
	for _, o := range outsiders() {
		d.add(o.key, d.classed(o.key, o.class), input(o.role))
	}
}

// outsider is an input of training from outside the store. Its key is the configuration's that names the
// files, or, where the configuration holds the command itself, one for the program's contents.
type outsider struct {
	key, role string
	class     Class
}

// outsiders lists them: without them, runs with another teacher or another reward program behind equal
// settings would pass as equal.
func outsiders() []outsider {
	return []outsider{
		{"algo.reference", "teacher", Controlled},
		{"algo.teachers", "teachers", Controlled},
		{"algo.prime.model", "process", Controlled},
		{"rollout.recorded", "rollouts", Controlled},
		{"reward.files", "reward/files", Controlled},
		{"reward.judge.template", "reward/template", Controlled},
		{"reward.weights", "reward/model", Controlled},
		{"reward_model", "reward model", Controlled},
		{"reward.program", "reward/command", Controlled},
		{"reward.template", "reward/chat template", Controlled},
		{"rollout.tools.files", "tool/files", Controlled},
		{"rollout.tools.program", "tool/command", Controlled},
		{"rollout.tools.python", "tool/python", Flagged}, // its version, which machines differ in
	}
}

// machines flags runs of several numerics classes; they may be compared.
func (d *differences) machines() {
	d.add("numerics", Flagged, func(r *record) string { return r.run.Numerics })
}

// waive applies the waivers and notes those without effect.
func (d *differences) waive() {
	for _, key := range d.o.Allow {
		used := false
		for i := range d.list {
			diff := &d.list[i]
			if diff.Key == key && (diff.Class == Controlled || diff.Class == Protocol || diff.Within) {
				diff.Waived, used = true, true
			}
		}
		if !used {
			d.note("waiver without effect: %s does not differ", key)
		}
	}
}
