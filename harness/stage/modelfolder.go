package stage

import (
	"encoding/json"
	"fmt"

	"exp/experiments/ident"
	"exp/harness/config"
	"exp/train/checkpoint"
	"exp/train/model"
)

// ReadArchitecture returns the architecture of the part of model.base that model.part
// selects.
func ReadArchitecture(c *config.Run) (model.Config, error) {
	if checkpoint.IsAdapterFolder(c.Model.Base) {
		return model.Config{}, fmt.Errorf("%s holds LoRA adapters (PEFT), not a model: name it in model.adapter, and "+
			"the model's folder in model.base", c.Model.Base)
	}
	read := checkpoint.ReadConfig
	switch c.Model.Part {
	case config.PartText:
		read = checkpoint.ReadTextConfig
	case config.PartImages:
		read = checkpoint.ReadImageConfig
	}
	arch, err := read(c.Model.Base)
	if err == nil && c.Model.TrainsTower() && arch.ReadsImages() { // else External says so
		arch.Tower, err = checkpoint.TowerLayout(c.Model.Base)
	}
	return arch, err
}

// architectureDigest covers what the model computes from its weights: rotary base, epsilon, window and so on. The
// vision tower has a digest of its own.
func architectureDigest(arch model.Config) (ident.Digest, error) {
	text, err := json.Marshal(arch.WithoutTower())
	if err != nil {
		return ident.Digest{}, err
	}
	return ident.Hash("exp/architecture/1", map[string]any{"config": string(text)})
}

// OpenModel opens the weights of model.base, restricted to model.part. If the vision tower learns, its weights are
// there, too.
func OpenModel(c *config.Run) (*checkpoint.Tensors, error) {
	if c.Model.TrainsTower() {
		return checkpoint.OpenWithTower(c.Model.Base)
	}
	return openLanguageModel(c)
}

// openLanguageModel is OpenModel without a vision tower.
func openLanguageModel(c *config.Run) (*checkpoint.Tensors, error) {
	if c.Model.Part == config.PartText {
		return checkpoint.OpenTextFolder(c.Model.Base)
	}
	return checkpoint.OpenFolder(c.Model.Base)
}

// modelDigest returns the digest of the weights of model.base without a vision tower, which has visionDigest. It
// trusts the cache for unchanged files, unless reread.
func modelDigest(c *config.Run, reread bool) (d ident.Digest, err error) {
	t, err := openLanguageModel(c)
	if err != nil {
		return d, err
	}
	defer t.Close()
	return tensorsDigest(t, reread)
}

// textTypes sets the types of a text part's tensors under the names of that part.
func textTypes(c *config.Run, o *checkpoint.Origin) error {
	t, err := OpenModel(c)
	if err != nil {
		return err
	}
	for _, x := range t.List() {
		o.DTypes[x.Name] = x.DType
	}
	return t.Close()
}
