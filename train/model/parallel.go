package model

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"exp/kernels"
)

// This file has the layers of Falcon-H1: attention and Mamba-2 side by side. With n the layer's normed input, m the
// feed-forward block's, and factors (Multipliers) in brackets,
//
//	x += [AttentionOut]·(Wo · Attention(Wqkv·[AttentionIn]·n))
//	     + [ScanOut]·(Wout · Gated(Scan([Scan]·Win·[ScanIn]·n)))
//	x += [Down]·(Wdown · (SiLU([Gate]·Wgate·m) ⊙ Wup·m))
//
// The weights are the published ones: nothing is multiplied into them. Two factors need no operation of their own:
// keys' is part of the scale of attention scores, and ScanIn, as Win has no bias, part of Scan.

// Multipliers are Falcon-H1's factors (muP); 0 stands for 1. That of the embedding is Config.EmbedScale.
type Multipliers struct {
	Logits                    float64
	Key                       float64
	AttentionIn, AttentionOut float64
	ScanIn, ScanOut           float64
	Scan                      [5]float64 // of the columns of z, x, B, C and dt in a projected row
	Gate, Down                float64
}

// Multiplier is one of the factors; 0 stands for 1.
type Multiplier struct {
	Of string
	By float64
}

// List returns the factors.
func (x Multipliers) List() []Multiplier {
	return []Multiplier{{"logits", x.Logits}, {"keys", x.Key}, {"attention's input", x.AttentionIn},
		{"attention's output", x.AttentionOut}, {"Mamba-2's input", x.ScanIn}, {"its z", x.Scan[0]},
		{"its x", x.Scan[1]}, {"its B", x.Scan[2]}, {"its C", x.Scan[3]}, {"its dt", x.Scan[4]},
		{"its output", x.ScanOut}, {"gates", x.Gate}, {"the output of feed-forward blocks", x.Down}}
}

// ScanNorm says where the norm of Mamba-2's output is.
type ScanNorm uint8

const (
	NormAfterGate  ScanNorm = iota // of each group of the gated output
	NormBeforeGate                 // of each group of the output, before its gate
	NoScanNorm                     // the output is gated alone
)

// attends reports whether layer l has attention that is not linear.
func (c Config) attends(l int) bool { return c.mixes(l) && (!c.linear(l) || c.Parallel) }

// logitDivisor returns the number that divides logits.
func (c Config) logitDivisor() float64 {
	return cmp.Or(c.LogitDivisor, 1) / cmp.Or(c.Multipliers.Logits, 1)
}

// DividesLogits returns what the products of the output projection are divided by; 1 in most families.
func (c Config) DividesLogits() float64 { return c.logitDivisor() }

// scalesLogits reports whether there is one.
func (c Config) scalesLogits() bool { return c.LogitDivisor != 0 || c.Multipliers.Logits != 0 }

// validateParallel reports settings that do not go together with such layers.
func (c Config) validateParallel() (errs []error) {
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf("model: "+format, args...)) }
	for _, x := range c.Multipliers.List() {
		if !(x.By >= 0) || math.IsInf(x.By, 1) {
			bad("the multiplier of %s is %g, must be positive", x.Of, x.By)
		}
	}
	if !c.Parallel {
		if c.Multipliers != (Multipliers{}) || c.ScanNorm != NormAfterGate || c.ScanBias {
			bad("only layers with attention beside Mamba-2 have multipliers, other norms of Mamba-2's output, or a " +
				"bias on it")
		}
		return errs
	}
	if c.Names != BambaNames || !c.Delta.Scan || slices.Contains(c.Linear, false) || len(c.Linear) != c.Layers {
		bad("attention beside Mamba-2 must be in all layers, with Bamba's names")
	}
	if c.PostNorms || c.QKNorm || c.OutputGate || c.latent() || c.Sinks || c.Global != (Global{}) || c.PerLayer > 0 ||
		c.SharedKV > 0 || c.Sparse != nil || c.ResidualScale != 0 || c.LogitDivisor != 0 {
		bad("layers with attention beside Mamba-2 have one norm before each block, plain attention and a " +
			"feed-forward block without experts")
	}
	if c.ScanNorm > NoScanNorm || c.Gate.Factors() == 1 {
		bad("layers with attention beside Mamba-2 have gates, and a norm of its output before the gate, after it or " +
			"not at all")
	}
	return errs
}

// deltaMaps returns a layer's linear maps into its linear attention and out of it.
func (y *layer) deltaMaps() (in, out *linear) {
	if y.own.Parallel {
		return &y.scanIn, &y.scanOut
	}
	return &y.qkv, &y.o
}

// attentionInput returns what the maps of attention read, in a.n2 if it is another vector than the norm's: the block
// after attention has not written that yet, or no longer reads it.
func (m *Model) attentionInput(a *acts) kernels.Buffer {
	by, C := cmp.Or(m.Config.Multipliers.AttentionIn, 1), m.Config.Width
	if by == 1 {
		return a.n1
	}
	m.be.TakeColumns(a.n2, a.n1, C, C, 0, by)
	return a.n2
}

// joinParallel sets out [N,C] to the sum of both outputs. t [N,C] is scratch.
func (m *Model) joinParallel(y *layer, a *acts, low *LowRank, out, t kernels.Buffer) {
	x, C := m.Config.Multipliers, m.Config.Width
	y.scanOut.apply(m.be, out, a.delta.joined(m.Config.Delta), low)
	m.multiply(out, C, cmp.Or(x.ScanOut, 1))
	y.o.apply(m.be, t, a.att, low)
	m.be.AddColumns(out, t, C, C, 0, cmp.Or(x.AttentionOut, 1))
}

// parallelBackward sets dNorm, the gradient of the layer's normed input, from dout, that of both outputs' sum.
func (m *Model) parallelBackward(ws *Workspace, y *layer, a *acts, dNorm, dout, blocks kernels.Buffer) {
	x, C := m.Config.Multipliers, m.Config.Width
	m.linearAttentionBackward(ws, y, a, dNorm, m.scaledOutput(ws, dout, x.ScanOut), blocks)
	in := ws.dh.Slice(0, dNorm.Len()) // the heads no longer need it
	m.headsOfAttentionBackward(ws, y, a, in, m.scaledOutput(ws, dout, x.AttentionOut), blocks)
	m.be.AddColumns(dNorm, in, C, C, 0, cmp.Or(x.AttentionIn, 1))
}

// scaledOutput returns dout [N,C] times a multiplier, in ws.dPost unless that is 1.
func (m *Model) scaledOutput(ws *Workspace, dout kernels.Buffer, by float64) kernels.Buffer {
	if by = cmp.Or(by, 1); by == 1 {
		return dout
	}
	d, C := ws.dPost.Slice(0, dout.Len()), m.Config.Width
	m.be.TakeColumns(d, dout, C, C, 0, by)
	return d
}

// scaleProjected multiplies the parts of projected rows x of Mamba-2, or of their gradients. t [N,Mixed] is scratch.
func (m *Model) scaleProjected(x, t kernels.Buffer) {
	if !m.Config.Parallel {
		return
	}
	s, by := m.Config.Delta, m.Config.Multipliers
	keys, at := s.Keys*s.KeyDim, 0
	for i, n := range [...]int{s.Out(), s.Out(), keys, keys, s.Values} {
		m.scaleColumns(x, t, n, s.Stride(), at, cmp.Or(by.Scan[i], 1)*cmp.Or(by.ScanIn, 1))
		at += n
	}
}

// scaleColumns multiplies n columns of x [N,stride], from column `at` on, by a number: fma(by-1, x, x), which is off
// by at most half a unit in the last place of 1 times x. t [N,n] is scratch.
func (m *Model) scaleColumns(x, t kernels.Buffer, n, stride, at int, by float64) {
	if by == 1 || x.Len() == 0 {
		return
	}
	t = t.Slice(0, x.Len()/stride*n)
	m.be.TakeColumns(t, x, n, stride, at, 1)
	m.be.AddColumns(x, t, n, stride, at, by-1)
}

// A gate alone is GatedNorm whose eps is so large that it divides by exactly 2^plainExponent, whatever the channels
// are, up to a root mean square of 2^18 in float32. Its weight takes that back, again exactly.
const plainExponent = 30

// plainWeight fills the weight of that norm.
func (m *Model) plainWeight() {
	x := make([]float32, m.Config.Delta.ValueDim)
	for i := range x {
		x[i] = 1 << plainExponent
	}
	m.be.Copy(m.zeros, kernels.Host(x))
	m.be.Sync()
}

// groupNorm returns the shape of the norm of group g of Mamba-2's output.
func (c Config) groupNorm(g int) kernels.NormShape {
	n := c.Delta.Out() / c.Delta.Keys
	return kernels.NormShape{Heads: 1, Dim: n, Stride: c.Delta.Out(), Offset: g * n}
}

// normScan sets d.normed to Mamba-2's output after its norm and its gate.
func (m *Model) normScan(p *delta, d *deltaActs) {
	be, c, s := m.be, m.Config, m.Config.Delta
	if c.ScanNorm == NormAfterGate {
		be.GroupedNorm(d.normed, d.rstd, d.out, d.x, p.norm.w, s, c.NormEps)
		return
	}
	x := d.out
	if c.ScanNorm == NormBeforeGate {
		x = d.ungated
		n, rows := s.Out()/s.Keys, d.rstdGroups.Len()/s.Keys
		for g := range s.Keys {
			be.RMSNorm(x, d.rstdGroups.Slice(g*rows, (g+1)*rows), d.out, p.norm.w.Slice(g*n, (g+1)*n), c.groupNorm(g),
				c.NormEps)
		}
	}
	be.GatedNorm(d.normed, d.rstd, x, d.x, m.bare(s.ValueDim).w, s, 1<<(2*plainExponent))
}

// normScanBackward takes dout, the gradient of d.normed, back to that of the scan's output, in place, and sets the
// columns z of dx.
func (m *Model) normScanBackward(p *delta, d *deltaActs, dx, dout, blocks kernels.Buffer) {
	be, c, s := m.be, m.Config, m.Config.Delta
	if c.ScanNorm == NormAfterGate {
		be.GroupedNormBackward(dout, dx, m.gradient(p.norm, 0), dout, d.out, d.x, p.norm.w, d.rstd, blocks, s)
		return
	}
	x, plain := d.out, m.bare(s.ValueDim)
	if c.ScanNorm == NormBeforeGate {
		x = d.ungated
	}
	be.GatedNormBackward(dout, dx, m.gradient(plain, 0), dout, x, d.x, plain.w, d.rstd, blocks, s)
	if c.ScanNorm == NoScanNorm {
		return
	}
	dweight := m.gradient(p.norm, 0)
	n, rows := s.Out()/s.Keys, d.rstdGroups.Len()/s.Keys
	for g := range s.Keys {
		be.RMSNormBackward(dout, dweight.Slice(g*n, (g+1)*n), dout, d.out, p.norm.w.Slice(g*n, (g+1)*n),
			d.rstdGroups.Slice(g*rows, (g+1)*rows), blocks, c.groupNorm(g), true)
	}
}
