package generate

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"exp/kernels"
	"exp/train/model"
	"exp/train/rollout"
)

// endless is a vocabulary without an end token; its only piece is made in advance, as in a
// tokenizer.
type endless struct{ piece []byte }

func (v endless) Piece(int32) []byte { return v.piece }
func (endless) EndIDs() []int32      { return nil }

var freely = kernels.Sampling{Temperature: 1, TopP: 1}

// decoding returns an engine and a schedule at the steps where all its sequences decode,
// with left tokens to go.
func decoding(t testing.TB, c model.Config, threads, sequences, left int) (*Engine, *schedule) {
	t.Helper()
	be := openCPU(t, threads)
	o := Options{MaxSequences: sequences, PageTokens: 16, MaxTokens: c.MaxPositions, StepRows: sequences + 64}
	e, err := New(be, newModel(t, be, c), endless{[]byte("x")}, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	p := rollout.Params{Temperature: 1, TopP: 1, MaxNewTokens: c.MaxPositions - 12}
	r := rand.New(rand.NewPCG(4, 4))
	sample(t, e, requests(r, sequences/4, 4, 12), p) // arrays grow to their full length
	s := newSchedule(e, requests(r, sequences/4, 4, 12), p)
	e.pages.reset()
	for len(s.running) < sequences || len(s.running[0].drawn) < p.MaxNewTokens-left {
		e.advance(s, freely)
	}
	return e, s
}

// While no completion begins or ends, sampling allocates nothing on the Go heap.
func TestDecodingAllocatesNothing(t *testing.T) {
	for _, threads := range []int{1, 2} {
		e, s := decoding(t, toy, threads, 8, 30)
		if n := testing.AllocsPerRun(20, func() { e.advance(s, freely) }); n != 0 || s.ended > 0 {
			t.Errorf("%d threads: a step allocates %v times, %d completions ended", threads, n, s.ended)
		}
	}
}

// Nor does it where each new page is one that can be found and is evicted.
func TestEvictingAllocatesNothing(t *testing.T) {
	e, s := decoding(t, toy, 1, 8, 30)
	p := e.pages
	var pages, tokens []int32
	for len(p.free) > 0 {
		pages = append(pages, p.take())
		for range p.size {
			tokens = append(tokens, int32(len(pages)))
		}
	}
	p.publish(pages, tokens, 0, len(pages))
	p.leave(pages)
	kept := p.kept.len
	if n := testing.AllocsPerRun(20, func() { e.advance(s, freely) }); n != 0 || p.kept.len > kept-4 {
		t.Errorf("a step allocates %v times, %d of %d kept pages are left", n, p.kept.len, kept)
	}
	if n := testing.AllocsPerRun(20, func() {
		list := p.seek(pages[:0], firstPage, tokens)
		for _, id := range list {
			p.share(id)
		}
		p.leave(list)
	}); n != 0 {
		t.Errorf("finding pages allocates %v times", n)
	}
}

func BenchmarkDecoding(b *testing.B) {
	c := model.Config{Vocab: 19, Layers: 4, Width: 128, Heads: 4, KVHeads: 2, Head: 32, FFN: 384,
		RopeTheta: 1e4, NormEps: 1e-6, TieEmbeddings: true, MaxPositions: 256, InitStd: 0.05}
	for _, threads := range []int{1, 2} {
		b.Run(fmt.Sprintf("sequences=64/threads=%d", threads), func(b *testing.B) {
			e, s := decoding(b, c, threads, 64, 200)
			b.ReportAllocs()
			n := 0
			for b.Loop() {
				if n++; n%190 == 0 { // before the first one ends
					b.StopTimer()
					for !s.finished() {
						e.advance(s, freely)
					}
					s = again(e, s, 200)
					b.StartTimer()
				}
				e.advance(s, freely)
			}
			b.ReportMetric(float64(64*b.N)/b.Elapsed().Seconds(), "tok/s")
		})
	}
}

// again starts the requests of s from the beginning and goes to where left tokens are
// to go.
func again(e *Engine, s *schedule, left int) *schedule {
	e.pages.reset()
	next := newSchedule(e, s.reqs, s.p)
	for len(next.running) < e.opt.MaxSequences || len(next.running[0].drawn) < s.p.MaxNewTokens-left {
		e.advance(next, freely)
	}
	return next
}
