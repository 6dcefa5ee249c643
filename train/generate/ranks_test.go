package generate

import (
	"math/rand/v2"
	"sync"
	"testing"

	"exp/train/ranks"
	"exp/train/rollout"
	"exp/train/tensor"
)

// Ranks that share products compute the same drafts, also if their processors differ.
func TestRanksDraftAlike(t *testing.T) {
	c := toy
	c.Width, c.Head, c.KVHeads, c.FFN = 128, 32, 2, 256
	r := rand.New(rand.NewPCG(3, 4))
	reqs := guessable(r, 6, 4, 40)
	be := openCPU(t, 1)
	o := Options{MaxSequences: 3, PageTokens: 16, MaxTokens: 96, StepRows: 60}
	for _, p := range []rollout.Params{{TopP: 1, MaxNewTokens: 50}, {Temperature: 0.7, TopP: 1, MaxNewTokens: 50,
		Environment: oracle{3, noDelay, ""}}} {
		want := sample(t, newEngine(t, be, newModel(t, be, c), o), reqs, p)
		stats := make([]Stats, 2)
		var work sync.WaitGroup
		for i, g := range ranks.InProcess(2) {
			share := tensor.New(openCPU(t, 1), g)
			t.Cleanup(share.Close)
			work.Go(func() {
				o := o
				o.Ridge, o.Products = []int{60, 4}[i], g
				e := newEngine(t, share, newModel(t, share, c), o)
				for range 2 {
					if d := differ(sample(t, e, reqs, p), want); d != "" {
						t.Errorf("rank %d: %s", i, d)
					}
				}
				stats[i] = e.Stats()
			})
		}
		work.Wait()
		if stats[0] != stats[1] || stats[0].KeptDrafts == 0 {
			t.Errorf("%+v", stats)
		}
	}
}
