package forecast

import (
	"slices"

	"exp/harness/config"
	"exp/harness/prompt"
	"exp/harness/stage"
	"exp/kernels"
	"exp/train"
	"exp/train/model"
)

// Names of the parts of a stage that shows images.
const (
	towerPart  = "vision tower"
	towersPart = "vision towers: copies of weights" // of towers that learn
	adaptPart  = "vision tower: copies of adapters"
	imagePart  = "activations of an image"
)

// towerParts lists them.
func towerParts() []string { return []string{towerPart, towersPart, adaptPart, imagePart} }

// Show corrects the plan of a run by what its data shows, which prompts say: work and activations of stages whose
// examples lie in files follow their lengths, stages whose data shows no image load no tower, and the others keep
// features of images in the machine's memory and compute them in some time. Placements do not change: they are the
// same before the data is read.
func (e *Estimate) Show(c *config.Run, prompts prompt.Plan) {
	arch, err := architectureOf(c, prompts.Tokens)
	if err != nil {
		return
	}
	e.showExamples(c, arch, prompts)
	e.showPrompts(c, arch, prompts.Longest)
	e.Program = programBytes(c, e.longest, e.held, e.inMachine())
	if !arch.ReadsImages() {
		return
	}
	problems, taught, preferred := prompts.Images, prompts.Images, (*prompt.ImagePlan)(nil)
	played := problems // what the model reads where it samples
	if stage.AgentsBring(c) {
		played = brought(c, arch, problems)
	}
	if prompts.SFT != nil {
		taught = prompts.SFT.Images
	}
	switch {
	case prompts.Prefer != nil:
		preferred = prompts.Prefer.Images
	case prompts.Answers != nil:
		preferred = prompts.Answers.Images
	}
	learns := c.Data.Train.Source != config.None
	if learns {
		train := towerAdapters(config.Train, c, arch)
		e.Memory = withTower(c, train, e.Memory, played)
		e.SamplerMemory = withTower(c, train, e.SamplerMemory, played)
	} else if !asksSuites(c) { // Memory is an evaluation's, or the one of a stage that learns first
		kind := config.EvalGen
		if len(c.Eval.Final.Suites) == 0 && c.Prefer.Steps > 0 {
			kind = config.Prefer
		}
		e.Memory = withTower(c, towerAdapters(kind, c, arch), e.Memory, played, taught, preferred)
	}
	e.SFTMemory = withTower(c, nil, e.SFTMemory, taught)
	e.PreferMemory = withTower(c, towerAdapters(config.Prefer, c, arch), e.PreferMemory, preferred)
	if e.Rating != nil {
		e.Rating.Memory = withTower(c, towerAdapters(config.PassRate, c, arch), e.Rating.Memory, played)
	}
	read := reading(c)
	if learns {
		e.showWork(c, arch, problems)
		n := drawn(c)
		if played != problems {
			n = 0
		}
		e.ImageBytes = heldImages(c, played, n, arch, read)
	}
	if c.SFT.Steps > 0 {
		e.ImageBytes = max(e.ImageBytes, heldImages(c, taught, c.SFT.Steps*c.SFT.ProblemsPerStep, arch, read))
	}
	if c.Prefer.Steps > 0 { // the reference reads each pair that a step uses, too
		n := max(c.Prefer.PairsPerStep, c.Prefer.AnswersPerStep)
		e.ImageBytes = max(e.ImageBytes, heldImages(c, preferred, c.Prefer.Steps*n, arch, read))
	}
}

// brought returns what a run shows the model whose problems show such images (nil: none) and whose agents may bring
// others: as many tokens of different images as there is room for in the completions of training.
func brought(c *config.Run, arch model.Config, problems *prompt.ImagePlan) *prompt.ImagePlan {
	x := prompt.ImagePlan{Row: 1}
	if problems != nil {
		x = *problems
	}
	longest := longestOf(config.Train, c, arch)
	x.Most = max(x.Most, longest)
	if s, err := stage.PictureSettings(c); err == nil {
		x.Most = min(x.Most, s.MostPatches()/(s.Merge*s.Merge))
	}
	x.Different += c.Train.Steps * sampledPerStep(c) * c.Rollout.Tools.Most() * longest
	return &x
}

// towerAdapters returns the adapters of a stage's models if some are on the vision tower, else nil.
func towerAdapters(kind config.Stage, c *config.Run, arch model.Config) (a *model.Adapters) {
	switch kind {
	case config.Train:
		a = stage.WithAdapters(model.Heads{}, c, arch).Adapters
	case config.Prefer:
		a = stage.PreferHeads(c, arch).Adapters
	case config.EvalGen, config.PassRate:
		a, _ = stage.StartAdapters(c, arch) // the plan says why they cannot be read
	}
	if a == nil || len(a.Tower) == 0 {
		return nil
	}
	return a
}

// addAdaptedTower adds the memory of a frozen vision tower with adapters a of the stage's models, whose adapters are
// counted with their arenas.
func (p *parts) addAdaptedTower(kind config.Stage, c *config.Run, a *model.Adapters, tokens int, w stage.Crew) {
	weights, _ := stage.TowerBytes(c, tokens)
	if frozenType(kind, c) == kernels.F32 {
		weights = stage.FloatTowerBytes(c)
	}
	learns := w.Learns && (kind == config.Train || kind == config.Prefer)
	copies, image := stage.AdaptedTowerBytes(c, a, tokens, learns, copiesOf(c))
	var needs train.Needs
	if kind == config.Train {
		needs, _ = policyOf(c)
	}
	towers := int64(0)
	for _, held := range []bool{true, learns && needs.Critic, learns && needs.Process,
		needs.Reference && c.Model.HasAdapter()} {
		if held {
			towers += copies
		}
	}
	p.add(towerPart, int(weights))
	p.add(adaptPart, int(towers))
	p.add(imagePart, int(image))
}

// TowerParts returns the parts of the memory that reading images takes on a device where a model of architecture arch
// samples.
func TowerParts(c *config.Run, arch model.Config) []Part {
	var p parts
	p.addTower(config.EvalGen, c, arch, longestOf(config.EvalGen, c, arch), stage.Everyone(c, 1))
	return p
}

// addTower adds the memory of vision towers in a stage: all models share a frozen one; each has its own if it learns,
// and then its weights and gradients are counted with the model's arena.
func (p *parts) addTower(kind config.Stage, c *config.Run, arch model.Config, longest int, w stage.Crew) {
	tokens := mostImageTokens(kind, c, longest)
	if a := towerAdapters(kind, c, arch); a != nil {
		p.addAdaptedTower(kind, c, a, tokens, w)
		return
	}
	frozen, image := stage.TowerBytes(c, tokens)
	if !c.Model.TrainsTower() || kind == config.EvalGen || kind == config.PassRate {
		p.add(towerPart, int(frozen))
		p.add(imagePart, int(image))
		return
	}
	copies, learning := stage.LearningTowerBytes(c, tokens, copiesOf(c))
	var needs train.Needs
	if kind == config.Train {
		needs, _ = policyOf(c)
	}
	towers := int64(0)
	for _, held := range []bool{true, w.Learns && needs.Critic, w.Learns && needs.Process, w.Learns && w.Copies()} {
		if held {
			towers += copies
		}
	}
	if w.Learns && needs.Reference || kind == config.Train && stage.TrainConfig(c).SamplersNeedReference() {
		towers += max(frozen, copies)
	}
	if w.Learns {
		image = learning
	}
	p.add(towersPart, int(towers))
	p.add(imagePart, int(image))
}

// withTower returns parts of memory with the tower's for the largest image that data shows; without it if none does. a
// are adapters on the tower, nil if there are none.
func withTower(c *config.Run, a *model.Adapters, list []Part, data ...*prompt.ImagePlan) []Part {
	most := 0
	for _, x := range data {
		if x != nil {
			most = max(most, x.Most)
		}
	}
	list = slices.Clone(list)
	if most == 0 {
		return slices.DeleteFunc(list, func(p Part) bool {
			return slices.Contains(towerParts(), p.Name)
		})
	}
	learns := slices.ContainsFunc(list, func(p Part) bool { return p.Name == towersPart })
	for i := range list {
		switch {
		case list[i].Name != imagePart:
		case a != nil:
			_, list[i].Bytes = stage.AdaptedTowerBytes(c, a, most, c.Model.TrainsTower(), nil)
		case learns:
			_, list[i].Bytes = stage.LearningTowerBytes(c, most, nil)
		default:
			_, list[i].Bytes = stage.TowerBytes(c, most)
		}
	}
	return list
}

// asksSuites reports whether the final evaluation has problems that are not in the run's own files.
func asksSuites(c *config.Run) bool {
	own := []string{config.None, "train", "val", "test"}
	return slices.ContainsFunc(c.Eval.Final.Suites, func(name string) bool { return !slices.Contains(own, name) })
}

// drawn returns the most problems that training shows the model; 0: all.
func drawn(c *config.Run) int {
	if c.Data.PassRate.Samples > 0 || stage.FirstValues(c) > 0 {
		return 0
	}
	n := c.Train.Steps * (sampledPerStep(c)/max(1, c.Rollout.N) + 1)
	if c.Eval.Online.EverySteps > 0 {
		n += c.Eval.Online.Problems
	}
	return n
}

// reading returns the bytes of the pixels that reading a token's part of an image takes.
func reading(c *config.Run) int64 {
	s, err := stage.PictureSettings(c)
	if err != nil {
		return 0
	}
	return int64(4 * s.Merge * s.Merge * 3 * s.Frames * s.Patch * s.Patch)
}

// heldImages returns the memory of Go's heap that images take in a stage which shows at most so many rows of data (0:
// all): features of different images, as many as a stage keeps, garbage of as many bytes between collections, if
// reading the images makes so much, and the pixels of the largest image. read is for one token's.
func heldImages(c *config.Run, x *prompt.ImagePlan, rows int, arch model.Config, read int64) int64 {
	if x == nil {
		return 0
	}
	tokens := int64(x.Different)
	if rows > 0 {
		tokens = min(tokens, int64(rows)*int64(x.Row)*int64(x.Most))
	}
	each := int64(4 * (1 + arch.Images.Deep) * arch.Width)
	kept := max(min(tokens*each, stage.ImageRoom), int64(x.Most)*each)
	if c.Model.TrainsTower() { // each model has features of its own, and gradients of features wait
		kept = max(min(stage.OwnTowers*tokens*each, stage.ImageRoom), stage.OwnTowers*int64(x.Most)*each) +
			max(min(tokens*each, model.GradientBytes), int64(x.Most)*each)
	}
	return kept + min(kept, tokens*read) + int64(x.Most)*read
}
