// Package vision computes the features of images that a language model reads: the vision towers of Qwen2-VL
// (arXiv:2409.12191 §2.1), Qwen2.5-VL (arXiv:2502.13923 §2.1), Qwen3-VL (arXiv:2511.21631), GLM-4.1V
// (arXiv:2507.01006 §2), InternVL (arXiv:2504.10479 §2.1), Idefics3 (arXiv:2408.12637 §2.2), SmolVLM
// (arXiv:2504.05299), Pixtral (arXiv:2410.07073 §2) and Gemma 3 (arXiv:2503.19786 §2.1), as transformers 5 computes
// them, and their gradients. It is written in operations of package kernels. A video is read part by part: a part is
// an image whose patches span Frames frames, and no part attends to another.
//
// Dims:
//
//	N  patches of an image    C  width of the tower    F  width of its feed-forward blocks
//	H  heads                  D  channels of a head    T  tokens of an image, N/Merge²
//	M  rows of an image: its patches, then one for each tile (InternVL)
package vision

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"exp/kernels"
)

// Activations of feed-forward blocks, by transformers' names.
const (
	SiLU      = "silu"       // with gates
	QuickGELU = "quick_gelu" // x·Sigmoid(1.702·x)
	GELU      = "gelu"
	GELUTanh  = "gelu_pytorch_tanh"
)

// Config describes a tower. It enters identities of runs as JSON.
type Config struct {
	Kind       Kind
	Layers     int
	Width      int // C
	Heads      int
	FFN        int // F
	Activation string
	Channels   int // of a pixel
	Patch      int // pixels of a patch's side
	Frames     int // that a patch spans: a still image is repeated
	Merge      int // patches of a token's side
	Out        int // width of a token's features
	// Window is the number of tokens of a window's side (Qwen2.5-VL): a patch attends to its window alone, but in the
	// layers of Full to the whole image.
	Window int   `json:",omitempty"`
	Full   []int `json:",omitempty"`
	// Side is the number of learned positions along a side of the image (Qwen3-VL, GLM-4.1V), or of a tile, which has
	// as many patches (InternVL, Idefics3, Gemma 3). transformers finds Idefics3's in float32, which on a CPU are
	// these for the published tiles of 26, 27 and 32 patches a side.
	Side int `json:",omitempty"`
	// Deep lists the layers after which features for a layer of the language model leave the tower (Qwen3-VL).
	Deep []int `json:",omitempty"`
	// Inner is the width of the feed-forward block behind the others, which reads tokens (GLM-4.1V).
	Inner int `json:",omitempty"`
	// Eps is what norms of blocks add to the variance (GLM-4.1V, InternVL, Idefics3, Pixtral, Gemma 3); 0: 1e-6.
	Eps float64 `json:",omitempty"`
	// MergerEps is what the merger's norm adds (Pixtral).
	MergerEps float64 `json:",omitempty"`
	// Bias says that queries, keys and values have biases (GLM-4.1V, InternVL; Qwen's always have).
	Bias bool `json:",omitempty"`
	// RMS says that norms of blocks are RMSNorms, not LayerNorms, and QKNorm that queries and keys have RMSNorms over
	// all heads (InternViT-6B).
	RMS    bool `json:",omitempty"`
	QKNorm bool `json:",omitempty"`
	// Last says that a LayerNorm follows the blocks (InternVL).
	Last bool `json:",omitempty"`
}

// Constants of all towers.
const (
	normEps    = 1e-6
	laterEps   = 1e-5 // of LayerNorms behind the blocks of GLM-4.1V and InternVL
	ropeTheta  = 1e4
	quickSlope = 1.702 // of QuickGELU's Sigmoid
)

// Validate reports every setting that no tower here has.
func (c Config) Validate() error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf("vision: "+format, args...)) }
	for _, x := range []struct {
		what string
		n    int
	}{{"layers", c.Layers}, {"channels", c.Width}, {"heads", c.Heads}, {"feed-forward channels", c.FFN},
		{"channels of a pixel", c.Channels}, {"pixels of a patch", c.Patch}, {"frames of a patch", c.Frames},
		{"patches of a token's side", c.Merge}, {"features of a token", c.Out}} {
		if x.n < 1 {
			bad("%d %s", x.n, x.what)
		}
	}
	if len(errs) > 0 {
		return errors.Join(errs...)
	}
	x, known := c.Kind.traits()
	if !known {
		bad("%q is not a kind of tower", string(c.Kind))
		return errors.Join(errs...)
	}
	if c.Width%c.Heads != 0 || c.Width/c.Heads%4 != 0 {
		bad("%d channels in %d heads: a head needs a multiple of 4", c.Width, c.Heads)
	}
	if !slices.Contains(x.activations, c.Activation) {
		bad("activation %q of a tower of kind %s", c.Activation, c.Kind)
	}
	if x.windows != (c.Window > 0) || !x.windows && len(c.Full) > 0 {
		bad("windows of %d tokens, layers without them %v: only towers of %s have them", c.Window, c.Full, Qwen25VL)
	}
	if (x.learned != nowhere) != (c.Side > 0) || !x.deep && len(c.Deep) > 0 {
		bad("%d learned positions a side, features after layers %v in a tower of kind %s", c.Side, c.Deep, c.Kind)
	}
	if (c.Kind == GLM4V) != (c.Inner > 0) {
		bad("a feed-forward block of %d channels behind the others: only towers of %s have one", c.Inner, GLM4V)
	}
	if (c.Kind == Pixtral) != (c.MergerEps > 0) {
		bad("a merger's norm that adds %g: only towers of %s say that", c.MergerEps, Pixtral)
	}
	if x.tiled && (c.Side%c.Merge != 0 || c.Frames != 1) {
		bad("tiles of %d·%d patches, %d a side in a token, of %d frames", c.Side, c.Side, c.Merge, c.Frames)
	}
	if free := c.Bias || c.RMS || c.QKNorm || c.Last; free && !x.free || c.Eps != 0 && !x.eps || !(c.Eps >= 0) {
		bad("a tower of kind %s has other norms and biases", c.Kind)
	}
	for _, list := range [][]int{c.Full, c.Deep} {
		for i, l := range list {
			if l < 0 || l >= c.Layers || i > 0 && l <= list[i-1] {
				bad("layers %v do not ascend from 0 to %d", list, c.Layers-1)
				break
			}
		}
	}
	return errors.Join(errs...)
}

// unit returns the patches of a token.
func (c Config) unit() int { return c.Merge * c.Merge }

// atOnce returns the tokens that feed-forward blocks and mergers take at once.
func (c Config) atOnce() int { return max(1, patchesAtOnce/c.unit()) }

// pixels returns the numbers of a patch.
func (c Config) pixels() int { return c.Channels * c.Frames * c.Patch * c.Patch }

// attention returns the layout of queries, keys and values.
func (c Config) attention() kernels.AttentionShape {
	D := c.Width / c.Heads
	return kernels.AttentionShape{H: c.Heads, K: c.Heads, D: D, Scale: inverseRoot(D)}
}

// windowed reports whether layer l attends within windows.
func (c Config) windowed(l int) bool { return c.Window > 0 && !slices.Contains(c.Full, l) }

// gates returns how many numbers the activation of blocks is computed from.
func (c Config) gates() int {
	if c.Activation == SiLU {
		return 2
	}
	return 1
}

// Tensor is a named array of a tower's weights, without the beginning of its name ("visual.").
type Tensor struct {
	Name  string
	Shape []int
}

// Len returns the number of elements.
func (t Tensor) Len() int {
	n := 1
	for _, d := range t.Shape {
		n *= d
	}
	return n
}

// Tensors returns the weights of a tower.
func (c Config) Tensors() (list []Tensor) {
	for _, m := range c.maps() {
		biases := m.biases()
		for i, w := range m.weights() {
			if list = append(list, w); m.bias {
				list = append(list, biases[i])
			}
		}
	}
	for _, n := range c.norms() {
		list = append(append(list, n.weight()...), n.shift()...)
	}
	for _, name := range c.factors() {
		list = append(list, c.factor(name)...)
	}
	return append(list, c.onHost()...)
}

// Params returns the number of a tower's weights.
func (c Config) Params() (n int) {
	for _, t := range c.Tensors() {
		n += t.Len()
	}
	return n
}

// WeightBytes returns what the weights take in memory, with matrices of type dtype.
func (c Config) WeightBytes(dtype kernels.DType) (n int64) {
	for _, t := range c.Tensors() {
		size := 4 // of vectors
		if len(t.Shape) > 1 {
			size = dtype.Size()
		}
		n += int64(t.Len()) * int64(size)
	}
	for _, t := range c.onHost() {
		n += int64(t.Len()) * int64(8-dtype.Size())
	}
	return n
}

// Bytes returns the memory that Encode takes for a square image of at least so many patches, beside the weights, with
// floats and operands of these types.
func (c Config) Bytes(float, operand kernels.DType, patches int) int64 {
	rows, columns := c.square(patches)
	return newPass(&Tower{Config: c}, rows, columns).plan(float, operand, c.atOnce()).bytes()
}

// square returns the rows and columns of patches of the smallest square image, or of the fewest tiles, with at least
// so many patches.
func (c Config) square(patches int) (rows, columns int) {
	if c.has().tiled {
		return max(1, (patches+c.Side*c.Side-1)/(c.Side*c.Side)) * c.Side, c.Side
	}
	side := int(math.Ceil(math.Sqrt(float64(patches))))
	side = max(1, (side+c.Merge-1)/c.Merge) * c.Merge
	return side, side
}
