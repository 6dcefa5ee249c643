package train

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"exp/train/model"
	"exp/train/optim"
)

// Optimizers other than AdamW resume with the same bits.
func TestOptimizersContinue(t *testing.T) {
	for _, o := range []Optim{{Kind: optim.KindSGD}, {Kind: optim.KindSGD, Momentum: 0.9},
		{Kind: optim.KindMuon, Momentum: 0.95}} {
		t.Run(fmt.Sprint(o.Kind, o.Momentum), func(t *testing.T) {
			r := newToyRun(t, FlowRL, 2)
			p := &r.cfg.Policy
			p.Kind, p.Momentum, p.LR = o.Kind, o.Momentum, 1e-2
			r.cfg.Steps = 4
			r.run()
			if want := 1 + o.Kind.Moments(o.Momentum); len(r.trainer.Buffers()) != want {
				t.Errorf("%d buffers, want %d", len(r.trainer.Buffers()), want)
			}
			continues(t, r)
		})
	}
}

// Any number of ranks gives the bits of one process.
func TestOptimizersOnRanks(t *testing.T) {
	for _, kind := range []optim.Kind{optim.KindSGD, optim.KindMuon} {
		t.Run(fmt.Sprint(kind), func(t *testing.T) {
			toy := func() *toyRun {
				r := rankedToy(t, GRPO)
				p := &r.cfg.Policy
				p.Kind, p.Momentum, p.WeightDecay = kind, 0.9, 0.1
				return r
			}
			want := runRanked(t, 1, toy)
			for _, size := range []int{2, 3, 8} {
				runRanked(t, size, toy).same(t, want, "%d ranks", size)
			}
		})
	}
}

// Muon has the matrices of layers, of each expert and of adapters, but not of heads; queries, keys and values are
// three.
func TestHiddenMatrices(t *testing.T) {
	c := newToyRun(t, GRPO, 1).model
	c.TieEmbeddings, c.QKVBias = false, true
	heads := model.Heads{LM: true, LogZ: &model.LogZConfig{Layers: 2}}
	dense, _ := model.Layout(c, heads)
	heads.Adapters = &model.Adapters{Rank: 3, Alpha: 6, Targets: []string{"q_proj", "down_proj"}}
	adapters, _ := model.AdapterLayout(c, heads, heads.Adapters)
	c.Experts = model.Experts{Count: 2, Top: 1, FFN: 8}
	c.Sparse = []bool{true}
	sparse, _ := model.Layout(c, model.Heads{LM: true})
	const attention = "self_attn.q_proj.weight[32 32] self_attn.k_proj.weight[16 32] self_attn.v_proj.weight[16 32] " +
		"self_attn.o_proj.weight[32 32] "
	for _, tt := range []struct {
		tensors []model.Tensor
		want    string
	}{
		{dense, attention + "mlp.gate_proj.weight[48 32] mlp.up_proj.weight[48 32] mlp.down_proj.weight[32 48]"},
		{adapters, "self_attn.q_proj.lora_A.weight[3 32] self_attn.q_proj.lora_B.weight[32 3] " +
			"mlp.down_proj.lora_A.weight[3 48] mlp.down_proj.lora_B.weight[32 3]"},
		{sparse, attention + "mlp.gate.weight[2 32] " +
			"mlp.experts.0.gate_proj.weight[8 32] mlp.experts.0.up_proj.weight[8 32] mlp.experts.0.down_proj.weight[32 8] " +
			"mlp.experts.1.gate_proj.weight[8 32] mlp.experts.1.up_proj.weight[8 32] mlp.experts.1.down_proj.weight[32 8]"},
	} {
		var got []string
		var want []optim.Matrix
		for _, x := range tt.tensors {
			if x.Hidden() {
				_, name, _ := strings.Cut(x.Name, "layers.0.")
				got = append(got, fmt.Sprint(name, x.Shape))
				want = append(want, optim.Matrix{At: x.Offset(), Rows: x.Shape[0], Cols: x.Shape[1]})
			}
		}
		if s := strings.Join(got, " "); s != tt.want {
			t.Errorf("got  %s\nwant %s", s, tt.want)
		}
		if list := HiddenMatrices(tt.tensors); !slices.Equal(list, want) {
			t.Errorf("matrices %v, want %v", list, want)
		}
	}
}

// With LoRA+ the B of every adapter moves so many times as far as without, and nothing else moves otherwise: after one
// step of descent, whose gradients have no A, as B starts at zero. The ratio is a power of two, so the bits are equal.
func TestFasterB(t *testing.T) {
	run := func(ratio float64) (*model.Model, []float32) {
		r := newToyRun(t, FlowRL, 1)
		r.adapters = &model.Adapters{Rank: 3, Alpha: 6, Targets: r.model.AdapterTargets()}
		p := &r.cfg.Policy
		p.Kind, p.BRatio, p.Schedule.Warmup = optim.KindSGD, ratio, 0
		r.cfg.Steps, r.cfg.PromptsPerUpdate = 1, r.cfg.PromptsPerStep
		r.run()
		return r.trainer.Policy, r.params()
	}
	m, slow := run(0)
	_, fast := run(16)
	moved := map[string]bool{}
	for _, x := range m.Tensors() {
		factor, b := float32(1), strings.Contains(x.Name, ".lora_B.")
		if b {
			factor = 16
		}
		for i := x.Offset(); i < x.Offset()+x.Len(); i++ {
			if fast[i] != factor*slow[i] {
				t.Fatalf("%s: %v, want %v times %v", x.Name, fast[i], factor, slow[i])
			}
			moved[x.Name] = moved[x.Name] || b && slow[i] != 0
		}
		if b && !moved[x.Name] {
			t.Errorf("%s does not learn", x.Name)
		}
	}
	if n := len(m.Heads.Adapters.Targets); n != 7 || len(moved) < 2*n {
		t.Errorf("%d maps have adapters, of %d tensors", n, len(moved))
	}
}
