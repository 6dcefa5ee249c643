package translate

import (
	"regexp"
	"slices"
	"strings"

	"exp/train/vision"
)

// visual matches the names of models of text and images that exp computes.
var visual = regexp.MustCompile(`(?i)(^|[-_/.\d])vl([-_/.\d]|$)|internvl|smolvlm|idefics|glm-?4(\.\d)?v`)

// towerKind returns the kind of the vision tower of a model whose name visual matches.
func towerKind(path string) vision.Kind {
	for _, x := range []struct {
		name string
		kind vision.Kind
	}{{"internvl", vision.InternVL}, {"smolvlm", vision.Idefics3}, {"idefics", vision.Idefics3}, {"glm", vision.GLM4V},
		{"qwen2.5", vision.Qwen25VL}, {"qwen2_5", vision.Qwen25VL}, {"qwen2", vision.Qwen2VL}} {
		if strings.Contains(strings.ToLower(path), x.name) {
			return x.kind
		}
	}
	return vision.Qwen3VL
}

// tower translates whether the vision tower learns. verl trains it, or puts adapters on its linear maps where it puts
// them on the language model's, unless it is told not to. Nothing is written for a model whose name does not say that
// it reads images, or for a script that names no column of them.
func (t *verl) tower() {
	frozen := t.on(actor+"freeze_vision_tower", false)
	path := t.text(policy+"path", "")
	if _, shows := t.in["data.image_key"]; !shows || !visual.MatchString(path) {
		return
	}
	if _, adapted := t.out["train.lora.rank"]; adapted {
		t.adaptedTower(frozen, towerKind(path))
		return
	}
	if !frozen {
		t.put("model.vision", "trained")
		t.note("verl trains the vision tower: model.vision: trained. If no problem shows an image, take that key out")
	}
}

// adaptedTower is tower for adapters.
func (t *verl) adaptedTower(frozen bool, kind vision.Kind) {
	if t.number(policy+"lora.rank", 0) > 0 { // Megatron's, whose names of modules are other ones
		if !frozen {
			t.note("train.lora leaves the vision tower as it is; model.vision: trained puts adapters on it, too")
		}
		return
	}
	const key = policy + "exclude_modules"
	maps, targets := kind.Modules(), listOf(t.text(policy+"target_modules", "all-linear"))
	excluded, known := exclusion(t.in[key])
	named, left := 0, 0
	for _, name := range maps {
		last := name[strings.LastIndexByte(name, '.')+1:]
		if !slices.Contains(targets, "all-linear") && !slices.Contains(targets, last) {
			continue
		}
		if named++; !excluded(name) {
			left++
		}
	}
	text := slices.ContainsFunc(textLayers, func(name string) bool {
		return excluded("model.language_model.layers.0.self_attn."+name) ||
			excluded("model.language_model.layers.0.mlp."+name)
	})
	if t.in[key] != "" && known && !text && (left == 0 || left == named) {
		t.used[key] = true // else it is noted
	}
	if frozen || left == 0 {
		return
	}
	t.put("model.vision", "trained")
	t.note("verl's adapters are on the linear maps of the vision tower, too: model.vision: trained. If no problem " +
		"shows an image, take that key out")
}

// textLayers are the linear layers of usual language models.
var textLayers = []string{"q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"}

// exclusion returns what PEFT's exclude_modules matches: a regular expression a whole name, a list of names an end of
// it. known is false for an expression that Go does not read.
func exclusion(value string) (excluded func(module string) bool, known bool) {
	none := func(string) bool { return false }
	if value == "" || value == "null" || value == "None" {
		return none, true
	}
	if strings.HasPrefix(value, "[") {
		list := listOf(value)
		return func(module string) bool {
			return slices.ContainsFunc(list, func(x string) bool { return strings.HasSuffix("."+module, "."+x) })
		}, true
	}
	re, err := regexp.Compile(`^(?:` + strings.Trim(value, `'"`) + `)$`)
	if err != nil {
		return none, false
	}
	return re.MatchString, true
}
