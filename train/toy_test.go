package train

import (
	"context"
	"fmt"
	"hash/fnv"
	"maps"
	"math"
	"testing"
	"time"

	"exp/kernels"
	"exp/kernels/cpu"
	"exp/train/generate"
	"exp/train/model"
	"exp/train/optim"
	"exp/train/ranks"
	"exp/train/rl"
	"exp/train/rollout"
	"exp/train/tensor"
)

func hashSeed(root int) func(label string) uint64 {
	return func(label string) uint64 {
		h := fnv.New64a()
		fmt.Fprintf(h, "%d/%s", root, label)
		return h.Sum64()
	}
}

// letters is a vocabulary of n letters after the end token.
type letters struct{ n int }

func (letters) Piece(id int32) []byte {
	if id == 0 {
		return nil
	}
	return []byte{byte('A' + id - 1)}
}

// cutLetters are letters; B and C are the first bytes of longer characters.
type cutLetters struct{ letters }

func (l cutLetters) Piece(id int32) []byte {
	switch id {
	case 2:
		return []byte{0xe2, 0x82}
	case 3:
		return []byte{0xe3}
	}
	return l.letters.Piece(id)
}

func (letters) EndIDs() []int32 { return []int32{0} }
func (letters) encode(text string) ([]int32, error) {
	var ids []int32
	for _, b := range []byte(text) {
		ids = append(ids, int32(b-'A')+1)
	}
	return ids, nil
}

func (l letters) prompt(p *rollout.Problem) ([]int32, error) { return l.encode(p.Prompt) }

type graderFunc func(p *rollout.Problem, c *rollout.Completion) rollout.Verdict

func (f graderFunc) Grade(_ context.Context, p *rollout.Problem, c *rollout.Completion) (rollout.Verdict, error) {
	return f(p, c), nil
}

type recorderFunc func(s *Step) error

func (f recorderFunc) Step(s *Step) error { return f(s) }

// toyRun is everything that a test of the loop needs.
type toyRun struct {
	t        testing.TB
	be       *cpu.Backend
	cfg      Config
	model    model.Config
	problems []rollout.Problem
	grade    graderFunc
	options  generate.Options
	seed     int
	trainer  *Trainer
	steps    []*Step
	ref      *model.Model
	parts    bool          // the grader names components
	operand  kernels.DType // of backends that onLevel opens; 0 is float32
	recorded *Recording
	ranks    ranks.Group // nil: alone
	tensor   int         // neighbouring ranks that share products
	rollout  int         // those that share products of sampling; 0: as many
	samplers int         // ranks that only sample
	wait     func(on bool)
	cutText  bool // the tokens are cutLetters
	together bool // the grader judges a step's completions in one call
	judging  Judging
	bf16     bool // open another backend, of bf16
	adapters *model.Adapters
	frozen   bool                    // the reference policy has a backbone
	teacher  *model.Config           // the reference's architecture, if it is another
	sources  []string                // of data, which further teachers have, every second one of the policy's architecture
	tutors   map[string]*model.Model // those teachers
	whole    []float32               // parameters of all ranks, on the first one
	images   *toyImages              // of prompts; nil: none
}

// Kind is an algorithm that most tests of the loop run.
type Kind string

const (
	FlowRL Kind = "flowrl"
	PPO    Kind = "ppo"
	GRPO   Kind = "grpo"
	// Distill has a teacher that is deeper and knows more tokens.
	Distill Kind = "distill"
	Prime   Kind = "prime"
)

func toyConfig(kind Kind) Config {
	advantage, loss := "grpo", "ppo"
	switch kind {
	case FlowRL:
		advantage, loss = "", "flowrl"
	case PPO:
		advantage = "gae"
	case Distill:
		advantage = rl.NoAdvantage
	case Prime:
		advantage = "prime"
	}
	o := Optim{LR: 3e-3, Beta1: 0.9, Beta2: 0.99, Eps: 1e-8, GradClip: 1, Schedule: optim.Schedule{Kind: optim.Constant, Warmup: 2}}
	c := Config{
		Advantage: advantage, Loss: loss, PromptsPerStep: 4, PromptsPerUpdate: 2, Samples: 8, Steps: 3, Epochs: 1, Slices: 4, Shuffled: true,
		MaxPromptTokens: 3, Sampling: rollout.Params{Temperature: 1, TopP: 1, MaxNewTokens: 6},
		MicroBatchTokens: 100, Policy: o, Critic: o, Process: Process{Optim: o},
		Aggregation: rl.TokenMean, LossScale: 6,
		KL:         KL{LossCoef: 0.01, LossEstimator: rl.KL{Kind: rl.KLK3}, RewardEstimator: rl.KL{Kind: rl.KLK1}},
		Settings:   toySettings(),
		LogZ:       model.LogZConfig{Layers: 2, Dropout: 0.1},
		VerifyRate: 0.1,
	}
	if kind == Distill {
		c.KL.LossCoef, c.Distill = 0, rl.Distillation{Coef: 1, Max: math.Inf(1), Floor: math.Inf(-1)}
	}
	return c
}

// toySettings are all settings, at their defaults but for a few; start leaves those
// that the estimator and the loss list.
func toySettings() rl.Settings {
	s := rl.Settings{}
	for _, e := range rl.Estimators() {
		maps.Copy(s, rl.Defaults(e.Name, ""))
	}
	for _, l := range rl.PolicyLosses() {
		maps.Copy(s, rl.Defaults("", l.Name))
	}
	maps.Copy(s, rl.Settings{"lambda": 0.95, "flowrl.beta": 2.0, "dro.beta": 0.1, "cov.ratio": 0.1, "cov.low": -5.0, "cov.high": 5.0})
	return s
}

// listed returns the settings that the estimator and the loss of c list.
func listed(c Config) rl.Settings {
	s := rl.Settings{}
	e, _ := rl.EstimatorNamed(c.Advantage)
	for _, x := range append(e.Settings, c.policyLoss().Settings...) {
		s[x.Key] = c.Settings[x.Key]
	}
	return s
}

func newToyRun(t testing.TB, kind Kind, threads int) *toyRun {
	be, err := cpu.Open(cpu.Options{Threads: threads})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(be.Close)
	r := &toyRun{t: t, be: be, cfg: toyConfig(kind), seed: 1,
		model: model.Config{Vocab: 6, Layers: 1, Width: 32, Heads: 2, KVHeads: 1, Head: 16, FFN: 48,
			RopeTheta: 1e4, NormEps: 1e-6, TieEmbeddings: true, MaxPositions: 32, InitStd: 0.1},
		options: generate.Options{MaxSequences: 16, PageTokens: 16, MaxTokens: 32},
	}
	if kind == Distill {
		own := r.model
		own.Vocab, own.Layers, own.FFN, own.InitStd = 8, 2, 64, 0.4
		r.teacher = &own
	}
	for i := range 10 {
		r.problems = append(r.problems, rollout.Problem{ID: fmt.Sprint("p", i), Prompt: "ABC"[:1+i%3]})
	}
	// Reward: the share of A in the completion.
	r.grade = func(_ *rollout.Problem, c *rollout.Completion) rollout.Verdict {
		n := 0.0
		for _, id := range c.Tokens {
			if id == 1 {
				n++
			}
		}
		x := n / float64(len(c.Tokens))
		return rollout.Verdict{Status: rollout.Graded, Correct: x > 0.5, Reward: x, Answer: c.Text}
	}
	return r
}

// backbone returns frozen weights.
func (r *toyRun) backbone(be kernels.Backend) *model.Backbone {
	r.t.Helper()
	b, err := model.NewBackbone(be, r.model, true, kernels.F32)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(b.Close)
	shapes := map[string][]int{}
	for _, x := range b.Tensors() {
		shapes[x.Name] = x.Shape
	}
	err = b.Load(func(p model.Piece) (kernels.Buffer, error) {
		shape := shapes[p.Name]
		x := make([]float32, p.N*shape[len(shape)-1])
		width := shape[len(shape)-1]
		for i := range x {
			at := int(p.From*width) + i
			x[i] = float32(math.Sin(float64(at+len(p.Name)))) / 8
		}
		return kernels.Host(x), nil
	})
	if err != nil {
		r.t.Fatal(err)
	}
	return b
}

// device returns the backend, or this rank's share of it.
func (r *toyRun) device() kernels.Backend { return r.share(r.ranks, r.tensor) }

// start makes the trainer.
func (r *toyRun) start() *Trainer {
	r.t.Helper()
	if r.bf16 {
		r.operand = kernels.BF16
		r.onLevel(cpu.BestLevel(), 1)
	}
	r.cfg.Settings = listed(r.cfg)
	needs := r.cfg.Needs()
	if r.cfg.Process.PromptsPerUpdate == 0 {
		r.cfg.Process.PromptsPerUpdate = r.cfg.PromptsPerUpdate
	}
	be, sampling, only := r.devices()
	make := func(h model.Heads, trainable bool) *model.Model {
		on := func() (*model.Model, error) { return model.New(be, r.model, h, trainable) }
		switch {
		case h.Adapters != nil:
			whole := be
			if b, ok := be.(*tensor.Backend); ok {
				whole = b.Uncut()
			}
			on = func() (*model.Model, error) { return model.NewOn(r.backbone(whole), h, trainable) }
		case r.frozen && !trainable:
			on = func() (*model.Model, error) { return model.NewOn(r.backbone(be), h, false) }
		}
		m, err := on()
		if err != nil {
			r.t.Fatal(err)
		}
		r.t.Cleanup(m.Close)
		m.Init(hashSeed(99))
		r.show(m)
		return m
	}
	heads := model.Heads{LM: true, Adapters: r.adapters}
	if needs.LogZ {
		heads.LogZ = &r.cfg.LogZ
	}
	p := Parts{Backend: be, Tensor: r.tensor, RolloutTensor: r.rollout, Grader: r.grade, Judging: r.judging, Prompt: r.prompt,
		Problems: r.problems, Seed: hashSeed(r.seed), Clock: func() time.Time { return time.Unix(0, 0) },
		Recorded: r.recorded, Ranks: r.ranks, Samplers: r.samplers, Wait: r.wait, Agreement: byParity, Answer: afterB,
		Demonstration: ofA,
		Recorder:      recorderFunc(func(s *Step) error { r.steps = append(r.steps, s); return nil })}
	if r.images != nil {
		p.Show = r.images.show
	}
	if r.parts {
		p.Grader = parts{r.grade}
	}
	if r.together {
		p.Grader = batchGrader{r.grade}
	}
	if needs.Reference && (!only || r.cfg.SamplersNeedReference()) {
		p.Reference = r.reference(be, make)
		r.ref = p.Reference
		r.tutors = map[string]*model.Model{}
		p.Route = func(p *rollout.Problem) string { return p.DataSource("") }
		for i, source := range r.sources {
			c := r.model
			if i%2 == 0 {
				c = *r.teacher
			}
			m, err := model.New(be, c, model.Heads{LM: true}, false)
			if err != nil {
				r.t.Fatal(err)
			}
			r.t.Cleanup(m.Close)
			m.Init(hashSeed(20 + i))
			p.Teachers, r.tutors[source] = append(p.Teachers, Teacher{m, source}), m
		}
	}
	if needs.Critic && !only {
		p.Critic = make(model.Heads{Value: true}, true)
	}
	if needs.Process && !only {
		p.Process = make(model.Heads{LM: true, Adapters: r.adapters}, true)
	}
	if only && r.adapters == nil {
		p.Policy = r.copied(be, &p)
	} else {
		p.Policy = make(heads, !only)
	}
	drawn := p.Policy
	if sampling != be && r.adapters != nil {
		drawn = p.Policy.On(sampling)
	} else if sampling != be {
		drawn = r.copied(sampling, &p)
	}
	r.show(p.Policy)
	r.show(drawn)
	if r.samplers == 0 || only {
		var vocab generate.Vocabulary = letters{}
		if r.cutText {
			vocab = cutLetters{}
		}
		if b, ok := sampling.(*tensor.Backend); ok {
			r.options.Products = b.Products()
		}
		e, err := generate.New(sampling, drawn, vocab, r.options)
		if err != nil {
			r.t.Fatal(err)
		}
		r.t.Cleanup(e.Close)
		p.Sampler = e
	}
	tr, err := New(r.cfg, p)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(tr.Close)
	r.trainer = tr
	return tr
}

// reference makes the reference policy: the start, or the teacher.
func (r *toyRun) reference(be kernels.Backend, start func(h model.Heads, trainable bool) *model.Model) *model.Model {
	r.t.Helper()
	h := model.Heads{LM: true}
	if r.teacher == nil {
		return start(h, false)
	}
	m, err := model.New(be, *r.teacher, h, false)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(m.Close)
	m.Init(hashSeed(7))
	return m
}

func (r *toyRun) run() {
	r.t.Helper()
	if err := r.start().Run(context.Background(), nil); err != nil {
		r.t.Fatal(err)
	}
}

// params returns what this rank holds of the policy's parameters.
func (r *toyRun) params() []float32 { return r.host(r.trainer.Policy.Params()) }

// policy returns the exact probabilities of the first completion token after the
// prompt, for a model.
func (r *toyRun) policy(m *model.Model, prompt string) []float64 {
	r.t.Helper()
	ids, _ := letters{}.encode(prompt)
	ws, err := model.NewWorkspace(r.be, m.Config, m.Heads, model.Capacity{Tokens: len(ids) + 1, Sequences: 1}, model.KeepNothing)
	if err != nil {
		r.t.Fatal(err)
	}
	defer ws.Close()
	out := make([]float64, r.model.Vocab)
	for v := range out {
		tokens := append(append([]int32{}, ids...), int32(v))
		ws.Load(model.Batch{Tokens: tokens, Offsets: []int32{0, int32(len(tokens))}, Prompt: []int32{int32(len(ids))}})
		m.Forward(ws)
		m.Scores(ws, r.cfg.Sampling.Temperature)
		lp := make([]float32, 1)
		r.be.Copy(kernels.Host(lp), ws.LogProb())
		r.be.Sync()
		out[v] = math.Exp(float64(lp[0]))
	}
	return out
}

// TestKnownOptimum is the paper's Figure 1 at small size: one prompt, one-token
// outcomes, several of them with a high reward. FlowRL balances towards
// π ∝ π_ref·exp(β·r), all modes in proportion; PPO and GRPO, which maximise
// reward, end with nearly all mass on few outcomes.
func TestKnownOptimum(t *testing.T) {
	if testing.Short() {
		t.Skip("trains five toys, some seconds")
	}
	const outcomes = 13
	reward := make([]float64, outcomes+1) // [0] is the end token
	for v := 1; v <= outcomes; v++ {
		for _, mode := range []float64{2, 6, 12} {
			reward[v] += math.Exp(-(float64(v) - mode) * (float64(v) - mode) / 0.5)
		}
	}
	varGrad := func(c *Config) {
		c.Loss = "gvpo"
		c.Settings = with(c.Settings, "gvpo.reference", "ref", "gvpo.beta", 1.0/3, "scale_std", false)
	}
	arms := []struct {
		name   string
		kind   Kind
		change func(c *Config)
		finds  bool
	}{
		{"FlowRL", FlowRL, func(*Config) {}, true},
		{"log Z from the group", FlowRL, func(c *Config) { c.Settings = with(c.Settings, "flowrl.logz.from", "group") }, true},
		{"VarGrad", GRPO, varGrad, true},
		{"PPO", PPO, func(*Config) {}, false},
		{"GRPO", GRPO, func(*Config) {}, false},
	}
	for _, arm := range arms {
		r := newToyRun(t, arm.kind, 1)
		r.model.Vocab = outcomes + 1
		r.problems = []rollout.Problem{{ID: "x", Prompt: "A"}}
		r.grade = func(_ *rollout.Problem, c *rollout.Completion) rollout.Verdict {
			return rollout.Verdict{Status: rollout.Graded, Reward: reward[c.Tokens[0]]}
		}
		c := &r.cfg
		c.Sampling.MaxNewTokens = 1
		c.PromptsPerStep, c.PromptsPerUpdate, c.Samples, c.Steps = 1, 1, 64, 300
		c.Policy.LR, c.Critic.LR = 3e-3, 1e-2
		c.Settings, c.LogZ = c.Settings.With(rl.FlowBeta, 3.0).With(rl.FlowReward, "raw"), model.LogZConfig{Layers: 2}
		c.KL.LossCoef = 0
		c.Aggregation = rl.TokenMean
		arm.change(c)
		r.run()

		// The optimum, over all tokens, end token included.
		refHeads := model.Heads{LM: true}
		m, err := model.New(r.be, r.model, refHeads, false)
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close()
		m.Init(hashSeed(99))
		ref := r.policy(m, "A")
		want := make([]float64, len(ref))
		z, kl := 0.0, 0.0
		for v := range ref {
			want[v] = ref[v] * math.Exp(3*reward[v])
			z += want[v]
		}
		got := r.policy(r.trainer.Policy, "A")
		for v := range want {
			want[v] /= z
			kl += want[v] * math.Log(want[v]/got[v])
		}
		t.Logf("%s: KL(target‖π) = %.3f", arm.name, kl)
		if arm.finds && !(kl <= 0.1) {
			t.Errorf("%s: KL(target‖π) = %.3f, want ≤ 0.1", arm.name, kl)
		}
		if !arm.finds && !(kl >= 1) {
			t.Errorf("%s: KL(target‖π) = %.3f, want a collapsed policy, ≥ 1", arm.name, kl)
		}
	}
}

// byParity takes a completion's number of tokens for its answer, even or odd.
func byParity(_ context.Context, _ *rollout.Problem, list []*rollout.Completion) ([]string, error) {
	answers := make([]string, len(list))
	for i, c := range list {
		answers[i] = []string{"even", "odd"}[len(c.Tokens)%2]
	}
	return answers, nil
}
