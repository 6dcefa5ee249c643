package published

import (
	"testing"

	"exp/train/model"
)

// The totals are the hub's figures under "Safetensors", less an output projection that is a stored copy of tied
// embeddings (Qwen3-0.6B and 1.7B). Qwen3.5's count images, too; llama.cpp prints what its text models have, in
// billions. gpt-oss's are in arXiv:2508.10925, table 1.
func TestParameters(t *testing.T) {
	text := map[string]float64{"Qwen/Qwen3.5-0.8B": 0.75, "Qwen/Qwen3.5-2B": 1.88, "Qwen/Qwen3.5-4B": 4.21, "Qwen/Qwen3.5-9B": 8.95,
		"Qwen/Qwen3.5-27B": 26.90, "Qwen/Qwen3.5-35B-A3B": 34.66, "openai/gpt-oss-20b": 20.91, "openai/gpt-oss-120b": 116.83}
	for _, name := range Names() {
		c, err := byName()[name].config(name)
		if err != nil {
			t.Error(err)
			continue
		}
		got, heads := model.Parameters(c, model.Heads{LM: true})
		if want := byName()[name].Parameters; want != 0 && got != want || heads != 0 {
			t.Errorf("%s: %d parameters and %d in heads, want %d and none", name, got, heads, want)
		}
		if want, ok := text[name]; ok && (float64(got)/1e9 < want-0.005 || float64(got)/1e9 > want+0.005) {
			t.Errorf("%s: %d parameters, want %.2f billions", name, got, want)
		}
	}
	// By hand: 2·152064·3584 embeddings = 1,089,994,752; a layer is
	// 3584·(3584+2·512)+(3584+2·512) QKV + 3584² output + 3·3584·18944
	// feed-forward + 2·3584 norms = 233,057,792, times 28 = 6,525,618,176; and
	// 3584 of the last norm. Sum 7,615,616,512: the published 7.62 B.
	for _, name := range []string{"Qwen/Qwen2.5-7B", "Qwen/Qwen2.5-7B-Instruct", "deepseek-ai/DeepSeek-R1-Distill-Qwen-7B"} {
		c, ok := Model(name)
		if n, _ := model.Parameters(c, model.Heads{LM: true}); !ok || n != 7_615_616_512 {
			t.Errorf("%s: %v, %d parameters", name, ok, n)
		}
	}
	if _, ok := Model("Qwen/Qwen2.5-7b"); ok {
		t.Error("a misspelt name was found")
	}
}
