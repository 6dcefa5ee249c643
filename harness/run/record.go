package run

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"

	"exp/eval"
	"exp/experiments/ident"
	"exp/experiments/store"
	"exp/harness/config"
	"exp/harness/metric"
	"exp/harness/plan"
	"exp/harness/stage"
	"exp/train/rollout"
)

// stepRecord writes the steps of a training stage and their kept completions.
type stepRecord struct {
	x      *execution
	writer *store.StepWriter
	texts  *completionRecord
	replay replay
	note   func(string) // reports the replay; may be nil
	parent *store.Run   // the run that this one extends; nil: none
	board  *boardRecord
}

func (x *execution) newStepRecord(row store.Stage) *stepRecord {
	return &stepRecord{x: x, writer: x.DB.NewStepWriter(x.run.ID, x.attempt.ID, metric.Unit),
		texts: &completionRecord{db: x.DB, stage: row.Home, scorer: x.scorer(trainLabel),
			rate: x.p.Config.Run.Store.Samples.Train, images: x.recordsImages(row),
			text: x.p.External.Prompter.Text, graded: x.graded}, board: x.openBoard(context.Background())}
}

// graded returns what the task's grader reads of a completion; nil: its whole text.
func (x *execution) graded(c *rollout.Completion) *string {
	return stage.GradedText(&x.p.Config.Run, c)
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
	if err := r.writer.Record(store.Step{Det: s.Det, Measured: s.Measured, Chain: s.Chain, Tokens: s.Tokens,
		Events: events}); err != nil {
		return err
	}
	if err := r.checkParent(s); err != nil {
		return err
	}
	r.board.step(s)
	if err := r.texts.add(s); err != nil {
		return err
	}
	if r.note != nil && s.Det.Step == r.replay.to && r.replay.from <= r.replay.to {
		if err := r.settle(); err != nil { // every step was compared
			return err
		}
		r.replay.say(r.note)
	}
	if s.Det.Step >= r.replay.to { // a run does not stop amid its recorded steps
		r.x.checkStep(s)
	}
	return nil
}

// validated records the scores of the weights after a step that is recorded; step 0 are those that training starts
// from.
func (r *stepRecord) validated(step int, measured map[string]float64) error {
	r.board.add(int64(step), measured)
	return r.writer.RecordScores(int64(step), measured)
}

// settle waits until all steps are in the database. It runs before every checkpoint: a
// run killed right after a checkpoint resumes behind it and would never record the
// steps before.
func (r *stepRecord) settle() error {
	return errors.Join(r.texts.flush(), r.writer.Flush(context.Background()))
}

// checkpoint announces a checkpoint. The steps up to it are already written.
func (r *stepRecord) checkpoint(dir string, step int, chain ident.Digest) error {
	return r.x.announce(dir, step, chain)
}

// announce records a checkpoint, once.
func (x *execution) announce(dir string, step int, chain ident.Digest) error {
	digest, size, err := manifestOf(dir)
	if err != nil {
		return err
	}
	return x.DB.AddCheckpoint(context.Background(),
		store.Checkpoint{Run: x.run.ID, Step: int64(step), Digest: digest, Chain: chain, Bytes: size})
}

// pinned reports whether the user wants to keep a checkpoint; true if that cannot be
// read.
func (r *stepRecord) pinned(step int) bool {
	tags, err := r.x.DB.Tags(context.Background(), r.x.run.ID)
	return err != nil || store.KeepsCheckpoint(tags, int64(step))
}

func (r *stepRecord) close() error {
	r.board.close()
	return errors.Join(r.texts.flush(), r.writer.Close())
}

// sampleKey identifies a sample within a stage.
type sampleKey struct {
	step int64
	item string
	k    int
}

type judged struct {
	key sampleKey
	v   rollout.Verdict
}

// addVerdicts records verdicts on samples that are already recorded.
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
		rows = append(rows, verdictRow(id, j.v))
	}
	return x.DB.AddVerdicts(ctx, scorer, rows)
}

// verdictRow returns the database row of a verdict.
func verdictRow(sample int64, v rollout.Verdict) store.Verdict {
	return store.Verdict{Sample: sample, Graded: v.Status == rollout.Graded, Correct: v.Correct, Reward: v.Reward,
		Answer: v.Answer, Reason: v.Reason}
}

// trainLabel is the label of training completions, which have no suite.
const trainLabel = ""

// scorer identifies what gave the verdicts on a label's samples: the scoring sources
// and, if there are several graders, the chosen one.
func (x *execution) scorer(label string) store.Scorer {
	c, code := &x.p.Config.Run, x.p.Code[config.EvalScore].Digest
	own := x.p.Suite(label)
	judged := own == nil && c.JudgesAlone()
	if g, chosen := c.Task.Grader(); own == nil && !chosen && !judged && c.Task.Kind != config.MixedTask {
		return store.Scorer{Digest: code, Name: g + "/1"}
	}
	name := stage.GradersOf(c, own)[0]
	of := map[string]any{"code": code, "grader": name}
	if own == nil && c.Task.Kind == config.MixedTask {
		for _, kind := range c.Task.Kinds() {
			of["grader of "+kind], _ = c.Task.GraderOf(kind)
		}
	}
	if judged {
		for use, d := range x.p.External.Reward {
			of[use] = d
		}
		for i, s := range x.p.Stages {
			if d, ok := x.output(i, stage.RoleScorer); ok && s.Kind == config.RewardModel {
				of[stage.RoleScorer] = d
			}
		}
	}
	d, err := ident.Hash("exp/scorer/1", of)
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
func (x *execution) recordEvaluation(ctx context.Context, i int, row store.Stage,
	ev *stage.Evaluation) ([]store.Eval, error) {
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
	// The previous stage is the generation. The same suite may have been sampled in
	// other ways too.
	if err := x.addVerdicts(ctx, x.scorer(ev.Label), store.SampleQuery{Scope: "eval", Stage: x.done[i-1].Home},
		list); err != nil {
		return nil, err
	}
	return x.evalRows(ctx, i, ev)
}

func (x *execution) recordSamples(ctx context.Context, row store.Stage, ev *stage.Evaluation) error {
	c := &x.p.Config.Run
	prompts, lengths := map[string]string{}, map[string]int{}
	prompter := ev.Prompts(x.p.External.Prompter)
	for i := range ev.Problems {
		p := &ev.Problems[i]
		ids, err := prompter.Encode(p)
		if err != nil {
			return fmt.Errorf("problem %s: %w", p.ID, err)
		}
		if prompts[p.ID], err = prompter.Text(p); err != nil {
			return fmt.Errorf("problem %s: %w", p.ID, err)
		}
		lengths[p.ID] = len(ids)
	}
	rate := c.Store.Samples.Eval
	var brought []rollout.Picture // also to completions that are not kept here: the stage's output names them
	pack := x.DB.Blobs.NewPackWriter()
	var rows []store.Sample
	for _, s := range ev.Samples {
		brought = append(brought, picturesOf(&s.Completion)...)
		if rate < 1 && float64(ident.Seed(0, "keep/eval/"+eval.SampleLabel(s.ProblemID, s.K))>>11)/(1<<53) >= rate {
			continue
		}
		c := s.Completion
		k := keptOf(&c)
		k.Prompt, k.Graded, k.Entropies = promptOf(&c, prompts[s.ProblemID]), x.graded(&c), nil
		if err := pack.Add(k); err != nil {
			return err
		}
		sample := evalSample(row.Home, s)
		sample.PromptTokens = int64(lengths[s.ProblemID])
		if c.Asked != nil {
			sample.PromptTokens = int64(len(c.Asked.Tokens))
		}
		rows = append(rows, sample)
	}
	if err := x.recordsImages(row)(brought); err != nil {
		return err
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

// suiteName returns the name of a label in results: the suite's for a suite in the
// store, the task's for the run's own data.
func suiteName(p *plan.Run, label string) string {
	if p.Suite(label) != nil {
		return label
	}
	return p.Config.Run.Task.Kind + "/" + label
}

// evalRows returns the rows of an evaluation's metrics.
func (x *execution) evalRows(ctx context.Context, i int, ev *stage.Evaluation) ([]store.Eval, error) {
	problems, _ := x.output(0, "problems/"+stage.SuiteOf(ev.Label))
	suite := store.Suite{Digest: problems, Name: suiteName(x.p, ev.Label), Version: "1",
		Scorer: x.scorer(ev.Label).Name}
	if s := x.p.Suite(ev.Label); s != nil {
		problems, suite.Digest, suite.Version = s.Digest, s.Digest, s.Version
	}
	for _, p := range ev.Problems {
		suite.Items = append(suite.Items, store.Item{ID: p.ID, Cluster: p.Cluster, Difficulty: math.NaN()})
	}
	// The start is scored on the same problems under its own name.
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
	protocol, err := x.p.Protocol(ev.Label)
	if err != nil {
		return nil, err
	}
	var rows []store.Eval
	for _, m := range ev.Metrics {
		e := store.Eval{StageGen: x.done[i-1].ID, Suite: id, Protocol: protocol, N: int64(ev.N), Metric: m.Name,
			Value: m.Value,
			SE:    math.NaN(), Lo: math.NaN(), Hi: math.NaN(), Items: int64(m.N), Clusters: int64(m.Clusters),
			InfraErrors: int64(ev.Ungraded)}
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

// manifestOf returns the digest of a checkpoint's manifest and the size of its files.
func manifestOf(dir string) (d ident.Digest, size int64, err error) {
	files, err := os.ReadDir(dir)
	if err != nil {
		return d, 0, err
	}
	for _, f := range files {
		n, sum, err := fileDigest(filepath.Join(dir, f.Name()), f.Name() == "manifest.json")
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
