package forecast

import (
	"slices"
	"testing"

	"exp/harness/prompt"
	"exp/harness/stage"
	"exp/kernels"
	"exp/train/generate"
)

// A run that only evaluates benchmarks needs what the largest of them does, with the tower of images that the plan has
// already; with other data the plan stays as it is.
func TestShowSuites(t *testing.T) {
	sets := []string{"data={train: {source: none, size: 0}, val: {source: none, size: 0}, test: {source: none, size: 0}}", "train.steps=0", "sft.steps=0",
		"eval={online: {every_steps: 0}, final: {suites: [a, b]}}"}
	r := recipe(t, "smoke_cpu.yaml", sets...)
	plan := func() Estimate {
		e, err := Of(r, 1).Estimate()
		if err != nil {
			t.Fatal(err)
		}
		e.Memory = append(e.Memory, Part{Name: towerPart, Bytes: 99})
		return e
	}
	o := func(sequences, cache int) generate.Options {
		return generate.Options{MaxSequences: sequences, PageTokens: 16, MaxTokens: 48, StepRows: sequences + 256, CacheTokens: cache}
	}
	needs := []stage.SuiteNeeds{{Engine: o(9, 320), Held: 320, Scored: true}, {Engine: o(40, 0), Held: 640}}
	arch, _ := Architecture(&r.Run)
	page := int64(arch.CacheBytes(1, 16, kernels.F32, 1))
	before, e := plan(), plan()
	if e.ShowSuites(&r.Run, nil); !slices.Equal(e.Memory, before.Memory) {
		t.Errorf("without benchmarks: %v", e.Memory)
	}
	e.ShowSuites(&r.Run, needs)
	got := map[string]Part{}
	for _, p := range e.Memory {
		got[p.Name] = p
	}
	cache := got[string(kernels.CacheRoom)]
	if want := int64(o(40, 0).FullCache()) / 16 * page; cache.Bytes != want || cache.resident() != 640/16*page || got[towerPart].Bytes != 99 {
		t.Errorf("%+v, want a cache of %d bytes with %d touched; in all %v", cache, want, 640/16*page, e.Memory)
	}
	one := plan()
	one.ShowSuites(&r.Run, needs[:1])
	i := slices.IndexFunc(one.Memory, func(p Part) bool { return p.Name == string(kernels.CacheRoom) })
	if one.Memory[i] != (Part{Name: string(kernels.CacheRoom), Bytes: 320 / 16 * page}) {
		t.Errorf("of options: %v", one.Memory)
	}
	// Options are drawn with changed logits, which need all of a step's logits and their exponentials.
	plain := plan()
	plain.ShowSuites(&r.Run, []stage.SuiteNeeds{{Engine: o(9, 320), Held: 320}})
	if a, b := sumParts(one.Memory), sumParts(plain.Memory); a != b+2*4*int64(o(9, 0).Draws()*arch.Vocab) {
		t.Errorf("%d bytes for options, %d for completions", a, b)
	}
	own := recipe(t, "smoke_cpu.yaml", sets[1:]...)
	trained, err := Of(own, 1).Estimate()
	if err != nil {
		t.Fatal(err)
	}
	was := slices.Clone(trained.Memory)
	if trained.ShowSuites(&own.Run, needs); !slices.Equal(trained.Memory, was) {
		t.Errorf("with training data: %v", trained.Memory)
	}
}

// Shorter prompts than the limit leave some of the cache and of the activations untouched; unknown ones do not.
func TestShowPrompts(t *testing.T) {
	r := smoke(t, "train.prompts_per_step=4", "rollout.n=2", "eval.online.problems=4", "compute.micro_batch_tokens=4096", "rollout.max_new_tokens=8",
		"data.max_prompt_tokens=50", "model.arch.width=2048")
	of := func(longest int) map[string]Part {
		e, err := Of(r, 1).Estimate()
		if err != nil {
			t.Fatal(err)
		}
		e.Show(&r.Run, prompt.Plan{Longest: longest})
		m := map[string]Part{}
		for _, p := range e.Memory {
			m[p.Name] = p
		}
		return m
	}
	arch, _ := Architecture(&r.Run)
	page := int64(arch.CacheBytes(1, 16, kernels.F32, 1))
	whole, short := of(0), of(9)
	// The largest call is 4 problems with 2 completions each. Of 9 tokens and 8 more the prompt has a page, and each
	// completion its own.
	cache := string(kernels.CacheRoom)
	if n := whole[cache].Untouched; n != 0 || short[cache].Bytes != whole[cache].Bytes || short[cache].resident() != page*(4*(1+2)+1) {
		t.Errorf("%d pages of %d, %d untouched of long prompts", short[cache].resident()/page, short[cache].Bytes/page, n/page)
	}
	acts := string(kernels.ActivationRoom)
	if a, b := whole[acts], short[acts]; b.Bytes != a.Bytes || b.Untouched <= a.Untouched {
		t.Errorf("activations: %+v, with short prompts %+v", a, b)
	}
	for _, n := range []int{50, 60} {
		if got := of(n); got[acts] != whole[acts] || got[cache] != whole[cache] {
			t.Errorf("prompts of %d tokens: %+v, %+v", n, got[acts], got[cache])
		}
	}
}
