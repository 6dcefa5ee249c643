package train

import (
	"fmt"
	"math"
	"slices"
	"sync"
	"testing"

	"exp/kernels"
	"exp/train/model"
	"exp/train/rollout"
)

// toyImages are two images, 2×2 tokens and 1×3, and those that agents bring, 1×2 each, in the order in which they come.
type toyImages struct {
	vocab, width, deep int

	mu      sync.Mutex
	brought []string // digests
}

// show gives an image that an agent brings its tokens.
func (x *toyImages) show(p rollout.Picture) (model.Image, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	at := slices.Index(x.brought, p.Digest)
	if at < 0 {
		at, x.brought = len(x.brought), append(x.brought, p.Digest)
	}
	return x.at(at), nil
}

func (x *toyImages) at(n int) model.Image {
	return model.Image{First: int32(x.vocab + 7 + 2*n), Rows: 1, Columns: 2}
}

// shown returns the image of a token that an agent brought.
func (x *toyImages) shown(id int32) (im rollout.ShownImage, ok bool) {
	n := (int(id) - x.vocab - 7) / 2
	if int(id) < x.vocab+7 {
		return im, false
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	return rollout.ShownImage{Picture: rollout.Picture{Digest: x.brought[n]}, First: x.at(n).First, Tokens: 2}, true
}

func (x *toyImages) list() [2]model.Image {
	return [2]model.Image{{First: int32(x.vocab), Rows: 2, Columns: 2}, {First: int32(x.vocab + 4), Rows: 1, Columns: 3}}
}

// Of implements model.Images.
func (x *toyImages) Of(id int32) model.Image {
	list := x.list()
	if n := (int(id) - x.vocab - 7) / 2; int(id) >= x.vocab+7 {
		return x.at(n)
	}
	if id < list[1].First {
		return list[0]
	}
	return list[1]
}

// Features implements model.Images.
func (x *toyImages) Features(_ kernels.Backend, im model.Image) []float32 {
	f := make([]float32, (1+x.deep)*im.Tokens()*x.width)
	phase := 7 * int(im.First)
	if own, ok := x.shown(im.First); ok {
		phase = 1000 + 7*int(own.Digest[0])
	}
	for i := range f {
		f[i] = float32(math.Sin(float64(i+phase))) / 4
	}
	return f
}

// illustrate gives the run's model images, whose features are also added after its first layer.
func (r *toyRun) illustrate() {
	pairs := r.model.Head / 2
	r.model.Images = model.ImageSettings{Sections: [3]int{pairs - 2*(pairs/3), pairs / 3, pairs / 3}, Interleaved: true,
		Deep: 1}
	r.images = &toyImages{vocab: r.model.Vocab, width: r.model.Width, deep: 1}
	r.cfg.MaxPromptTokens += 4
	r.options.MaxTokens = r.model.MaxPositions
}

// tower makes the images' features learn: features of a kind are multiplied by learned numbers.
func (r *toyRun) tower() {
	r.illustrate()
	for k := range 1 + r.images.deep {
		r.model.Tower = append(r.model.Tower, []model.TowerTensor{{Name: fmt.Sprintf("visual.scales.%d.weight", k),
			Shape: []int{2, r.model.Width / 2}}})
	}
}

// adaptedTower makes adapters learn, and the images' features with those on a tower (learnedImages).
func (r *toyRun) adaptedTower() {
	r.illustrate()
	r.adapters = &model.Adapters{Rank: 3, Alpha: 6, Targets: r.model.AdapterTargets()}
	for k := range 1 + r.images.deep {
		r.adapters.Tower = append(r.adapters.Tower, model.TowerMap{Name: fmt.Sprintf("visual.scales.%d", k), Out: 1, In: r.model.Width})
	}
}

// show gives a model the images of the run.
func (r *toyRun) show(m *model.Model) {
	if !m.HoldsTower() && !m.AdaptsTower() {
		m.SetImages(r.images)
		return
	}
	m.SetImages(&learnedImages{toyImages: r.images, m: m})
}

// learnedImages are toyImages with the learned numbers of a model: features f become f·(1 + 8·learned). They are a
// tower's weights, or A of adapters on one.
type learnedImages struct {
	*toyImages
	m    *model.Model
	mu   sync.Mutex
	kept map[int32][]float32 // until the numbers change
}

// numbers returns the learned numbers of features of kind k, and their gradients, if they have some.
func (x *learnedImages) numbers(k int) (learned, grads kernels.Buffer) {
	if !x.m.AdaptsTower() {
		return x.m.TowerGroup(k)
	}
	name := x.m.Heads.Adapters.Tower[k].Adapted().A
	if x.m.Trainable() {
		grads = x.m.Grad(name)
	}
	return x.m.View(name), grads
}

// Refresh implements model.LearningImages.
func (x *learnedImages) Refresh() { x.kept = map[int32][]float32{} }

// Features implements model.Images.
func (x *learnedImages) Features(be kernels.Backend, im model.Image) []float32 {
	x.mu.Lock()
	defer x.mu.Unlock()
	f, ok := x.kept[im.First]
	if ok {
		return f
	}
	f = x.toyImages.Features(be, im)
	n := len(f) / (1 + x.deep)
	for k := range 1 + x.deep {
		learned, _ := x.numbers(k)
		scale := hostFloats(be, learned)
		for i := range n {
			f[k*n+i] *= 1 + 8*scale[i%x.width]
		}
	}
	x.kept[im.First] = f
	return f
}

// Backward implements model.LearningImages.
func (x *learnedImages) Backward(be kernels.Backend, im model.Image, d []float32) {
	f := x.toyImages.Features(be, im)
	n := len(f) / (1 + x.deep)
	for k := range 1 + x.deep {
		_, grads := x.numbers(k)
		g := hostFloats(be, grads)
		for i := range n {
			g[i%x.width] += 8 * f[k*n+i] * d[k*n+i]
		}
		be.Copy(grads, kernels.Host(g))
		be.Sync()
	}
}

func hostFloats(be kernels.Backend, b kernels.Buffer) []float32 {
	x := make([]float32, b.Len())
	be.Copy(kernels.Host(x), b)
	be.Sync()
	return x
}

// prompt returns the tokens of a problem's prompt: an image before those that begin with C, and within those that
// begin with AB.
func (r *toyRun) prompt(p *rollout.Problem) ([]int32, error) {
	ids, err := letters{}.encode(p.Prompt)
	if r.images == nil || err != nil {
		return ids, err
	}
	tokens := func(im model.Image) (list []int32) {
		for k := range im.Tokens() {
			list = append(list, im.First+int32(k))
		}
		return list
	}
	switch list := r.images.list(); {
	case ids[0] == 3:
		return slices.Concat(tokens(list[0]), ids), nil
	case len(ids) > 1:
		return slices.Concat(ids[:1], tokens(list[1]), ids[1:]), nil
	}
	return ids, nil
}

// A run whose prompts show images learns, verifies every log-prob of the sampler, and has the bits of any threads and
// micro-batches, also where what the images' features come from learns.
func TestImages(t *testing.T) {
	run := func(kind Kind, learned bool, threads, tokens int) *toyRun {
		r := newToyRun(t, kind, threads)
		for i := range r.problems {
			r.problems[i].Prompt = []string{"C", "AB", "CA"}[i%3]
		}
		r.cfg.VerifyRate, r.cfg.MicroBatchTokens, r.cfg.Steps = 1, tokens, 12
		if learned {
			r.tower()
		} else {
			r.illustrate()
		}
		r.run()
		return r
	}
	for _, tt := range []struct {
		kind    Kind
		learned bool
	}{{FlowRL, false}, {PPO, false}, {PPO, true}} {
		kind := tt.kind
		one := run(kind, tt.learned, 1, 200)
		first, last := meanReward(one.steps[0]), meanReward(one.steps[len(one.steps)-1])
		if !(last > first+0.1) {
			t.Errorf("%s: the mean reward went from %.2f to %.2f", kind, first, last)
		}
		if tt.learned {
			for _, m := range []*model.Model{one.trainer.Policy, one.trainer.Critic} {
				now, _ := m.TowerGroup(0)
				fresh, err := model.New(one.be, one.model, m.Heads, false)
				if err != nil {
					t.Fatal(err)
				}
				defer fresh.Close()
				fresh.Init(hashSeed(99))
				if was, _ := fresh.TowerGroup(0); differentBit(one.host(was), one.host(now)) < 0 {
					t.Error("the tower learned nothing")
				}
			}
		}
		other := run(kind, tt.learned, 3, 40)
		if at := differentBit(one.params(), other.params()); at >= 0 {
			t.Errorf("%s: parameters differ at %d", kind, at)
		}
		if a, b := trace(one.steps), trace(other.steps); a != b {
			t.Errorf("%s: %s", kind, firstLineThatDiffers(a, b))
		}
	}
}

func meanReward(s *Step) (mean float64) {
	for _, x := range s.Trajectories {
		mean += x.Verdict.Reward / float64(len(s.Trajectories))
	}
	return mean
}
