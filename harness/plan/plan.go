// Package plan turns a configuration and a seed into a run: its identity and its
// stages, with the inputs that each takes from the others. It executes nothing and uses
// no database.
package plan

import (
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"

	"exp/experiments/ident"
	"exp/harness/config"
	"exp/harness/sources"
	"exp/harness/stage"
)

// Run is a run to execute: one experiment with one seed. It is immutable.
type Run struct {
	Config   *config.Resolved
	Seed     int64
	Numerics string // numerics class of the machine
	External stage.External
	Code     map[config.Stage]Code
	XID, RID ident.Digest
	Suites   []stage.Suite // suites in the store that eval.final.suites names
	Stages   []Stage       // in execution order
}

// Code is the state of the sources that a kind of stage depends on.
type Code struct {
	Digest ident.Digest
	Files  []ident.File
}

// Stage is one unit of work.
type Stage struct {
	Kind  config.Stage
	Label string // suite of an evaluation
	Root  int64  // root of the stage's random streams
	// Seed names the root in the stage's id: "seed=3", "model.seed=0", or "".
	Seed  string
	Needs []Need
	// Outside holds the digests of external inputs, by role.
	Outside map[string]ident.Digest
}

// Need is an input that another stage of the run makes.
type Need struct {
	Role   string // as this stage names it
	From   int    // index of the stage that makes it
	Output string // as that stage names it
	// Aside inputs cannot change an output and are not part of the stage's id: the
	// problems of the evaluation during training, and images, which problems name by digest.
	Aside bool
}

// Name returns kind and label for display: "eval.gen[test]".
func (s Stage) Name() string {
	if s.Label == "" {
		return string(s.Kind)
	}
	return fmt.Sprintf("%s[%s]", s.Kind, s.Label)
}

// Sources digests the embedded sources of every kind of stage. It takes a moment; one
// result serves all plans of a process.
func Sources() (map[config.Stage]Code, error) {
	codes := map[config.Stage]Code{}
	for _, kind := range config.StagesOf() {
		d, files, err := sources.Code(kind)
		if err != nil {
			return nil, err
		}
		codes[kind] = Code{d, files}
	}
	return codes, nil
}

// New plans a run. class is the numerics class of the backend; suites are the suites in
// the store that eval.final.suites names. Its errors are about external things that the
// configuration names.
func New(r *config.Resolved, seed int64, class string, sources map[config.Stage]Code,
	suites ...stage.Suite) (*Run, error) {
	x, err := stage.Externals(r)
	if err != nil {
		return nil, err
	}
	for _, name := range stage.ForeignSuites(&r.Run) {
		if !slices.ContainsFunc(suites, func(s stage.Suite) bool { return s.Name == name }) {
			return nil, config.Errors{r.ErrorAt(config.SuitesKey, config.CodeData,
				fmt.Sprintf("the store has no suite %q", name), "exp suite add "+name+" FILE keeps one")}
		}
	}
	p := &Run{Config: r, Seed: seed, Numerics: Numerics(class), External: x, Code: sources, Suites: suites}
	p.addStages()
	kinds := config.RunStages()
	codes := map[string]ident.Digest{}
	for _, s := range p.Stages {
		if slices.Contains(kinds, s.Kind) {
			codes[string(s.Kind)] = p.Code[s.Kind].Digest
		}
	}
	data := maps.Clone(x.Data)
	maps.Copy(data, x.Reward)
	maps.Copy(data, x.Called)
	if !x.Template.IsZero() {
		data[stage.RoleTemplate] = x.Template
	}
	if !x.Tools.IsZero() {
		data[stage.RoleTools] = x.Tools
	}
	if !x.Architecture.IsZero() {
		data[stage.RoleArchitecture] = x.Architecture
	}
	if !x.Adapter.IsZero() {
		data[stage.RoleAdapter] = x.Adapter
	}
	if !x.Vision.IsZero() {
		data[stage.RoleVision] = x.Vision
	}
	if !x.Teacher.IsZero() {
		data[stage.RoleTeacher] = x.Teacher
	}
	if !x.Teachers.IsZero() {
		data[stage.RoleTeachers] = x.Teachers
	}
	if !x.Process.IsZero() {
		data[stage.RoleProcess] = x.Process
	}
	data[stage.RoleStops] = x.Stops
	p.XID, err = ident.Experiment{Config: r.Semantic(kinds...), Data: data, Weights: x.Weights,
		Tokenizer: x.Tokenizer, Code: codes}.XID()
	if err != nil {
		return nil, err
	}
	p.RID = ident.RID(p.XID, seed, p.Numerics)
	return p, nil
}

// made maps a role to the stage that provides it.
type made map[string]Need

// give records what stage i makes.
func (m made) give(p *Run, i int) {
	for _, role := range p.Stages[i].Kind.Facts().Makes {
		if p.makes(role) {
			aside := role == stage.RoleImages || role == stage.RoleVal && !p.Config.Run.Eval.Online.Chooses()
			m[role] = Need{From: i, Output: role, Aside: aside}
		}
	}
}

// makes reports whether this configuration produces a role.
func (p *Run) makes(role string) bool {
	c := &p.Config.Run
	switch role {
	case stage.RoleRollouts:
		return c.Rollout.Source == "recorded"
	case stage.RoleConversations:
		return c.SFT.OnConversations()
	case stage.RolePairs:
		return c.Prefer.Steps > 0
	case stage.RoleRated, stage.RoleScorer:
		return c.RewardModel.Steps > 0
	case stage.RoleRatedVal:
		return c.RewardModel.Validates()
	case stage.RolePassRates:
		return c.Data.PassRate.Selects()
	case stage.RoleImages:
		return p.External.Images
	case stage.RoleVal:
		return c.Eval.Online.EverySteps > 0
	case stage.RolePolicy, stage.RoleReference:
		return c.Task.HasOptimum()
	case stage.RoleBase:
		return c.Train.LoRA.Rank > 0
	}
	return true
}

// needs returns the inputs that a stage takes from earlier ones.
func (p *Run) needs(m made, s Stage) []Need {
	var list []Need
	kind := s.Kind
	_, replaced := m[stage.RoleConversations]
	for _, role := range kind.Facts().Takes {
		if replaced && kind == config.SFT && role == stage.RoleTrain {
			continue // it learns from the conversations instead
		}
		if role == stage.RoleScorer && kind != config.Merge && !p.scored(s) {
			continue
		}
		if n, ok := m[role]; ok {
			n.Role = role
			list = append(list, n)
		}
	}
	return list
}

// scored reports whether the reward model that the run trains scores completions in a stage: in training, and where
// pass rates are measured and in the evaluations of the run's data if nothing else judges them, and in evaluations
// whose scorer it is.
func (p *Run) scored(s Stage) bool {
	c := &p.Config.Run
	if s.Kind == config.EvalScore && c.Eval.Final.Scorer.Trained() && p.ScoredByModel(stage.SuiteOf(s.Label)) {
		return true
	}
	return c.Reward.Trained() && (s.Kind == config.Train || c.JudgesAlone() && p.Suite(s.Label) == nil)
}

// add appends a stage with its needs and records what it makes.
func (p *Run) add(m made, s Stage) int {
	s.Needs = p.needs(m, s)
	i := len(p.Stages)
	p.Stages = append(p.Stages, s)
	m.give(p, i)
	return i
}

func (p *Run) addStages() {
	c, m := &p.Config.Run, made{}
	p.add(m, Stage{Kind: config.Prepare, Root: c.Data.Seed, Seed: named("data.seed", c.Data.Seed),
		Outside: p.dataOutside()})
	p.add(m, Stage{Kind: config.Init, Root: c.Model.Seed, Seed: named("model.seed", c.Model.Seed),
		Outside: p.modelOutside()})
	if c.SFT.Steps > 0 {
		p.add(m, Stage{Kind: config.SFT, Root: c.SFT.Seed, Seed: named("sft.seed", c.SFT.Seed), Outside: p.prompts()})
	}
	if c.RewardModel.Steps > 0 {
		p.add(m, Stage{Kind: config.RewardModel, Root: c.RewardModel.Seed,
			Seed: named("reward_model.seed", c.RewardModel.Seed), Outside: p.prompts()})
	}
	if c.Prefer.Steps > 0 {
		p.add(m, Stage{Kind: config.Prefer, Root: c.Prefer.Seed, Seed: named("prefer.seed", c.Prefer.Seed),
			Outside: p.prompts()})
	}
	start := m[stage.RoleWeights]
	for _, role := range []string{stage.RoleBase, stage.RoleReference} {
		if p.makes(role) {
			m[role] = start
		}
	}
	if c.Data.Train.Source == config.None { // an evaluation without training, or after fine-tuning alone
		if c.LearnsFirst() {
			merge := p.add(m, Stage{Kind: config.Merge, Outside: p.mergeOutside()})
			if c.TunesFiles() {
				start = Need{From: merge, Output: stage.MergedWeights}
			}
		}
		for _, suite := range c.Eval.Final.Suites {
			p.addSuite(m, suite, suite, p.Seed, start)
		}
		return
	}
	if n := c.Data.PassRate; n.Samples > 0 {
		p.add(m, Stage{Kind: config.PassRate, Root: n.Seed, Seed: named("data.pass_rate.seed", n.Seed),
			Outside: p.ratingOutside()})
	}
	if c.Data.PassRate.Selects() {
		p.add(m, Stage{Kind: config.Select})
	}
	p.add(m, Stage{Kind: config.Train, Root: p.Seed, Seed: named("seed", p.Seed), Outside: p.trainOutside()})
	merged := Need{From: p.add(m, Stage{Kind: config.Merge, Outside: p.mergeOutside()}), Output: stage.MergedWeights}
	for _, suite := range c.Eval.Final.Suites {
		if c.Tunes() {
			// The weights that training started from, under the same protocol; all
			// seeds share it.
			p.addSuite(m, suite, suite+stage.StartSuffix, 0, start)
		}
		p.addSuite(m, suite, suite, p.Seed, merged)
	}
}

// addSuite adds generation and scoring of a suite with the weights of a stage.
func (p *Run) addSuite(m made, suite, label string, root int64, weights Need) {
	m = maps.Clone(m)
	m[stage.RoleWeights] = weights
	// The problems come from prepare, or from the blob of a suite in the store.
	m[stage.RoleProblems] = Need{From: m[stage.RoleProblems].From, Output: stage.RoleProblems + "/" + suite}
	outside, scored := p.prompts(), map[string]ident.Digest{}
	if s := p.suite(suite); s != nil {
		delete(m, stage.RoleProblems)
		scored[stage.RoleProblems] = s.Digest
		outside[stage.RoleProblems] = s.Digest
		if s.Examples != nil {
			outside[stage.RoleExamples] = s.Examples.Digest
		}
	}
	maps.Copy(outside, p.External.Called)
	p.add(m, Stage{Kind: config.EvalGen, Label: label, Root: root, Seed: named("seed", root), Outside: outside})
	if stage.ReadsTurns(&p.Config.Run, p.suite(suite)) {
		// Its special tokens end the graded text.
		maps.Copy(scored, p.tokenizer())
	}
	if p.suite(suite) == nil && p.Config.Run.JudgesAlone() {
		maps.Copy(scored, p.External.Reward)
		maps.Copy(scored, p.prompts()) // rewards see the chat, and text without special tokens
		scored["code of the reward"] = p.Code[config.Train].Digest
	}
	if p.ScoredByModel(suite) {
		maps.Copy(scored, p.External.Scorer)
		maps.Copy(scored, p.prompts()) // it reads prompts, too
		scored[stage.RolePrompts] = p.External.Settings
		if s := p.suite(suite); s != nil && s.Examples != nil {
			scored[stage.RoleExamples] = s.Examples.Digest
		}
		scored["code of the reward"] = p.Code[config.Train].Digest
	}
	p.add(m, Stage{Kind: config.EvalScore, Label: label, Outside: scored})
}

// suite finds a suite in the store by name; nil for the run's own data.
func (p *Run) suite(name string) *stage.Suite {
	i := slices.IndexFunc(p.Suites, func(s stage.Suite) bool { return s.Name == name })
	if i < 0 {
		return nil
	}
	return &p.Suites[i]
}

// Suite returns the suite in the store for a label; nil for the run's own data.
func (p *Run) Suite(label string) *stage.Suite { return p.suite(stage.SuiteOf(label)) }

// Params returns the settings that a stage reads. It includes only the suite that the
// stage's label names and the graders that score it.
func (p *Run) Params(i int) map[string]any {
	s := p.Stages[i]
	params := p.Config.Params(s.Kind)
	if s.Label == "" {
		return params
	}
	delete(params, config.SuitesKey)
	own := p.Suite(s.Label)
	p.setScorer(params, s.Label)
	p.setAsking(params, own)
	switch {
	case s.Kind == config.EvalScore && own != nil:
		var list []any
		for _, g := range stage.GradersOf(&p.Config.Run, own) {
			list = append(list, g)
		}
		params["eval.final.graders"] = list
		for path := range params { // settings of the run's own task
			if strings.HasPrefix(path, "task.") || strings.HasPrefix(path, "reward.") {
				delete(params, path)
			}
		}
	case s.Kind == config.EvalGen && own == nil:
		delete(params, "eval.final.prompt")
	}
	return params
}

func named(key string, root int64) string { return fmt.Sprintf("%s=%d", key, root) }

// tokenizer returns what stages depend on that only write or size a vocabulary.
func (p *Run) tokenizer() map[string]ident.Digest {
	return map[string]ident.Digest{stage.RoleTokenizer: p.External.Tokenizer}
}

// template returns tokenizer plus the chat template, which goes into the merged folder.
func (p *Run) template() map[string]ident.Digest {
	m := p.tokenizer()
	if !p.External.Template.IsZero() {
		m[stage.RoleTemplate] = p.External.Template
	}
	return m
}

// prompts returns what prompts, the images in them and the ends of completions depend on.
func (p *Run) prompts() map[string]ident.Digest {
	m := p.template()
	m[stage.RoleStops] = p.External.Stops
	if !p.External.Tools.IsZero() {
		m[stage.RoleTools] = p.External.Tools
	}
	if !p.External.Vision.IsZero() {
		m[stage.RoleVision] = p.External.Vision
	}
	return m
}

func (p *Run) dataOutside() map[string]ident.Digest {
	m := map[string]ident.Digest{}
	for split, d := range p.External.Data {
		m["data/"+split] = d
	}
	if p.Config.Run.Data.FilterOverlong { // the set of problems depends on prompt lengths
		maps.Copy(m, p.prompts())
		m[stage.RolePrompts] = p.External.Settings
	}
	return m
}

func (p *Run) trainOutside() map[string]ident.Digest {
	m := p.prompts()
	maps.Copy(m, p.External.Reward)
	maps.Copy(m, p.External.Called)
	if !p.External.Teacher.IsZero() {
		m[stage.RoleTeacher] = p.External.Teacher
	}
	if !p.External.Teachers.IsZero() {
		m[stage.RoleTeachers] = p.External.Teachers
	}
	if !p.External.Process.IsZero() {
		m[stage.RoleProcess] = p.External.Process
	}
	return m
}

// ratingOutside returns what completions of training problems and their verdicts depend on.
func (p *Run) ratingOutside() map[string]ident.Digest {
	m := p.prompts()
	maps.Copy(m, p.External.Called)
	if p.Config.Run.JudgesAlone() {
		maps.Copy(m, p.External.Reward)
	}
	return m
}

// mergeOutside returns template plus the base's name, which trained adapters carry in
// their settings.
func (p *Run) mergeOutside() map[string]ident.Digest {
	m := p.template()
	if c := &p.Config.Run; c.Train.LoRA.Rank > 0 && c.Model.Init == "pretrained" {
		m["name of the base"] = ident.Sum([]byte(c.Model.Name()))
	}
	return m
}

func (p *Run) modelOutside() map[string]ident.Digest {
	m := p.tokenizer()
	if !p.External.Weights.IsZero() {
		m["weights"] = p.External.Weights
		m[stage.RoleArchitecture] = p.External.Architecture
	}
	if !p.External.Adapter.IsZero() {
		m[stage.RoleAdapter] = p.External.Adapter
	}
	if !p.External.Vision.IsZero() {
		m[stage.RoleVision] = p.External.Vision
	}
	return m
}

// Inputs returns the digests of a stage's inputs by role, given the outputs of earlier
// stages; ok is false if one is not known yet.
func (p *Run) Inputs(i int, output func(stage int, role string) (ident.Digest,
	bool)) (hashed, all map[string]ident.Digest, ok bool) {
	s := p.Stages[i]
	hashed, all = map[string]ident.Digest{}, map[string]ident.Digest{}
	for role, d := range s.Outside {
		hashed[role], all[role] = d, d
	}
	for _, n := range s.Needs {
		d, known := output(n.From, n.Output)
		if !known {
			return nil, nil, false
		}
		all[n.Role] = d
		if !n.Aside {
			hashed[n.Role] = d
		}
	}
	return hashed, all, true
}

// SID returns the id of a stage with the given inputs.
func (p *Run) SID(i int, hashed map[string]ident.Digest) (ident.Digest, error) {
	s := p.Stages[i]
	return StageID(ident.Stage{Kind: string(s.Kind), Params: p.Params(i), Inputs: hashed, Code: p.Code[s.Kind].Digest,
		Seed: s.Seed, Numerics: p.Numerics}, s.Label)
}

// StageID returns the id of a stage, the same for a planned and a recorded one. It adds the label to the parameters of
// id; preparation and the choice of problems have no numerics, because they work on text and shares of integers only.
// Where the files of an evaluation's scorer lie does not count: their digests are inputs.
func StageID(id ident.Stage, label string) (ident.Digest, error) {
	if label != "" {
		id.Params["suite"] = label
	}
	for _, path := range config.ScorerFiles() {
		if _, ok := id.Params[path]; ok {
			id.Params[path] = "external"
		}
	}
	if kind := config.Stage(id.Kind); kind == config.Prepare || kind == config.Select {
		id.Numerics = ""
	}
	return id.SID()
}

// Protocol returns the digest of the final evaluation's settings for a label; results with equal
// protocols are comparable.
func (p *Run) Protocol(label string) (ident.Digest, error) {
	settings := p.Config.Protocol()
	p.setAsking(settings, p.Suite(label))
	if s := p.Suite(label); s != nil && s.Examples != nil {
		settings[stage.RoleExamples] = s.Examples.Digest.String()
	}
	if p.Config.Run.JudgesAlone() {
		if p.Config.Run.Reward.Trained() {
			p.addLearned(settings)
		}
		for use, d := range p.External.Reward {
			settings[use] = d.String()
		}
	}
	if p.ScoredByModel(stage.SuiteOf(label)) {
		if p.Config.Run.Eval.Final.Scorer.Trained() {
			p.addLearned(settings)
		}
		for use, d := range p.External.Scorer {
			settings[use] = d.String()
		}
	}
	return ident.Hash("exp/protocol/1", settings)
}

// TrainStage returns the index of the train stage, or -1 for a run that only evaluates
// weights.
func (p *Run) TrainStage() int {
	for i, s := range p.Stages {
		if s.Kind == config.Train {
			return i
		}
	}
	return -1
}

// Numerics returns the class within which results agree bit for bit: the backend's, and
// whether the Go compiler fuses float64 products and sums, as it does on some
// processors and with GOAMD64=v3. Training mathematics forbids fusing; initial weights
// and statistics do not.
func Numerics(class string) string {
	if fuses() {
		return class + "/gofma-" + runtime.GOARCH
	}
	return class
}

// fuses reports whether x*y + z is rounded once: then (1+2⁻³⁰)² - 1 - 2⁻²⁹ is 2⁻⁶⁰,
// otherwise 0.
func fuses() bool {
	return multiplyAdd(1+0x1p-30, 1+0x1p-30, -1-0x1p-29) != 0
}

//go:noinline
func multiplyAdd(x, y, z float64) float64 { return x*y + z }
