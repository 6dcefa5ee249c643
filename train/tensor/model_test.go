package tensor

import (
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"testing"

	"exp/kernels"
	"exp/train/model"
)

// small is a model that 4 ranks can share, with an odd number of tokens.
var small = model.Config{Vocab: 37, Layers: 1, Width: 128, Heads: 4, KVHeads: 2, Head: 32, FFN: 128, RopeTheta: 1e4,
	NormEps: 1e-6, QKVBias: true, QKNorm: true, TieEmbeddings: true, MaxPositions: 32, InitStd: 0.1}

// linear is small with output gates, after a layer of linear attention.
func linear() model.Config {
	c := small
	c.Layers, c.Linear, c.OutputGate, c.QKVBias, c.UnitOffset = 2, []bool{true, false}, true, false, true
	c.Delta = kernels.DeltaShape{Keys: 1, Values: 2, KeyDim: 20, ValueDim: 64, Taps: 4}
	return c
}

// mixed is small as OLMo Hybrid is, after a layer of linear attention.
func mixed() model.Config {
	c := linear()
	c.Names, c.OutputGate, c.UnitOffset, c.WideQKNorm, c.PostNorms, c.NoPreNorms = model.OlmoHybridNames, false, false, true, true, true
	c.DoubleWrites, c.DeltaEps, c.Delta.KeyDim = true, 1e-5, 62 // rows that 4 ranks can share
	return c
}

// latent is small with latent attention.
func latent() model.Config {
	c := small
	c.QKVBias, c.QKNorm, c.Heads, c.KVHeads, c.Rotary = false, false, 8, 8, 16
	c.Latent = model.Latent{Rank: 128, QueryRank: 512, Nope: 16, Rope: 16, Value: 16, Interleaved: true, NormEps: 1e-6}
	return c
}

// single is small with layers of Mamba-2, a feed-forward block and attention alone.
func single() model.Config {
	c := small
	c.Layers, c.QKVBias, c.QKNorm, c.Gate, c.Names = 3, false, false, kernels.ReLU2, model.NemotronNames
	c.NoMixer, c.NoFFN = []bool{false, true, false}, []bool{true, false, true}
	c.Linear, c.NoRope = []bool{true, false, false}, []bool{true, true, true}
	c.Delta = kernels.DeltaShape{Keys: 1, Values: 2, KeyDim: 63, ValueDim: 64, Taps: 4, Scan: true, Low: 0.001}
	return c
}

// convolved is small as LFM2 is, after a layer with a gated short convolution.
func convolved() model.Config {
	c := small
	c.Layers, c.QKVBias, c.Names, c.Linear = 2, false, model.LFMNames, []bool{true, false}
	c.Delta = kernels.DeltaShape{Values: 1, ValueDim: 128, Taps: 3, Conv: true}
	return c
}

// gated is small as AFMoE is, whose gates of attention have a map of their own.
func gated() model.Config {
	c := small
	c.QKVBias, c.PostNorms, c.EmbedScale, c.Names, c.GateMap = false, true, 3, model.AfmoeNames, true
	return c
}

// bare is small as nanochat is, whose norms have no weights.
func bare() model.Config {
	c := small
	c.QKVBias, c.QKNorm, c.LateQKNorm, c.UnitOffset = false, true, true, true
	c.Gate, c.Names, c.LogitCap = kernels.ReLU2, model.NanoNames, 15
	return c
}

// layerNormed is small as GPT-NeoX is: attention beside the feed-forward block, LayerNorm and biases everywhere.
func layerNormed() model.Config {
	c := small
	c.QKNorm, c.KVHeads, c.Fused, c.OutBias, c.FFNBias = false, c.Heads, true, true, true
	c.Gate, c.Names, c.Norm, c.Branches = kernels.PlainGELU, model.NeoXNames, model.LayerNorm, model.TwoNorms
	return c
}

// placed is small as GPT-2 is, with learned positions.
func placed() model.Config {
	c := layerNormed()
	c.Gate, c.Names, c.Branches, c.Learned, c.NoRope = kernels.PlainGELUTanh, model.GPT2Names, model.InTurn, true, []bool{true}
	return c
}

// shared is small as Cohere is: one norm for both blocks.
func shared() model.Config {
	c := small
	c.QKNorm, c.Interleaved, c.Norm, c.Branches, c.LogitDivisor = false, true, model.WeightLayerNorm, model.OneNorm, 4
	return c
}

// headNormed is small as Command R+ is: LayerNorm of each query and key head.
func headNormed() model.Config {
	c := shared()
	c.HeadLayerNorm = true
	return c
}

// biased is small as Phi-2 is, whose output projection has a bias.
func biased() model.Config {
	c := small
	c.QKNorm, c.OutBias, c.FFNBias, c.OutputBias = false, true, true, true
	c.Gate, c.Names, c.Norm, c.Branches = kernels.PlainGELUTanh, model.PhiNames, model.LayerNorm, model.OneNorm
	return c
}

// activated is small as Apertus is, whose activation is learned.
func activated() model.Config {
	c := small
	c.QKVBias, c.QKNorm, c.Gate, c.Names = false, true, kernels.XIELU, model.ApertusNames
	return c
}

// sunk is small with attention sinks.
func sunk() model.Config {
	c := small
	c.Sinks = true
	return c
}

// altered is small with what Granite, Hunyuan and ERNIE do otherwise.
func altered() model.Config {
	c := small
	c.QKNorm, c.LateQKNorm, c.Interleaved = true, true, true
	c.EmbedScale, c.QueryScale, c.ResidualScale, c.LogitDivisor = 3, 0.1, 0.22, 4
	return c
}

// batches are micro-batches of the capacity.
var (
	batches = []model.Batch{{Tokens: []int32{1, 36, 3, 20, 30, 2, 12, 6, 7, 7, 9, 10, 11, 12, 13, 14, 0},
		Offsets: []int32{0, 6, 12, 17}, Prompt: []int32{2, 2, 1}},
		{Tokens: []int32{5, 4, 3, 2}, Offsets: []int32{0, 4}, Prompt: []int32{1}}}
	capacity = model.Capacity{Tokens: 17, Sequences: 3, Taught: 2}
)

// step is a sampling step of two sequences, with a page for each.
var step = model.Step{Tokens: []int32{1, 36, 3, 4, 20}, Pos: []int32{0, 1, 2, 0, 1}, Seq: []int32{0, 0, 0, 1, 1},
	States: []int32{1, 0}, Slots: []int32{0, 1, 2, 16, 17}, Table: []int32{0, 1}, Width: 1, Sample: []int32{2, 3, 4}, U: []float32{0.3, 0.8, 0.1}}

// learned are numbers of a model on a rank.
type learned struct {
	passes, grads []float32
	spans         []model.Span // of the gradients
	cut           []string     // tensors that ranks hold parts of
	drawn         model.Drawn  // after an update
	rooms         int          // bytes
}

// learn takes a model through passes, an update and a sampling step.
func (d device) learn(c model.Config) (x learned) {
	heads := model.Heads{LM: true}
	m := made(model.New(d.Backend, c, heads, true))
	defer m.Close()
	m.Init(func(label string) uint64 {
		h := fnv.New64a()
		h.Write([]byte(label))
		return h.Sum64()
	})
	ws := made(model.NewWorkspace(d.Backend, c, heads, capacity, model.KeepInputs))
	defer ws.Close()
	m.ZeroGrads()
	for _, b := range batches {
		ws.Load(b)
		m.Forward(ws)
		m.Scores(ws, 0.9)
		x.passes = slices.Concat(x.passes, d.host(ws.LogProb()), d.host(ws.Entropy()))
		d.Copy(ws.DLogProb(), d.random(kernels.F32, ws.Rows(), 1))
		d.Copy(ws.DEntropy(), d.random(kernels.F32, ws.Rows(), 2))
		m.Backward(ws, model.Upstream{Scores: true})
		x.passes = append(x.passes, d.taught(m, ws)...)
	}
	m.FinishGrads()
	x.grads = d.host(m.Grads())
	rank := 0
	b, shares := d.Backend.(*Backend)
	if shares {
		rank, _ = b.Part()
	}
	x.spans = m.Spans(rank)
	for _, t := range m.Tensors() {
		if m.IsCut(t) {
			x.cut = append(x.cut, t.Name)
		}
	}
	d.Add(m.Params(), m.Grads())
	m.Refresh()

	x.drawn = d.draw(m)
	if shares {
		x.rooms = int(4*c.Vocab*c.Width) + b.roomBytes() // with the room of packWhole, which frees it
	}
	return x
}

// taught takes the loaded rows through the passes with a teacher's tokens, its own.
func (d device) taught(m *model.Model, ws *model.Workspace) []float32 {
	tokens, logProb := m.TopTokens(ws, 0.9)
	top := d.host(logProb)
	ids := make([]int32, tokens.Len())
	d.Copy(kernels.Host(ids), tokens)
	d.Sync()
	ws.SetTaught(ids)
	scores := d.host(m.TaughtScores(ws, 0.9))
	d.Copy(ws.DTaught(), d.random(kernels.F32, ws.DTaught().Len(), 3))
	m.Backward(ws, model.Upstream{Taught: true})
	for _, id := range ids {
		top = append(top, float32(id))
	}
	return append(top, scores...)
}

// draw takes a model through the sampling step.
func (d device) draw(m *model.Model) model.Drawn {
	cache := made(model.NewCache(d.Backend, m.Config, 2, 16, 2))
	defer cache.Close()
	decoder := made(model.NewDecoder(d.Backend, m.Config, m.Heads, len(step.Tokens), len(step.Table)))
	defer decoder.Close()
	n := len(step.Sample)
	x := model.Drawn{IDs: make([]int32, n), LogProb: make([]float32, n), Entropy: make([]float32, n)}
	m.Step(decoder, cache, step, kernels.Sampling{Temperature: 1, TopP: 0.9}, x)
	return x
}

// roomBytes returns the memory of the rooms.
func (b *Backend) roomBytes() (n int) {
	for use, room := range b.rooms {
		n += int(room.Len() * use.t.Size())
	}
	return n
}

// made returns what a constructor made.
func made[T any](x T, err error) T {
	if err != nil {
		panic(err)
	}
	return x
}

// A model that ranks share has the log-probs, gradients and draws of one rank's, whether it is tied or
// not, in the room that RoomBytes says.
func TestModel(t *testing.T) {
	for _, k := range kinds() {
		t.Run(k.name, func(t *testing.T) { sameModel(t, k, 2, 4) })
	}
}

// Ranks that only sample and verify have the rooms of no backward pass.
func TestRoomsWithoutBackward(t *testing.T) {
	for _, k := range kinds() {
		t.Run(k.name, func(t *testing.T) {
			together(t, 2, k.open, func(r int, d device) {
				base := made(model.NewBackbone(d.Backend, small, true, kernels.F32))
				defer base.Close()
				if err := base.Load(rowsOf(base)); err != nil {
					t.Error(err)
				}
				m := made(model.NewOn(base, model.Heads{LM: true}, false))
				defer m.Close()
				ws := made(model.NewWorkspace(d.Backend, small, m.Heads, capacity, model.KeepNothing))
				defer ws.Close()
				for _, b := range batches {
					ws.Load(b)
					m.Forward(ws)
					m.Scores(ws, 0.9)
				}
				d.draw(m)
				planned := RoomBytes(small, capacity.Tokens, len(step.Tokens), 2, d.Operand(), d.PackedLen, false)
				if got := d.Backend.(*Backend).roomBytes(); got > planned || planned > got+2*got/3 { // tables may be whole
					t.Errorf("rank %d has rooms of %d bytes, planned %d", r, got, planned)
				}
			})
		})
	}
}

// rowsOf returns the source of some weights.
func rowsOf(b *model.Backbone) model.Rows {
	widths := map[string]int{}
	for _, x := range b.Tensors() {
		widths[x.Name] = x.Shape[len(x.Shape)-1]
	}
	return func(p model.Piece) (kernels.Buffer, error) {
		x := make([]float32, int(p.N*widths[p.Name]))
		for i := range x {
			x[i] = float32(i%7-3) / 16
		}
		return kernels.Host(x), nil
	}
}

func sameModel(t *testing.T, k kind, sizes ...int) {
	for i, c := range []model.Config{small, small, linear(), sunk(), latent(), altered(), single(), convolved(), mixed(),
		gated(), bare(),
		layerNormed(), placed(), shared(), headNormed(), activated(), biased()} {
		tied := i == 0
		c.TieEmbeddings = tied
		one := device{k.open(t), t}
		want := one.learn(c)
		cut := []string{"model.embed_tokens.weight"}
		maps := []string{"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj"}
		if c.Latent.Rank > 0 { // the other map has too few rows
			maps = []string{"self_attn.q_a_proj", "self_attn.q_b_proj", "self_attn.kv_b_proj", "self_attn.o_proj"}
		}
		if c.GateMap {
			maps = append(maps, "self_attn.gate_proj")
		}
		block := []string{"mlp.gate_proj", "mlp.up_proj", "mlp.down_proj"}
		if c.Names == model.NanoNames {
			block = []string{"mlp.fc1", "mlp.fc2"}
		}
		switch c.Names {
		case model.NeoXNames:
			maps, block = []string{"attention.query_key_value", "attention.dense"}, []string{"mlp.dense_h_to_4h", "mlp.dense_4h_to_h"}
		case model.ApertusNames:
			block = block[1:]
		case model.PhiNames:
			maps[3], block = "self_attn.dense", []string{"mlp.fc1", "mlp.fc2"}
		case model.GPT2Names:
			maps, block = []string{"attn.c_attn", "attn.c_proj"}, []string{"mlp.c_fc", "mlp.c_proj"}
		}
		for _, w := range append(maps, block...) {
			cut = append(cut, fmt.Sprintf("model.layers.%d.%s.weight", c.Layers-1, w))
		}
		if c.Recurrent() { // the other maps of linear attention have too few rows
			own := []string{"linear_attn.out_proj"}
			if c.Names == model.OlmoHybridNames {
				own = nil
				for _, x := range strings.Split("qkvgbao", "") {
					own = append(own, "linear_attn."+x+"_proj")
				}
			}
			for _, w := range append(own, "mlp.gate_proj", "mlp.up_proj", "mlp.down_proj") {
				cut = append(cut, "model.layers.0."+w+".weight")
			}
		}
		if c.Names == model.NemotronNames {
			cut = cut[:1]
			for _, w := range []string{"0.mixer.in_proj", "0.mixer.out_proj", "1.mixer.up_proj", "1.mixer.down_proj",
				"2.mixer.q_proj", "2.mixer.k_proj", "2.mixer.v_proj", "2.mixer.o_proj"} {
				cut = append(cut, "model.layers."+w+".weight")
			}
		}
		if c.Names == model.LFMNames {
			cut = cut[:1]
			for _, w := range []string{"0.conv.in_proj", "0.conv.out_proj", "0.feed_forward.w1", "0.feed_forward.w2",
				"0.feed_forward.w3", "1.self_attn.q_proj", "1.self_attn.k_proj", "1.self_attn.v_proj",
				"1.self_attn.out_proj", "1.feed_forward.w1", "1.feed_forward.w2", "1.feed_forward.w3"} {
				cut = append(cut, "model.layers."+w+".weight")
			}
		}
		if !tied {
			cut = append(cut, "lm_head.weight")
		}
		for _, size := range sizes {
			together(t, size, k.open, func(r int, d device) {
				got := d.learn(c)
				if at := firstDifferent(bitsOf(got.passes), bitsOf(want.passes)); at >= 0 {
					t.Errorf("rank %d of %d: log-probs and entropies differ at %d", r, size, at)
				}
				if slices.Sort(got.cut); !slices.Equal(got.cut, slices.Sorted(slices.Values(cut))) {
					t.Errorf("rank %d of %d: ranks hold parts of %q, want %q", r, size, got.cut, cut)
				}
				for _, s := range got.spans {
					own := got.grads[s.At:][:s.Hi-s.Lo]
					if at := firstDifferent(bitsOf(own), bitsOf(want.grads[s.Lo:s.Hi])); at >= 0 {
						t.Errorf("rank %d of %d: gradients differ at %d", r, size, s.Lo+at)
					}
				}
				if !slices.Equal(got.drawn.IDs, want.drawn.IDs) || !slices.Equal(got.drawn.LogProb, want.drawn.LogProb) ||
					!slices.Equal(got.drawn.Entropy, want.drawn.Entropy) {
					t.Errorf("rank %d of %d drew %v, want %v", r, size, got.drawn, want.drawn)
				}
				planned := RoomBytes(c, capacity.Tokens, len(step.Tokens), size, d.Operand(), d.PackedLen, true)
				if got.rooms > planned || planned > got.rooms+got.rooms/3 {
					t.Errorf("rank %d of %d has rooms of %d bytes, planned %d", r, size, got.rooms, planned)
				}
			})
		}
	}
}
