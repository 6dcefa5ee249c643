package model

import (
	"maps"
	"slices"
	"testing"
)

// The totals are the hub's figures under "Safetensors" for the models that
// store each parameter once. Where a tied output projection is stored a second
// time (Qwen3-0.6B and 1.7B), the difference is in the comment.
func TestPublishedParameters(t *testing.T) {
	tests := map[string]int{
		"Qwen/Qwen2.5-0.5B": 494_032_768,
		"Qwen/Qwen2.5-1.5B": 1_543_714_304,
		"Qwen/Qwen2.5-3B":   3_085_938_688,
		// By hand: 2·152064·3584 embeddings = 1,089,994,752; a layer is
		// 3584·(3584+2·512)+(3584+2·512) QKV + 3584² output + 3·3584·18944
		// feed-forward + 2·3584 norms = 233,057,792, times 28 = 6,525,618,176; and
		// 3584 of the last norm. Sum 7,615,616,512: the published 7.62 B.
		"Qwen/Qwen2.5-7B":        7_615_616_512,
		"Qwen/Qwen2.5-14B":       14_770_033_664,
		"Qwen/Qwen2.5-32B":       32_763_876_352,
		"Qwen/Qwen2.5-Math-1.5B": 1_543_714_304,
		"Qwen/Qwen2.5-Math-7B":   7_615_616_512,

		"deepseek-ai/DeepSeek-R1-Distill-Qwen-1.5B": 1_777_088_000,
		"deepseek-ai/DeepSeek-R1-Distill-Qwen-7B":   7_615_616_512,
		"deepseek-ai/DeepSeek-R1-Distill-Qwen-14B":  14_770_033_664,
		"deepseek-ai/DeepSeek-R1-Distill-Qwen-32B":  32_763_876_352,

		"Qwen/Qwen3-0.6B": 751_632_384 - 151936*1024,
		"Qwen/Qwen3-1.7B": 2_031_739_904 - 151936*2048,
		"Qwen/Qwen3-4B":   4_022_468_096,
		"Qwen/Qwen3-8B":   8_190_735_360,
		"Qwen/Qwen3-14B":  14_768_307_200,
		"Qwen/Qwen3-32B":  32_762_123_264,

		"meta-llama/Llama-2-7b-hf":   6_738_415_616,
		"meta-llama/Meta-Llama-3-8B": 8_030_261_248,
	}
	for _, name := range PublishedNames() {
		want, ok := tests[name]
		if !ok {
			t.Errorf("%s: no published total to compare with", name)
			continue
		}
		c, ok := Published(name)
		if err := c.Validate(); !ok || err != nil {
			t.Errorf("%s: found %v, %v", name, ok, err)
		}
		got, heads := Parameters(c, Heads{LM: true})
		if got != want || heads != 0 {
			t.Errorf("%s: %d parameters and %d in heads, want %d and none", name, got, heads, want)
		}
	}
	if got, want := len(PublishedNames()), len(tests); got != want {
		t.Errorf("%d names, want %d", got, want)
	}
	if _, ok := Published("Qwen/Qwen2.5-7b"); ok {
		t.Error("a misspelt name was found")
	}
}

// PublishedNames returns the names that Published knows, sorted.
func PublishedNames() []string { return slices.Sorted(maps.Keys(published())) }
