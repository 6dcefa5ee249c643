package forecast

import (
	"exp/harness/fault"
	"slices"
	"strings"
	"testing"
)

// Ranks that only sample need neither a slice nor room for gradients. In SFT they learn, too.
func TestCheckRanksThatSample(t *testing.T) {
	for _, tt := range []struct {
		ranks int
		sets  []string
		want  string
	}{
		{10, []string{"compute.rollout_ranks=2"}, ""},
		{11, []string{"compute.rollout_ranks=2"}, "8 slices (train.slices), and every rank that learns needs one"},
		{10, []string{"compute.rollout_ranks=0"}, "8 slices (train.slices), and every rank needs one"},
		{10, []string{"compute.rollout_ranks=2", "sft={steps: 1, optim: {lr: 1e-5}}"}, "and in SFT (sft.steps) every rank needs one"},
		{8, []string{"compute.rollout_ranks=8"}, "no rank of 8 learns"},
		{8, []string{"compute.rollout_ranks=7", "compute.offload=all"}, ""},
		{8, []string{"compute.rollout_ranks=6", "compute.offload=all"}, "every rank that learns exchanges gradients"},
		{8, []string{"compute.rollout_ranks=7", "compute.offload=all", "sft={steps: 1, optim: {lr: 1e-5}}"}, "in SFT (sft.steps) every rank " +
			"exchanges gradients"},
	} {
		err := CheckRanks(recipe(t, "flowrl_7b_math.yaml", append(tt.sets, "train.slices=8", "rollout.staleness=1")...),
			tt.ranks)
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%d ranks, %v: %v, want %q", tt.ranks, tt.sets, err, tt.want)
		}
	}
}

// Refused numbers of ranks come with what fits instead.
func TestCheckRanksAdvises(t *testing.T) {
	const arch = "model.arch={width: 128, heads: 8, kv_heads: 2, ffn: 192}" // parts of 32 columns: up to 2
	ahead := []string{"rollout.staleness=1", "sft.steps=0"}
	for _, tt := range []struct {
		ranks int
		sets  []string
		want  string
	}{
		{4, []string{"compute.tensor_parallel=4"}, "compute.tensor_parallel: 2 is the most for this model and these ranks"},
		{4, []string{"compute.rollout_tensor_parallel=4"}, "compute.rollout_tensor_parallel: 2 is the most for this model"},
		{3, []string{"compute.tensor_parallel=3"}, "compute.tensor_parallel: 1 is the most for this model and these ranks"},
		{3, []string{"compute.tensor_parallel=2"}, "--ranks 4 fits"},
		{5, []string{"compute.tensor_parallel=2", "compute.rollout_tensor_parallel=4"}, "--ranks 8 fits"},
		{17, []string{"compute.tensor_parallel=2"}, "--ranks 16 fits"}, // 8 slices
		{4, append(slices.Clone(ahead), "compute.tensor_parallel=2", "compute.rollout_ranks=1"), // and as many in sampling
			"--ranks 6 with compute.rollout_ranks: 2 fits"},
		{4, append(slices.Clone(ahead), "compute.tensor_parallel=2", "compute.rollout_tensor_parallel=1", "compute.rollout_ranks=1"),
			"--ranks 5 fits"},
		{4, append(slices.Clone(ahead), "compute.rollout_tensor_parallel=2", "compute.rollout_ranks=1"),
			"--ranks 5 with compute.rollout_ranks: 2 fits"},
		{4, append(slices.Clone(ahead), "compute.tensor_parallel=2", "compute.rollout_tensor_parallel=1", "compute.rollout_ranks=1",
			"sft.steps=1"), "make compute.tensor_parallel smaller"}, // ranks that learn, and all ranks in SFT
	} {
		err := CheckRanks(smoke(t, append(tt.sets, arch)...), tt.ranks)
		if got := fault.Hint(err); err == nil || !strings.HasPrefix(got, tt.want) {
			t.Errorf("%d ranks, %v: %v; %q, want %q", tt.ranks, tt.sets, err, got, tt.want)
		}
	}
}
