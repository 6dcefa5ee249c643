package stage

import (
	"testing"

	"exp/eval/suite"
	"exp/experiments/ident"
	"exp/harness/config"
	"exp/harness/prompt"
	"exp/harness/prompt/prompttest"
)

// The prompts of a benchmark have the ids of transformers' apply_chat_template (4.57.3,
// add_generation_prompt) on messages=[{"role": "user", "content": problem + suffix}].
func TestPublishedPrompts(t *testing.T) {
	dir := prompttest.QwenTokenizer(t)
	s, err := suite.Read("math500", prompttest.DataPath(t, "benchmarks/math500.jsonl"), suite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	p, err := prompterOf(t, dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	for prompt, want := range map[string][]struct {
		n   int
		sum string // SHA-256 of the ids, little-endian, 32 bits each
	}{
		"{problem}": {
			{76, "cf16d71fe9b70dd18ad57e68af886b823518cd19e0efda707e15211f49e7afd1"},
			{139, "85ae6e8a8e5c8e379e519f840d9f202b470cfe4a52b07322af4257d4ffb4ffb4"},
			{76, "869f1d6b15fa49b3e0165a17cdca6d4fd7c74e0598d89db6f7e014e2581c17c0"},
			{43, "d4358ea6a22d3df0138cab365ec7e98e92be9b286b24d60f84429a9707ccbb2a"},
			{368, "0c557428a9320887868d6aab2bc3ade3db1448a94ab5176a794c5d34b021571d"},
		},
		"{problem}\nPlease reason step by step, and put your final answer within \\boxed{}.": {
			{92, "6b7a04ec940b1d49aff71f37424e500b4f5bb1fcc6babc9b3a6a8805eff45ae8"},
			{155, "58c2f7bffc1f3c417b97b80a2e0009aef9a0f2125ab1faf1ddb575d54c30da13"},
			{91, "2a854d1229187bbaea7ae83d15378581d403cf9e31d1452b393dc1c5853cffcb"},
			{58, "3d6020a3bdc5aa943d618e145c0ac6d336dee346b0826841fbb6dddb755e1a1c"},
			{383, "05bc48e134eb842246dd5d0c6b99cc63c3cbab3bf3d373ad20e0ca2e1b5748c9"},
		},
	} {
		e := &Env{Config: &config.Resolved{}, Suites: []Suite{{Name: "math500"}}}
		e.Config.Run.Eval.Final.Prompt = prompt
		for i, problem := range must(e.rendered(s.Problems[:5], "math500")) {
			ids, err := p.Encode(&problem)
			if err != nil {
				t.Fatal(err)
			}
			if got := ident.SumLE(ids).String(); len(ids) != want[i].n || got != want[i].sum {
				t.Errorf("%q, problem %d: %d ids, %s; want %d, %s", prompt, i, len(ids), got, want[i].n, want[i].sum)
			}
		}
	}
	if got, want := prompt.StopText(p.Stops), "151645 <|im_end|> (eos_token of tokenizer_config.json, end of turn of the chat template)"; got != want {
		t.Errorf("stop ids %s, want %s", got, want)
	}
}
