package generate

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"exp/kernels"
	"exp/kernels/cpu"
	"exp/kernels/ref"
	"exp/train/model"
	"exp/train/rollout"
)

// adjusted returns the logits of a completion's next token, as the sampler changes them. The last tokens may be
// drafted ones.
func adjusted(prompt, tokens, draft []int32, inserted []rollout.Span, p rollout.Params, logits []float32) []float32 {
	e := &Engine{end: []int32{0}, m: &model.Model{Config: model.Config{Vocab: len(logits)}}}
	s := newSchedule(e, []rollout.Request{{Prompt: prompt}}, p)
	q := &sequence{inserted: inserted, draft: draft}
	for _, id := range tokens {
		q.drawn = append(q.drawn, drawnToken{id: id})
	}
	for behind := range draft {
		s.adjustments(draw{q: q, behind: behind}, nil) // of the draws before
	}
	z := slices.Clone(logits)
	for _, a := range s.adjustments(draw{q: q, behind: len(draft)}, nil) {
		one := func(x float32) kernels.Buffer { return kernels.Host([]float32{x}) }
		ref.Adjust(z, kernels.Adjustments{IDs: kernels.Host([]int32{a.Token}), Before: one(a.Before),
			Factor: one(a.Factor), After: one(a.After)}, 1)
	}
	return z
}

func TestPenaltiesKnown(t *testing.T) {
	inf := float32(math.Inf(-1))
	logits := []float32{1, 2, -1, 4, 0.5}
	prompt, drawn := []int32{1, 2, 2}, []int32{2, 3, 3}
	for _, tt := range []struct {
		name string
		p    rollout.Params
		want []float32
	}{
		{"none", rollout.Params{}, logits},
		{"a repetition of 1", rollout.Params{Penalties: rollout.Penalties{Repetition: 1}}, logits},
		// Tokens 1, 2 and 3: 2/2, -1·2, 4/2.
		{"repetition", rollout.Params{Penalties: rollout.Penalties{Repetition: 2}}, []float32{1, 1, -2, 2, 0.5}},
		{"presence", rollout.Params{Penalties: rollout.Penalties{Presence: 0.25}}, []float32{1, 2, -1.25, 3.75, 0.5}},
		// Token 2 was sampled once, token 3 twice; the prompt does not count.
		{"frequency", rollout.Params{Penalties: rollout.Penalties{Frequency: 0.5}}, []float32{1, 2, -1.5, 3, 0.5}},
		// -1·2 - 0.5 - 0.25, 4/2 - 1 - 0.25.
		{"all", rollout.Params{Penalties: rollout.Penalties{Repetition: 2, Presence: 0.25, Frequency: 0.5}},
			[]float32{1, 1, -2.75, 0.75, 0.5}},
		// (2-5)·2 and 0.5+3: before the penalty.
		{"bias", rollout.Params{Penalties: rollout.Penalties{Repetition: 2}, Bias: []rollout.Bias{{Token: 4, Add: 3}, {Token: 1, Add: -5}}},
			[]float32{1, -6, -2, 2, 3.5}},
		{"no end yet", rollout.Params{MinNewTokens: 4, MaxNewTokens: 9}, []float32{inf, 2, -1, 4, 0.5}},
		{"an end that a bias wants", rollout.Params{MinNewTokens: 4, MaxNewTokens: 9, Bias: []rollout.Bias{{Token: 0, Add: 100}}},
			[]float32{inf, 2, -1, 4, 0.5}},
		{"an end", rollout.Params{MinNewTokens: 3, MaxNewTokens: 9}, logits},
	} {
		for k := range len(drawn) + 1 {
			if got := adjusted(prompt, drawn[:k], drawn[k:], nil, tt.p, logits); !slices.Equal(got, tt.want) {
				t.Errorf("%s, %d tokens drawn: %v, want %v", tt.name, k, got, tt.want)
			}
		}
	}

	// The first 3 was inserted: it counts as prompt.
	all := rollout.Params{Penalties: rollout.Penalties{Repetition: 2, Presence: 0.25, Frequency: 0.5}}
	got := adjusted(prompt, drawn, nil, []rollout.Span{{Start: 1, End: 2}}, all, logits)
	if want := []float32{1, 1, -2.75, 1.25, 0.5}; !slices.Equal(got, want) {
		t.Errorf("with an inserted token: %v, want %v", got, want)
	}
}

// The file is what transformers computes: testdata/penalties.py writes it.
func TestPenaltiesAreTransformers(t *testing.T) {
	b, err := os.ReadFile("testdata/penalties.json")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Cases []struct {
			Repetition, Presence, Frequency float64
			Bias                            []rollout.Bias
			Least                           int
			Prompt, Drawn                   []int32
			Logits                          []float32
			Want                            []*float32
		}
	}
	if err := json.Unmarshal(b, &file); err != nil {
		t.Fatal(err)
	}
	if len(file.Cases) != 30 {
		t.Fatalf("%d cases", len(file.Cases))
	}
	for i, c := range file.Cases {
		got := adjusted(c.Prompt, c.Drawn, nil, nil, rollout.Params{MinNewTokens: c.Least, MaxNewTokens: 40, Bias: c.Bias,
			Penalties: rollout.Penalties{Repetition: c.Repetition, Presence: c.Presence, Frequency: c.Frequency}}, c.Logits)
		for v, z := range got {
			want := math.Inf(-1)
			if c.Want[v] != nil {
				want = float64(*c.Want[v])
			}
			if float64(z) != want && !(math.Abs(float64(z)-want) <= 1e-6*(1+math.Abs(want))) {
				t.Errorf("case %d %+v: token %d has %v, want %v", i, c, v, z, want)
			}
		}
	}
}

// penalized are parameters of all kinds.
func penalized() []rollout.Params {
	return []rollout.Params{
		{Temperature: 1, TopP: 1, Penalties: rollout.Penalties{Repetition: 1.3}},
		{Temperature: 1.1, TopP: 0.9, MinP: 0.01, Penalties: rollout.Penalties{Presence: 0.4, Frequency: 0.3}},
		{TopP: 1, Penalties: rollout.Penalties{Repetition: 1.2, Frequency: 0.5}},
		{Temperature: 0.8, TopP: 1, TopK: 5, MinNewTokens: 20, Bias: []rollout.Bias{{Token: 3, Add: 2}, {Token: 0, Add: 4}}},
	}
}

func TestPenalizedCompletionsDependOnTheirSeedsAlone(t *testing.T) {
	one := openCPU(t, 1)
	reqs := requests(rand.New(rand.NewPCG(4, 2)), 9, 6, 60)
	for i := range reqs[1:] { // a prefix that prompts share
		reqs[i+1].Prompt = append(slices.Clone(reqs[0].Prompt[:min(20, len(reqs[0].Prompt))]), reqs[i+1].Prompt[:min(39, len(reqs[i+1].Prompt))]...)
	}
	restarts := 0
	for i, p := range penalized() {
		p.MaxNewTokens = 30
		want := sample(t, newEngine(t, one, newModel(t, one, toy), Options{MaxSequences: 1, PageTokens: 16, MaxTokens: 96}), reqs, p)
		plain := p
		plain.Penalties, plain.Bias, plain.MinNewTokens = rollout.Penalties{}, nil, 0
		if differ(sample(t, newEngine(t, one, newModel(t, one, toy), Options{MaxSequences: 9, PageTokens: 16, MaxTokens: 96}), reqs, plain), want) == "" {
			t.Errorf("%+v changes nothing", p)
		}
		be := openCPU(t, 2)
		e := newEngine(t, be, newModel(t, be, toy), Options{MaxSequences: 5 + 7*i, PageTokens: 16, MaxTokens: 96,
			StepRows: 40, CacheTokens: 160 + 500*(i%2)})
		some := slices.Clone(reqs)
		slices.Reverse(some)
		got := sample(t, e, some, p)
		slices.Reverse(got)
		if d := differ(got, want); d != "" {
			t.Errorf("%+v: %s", p, d)
		}
		restarts += e.Stats().Restarts
	}
	if restarts == 0 {
		t.Error("no completion started again")
	}
}

func TestPenalizedSamplingIsTheReferences(t *testing.T) {
	for _, pair := range [][2]kernels.Backend{
		{openCPU(t, 2), ref.New[float32]()},
		{openAs(t, cpu.Options{Threads: 2, Operand: kernels.BF16}), ref.NewMixed()},
	} {
		o := Options{MaxSequences: 7, PageTokens: 16, MaxTokens: 48, StepRows: 30}
		reqs := requests(rand.New(rand.NewPCG(9, 9)), 3, 3, 20)
		for _, p := range penalized() {
			p.MaxNewTokens = 24
			a := sample(t, newEngine(t, pair[0], newModel(t, pair[0], toy), o), reqs, p)
			b := sample(t, newEngine(t, pair[1], newModel(t, pair[1], toy), o), reqs, p)
			if d := differ(a, b); d != "" {
				t.Errorf("%+v: %s", p, d)
			}
		}
	}
}

// Greedy completions repeat themselves. A presence penalty above all differences of logits lets no token come twice,
// whatever the prompt has; a repetition penalty breaks loops too.
func TestPenaltiesBreakGreedyLoops(t *testing.T) {
	be := openCPU(t, 1)
	e := newEngine(t, be, newModel(t, be, toy), Options{MaxSequences: 4, PageTokens: 16, MaxTokens: 96})
	reqs := requests(rand.New(rand.NewPCG(3, 1)), 6, 1, 10)
	kinds := func(p rollout.Params) (most, least int) {
		p.TopP, p.MinNewTokens, p.MaxNewTokens, least = 1, 18, 18, 18
		for _, cs := range sample(t, e, reqs, p) {
			tokens := slices.Compact(slices.Sorted(slices.Values(cs[0].Tokens)))
			most, least = max(most, len(tokens)), min(least, len(tokens))
		}
		return most, least
	}
	most, least := kinds(rollout.Params{})
	if least > 9 {
		t.Fatalf("at least %d of 18 tokens differ: nothing loops", least)
	}
	if _, n := kinds(rollout.Params{Penalties: rollout.Penalties{Presence: 1000}}); n != 18 {
		t.Errorf("with a presence penalty %d of 18 tokens differ", n)
	}
	if _, n := kinds(rollout.Params{Penalties: rollout.Penalties{Repetition: 3}}); n <= most {
		t.Errorf("with a repetition penalty %d of 18 tokens differ, without up to %d", n, most)
	}
}

// Logits that the model divides count as they are after the division.
func TestPenaltiesOfDividedLogits(t *testing.T) {
	be := openCPU(t, 1)
	divided := toy
	divided.LogitDivisor = 4
	reqs := requests(rand.New(rand.NewPCG(3, 1)), 3, 2, 10)
	draw := func(c model.Config, p rollout.Params) [][]rollout.Completion {
		p.TopP, p.MaxNewTokens = 1, 30
		return sample(t, newEngine(t, be, newModel(t, be, c), Options{MaxSequences: 4, PageTokens: 16, MaxTokens: 64}), reqs, p)
	}
	a := draw(divided, rollout.Params{Temperature: 0.5, Penalties: rollout.Penalties{Repetition: 1.2, Presence: 0.25, Frequency: 0.125}})
	b := draw(toy, rollout.Params{Temperature: 2, Penalties: rollout.Penalties{Repetition: 1.2, Presence: 1, Frequency: 0.5}})
	if d := differ(a, b); d != "" {
		t.Error(d)
	}
}

func TestMinNewTokens(t *testing.T) {
	be := openCPU(t, 2)
	e := newEngine(t, be, newModel(t, be, toy), Options{MaxSequences: 8, PageTokens: 16, MaxTokens: 64})
	reqs := requests(rand.New(rand.NewPCG(8, 8)), 4, 8, 10)
	p := rollout.Params{Temperature: 1, TopP: 1, MaxNewTokens: 40, MinNewTokens: 12, Stop: []string{"c", "ab"}}
	ended := 0
	for _, cs := range sample(t, e, reqs, p) {
		for _, c := range cs {
			if len(c.Tokens) <= 12 || slices.Contains(c.Tokens[:12], 0) {
				t.Errorf("%v ends before 12 tokens", c.Tokens)
			}
			if c.Finish == rollout.FinishStop {
				ended++
			}
			// Stop strings count from the 13th token on.
			if len(c.Text) > 12 && strings.ContainsAny(c.Text[12:], "c") {
				t.Errorf("%q has a stop string", c.Text)
			}
		}
	}
	if ended == 0 {
		t.Error("no completion ended")
	}
}
