package model

import (
	"fmt"
	"math"

	"exp/kernels"
)

// validate reports invalid settings.
func (r RopeScaling) validate(c Config) (errs []error) {
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf("model: rope: "+format, args...)) }
	need := func(name string, v float64) {
		if !(v > 0) || math.IsInf(v, 1) {
			bad("%s needs a positive %s, got %g", r.Kind, name, v)
		}
	}
	switch r.Kind {
	case "":
		return nil
	case "linear":
		need("factor", r.Factor)
	case "dynamic":
		need("factor", r.Factor)
		need("original length", float64(r.Original))
	case "llama3":
		need("factor", r.Factor)
		need("original length", float64(r.Original))
		need("low_freq_factor", r.LowFactor)
		need("high_freq_factor", r.HighFactor)
		if r.HighFactor <= r.LowFactor {
			bad("high_freq_factor %g must be above low_freq_factor %g", r.HighFactor, r.LowFactor)
		}
	case "yarn":
		need("factor", r.Factor)
		need("original length", float64(r.Original))
		need("beta_fast", r.BetaFast)
		need("beta_slow", r.BetaSlow)
	case "proportional":
		need("factor", r.Factor)
		if R := c.global().rotated(); r.Turned < 2 || r.Turned%2 != 0 || r.Turned > R {
			bad("%d of %d channels of a head turn; the number must be even and at most all", r.Turned, R)
		}
	case "longrope":
		need("original length", float64(r.Original))
		if half := c.rotated() / 2; len(r.Short) != half || len(r.Long) != half {
			bad("longrope needs %d short and long factors, got %d and %d", half, len(r.Short), len(r.Long))
		}
	default:
		bad("unsupported scaling of rotary positions %q", r.Kind)
	}
	return errs
}

// FixedLength returns the longest sequence whose rotary frequencies do not depend
// on its length; 0 means any. Keys in a cache keep the frequencies of the length they were
// computed at, so longer sequences would not have one log-prob per token.
func (r RopeScaling) FixedLength() int {
	if r.Kind == "dynamic" || r.Kind == "longrope" {
		return r.Original
	}
	return 0
}

// Frequencies returns the rotary frequencies [R/2] of sequences of n tokens, in radians per
// position, and the factor of cos and sin. theta is the base. The formulas come from
// transformers' modeling_rope_utils, in float64: linear (arXiv:2306.15595), dynamic NTK,
// llama3 (arXiv:2407.21783 §3.4.2), yarn (arXiv:2309.00071 eq. 17 to 22), longrope
// (arXiv:2402.13753), proportional.
func (c Config) Frequencies(theta float64, r RopeScaling, n int) (freq []float64, scale float64) {
	R := c.rotated()
	freq, scale = make([]float64, R/2), 1
	if r.Kind == "dynamic" && n > r.Original {
		grown := r.Factor*float64(n)/float64(r.Original) - (r.Factor - 1)
		theta *= math.Pow(grown, float64(R)/float64(R-2))
	}
	for j := range freq {
		freq[j] = math.Pow(theta, -2*float64(j)/float64(R))
	}
	switch r.Kind {
	case "linear":
		for j := range freq {
			freq[j] /= r.Factor
		}
	case "proportional":
		for j := range freq {
			if freq[j] /= r.Factor; j >= r.Turned/2 {
				freq[j] = 0
			}
		}
	case "llama3":
		for j := range freq {
			freq[j] = r.llama3(freq[j])
		}
	case "yarn":
		r.yarn(freq, theta, R)
	case "longrope":
		by := r.Short
		if n > r.Original {
			by = r.Long
		}
		for j := range freq {
			freq[j] /= by[j]
		}
	}
	if r.Attention > 0 {
		scale = r.Attention
	}
	if c.Names == NanoNames { // the other way round
		for j := range freq {
			freq[j] = -freq[j]
		}
	}
	return freq, scale
}

// llama3 keeps short wavelengths, divides the frequencies of long ones by the factor, and
// blends in between.
func (r RopeScaling) llama3(f float64) float64 {
	n, wavelength := float64(r.Original), 2*math.Pi/f
	switch {
	case wavelength > n/r.LowFactor:
		return f / r.Factor
	case wavelength < n/r.HighFactor:
		return f
	}
	m := (n/wavelength - r.LowFactor) / (r.HighFactor - r.LowFactor)
	return (1-m)*f/r.Factor + m*f
}

// yarn divides frequencies that turn less than BetaSlow times over the original length by
// the factor, keeps the ones that turn more than BetaFast times, and blends in between.
func (r RopeScaling) yarn(freq []float64, theta float64, R int) {
	turns := func(beta float64) float64 { // the channel that turns beta times
		return float64(R) * math.Log(float64(r.Original)/(beta*2*math.Pi)) / (2 * math.Log(theta))
	}
	low, high := turns(r.BetaFast), turns(r.BetaSlow)
	if !r.Exact {
		low, high = math.Floor(low), math.Ceil(high)
	}
	low, high = max(low, 0), min(high, float64(R-1))
	if low == high {
		high += 0.001
	}
	for j := range freq {
		ramp := min(max((float64(j)-low)/(high-low), 0), 1)
		freq[j] = freq[j]/r.Factor*ramp + freq[j]*(1-ramp)
	}
}

// rotary are tables [positions, R/2].
type rotary struct{ cos, sin kernels.Buffer }

// newRotary allocates tables of all positions for R channels of a head, which take memory as they are filled.
func (m *Model) newRotary(R int) (t rotary, err error) {
	n := m.Config.MaxPositions * R / 2
	for _, b := range []*kernels.Buffer{&t.cos, &t.sin} {
		if *b, err = kernels.AllocSparse(m.be, m.be.Float(), n); err != nil {
			return t, err
		}
		m.owned = append(m.owned, *b)
	}
	return t, nil
}

// ropeStep is the number of positions that the rotary tables grow by.
const ropeStep = 512

// reach fills the rotary tables at least of positions below n: the angle of pair i at
// position p is p times its frequency (arXiv:2104.09864), computed in float64 and rounded
// once. A model may allow a hundred times the positions that its sequences have.
func (m *Model) reach(n int) {
	c := m.Config
	for m.reached < min(n, c.MaxPositions) {
		to := min(m.reached+ropeStep, c.MaxPositions)
		m.fillTable(c.global(), m.rope, c.RopeTheta, c.Rope, to)
		if c.LocalTheta > 0 {
			m.fillTable(c, m.localRope, c.LocalTheta, RopeScaling{}, to)
		}
		m.reached = to
	}
}

// fillTable fills a table for heads of c from m.reached to a position.
func (m *Model) fillTable(c Config, t rotary, theta float64, r RopeScaling, to int) {
	freq, scale := c.Frequencies(theta, r, m.length)
	half := len(freq)
	rows := to - m.reached
	cos, sin := make([]float64, rows*half), make([]float64, rows*half)
	for p := range rows {
		for i, f := range freq {
			angle := float64(m.reached+p) * f
			cos[p*half+i], sin[p*half+i] = math.Cos(angle)*scale, math.Sin(angle)*scale
		}
	}
	m.be.Copy(t.cos.Slice(m.reached*half, to*half), kernels.Host(cos))
	m.be.Copy(t.sin.Slice(m.reached*half, to*half), kernels.Host(sin))
	m.be.Sync()
}

// SetLength computes the rotary tables for sequences of n tokens, for models whose
// frequencies depend on it (RopeScaling.FixedLength). It serves probes that compute whole
// sequences; training and sampling stay below the fixed length.
func (m *Model) SetLength(n int) {
	if m.Config.Rope.FixedLength() > 0 {
		m.length, m.reached = n, 0
	}
}

// rotary returns the tables of layer l.
func (m *Model) rotary(l int) rotary {
	if m.Config.LocalTheta > 0 && m.Config.windowed(l) {
		return m.localRope
	}
	return m.rope
}
