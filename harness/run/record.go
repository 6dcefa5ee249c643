package run

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"

	"exp/eval"
	"exp/experiments/blob"
	"exp/experiments/ident"
	"exp/experiments/store"
	"exp/harness/config"
	"exp/harness/stage"
	"exp/train"
	"exp/train/rollout"
)

// stepRecord writes the steps of a training stage and the completions that are
// kept of them.
type stepRecord struct {
	x       *execution
	home    int64 // of the stage: samples belong to it
	writer  *store.StepWriter
	rate    float64 // share of completions that is kept
	pack    *blob.PackWriter
	adding  chan addition // of the last step's completions to the pack; nil: it has ended
	pending []store.Sample
	scored  []verdictOf
	steps   int   // since the pack began
	failed  error // of settling before a stop
	replay  replay
	note    func(string) // nil: nobody wants to hear of the replay
	parent  *store.Run   // whose steps these are too, as far as they go; nil: none
}

// verdictOf is what the grader said of a kept completion.
type verdictOf struct {
	step int64
	k    int
	item string
	v    rollout.Verdict
}

// addition is how putting a step's completions into the pack ended.
type addition struct {
	missing int // completions
	err     error
}

// stepsPerPack bounds how many steps' completions a kill can lose.
const stepsPerPack = 25

func (x *execution) newStepRecord(row store.Stage) *stepRecord {
	return &stepRecord{x: x, home: row.Home, rate: x.p.Config.Run.Store.Samples.Train,
		writer: x.DB.NewStepWriter(x.run.ID, x.attempt.ID, unitOf)}
}

// step hands a finished step to the store's goroutine.
func (r *stepRecord) step(s stage.Step) error {
	var events []store.Event
	for _, e := range s.Events {
		data, err := json.Marshal(map[string]any{"step": s.Det.Step, "text": e.Text})
		if err != nil {
			return err
		}
		events = append(events, store.Event{Level: store.LevelWarn, Kind: e.Kind, Data: data})
	}
	if err := r.writer.Record(store.Step{Det: s.Det, Measured: s.Measured, Chain: s.Chain, Tokens: s.Tokens, Events: events}); err != nil {
		return err
	}
	if err := r.checkParent(s); err != nil {
		return err
	}
	if err := r.samples(s); err != nil {
		return err
	}
	r.steps++
	if r.note != nil && s.Det.Step == r.replay.to && r.replay.from <= r.replay.to {
		if err := r.settle(); err != nil { // every step was compared
			return err
		}
		r.replay.say(r.note)
	}
	if every := int64(r.x.p.Config.Run.Checkpoint.EverySteps); every > 0 && s.Det.Step%every == 0 {
		return r.settle()
	}
	if r.steps >= stepsPerPack {
		return r.flush()
	}
	return nil
}

// settle waits until all steps are in the database. It comes before every checkpoint:
// a run that is killed right after one goes on behind it and would never record the
// steps before.
func (r *stepRecord) settle() error {
	return errors.Join(r.flush(), r.writer.Flush(context.Background()))
}

// keptSample is how a completion lies in a pack.
type keptSample struct {
	Prompt    string    `json:"prompt"`
	Text      string    `json:"text"`
	Tokens    []int32   `json:"tokens"`
	LogProbs  []float32 `json:"logprobs"`
	Entropies []float32 `json:"entropies,omitempty"`
	// Components are the named parts of the reward in training; absent where it has
	// none, and where the completion was not graded.
	Components map[string]float64 `json:"components,omitempty"`
}

// componentsOf names the parts of a verdict's reward.
func componentsOf(names []string, v rollout.Verdict) map[string]float64 {
	if len(v.Components) == 0 {
		return nil
	}
	m := make(map[string]float64, len(names))
	for i, name := range names {
		m[name] = v.Components[i]
	}
	return m
}

// samples puts the completions that are kept of a step into the pack, while the next step
// is taken. Nothing changes a step's trajectories any more.
func (r *stepRecord) samples(s stage.Step) error {
	if err := r.added(); err != nil {
		return err
	}
	var list []keptSample
	for i := range s.Trajectories {
		t := &s.Trajectories[i]
		if !kept(r.rate, s.Det.Step, t) {
			continue
		}
		if r.pack == nil {
			r.pack = r.x.DB.Blobs.NewPackWriter()
		}
		c := t.Completion
		list = append(list, keptSample{t.Problem.Prompt, c.Text, c.Tokens, c.LogProbs, c.Entropies, componentsOf(s.Components, t.Verdict)})
		r.pending = append(r.pending, trainSample(r.home, s.Det.Step, t))
		r.scored = append(r.scored, verdictOf{step: s.Det.Step, k: t.Sample, item: t.Problem.ID, v: t.Verdict})
	}
	if len(list) == 0 {
		return nil
	}
	pack, end := r.pack, make(chan addition, 1)
	r.adding = end
	go func() {
		for i := range list {
			if err := pack.Add(list[i]); err != nil {
				end <- addition{len(list) - i, err}
				return
			}
		}
		end <- addition{}
	}()
	return nil
}

// added waits until the completions of the last step are in the pack. After an error
// those before it are.
func (r *stepRecord) added() error {
	if r.adding == nil {
		return nil
	}
	end := <-r.adding
	r.adding = nil
	r.pending, r.scored = r.pending[:len(r.pending)-end.missing], r.scored[:len(r.scored)-end.missing]
	return end.err
}

// trainSample is the row of a completion of training.
func trainSample(home, step int64, t *train.Trajectory) store.Sample {
	reward := t.Verdict.Reward
	if t.Verdict.Status != rollout.Graded {
		reward = math.NaN()
	}
	c := t.Completion
	return store.Sample{Stage: home, Scope: "train", Step: step, Item: t.Problem.ID, K: t.Sample, PromptTokens: int64(len(t.Prompt)),
		OutTokens: int64(len(c.Tokens)), Finish: c.Finish.String(), Reward: reward, LogProbSum: sum(c.LogProbs)}
}

// kept draws whether a completion's text is kept, from a stream of its own.
func kept(rate float64, step int64, t *train.Trajectory) bool {
	if rate >= 1 {
		return true
	}
	u := ident.Seed(0, fmt.Sprintf("keep/step=%d/prompt=%s/sample=%d", step, t.Problem.ID, t.Sample))
	return float64(u>>11)/(1<<53) < rate
}

// flush writes the pack and the rows of its completions.
func (r *stepRecord) flush() error {
	r.steps = 0
	if r.pack == nil {
		return nil
	}
	missing := r.added()
	refs, packs, err := r.pack.Close()
	r.pack = nil
	if err != nil {
		return errors.Join(missing, err)
	}
	for i := range r.pending {
		r.pending[i].Ref = refs[i]
	}
	ctx := context.Background()
	err = r.x.DB.AddSamples(ctx, r.pending, packs)
	if err == nil {
		err = r.verdicts(ctx)
	}
	r.pending, r.scored = r.pending[:0], r.scored[:0]
	return errors.Join(missing, err)
}

// verdicts records what the grader said, by the ids that the samples were given.
func (r *stepRecord) verdicts(ctx context.Context) error {
	for from := 0; from < len(r.scored); {
		step := r.scored[from].step
		var list []judged
		for ; from < len(r.scored) && r.scored[from].step == step; from++ {
			s := r.scored[from]
			list = append(list, judged{sampleKey{s.step, s.item, s.k}, s.v})
		}
		if err := r.x.addVerdicts(ctx, r.x.scorer(trainLabel), store.SampleQuery{Scope: "train", Step: step}, list); err != nil {
			return err
		}
	}
	return nil
}

// checkpoint announces a checkpoint. The steps up to it are written already.
func (r *stepRecord) checkpoint(dir string, step int, chain ident.Digest) error {
	digest, size, err := manifestOf(dir)
	if err != nil {
		return err
	}
	return r.x.DB.AddCheckpoint(context.Background(), store.Checkpoint{Run: r.x.run.ID, Step: int64(step), Digest: digest, Chain: chain, Bytes: size})
}

// pinned reports whether a person wants to keep a checkpoint. One of which that cannot
// be read stays.
func (r *stepRecord) pinned(step int) bool {
	tags, err := r.x.DB.Tags(context.Background(), r.x.run.ID)
	return err != nil || slices.Contains(tags, store.PinTag) || slices.Contains(tags, store.CheckpointPin(int64(step)))
}

func (r *stepRecord) close() error { return errors.Join(r.failed, r.flush(), r.writer.Close()) }

// sampleKey tells samples of a stage apart.
type sampleKey struct {
	step int64
	item string
	k    int
}

type judged struct {
	key sampleKey
	v   rollout.Verdict
}

// addVerdicts records verdicts on samples that are recorded already.
func (x *execution) addVerdicts(ctx context.Context, scorer store.Scorer, q store.SampleQuery, list []judged) error {
	if len(list) == 0 {
		return nil
	}
	samples, err := x.DB.Samples(ctx, x.run.ID, q)
	if err != nil {
		return err
	}
	ids := make(map[sampleKey]int64, len(samples))
	for _, s := range samples {
		ids[sampleKey{s.Step, s.Item, s.K}] = s.ID
	}
	var rows []store.Verdict
	for _, j := range list {
		id, ok := ids[j.key]
		if !ok {
			continue
		}
		rows = append(rows, store.Verdict{Sample: id, Graded: j.v.Status == rollout.Graded, Correct: j.v.Correct, Reward: j.v.Reward,
			Answer: j.v.Answer, Reason: j.v.Reason})
	}
	return x.DB.AddVerdicts(ctx, scorer, rows)
}

// trainLabel stands for the completions of training, which have no suite.
const trainLabel = ""

// scorer names what gives the verdicts on the samples of a label: by the sources that
// score, and where there are several graders by the one that was chosen.
func (x *execution) scorer(label string) store.Scorer {
	c, code := &x.p.Config.Run, x.p.Code[config.EvalScore].Digest
	own := x.p.Suite(label)
	if own == nil && c.Task.Kind != "math" {
		return store.Scorer{Digest: code, Name: c.Task.Kind + "/1"}
	}
	name := stage.GradersOf(c, own)[0]
	d, err := ident.Hash("exp/scorer/1", map[string]any{"code": code, "grader": name})
	if err != nil {
		panic("run: " + err.Error()) // a digest and a text can be hashed
	}
	return store.Scorer{Digest: d, Name: name + "/1"}
}

func sum(x []float32) float64 {
	var s float64
	for _, v := range x {
		s += float64(v)
	}
	return s
}

// recordEvaluation records samples after generation, and verdicts and metrics after
// scoring; it returns the metrics' rows.
func (x *execution) recordEvaluation(ctx context.Context, i int, row store.Stage, ev *stage.Evaluation) ([]store.Eval, error) {
	if ev == nil {
		return nil, nil
	}
	if x.p.Stages[i].Kind == config.EvalGen {
		return nil, x.recordSamples(ctx, row, ev)
	}
	list := make([]judged, len(ev.Samples))
	for j, s := range ev.Samples {
		list[j] = judged{sampleKey{0, s.ProblemID, s.K}, ev.Verdicts[j]}
	}
	// The stage before is the generation. The same suite may have been sampled in other
	// ways too.
	if err := x.addVerdicts(ctx, x.scorer(ev.Label), store.SampleQuery{Scope: "eval", Stage: x.done[i-1].Home}, list); err != nil {
		return nil, err
	}
	return x.evalRows(ctx, i, ev)
}

func (x *execution) recordSamples(ctx context.Context, row store.Stage, ev *stage.Evaluation) error {
	c := &x.p.Config.Run
	tok, err := stage.Tokenizer(c)
	if err != nil {
		return err
	}
	prompts, lengths := map[string]string{}, map[string]int{}
	for _, p := range ev.Problems {
		ids, err := tok.Encode(p.Prompt)
		if err != nil {
			return fmt.Errorf("problem %s: %w", p.ID, err)
		}
		prompts[p.ID], lengths[p.ID] = p.Prompt, min(len(ids), c.Data.MaxPromptTokens)
	}
	rate := c.Store.Samples.Eval
	pack := x.DB.Blobs.NewPackWriter()
	var rows []store.Sample
	for _, s := range ev.Samples {
		if rate < 1 && float64(ident.Seed(0, "keep/eval/"+eval.SampleLabel(s.ProblemID, s.K))>>11)/(1<<53) >= rate {
			continue
		}
		c := s.Completion
		if err := pack.Add(keptSample{prompts[s.ProblemID], c.Text, c.Tokens, c.LogProbs, nil, nil}); err != nil {
			return err
		}
		sample := evalSample(row.Home, s)
		sample.PromptTokens = int64(lengths[s.ProblemID])
		rows = append(rows, sample)
	}
	refs, packs, err := pack.Close()
	if err != nil {
		return err
	}
	for i := range rows {
		rows[i].Ref = refs[i]
	}
	return x.DB.AddSamples(ctx, rows, packs)
}

// suiteName is what results call a label: a suite of the store has its name, the run's
// own data is the task's.
func (x *execution) suiteName(label string) string {
	if x.p.Suite(label) != nil {
		return label
	}
	return x.p.Config.Run.Task.Kind + "/" + label
}

// evalRows makes the rows of an evaluation's metrics.
func (x *execution) evalRows(ctx context.Context, i int, ev *stage.Evaluation) ([]store.Eval, error) {
	problems, _ := x.output(0, "problems/"+stage.SuiteOf(ev.Label))
	suite := store.Suite{Digest: problems, Name: x.suiteName(ev.Label), Version: "1", Scorer: x.scorer(ev.Label).Name}
	if s := x.p.Suite(ev.Label); s != nil {
		problems, suite.Digest, suite.Version = s.Digest, s.Digest, s.Version
	}
	for _, p := range ev.Problems {
		suite.Items = append(suite.Items, store.Item{ID: p.ID, Cluster: p.Cluster, Difficulty: math.NaN()})
	}
	// The start is scored on the same problems under a name of its own.
	if ev.Label != stage.SuiteOf(ev.Label) {
		d, err := ident.Hash("exp/suite/1", map[string]any{"problems": problems, "label": ev.Label})
		if err != nil {
			return nil, err
		}
		suite.Digest = d
	}
	id, err := x.DB.EnsureSuite(ctx, suite)
	if err != nil {
		return nil, err
	}
	protocol, err := x.p.Protocol()
	if err != nil {
		return nil, err
	}
	var rows []store.Eval
	for _, m := range ev.Metrics {
		e := store.Eval{StageGen: x.done[i-1].ID, Suite: id, Protocol: protocol, N: int64(ev.N), Metric: m.Name, Value: m.Value,
			SE: math.NaN(), Lo: math.NaN(), Hi: math.NaN(), Items: int64(m.N), Clusters: int64(m.Clusters), InfraErrors: int64(ev.Ungraded)}
		if m.SE != nil {
			e.SE = *m.SE
		}
		if m.Interval != nil {
			e.Lo, e.Hi = m.Interval.Lo, m.Interval.Hi
		}
		rows = append(rows, e)
	}
	return rows, nil
}

// manifestOf digests a checkpoint's manifest and sums its files.
func manifestOf(dir string) (d ident.Digest, size int64, err error) {
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		return d, 0, err
	}
	for _, f := range files {
		n, sum, err := fileDigest(f, filepath.Base(f) == "manifest.json")
		if err != nil {
			return d, 0, err
		}
		size += n
		if !sum.IsZero() {
			d = sum
		}
	}
	return d, size, nil
}
