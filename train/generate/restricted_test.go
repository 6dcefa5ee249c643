package generate

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"exp/train/rollout"
)

// The recorded log-probs come from the full softmax, bit for bit the trainer's,
// also where top-k, top-p, min-p or greediness choose among fewer tokens.
func TestRestrictedSamplingRecordsTheTrainersLogProbs(t *testing.T) {
	for _, p := range []rollout.Params{
		{Temperature: 0.8, TopK: 2, TopP: 1},
		{Temperature: 1.2, TopP: 0.6},
		{Temperature: 1, TopP: 1, MinP: 0.3},
		{Temperature: 0.7, TopK: 3, TopP: 0.9, MinP: 0.05},
		{Temperature: 0.8, TopP: 1, Penalties: rollout.Penalties{Repetition: 1.3, Presence: 0.5, Frequency: 0.2}},
		{Temperature: 0, TopP: 1, Bias: []rollout.Bias{{Token: 4, Add: 5}}, MinNewTokens: 5},
		{Temperature: 0, TopP: 1}, // scored at temperature 1
	} {
		t.Run(fmt.Sprintf("%+v", p), func(t *testing.T) {
			p.MaxNewTokens = 12
			r := rand.New(rand.NewPCG(8, 1))
			be, other := openCPU(t, 2), openCPU(t, 3)
			e := newEngine(t, be, newModel(t, be, toy), Options{MaxSequences: 5, PageTokens: 16, MaxTokens: 64})
			reqs := requests(r, 4, 3, 30)
			out := sample(t, e, reqs, p)
			temperature := p.Temperature
			if temperature == 0 {
				temperature = 1
			}
			lp, h := trainerLogProbs(t, other, newModel(t, other, toy), reqs, out, temperature, 90)
			at := 0
			for i := range out {
				for k, c := range out[i] {
					for j := range c.Tokens {
						if c.LogProbs[j] != lp[at] || c.Entropies[j] != h[at] {
							t.Fatalf("prompt %d sample %d token %d: sampler %v, %v; trainer %v, %v", i, k, j, c.LogProbs[j], c.Entropies[j], lp[at], h[at])
						}
						at++
					}
				}
			}
			if at != len(lp) || at == 0 {
				t.Errorf("%d tokens sampled, %d scored", at, len(lp))
			}
		})
	}
}

// A problem's prompt is computed once for all completions, without its last token, which
// is a row of each completion.
func TestPromptsAreComputedOnce(t *testing.T) {
	be := openCPU(t, 2)
	reqs := requests(rand.New(rand.NewPCG(3, 3)), 5, 6, 40)
	e := newEngine(t, be, newModel(t, be, toy), Options{MaxSequences: 4, PageTokens: 16, MaxTokens: 64})
	out := sample(t, e, reqs, rollout.Params{Temperature: 1, TopP: 1, MaxNewTokens: 5})
	prompts, sampled := 0, 0
	for i := range reqs {
		prompts += len(reqs[i].Prompt) - 1
		for _, c := range out[i] {
			sampled += len(c.Tokens)
		}
	}
	if got := e.Stats(); got.PromptTokens != prompts || got.SampledTokens != sampled {
		t.Errorf("computed %d prompt tokens and %d sampled ones, want %d and %d", got.PromptTokens, got.SampledTokens, prompts, sampled)
	}
}
