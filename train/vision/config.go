// Package vision computes the features of images that a language model reads: the frozen vision towers of Qwen2-VL
// (arXiv:2409.12191 §2.1), Qwen2.5-VL (arXiv:2502.13923 §2.1) and Qwen3-VL (arXiv:2511.21631), as transformers 5
// computes them, written in operations of package kernels. It neither trains a tower nor reads videos.
//
// Dims:
//
//	N  patches of an image    C  width of the tower    F  width of its feed-forward blocks
//	H  heads                  D  channels of a head    T  tokens of an image, N/Merge²
package vision

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"exp/kernels"
)

// Kind is a family of towers, by the model_type of its models.
type Kind string

const (
	Qwen2VL  Kind = "qwen2_vl"
	Qwen25VL Kind = "qwen2_5_vl"
	Qwen3VL  Kind = "qwen3_vl"
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
	// Side is the number of learned positions along a side of the image (Qwen3-VL).
	Side int `json:",omitempty"`
	// Deep lists the layers after which features for a layer of the language model leave the tower (Qwen3-VL).
	Deep []int `json:",omitempty"`
}

// Constants of all towers.
const (
	normEps    = 1e-6
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
	if c.Width%c.Heads != 0 || c.Width/c.Heads%4 != 0 {
		bad("%d channels in %d heads: a head needs a multiple of 4", c.Width, c.Heads)
	}
	known := []string{QuickGELU, GELU, GELUTanh}
	switch c.Kind {
	case Qwen25VL:
		known = []string{SiLU}
	case Qwen2VL, Qwen3VL:
	default:
		bad("%q is not a kind of tower", string(c.Kind))
	}
	if !slices.Contains(known, c.Activation) {
		bad("activation %q of a tower of kind %s", c.Activation, c.Kind)
	}
	if (c.Kind == Qwen25VL) != (c.Window > 0) || c.Kind != Qwen25VL && len(c.Full) > 0 {
		bad("windows of %d tokens, layers without them %v: only towers of %s have them", c.Window, c.Full, Qwen25VL)
	}
	if (c.Kind == Qwen3VL) != (c.Side > 0) || c.Kind != Qwen3VL && len(c.Deep) > 0 {
		bad("%d learned positions, features after layers %v: only towers of %s have them", c.Side, c.Deep, Qwen3VL)
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

// pixels returns the numbers of a patch.
func (c Config) pixels() int { return c.Channels * c.Frames * c.Patch * c.Patch }

// attention returns the layout of queries, keys and values.
func (c Config) attention() kernels.AttentionShape {
	D := c.Width / c.Heads
	return kernels.AttentionShape{H: c.Heads, K: c.Heads, D: D, Scale: inverseRoot(D)}
}

// windowed reports whether layer l attends within windows.
func (c Config) windowed(l int) bool { return c.Window > 0 && !slices.Contains(c.Full, l) }

// factors returns how many numbers the activation is computed from.
func (c Config) factors() int {
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
		for i, name := range m.names {
			shape := []int{m.rows[i], m.in}
			if name == patchMap {
				shape = []int{m.rows[i], c.Channels, c.Frames, c.Patch, c.Patch}
			}
			list = append(list, Tensor{name + ".weight", shape})
			if m.bias {
				list = append(list, Tensor{name + ".bias", shape[:1]})
			}
		}
	}
	for _, n := range c.norms() {
		list = append(list, Tensor{n.name + ".weight", []int{n.width}})
		if c.layerNorms() {
			list = append(list, Tensor{n.name + ".bias", []int{n.width}})
		}
	}
	if c.Side > 0 {
		list = append(list, Tensor{positionTable, []int{c.Side * c.Side, c.Width}})
	}
	return list
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
		size := 4 // of vectors and of the learned positions
		if len(t.Shape) > 1 && t.Name != positionTable {
			size = dtype.Size()
		}
		n += int64(t.Len()) * int64(size)
	}
	return n
}

// Bytes returns the memory that Encode takes for a square image of at least so many patches, beside the weights, with
// floats and operands of these types.
func (c Config) Bytes(float, operand kernels.DType, patches int) (n int64) {
	side := int(math.Ceil(math.Sqrt(float64(patches))))
	side = max(1, (side+c.Merge-1)/c.Merge) * c.Merge
	x := &pass{Tower: &Tower{Config: c}, rows: side, columns: side, n: side * side}
	for t, k := range x.plan(float, operand, tokensAtOnce).lengths() {
		n += int64(k) * int64(t.Size())
	}
	return n
}

// FLOPs returns twice the multiply-adds that the features of an image of some rows and columns of patches take.
func (c Config) FLOPs(rows, columns int) (n float64) {
	N := float64(rows * columns)
	for _, m := range c.maps() {
		of := N
		if m.merged {
			of /= float64(c.unit())
		}
		for _, out := range m.rows {
			n += 2 * of * float64(out) * float64(m.in)
		}
	}
	windows := 0.0
	for _, w := range c.windows(rows, columns) {
		windows += float64(len(w)) * float64(len(w))
	}
	for l := range c.Layers {
		seen := N * N
		if c.windowed(l) {
			seen = windows
		}
		n += 4 * seen * float64(c.Width)
	}
	return n
}
