package endpoint

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"exp/experiments/blob"
	"exp/experiments/store"
	"exp/harness/config"
	"exp/harness/stage"
	"exp/train/rollout"
)

// Problems are the problems of a run, for conversations, with the run's grader.
type Problems struct {
	Split string // test; or val or train, if the run has no test set
	env   *stage.Env
	list  []rollout.Problem
	album string // file with their images; empty: they have none
}

// ReadProblems reads the problems of a run, whose configuration is r.
func ReadProblems(ctx context.Context, db *store.DB, run store.Run, r *config.Resolved) (*Problems, error) {
	if r.Run.Rollout.Tools.Used() || r.Run.Data.Tools != config.None && r.Run.Data.Tools != "" {
		return nil, fmt.Errorf("the prompts of run %s offer tools, and a conversation calls none", run.RID.Short())
	}
	stages, err := db.Stages(ctx, run.ID)
	if err != nil {
		return nil, err
	}
	p := &Problems{env: &stage.Env{Config: r, Blobs: db.Blobs, Dir: db.RunDir(run.RID), Seed: run.Seed}}
	for _, split := range []struct{ name, role string }{{"test", stage.RoleTest}, {"val", stage.RoleVal},
		{"train", stage.RoleTrain}} {
		for _, s := range slices.Backward(stages) {
			i := slices.IndexFunc(s.Outputs, func(x store.IO) bool { return x.Role == split.role })
			if s.Kind != string(config.Prepare) || i < 0 {
				continue
			}
			p.Split = split.name
			if d := store.DigestOf(s.Outputs, stage.RoleImages); !d.IsZero() {
				p.album = db.Blobs.Path(d)
			}
			p.list, err = stage.Problems(p.env, stage.Inputs{split.role: s.Outputs[i].Digest}, split.role)
			return p, err
		}
	}
	return nil, fmt.Errorf("run %s has no problems in the store", run.RID.Short())
}

// Len returns their number.
func (p *Problems) Len() int { return len(p.list) }

// Problem is a problem as people read it.
type Problem struct {
	ID     string
	Prompt string // as the model reads it
	Gold   string // right answer, or a right completion if many answers are; empty: neither is known
}

// Show returns problem i.
func (c *Conversation) Show(p *Problems, i int) (Problem, error) {
	q := &p.list[i]
	text, err := c.x.prompts.Text(q)
	x := Problem{ID: q.ID, Prompt: text, Gold: q.Answer}
	if x.Gold == "" {
		x.Gold = q.Target
	}
	return x, err
}

// AskProblem begins a conversation anew with problem i, in the run's prompt. It is Ask otherwise.
func (c *Conversation) AskProblem(ctx context.Context, p *Problems, i int, show func(text string) error) (Answer,
	error) {
	t := turn{problem: &p.list[i], text: p.list[i].Prompt}
	var err error
	if t.images, err = p.images(i); err != nil {
		return Answer{}, err
	}
	if c.x.Chats() {
		t.messages, t.tools = c.x.prompts.Chat(t.problem)
	}
	return c.say(ctx, t, show)
}

// images returns the images of problem i with their files.
func (p *Problems) images(i int) (list []rollout.Picture, err error) {
	q := &p.list[i]
	if len(q.Images) == 0 {
		return nil, nil
	}
	a, err := blob.OpenAlbum(p.album)
	if err != nil {
		return nil, err
	}
	defer a.Close() // only read: an error on closing loses nothing
	for k, pic := range q.Images {
		if pic.Encoded, err = a.Bytes(pic.Digest); err != nil {
			return nil, fmt.Errorf("problem %s: image %d: %w", q.ID, k+1, err)
		}
		list = append(list, pic)
	}
	return list, nil
}

// OnProblem reports whether the last question is a problem.
func (c *Conversation) OnProblem() bool {
	return len(c.turns) > 0 && c.turns[len(c.turns)-1].problem != nil
}

// Verdict is what the grader says of an answer.
type Verdict struct {
	Graded, Correct bool
	Reward          float64
	Answer, Reason  string
}

// Grade grades the last answer, to a problem, as the run's own evaluation does.
func (c *Conversation) Grade(ctx context.Context, p *Problems) (Verdict, error) {
	t := &c.turns[len(c.turns)-1]
	prompts := t.problem.Kind == "" || t.problem.Kind == config.PromptsTask
	if r := p.env.Config.Run; prompts && r.JudgesAlone() && (r.Reward.Weights != "" || r.Reward.Trained()) {
		return Verdict{}, errors.New("a reward model grades this run, and it is not loaded here")
	}
	v, err := stage.Grade(ctx, p.env, t.problem, &t.said)
	return Verdict{v.Status == rollout.Graded, v.Correct, v.Reward, v.Answer, v.Reason}, err
}
