package generate

import (
	"context"
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"exp/kernels"
	"exp/kernels/cpu"
	"exp/kernels/ref"
	"exp/train/model"
	"exp/train/rollout"
)

var toy = model.Config{Vocab: 19, Layers: 2, Width: 48, Heads: 4, KVHeads: 2, Head: 12, FFN: 40,
	RopeTheta: 1000, NormEps: 1e-5, QKVBias: true, QKNorm: true, MaxPositions: 96, InitStd: 0.25}

// letters is a vocabulary whose token 0 ends and token i is the i-th letter.
type letters struct{}

func (letters) Piece(id int32) []byte {
	if id == 0 {
		return nil
	}
	return []byte{'a' + byte(id-1)}
}
func (letters) EndIDs() []int32 { return []int32{0} }

func openCPU(t testing.TB, threads int) *cpu.Backend {
	t.Helper()
	return openAs(t, cpu.Options{Threads: threads})
}

func openAs(t testing.TB, o cpu.Options) *cpu.Backend {
	t.Helper()
	be, err := cpu.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(be.Close)
	return be
}

func newModel(t testing.TB, be kernels.Backend, c model.Config) *model.Model {
	t.Helper()
	m, err := model.New(be, c, model.Heads{LM: true}, false)
	if err != nil {
		t.Fatal(err)
	}
	m.Init(func(label string) uint64 {
		h := fnv.New64a()
		h.Write([]byte(label))
		return h.Sum64()
	})
	for _, b := range m.Constants() {
		x := make([]float32, b.Len())
		for i := range x {
			x[i] = 0.75 + float32(i%3)/2
		}
		be.Copy(b, kernels.Host(x))
	}
	be.Sync()
	m.Refresh()
	t.Cleanup(m.Close)
	return m
}

func newEngine(t testing.TB, be kernels.Backend, m *model.Model, o Options) *Engine {
	t.Helper()
	e, err := New(be, m, letters{}, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	return e
}

// requests makes prompts of many lengths, with n seeds each.
func requests(r *rand.Rand, problems, n, maxPrompt int) []rollout.Request {
	reqs := make([]rollout.Request, problems)
	for i := range reqs {
		reqs[i].Prompt = make([]int32, 1+r.IntN(maxPrompt))
		for j := range reqs[i].Prompt {
			reqs[i].Prompt[j] = int32(1 + r.IntN(toy.Vocab-1))
		}
		for range n {
			reqs[i].Seeds = append(reqs[i].Seeds, r.Uint64())
		}
	}
	return reqs
}

func sample(t testing.TB, e *Engine, reqs []rollout.Request, p rollout.Params) [][]rollout.Completion {
	t.Helper()
	out, err := e.Sample(context.Background(), reqs, p, nil)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// trainerLogProbs computes the log-probs and entropies of all completions by the
// training forward pass, in micro-batches of at most budget tokens.
func trainerLogProbs(t testing.TB, be kernels.Backend, m *model.Model, reqs []rollout.Request, out [][]rollout.Completion, temperature float64, budget int) (lp, h []float32) {
	t.Helper()
	var seqs, prompts [][]int32
	var lengths []int
	for i := range reqs {
		for _, c := range out[i] {
			prompt := c.PromptOf(reqs[i].Prompt)
			seqs = append(seqs, slices.Concat(prompt, c.Tokens))
			prompts = append(prompts, prompt)
			lengths = append(lengths, len(prompt)+len(c.Tokens))
		}
	}
	limit := model.Capacity{Tokens: max(budget, slices.Max(lengths)), Sequences: len(seqs)}
	ws, err := model.NewWorkspace(be, m.Config, m.Heads, limit, model.KeepNothing)
	if err != nil {
		t.Fatal(err)
	}
	defer ws.Close()
	start := 0
	for _, end := range rollout.MicroBatches(lengths, budget) {
		b := model.Batch{Offsets: []int32{0}}
		for s := start; s < end; s++ {
			b.Tokens = append(b.Tokens, seqs[s]...)
			b.Offsets = append(b.Offsets, int32(len(b.Tokens)))
			b.Prompt = append(b.Prompt, int32(len(prompts[s])))
		}
		start = end
		ws.Load(b)
		m.Forward(ws)
		m.Scores(ws, temperature)
		x, y := make([]float32, ws.Rows()), make([]float32, ws.Rows())
		be.Copy(kernels.Host(x), ws.LogProb())
		be.Copy(kernels.Host(y), ws.Entropy())
		be.Sync()
		lp, h = append(lp, x...), append(h, y...)
	}
	return lp, h
}

// TestSamplerEqualsTrainer is the equality that carries the project: for any
// batch, any split into micro-batches, any number of threads and any sizing of the
// sampler, the log-probs recorded by the sampler equal the log-probs of the
// trainer's forward pass, bit for bit.
func TestSamplerEqualsTrainer(t *testing.T) {
	for seed := range uint64(8) {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 0))
			c := toy
			c.QKNorm, c.QKVBias = seed%2 == 0, seed%3 == 0
			c.TieEmbeddings = seed%4 == 0
			threads := 1 + r.IntN(4)
			operand := []kernels.DType{kernels.F32, kernels.BF16}[seed/2%2]
			be := openAs(t, cpu.Options{Threads: threads, Operand: operand})
			m := newModel(t, be, c)
			e := newEngine(t, be, m, Options{MaxSequences: 1 + r.IntN(20), PageTokens: 16 * (1 + r.IntN(3)), MaxTokens: 96,
				StepRows: 1 + r.IntN(60), Ridge: r.IntN(2) * 16})
			reqs := requests(r, 1+r.IntN(8), 1+r.IntN(5), 50)
			p := rollout.Params{Temperature: 0.5 + r.Float64(), TopP: 1, MaxNewTokens: 1 + r.IntN(40)}
			out := sample(t, e, reqs, p)
			other := openAs(t, cpu.Options{Threads: 1 + r.IntN(4), Operand: operand})
			lp, h := trainerLogProbs(t, other, newModel(t, other, c), reqs, out, p.Temperature, 60+r.IntN(600))
			at := 0
			for i := range out {
				for k, cpl := range out[i] {
					for j := range cpl.Tokens {
						if cpl.LogProbs[j] != lp[at] || cpl.Entropies[j] != h[at] {
							t.Fatalf("threads %d: prompt %d (%d tokens) sample %d token %d: sampler %v, %v; trainer %v, %v",
								threads, i, len(reqs[i].Prompt), k, j, cpl.LogProbs[j], cpl.Entropies[j], lp[at], h[at])
						}
						at++
					}
				}
			}
			if at != len(lp) || at == 0 {
				t.Fatalf("%d tokens sampled, %d scored", at, len(lp))
			}
		})
	}
}

// The reference backend, in plain loops, gives the same completions with the same
// bits as the fast one.
func TestReferenceSamplesTheSame(t *testing.T) {
	for _, pair := range [][2]kernels.Backend{
		{openCPU(t, 2), ref.New[float32]()},
		{openAs(t, cpu.Options{Threads: 2, Operand: kernels.BF16}), ref.NewMixed()},
	} {
		checkReference(t, pair[0], pair[1])
	}
}

func checkReference(t *testing.T, fast, slow kernels.Backend) {
	o := Options{MaxSequences: 7, PageTokens: 16, MaxTokens: 40, StepRows: 30}
	reqs := requests(rand.New(rand.NewPCG(9, 9)), 3, 3, 20)
	p := rollout.Params{Temperature: 1, TopP: 1, MaxNewTokens: 12}
	a := sample(t, newEngine(t, fast, newModel(t, fast, toy), o), reqs, p)
	b := sample(t, newEngine(t, slow, newModel(t, slow, toy), o), reqs, p)
	if d := differ(a, b); d != "" {
		t.Error(d)
	}
}

// differ describes the first difference between completions, "" for none.
func differ(a, b [][]rollout.Completion) string {
	for i := range a {
		for k := range min(len(a[i]), len(b[i])) {
			x, y := a[i][k], b[i][k]
			if !slices.Equal(x.Tokens, y.Tokens) || !slices.Equal(x.LogProbs, y.LogProbs) ||
				!slices.Equal(x.Entropies, y.Entropies) || x.Text != y.Text || x.Finish != y.Finish {
				return fmt.Sprintf("prompt %d sample %d: %q %v %v, want %q %v %v", i, k, x.Text, x.LogProbs, x.Finish, y.Text, y.LogProbs, y.Finish)
			}
		}
	}
	return ""
}

// A completion does not depend on slots, pages, step rows, threads, how many
// siblings it has, or what else is sampled.
func TestCompletionDependsOnItsSeedAlone(t *testing.T) {
	p := rollout.Params{Temperature: 1.1, TopP: 1, MaxNewTokens: 30}
	be := openCPU(t, 1)
	m := newModel(t, be, toy)
	reqs := requests(rand.New(rand.NewPCG(4, 2)), 9, 6, 60)
	want := sample(t, newEngine(t, be, m, Options{MaxSequences: 1, PageTokens: 16, MaxTokens: 96}), reqs, p)
	for seed := range uint64(6) {
		r := rand.New(rand.NewPCG(seed, 77))
		be := openCPU(t, 1+r.IntN(4))
		o := Options{MaxSequences: 1 + r.IntN(64), PageTokens: 16 * (1 + r.IntN(4)), MaxTokens: 90 + r.IntN(6),
			StepRows: 1 + r.IntN(200), Ridge: r.IntN(40)}
		e := newEngine(t, be, newModel(t, be, toy), o)
		some := slices.Clone(reqs)
		for i := range some {
			some[i].Seeds = some[i].Seeds[:1+r.IntN(6)]
		}
		if d := differ(sample(t, e, some, p), want); d != "" {
			t.Errorf("seed %d, %+v: %s", seed, o, d)
		}
		// The engine is as good as new afterwards.
		if d := differ(sample(t, e, some[3:], p), want[3:]); d != "" {
			t.Errorf("seed %d, second call: %s", seed, d)
		}
		if got := e.pages.available(); got != len(e.pages.refs) {
			t.Errorf("seed %d: %d of %d pages come back", seed, got, len(e.pages.refs))
		}
	}
}

func TestStops(t *testing.T) {
	be := openCPU(t, 2)
	m := newModel(t, be, toy)
	e := newEngine(t, be, m, Options{MaxSequences: 8, PageTokens: 16, MaxTokens: 64})
	reqs := requests(rand.New(rand.NewPCG(8, 8)), 4, 8, 10)
	free := sample(t, e, reqs, rollout.Params{Temperature: 1, TopP: 1, MaxNewTokens: 40})
	stopped := sample(t, e, reqs, rollout.Params{Temperature: 1, TopP: 1, MaxNewTokens: 40, Stop: []string{"c", "ab"}})
	ends := map[rollout.Finish]int{}
	for i := range free {
		for k, c := range free[i] {
			ends[c.Finish]++
			if last := c.Tokens[len(c.Tokens)-1]; (last == 0) != (c.Finish == rollout.FinishStop) {
				t.Errorf("completion ends with token %d and finish %v", last, c.Finish)
			}
			if c.Finish == rollout.FinishLength && len(c.Tokens) != 40 {
				t.Errorf("finish length after %d of 40 tokens", len(c.Tokens))
			}
			// A stop string cuts the same completion short.
			text := []byte(c.Text)
			cut := len(text)
			for j := range text {
				if text[j] == 'c' || j+1 < len(text) && text[j] == 'a' && text[j+1] == 'b' {
					cut = j
					break
				}
			}
			if got := stopped[i][k]; got.Text != string(text[:cut]) {
				t.Errorf("with stop strings: %q, want %q", got.Text, text[:cut])
			}
		}
	}
	if ends[rollout.FinishStop] == 0 || ends[rollout.FinishLength] == 0 {
		t.Errorf("finishes %v: the test wants both kinds", ends)
	}
}

func TestGreedyIsTheArgMax(t *testing.T) {
	be := openCPU(t, 1)
	reqs := requests(rand.New(rand.NewPCG(3, 1)), 3, 2, 10)
	greedy := func(c model.Config) [][]rollout.Completion {
		e := newEngine(t, be, newModel(t, be, c), Options{MaxSequences: 4, PageTokens: 16, MaxTokens: 64})
		out := sample(t, e, reqs, rollout.Params{Temperature: 0, TopP: 1, MaxNewTokens: 8})
		topk := sample(t, e, reqs, rollout.Params{Temperature: 1, TopP: 1, TopK: 1, MaxNewTokens: 8})
		for i := range out {
			if !slices.Equal(out[i][0].Tokens, out[i][1].Tokens) {
				t.Errorf("prompt %d: greedy completions %v and %v differ", i, out[i][0].Tokens, out[i][1].Tokens)
			}
		}
		if d := differ(topk, out); d != "" {
			t.Errorf("top-k 1 is not greedy: %s", d)
		}
		return out
	}
	plain, divided := toy, toy
	divided.LogitDivisor = 4
	out, flat := greedy(plain), greedy(divided)
	for i := range out {
		if !slices.Equal(out[i][0].Tokens, flat[i][0].Tokens) || out[i][0].LogProbs[0] == flat[i][0].LogProbs[0] {
			t.Errorf("prompt %d: divided logits give %v with log-probs %v, others %v with %v", i, flat[i][0].Tokens,
				flat[i][0].LogProbs, out[i][0].Tokens, out[i][0].LogProbs)
		}
	}
}

func TestErrors(t *testing.T) {
	be := openCPU(t, 1)
	m := newModel(t, be, toy)
	if _, err := New(be, m, letters{}, Options{MaxSequences: 1, PageTokens: 10, MaxTokens: 10}); err == nil {
		t.Error("page size 10: no error")
	}
	e := newEngine(t, be, m, Options{MaxSequences: 2, PageTokens: 16, MaxTokens: 20})
	good := rollout.Params{Temperature: 1, TopP: 1, MaxNewTokens: 5}
	for name, f := range map[string]func() ([]rollout.Request, rollout.Params){
		"empty prompt": func() ([]rollout.Request, rollout.Params) { return []rollout.Request{{Seeds: []uint64{1}}}, good },
		"too long": func() ([]rollout.Request, rollout.Params) {
			return []rollout.Request{{Prompt: make([]int32, 16), Seeds: []uint64{1}}}, good
		},
		"no tokens": func() ([]rollout.Request, rollout.Params) { p := good; p.MaxNewTokens = 0; return nil, p },
		"repetition_penalty": func() ([]rollout.Request, rollout.Params) {
			p := good
			p.Penalties.Repetition = -1
			return nil, p
		},
		"frequency_penalty": func() ([]rollout.Request, rollout.Params) {
			p := good
			p.Penalties.Frequency = math.NaN()
			return nil, p
		},
		"min_new_tokens": func() ([]rollout.Request, rollout.Params) { p := good; p.MinNewTokens = 6; return nil, p },
		"bias": func() ([]rollout.Request, rollout.Params) {
			p := good
			p.Bias = []rollout.Bias{{Token: 19, Add: 1}}
			return nil, p
		},
		"two biases": func() ([]rollout.Request, rollout.Params) {
			p := good
			p.Bias = []rollout.Bias{{Token: 1, Add: 1}, {Token: 1, Add: 1}}
			return nil, p
		},
		"top_p":       func() ([]rollout.Request, rollout.Params) { p := good; p.TopP = 0; return nil, p },
		"temperature": func() ([]rollout.Request, rollout.Params) { p := good; p.Temperature = -1; return nil, p },
	} {
		reqs, p := f()
		if _, err := e.Sample(context.Background(), reqs, p, nil); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := e.Sample(ctx, []rollout.Request{{Prompt: []int32{1}, Seeds: []uint64{1}}}, good, nil); err != context.Canceled {
		t.Errorf("cancelled: error %v", err)
	}
	if out := sample(t, e, []rollout.Request{{Prompt: []int32{1}}, {Prompt: []int32{2}, Seeds: []uint64{5}}}, good); len(out[0]) != 0 || len(out[1]) != 1 {
		t.Errorf("a request without seeds: %v", out)
	}
}
