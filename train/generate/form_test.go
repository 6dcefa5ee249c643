package generate

import (
	"context"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	"exp/kernels"
	"exp/kernels/cpu"
	"exp/kernels/ref"
	"exp/train/form"
	"exp/train/rollout"
)

// sized is letters with a size.
type sized struct{ letters }

func (sized) VocabSize() int { return toy.Vocab }

// lastEnds is a vocabulary whose last token ends.
type lastEnds struct{ sized }

func (lastEnds) EndIDs() []int32 { return []int32{18} }
func (lastEnds) Piece(id int32) []byte {
	if id == 18 {
		return nil
	}
	return []byte{'a' + byte(id)}
}

func regexForm(t testing.TB, pattern string) *form.Form {
	t.Helper()
	f, err := form.New(form.Spec{Regex: pattern}, form.NewVocabulary(sized{}))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// formed are parameters with forms. Texts of the first may be of any length, of the second have one.
func formed(t testing.TB) map[string]rollout.Params {
	return map[string]rollout.Params{
		"(?:abc|b+c|[d-f]q)*": {Temperature: 1, TopP: 1},
		"[a-e]{3}(?:rr|q)":    {Temperature: 1.2, TopP: 0.9, TopK: 4, MinP: 0.01},
		"(?:hi|ho)+[a-c]*":    {TopP: 1, Penalties: rollout.Penalties{Repetition: 1.3, Frequency: 0.2}, MinNewTokens: 12},
		"a(?:b[cd]?)+":        {Temperature: 0.8, TopP: 1, MinNewTokens: 3, Bias: []rollout.Bias{{Token: 2, Add: 3}, {Token: 0, Add: -1}}},
		"b|cde":               {Temperature: 2, TopP: 1, MinNewTokens: 9},
	}
}

// Completions have their forms, whatever else is sampled and however, and the trainer's log-probs.
func TestFormedCompletions(t *testing.T) {
	one, be := openCPU(t, 1), openCPU(t, 2)
	reqs := requests(rand.New(rand.NewPCG(4, 2)), 7, 12, 40)
	for i := range reqs[1:] {
		reqs[i+1].Prompt = append(slices.Clone(reqs[0].Prompt[:min(20, len(reqs[0].Prompt))]), reqs[i+1].Prompt[:min(19, len(reqs[i+1].Prompt))]...)
	}
	m := newModel(t, be, toy)
	plain := sample(t, newEngine(t, one, newModel(t, one, toy),
		Options{MaxSequences: 9, PageTokens: 16,
			MaxTokens: 96}), reqs, rollout.Params{Temperature: 1, TopP: 1, MaxNewTokens: 30})
	restarts, kept, cut, ended := 0, 0, 0, map[string]int{}
	for pattern, p := range formed(t) {
		p.MaxNewTokens, p.Form = 30, regexForm(t, pattern)
		want := sample(t, newEngine(t, one, newModel(t, one, toy), Options{MaxSequences: 1, PageTokens: 16, MaxTokens: 96}), reqs, p)
		re := regexp.MustCompile("^(?:" + pattern + ")$")
		for _, cs := range want {
			for _, c := range cs {
				if c.Finish == rollout.FinishLength {
					cut++
				} else {
					ended[pattern]++
				}
				if match := re.MatchString(c.Text); c.Finish == rollout.FinishStop && (!match || c.Tokens[len(c.Tokens)-1] != 0) {
					t.Errorf("%q ends and does not match %s", c.Text, pattern)
				}
				if n := len(c.Text); c.Finish == rollout.FinishStop && n < p.MinNewTokens && pattern != "b|cde" && pattern != "[a-e]{3}(?:rr|q)" {
					t.Errorf("%s: %q ends before %d tokens", pattern, c.Text, p.MinNewTokens)
				}
			}
		}
		if differ(plain, want) == "" {
			t.Errorf("%s changes nothing", pattern)
		}
		e := newEngine(t, be, m, Options{MaxSequences: 11, PageTokens: 16, MaxTokens: 96, StepRows: 40, CacheTokens: 200, Ridge: 40})
		some := slices.Clone(reqs)
		slices.Reverse(some)
		got := sampleChecked(t, e, some, p)
		slices.Reverse(got)
		if d := differ(got, want); d != "" {
			t.Errorf("%s: %s", pattern, d)
		}
		restarts, kept = restarts+e.Stats().Restarts, kept+e.Stats().KeptDrafts
		temperature := p.Temperature
		if temperature == 0 {
			temperature = 1
		}
		lp, h := trainerLogProbs(t, be, m, reqs, got, temperature, 200)
		i := 0
		for _, cs := range got {
			for _, c := range cs {
				for k := range c.Tokens {
					if c.LogProbs[k] != lp[i] || c.Entropies[k] != h[i] {
						t.Fatalf("%s: token %d of %q: log-prob %v, the trainer's %v", pattern, k, c.Text, c.LogProbs[k], lp[i])
					}
					i++
				}
			}
		}
	}
	if restarts == 0 || kept == 0 || cut == 0 || len(ended) != len(formed(t)) {
		t.Errorf("%d restarts, %d kept drafts, %d completions at the limit, ended: %v", restarts, kept, cut, ended)
	}
}

func TestFormedSamplingIsTheReferences(t *testing.T) {
	for _, pair := range [][2]kernels.Backend{
		{openCPU(t, 2), ref.New[float32]()},
		{openAs(t, cpu.Options{Threads: 2, Operand: kernels.BF16}), ref.NewMixed()},
	} {
		o := Options{MaxSequences: 7, PageTokens: 16, MaxTokens: 48, StepRows: 30}
		reqs := requests(rand.New(rand.NewPCG(9, 9)), 3, 3, 20)
		for pattern, p := range formed(t) {
			p.MaxNewTokens, p.Form = 20, regexForm(t, pattern)
			a := sample(t, newEngine(t, pair[0], newModel(t, pair[0], toy), o), reqs, p)
			b := sample(t, newEngine(t, pair[1], newModel(t, pair[1], toy), o), reqs, p)
			if d := differ(a, b); d != "" {
				t.Errorf("%s: %s", pattern, d)
			}
		}
	}
}

// Requests with different forms, and with none, are sampled together as each of them alone.
func TestFormsNextToEachOther(t *testing.T) {
	be := openCPU(t, 2)
	e := newEngine(t, be, newModel(t, be, toy), Options{MaxSequences: 16, PageTokens: 16, MaxTokens: 96})
	params := []rollout.Params{{Temperature: 1, TopP: 1}}
	for pattern, p := range formed(t) {
		p.Form = regexForm(t, pattern)
		params = append(params, p)
	}
	reqs := requests(rand.New(rand.NewPCG(2, 7)), len(params), 3, 20)
	want := make([][]rollout.Completion, len(reqs))
	for i := range params {
		params[i].MaxNewTokens = 24
		want[i] = sample(t, e, reqs[i:i+1], params[i])[0]
	}
	ctx, stop := context.WithCancel(t.Context())
	asks, ended, done := make(chan *Ask, len(reqs)), make(chan bool, 100), make(chan error)
	got := make([][]rollout.Completion, len(reqs))
	for i := range reqs {
		got[i] = make([]rollout.Completion, len(reqs[i].Seeds))
		asks <- &Ask{Request: reqs[i], Params: params[i], Ended: func(k int, c rollout.Completion) { got[i][k] = c; ended <- true }}
	}
	go func() { done <- e.Serve(ctx, asks) }()
	for range 3 * len(reqs) {
		<-ended
	}
	stop()
	<-done
	if d := differ(got, want); d != "" {
		t.Error(d)
	}
}

// Where no token ends completions, a complete form does.
func TestFormsEndCompletions(t *testing.T) {
	be := openCPU(t, 1)
	e, err := New(be, newModel(t, be, toy), unending{}, Options{MaxSequences: 4, PageTokens: 16, MaxTokens: 64})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	reqs := requests(rand.New(rand.NewPCG(8, 8)), 2, 8, 10)
	p := rollout.Params{Temperature: 1, TopP: 1, MaxNewTokens: 40, MinNewTokens: 30, Form: regexForm(t, "[a-c]{5}d")}
	for _, cs := range sample(t, e, reqs, p) {
		for _, c := range cs {
			if len(c.Tokens) != 6 || c.Finish != rollout.FinishStop || !strings.HasSuffix(c.Text, "d") {
				t.Errorf("%q ends as %v", c.Text, c.Finish)
			}
		}
	}
	// Nor does min_new_tokens leave nothing to draw. Then token 0 would be, so the end is another one.
	last, err := New(be, e.m, lastEnds{}, e.opt)
	if err != nil {
		t.Fatal(err)
	}
	defer last.Close()
	if p.Form, err = form.New(form.Spec{Regex: "[a-c]{5}d"}, form.NewVocabulary(lastEnds{})); err != nil {
		t.Fatal(err)
	}
	for _, cs := range sample(t, last, reqs, p) {
		for _, c := range cs {
			if len(c.Tokens) != 7 || c.Tokens[6] != 18 || c.Finish != rollout.FinishStop {
				t.Errorf("%v ends as %v", c.Tokens, c.Finish)
			}
		}
	}
	p.Environment = struct{ rollout.Environment }{}
	if _, err := e.Sample(t.Context(), reqs, p, nil); err == nil || !strings.Contains(err.Error(), "have no form") {
		t.Error(err)
	}
}
