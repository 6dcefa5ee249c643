package bench

import (
	"slices"
	"time"
)

// Spread summarizes the repeats of a measurement.
type Spread struct {
	Median float64 `json:"median"`
	Min    float64 `json:"min"`
	Max    float64 `json:"max"`
}

// spreadOf returns the spread of x; the median of an even number of values is the mean
// of the middle two. The Spread of nothing is zero.
func spreadOf(x []float64) Spread {
	if len(x) == 0 {
		return Spread{}
	}
	x = slices.Sorted(slices.Values(x))
	n := len(x)
	return Spread{Median: (x[(n-1)/2] + x[n/2]) / 2, Min: x[0], Max: x[n-1]}
}

// times returns the spread scaled by f.
func (s Spread) times(f float64) Spread { return Spread{s.Median * f, s.Min * f, s.Max * f} }

// Report is the result of a suite.
type Report struct {
	Suite    string        `json:"suite"`
	DType    string        `json:"dtype"`             // of operands
	Class    string        `json:"numerics"`          // "cpu/fma", "cpu/bf16" or "matrix/16x25"
	Backend  string        `json:"backend"`           // "cpu/avx512"
	Threads  int           `json:"threads,omitempty"` // of the CPU
	Settings Settings      `json:"settings"`
	Machine  *Peaks        `json:"peaks,omitempty"` // absent, as are all shares, unless the device is a Meter
	Models   []ModelReport `json:"models"`
	Folder   *FolderReport `json:"folder,omitempty"` // instead of models
}

// Settings are the sizes of what was measured.
type Settings struct {
	Batch     int `json:"batch"`
	Length    int `json:"length_tokens"`
	Sequences int `json:"sample_sequences"`
	Prompt    int `json:"prompt_tokens"`
	New       int `json:"new_tokens"`
	Repeat    int `json:"repeat"`
}

// Peaks are the limits of the machine.
type Peaks struct {
	Peak    Spread  `json:"fma_gflops"`                      // all threads, in registers; of the whole run
	PeakOne *Spread `json:"fma_gflops_one_thread,omitempty"` // absent unless the machine was measured
	Read    *Spread `json:"read_gb_per_s,omitempty"`         // all threads, beyond a core's caches; 10⁹ bytes
}

// ModelReport holds the measurements of a model; unmeasured parts are absent.
type ModelReport struct {
	Model
	Weights int       `json:"linear_weights"` // of all linear layers including the output projection: N
	MatMul  []MatMul  `json:"matmul,omitempty"`
	Train   *Training `json:"train,omitempty"`
	LogProb *Passes   `json:"logprob,omitempty"`
	Sample  *Passes   `json:"sample,omitempty"`
}

// MatMul is one linear layer, out [M,N] = x [M,K] · Wᵀ, or one of its gradients.
type MatMul struct {
	Layer string `json:"layer"` // "qkv", "o", "gate_up", "down", "output"
	Op    string `json:"op"`    // "forward", "dx", "dw"
	M     int    `json:"m"`
	N     int    `json:"n"`
	K     int    `json:"k"`

	Decode bool    `json:"decode"`               // rows of a decode step, one per sequence
	GFLOPS Spread  `json:"gflops"`               // 2·M·N·K operations a call
	Bytes  Spread  `json:"gb_per_s"`             // each operand once, 10⁹ bytes
	Share  float64 `json:"peak_share,omitempty"` // of the median peak
	// Decode only: the limit by memory, min(peak, bandwidth × operations per byte) in
	// GFLOP/s, and the share reached. It exceeds 1 if weights stay in a cache.
	Roofline      float64 `json:"roofline_gflops,omitempty"`
	RooflineShare float64 `json:"roofline_share,omitempty"`

	flops, bytes float64 // of one call
}

// Passes is work counted in tokens.
type Passes struct {
	Tokens    int     `json:"tokens"`       // of one repeat
	FLOPs     float64 `json:"flops"`        // of one repeat, as the package comment counts
	Seconds   Spread  `json:"seconds"`      // of one repeat
	TokensPer Spread  `json:"tokens_per_s"` // sampling: new tokens, with the prefill's time included
	GFLOPS    Spread  `json:"gflops"`
	Share     float64 `json:"peak_share,omitempty"` // of the median peak
	Memory    int64   `json:"memory_bytes"`         // all that the engine holds at the end, including workspaces
}

// passesOf computes the figures from the seconds of each repeat.
func passesOf(tokens int, flops float64, seconds []float64, memory int64) Passes {
	var rates []float64
	for _, s := range seconds {
		rates = append(rates, 1/s)
	}
	r := spreadOf(rates)
	return Passes{Tokens: tokens, FLOPs: flops, Seconds: spreadOf(seconds), Memory: memory,
		TokensPer: r.times(float64(tokens)), GFLOPS: r.times(flops / 1e9)}
}

// Training is a training step and its breakdown by phase.
type Training struct {
	Passes
	Phases []Phase `json:"phases"`
}

// Phase is a part of a step.
type Phase struct {
	Name    string `json:"name"`
	Seconds Spread `json:"seconds"`
}

// share computes the shares of peak and roofline, once the peak of the whole run is
// known.
func (r *Report) share() {
	peak := r.Machine.Peak.Median
	if r.Folder != nil {
		for i := range r.Folder.Speeds {
			x := &r.Folder.Speeds[i]
			x.Prefill.Share, x.Decode.Share = x.Prefill.GFLOPS.Median/peak, x.Decode.GFLOPS.Median/peak
		}
	}
	for i := range r.Models {
		m := &r.Models[i]
		for j := range m.MatMul {
			m.MatMul[j].share(r.Machine)
		}
		if m.Train != nil {
			m.Train.Share = m.Train.GFLOPS.Median / peak
		}
		for _, p := range []*Passes{m.LogProb, m.Sample} {
			if p != nil {
				p.Share = p.GFLOPS.Median / peak
			}
		}
	}
}

func (m *MatMul) share(p *Peaks) {
	m.Share = m.GFLOPS.Median / p.Peak.Median
	if m.Decode {
		m.Roofline = min(p.Peak.Median, p.Read.Median*m.flops/m.bytes)
		m.RooflineShare = m.GFLOPS.Median / m.Roofline
	}
}

// clock times the phases of repeats.
type clock struct {
	names   []string
	seconds [][]float64 // by phase, one per repeat
	last    time.Time
}

// start begins a repeat.
func (c *clock) start() { c.last = time.Now() }

// phase ends a phase. All repeats have the same phases in the same order.
func (c *clock) phase(name string) {
	i := slices.Index(c.names, name)
	if i < 0 {
		i = len(c.names)
		c.names, c.seconds = append(c.names, name), append(c.seconds, nil)
	}
	now := time.Now()
	c.seconds[i] = append(c.seconds[i], now.Sub(c.last).Seconds())
	c.last = now
}

func (c *clock) phases() []Phase {
	var list []Phase
	for i, name := range c.names {
		list = append(list, Phase{name, spreadOf(c.seconds[i])})
	}
	return list
}
