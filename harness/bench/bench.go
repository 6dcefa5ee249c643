// Package bench measures the engine's speed on this machine: its matmuls, a training
// step, log-probs and sampling, each compared with the machine's peak.
//
// Every figure is the median of several repeats, with minimum and maximum. Machines are
// shared and their clocks vary, so the peak is measured again before every repeat, and
// shares refer to the median of all these peaks; the bandwidth is measured together with
// the matmuls of every layer. Caches are as warm as in training: the first run of
// everything is not counted, and a decode step does not find its weights in the cache
// left by the previous one, unless the whole model fits.
//
// # What counts as work
//
// Operations are the ones that the mathematics needs, whatever the engine executes
// (model.Config.ForwardFLOPs): two per weight of a linear layer and token, and 4·H·D per
// layer for every pair of a token and a token that it attends to, i(i+1)/2 pairs in a
// sequence of i tokens. Biases, norms, softmax and the embedding do not count; the output
// projection counts once per row whose log-prob is needed.
//
//   - A forward pass over a sequence of T tokens, all but the first scored:
//     2·N·T + 4·L·H·D·T(T+1)/2, with N the weights of the linear layers, including
//     the V·C of the output projection, which sees T-1 rows.
//   - A training step is three forward passes, 6·N·T and 12·L·H·D·T(T+1)/2:
//     the backward pass computes two gradients where the forward pass computes
//     one product. Recomputed logits and the optimizer do not count.
//   - A sampled sequence of P prompt and K new tokens is a forward pass over P+K-1
//     tokens with K of them scored: the last token is drawn and never read.
//
// The package measures no other program and does not check results (package selftest
// does).
package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"exp/experiments/ident"
	"exp/kernels"
)

// Device is a backend that counts its memory.
type Device interface {
	kernels.Backend
	// Allocated returns the bytes in buffers and workspaces.
	Allocated() int64
}

// Meter is a Device that can measure the machine's limits. Figures of other devices have no
// shares.
type Meter interface {
	// PeakFLOPS returns floating-point operations per second in registers, measured for
	// about d on all threads.
	PeakFLOPS(d time.Duration) float64
	// ReadBandwidth returns bytes per second read from beyond a core's caches, measured
	// for about d on all threads.
	ReadBandwidth(d time.Duration) float64
	// Threads returns the number of threads that share the work.
	Threads() int
}

// ErrNoLimits is returned for the machine part on a device that cannot measure it.
var ErrNoLimits = errors.New("bench: only the CPU's limits can be measured: leave out the part machine")

// Part is a part of the suite.
type Part string

// The parts, in measuring order.
const (
	PartMachine Part = "machine" // peaks and bandwidth
	PartMatMul  Part = "matmul"  // linear maps at the model's shapes
	PartTrain   Part = "train"   // a step: forward, backward, update
	PartLogProb Part = "logprob" // forward and log-probs
	PartSample  Part = "sample"  // prefill and decode
)

// Parts returns all parts in order.
func Parts() []Part { return []Part{PartMachine, PartMatMul, PartTrain, PartLogProb, PartSample} }

// Options select the measurements.
type Options struct {
	Models []Model
	Parts  []Part // nil: all

	Batch, Length int // training and log-probs: number of sequences, tokens in each
	Sequences     int // sampling: completions decoded together, each with its own prompt
	Prompt, New   int // sampling: tokens per prompt, new tokens per completion

	Repeat int           // repeats of every measurement, at least 1
	Time   time.Duration // of one measurement of a peak or a matmul
}

// DefaultOptions returns the sizes that other engines publish figures for: 16 ×
// 256 tokens of training, 64 completions of 128 tokens after prompts of 64. 20 ms are
// at most a hundred time slices of a shared machine's scheduler, and several calls of
// all but the largest matmuls.
func DefaultOptions() Options {
	return Options{Batch: 16, Length: 256, Sequences: 64, Prompt: 64, New: 128, Repeat: 5,
		Time: 20 * time.Millisecond}
}

// Validate returns an error for the first setting that cannot be measured.
func (o Options) Validate() error {
	for _, v := range []struct {
		name     string
		n, least int
	}{{"batch", o.Batch, 1}, {"length", o.Length, 2}, {"sequences", o.Sequences, 1}, {"prompt", o.Prompt, 1},
		{"new", o.New, 1}, {"repeat", o.Repeat, 1}} {
		if err := atLeast(v.name, v.n, v.least); err != nil {
			return fmt.Errorf("bench: %w", err)
		}
	}
	for _, m := range o.Models {
		if err := m.config(o).Validate(); err != nil {
			return fmt.Errorf("bench: model %s: %w", m.Name, err)
		}
	}
	return nil
}

func atLeast(name string, n, least int) error {
	if n < least {
		return fmt.Errorf("%s is %d, must be at least %d", name, n, least)
	}
	return nil
}

// positions returns the longest sequence of any part, in tokens.
func (o Options) positions() int { return max(o.Length, o.Prompt+o.New) }

func (o Options) has(p Part) bool { return o.Parts == nil || slices.Contains(o.Parts, p) }

// Watcher hears about the progress of a suite.
type Watcher interface {
	PartStart(p Part, model string, repeats int) // model is empty for PartMachine
	PartRepeat(done int)
	PartDone(headline float64, unit string)
}

// Run measures on be what o selects. single is the same backend with one thread, or nil
// to skip its peak. Matmuls need the bandwidth, so they imply the machine part. The
// error is ctx's, ErrNoLimits, or says that a model does not fit.
func Run(ctx context.Context, be Device, single Meter, o Options, w Watcher) (*Report, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	s := newSuite(ctx, be, single, w)
	if s.meter == nil && o.Parts != nil && o.has(PartMachine) {
		return nil, ErrNoLimits
	}
	s.o, s.report.Settings = o, Settings{o.Batch, o.Length, o.Sequences, o.Prompt, o.New, o.Repeat}
	if o.has(PartMachine) || o.has(PartMatMul) {
		if err := s.machine(); err != nil {
			return nil, err
		}
	}
	for _, m := range o.Models {
		if !slices.ContainsFunc(Parts()[1:], o.has) {
			break
		}
		if err := s.model(m); err != nil {
			return nil, fmt.Errorf("bench: model %s: %w", m.Name, err)
		}
	}
	s.share()
	return &s.report, nil
}

// suite is one run of the benchmark.
type suite struct {
	ctx    context.Context
	be     Device
	meter  Meter // be; nil if it is not a Meter
	single Meter
	o      Options
	w      Watcher
	peaks  []float64 // GFLOP/s on all threads, in measuring order
	reads  []float64 // GB/s
	report Report
}

func newSuite(ctx context.Context, be Device, single Meter, w Watcher) *suite {
	s := &suite{ctx: ctx, be: be, single: single, w: w}
	s.report = Report{Suite: "engine", Models: []ModelReport{}, DType: be.Operand().String(), Class: be.Class(),
		Backend: be.Name()}
	if m, ok := be.(Meter); ok {
		s.meter, s.report.Threads, s.report.Machine = m, m.Threads(), &Peaks{}
	}
	return s
}

func (s *suite) model(m Model) error {
	c := m.config(s.o)
	s.report.Models = append(s.report.Models, ModelReport{Model: m, Weights: linearWeights(c)})
	r := &s.report.Models[len(s.report.Models)-1]
	for _, p := range []struct {
		part    Part
		measure func() error
	}{
		{PartMatMul, func() (err error) { r.MatMul, err = s.matmuls(m.Name, c); return err }},
		{PartTrain, func() (err error) { r.Train, err = s.train(m.Name, c); return err }},
		{PartLogProb, func() (err error) { r.LogProb, err = s.logProbs(m.Name, c); return err }},
		{PartSample, func() (err error) { r.Sample, err = s.sample(m.Name, c); return err }},
	} {
		if !s.o.has(p.part) {
			continue
		}
		if err := p.measure(); err != nil {
			return fmt.Errorf("%s: %w", p.part, err)
		}
	}
	return nil
}

// repeats calls f for each repeat, measuring the peak before each.
func (s *suite) repeats(f func() error) error {
	for i := range s.o.Repeat {
		if err := s.ctx.Err(); err != nil {
			return err
		}
		s.peak()
		if err := f(); err != nil {
			return err
		}
		s.w.PartRepeat(i + 1)
	}
	return nil
}

func (s *suite) peak() {
	if s.meter != nil {
		s.peaks = append(s.peaks, s.meter.PeakFLOPS(s.o.Time)/1e9)
	}
}

func (s *suite) read() {
	if s.meter != nil {
		s.reads = append(s.reads, s.meter.ReadBandwidth(s.o.Time)/1e9)
	}
}

// share completes the report with the limits, once all are measured, and the shares.
func (s *suite) share() {
	if s.meter == nil {
		return
	}
	s.report.Machine.Peak = spreadOf(s.peaks)
	if len(s.reads) > 0 {
		s.report.Machine.Read = new(spreadOf(s.reads))
	}
	s.report.share()
}

// machine measures one thread's peak and the bandwidth.
func (s *suite) machine() error {
	if s.meter == nil {
		return nil
	}
	var one []float64
	s.w.PartStart(PartMachine, "", s.o.Repeat)
	err := s.repeats(func() error {
		if s.single != nil {
			one = append(one, s.single.PeakFLOPS(s.o.Time)/1e9)
		}
		s.read()
		return nil
	})
	if s.single != nil {
		s.report.Machine.PeakOne = new(spreadOf(one))
	}
	s.w.PartDone(spreadOf(s.peaks).Median, "GFLOP/s")
	return err
}

// repeat returns how often per second f runs, measured for about d; f runs at least
// once.
func repeat(d time.Duration, f func() error) (float64, error) {
	start, n := time.Now(), 0
	for n == 0 || time.Since(start) < d {
		if err := f(); err != nil {
			return 0, err
		}
		n++
	}
	return float64(n) / time.Since(start).Seconds(), nil
}

// seed returns the seed of a random stream.
func seed(label string) uint64 { return ident.Seed(0, "bench/"+label) }
