//go:build cuda

package run

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"exp/experiments/ident"
	"exp/experiments/quantity"
	"exp/harness/device"
	"exp/harness/prompt/prompttest"
)

// On the fake driver (make cuda) a run takes the device memory that its plan says.
func TestMemoryIsAsPlannedOnCUDA(t *testing.T) {
	if _, ok := os.LookupEnv("FAKECUDA"); !ok {
		t.Skip("needs the fake driver: make cuda")
	}
	for i, sets := range [][]string{
		{"model.dtype=bf16"},
		{"compute={recompute: true, micro_batch_tokens: 2000}"},
		{"algo.kind=ppo", "algo.critic.warmup_steps=0", "rollout={max_sequences: 20, page_tokens: 64}"},
		{"algo.kind=grpo", "algo.kl.loss_coef=0.01", "train.lora.rank=4", "model.arch.tie_embeddings=false"},
		{"compute.offload=all", "rollout.cache_tokens=2048", "algo.kind=ppo", "algo.critic.warmup_steps=0"},
		{"compute.offload=moments", "algo.kind=ppo", "algo.critic.warmup_steps=0"},
		nil,
		{"model.dtype=bf16", "algo.kind=ppo", "algo.critic.warmup_steps=0"},
		{"model.dtype=bf16", "compute.numerics=matrix/16x25", "sft.steps=2", "sft.optim.warmup_steps=0", "train.steps=2"},
		{"compute.offload=all", "rollout.cache_tokens=2048"},
		{"compute.offload=moments", "algo={reference_every: 2, reference_resets_optimizer: true}"},
		{"compute.offload=moments", "train.optim.kind=muon"},
	} {
		t.Run(strings.Join(sets, " "), func(t *testing.T) {
			if i%4 > 0 && os.Getenv("EXP_TEST_ALL") == "" {
				t.Skip("left out without EXP_TEST_ALL=1")
			}
			for kind, use := range memoryOfRun(t, "smoke_cpu.yaml", append(sets, "compute.device="+device.CUDA)) {
				t.Logf("%s: peak %s, planned %s", kind, quantity.Bytes(use.Peak), quantity.Bytes(use.Planned))
				if p, planned := float64(use.Peak), float64(use.Planned); !(p > 0 && p <= 1.02*planned && planned <= 1.1*p) {
					t.Errorf("%s: peak %s, planned %s: %.2f times", kind, quantity.Bytes(use.Peak), quantity.Bytes(use.Planned), p/planned)
				}
			}
		})
	}
}

// On the fake driver (make cuda) learning a teacher's likeliest tokens takes the device memory that the plan says.
func TestTeacherMemoryOnCUDA(t *testing.T) {
	if _, ok := os.LookupEnv("FAKECUDA"); !ok {
		t.Skip("needs the fake driver: make cuda")
	}
	folder := newLab(t).teacher()
	for _, dtype := range []string{"f32", "bf16"} {
		sets := append(taught(folder), "algo.distill.top_k=9", "model.dtype="+dtype, "train.steps=2", "compute.device="+device.CUDA)
		use := memoryOfRun(t, "smoke_cpu.yaml", sets)["train"]
		if p, planned := float64(use.Peak), float64(use.Planned); !(p > 0 && p <= 1.02*planned && planned <= 1.1*p) {
			t.Errorf("%s: peak %s, planned %s: %.2f times", dtype, quantity.Bytes(use.Peak), quantity.Bytes(use.Planned), p/planned)
		}
	}
}

// On the fake driver (make cuda) a model with linear attention learns as on the CPU, in the memory that its plan
// says.
func TestLinearAttentionOnCUDA(t *testing.T) {
	if _, ok := os.LookupEnv("FAKECUDA"); !ok {
		t.Skip("needs the fake driver: make cuda")
	}
	learnsOnCUDA(t, linearFolder(t, publishedFolder(t)), 0, 1)
	learnsOnCUDA(t, olmoHybridFolder(t, publishedFolder(t)), 0, 1)
}

// Hybrids with Mamba-2, in layers of its own and beside attention, learn as on the CPU, too.
func TestHybridsOnCUDA(t *testing.T) {
	if _, ok := os.LookupEnv("FAKECUDA"); !ok {
		t.Skip("needs the fake driver: make cuda")
	}
	base := publishedFolder(t)
	for i, dir := range append(hybridFolders(t, base), falconFolder(t, base)) {
		learnsOnCUDA(t, dir, i%2)
	}
}

// So do models with gated short convolutions.
func TestShortConvolutionsOnCUDA(t *testing.T) {
	if _, ok := os.LookupEnv("FAKECUDA"); !ok {
		t.Skip("needs the fake driver: make cuda")
	}
	for i, dir := range lfmFolders(t, publishedFolder(t)) {
		learnsOnCUDA(t, dir, i%2, i%2+1)
	}
}

// So does Gemma 4, with experts beside its blocks and with layers that read the keys of other layers.
func TestGemmaFourOnCUDA(t *testing.T) {
	if _, ok := os.LookupEnv("FAKECUDA"); !ok {
		t.Skip("needs the fake driver: make cuda")
	}
	for i, c := range gemmaFours()[1:] {
		learnsOnCUDA(t, toyFolder(t, publishedFolder(t), c), i%2)
	}
}

// So do models with LayerNorm.
func TestLayerNormsOnCUDA(t *testing.T) {
	if _, ok := os.LookupEnv("FAKECUDA"); !ok {
		t.Skip("needs the fake driver: make cuda")
	}
	for i, c := range layerNorms() {
		learnsOnCUDA(t, toyFolder(t, publishedFolder(t), c), i%3)
	}
}

// So does Gemma 3 from problems with images, whose tokens see each other: in the adapters' or all weights' gradients and
// where prompts fill pages.
func TestImagesThatSeeAheadOnCUDA(t *testing.T) {
	if _, ok := os.LookupEnv("FAKECUDA"); !ok {
		t.Skip("needs the fake driver: make cuda")
	}
	dir := prompttest.PictureFolder(t, prompttest.SquarePictureConfig)
	learnsSetsOnCUDA(t, imageSets(dir, squares(t), "train.prompts_per_step=4"), 0, 1)
}

// learnsOnCUDA runs a model on the CPU and on the fake driver, with the chosen ones of three settings unless
// EXP_TEST_ALL asks for all.
func learnsOnCUDA(t *testing.T, dir string, chosen ...int) {
	t.Helper()
	learnsSetsOnCUDA(t, loraSets(dir, verlFile(t), "grpo"), chosen...)
}

// learnsSetsOnCUDA is learnsOnCUDA for a run with adapters.
func learnsSetsOnCUDA(t *testing.T, run []string, chosen ...int) {
	t.Helper()
	for i, more := range [][]string{{"compute.recompute=true"}, {"model.dtype=bf16", "compute.numerics=matrix/16x25"},
		{"model.dtype=bf16"}} {
		if !slices.Contains(chosen, i) && os.Getenv("EXP_TEST_ALL") == "" {
			continue
		}
		more = append(more, "train.steps=1", "rollout.max_new_tokens=16", "eval.final.n=1")
		var outputs [2]map[string]ident.Digest
		for j, on := range []string{"cpu", device.CUDA} {
			sets := slices.Concat(run, more, []string{fmt.Sprint("name=alike", i)})
			if i != 1 { // all weights learn
				sets = slices.DeleteFunc(sets, func(s string) bool { return strings.HasPrefix(s, "train.lora=") })
			}
			r := newLab(t).plan(0, sets...).Config
			r.Run.Compute.Device = on
			be, err := device.ForRun(&r.Run, os.Getenv)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(be.Close)
			l := labOn(t, be)
			res, _ := l.execute(l.plan(0, append(sets, "compute.device="+on)...))
			outputs[j] = l.outputs(res.Run.ID)
			for kind, use := range l.memoryOf(res.Run.ID) {
				if p, planned := float64(use.Peak), float64(use.Planned); on == device.CUDA && !(p > 0 && p <= 1.02*planned && planned <= 1.2*p) {
					t.Errorf("%v, %s: peak %s, planned %s: %.2f times", more, kind, quantity.Bytes(use.Peak),
						quantity.Bytes(use.Planned), p/planned)
				}
			}
		}
		if len(outputs[0]) < 8 || !maps.Equal(outputs[0], outputs[1]) {
			t.Errorf("%v: on the GPU %v, on the CPU %v", more, outputs[1], outputs[0])
		}
	}
}
