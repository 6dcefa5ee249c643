package model

import (
	"math"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"

	"exp/kernels"
)

// Init draws all parameters, each tensor from its own stream, so adding or removing a head
// changes no other tensor. seed maps the label "init/NAME" to a seed.
//
//   - Weights of linear maps and the embedding: normal with standard deviation
//     Config.InitStd (Hugging Face's initializer_range); biases 0; norms 1 (0 where 1 is added to them);
//     attention sinks as linear maps.
//   - Linear attention: the convolution as linear maps, its norm and dt_bias 1, A_log the logarithm of a uniform
//     number up to 16, as in transformers; in OLMo Hybrid Softplus of dt_bias is a number from 0.001 to 0.1 whose
//     logarithm is uniform.
//   - xIELU: alpha_p and alpha_n so that both parts begin with 0.8, beta 0.5 and eps -1e-6, as in transformers.
//   - Adapters: A uniform in ±1/√in, B 0, as in PEFT: they change nothing at first.
//   - The log Z head: linear weights and biases uniform in ±1/√C, the layer norms 1
//     and 0, as its published code gets from its framework's defaults.
func (m *Model) Init(seed func(label string) uint64) {
	for _, t := range m.tensors {
		m.Set(t, 0, kernels.Host(initial(t, m.Config, seed("init/"+t.Name))))
	}
	m.Refresh()
}

// InitHeads is Init for the auxiliary heads alone: value head and log Z head.
func (m *Model) InitHeads(seed func(label string) uint64) {
	for _, t := range m.tensors {
		if t.Auxiliary() {
			m.Set(t, 0, kernels.Host(initial(t, m.Config, seed("init/"+t.Name))))
		}
	}
	m.Refresh()
}

func initial(t Tensor, c Config, seed uint64) []float32 {
	out := make([]float32, t.Len())
	head := t.prefix() == "proj_z"
	norm := strings.HasSuffix(t.Name, "norm.weight") || t.isScale() || head && len(t.Shape) == 1 &&
		strings.HasSuffix(t.Name, ".weight")
	linear := len(t.Shape) == 2
	switch {
	case deltaInitial(out, t, c, seed), xieluInitial(out, t):
	case norm && (c.UnitOffset || c.Norm == OffsetLayerNorm) && !head, t.AdapterB():
	case norm:
		for i := range out {
			out[i] = 1
		}
	case strings.HasSuffix(t.Name, ".lora_A.weight"):
		uniform(out, seed, 1/math.Sqrt(float64(t.Shape[1])))
	case head && (linear || !isNormBias(t)):
		uniform(out, seed, 1/math.Sqrt(float64(c.Width)))
	case linear, strings.HasSuffix(t.Name, ".sinks"):
		normal(out, seed, c.InitStd)
		c.biasInitial(out, t)
	}
	return out
}

// isNormBias reports whether a bias of the log Z head belongs to a LayerNorm, at places 2,
// 6, 10, … of its module list.
func isNormBias(t Tensor) bool {
	place := 0
	for _, ch := range strings.TrimPrefix(t.Name, "proj_z.net.") {
		if ch < '0' || ch > '9' {
			break
		}
		place = 10*place + int(ch-'0')
	}
	return place%4 == 2
}

// normal fills x with normal deviates of standard deviation std (Box and Muller), two from
// each Philox block. Blocks are numbered, so all cores draw.
func normal(x []float32, seed uint64, std float64) {
	const piece = 1 << 16
	key := kernels.PhiloxKey(seed)
	var next atomic.Int64
	var drawing sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), (len(x)+piece-1)/piece) {
		drawing.Go(func() {
			for lo := int(next.Add(piece)) - piece; lo < len(x); lo = int(next.Add(piece)) - piece {
				normalPiece(x, lo, min(lo+piece, len(x)), key, std)
			}
		})
	}
	drawing.Wait()
}

// normalPiece fills elements lo to hi of x; lo is even.
func normalPiece(x []float32, lo, hi int, key [2]uint32, std float64) {
	for i := lo; i < hi; i += 2 {
		w0, w1, w2, w3 := kernels.PhiloxWords(key[0], key[1], uint32(i/2), uint32(i/2>>32), 0, 0)
		r := std * math.Sqrt(-2*math.Log(open(w0, w1)))
		a := 2 * math.Pi * open(w2, w3)
		x[i] = float32(r * math.Cos(a))
		if i+1 < hi {
			x[i+1] = float32(r * math.Sin(a))
		}
	}
}

// uniform fills x with uniform deviates in ±bound.
func uniform(x []float32, seed uint64, bound float64) {
	key := kernels.PhiloxKey(seed)
	for i := range x {
		w := kernels.Philox(key, [4]uint32{uint32(i), uint32(i >> 32), 0, 0})
		x[i] = float32(bound * (2*open(w[0], w[1]) - 1))
	}
}

// open maps 64 random bits to the open interval (0,1), by the upper 52.
func open(lo, hi uint32) float64 {
	u := uint64(hi)<<32 | uint64(lo)
	return (float64(u>>12) + 0.5) / (1 << 52)
}
