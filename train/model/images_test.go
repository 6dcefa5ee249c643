package model

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"exp/kernels"
	"exp/kernels/cpu"
	"exp/kernels/ref"

	"github.com/google/go-cmp/cmp"
)

// gallery holds images with features.
type gallery struct {
	images   []Image
	features [][]float32
}

// newGallery returns images of some rows and columns for models of configuration c, with random features.
func newGallery(c Config, sizes ...[2]int) *gallery {
	g, r, next := &gallery{}, rand.New(rand.NewPCG(4, 4)), int32(c.Vocab)
	for _, size := range sizes {
		im := Image{First: next, Rows: size[0], Columns: size[1]}
		f := make([]float32, (1+c.Images.Deep)*im.Tokens()*c.Width)
		for i := range f {
			f[i] = float32(r.NormFloat64()) / 2
		}
		g.images, g.features = append(g.images, im), append(g.features, f)
		next += int32(im.Tokens())
	}
	return g
}

func (g *gallery) number(id int32) int {
	return slices.IndexFunc(g.images, func(im Image) bool { return im.First <= id && int(id-im.First) < im.Tokens() })
}

func (g *gallery) Of(id int32) Image { return g.images[g.number(id)] }

func (g *gallery) Features(_ kernels.Backend, im Image) []float32 {
	return g.features[g.number(im.First)]
}

// tokens returns the tokens of an image.
func (g *gallery) tokens(i int) (list []int32) {
	for k := range g.images[i].Tokens() {
		list = append(list, g.images[i].First+int32(k))
	}
	return list
}

// imageBatch gives m images, and returns sequences that show them: two that share a prompt, one of text, and one with
// two images next to each other and text between the same image.
func imageBatch(m *Model) Batch {
	g := newGallery(m.Config, [2]int{2, 3}, [2]int{1, 2}, [2]int{2, 1})
	m.SetImages(g)
	shared := slices.Concat([]int32{1}, g.tokens(0), []int32{2})
	b := Batch{Offsets: []int32{0}, Group: []int32{0, 0, 1, 2}}
	for _, s := range []struct{ prompt, completion []int32 }{
		{shared, []int32{3, 4, 5}},
		{shared, []int32{6, 1}},
		{[]int32{1, 2, 3}, []int32{4, 5, 8}},
		{slices.Concat(g.tokens(1), g.tokens(2), []int32{3}, g.tokens(1), []int32{4}), []int32{7, 7, 2}},
	} {
		b.Tokens = append(append(b.Tokens, s.prompt...), s.completion...)
		b.Offsets = append(b.Offsets, int32(len(b.Tokens)))
		b.Prompt = append(b.Prompt, int32(len(s.prompt)))
	}
	return b
}

// Places follow section 2.1 of Qwen2-VL: an image takes as many positions as its longer side.
func TestPlaces(t *testing.T) {
	c := variants["qwen2.5-vl"]
	m, err := New(ref.New[float32](), c, Heads{LM: true}, false)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	g := newGallery(c, [2]int{2, 3}, [2]int{1, 1})
	m.SetImages(g)
	got, next := m.Places(slices.Concat([]int32{5, 6}, g.tokens(0), []int32{7}, g.tokens(1), g.tokens(1), []int32{8}))
	want := []Place{{0, 0, 0}, {1, 1, 1}, {2, 2, 2}, {2, 2, 3}, {2, 2, 4}, {2, 3, 2}, {2, 3, 3}, {2, 3, 4}, {5, 5, 5},
		{6, 6, 6}, {7, 7, 7}, {8, 8, 8}}
	if diff := cmp.Diff(want, got); diff != "" || next != 9 {
		t.Errorf("next %d, -want +got:\n%s", next, diff)
	}
	// A tall image, the first again behind the last token of the vocabulary, and pieces of it around text: each piece
	// lies where the whole image would.
	g = newGallery(c, [2]int{2, 1})
	m.SetImages(g)
	id := g.images[0].First
	got, next = m.Places([]int32{id, id + 1, int32(c.Vocab) - 1, id, id + 1, id, 3, id + 1, 4})
	want = []Place{{0, 0, 0}, {0, 1, 0}, {2, 2, 2}, {3, 3, 3}, {3, 4, 3}, {5, 5, 5}, {7, 7, 7}, {8, 9, 8}, {10, 10, 10}}
	if diff := cmp.Diff(want, got); diff != "" || next != 11 {
		t.Errorf("next %d, -want +got:\n%s", next, diff)
	}
	if list, next := m.Places([]int32{1, 2}); list != nil || next != 2 {
		t.Errorf("text has places %v up to %d", list, next)
	}
}

// Parts of a video that follow each other have one position, and their times from it; text goes on behind the largest.
// Parts between which text stands are images.
func TestPlacesOfVideos(t *testing.T) {
	c := variants["qwen2.5-vl"]
	m, err := New(ref.New[float32](), c, Heads{LM: true}, false)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	g := newGallery(c, [2]int{1, 2}, [2]int{1, 2}, [2]int{1, 2}, [2]int{1, 2})
	for i := range 3 {
		g.images[i].Part, g.images[i].Parts, g.images[i].Time = i, 3, []int32{0, 3, 7}[i]
	}
	m.SetImages(g)
	video := slices.Concat(g.tokens(0), g.tokens(1), g.tokens(2))
	got, next := m.Places(slices.Concat([]int32{5}, video, g.tokens(3), []int32{6}, video))
	want := []Place{{0, 0, 0}, {1, 1, 1}, {1, 1, 2}, {4, 1, 1}, {4, 1, 2}, {8, 1, 1}, {8, 1, 2}, {9, 9, 9}, {9, 9, 10},
		{11, 11, 11}, {12, 12, 12}, {12, 12, 13}, {15, 12, 12}, {15, 12, 13}, {19, 12, 12}, {19, 12, 13}}
	if diff := cmp.Diff(want, got); diff != "" || next != 20 {
		t.Errorf("next %d, -want +got:\n%s", next, diff)
	}
	for i := range 3 { // as for Qwen3-VL
		g.images[i].Time = 0
	}
	got, next = m.Places(slices.Concat(g.tokens(0), []int32{5}, g.tokens(1), []int32{6}))
	want = []Place{{0, 0, 0}, {0, 0, 1}, {2, 2, 2}, {3, 3, 3}, {3, 3, 4}, {5, 5, 5}}
	if diff := cmp.Diff(want, got); diff != "" || next != 6 {
		t.Errorf("next %d, -want +got:\n%s", next, diff)
	}
}

// Images may have the positions of text.
func TestFlatImagesHaveNoPlaces(t *testing.T) {
	m, err := New(ref.New[float32](), variants["internvl"], Heads{LM: true}, false)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	b := imageBatch(m)
	if list, next := m.Places(b.Tokens); list != nil || int(next) != len(b.Tokens) {
		t.Errorf("places %v up to %d, of %d tokens", list, next, len(b.Tokens))
	}
}

// The table of cosines reaches to the largest position, of whichever axis.
func TestTurnsOfFarPlaces(t *testing.T) {
	c := variants["qwen2.5-vl"]
	be := ref.New[float64]()
	for axis := range 3 {
		m, err := New(be, c, Heads{LM: true}, false)
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close()
		ws, err := NewWorkspace(be, c, m.Heads, Capacity{Tokens: 4, Sequences: 1}, KeepNothing)
		if err != nil {
			t.Fatal(err)
		}
		defer ws.Close()
		m.turnRows(&ws.images, []Place{{}}) // a small table, which grows
		var p Place
		p[axis] = ropeStep
		m.turnRows(&ws.images, []Place{p})
		freq, _ := c.Frequencies(c.RopeTheta, c.Rope, 0)
		for pair, f := range freq {
			want := 1.0
			if c.Images.section(pair) == axis {
				want = math.Cos(ropeStep * f)
			}
			if got := ws.images.cosines[pair]; got != want {
				t.Errorf("axis %d, pair %d: cosine %g, want %g", axis, pair, got, want)
			}
		}
	}
}

// Each of the first layers adds its own features to rows of images, and leaves every bit of rows of text, also the sign
// of 0.
func TestDeepFeatures(t *testing.T) {
	c := variants["qwen3-vl"]
	be := ref.New[float32]()
	m, err := New(be, c, Heads{LM: true}, false)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	b := imageBatch(m)
	ws, err := NewWorkspace(be, c, m.Heads, Capacity{Tokens: len(b.Tokens), Sequences: len(b.Prompt)}, KeepNothing)
	if err != nil {
		t.Fatal(err)
	}
	defer ws.Close()
	ws.Load(b)
	m.showImages(ws)
	for l := range c.Layers {
		delta, scratch := make([]float32, ws.n*c.Width), make([]float32, ws.n*c.Width)
		for i := range delta {
			delta[i] = float32(math.Copysign(0, -1))
		}
		m.deepen(&ws.images, l, kernels.Host(delta), kernels.Host(scratch))
		for i, v := range delta {
			want := float32(math.Copysign(0, -1))
			if id := ws.ids.host[i/c.Width]; int(id) >= c.Vocab && l < c.Images.Deep {
				im := m.images.Of(id)
				row := (1+l)*im.Tokens() + int(id-im.First)
				want = m.images.Features(be, im)[row*c.Width+i%c.Width]
			}
			if math.Float32bits(v) != math.Float32bits(want) {
				t.Fatalf("layer %d, row %d: %g, want %g", l, i/c.Width, v, want)
			}
		}
	}
}

// Images within a completion are read as in a prompt: the tokens behind them have the same log-probs, and tokens of
// images, which nobody draws, have finite ones.
func TestImagesInCompletions(t *testing.T) {
	for _, name := range []string{"qwen2.5-vl", "qwen3-vl", "gemma3 images"} {
		c := variants[name]
		be := ref.New[float32]()
		m, err := New(be, c, Heads{LM: true}, false)
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close()
		initialised(m)
		g := newGallery(c, [2]int{2, 3}, [2]int{1, 2})
		m.SetImages(g)
		tokens := slices.Concat([]int32{1}, g.tokens(1), []int32{2, 3}, g.tokens(0), []int32{4, 5, 6})
		ws, err := NewWorkspace(be, c, m.Heads, Capacity{Tokens: len(tokens), Sequences: 1}, KeepNothing)
		if err != nil {
			t.Fatal(err)
		}
		defer ws.Close()
		var got [2][]float32
		for i, prompt := range []int{4, len(tokens) - 2} {
			ws.Load(Batch{Tokens: tokens, Offsets: []int32{0, int32(len(tokens))}, Prompt: []int32{int32(prompt)}})
			m.Forward(ws)
			m.Scores(ws, 1)
			got[i] = make([]float32, ws.Rows())
			be.Copy(kernels.Host(got[i]), ws.LogProb())
		}
		n := len(got[0]) - len(got[1])
		if diff := cmp.Diff(got[1], got[0][n:]); diff != "" {
			t.Errorf("%s: log-probs behind the image (-in the prompt +in the completion):\n%s", name, diff)
		}
		for i, v := range got[0] {
			if !(v < 0) || math.IsInf(float64(v), 0) {
				t.Errorf("%s: token %d of the completion has the log-prob %g", name, i, v)
			}
		}
	}
}

func TestImpossibleImageSettings(t *testing.T) {
	for want, s := range map[string]ImageSettings{
		"sections [1 1 1] are 3 rotary pairs, a head has 4": {Sections: [3]int{1, 1, 1}},
		"sections [2 2 1] are 5 rotary pairs, a head has 4": {Sections: [3]int{2, 2, 1}},
		"a section of -1 rotary pairs":                      {Sections: [3]int{5, -1, 0}},
		"features are added after 4 of 3 layers":            {Sections: [3]int{2, 1, 1}, Deep: 4},
		"features are added after -1 of 3 layers":           {Sections: [3]int{2, 1, 1}, Deep: -1},
		"sections [2 1 1] of rotary pairs and positions":    {Sections: [3]int{2, 1, 1}, Flat: true},
		"sections [0 0 0] of rotary pairs and positions":    {Interleaved: true, Flat: true},
		"-1 tokens of an image see each other":              {Flat: true, Block: -1},
	} {
		c := variants["qwen3-vl"]
		if err := c.Validate(); err != nil {
			t.Fatal(err)
		}
		c.Images = s
		if err := c.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", s, err, want)
		}
	}
}

// The tokens of an image see each other: the last one changes what the first one's row computes, in layers with a window,
// too, and none of the rows before the image.
func TestTokensOfAnImageSeeEachOther(t *testing.T) {
	c := variants["gemma3 images"]
	c.Layers, c.Windowed = 1, []bool{true} // one layer, so that no row sees further through others
	be := ref.New[float64]()
	m, err := New(be, c, Heads{LM: true}, false)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	initialised(m)
	g := newGallery(c, [2]int{2, 3})
	m.SetImages(g)
	tokens := slices.Concat([]int32{1, 2}, g.tokens(0), []int32{3, 4, 5})
	ws, err := NewWorkspace(be, c, m.Heads, Capacity{Tokens: len(tokens), Sequences: 1}, KeepNothing)
	if err != nil {
		t.Fatal(err)
	}
	defer ws.Close()
	hidden := func() []float64 {
		ws.Load(Batch{Tokens: tokens, Offsets: []int32{0, int32(len(tokens))}, Prompt: []int32{int32(len(tokens))}})
		m.Forward(ws)
		return hostOf(be, ws.Hidden())
	}
	before := hidden()
	for i := range c.Width {
		g.features[0][5*c.Width+i] += 0.5
	}
	after := hidden()
	for i := range tokens {
		same := slices.Equal(before[i*c.Width:(i+1)*c.Width], after[i*c.Width:(i+1)*c.Width])
		if want := i < 2; same != want { // and the window of the last token reaches the image's last one
			t.Errorf("token %d: unchanged is %v, want %v", i, same, want)
		}
	}
	torn := tokens[:7]
	defer func() {
		if recover() == nil {
			t.Error("half an image is taken")
		}
	}()
	ws.Load(Batch{Tokens: torn, Offsets: []int32{0, 7}, Prompt: []int32{7}})
	m.Forward(ws)
}

// Windows have room for an image whose tokens see each other.
func TestImagesWiderThanWindows(t *testing.T) {
	c := variants["gemma3 images"]
	c.Images.Block = 7
	if err := c.Validate(); err == nil || !strings.Contains(err.Error(), "7 tokens of an image see each other, in windows of 6") {
		t.Errorf("error %v", err)
	}
}

// Features of another shape are a fault of the program.
func TestFeaturesOfAnotherShape(t *testing.T) {
	c := variants["qwen3-vl"]
	be := ref.New[float32]()
	m, err := New(be, c, Heads{LM: true}, false)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	b := imageBatch(m)
	g := m.images.(*gallery)
	g.features[0] = append(g.features[0], make([]float32, c.Width)...)
	ws, err := NewWorkspace(be, c, m.Heads, Capacity{Tokens: len(b.Tokens), Sequences: len(b.Prompt)}, KeepNothing)
	if err != nil {
		t.Fatal(err)
	}
	defer ws.Close()
	defer func() {
		if recover() == nil {
			t.Error("a row of features too many is taken")
		}
	}()
	ws.Load(b)
	m.showImages(ws)
}

// Qwen2.5-VL's pairs turn by time, then height, then width; in Qwen3-VL the three take turns as long as each has some.
func TestSections(t *testing.T) {
	for _, tt := range []struct {
		s    ImageSettings
		want string
	}{
		{ImageSettings{Sections: [3]int{2, 3, 3}}, "TTHHHWWW"},
		{ImageSettings{Sections: [3]int{3, 2, 2}, Interleaved: true}, "THWTHWT"},
		{ImageSettings{Sections: [3]int{4, 2, 1}, Interleaved: true}, "THWTHTT"},
	} {
		got := ""
		for pair := range len(tt.want) {
			got += string("THW"[tt.s.section(pair)])
		}
		if got != tt.want {
			t.Errorf("%v: %s, want %s", tt.s, got, tt.want)
		}
	}
}

// An image of one token with the features of a token of text computes what that token does.
func TestImageOfOneTokenIsAToken(t *testing.T) {
	for _, name := range []string{"qwen2.5-vl", "qwen3-vl", "qwen3.5 images", "glm4.1v", "internvl"} {
		c := variants[name]
		be := ref.New[float32]()
		m, err := New(be, c, Heads{LM: true}, false)
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close()
		initialised(m)
		ws, err := NewWorkspace(be, c, m.Heads, Capacity{Tokens: 12, Sequences: 2}, KeepNothing)
		if err != nil {
			t.Fatal(err)
		}
		defer ws.Close()
		g := newGallery(c, [2]int{1, 1})
		clear(g.features[0])
		be.Copy(kernels.Host(g.features[0][:c.Width]), m.embed.W.Slice(5*c.Width, 6*c.Width))
		be.Sync()
		m.SetImages(g)
		scores := func(id int32) []float32 {
			ws.Load(Batch{Tokens: []int32{1, id, 2, 3, 4, 5}, Offsets: []int32{0, 6}, Prompt: []int32{3}})
			m.Forward(ws)
			m.Scores(ws, 1)
			x := make([]float32, ws.Rows())
			be.Copy(kernels.Host(x), ws.LogProb())
			be.Sync()
			return x
		}
		if got, want := scores(g.images[0].First), scores(5); !slices.Equal(got, want) {
			t.Errorf("%s: an image has the log-probs %v, the token of text with its features %v", name, got, want)
		}
		if scores(5)[0] == scores(6)[0] {
			t.Error("the token makes no difference")
		}
	}
}

// A sequence with images has the same bits alone, packed with others and behind a shared prompt, in both classes.
func TestImagesPacked(t *testing.T) {
	for _, name := range []string{"qwen2.5-vl", "qwen3-vl", "qwen3.5 images", "glm4.1v", "internvl", "gemma3 images"} {
		for _, operand := range []kernels.DType{kernels.F32, kernels.BF16} {
			c := variants[name]
			be, err := cpu.Open(cpu.Options{Threads: 2, Operand: operand})
			if err != nil {
				t.Fatal(err)
			}
			defer be.Close()
			m, err := New(be, c, Heads{LM: true}, false)
			if err != nil {
				t.Fatal(err)
			}
			defer m.Close()
			initialised(m)
			ws, err := NewWorkspace(be, c, m.Heads, Capacity{Tokens: 60, Sequences: 4}, KeepNothing)
			if err != nil {
				t.Fatal(err)
			}
			defer ws.Close()
			scores := func(b Batch) []float32 {
				ws.Load(b)
				m.Forward(ws)
				m.Scores(ws, 0.7)
				x := make([]float32, ws.Rows())
				be.Copy(kernels.Host(x), ws.LogProb())
				be.Sync()
				return x
			}
			b := imageBatch(m)
			together := scores(b)
			var alone []float32
			for s, n := range b.Prompt {
				alone = append(alone, scores(Batch{Tokens: b.Tokens[b.Offsets[s]:b.Offsets[s+1]],
					Offsets: []int32{0, b.Offsets[s+1] - b.Offsets[s]}, Prompt: []int32{n}})...)
			}
			if !slices.Equal(together, alone) {
				t.Errorf("%s/%v: together %v, alone %v", name, operand, together, alone)
			}
			for _, x := range together {
				if math.IsNaN(float64(x)) {
					t.Errorf("%s: %v", name, together)
				}
			}
		}
	}
}

// Two orders of the same features give other log-probs: rows and columns turn differently.
func TestImageRowsDiffer(t *testing.T) {
	c := variants["qwen2.5-vl"]
	be := ref.New[float64]()
	m, err := New(be, c, Heads{LM: true}, false)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	initialised(m)
	ws, err := NewWorkspace(be, c, m.Heads, Capacity{Tokens: 12, Sequences: 1}, KeepNothing)
	if err != nil {
		t.Fatal(err)
	}
	defer ws.Close()
	var got [2]float64
	for i, size := range [][2]int{{2, 3}, {3, 2}} {
		g := newGallery(c, size)
		m.SetImages(g)
		ws.Load(Batch{Tokens: slices.Concat([]int32{1}, g.tokens(0), []int32{2, 3}), Offsets: []int32{0, 9}, Prompt: []int32{8}})
		m.Forward(ws)
		m.Scores(ws, 1)
		x := make([]float64, 1)
		be.Copy(kernels.Host(x), ws.LogProb())
		be.Sync()
		got[i] = x[0]
	}
	if got[0] == got[1] {
		t.Errorf("2×3 and 3×2 tokens give the same log-prob %g", got[0])
	}
}
