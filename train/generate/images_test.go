package generate

import (
	"context"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"exp/kernels"
	"exp/kernels/ref"
	"exp/train/model"
	"exp/train/rollout"
)

// gallery holds images with features.
type gallery struct {
	images   []model.Image
	features [][]float32
}

// Of implements model.Images.
func (g *gallery) Of(id int32) model.Image { return g.images[g.number(id)] }

// Features implements model.Images.
func (g *gallery) Features(_ kernels.Backend, im model.Image) []float32 {
	return g.features[g.number(im.First)]
}

func (g *gallery) number(id int32) int {
	return slices.IndexFunc(g.images, func(im model.Image) bool {
		return im.First <= id && int(id-im.First) < im.Tokens()
	})
}

// illustrate gives m images, and puts them into the prompts of requests: a large one in the first two, longer than a
// page, which share their beginnings; a small one, twice, in the third.
func illustrate(m *model.Model, reqs []rollout.Request) {
	g, r, next := &gallery{}, rand.New(rand.NewPCG(4, 4)), int32(m.Config.Vocab)
	var ids [2][]int32
	for i, size := range [][2]int{{5, 4}, {1, 2}} {
		im := model.Image{First: next, Rows: size[0], Columns: size[1]}
		f := make([]float32, (1+m.Config.Images.Deep)*im.Tokens()*m.Config.Width)
		for i := range f {
			f[i] = float32(r.NormFloat64())
		}
		g.images, g.features = append(g.images, im), append(g.features, f)
		for range im.Tokens() {
			ids[i], next = append(ids[i], next), next+1
		}
	}
	m.SetImages(g)
	short := func(prompt []int32) []int32 { return prompt[:min(len(prompt), 20)] }
	reqs[0].Prompt = slices.Concat([]int32{1, 2}, ids[0], short(reqs[0].Prompt))
	reqs[1].Prompt = slices.Concat([]int32{1, 2}, ids[0], short(reqs[1].Prompt))
	reqs[2].Prompt = slices.Concat(ids[1], []int32{5}, ids[1], short(reqs[2].Prompt))
}

// Prompts with the same image share its pages, also where one ends within the image; others with an image of the same
// size do not.
func TestImagesShareTheirPages(t *testing.T) {
	for _, name := range []string{"qwen2.5-vl", "gemma3 images"} {
		m := newModel(t, openCPU(t, 1), families()[name])
		r := rand.New(rand.NewPCG(1, 1))
		reqs := requests(r, 3, 1, 20)
		illustrate(m, reqs)
		o := Options{MaxSequences: 2, PageTokens: 16, MaxTokens: 96, StepRows: 40}
		e := newEngine(t, openCPU(t, 1), m, o)
		p := rollout.Params{Temperature: 1, TopP: 1, MaxNewTokens: 4}
		got := sample(t, e, reqs[:2], p)
		if n := e.Stats().FoundTokens; n != 16 {
			t.Errorf("%s: %d tokens of the second prompt were found, want 16", name, n)
		}
		if d := differ(sample(t, newEngine(t, openCPU(t, 1), m, o), reqs[1:2], p), got[1:]); d != "" {
			t.Errorf("%s: alone: %s", name, d)
		}
	}
}

// A step that has no room for all of an image whose tokens see each other leaves it to the next one.
func TestStepsEndBetweenImages(t *testing.T) {
	be := openCPU(t, 2)
	m := newModel(t, be, families()["gemma3 images"])
	reqs := requests(rand.New(rand.NewPCG(3, 3)), 3, 1, 20)
	illustrate(m, reqs)
	shown := reqs[0].Prompt[2:22]
	text := []int32{3, 4, 5, 6, 7, 8, 9, 10, 3, 4, 5, 6}
	reqs = reqs[:1]
	reqs[0].Prompt = slices.Concat(text, shown, text[:2], shown, text)
	p := rollout.Params{Temperature: 1, TopP: 1, MaxNewTokens: 4, MinNewTokens: 4}
	want := sample(t, newEngine(t, be, m, Options{MaxSequences: 1, PageTokens: 16, MaxTokens: 96, StepRows: 96}), reqs, p)
	e := newEngine(t, be, m, Options{MaxSequences: 1, PageTokens: 16, MaxTokens: 96})
	if d := differ(sample(t, e, reqs, p), want); d != "" {
		t.Error(d)
	}
	if rows := e.opt.StepRows; rows <= 34 || rows >= 54 {
		t.Errorf("steps of %d rows; the first would not end within the second image", rows)
	}
}

// A completion that gives its pages back goes on behind its images, and where their tokens see each other, no step ends
// within one.
func TestImagesRestart(t *testing.T) {
	for _, name := range []string{"qwen3-vl", "gemma3 images"} {
		c := families()[name]
		be := openCPU(t, 2)
		m := newModel(t, be, c)
		reqs := requests(rand.New(rand.NewPCG(2, 2)), 5, 3, 30)
		illustrate(m, reqs)
		p := rollout.Params{Temperature: 1, TopP: 1, MaxNewTokens: 40, MinNewTokens: 40,
			Penalties: rollout.Penalties{Repetition: 1.3, Presence: 0.2}}
		want := sample(t, newEngine(t, be, m, Options{MaxSequences: 15, PageTokens: 16, MaxTokens: 96}), reqs, p)
		small := newEngine(t, be, m, Options{MaxSequences: 7, PageTokens: 16, MaxTokens: 96, StepRows: 9, CacheTokens: 160})
		if d := differ(sample(t, small, reqs, p), want); d != "" {
			t.Error(name, d)
		}
		if small.Stats().Restarts == 0 {
			t.Error("nothing restarted")
		}
	}
}

// Drafts end before an image.
func TestDraftsOfImages(t *testing.T) {
	draft := []int32{3, 18, 19, 4}
	if got := (&drafter{vocab: 19}).drawable(draft); !slices.Equal(got, draft[:2]) {
		t.Errorf("draft %v", got)
	}
	if got := (&drafter{vocab: 20}).drawable(draft); !slices.Equal(got, draft) {
		t.Errorf("draft %v of text", got)
	}
	if got := (&drafter{}).drawable(draft); !slices.Equal(got, draft) {
		t.Errorf("draft %v without images", got)
	}
}

// A prompt must not end within an image, and prompts with images have no scores of their own.
func TestImagesRefused(t *testing.T) {
	be := ref.New[float32]()
	m := newModel(t, be, families()["qwen2.5-vl"])
	reqs := requests(rand.New(rand.NewPCG(1, 1)), 3, 1, 20)
	illustrate(m, reqs)
	e := newEngine(t, be, m, Options{MaxSequences: 2, PageTokens: 16, MaxTokens: 96})
	p := rollout.Params{Temperature: 1, TopP: 1, MaxNewTokens: 4}
	cut := rollout.Request{Prompt: reqs[0].Prompt[:4], Seeds: []uint64{1}}
	_, err := e.Sample(context.Background(), []rollout.Request{cut}, p, nil)
	if err == nil || !strings.Contains(err.Error(), "ends with an image; text must follow it") {
		t.Errorf("error %v", err)
	}
	if err := e.Check(&Ask{Request: reqs[0], Params: p}); err != nil {
		t.Error(err)
	}
	if err := e.Check(&Ask{Request: reqs[0], Params: p, Prompted: true}); err == nil {
		t.Error("no error")
	}
	text := newModel(t, be, families()["mistral"])
	e = newEngine(t, be, text, Options{MaxSequences: 2, PageTokens: 16, MaxTokens: 96})
	for _, id := range []int32{-1, int32(text.Config.Vocab)} {
		beyond := rollout.Request{Prompt: []int32{1, id, 2}, Seeds: []uint64{1}}
		if err := e.Check(&Ask{Request: beyond, Params: p}); err == nil {
			t.Errorf("a model of text takes token %d of %d", id, text.Config.Vocab)
		}
	}
}
