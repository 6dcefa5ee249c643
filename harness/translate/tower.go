package translate

import "regexp"

// visual matches the names of models of text and images that exp computes.
var visual = regexp.MustCompile(`(?i)(^|[-_/.\d])vl([-_/.\d]|$)|internvl|smolvlm|idefics|glm-?4(\.\d)?v`)

// tower translates whether the vision tower learns. verl trains it unless it is told not to. Nothing is written for a
// model whose name does not say that it reads images, or for a script that names no column of them.
func (t *verl) tower() {
	frozen := t.on(actor+"freeze_vision_tower", false)
	path := t.text(policy+"path", "")
	if _, shows := t.in["data.image_key"]; frozen || !shows || !visual.MatchString(path) {
		return
	}
	if _, adapted := t.out["train.lora.rank"]; adapted {
		t.note("train.lora leaves the vision tower as it is; verl's adapters are on its linear layers, too, unless " +
			"exclude_modules names them")
		return
	}
	t.put("model.vision", "trained")
	t.note("verl trains the vision tower: model.vision: trained. If no problem shows an image, take that key out")
}
