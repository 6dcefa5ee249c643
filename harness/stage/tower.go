package stage

import (
	"cmp"
	"encoding/json"

	"exp/experiments/ident"
	"exp/harness/config"
	"exp/kernels"
	"exp/train/checkpoint"
	"exp/train/model"
	"exp/train/vision"
)

// This file has the vision towers of a stage's models: frozen ones, those that learn, and adapters on them.

// openTower loads the vision tower in t for the models that follow and share a frozen backbone, if the run trains the
// tower and the stage shows images. t has the tensors that the run's models have.
func (e *Env) openTower(t *checkpoint.Tensors) (err error) {
	g, ok := e.images.(*gallery)
	if !ok || g.tower != nil || g.base != nil {
		return nil
	}
	g.base, err = t.LoadTower(e.alone(), e.run().Model.Base)
	return err
}

// shown gives a model the images of the stage's problems, if there are any. Where the tower learns, each model has its
// own: the weights in its arena, adapters in its arena on the tower of openTower, or, of a frozen model, this tower or
// the one in t. On an error it closes the model.
func (e *Env) shown(m *model.Model, t *checkpoint.Tensors) (*model.Model, error) {
	g, ok := e.images.(*gallery)
	if !ok || g.tower != nil && !m.AdaptsTower() {
		if e.images != nil {
			m.SetImages(e.images)
		}
		return m, nil
	}
	var tower *vision.Tower
	var err error
	switch {
	case m.HoldsTower():
		tower, err = checkpoint.TowerOf(e.alone(), e.run().Model.Base, m)
	case m.AdaptsTower():
		tower, err = checkpoint.AdaptedTower(cmp.Or(g.tower, g.base), m)
	case g.base != nil:
		tower = g.base.Shared()
	default:
		tower, err = t.LoadTower(e.alone(), e.run().Model.Base)
	}
	if err != nil {
		m.Close()
		return nil, err
	}
	v := g.View(tower, ImageRoom/OwnTowers)
	g.views = append(g.views, v)
	m.SetImages(v)
	return m, nil
}

// ShowAdapted is model.SetImages for a gallery with a frozen tower, on which the model may have adapters. The caller
// closes the view, nil if it has none, before the tower. It keeps features of at most room bytes.
func ShowAdapted(m *model.Model, g *vision.Gallery, t *vision.Tower, room int) (*vision.View, error) {
	if !m.AdaptsTower() {
		m.SetImages(g)
		return nil, nil
	}
	tower, err := checkpoint.AdaptedTower(t, m)
	if err != nil {
		return nil, err
	}
	v := g.View(tower, room)
	m.SetImages(v)
	return v, nil
}

// plannedTower returns the vision tower of the run's model, and the patches of the largest image, which has at most so
// many tokens. It is not ok for a model of text alone, nor for one that cannot be read, which the plan reports.
func plannedTower(c *config.Run, tokens int) (tower vision.Config, patches int, ok bool) {
	if !ReadsImages(c) {
		return tower, 0, false
	}
	settings, err := PictureSettings(c)
	if err != nil {
		return tower, 0, false
	}
	tower, _, err = checkpoint.ReadVision(c.Model.Base)
	return tower, min(settings.MostPatches(), tokens*settings.Merge*settings.Merge), err == nil
}

// TowerBytes returns the memory of the vision tower, which a stage loads if its data shows images: of its weights, and
// of the largest image, which has at most so many tokens. Both are 0 where plannedTower is not ok.
func TowerBytes(c *config.Run, tokens int) (weights, image int64) {
	tower, patches, ok := plannedTower(c, tokens)
	if !ok {
		return 0, 0
	}
	t, err := checkpoint.OpenTower(c.Model.Base)
	if err != nil {
		return 0, 0
	}
	defer t.Close()
	return tower.WeightBytes(t.Frozen()), tower.Bytes(kernels.F32, Operand(c), patches)
}

// LearningTowerBytes returns the memory that a vision tower takes if it learns: copies of its weights, whose lengths
// packed returns, and the forward and backward pass of the largest image, which has at most so many tokens. The
// model's arena has its weights and gradients. Both are 0 where TowerBytes' are.
func LearningTowerBytes(c *config.Run, tokens int, packed model.PackedLen) (copies, image int64) {
	tower, patches, ok := plannedTower(c, tokens)
	if !ok {
		return 0, 0
	}
	return tower.LearningWeightBytes(packed, Operand(c)), tower.LearningBytes(kernels.F32, Operand(c), patches)
}

// tower tells bad why the run cannot train its vision tower.
func (x *External) tower(c *config.Run, bad func(key, code, message, help string)) {
	switch {
	case !ReadsImages(c):
		bad("model.vision", config.CodeConflict, "model.vision: trained, but the model of model.base reads text alone",
			"model.vision: frozen")
	case !x.Images && !AgentsBring(c) && !foldsTower(c):
		bad("model.vision", config.CodeConflict, "model.vision: trained, but nothing that the run learns from shows "+
			"images", "model.vision: frozen")
	}
}

// ImageFLOPs returns the floating-point operations of the vision tower for an image of so many tokens: of its
// features, and of a backward pass, through all weights or through adapters alone. Both are 0 where TowerBytes' are.
func ImageFLOPs(c *config.Run, tokens int, adapters bool) (forward, backward float64) {
	tower, _, ok := plannedTower(c, tokens)
	if !ok {
		return 0, 0
	}
	return tower.ImageFLOPs(tokens, adapters)
}

// FloatTowerBytes returns the memory of the vision tower's weights in float32, as stages of the run make them; 0 where
// TowerBytes' are.
func FloatTowerBytes(c *config.Run) int64 {
	tower, _, ok := plannedTower(c, 0)
	if !ok {
		return 0
	}
	return tower.WeightBytes(kernels.F32)
}

// AdaptedTowerBytes returns the memory that adapters on a vision tower take beside the frozen tower and their arena:
// of packed copies, whose lengths packed returns (nil: none), for a model that learns, and of the passes over the
// largest image, which has at most so many tokens, with gradients or without. Both are 0 where TowerBytes' are.
func AdaptedTowerBytes(c *config.Run, a *model.Adapters, tokens int, learns bool, packed model.PackedLen) (copies,
	image int64) {
	tower, patches, ok := plannedTower(c, tokens)
	if !ok {
		return 0, 0
	}
	on := checkpoint.TowerAdapters(a)
	return tower.AdapterBytes(on, learns, packed, Operand(c)),
		tower.AdaptedBytes(on, learns, kernels.F32, Operand(c), patches)
}

// visionDigest covers the vision tower of model.base and how its folder says to read images; zero for a model of text
// alone. It trusts the cache for unchanged files, unless reread.
func visionDigest(c *config.Run, reread bool) (d ident.Digest, err error) {
	if !ReadsImages(c) {
		return d, nil
	}
	tower, settings, err := checkpoint.ReadVision(c.Model.Base)
	if err != nil {
		return d, err
	}
	t, err := checkpoint.OpenTower(c.Model.Base)
	if err != nil {
		return d, err
	}
	defer t.Close()
	weights, err := tensorsDigest(t, reread)
	if err != nil {
		return d, err
	}
	of := map[string]any{"weights": weights}
	for name, v := range map[string]any{"tower": tower, "settings": settings} {
		text, err := json.Marshal(v)
		if err != nil {
			return d, err
		}
		of[name] = string(text)
	}
	return ident.Hash("exp/vision/1", of)
}
