package forecast

import (
	"strings"
	"testing"

	"exp/harness/config"
	"exp/harness/stage"
	"exp/train"
	"exp/train/published"
)

// The 7B recipe fits on one GPU of 141 GB, with moments and waiting gradients on the host and a cache
// with what is left; an 80 GB GPU is too small. compute.offload and rollout.cache_tokens decide if set.
func TestPlacement(t *testing.T) {
	plan := func(g figures, sets ...string) planned {
		t.Helper()
		r, err := config.Load(config.Input{File: "../../configs/flowrl_7b_math.yaml", Sets: sets})
		if err != nil {
			t.Fatal(err)
		}
		arch, ok := published.Model("Qwen/Qwen2.5-7B")
		if !ok {
			t.Fatal("no architecture")
		}
		return planOnGPU(g, config.Train, &r.Run, arch, longestOf(config.Train, &r.Run, arch), stage.Everyone(&r.Run, 1))
	}
	small, large := publishedGPUs()[0], publishedGPUs()[1]
	p := plan(large)
	if !p.fits() || !p.placement.Moments || !p.placement.Sums || p.placement.CacheTokens < 700_000 {
		t.Errorf("on %s: %d bytes, %+v", large.Name, sumParts(p.device), p.placement)
	}
	if free := large.usable() - sumParts(p.device); free < 0 || free > 4<<20 {
		t.Errorf("the plan leaves %d bytes", free)
	}
	if host := sumParts(p.host); host/1e9 != 152 {
		t.Errorf("%d bytes of the host", host)
	}
	if p := plan(small); p.fits() {
		t.Errorf("on %s: %d bytes", small.Name, sumParts(p.device))
	}
	huge := figures{"huge", 1 << 40}
	if p := plan(huge); !p.fits() || len(p.host) > 0 || p.placement.CacheTokens != 0 {
		t.Errorf("with room: %+v, host %v", p.placement, p.host)
	}
	if p := plan(huge, "compute.offload=moments"); len(p.host) != 1 || !p.placement.Moments || p.placement.Sums {
		t.Errorf("moments: %+v, host %v", p.placement, p.host)
	}
	if p := plan(large, "compute.offload=none"); p.fits() {
		t.Error("fits without offload")
	}
	if p := plan(large, "compute.offload=all"); len(p.host) != 2 {
		t.Errorf("all: host %v", p.host)
	}
	if p := plan(large, "rollout.cache_tokens=100000"); p.placement.CacheTokens != 100_000 || !p.fits() {
		t.Errorf("a cache of 100000 tokens: %+v", p.placement)
	}
}

// 32B fits on 8 GPUs of 80 GB that share its products: the host holds what nobody exchanges. Groups of
// ranks exchange gradients, which then stay on the device.
func TestPlacementOnRanks(t *testing.T) {
	r := recipe(t, "flowrl_32b_math.yaml")
	arch, ok := published.Model("Qwen/Qwen2.5-32B")
	if !ok {
		t.Fatal("no architecture")
	}
	plan := func(ranks int) planned {
		return planOnGPU(publishedGPUs()[0], config.Train, &r.Run, arch, longestOf(config.Train, &r.Run, arch), stage.Everyone(&r.Run, ranks))
	}
	if p := plan(8); !p.fits() || !p.placement.Moments || !p.placement.Sums {
		t.Errorf("8 ranks: %d bytes, %+v", sumParts(p.device), p.placement)
	}
	if p := plan(32); !p.fits() || p.placement.Sums {
		t.Errorf("32 ranks: %d bytes, %+v", sumParts(p.device), p.placement)
	}
	if err := CheckRanks(recipe(t, "flowrl_7b_math.yaml", "compute.offload=all"), 8); err == nil ||
		!strings.Contains(err.Error(), "set it to moments or auto") {
		t.Errorf("compute.offload: all on 8 ranks: %v", err)
	}
}

// A rank that only samples gets the memory that a learner needs for moments and waiting gradients, as
// a larger cache, and moves nothing to the host.
func TestPlacementOfSamplers(t *testing.T) {
	arch, ok := published.Model("Qwen/Qwen2.5-7B")
	if !ok {
		t.Fatal("no architecture")
	}
	r := recipe(t, "flowrl_7b_math.yaml", "rollout.staleness=1", "compute.rollout_ranks=2")
	plan := func(memory int64, w stage.Crew) stage.Placement {
		return planOnGPU(figures{"", memory}, config.Train, &r.Run, arch, longestOf(config.Train, &r.Run, arch), w).placement
	}
	large := publishedGPUs()[1].Memory
	sampler, both := plan(large, stage.Samplers(&r.Run, 8)), plan(large, stage.Everyone(&r.Run, 8))
	if both.CacheTokens == 0 || sampler.Offload != (train.Offload{}) || sampler.CacheTokens < 2*both.CacheTokens {
		t.Errorf("a rank that does both has %+v, a sampler %+v", both, sampler)
	}
	if got := plan(1<<40, stage.Samplers(&r.Run, 8)); got != (stage.Placement{}) {
		t.Errorf("with room a sampler has %+v", got)
	}
}

// A cache smaller than an engine takes is planned, and stated after the parts of memory, with the room
// that it will have.
func TestLeastCache(t *testing.T) {
	for _, set := range []string{"compute.device=cpu", noGPU} {
		r := recipe(t, "smoke_cpu.yaml", "rollout.cache_tokens=3", set)
		e, err := Of(r, 1).Estimate()
		if err != nil {
			t.Fatal(err)
		}
		arch, err := architectureOf(&r.Run, 0)
		if err != nil {
			t.Fatal(err)
		}
		engine := engineOf(config.Train, &r.Run, arch, longestOf(config.Train, &r.Run, arch), stage.Everyone(&r.Run, 1))
		if e.CacheTokens != engine.LeastCache() {
			t.Errorf("%s: a cache of %d tokens, want %d", set, e.CacheTokens, engine.LeastCache())
		}
		_, after, said := strings.Cut(e.Text(""), "the cache holds ")
		if before, _, _ := strings.Cut(after, "disk "); !said || strings.Contains(before, " the program: ") {
			t.Errorf("%s: the cache is not after the parts:\n%s", set, e.Text(""))
		}
	}
}
