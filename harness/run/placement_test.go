package run

import (
	"strings"
	"testing"

	"exp/harness/config"
	"exp/train/model"
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
		arch, ok := model.Published("Qwen/Qwen2.5-7B")
		if !ok {
			t.Fatal("no architecture")
		}
		return planOnGPU(g, config.Train, &r.Run, arch, longestOf(config.Train, &r.Run, arch), 1)
	}
	small, large := published()[0], published()[1]
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
	arch, ok := model.Published("Qwen/Qwen2.5-32B")
	if !ok {
		t.Fatal("no architecture")
	}
	plan := func(ranks int) planned {
		return planOnGPU(published()[0], config.Train, &r.Run, arch, longestOf(config.Train, &r.Run, arch), ranks)
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
