package train

import (
	"fmt"
	"testing"

	"exp/train/model"
	"exp/train/optim"
)

// Optimizers other than AdamW resume with the same bits and raise the reward.
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

// Muon has the matrices of layers and of adapters; queries, keys and values are three.
func TestHiddenMatrices(t *testing.T) {
	c := newToyRun(t, GRPO, 1).model
	c.TieEmbeddings, c.QKVBias = false, true
	tensors, _ := model.Layout(c, model.Heads{LM: true, LogZ: &model.LogZConfig{Layers: 2}})
	var got []string
	for _, t := range tensors {
		if t.Hidden() {
			got = append(got, fmt.Sprint(t.Name[len("model.layers.0."):], t.Shape))
		}
	}
	want := "[self_attn.q_proj.weight[32 32] self_attn.k_proj.weight[16 32] self_attn.v_proj.weight[16 32] " +
		"self_attn.o_proj.weight[32 32] mlp.gate_proj.weight[48 32] mlp.up_proj.weight[48 32] mlp.down_proj.weight[32 48]]"
	if s := fmt.Sprint(got); s != want {
		t.Errorf("got  %s\nwant %s", s, want)
	}
	if list := HiddenMatrices(tensors); len(list) != len(got) {
		t.Errorf("%d matrices of %d hidden tensors", len(list), len(got))
	}
}
