package stage

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"

	"exp/eval/stat"
	"exp/eval/task"
	"exp/experiments/ident"
	"exp/experiments/quantity"
	"exp/harness/config"
	"exp/harness/dataset"
	"exp/harness/prompt"
	"exp/train/checkpoint"
	"exp/train/rollout"
)

// CheckProblems checks the prompts of all splits, and that the problems of the run's
// steps have recorded rollouts, given the outputs of prepare. Calling it before
// training finds, for instance, a test prompt that is too long. e belongs to the train
// stage. The error is a config.Errors.
func CheckProblems(e *Env, problems func(role string) (ident.Digest, bool)) error {
	if err := CheckSuites(e); err != nil {
		return err
	}
	p, err := e.prompter()
	if err != nil {
		return err
	}
	if _, err := e.form(p); err != nil {
		return err
	}
	for _, s := range dataset.Splits(e.run()) {
		d, ok := problems(s.Role)
		if !ok {
			continue
		}
		list, err := e.problemsOf(Inputs{s.Role: d}, s.Role)
		if err != nil {
			return err
		}
		if err := p.Check(list); err != nil {
			return config.Errors{e.Config.ErrorAt("data.max_prompt_tokens", config.CodeConflict,
				fmt.Sprintf("data.%s: %v", s.Name, err), "")}
		}
		if key, most := longestAnswer(e.run(), s); key != "" {
			if err := e.checkPositions(p, "data."+string(s.Name), list, key, most); err != nil {
				return err
			}
		}
		if s.Name == task.Train && e.run().Rollout.Source == recordedSource {
			if err := e.checkRecorded(problems, p.Vocabulary(), list); err != nil {
				return err
			}
		}
	}
	return nil
}

// CheckSuites checks that the model can read the prompts of the benchmarks that e names. Of e it needs Config,
// Suites, Blobs and, if there is one, Prompter. The error is a config.Errors.
func CheckSuites(e *Env) error {
	if len(e.Suites) == 0 {
		return nil
	}
	p, err := e.prompter()
	if err != nil {
		return err
	}
	for _, s := range e.Suites {
		if err := e.checkSuitePrompts(p, s); err != nil {
			return err
		}
	}
	return nil
}

// WarnStops reports tokens that are to end completions and that the model cannot sample.
func WarnStops(e *Env) error {
	p, err := e.prompter()
	if err != nil {
		return err
	}
	if note := p.IdleStopsNote(); note != "" && e.leads() {
		e.event("idle-stop-ids", "%s", note)
	}
	return nil
}

// WarnContamination reports problems of evaluations that the run trains on too, given the outputs of
// prepare: of a label of an evaluation, or of all. Splits have no generated problems in common.
func WarnContamination(e *Env, problems func(role string) (ident.Digest, bool), label string) error {
	d, ok := problems(RoleTrain)
	if !ok || !e.leads() {
		return nil
	}
	wanted := func(name string) bool { return label == "" || SuiteOf(label) == name }
	others := map[string][]rollout.Problem{}
	for _, s := range dataset.Splits(e.run()) {
		d, ok := problems(s.Role)
		own := s.Config.Source == config.Generated && e.run().Data.Train.Source == config.Generated
		if !ok || own || s.Name == task.Train || !wanted(string(s.Name)) {
			continue
		}
		list, err := e.problemsOf(Inputs{s.Role: d}, s.Role)
		if err != nil {
			return err
		}
		list = slices.DeleteFunc(list, func(p rollout.Problem) bool {
			return slices.Contains(config.GeneratedParts(), p.Kind)
		})
		if len(list) > 0 {
			others["data."+string(s.Name)] = list
		}
	}
	for _, s := range e.Suites {
		if !wanted(s.Name) {
			continue
		}
		list, err := e.suiteProblems(Inputs{RoleProblems: s.Digest}, s.Name)
		if err != nil {
			return err
		}
		others["suite "+s.Name] = list
	}
	if len(others) == 0 {
		return nil
	}
	train, err := e.problemsOf(Inputs{RoleTrain: d}, RoleTrain)
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(others)) {
		e.warnContamination(name, others[name], train)
	}
	return nil
}

func (e *Env) warnContamination(name string, problems, train []rollout.Problem) {
	texts := make([]string, len(problems))
	for i := range problems {
		texts[i] = asked(&problems[i])
	}
	c := stat.NewContamination(texts)
	for i := range train {
		c.Train(asked(&train[i]))
	}
	counted := func(list []int) string {
		ids := make([]string, min(len(list), shownGolds))
		for i := range ids {
			ids[i] = problems[list[i]].ID
		}
		if len(ids) < len(list) {
			ids = append(ids, "…")
		}
		return fmt.Sprintf("%d (%s)", len(list), strings.Join(ids, ", "))
	}
	same, similar := c.Found()
	var parts []string
	if len(same) > 0 {
		parts = append(parts, "word for word "+counted(same))
	}
	if len(similar) > 0 {
		parts = append(parts, "half or more of the runs of 13 words of "+counted(similar))
	}
	if len(parts) > 0 {
		e.event("contamination", "%s: of %s, data.train holds %s: scores on them say little about new problems", name,
			quantity.Plural(len(problems), "problem"), strings.Join(parts, ", and "))
	}
}

// asked returns the text of a problem, with the digests of its images: many problems about pictures have the same
// words.
func asked(p *rollout.Problem) string {
	var b strings.Builder
	b.WriteString(p.Prompt)
	for _, pic := range p.Images {
		b.WriteString(" " + pic.Digest)
	}
	return b.String()
}

// checkPositions checks that the longest prompt and the longest answer to it fit into the model's
// positions. key sets the length of answers, most is its value.
func (e *Env) checkPositions(p *prompt.Prompter, name string, problems []rollout.Problem, key string, most int) error {
	arch, err := e.architecture()
	if err != nil {
		return nil // the model is at fault: whoever loads it says so
	}
	if far := beyondPositions(p, name, problems, key, most, arch.MaxPositions); far != nil {
		return config.Errors{e.Config.ErrorAt(key, config.CodeConflict, far.message, far.help)}
	}
	return nil
}

// longestAnswer returns the key that bounds answers to a split's problems, and its value; "" if none is sampled.
func longestAnswer(c *config.Run, s dataset.Split) (key string, most int) {
	switch {
	case s.Name != task.Test:
		return "rollout.max_new_tokens", c.Rollout.MaxNewTokens
	case slices.Contains(c.Eval.Final.Suites, string(task.Test)):
		return "eval.final.max_new_tokens", c.Eval.Final.MaxNewTokens
	}
	return "", 0
}

// positionsError reports a prompt that does not fit into the model's positions together with the longest answer.
type positionsError struct {
	key           string // that bounds answers
	message, help string
}

func (e *positionsError) Error() string { return e.message }

// beyondPositions looks for the longest prompt; nil if it fits with an answer of at most so many tokens.
func beyondPositions(p *prompt.Prompter, name string, problems []rollout.Problem, key string, most,
	positions int) *positionsError {
	longest, id := 0, ""
	for i := range problems {
		if ids, err := p.Encode(&problems[i]); err == nil && len(ids) > longest {
			longest, id = len(ids), problems[i].ID
		}
	}
	need := longest + most
	if longest == 0 || need <= positions {
		return nil
	}
	return &positionsError{key, fmt.Sprintf("%s: problem %s needs %d positions (a prompt of %d tokens and %s %d), "+
		"the model has %d", name, id, need, longest, key, most, positions), lowerTo(key, longest, positions)}
}

// lowerTo says what to change so that a prompt fits into a model's positions.
func lowerTo(key string, prompt, positions int) string {
	if room := positions - prompt; room > 0 {
		return fmt.Sprintf("lower %s to %d, or cut prompts: data.max_prompt_tokens with data.truncate", key, room)
	}
	return "cut prompts: data.max_prompt_tokens with data.truncate"
}

// NewPrompter returns the prompter of a configuration.
func NewPrompter(c *config.Run) (*prompt.Prompter, error) {
	vocab := 0
	if c.Model.Init == "pretrained" {
		if arch, err := ReadArchitecture(c); err == nil { // else the model is at fault
			vocab = arch.Vocab
		}
	}
	p, err := prompt.New(c, vocab)
	if err != nil {
		return nil, err
	}
	reader, err := imageReader(c, p.Tokenizer)
	if err != nil {
		return nil, err
	}
	p.ReadImages(reader)
	if reader == nil && c.Model.Init == "pretrained" && checkpoint.ImagesOnRequest(c.Model.Base) {
		p.OfferImages("model.part: " + config.PartImages)
	}
	return p, nil
}

// prompter returns the run's prompter, which the caller may have set.
func (e *Env) prompter() (*prompt.Prompter, error) {
	var err error
	if e.Prompter == nil {
		e.Prompter, err = NewPrompter(e.run())
	}
	return e.Prompter, err
}

// warnTruncated reports how many prompts are cut and what a cut may remove, and tools that no
// prompt shows. The record keeps the counts.
func (e *Env) warnTruncated(p *prompt.Prompter, name string, problems []rollout.Problem) int {
	e.warnTools(p, name, problems)
	n := p.Truncated(problems)
	if n == 0 {
		return 0
	}
	loses := ""
	how, key := p.CutBy()
	if p.Chats() {
		loses = map[string]string{"left": "; the beginning of a chat, its system message, is cut off first",
			"right": "; what asks the model to answer is cut off first"}[how]
	}
	e.event("truncated-prompts", "%d of %d prompts of %s are longer than data.max_prompt_tokens (%d) and were cut "+
		"(%s: %s)%s",
		n, len(problems), name, e.run().Data.MaxPromptTokens, key, how, loses)
	return n
}

// warnTools warns of problems whose prompts do not show the tools.
func (e *Env) warnTools(p *prompt.Prompter, name string, problems []rollout.Problem) {
	if n, ignored := p.ToolsPlan(); n > 0 && ignored {
		e.event("tools-ignored", "the chat template ignores the %d tools of data.tools: no prompt of %s has them", n,
			name)
	}
	if own, lost := p.WithoutTools(problems); lost > 0 {
		why := "the chat template ignores them"
		if !p.Chats() {
			why = "prompts are plain text"
		}
		e.event("tools-ignored", "%d of %d problems of %s bring tools that their prompts do not show: %s",
			lost, own, name, why)
	}
}

// Unreadable lists errors in the existing files of a model that a configuration names: its
// architecture, the headers of its weights, its tokenizer and its chat template. It does not read
// data.
func Unreadable(c *config.Run) (list []string) {
	there := true
	if c.Model.Init == "pretrained" {
		_, err := os.Stat(c.Model.Base)
		if there = err == nil; there {
			arch, err := ReadArchitecture(c)
			if err != nil {
				list = append(list, fmt.Sprintf("a supported model: %v", err))
			} else {
				checkStartAdapter(c, arch, func(_, _, message, _ string) {
					list = append(list, "adapters to start with: "+message)
				})
			}
			if t, err := OpenModel(c); err != nil {
				list = append(list, fmt.Sprintf("readable weights: %v", err))
			} else {
				t.Close()
			}
		}
	}
	if !there && c.Tokenizer.Kind == "model" {
		return list
	}
	var data *prompt.DataError
	if _, err := NewPrompter(c); err != nil && !(errors.As(err, &data) && errors.Is(err, fs.ErrNotExist)) {
		list = append(list, fmt.Sprintf("prompts: %v", err))
	}
	return list
}
