package stage

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"exp/eval/layout"
	"exp/eval/task"
	"exp/harness/config"
	"exp/harness/dataset"
	"exp/train/rollout"
)

// preparation is prepare at work.
type preparation struct {
	*Env
	task    task.Task
	album   *albumWriter
	out     *Outcome
	summary map[string]int
}

// prepare makes the problems of all splits and reads the recorded rollouts. Each becomes a blob
// with one JSON object per line. Images that problems show become an album.
func prepare(e *Env) (*Outcome, error) {
	t, err := task.New(dataset.TaskConfig(e.run()))
	if err != nil {
		return nil, err
	}
	valid, err := e.validImage()
	if err != nil {
		return nil, err
	}
	album := &albumWriter{dir: e.Dir, valid: valid}
	defer album.close()
	p := &preparation{e, t, album, &Outcome{}, map[string]int{}}
	for _, s := range dataset.Splits(e.run()) {
		if s.Config.Source == config.None {
			continue
		}
		if err := p.split(s); err != nil {
			return nil, err
		}
	}
	if err := p.putFiles(); err != nil {
		return nil, err
	}
	p.out.Summary = p.summary
	return p.out, nil
}

// putFiles stores the album, and before it what the run learns from besides problems, which may show images.
func (p *preparation) putFiles() error {
	var outputs []Output
	counts := map[string]int{}
	for _, file := range p.files() {
		if !file.read {
			continue
		}
		o, n, err := file.put()
		if err != nil {
			return err
		}
		outputs, counts[file.role] = append(outputs, o), n
	}
	pictures, err := p.putAlbum(p.album)
	if err != nil {
		return err
	}
	p.out.Outputs = append(p.out.Outputs, pictures...)
	if n := len(p.album.list); n > 0 {
		p.note(RoleImages, n)
	}
	for _, o := range outputs {
		p.out.Outputs = append(p.out.Outputs, o)
		p.note(o.Role, counts[o.Role])
	}
	return nil
}

// noun says what a counted output holds, for people: its name, but for roles that stand for several things.
func (p *preparation) noun(name string) string {
	c := p.run()
	switch {
	case name == RolePairs && c.Prefer.Unpaired():
		return "labelled answers"
	case name == RoleRated && c.RewardModel.OfSteps():
		return "answers with labelled steps"
	case name == RoleRatedVal:
		return "held out"
	}
	return name
}

// illustrated says where rows of conversations and preferences have images, which the album takes.
func (p *preparation) illustrated() *layout.Images {
	x := dataset.TaughtImages(p.run())
	x.Take = p.album.take
	return x
}

// show adds the images of problems, or of what else a key names, to the album, and counts them.
func (p *preparation) show(key, what, role string, list []rollout.Problem) error {
	if err := p.album.broken(what, list); err != nil {
		return fmt.Errorf("%s: %w", key, err)
	}
	if n := p.album.show(list); n > 0 {
		p.summary[role+"_images"] = n
	}
	return nil
}

// note counts what was made.
func (p *preparation) note(name string, n int) {
	p.summary[name] = n
	p.out.Facts = append(p.out.Facts, fact(p.noun(name), float64(n)))
}

// split makes the problems of a split.
func (p *preparation) split(s dataset.Split) error {
	if s.Source.Images != nil {
		s.Source.Images.Take = p.album.take
	}
	problems, rates, left, err := s.Problems(p.task, p.run().Data.Seed)
	if err != nil {
		return err
	}
	name := string(s.Name)
	p.countRows(s, left, len(problems)-p.run().GeneratedProblems(name), p.summary)
	all := len(problems)
	if problems, err = p.fitting(problems); err != nil {
		return fmt.Errorf("data.%s: %w", s.Name, err)
	}
	if n := all - len(problems); n > 0 {
		p.event("overlong-prompts", "data.%s: %d of %d problems have prompts longer than data.max_prompt_tokens "+
			"(%d) and are left out",
			s.Name, n, all, p.run().Data.MaxPromptTokens)
		p.summary[name+"_overlong"] = n
	}
	if len(problems) == 0 {
		return fmt.Errorf("data.%s: all %d prompts are longer than data.max_prompt_tokens (%d)", s.Name, all,
			p.run().Data.MaxPromptTokens)
	}
	if n, err := p.checkGolds(s, problems); err != nil {
		return err
	} else if n > 0 {
		p.summary[name+"_unread_golds"] = n
	}
	p.countKinds(s, problems, p.summary)
	if err := p.show("data."+name, "problem", name, problems); err != nil {
		return err
	}
	var b bytes.Buffer
	if err := task.Write(&b, problems); err != nil {
		return err
	}
	o, err := p.put(s.Role, "problems", b.Bytes())
	if err != nil {
		return err
	}
	p.out.Outputs = append(p.out.Outputs, o)
	if err := p.addRecordedRates(p.out, problems, rates); err != nil {
		return err
	}
	p.note(name, len(problems))
	return nil
}

// file is what a stage learns from besides problems, if the configuration has it.
type file struct {
	role string
	read bool
	put  func() (Output, int, error)
}

// files lists the files that prepare reads.
func (p *preparation) files() []file {
	c := p.run()
	return []file{
		{RoleRollouts, c.Rollout.Source == recordedSource, p.putRecorded},
		{RoleConversations, c.SFT.OnConversations(), p.putConversations},
		{RolePairs, c.Prefer.Steps > 0, p.putPairs},
		{RoleRated, c.RewardModel.Steps > 0, p.putRated(RoleRated, c.RewardModel.Source)},
		{RoleRatedVal, c.RewardModel.Validates(), p.putRated(RoleRatedVal, c.RewardModel.Val)},
	}
}

// shownGolds bounds the list of gold answers in an event.
const shownGolds = 5

// checkGolds counts and lists the gold answers that our grader does not understand, if it grades
// the run: the same answers in other words would count as wrong.
func (e *Env) checkGolds(s dataset.Split, problems []rollout.Problem) (int, error) {
	t := &e.run().Task
	if g, _ := t.GraderOf(mathKind); !t.Has(mathKind) || !task.OwnGrader(g) {
		return 0, nil
	}
	problems = ofKind(t, problems, mathKind)
	list, err := task.UnreadGolds(problems)
	if err != nil || len(list) == 0 {
		return 0, err
	}
	var which strings.Builder
	for _, g := range list[:min(len(list), shownGolds)] {
		fmt.Fprintf(&which, "; %s: %q: %v", g.ID, g.Gold, g.Err)
	}
	e.event("unread-golds", "data.%s: the grader does not understand %d of %d gold answers%s", s.Name, len(list),
		len(problems), which.String())
	return len(list), nil
}

// mathKind is the kind of problems whose graders read gold answers.
const mathKind = "math"

// ofKind returns a task's problems of one of its kinds.
func ofKind(t *config.Task, problems []rollout.Problem, kind string) (list []rollout.Problem) {
	if t.Kind != config.MixedTask {
		return problems
	}
	for i := range problems {
		if problems[i].Kind == kind {
			list = append(list, problems[i])
		}
	}
	return list
}

// countKinds adds how many problems of each kind a split has to a summary, and reports the kinds that training has
// none of.
func (e *Env) countKinds(s dataset.Split, problems []rollout.Problem, summary map[string]int) {
	t := &e.run().Task
	if t.Kind != config.MixedTask {
		return
	}
	for _, kind := range t.Kinds() {
		n := len(ofKind(t, problems, kind))
		if n > 0 {
			summary[string(s.Name)+"_"+kind] = n
		} else if s.Role == config.RoleTrain && slices.Contains(config.MixedParts(), kind) {
			e.event("absent-kind", "data.train: no problem is of kind %s (task.mixed.kinds)", kind)
		}
	}
}

// fitting leaves out problems that are too long, if data.filter_overlong says so.
func (e *Env) fitting(problems []rollout.Problem) ([]rollout.Problem, error) {
	if !e.run().Data.FilterOverlong {
		return problems, nil
	}
	p, err := e.prompter()
	if err != nil {
		return nil, err
	}
	return p.Fitting(problems)
}

// countRows adds the counts of a file's rows to a summary, by split, and reports those left out.
func (e *Env) countRows(s dataset.Split, left dataset.LeftOut, problems int, summary map[string]int) {
	if left.Rows == 0 {
		return
	}
	summary[string(s.Name)+"_rows"] = left.Rows
	withoutAnswer := "without an answer"
	switch kinds := e.run().Task.Kinds(); {
	case task.RunsPrograms(kinds...) && len(kinds) > 1:
		withoutAnswer = "without an answer or tests"
	case task.RunsPrograms(kinds...):
		withoutAnswer = "without tests"
	}
	var parts []string
	for _, part := range []struct {
		name, text string
		n          int
	}{
		{"unselected", "not selected (data." + string(s.Name) + ".max_samples)", left.Unselected},
		{"unanswered", withoutAnswer, left.Unanswered},
		{"repeated", "copies of another", left.Repeated},
		{"further", "after the first data." + string(s.Name) + ".size", left.Further},
	} {
		if part.n > 0 {
			summary[string(s.Name)+"_"+part.name] = part.n
			parts = append(parts, fmt.Sprintf("%d %s", part.n, part.text))
		}
	}
	if len(parts) > 0 {
		e.event("rows-left-out", "data.%s: %d rows give %d problems; left out: %s", s.Name, left.Rows, problems,
			strings.Join(parts, ", "))
	}
}

// Problems reads the problems of a role that prepare has made.
func Problems(e *Env, in Inputs, role string) ([]rollout.Problem, error) {
	return e.problemsOf(in, role)
}

// problemsOf reads a stage's problems back.
func (e *Env) problemsOf(in Inputs, role string) ([]rollout.Problem, error) {
	b, err := e.input(in, role)
	if err != nil {
		return nil, err
	}
	t, err := task.New(dataset.TaskConfig(e.run()))
	if err != nil {
		return nil, err
	}
	return task.Read(t, bytes.NewReader(b), role)
}

// putConversations stores the conversations as JSON lines.
func (p *preparation) putConversations() (Output, int, error) {
	list, err := dataset.Conversations(p.run(), p.illustrated())
	if err == nil {
		err = p.show("sft.source", "conversation", RoleConversations, talks(list))
	}
	if err != nil {
		return Output{}, 0, err
	}
	return putLines(p.Env, RoleConversations, list)
}

// shownBy returns the images of a conversation as a problem's, which errors name by its place in a file if that is
// known.
func shownBy(c *layout.Conversation, images []rollout.Picture) rollout.Problem {
	return rollout.Problem{ID: cmp.Or(c.Where, c.ID), Images: images}
}

// talks returns the images of conversations.
func talks(list []layout.Conversation) (out []rollout.Problem) {
	for i := range list {
		out = append(out, shownBy(&list[i], list[i].Images))
	}
	return out
}

// compared is talks for pairs.
func compared(list []layout.Pair) (out []rollout.Problem) {
	for i := range list {
		out = append(out, shownBy(&list[i].Chosen, list[i].Pictures()))
	}
	return out
}

// answersOf is talks for single answers.
func answersOf(list []layout.Labelled) (out []rollout.Problem) {
	for i := range list {
		out = append(out, shownBy(&list[i].Answer, list[i].Answer.Images))
	}
	return out
}

// putPairs stores the pairs, or single answers, as JSON lines.
func (p *preparation) putPairs() (Output, int, error) {
	if p.run().Prefer.Unpaired() {
		list, err := dataset.LabelledAnswers(p.run(), p.illustrated())
		if err == nil {
			err = p.show("prefer.source", "answer", RolePairs, answersOf(list))
		}
		if err != nil {
			return Output{}, 0, err
		}
		return putLines(p.Env, RolePairs, list)
	}
	list, err := dataset.Pairs(p.run(), p.illustrated())
	if err == nil {
		err = p.show("prefer.source", "pair", RolePairs, compared(list))
	}
	if err != nil {
		return Output{}, 0, err
	}
	return putLines(p.Env, RolePairs, list)
}

// putRated returns a function that stores the pairs, or answers in steps, of a file for a reward model.
func (e *Env) putRated(role, file string) func() (Output, int, error) {
	return func() (Output, int, error) {
		if e.run().RewardModel.OfSteps() {
			list, err := dataset.LabelledSteps(file)
			if err != nil {
				return Output{}, 0, err
			}
			return putLines(e, role, list)
		}
		list, err := dataset.RatedPairs(file)
		if err != nil {
			return Output{}, 0, err
		}
		return putLines(e, role, list)
	}
}

// putLines stores values as JSON lines, and returns their number.
func putLines[T any](e *Env, role string, list []T) (Output, int, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	for i := range list {
		if err := enc.Encode(&list[i]); err != nil {
			return Output{}, 0, err
		}
	}
	o, err := e.put(role, "problems", b.Bytes())
	return o, len(list), err
}

// conversationsOf reads them back.
func (e *Env) conversationsOf(in Inputs) (list []layout.Conversation, err error) {
	return linesOf[layout.Conversation](e, in, RoleConversations)
}

// linesOf reads the values of an input back.
func linesOf[T any](e *Env, in Inputs, role string) (list []T, err error) {
	b, err := e.input(in, role)
	if err != nil {
		return nil, err
	}
	for d := json.NewDecoder(bytes.NewReader(b)); d.More(); {
		var x T
		if err := d.Decode(&x); err != nil {
			return nil, err
		}
		list = append(list, x)
	}
	return list, nil
}
