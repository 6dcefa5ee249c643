package stage

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"slices"

	"exp/eval"
	"exp/eval/suite"
	"exp/experiments/ident"
	"exp/harness/config"
	"exp/harness/prompt"
	"exp/train"
	"exp/train/generate"
	"exp/train/model"
	"exp/train/rl"
	"exp/train/rollout"
)

// Evaluation holds what eval stages found, for the record: eval.gen fills in the
// samples, eval.score the rest too.
type Evaluation struct {
	Label    string
	N        int // samples per problem
	Problems []rollout.Problem
	Samples  []eval.Sample
	Verdicts []rollout.Verdict // of Samples, in order
	Scores   []rollout.Verdict // of Samples by a scorer, each in Reward; nil: nobody scored them
	Items    []eval.Item
	Metrics  []eval.Metric
	Ungraded int
	Panel    *eval.Panel // all graders' verdicts
	// Prompts makes the run's prompter this evaluation's, as it sampled.
	Prompts func(p *prompt.Prompter) *prompt.Prompter
}

// record is a line of the completions blob.
type record struct {
	Problem   string    `json:"problem"`
	K         int       `json:"k"`
	Tokens    []int32   `json:"tokens"`
	LogProbs  []float32 `json:"logprobs"`
	Entropies []float32 `json:"entropies"`
	Text      string    `json:"text"`
	Finish    string    `json:"finish"`

	Inserted     []rollout.Span   `json:"inserted,omitempty"`
	Asked        *rollout.Asked   `json:"asked,omitempty"` // by an agent
	AgentVerdict *rollout.Verdict `json:"agent_verdict,omitempty"`
	Acts         []rollout.Act    `json:"acts,omitempty"`

	Options []rollout.OptionScore `json:"options,omitempty"`
}

func evalConfig(c *config.Run) eval.Config {
	f := c.Eval.Final
	return eval.Config{N: f.N, Params: rollout.Params{Temperature: f.Temperature, TopK: f.TopK,
		TopP: f.TopP, MinP: f.MinP, Penalties: penalties(f.Repetition, f.Presence, f.Frequency),
		MaxNewTokens: f.MaxNewTokens, Stop: c.Rollout.Stop}}
}

// openedSuite is a suite that can be sampled from plain weights.
type openedSuite struct {
	label    string
	asking   suite.Asking
	m        *model.Model
	problems []rollout.Problem
	prompts  *prompt.Prompter
	conf     eval.Config
	end      func() error // ends the environment, if there is one
	owned    closers
}

// openSuite loads what sampling a suite needs. The caller closes it.
func (e *Env) openSuite(ctx context.Context, label string, in Inputs) (*openedSuite, error) {
	s := &openedSuite{label: label, conf: evalConfig(e.run())}
	if err := e.fillSuite(ctx, s, in); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

func (e *Env) fillSuite(ctx context.Context, s *openedSuite, in Inputs) (err error) {
	problems, err := e.suiteProblems(in, s.label)
	if err != nil {
		return err
	}
	s.asking = e.askingOf(s.label)
	if s.problems, err = e.rendered(problems, s.label); err != nil {
		return err
	}
	if err := e.showPlayed(in, &s.owned, s.problems); err != nil {
		return err
	}
	if s.m, err = e.loadModel(in, RoleWeights, model.Heads{LM: true}, false); err != nil {
		return err
	}
	if s.prompts, err = e.prompter(); err != nil {
		return err
	}
	s.prompts = e.promptsOf(s.label)(s.prompts)
	if s.asking.Likelihood != "" {
		return nil // nothing is sampled
	}
	s.end, err = e.equip(ctx, &s.conf.Params, s.prompts)
	return err
}

func (s *openedSuite) close() {
	if s.end != nil {
		_ = s.end() // all calls have ended
	}
	if s.m != nil {
		s.m.Close()
	}
	s.owned.close()
}

// generator returns a sampler for so many problems, so many completions each. The caller closes the engine.
func (e *Env) generator(s *openedSuite, problems, each int) (*generate.Engine, *eval.Generator, error) {
	engine, err := e.newEngine(e.Backend, s.m, s.prompts.Vocabulary(), s.conf.Params.MaxNewTokens,
		[]generate.Call{{Requests: problems, Samples: each, Prompt: e.run().Data.MaxPromptTokens,
			New: s.conf.Params.MaxNewTokens}})
	if err != nil {
		return nil, nil, err
	}
	return engine, &eval.Generator{Sampler: engine, Prompt: s.prompts.Encode, Params: s.conf.Params,
		Seed: func(l string) uint64 { return ident.Seed(e.Seed, "eval/suite="+s.label+"/"+l) }}, nil
}

// generateSuite samples completions of a suite from plain weights.
func generateSuite(ctx context.Context, e *Env, label string, in Inputs) (*Outcome, error) {
	s, err := e.openSuite(ctx, label, in)
	if err != nil {
		return nil, err
	}
	defer s.close()
	if s.asking.Likelihood != "" {
		return e.chooseSuite(ctx, s)
	}
	problems, conf := s.problems, s.conf
	had := e.earlier(problems, conf.N)
	total := len(problems) * (conf.N - had.each)
	engine, gen, err := e.generator(s, len(problems), conf.N-had.each)
	if err != nil {
		return nil, err
	}
	defer engine.Close()
	cut := e.warnTruncated(s.prompts, label, problems)
	fresh, err := gen.Generate(ctx, problems, had.each, conf.N, func(n int) { e.progress(n, total) })
	if err != nil {
		return nil, err
	}
	if err := eval.CheckEpisodes(fresh, e.notGradedLimit()); err != nil {
		return nil, err
	}
	lines, err := completionLines(fresh)
	if err != nil {
		return nil, err
	}
	samples := joined(had.samples, fresh, len(problems))
	o, err := e.put(RoleCompletions, "completions", bytes.Join(joined(had.lines, lines, len(problems)), nil))
	if err != nil {
		return nil, err
	}
	summary := map[string]any{"samples": len(samples), "tokens": tokensOf(samples), "reused": len(had.samples)}
	if cut > 0 {
		summary["truncated"] = cut
	}
	out := &Outcome{Outputs: []Output{o}, Evaluation: &Evaluation{Label: label, N: conf.N, Problems: problems,
		Samples: samples, Prompts: e.promptsOf(label)},
		Summary: summary, Facts: []rl.Metric{fact("samples", float64(len(samples)))}}
	if n := len(had.samples); n > 0 {
		out.Facts = append(out.Facts, fact("reused", float64(n)))
	}
	policy, err := e.exactPolicy(in, s.m, s.prompts, problems)
	if err != nil || policy == nil {
		return out, err
	}
	p, err := e.putJSON(RolePolicy, "policy", policy)
	out.Outputs = append(out.Outputs, p)
	return out, err
}

// completionLines returns the lines of samples in the completions blob.
func completionLines(samples []eval.Sample) ([][]byte, error) {
	lines := make([][]byte, len(samples))
	for i, s := range samples {
		if at := train.FirstNonFinite(s.Completion.LogProbs); at >= 0 {
			return nil, fmt.Errorf("problem %s, sample %d, token %d: the model's log-prob is %v: its weights are "+
				"broken, and every score of them would be; evaluate an earlier checkpoint",
				s.ProblemID, s.K, at, s.Completion.LogProbs[at])
		}
		if k := notNumbers(s.Completion.Options); k >= 0 {
			return nil, fmt.Errorf("problem %s, option %s: the model's log-prob is %v: its weights are broken, and "+
				"every score of them would be; evaluate an earlier checkpoint", s.ProblemID, rollout.Letter(k),
				s.Completion.Options[k].LogProb)
		}
		c := s.Completion.Named()
		inserted, asked := c.Stored()
		line, err := json.Marshal(record{s.ProblemID, s.K, c.Tokens, c.LogProbs, c.Entropies, c.Text,
			c.Finish.String(), inserted, asked, c.AgentVerdict, c.Acts, c.Options})
		if err != nil {
			return nil, fmt.Errorf("sample %d of problem %s: %w", s.K, s.ProblemID, err)
		}
		lines[i] = append(line, '\n')
	}
	return lines, nil
}

func tokensOf(samples []eval.Sample) (n int) {
	for _, s := range samples {
		n += len(s.Completion.Tokens)
	}
	return n
}

// readCompletions reads a completions blob.
func readCompletions(b []byte) ([]eval.Sample, error) {
	var out []eval.Sample
	lines := bufio.NewScanner(bytes.NewReader(b))
	lines.Buffer(nil, len(b)+1)
	for lines.Scan() {
		var r record
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			return nil, fmt.Errorf("completions, line %d: %w", len(out)+1, err)
		}
		c := rollout.Completion{Tokens: r.Tokens, LogProbs: r.LogProbs, Entropies: r.Entropies, Text: r.Text,
			Inserted: r.Inserted, Asked: r.Asked, AgentVerdict: r.AgentVerdict, Acts: r.Acts, Options: r.Options}
		var err error
		if c.Finish, err = rollout.ParseFinish(r.Finish); err == nil {
			err = c.Check()
		}
		if err != nil {
			return nil, fmt.Errorf("completions, line %d: %w", len(out)+1, err)
		}
		out = append(out, eval.Sample{ProblemID: r.Problem, K: r.K, Completion: c})
	}
	return out, lines.Err()
}

// verdictLine is a line of the verdicts blob.
type verdictLine struct {
	Problem string  `json:"problem"`
	K       int     `json:"k"`
	Graded  bool    `json:"graded"`
	Correct bool    `json:"correct"`
	Reward  float64 `json:"reward"`
	Answer  string  `json:"answer"`
	Reason  string  `json:"reason"`
	// Graders says, where there are several, which of them accept the answer.
	Graders map[string]bool `json:"graders,omitempty"`
	// Score is a reward model's; nil: it gave none.
	Score *float64 `json:"score,omitempty"`
}

// scores is the scores blob: what comparisons and reports read.
type scores struct {
	Items   []eval.Item   `json:"items"`
	Metrics []eval.Metric `json:"metrics"`
}

// scoreSuite grades the completions of a suite.
func scoreSuite(ctx context.Context, e *Env, label string, in Inputs) (*Outcome, error) {
	e.scorer = in[RoleScorer]
	c := e.run()
	ev, passK := &Evaluation{Label: label, N: c.Eval.Final.N}, c.Eval.Final.PassK
	if e.askingOf(label).Likelihood != "" {
		ev.N, passK = 1, nil
	}
	var err error
	if ev.Problems, err = e.suiteProblems(in, label); err != nil {
		return nil, err
	}
	b, err := e.input(in, RoleCompletions)
	if err != nil {
		return nil, err
	}
	if ev.Samples, err = readCompletions(b); err != nil {
		return nil, err
	}
	if err = e.judge(ctx, ev, runtime.NumCPU()); err != nil {
		return nil, err
	}
	if ev.Items, err = eval.Items(ev.Problems, ev.Samples, ev.Verdicts); err != nil {
		return nil, err
	}
	if e.suiteOf(label) == nil && c.JudgesAlone() {
		eval.Judged(ev.Items, ev.Problems, config.PromptsTask)
	}
	if err = e.scores(ctx, ev); err != nil {
		return nil, err
	}
	// The seed of resampling comes from the resampled items.
	seed := ident.Seed(0, "eval/bootstrap/"+in[RoleCompletions].String())
	if ev.Metrics, err = eval.Summarize(ev.Items, passK, seed); err != nil {
		return nil, err
	}
	kinds, err := eval.KindMetrics(ev.Items, ev.Problems, c.Task.Kinds(), seed)
	if err != nil {
		return nil, err
	}
	sources, err := eval.SourceMetrics(ev.Items, ev.Problems, seed)
	if err != nil {
		return nil, err
	}
	ev.Metrics = slices.Concat(ev.Metrics, kinds, sources)
	graders, err := ev.Panel.GraderMetrics(seed)
	if err != nil {
		return nil, err
	}
	ev.Metrics = append(ev.Metrics, graders...)
	if e.askingOf(label).Likelihood != "" {
		ev.Metrics = eval.OfOptions(ev.Metrics)
	}
	if _, ok := in[RolePolicy]; ok {
		exact, err := e.exactMetrics(in)
		if err != nil {
			return nil, err
		}
		ev.Metrics = append(ev.Metrics, exact...)
	}
	return e.scored(ev)
}

// accepts says which of several graders accept sample i.
func (ev *Evaluation) accepts(i int) map[string]bool {
	if len(ev.Panel.Columns) < 2 {
		return nil
	}
	m := map[string]bool{}
	for _, c := range ev.Panel.Columns {
		m[c.Grader] = c.Verdicts[i].Correct
	}
	return m
}

// score returns the scorer's score of sample i; nil if it has none.
func (ev *Evaluation) score(i int) *float64 {
	if ev.Scores == nil || ev.Scores[i].Status != rollout.Graded {
		return nil
	}
	return &ev.Scores[i].Reward
}

func (e *Env) scored(ev *Evaluation) (*Outcome, error) {
	var b bytes.Buffer
	for i, v := range ev.Verdicts {
		graded := v.Status == rollout.Graded
		if !graded {
			ev.Ungraded++
		}
		line, err := json.Marshal(verdictLine{ev.Samples[i].ProblemID, ev.Samples[i].K, graded, v.Correct, v.Reward,
			v.Answer, v.Reason, ev.accepts(i), ev.score(i)})
		if err != nil {
			return nil, err
		}
		b.Write(append(line, '\n'))
	}
	verdicts, err := e.put(RoleVerdicts, "verdicts", b.Bytes())
	if err != nil {
		return nil, err
	}
	s, err := e.putJSON(RoleScores, "scores", scores{ev.Items, ev.Metrics})
	if err != nil {
		return nil, err
	}
	summary := map[string]float64{}
	for _, m := range ev.Metrics {
		summary[m.Name] = m.Value
	}
	return &Outcome{Outputs: []Output{verdicts, s}, Evaluation: ev, Summary: summary}, nil
}
