package stage

import (
	"slices"
	"testing"

	"exp/harness/config"
	"exp/train/model"
)

// Adapters are on the maps that targets name and exclude does not.
func TestAdaptedBy(t *testing.T) {
	arch := model.Config{Layers: 1, Width: 8, Heads: 2, KVHeads: 1, Head: 4, FFN: 16, Vocab: 9}
	for _, tt := range []struct{ targets, exclude, want []string }{
		{[]string{"all"}, nil, []string{"q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"}},
		{[]string{"all"}, []string{"down_proj", "q_proj"}, []string{"k_proj", "v_proj", "o_proj", "gate_proj", "up_proj"}},
		{[]string{"v_proj", "q_proj"}, nil, []string{"v_proj", "q_proj"}},
		{[]string{"v_proj", "q_proj"}, []string{"q_proj", "k_proj"}, []string{"v_proj"}},
		{[]string{"v_proj"}, []string{"v_proj"}, nil},
	} {
		l := config.LoRA{Rank: 4, Alpha: 8, Targets: tt.targets, Exclude: tt.exclude, RankStabilized: true}
		a := adaptedBy(l, model.Heads{LM: true}, arch).Adapters
		if !slices.Equal(a.Targets, tt.want) || a.Scale() != 4 {
			t.Errorf("%v but %v: %v multiplied by %v, want %v by 4", tt.targets, tt.exclude, a.Targets, a.Scale(), tt.want)
		}
	}
}
