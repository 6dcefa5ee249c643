package vision

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"exp/kernels"
	"exp/kernels/cpu"
	"exp/kernels/ref"
	"exp/train/picture"
)

// tiny returns a tower of each kind. Heads have 12 channels.
func tiny(kind Kind) Config {
	c := Config{Kind: kind, Layers: 2, Width: 24, Heads: 2, FFN: 13, Activation: QuickGELU, Channels: 3, Patch: 2,
		Frames: 2, Merge: 2, Out: 10}
	switch kind {
	case Qwen25VL:
		c.Activation, c.Window, c.Full = SiLU, 2, []int{1}
	case Qwen3VL:
		c.Activation, c.Side, c.Deep = GELUTanh, 4, []int{0}
	case GLM4V:
		c.Activation, c.Side, c.Inner, c.Eps = SiLU, 3, 14, 1e-5
	case InternVL:
		c.Activation, c.Side, c.Frames, c.Bias, c.Last = GELU, 2, 1, true, true
	case Idefics3:
		c.Activation, c.Side, c.Frames, c.Eps = GELUTanh, 2, 1, 1e-5
	case Pixtral:
		c.Activation, c.Frames, c.Eps, c.MergerEps = SiLU, 1, 1e-5, 1e-4
	case Gemma3:
		c.Activation, c.Side, c.Frames, c.Eps = GELUTanh, 2, 1, 1e-5
	}
	return c
}

func kinds() []Kind {
	return []Kind{Qwen2VL, Qwen25VL, Qwen3VL, GLM4V, InternVL, Idefics3, Pixtral, Gemma3}
}

// waves reads weights that are BF16 numbers.
func waves(c Config, dtype kernels.DType) Read {
	byName := map[string]Tensor{}
	for _, x := range c.Tensors() {
		byName[x.Name] = x
	}
	return func(name string) (kernels.Buffer, error) {
		x, ok := byName[name]
		if !ok {
			return kernels.Buffer{}, errors.New("no tensor " + name)
		}
		half, wide := make([]uint16, x.Len()), make([]float32, x.Len())
		for i := range wide {
			half[i] = uint16(math.Float32bits(float32(math.Sin(float64(i*len(name)))/2)) >> 16)
			wide[i] = widened(half[i])
		}
		if dtype == kernels.BF16 && len(x.Shape) > 1 {
			return kernels.HostBits(half), nil
		}
		return kernels.Host(wide), nil
	}
}

// picturedAs returns an image of so many patches; a tower of tiles reads them in tiles.
func picturedAs(c Config, rows, columns int, seed float64) picture.Patches {
	if c.has().tiled {
		rows, columns = rows*columns/c.Side, c.Side
	}
	p := picture.Patches{Rows: rows, Columns: columns, Values: make([]float32, rows*columns*c.pixels())}
	for i := range p.Values {
		p.Values[i] = float32(math.Sin(seed + float64(i)))
	}
	return p
}

func openCPU(t *testing.T, threads int, operand kernels.DType) kernels.Backend {
	t.Helper()
	be, err := cpu.Open(cpu.Options{Threads: threads, Operand: operand})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(be.Close)
	return be
}

func open(t *testing.T, be kernels.Backend, c Config, dtype kernels.DType) *Tower {
	t.Helper()
	x, err := New(be, c, dtype, waves(c, dtype))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(x.Close)
	return x
}

// Features depend on the image alone: not on threads, on images before it, or on how BF16 weights are stored.
func TestFeaturesDependOnTheImageAlone(t *testing.T) {
	for _, kind := range kinds() {
		t.Run(string(kind), func(t *testing.T) {
			c := tiny(kind)
			one, two := openCPU(t, 1, kernels.F32), openCPU(t, 2, kernels.F32)
			reference := kernels.Backend(ref.New[float32]())
			rows := 68
			if c.has().eps {
				rows = 16 // TestTokensAtOnce has steps of these towers, too
			}
			a, b := picturedAs(c, 6, 10, 1), picturedAs(c, rows, 40, 2)
			first := open(t, one, c, kernels.F32)
			wantA, wantB := first.Encode(one, a), first.Encode(one, b)
			if slices.Equal(wantA, wantB[:len(wantA)]) || len(wantA) != (1+len(c.Deep))*15*c.Out {
				t.Fatalf("features [%d] of two images are alike", len(wantA))
			}
			for name, x := range map[string]struct {
				be    kernels.Backend
				dtype kernels.DType
			}{"two threads": {two, kernels.F32}, "BF16 weights": {two, kernels.BF16}, "reference": {reference, kernels.F32}} {
				tower := open(t, x.be, c, x.dtype)
				gotB := wantB
				if x.be != reference { // which is slow
					gotB = tower.Encode(x.be, b)
				}
				if gotA := tower.Encode(x.be, a); !slices.Equal(gotA, wantA) || !slices.Equal(gotB, wantB) {
					t.Errorf("%s: other bits", name)
				}
			}
		})
	}
}

// share is a rank's share of a device, whose products others must help with.
type share struct {
	kernels.Backend
	device kernels.Backend
}

func (s share) Whole() kernels.Backend { return s.device }

// A rank that shares products with others encodes alone.
func TestRanksEncodeAlone(t *testing.T) {
	c := tiny(Qwen25VL)
	be := openCPU(t, 1, kernels.F32)
	p := picturedAs(c, 6, 10, 1)
	rank := share{device: be} // every operation of its own panics
	if got := open(t, rank, c, kernels.F32).Encode(rank, p); !slices.Equal(got, open(t, be, c, kernels.F32).Encode(be, p)) {
		t.Error("other features")
	}
}

// Attention sees all of a segment and nothing else: a changed pixel in one window changes tokens of that window alone
// where all layers have windows, and all tokens where one layer has none.
func TestWindowsAreApart(t *testing.T) {
	c := tiny(Qwen25VL)
	be := openCPU(t, 2, kernels.F32)
	for _, full := range [][]int{nil, {1}} {
		c.Full = full
		tower := open(t, be, c, kernels.F32)
		p := picturedAs(c, 8, 8, 3) // 4×4 tokens, four windows
		before := tower.Encode(be, p)
		p.Values[0]++
		after := tower.Encode(be, p)
		for token := range 16 {
			same := slices.Equal(before[token*c.Out:(token+1)*c.Out], after[token*c.Out:(token+1)*c.Out])
			inside := token/4 < 2 && token%4 < 2
			if want := !inside && full == nil; same != want {
				t.Errorf("layers without windows %v, token %d: the same is %v", full, token, same)
			}
		}
	}
}

// In class cpu/bf16 features are close to the reference's, and repeat.
func TestFeaturesOfRoundedFactors(t *testing.T) {
	for _, kind := range kinds() {
		c := tiny(kind)
		be, exact := openCPU(t, 2, kernels.BF16), ref.New[float64]()
		p := picturedAs(c, 6, 10, 1)
		tower := open(t, be, c, kernels.BF16)
		got, again := tower.Encode(be, p), tower.Encode(be, p)
		want := open(t, exact, c, kernels.F32).Encode(exact, p)
		if !slices.Equal(got, again) {
			t.Errorf("%s: other bits the second time", kind)
		}
		var off, all float64
		for i, w := range want {
			off, all = off+math.Pow(float64(got[i]-w), 2), all+math.Pow(float64(w), 2)
		}
		limit := 1e-3 // BF16 has 8 bits; about the error of 50 roundings
		if kind == GLM4V {
			limit = 4e-3 // its merger has twice as many maps, and a norm between them
		}
		if !(off <= limit*all) {
			t.Errorf("%s: off by %g of %g", kind, math.Sqrt(off), math.Sqrt(all))
		}
	}
}

// Numbers of parameters of transformers 5.24 for the classes' defaults, with width 1280 of Qwen2.5-VL.
func TestParams(t *testing.T) {
	for _, tt := range []struct {
		c    Config
		want int
	}{
		{Config{Kind: Qwen2VL, Layers: 32, Width: 1280, Heads: 16, FFN: 5120, Activation: QuickGELU, Channels: 3, Patch: 14,
			Frames: 2, Merge: 2, Out: 3584}, 675_759_104},
		{Config{Kind: Qwen25VL, Layers: 32, Width: 1280, Heads: 16, FFN: 3420, Activation: SiLU, Channels: 3, Patch: 14,
			Frames: 2, Merge: 2, Out: 3584, Window: 4, Full: []int{7, 15, 23, 31}}, 676_550_144},
		{Config{Kind: Qwen3VL, Layers: 27, Width: 1152, Heads: 16, FFN: 4304, Activation: GELUTanh, Channels: 3, Patch: 16,
			Frames: 2, Merge: 2, Out: 3584, Side: 48, Deep: []int{8, 16, 24}}, 566_949_104},
		{Config{Kind: GLM4V, Layers: 24, Width: 1536, Heads: 12, FFN: 4096, Activation: SiLU, Channels: 3, Patch: 14,
			Frames: 2, Merge: 2, Out: 4096, Side: 24, Inner: 13696, Eps: 1e-5}, 892_498_432},
		{Config{Kind: InternVL, Layers: 24, Width: 1024, Heads: 16, FFN: 4096, Activation: GELU, Channels: 3, Patch: 14,
			Frames: 1, Merge: 2, Out: 896, Side: 32, Bias: true}, 308_495_104},
		// SmolVLM2-500M
		{Config{Kind: Idefics3, Layers: 12, Width: 768, Heads: 12, FFN: 3072, Activation: GELUTanh, Channels: 3, Patch: 16,
			Frames: 1, Merge: 4, Out: 960, Side: 32, Eps: 1e-6}, 98_229_504},
	} {
		if err := tt.c.Validate(); err != nil {
			t.Error(err)
		}
		if got := tt.c.Params(); got != tt.want {
			t.Errorf("%s: %d parameters, want %d", tt.c.Kind, got, tt.want)
		}
	}
}

// 4 patches of width 4 (one head, one layer) make a token. Products: 4·24·4 of pixels, 4·(12·4 + 4·4 + 2·5·4) of the
// block, 16·16 + 3·16 of the merger; attention 2·4·4·4; all twice.
func TestFLOPs(t *testing.T) {
	c := Config{Kind: Qwen2VL, Layers: 1, Width: 4, Heads: 1, FFN: 5, Activation: GELU, Channels: 3, Patch: 2, Frames: 2,
		Merge: 2, Out: 3}
	if got, want := c.FLOPs(2, 2), 2.0*(4*24*4+4*(12*4+4*4+2*5*4)+16*16+3*16+2*4*4*4); got != want {
		t.Errorf("%g, want %g", got, want)
	}
}

// metered counts the bytes that are allocated on a backend.
type metered struct {
	kernels.Backend
	now, most int64
	sizes     map[kernels.Buffer]int64
}

func (m *metered) Alloc(t kernels.DType, n int) (kernels.Buffer, error) {
	b, err := m.Backend.Alloc(t, n)
	m.sizes[b] = int64(n * t.Size())
	m.now += m.sizes[b]
	m.most = max(m.most, m.now)
	return b, err
}

func (m *metered) Free(b kernels.Buffer) {
	m.now -= m.sizes[b]
	m.Backend.Free(b)
}

// Bytes and WeightBytes equal the bytes allocated, and nothing is left.
func TestBytes(t *testing.T) {
	for _, kind := range kinds() {
		c := tiny(kind)
		c.Width, c.FFN, c.Out = 128, 256, 128 // matrices without padding
		m := &metered{Backend: ref.New[float32](), sizes: map[kernels.Buffer]int64{}}
		x, err := New(m, c, kernels.F32, waves(c, kernels.F32))
		if err != nil {
			t.Fatal(err)
		}
		want := c.WeightBytes(kernels.F32)
		for _, x := range c.onHost() {
			want -= int64(8 * x.Len())
		}
		if m.now != want {
			t.Errorf("%s: weights take %d bytes, not %d", kind, m.now, want)
		}
		before, side := m.now, 12
		if c.has().eps {
			side = 6
		}
		x.Encode(m, picturedAs(c, side, side, 1))
		if got, want := m.most-before, c.Bytes(kernels.F32, kernels.F32, side*side-1); got != want {
			t.Errorf("%s: an image takes %d bytes, not %d", kind, got, want)
		}
		if x.Close(); m.now != 0 {
			t.Errorf("%s: %d bytes are left", kind, m.now)
		}
	}
}

// Feed-forward blocks and mergers that take a few tokens at once compute what they compute with all.
func TestTokensAtOnce(t *testing.T) {
	for _, kind := range kinds() {
		c, be := tiny(kind), openCPU(t, 2, kernels.F32)
		x := open(t, be, c, kernels.F32)
		p := picturedAs(c, 6, 10, 1)
		want := x.Encode(be, p)
		for _, atOnce := range []int{1, 4, 14} { // of 15
			got := make([]float32, len(want))
			if x.encode(be, p, kernels.Host(got), atOnce); !slices.Equal(got, want) {
				t.Errorf("%s, %d tokens at once: other bits", kind, atOnce)
			}
		}
	}
}

func TestImpossibleTowers(t *testing.T) {
	for want, change := range map[string]func(c *Config){
		"0 layers":              func(c *Config) { c.Layers = 0 },
		"24 channels in 5":      func(c *Config) { c.Heads = 5 },
		"multiple of 4":         func(c *Config) { c.Heads = 4 },
		"not a kind of tower":   func(c *Config) { c.Kind = "clip" },
		`activation "silu"`:     func(c *Config) { c.Activation = SiLU },
		"windows of 2 tokens":   func(c *Config) { c.Window = 2 },
		"4 learned positions":   func(c *Config) { c.Side = 4 },
		"block of 7 channels":   func(c *Config) { c.Inner = 7 },
		"other norms":           func(c *Config) { c.QKNorm = true },
		"a merger's norm":       func(c *Config) { c.MergerEps = 1e-5 },
		"biases":                func(c *Config) { c.Kind, c.Side, c.Frames, c.Bias = Idefics3, 2, 1, true },
		"features after layers": func(c *Config) { c.Deep = []int{1} },
	} {
		c := tiny(Qwen2VL)
		change(&c)
		if err := c.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
	c := tiny(Qwen3VL)
	if c.Deep = []int{1, 1}; c.Validate() == nil {
		t.Error("a layer twice")
	}
	if c.Deep = []int{2}; c.Validate() == nil {
		t.Error("layer 2 of two")
	}
	c = tiny(InternVL)
	if c.Side = 3; c.Validate() == nil {
		t.Error("a tile of 3·3 patches, 2 a side in a token")
	}
	c = tiny(Qwen2VL)
	be := openCPU(t, 1, kernels.F32)
	lost := errors.New("lost")
	_, err := New(be, c, kernels.F32, func(name string) (kernels.Buffer, error) {
		if name == "merger.mlp.2.bias" {
			return kernels.Buffer{}, lost
		}
		return waves(c, kernels.F32)(name)
	})
	if !errors.Is(err, lost) {
		t.Errorf("a tensor that cannot be read: %v", err)
	}
}
