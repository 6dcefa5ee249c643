package forecast

import (
	"math"
	"strconv"

	"exp/experiments/quantity"
	"exp/harness/config"
	"exp/harness/prompt"
	"exp/harness/stage"
	"exp/train"
	"exp/train/model"
)

// ImageWork is what vision towers compute in a training step, in all models and on all ranks, on average over the
// run's steps and for images of the average size. Images that filters drop are counted, too.
type ImageWork struct {
	Images    float64 `json:"images_per_step"` // that a step's problems show
	Tokens    int     `json:"tokens"`          // of an image, on average
	Encodings float64 `json:"encodings_per_step"`
	Passes    float64 `json:"backward_passes_per_step"` // of towers that learn, or of adapters on them
	FLOPs     float64 `json:"flops_per_step"`

	forward, backward float64 // FLOPs of an encoding and of a backward pass
	sampled           float64 // of Encodings, by ranks that only sample
}

// imageWork returns the work of towers in training whose problems show images as x says; nil if none do, or the tower
// is not known.
func imageWork(c *config.Run, arch model.Config, x *prompt.ImagePlan, w stage.Crew) *ImageWork {
	if x == nil || x.Images == 0 || x.Tokens == 0 {
		return nil
	}
	y := &ImageWork{Tokens: (x.Tokens + x.Images/2) / x.Images}
	adapters := towerAdapters(config.Train, c, arch) != nil
	y.forward, y.backward = stage.ImageFLOPs(c, y.Tokens, adapters)
	if y.forward == 0 {
		return nil
	}
	each := float64(x.Row) // of a problem
	if x.Rows > 0 {
		each = float64(x.Images) / float64(x.Rows)
	}
	y.Images = each * float64(c.Train.PromptsPerStep)
	sampled := max(y.Images, each*float64(sampledPerStep(c)/max(1, c.Rollout.N)))
	needs, _ := policyOf(c)
	bytes := 4 * float64((1+arch.Images.Deep)*arch.Width*y.Tokens)
	kept := keptFeatures{each: bytes, different: float64(x.Different) / float64(y.Tokens),
		steps: float64(c.Train.Steps)}
	if c.Model.TrainsTower() {
		y.learn(c, sampled, each, needs, w)
		if needs.Reference {
			kept.room = stage.ImageRoom / stage.OwnTowers
			y.Encodings += kept.encodings(y.Images, 1)
		}
	} else {
		kept.room = stage.ImageRoom
		passes := 1.0 + float64(c.Algo.Epochs)
		for _, more := range []bool{needs.Reference, needs.Critic, needs.Critic, needs.Process, needs.Process} {
			if more {
				passes++
			}
		}
		y.Encodings = kept.encodings(sampled, passes)
		if w.Apart() {
			y.sampled = y.Encodings
			y.Encodings *= 2 // by both kinds of ranks
		}
	}
	y.FLOPs = y.Encodings*y.forward + y.Passes*y.backward
	return y
}

// learn sets the work of towers that learn, or have adapters that do. An update drops features, and those from before
// the first one of a step serve it. Each image has a backward pass in each slice that shows it.
func (y *ImageWork) learn(c *config.Run, sampled, each float64, needs train.Needs, w stage.Crew) {
	n, epochs := y.Images, float64(c.Algo.Epochs)
	mini := each * float64(c.Train.PromptsPerUpdate)
	rows := stage.TrainConfig(c).Rows(c.Data.MaxPromptTokens + c.Rollout.MaxNewTokens)
	slices := float64(min(rows.Bundles(), c.Train.Slices))
	y.Encodings, y.Passes = sampled+epochs*n-mini, epochs*n*slices
	if w.Copies() || w.Apart() { // which encode with towers of their own
		y.Encodings += mini
	}
	if w.Apart() {
		y.sampled = sampled
	}
	if needs.Critic { // reads all before its first update
		y.Encodings += n + epochs*n - mini
		y.Passes += epochs * n * slices
	}
	if needs.Process {
		y.Encodings += n * float64(stage.TrainConfig(c).ProcessPasses())
		y.Passes += n * slices
	}
}

// keptFeatures says which features of a frozen tower a stage keeps.
type keptFeatures struct {
	each, room float64 // bytes of an image, and of all that are kept
	different  float64 // images
	steps      float64
}

// encodings returns how often a step encodes an image if it shows n of them in each of some passes: once in the whole
// run while all are kept, once in a step while the step's are.
func (k keptFeatures) encodings(n, passes float64) float64 {
	switch {
	case min(k.different, k.steps*n)*k.each <= k.room:
		return min(k.different, k.steps*n) / max(1, k.steps)
	case n*k.each <= k.room:
		return n
	}
	return n * passes
}

// showWork adds the work of towers to the plan: to a training step, its phases, and to the measuring of pass rates.
func (e *Estimate) showWork(c *config.Run, arch model.Config, x *prompt.ImagePlan) {
	ranks := max(1, e.Ranks)
	w := stage.Learners(c, ranks)
	y := imageWork(c, arch, x, w)
	if e.Images = y; y == nil {
		return
	}
	seconds := func(flops float64, groups int) float64 { // ranks that share products encode alike
		if !e.rates.known() {
			return 0
		}
		return flops / float64(max(1, groups)) / e.rates.Forward
	}
	if r := e.Rating; r != nil && r.Seconds > 0 {
		shown := y.Images / float64(c.Train.PromptsPerStep) * float64(r.Problems)
		r.Seconds += seconds(min(shown, float64(x.Different)/float64(y.Tokens))*y.forward, raters(c, ranks).Groups())
	}
	if len(e.Phases) == 0 {
		return
	}
	last := len(e.Phases) - 1 // gradients and parameters
	var more []Phase
	if y.sampled > 0 {
		others := stage.Samplers(c, ranks)
		more = append(more, Phase{Name: "features of images for sampling", Ahead: true,
			Seconds: seconds(y.sampled*y.forward, others.Groups())})
	}
	more = append(more, Phase{Name: "features of images",
		Seconds: seconds((y.Encodings-y.sampled)*y.forward, w.Groups())})
	if y.Passes > 0 {
		more = append(more, Phase{Name: "backward passes of images",
			Seconds: seconds(y.Passes*y.backward, w.Groups())})
	}
	e.Phases = append(append(e.Phases[:last:last], more...), e.Phases[last])
}

// imageText renders the work of towers.
func (e *Estimate) imageText(add func(format string, args ...any)) {
	x := e.Images
	if x == nil {
		return
	}
	passes := ""
	if x.Passes > 0 {
		passes = " and goes back through " + count(x.Passes)
	}
	add("         images   %s a step, of %d tokens on average: the vision tower encodes %s%s, %s", count(x.Images),
		x.Tokens, count(x.Encodings), passes, operations(x.FLOPs))
}

// count renders a number of images, which may be an average.
func count(n float64) string {
	if n == math.Trunc(n) && n < 1e6 {
		return strconv.Itoa(int(n))
	}
	return quantity.Short(n)
}

// operations renders floating-point operations.
func operations(n float64) string {
	unit, scale := "GFLOP", 1e9
	if n >= 1e12 {
		unit, scale = "TFLOP", 1e12
	}
	return quantity.Short(n/scale) + " " + unit
}
