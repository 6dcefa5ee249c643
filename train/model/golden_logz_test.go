package model

import (
	"encoding/json"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"exp/kernels"
	"exp/kernels/ref"
	"exp/train/rl"
)

// goldenHead is a recorded run of the published log Z head. Its golden vectors
// are in the folder EXP_GOLDEN or, by default, shared/data/golden next to the
// repository; its README describes the schema.
type goldenHead struct {
	Name, Function, DType string
	Inputs                struct {
		State     map[string]goldenTensor `json:"state_dict"`
		X         goldenTensor            `json:"x"`
		Cotangent goldenTensor            `json:"cotangent"`
		// The run from hidden states to the loss.
		IDs       goldenTensor `json:"input_ids"`
		Attention goldenTensor `json:"attention_mask"`
		Hidden    goldenTensor `json:"last_hidden_states"`
		Logits    goldenTensor `json:"logits"`
		Old       goldenTensor `json:"old_log_prob"`
		Ref       goldenTensor `json:"ref_log_prob"`
		Reward    goldenTensor `json:"reward"`
		Mask      goldenTensor `json:"response_mask"`
	}
	Params struct {
		Width       int     `json:"hidden_size"`
		Layers      int     `json:"num_layers"`
		Prompt      int     `json:"prompt_width"`
		Response    int     `json:"response_width"`
		Temperature float64 `json:"temperature"`
		Beta        float64 `json:"beta"`
	}
	Outputs, Grads map[string]goldenTensor
	Metrics        map[string]float64
	RTol, ATol     float64
}

type goldenTensor struct {
	Shape []int
	Data  []float64
}

// TestGoldenLogZ covers the head by itself, and the path from hidden states and
// logits to the loss and back.
func TestGoldenLogZ(t *testing.T) {
	dir := os.Getenv("EXP_GOLDEN")
	if dir == "" {
		dir = filepath.Join("..", "..", "..", "shared", "data", "golden")
	}
	data, err := os.ReadFile(filepath.Join(dir, "flowrl_projz.json"))
	if err != nil {
		t.Skipf("no golden vectors: %v", err)
	}
	var file struct{ Cases []goldenHead }
	if err := json.Unmarshal(data, &file); err != nil {
		t.Fatal(err)
	}
	checks := map[string]func(c goldenHead, t *testing.T){
		"ProjZModule": goldenHead.checkHead,
		"FlowRLActor._forward_micro_batch+compute_flowrl": goldenHead.checkLoss,
	}
	for _, c := range file.Cases {
		check, ok := checks[c.Function]
		if !ok {
			t.Errorf("%s: no check of %s", c.Name, c.Function)
			continue
		}
		t.Run(c.Name, func(t *testing.T) { check(c, t) })
	}
}

// goldenRun is a model that has the recorded head, and a batch for its hidden
// states.
type goldenRun struct {
	t  *testing.T
	be kernels.Backend
	m  *Model
	ws *Workspace
}

func (c goldenHead) run(t *testing.T, b Batch, z LogZConfig) goldenRun {
	t.Helper()
	var be kernels.Backend = ref.New[float64]()
	if c.DType == "float32" {
		be = ref.New[float32]()
	}
	config := Config{Vocab: 5, Layers: 1, Width: c.Params.Width, Heads: 1, KVHeads: 1, Head: 2, FFN: 2,
		RopeTheta: 100, NormEps: 1e-5, MaxPositions: 16}
	heads := Heads{LogZ: &z}
	m, err := New(be, config, heads, true)
	if err != nil {
		t.Fatal(err)
	}
	ws, err := NewWorkspace(be, config, heads, Capacity{Tokens: len(b.Tokens), Sequences: len(b.Prompt)}, KeepAll)
	if err != nil {
		t.Fatal(err)
	}
	for name, x := range c.Inputs.State {
		be.Copy(m.View(name), kernels.Host(x.Data))
	}
	m.Refresh()
	m.ZeroGrads()
	ws.Load(b)
	return goldenRun{t, be, m, ws}
}

func (r goldenRun) read(b kernels.Buffer) []float64 {
	x := make([]float64, b.Len())
	r.be.Copy(kernels.Host(x), b)
	r.be.Sync()
	return x
}

// logZ returns log Z over the hidden states [N,C].
func (r goldenRun) logZ(hidden []float64) []float64 {
	r.be.Copy(r.ws.Hidden(), kernels.Host(hidden))
	r.m.LogZ(r.ws, false)
	return r.read(r.ws.LogZ())
}

// backward returns the gradient of the hidden states.
func (r goldenRun) backward(dlogZ []float64) []float64 {
	r.be.Copy(r.ws.DLogZ(), kernels.Host(dlogZ))
	dHidden := r.ws.dNorm.Slice(0, r.ws.n*r.m.Config.Width)
	r.m.headsBackward(r.ws, Upstream{LogZ: true}, dHidden)
	r.m.FinishGrads()
	return r.read(dHidden)
}

func (r goldenRun) compareState(c goldenHead) {
	r.t.Helper()
	for _, name := range slices.Sorted(maps.Keys(c.Inputs.State)) {
		compareGolden(r.t, "gradient of "+name, r.read(r.m.Grad(name)), c.Grads[name].Data, c.RTol, c.ATol)
	}
}

func compareGolden(t *testing.T, what string, got, want []float64, rtol, atol float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d numbers, want %d", what, len(got), len(want))
	}
	for i, w := range want {
		if !(math.Abs(got[i]-w) <= atol+rtol*math.Abs(w)) {
			t.Errorf("%s [%d] = %.12g, want %.12g", what, i, got[i], w)
		}
	}
}

// checkHead takes the pooled states for prompts of one token.
func (c goldenHead) checkHead(t *testing.T) {
	b := Batch{Offsets: []int32{0}}
	for range c.Inputs.X.Shape[0] {
		b.Tokens = append(b.Tokens, 0)
		b.Offsets = append(b.Offsets, int32(len(b.Tokens)))
		b.Prompt = append(b.Prompt, 1)
	}
	r := c.run(t, b, LogZConfig{Layers: c.Params.Layers, PoolAll: true})
	compareGolden(t, "log Z", r.logZ(c.Inputs.X.Data), c.Outputs["log_z"].Data, c.RTol, c.ATol)
	compareGolden(t, "gradient of x", r.backward(c.Inputs.Cotangent.Data), c.Grads["x"].Data, c.RTol, c.ATol)
	r.compareState(c)
}

// checkLoss packs the padded rows, whose prompts are on the left of column Prompt
// and whose responses begin there. The published pooling divides the sum over n
// states by n+1e-8, ours by n: the states are scaled by what lies between, and so
// are their gradients.
func (c goldenHead) checkLoss(t *testing.T) {
	in, p := c.Inputs, c.Params
	B, W, C, V := in.IDs.Shape[0], in.IDs.Shape[1], p.Width, in.Logits.Shape[2]
	b := Batch{Offsets: []int32{0}}
	var hidden []float64
	var columns []int   // of the padded batch, for each token but the last of a row
	var scale []float64 // of the states, for each of these
	for i := range B {
		prompt := int32(0)
		for w := range W {
			k := i*W + w
			if in.Attention.Data[k] == 0 {
				continue
			}
			if w < p.Prompt {
				prompt++
			}
			b.Tokens = append(b.Tokens, int32(in.IDs.Data[k]))
			columns = append(columns, k)
		}
		columns = columns[:len(columns)-1]
		for n := float64(prompt - 1); len(scale) < len(columns); {
			for _, x := range in.Hidden.Data[columns[len(scale)]*C:][:C] {
				hidden = append(hidden, x*(n/(n+1e-8)))
			}
			scale = append(scale, n/(n+1e-8))
		}
		b.Offsets, b.Prompt = append(b.Offsets, int32(len(b.Tokens))), append(b.Prompt, prompt)
	}
	r := c.run(t, b, LogZConfig{Layers: p.Layers})
	logZ := r.logZ(hidden)

	// Logits as hidden states of a model whose output projection is 1.
	R := B * p.Response
	h, one := make([]float64, 0, R*V), make([]float64, V*V)
	for v := range V {
		one[v*V+v] = 1
	}
	var targets []int32
	for i := range B {
		first := i*W + p.Prompt
		h = append(h, in.Logits.Data[(first-1)*V:(first-1+p.Response)*V]...)
		for t := range p.Response {
			targets = append(targets, int32(in.IDs.Data[first+t]))
		}
	}
	logProb, entropy, lse := make([]float64, R), make([]float64, R), make([]float64, R)
	ref.LogProb(logProb, entropy, lse, h, one, targets, V, kernels.Softmax{Temperature: p.Temperature})

	rows, mask := rl.Rows{0}, make([]bool, R)
	for i := range B {
		rows = append(rows, (i+1)*p.Response)
	}
	for k, m := range in.Mask.Data {
		mask[k] = m != 0
	}
	loss := rl.FlowRLVariants()["recipe"].Loss
	loss.Beta = p.Beta
	dlogProb, dlogZ := make([]float64, R), make([]float64, B)
	var stats rl.FlowRLStats
	rl.FlowRL(dlogProb, dlogZ, &rl.Batch[float64]{Rows: rows, Mask: mask, LogProb: logProb, OldLogProb: in.Old.Data,
		RefLogProb: in.Ref.Data, Adv: in.Reward.Data}, logZ, B, loss, &stats)

	dh, done, zero := make([]float64, R*V), make([]float64, V*V), make([]float64, R)
	ref.LogProbBackward(dh, done, dlogProb, zero, entropy, lse, h, one, targets, []int32{0, int32(R)}, V, kernels.Softmax{Temperature: p.Temperature})
	dlogits := make([]float64, len(in.Logits.Data))
	for i := range B {
		first := i*W + p.Prompt
		copy(dlogits[(first-1)*V:], dh[i*p.Response*V:(i+1)*p.Response*V])
	}
	packed, dhidden := r.backward(dlogZ), make([]float64, len(in.Hidden.Data))
	for at, k := range columns {
		for j, d := range packed[at*C : (at+1)*C] {
			dhidden[k*C+j] = d * scale[at]
		}
	}

	compareGolden(t, "log Z", logZ, c.Outputs["log_z"].Data, c.RTol, c.ATol)
	compareGolden(t, "log-probs", pick(logProb, mask), pick(c.Outputs["log_prob"].Data, mask), c.RTol, c.ATol)
	compareGolden(t, "entropies", pick(entropy, mask), pick(c.Outputs["entropy"].Data, mask), c.RTol, c.ATol)
	compareGolden(t, "loss", []float64{stats.Loss}, c.Outputs["loss"].Data, c.RTol, c.ATol)
	compareGolden(t, "gradient of logits", dlogits, c.Grads["logits"].Data, c.RTol, c.ATol)
	compareGolden(t, "gradient of hidden states", dhidden, c.Grads["last_hidden_states"].Data, c.RTol, c.ATol)
	r.compareState(c)
	found := 0
	for _, m := range stats.Metrics() {
		if want, ok := c.Metrics[m.Name]; ok {
			found++
			compareGolden(t, m.Name, []float64{m.Value}, []float64{want}, 1e-6, 1e-8)
		}
	}
	if found != len(c.Metrics) {
		t.Errorf("%d of %d metrics", found, len(c.Metrics))
	}
}

func pick(x []float64, mask []bool) []float64 {
	var out []float64
	for i, on := range mask {
		if on {
			out = append(out, x[i])
		}
	}
	return out
}
