package checkpoint

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// adapterSettings holds the settings of adapter_config.json that affect results.
type adapterSettings struct {
	settings
	base    string
	rank    int
	alpha   float64
	dropout float64
	stable  bool           // use_rslora
	ranks   bool           // rank_pattern is present: the tensors decide the ranks
	alphas  []alphaPattern // of alpha_pattern, in its order
	partial bool           // some maps of a kind may lack an adapter
}

// alphaPattern is an entry of alpha_pattern: the alpha of maps whose names match.
type alphaPattern struct {
	name  *regexp.Regexp
	alpha float64
}

// IsAdapterFolder reports whether dir holds adapters in PEFT's layout and no model. The
// config.json of their model may be in the same folder.
func IsAdapterFolder(dir string) bool {
	has := func(name string) bool {
		_, err := os.Stat(filepath.Join(dir, name))
		return err == nil
	}
	return has(adapterConfigFile) && !(has(configFile) && (has(weightsFile) || has(indexFile)))
}

// AdapterBase returns the folder's name or path for the model that its adapters belong to;
// "" if it gives none.
func AdapterBase(dir string) (string, error) {
	a, err := readAdapterSettings(dir)
	if err != nil {
		return "", err
	}
	return a.base, nil
}

// readAdapterSettings reads adapter_config.json; problems lists unsupported settings.
func readAdapterSettings(dir string) (*adapterSettings, error) {
	path := filepath.Join(dir, adapterConfigFile)
	raw, err := readSmall(path, maxConfig)
	if err != nil {
		return nil, err
	}
	a := &adapterSettings{rank: 8, alpha: 8} // PEFT's defaults
	if err := json.Unmarshal(raw, &a.values); err != nil {
		return nil, corrupt(path, "", "%v", err)
	}
	a.maybe("base_model_name_or_path", &a.base)
	a.get("r", &a.rank)
	a.get("lora_alpha", &a.alpha)
	a.maybe("lora_dropout", &a.dropout)
	a.stable = a.flag("use_rslora", false)
	a.ranks = !a.empty("rank_pattern")
	a.readAlphas()
	var list []string
	plain := json.Unmarshal(a.values["target_modules"], &list) == nil &&
		!slices.ContainsFunc(list, func(s string) bool { return strings.Contains(s, ".") })
	a.partial = !plain || !a.empty("layers_to_transform") || !a.empty("exclude_modules")
	a.refuse()
	switch {
	case a.rank < 1 || a.rank > maxRank:
		a.problem("r is %d, must be from 1 to %d", a.rank, maxRank)
	case !(a.alpha > 0):
		a.problem("lora_alpha is %g, must be positive", a.alpha)
	case !(a.dropout >= 0) || a.dropout >= 1:
		a.problem("lora_dropout is %g, must be at least 0 and below 1", a.dropout)
	}
	return a, nil
}

// maxRank bounds the rank of adapters, as train.lora.rank does.
const maxRank = 4096

// Limits of alpha_pattern, far above one name for each map of any model.
const (
	mostPatterns   = 1 << 14
	longestPattern = 1 << 10
)

// readAlphas reads alpha_pattern. PEFT takes the first name that matches the end of a map's
// name, starting at a dot; names are regular expressions.
func (a *adapterSettings) readAlphas() {
	if a.empty("alpha_pattern") {
		return
	}
	names, values, err := members(a.values["alpha_pattern"])
	if err != nil {
		a.problem("alpha_pattern is %s, not an object", shortened(a.values["alpha_pattern"]))
		return
	}
	if len(names) > mostPatterns {
		a.problem("alpha_pattern has %d names, over the limit of %d", len(names), mostPatterns)
		return
	}
	for i, name := range names {
		p := alphaPattern{}
		if len(name) > longestPattern {
			a.problem("alpha_pattern: a name of %d bytes, over the limit of %d", len(name), longestPattern)
			continue
		}
		if p.name, err = regexp.Compile(`^(?:.*\.)?(?:` + name + `)$`); err != nil {
			a.problem("alpha_pattern: unsupported regular expression %q", name)
			continue
		}
		if err := json.Unmarshal(values[i], &p.alpha); err != nil || !(p.alpha > 0) {
			a.problem("alpha_pattern: %q has %s, must be positive", name, shortened(values[i]))
		}
		a.alphas = append(a.alphas, p)
	}
}

// scale returns the factor of a linear map's adapter.
func (a *adapterSettings) scale(name string, rank int) float64 {
	alpha := a.alpha
	for _, p := range a.alphas {
		if p.name.MatchString(name) {
			alpha = p.alpha
			break
		}
	}
	if a.stable { // arXiv:2312.03732
		return alpha / math.Sqrt(float64(rank))
	}
	return alpha / float64(rank)
}

// empty reports whether a setting is absent or has an empty value.
func (a *adapterSettings) empty(key string) bool {
	v, ok := a.values[key]
	return !ok || slices.Contains([]string{"null", "false", `""`, "[]", "{}", "0"}, string(compact(v)))
}

// refuse lists settings that would change results. That includes unknown settings unless
// empty: PEFT adds some with every version.
func (a *adapterSettings) refuse() {
	kind, bias := "", "none"
	a.maybe("peft_type", &kind)
	a.maybe("bias", &bias)
	if kind != "LORA" {
		a.problem("peft_type is %q; only LORA is supported", kind)
	}
	if bias != "none" {
		a.problem("bias is %q; only none is supported", bias)
	}
	a.refuseInit()
	why := map[string]string{
		"use_dora":  "DoRA is not supported",
		"lora_bias": "adapter biases are not supported",
		"modules_to_save": "whole modules saved with the adapters are not supported; merge them into the model " +
			"with PEFT",
		"trainable_token_indices": "trained embedding rows are not supported; merge them into the model with PEFT",
		"layer_replication":       "repeated layers are not supported",
		"target_parameters":       "adapters on parameters other than linear maps are not supported",
		"alora_invocation_tokens": "adapters that begin in mid-sequence are not supported",
	}
	for _, key := range sortedKeys(a.values) {
		if slices.Contains(harmlessSettings(), key) || a.empty(key) {
			continue
		}
		if text, known := why[key]; known {
			a.problem("%s: %s", key, text)
		} else {
			a.problem("%s is %s: this setting is not supported", key, shortened(a.values[key]))
		}
	}
}

// refuseInit refuses adapters whose initialization changed the base: they belong to other
// weights than the published ones.
func (a *adapterSettings) refuseInit() {
	var how string
	if json.Unmarshal(a.values["init_lora_weights"], &how) != nil || how == "" {
		return // true or false
	}
	if !slices.Contains([]string{"gaussian", "orthogonal", "eva"}, how) {
		a.problem("init_lora_weights is %q: it changes the base weights that the adapters belong to; "+
			"save them with PEFT's path_initial_model_for_weight_conversion", how)
	}
}

// harmlessSettings lists settings that are read elsewhere or that do not affect trained
// adapters.
func harmlessSettings() []string {
	return []string{"peft_type", "bias", "r", "lora_alpha", "lora_dropout", "use_rslora", "rank_pattern",
		"alpha_pattern", "target_modules",
		"layers_to_transform", "layers_pattern", "exclude_modules", "base_model_name_or_path", "revision",
		"task_type",
		"auto_mapping", "peft_version",
		"inference_mode", "init_lora_weights", "loftq_config", "eva_config", "corda_config", "lora_ga_config",
		"megatron_core", "qalora_group_size",
		"runtime_config", "ensure_weight_tying",
		"fan_in_fan_out"} // PEFT looks at the map itself: GPT-2's are transposed
}

// words describes the settings for people, one per line.
func (a *adapterSettings) words() []string {
	list := []string{fmt.Sprintf("LoRA: rank %d, alpha %g", a.rank, a.alpha)}
	if a.stable {
		list[0] += ", scaled by alpha/√rank (rsLoRA)"
	}
	if a.base != "" {
		list = append(list, "base: "+a.base)
	}
	return list
}
