package run

import (
	"context"
	"errors"
	"fmt"
	"math"

	"exp/experiments/blob"
	"exp/experiments/ident"
	"exp/experiments/store"
	"exp/harness/stage"
	"exp/train"
	"exp/train/rollout"
)

// completionRecord stores the completions kept from training: texts in packs, rows and
// verdicts as soon as a pack is full. It works while the next step runs and reports
// errors at that step's end. Not safe for concurrent use.
type completionRecord struct {
	db     *store.DB
	stage  int64 // the stage they belong to (store.Stage.Home)
	scorer store.Scorer
	rate   float64                            // share of completions to keep
	images func(list []rollout.Picture) error // records images that agents brought; nil if none did
	// text returns a problem's prompt as the model reads it; nil: Problem.Prompt.
	text func(p *rollout.Problem) (string, error)
	// graded returns what the task's grader reads of a completion; nil, or nil for one: its whole text.
	graded func(c *rollout.Completion) *string

	working chan error // result of the work on the last step; nil: already reported
	// Owned by the worker while it runs.
	pack   *blob.PackWriter // nil: none is open
	steps  int              // steps since it was opened
	rows   []keptRow        // rows of its records, in order; rows[:stored] are in the database
	stored int
	packs  int // number of its packs in the database
}

// keptRow is the database row of a completion.
type keptRow struct {
	sample  store.Sample
	verdict rollout.Verdict
}

// stepsPerPack limits how many steps' completions a kill can lose.
const stepsPerPack = 25

// keptSample is the form of a completion in a pack.
type keptSample struct {
	Prompt    string    `json:"prompt"`
	Text      string    `json:"text"`
	Tokens    []int32   `json:"tokens"`
	LogProbs  []float32 `json:"logprobs"`
	Entropies []float32 `json:"entropies,omitempty"`
	// Components holds the named parts of the training reward; absent if the reward has
	// none or the completion was not graded.
	Components map[string]float64 `json:"components,omitempty"`
	// Basis is the basis of the training verdict "right"; absent if the answer is wrong or the grader does not say.
	Basis string `json:"basis,omitempty"`
	// Inserted are the parts that tools wrote; absent if there are none.
	Inserted []rollout.Span `json:"inserted,omitempty"`
	// Graded is the text that the task's grader reads; absent if it is Text.
	Graded *string `json:"graded,omitempty"`
	// Asked are the tokens of Prompt where an agent wrote it, and absent where it is the problem's.
	Asked []int32 `json:"asked,omitempty"`
	// Later are further conversations of an agent's episode, and Final the number of the one with the last turn.
	Later []rollout.Later `json:"later,omitempty"`
	Final int             `json:"final,omitempty"`
	// Images are those that the agent brought.
	Images []rollout.ShownImage `json:"images,omitempty"`
	// Acts are the policy's turns, with what they earned, where something tells them apart.
	Acts []rollout.Act `json:"acts,omitempty"`
	// Steps are those of the answer with their scores and rewards; absent if none earned any.
	Steps []rollout.Step `json:"steps,omitempty"`
}

// keptOf returns a completion in a pack, with the parts that depend on it alone.
func keptOf(c *rollout.Completion) keptSample {
	c = c.Named()
	k := keptSample{Text: c.Text, Tokens: c.Tokens, LogProbs: c.LogProbs, Entropies: c.Entropies, Acts: c.Acts}
	var asked *rollout.Asked
	if k.Inserted, asked = c.Stored(); asked != nil {
		k.Asked, k.Later, k.Final, k.Images = asked.Tokens, asked.Later, asked.Final, asked.Images
	}
	return k
}

// asked returns what an agent asked, without the text of the first prompt; nil if none did.
func (k *keptSample) asked() *rollout.Asked {
	if k.Asked == nil {
		return nil
	}
	return &rollout.Asked{Tokens: k.Asked, Later: k.Later, Final: k.Final, Images: k.Images}
}

// basisOf names what a verdict "right" rests on; "" for another verdict.
func basisOf(v rollout.Verdict) string {
	if v.Status != rollout.Graded || !v.Correct {
		return ""
	}
	return v.Basis.String()
}

// componentsOf maps a verdict's reward parts to their names.
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

// gradedText calls graded.
func (r *completionRecord) gradedText(c *rollout.Completion) *string {
	if r.graded == nil {
		return nil
	}
	return r.graded(c)
}

// add hands over the kept completions of a step. Nothing changes a step's trajectories
// after this.
func (r *completionRecord) add(s stage.Step) error {
	if err := r.wait(); err != nil {
		return err
	}
	r.working = make(chan error, 1)
	go func() { r.working <- r.write(s) }()
	return nil
}

// wait waits for the worker.
func (r *completionRecord) wait() error {
	if r.working == nil {
		return nil
	}
	err := <-r.working
	r.working = nil
	return err
}

// flush returns when all completions are in the database. After an error, those before
// it are.
func (r *completionRecord) flush() error { return errors.Join(r.wait(), r.close()) }

// write puts a step's completions into the pack, and the contents of full packs into
// the database.
func (r *completionRecord) write(s stage.Step) error {
	var prompt string
	var of *rollout.Problem // the problem of the prompt
	var brought []rollout.Picture
	for i := range s.Trajectories {
		t := &s.Trajectories[i]
		if !kept(r.rate, s.Det.Step, t) {
			continue
		}
		if r.pack == nil {
			r.pack, r.steps = r.db.Blobs.NewPackWriter(), 0
		}
		if of != t.Problem {
			var err error
			if prompt, err = r.promptText(t.Problem); err != nil {
				return err
			}
			of = t.Problem
		}
		c := t.Completion
		brought = append(brought, picturesOf(c)...)
		k := keptOf(c)
		k.Prompt, k.Graded = promptOf(c, prompt), r.gradedText(c)
		k.Components, k.Basis = componentsOf(s.Components, t.Verdict), basisOf(t.Verdict)
		k.Steps = t.Verdict.Steps
		if err := r.pack.Add(k); err != nil {
			return err
		}
		r.rows = append(r.rows, keptRow{trainSample(r.stage, s.Det.Step, t), t.Verdict})
	}
	if len(brought) > 0 {
		if err := r.images(brought); err != nil {
			return err
		}
	}
	if r.pack == nil {
		return nil
	}
	if r.steps++; r.steps >= stepsPerPack {
		return r.close()
	}
	return r.store(r.pack.Stored())
}

// promptOf returns the text of a completion's prompt, given its problem's.
func promptOf(c *rollout.Completion, problem string) string {
	if c.Asked != nil {
		return c.Asked.Text
	}
	return problem
}

func (r *completionRecord) promptText(p *rollout.Problem) (string, error) {
	if r.text == nil {
		return p.Prompt, nil
	}
	return r.text(p)
}

// close closes the pack and puts its contents into the database.
func (r *completionRecord) close() error {
	if r.pack == nil {
		return nil
	}
	refs, packs, err := r.pack.Close()
	if err == nil {
		err = r.store(refs, packs)
	}
	r.pack, r.rows, r.stored, r.packs = nil, r.rows[:0], 0, 0
	return err
}

// store puts the rows of records with known places into the database, unless they are
// there already.
func (r *completionRecord) store(refs []blob.Ref, packs []blob.Pack) error {
	rows := r.rows[r.stored:min(len(refs), len(r.rows))] // a record that could not be stored has no ref
	if len(rows) == 0 {
		return nil
	}
	samples := make([]store.Sample, len(rows))
	for i := range rows {
		samples[i] = rows[i].sample
		samples[i].Ref = refs[r.stored+i]
	}
	ctx := context.Background()
	if err := r.db.AddSamples(ctx, samples, packs[r.packs:]); err != nil {
		return err
	}
	verdicts := make([]store.Verdict, len(rows))
	for i := range rows {
		verdicts[i] = verdictRow(samples[i].ID, rows[i].verdict)
	}
	r.stored, r.packs = r.stored+len(rows), len(packs)
	return r.db.AddVerdicts(ctx, r.scorer, verdicts)
}

// trainSample returns the row of a training completion.
func trainSample(home, step int64, t *train.Trajectory) store.Sample {
	reward := t.Verdict.Reward
	if t.Verdict.Status != rollout.Graded {
		reward = math.NaN()
	}
	c := t.Completion
	return store.Sample{Stage: home, Scope: "train", Step: step, Item: t.Problem.ID, K: t.Sample,
		PromptTokens: int64(len(t.Prompt)),
		OutTokens:    int64(len(c.Tokens)), Finish: c.Finish.String(), Reward: reward, LogProbSum: sum(c.LogProbs)}
}

// kept draws whether to keep a completion's text, from a separate random stream.
func kept(rate float64, step int64, t *train.Trajectory) bool {
	if rate >= 1 {
		return true
	}
	u := ident.Seed(0, fmt.Sprintf("keep/step=%d/prompt=%s/sample=%d", step, t.Problem.ID, t.Sample))
	return float64(u>>11)/(1<<53) < rate
}
