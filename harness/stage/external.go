package stage

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"exp/eval/layout"
	"exp/eval/task"
	"exp/experiments/ident"
	"exp/experiments/quantity"
	"exp/harness/config"
	"exp/train/checkpoint"
	"exp/train/model"
	"exp/train/rollout"
)

// External holds the digests of everything that a configuration names but does not contain.
type External struct {
	// records of each source that is a file, by split; of recorded rollouts and conversations by their roles
	Data    map[string]ident.Digest
	Weights ident.Digest // tensors of a pretrained model; zero for random weights
	// its architecture; zero for random weights, whose keys say it
	Architecture ident.Digest
	Adapter      ident.Digest // adapters that it starts with; zero for none
	Teacher      ident.Digest // the model that algo.reference names; zero for the start itself
	Teachers     ident.Digest // the models that algo.teachers names; zero for none
	Tokenizer    ident.Digest
	Template     ident.Digest // of the chat template; zero for plain text
	Stops        ident.Digest // tokens that end a completion
	Tools        ident.Digest // definitions of data.tools; zero for none
	Settings     ident.Digest // the keys that prompts depend on
	Prompter     *Prompter
	Reward       map[string]ident.Digest // the program, template or model that scores in training, by use
	Called       map[string]ident.Digest // what answers the policy's calls, by use
}

// Externals reads and digests everything that the configuration names, and checks that a run can
// use it. The error is a config.Errors with all problems, each at its key.
func Externals(r *config.Resolved) (External, error) {
	x := External{Data: map[string]ident.Digest{}}
	c := &r.Run
	if errs := r.RemoteErrors(); errs != nil {
		return x, errs
	}
	var errs config.Errors
	bad := func(key, code, message, help string) { errs = append(errs, r.ErrorAt(key, code, message, help)) }
	prompter := readPrompts(c, bad)
	for _, s := range splits(c) {
		if s.conf.Source == config.Generated || s.conf.Source == config.None {
			continue
		}
		d, err := s.digest(c, prompter)
		switch want := s.conf.Digest; {
		case err != nil:
			bad(s.key, config.CodeData, err.Error(), "")
		case want != "" && want != digestPrefix+d.String():
			bad(s.digestKey(), config.CodeDigest, fmt.Sprintf("%s does not match %q", s.digestKey(), s.conf.Files()),
				"found "+digestPrefix+d.String())
		}
		x.Data[string(s.name)] = d
	}
	if c.Rollout.Source == recordedSource {
		d, err := recordedDigest(c, prompter)
		if err != nil {
			bad("rollout.recorded", config.CodeData, err.Error(), "")
		}
		x.Data[RoleRollouts] = d
	}
	if c.SFT.OnConversations() {
		x.Data[RoleConversations] = conversationsDigest(c, prompter, bad)
	}
	x.model(c, prompter, bad)
	x.Reward = rewardDigests(c, prompter, bad)
	x.Called = toolDigests(c, prompter, bad)
	if errs != nil {
		return x, errs
	}
	return x, x.prompts(c, prompter)
}

// model digests the model that training starts from and the one that teaches, and checks that the run can use
// them. p is nil if prompts are broken.
func (x *External) model(c *config.Run, p *Prompter, bad func(key, code, message, help string)) {
	if c.Model.Init != "pretrained" {
		checkAdapters(c, ModelConfig(c, 1), bad)
		checkSpread(c, ModelConfig(c, 1), bad)
		if p != nil {
			x.teachers(c, ModelConfig(c, p.Tokenizer.VocabSize()), p, bad)
		}
		return
	}
	arch, broken := ReadArchitecture(c)
	d, err := modelDigest(c, false)
	if broken == nil && err == nil {
		x.Architecture, err = architectureDigest(arch)
	}
	switch want := c.Model.Digest; {
	case broken != nil:
		bad("model.base", config.CodeData, oneLine(broken), "")
	case err != nil:
		bad("model.base", config.CodeData, err.Error(), "")
	case want != "" && want != digestPrefix+d.String():
		bad("model.digest", config.CodeDigest, fmt.Sprintf("model.digest does not match %q", c.Model.Name()),
			"found "+digestPrefix+d.String())
	}
	x.Weights = d
	if broken != nil {
		return
	}
	checkAdapters(c, arch, bad)
	checkSpread(c, arch, bad)
	x.Adapter = checkStartAdapter(c, arch, bad)
	if p != nil {
		x.teachers(c, arch, p, bad)
	}
}

// oneLine is an error whose list of reasons follows on the same line.
func oneLine(err error) string {
	return strings.ReplaceAll(strings.Replace(err.Error(), "\n  ", " ", 1), "\n  ", "; ")
}

// digestPrefix begins a digest in a configuration.
const digestPrefix = "sha256:"

// checkAdapters tells bad which adapters the model cannot have.
func checkAdapters(c *config.Run, arch model.Config, bad func(key, code, message, help string)) {
	h := WithAdapters(model.Heads{LM: true}, c, arch)
	if h.Adapters == nil {
		return
	}
	if err := h.Adapters.Validate(arch); err != nil {
		bad("train.lora.targets", config.CodeConflict, strings.TrimPrefix(err.Error(), "model: "), "")
	}
}

// readPrompts is NewPrompter. It tells bad each problem, at its key, and then returns nil.
func readPrompts(c *config.Run, bad func(key, code, message, help string)) *Prompter {
	p, err := NewPrompter(c)
	if err == nil {
		return p
	}
	key := "tokenizer.kind"
	var chat *ChatError
	var stops *StopError
	var data *DataError
	var tools *ToolsError
	switch {
	case errors.As(err, &data):
		return nil // the split says it
	case errors.As(err, &tools):
		key = "data.tools"
	case errors.As(err, &chat):
		key = "data.chat"
	case errors.As(err, &stops):
		key = "rollout.stop_ids"
	}
	bad(key, config.CodeData, err.Error(), "")
	return nil
}

// prompts digests everything that prompts depend on.
func (x *External) prompts(c *config.Run, p *Prompter) (err error) {
	x.Prompter, x.Template = p, p.TemplateDigest()
	if x.Tokenizer, err = ident.Hash("exp/tokenizer/1", p.Tokenizer.Description()); err != nil {
		return err
	}
	if x.Stops, err = ident.Hash("exp/stop-ids/1", p.stopList()); err != nil {
		return err
	}
	if x.Tools, err = p.ToolsDigest(); err != nil {
		return err
	}
	d := c.Data
	x.Settings, err = ident.Hash("exp/prompts/1", map[string]any{"system": d.System, "vars": anyMap(d.TemplateVars),
		"date":   d.TemplateDate,
		"escape": d.EscapeSpecial, "limit": int64(d.MaxPromptTokens)})
	return err
}

// anyMap is m, never nil.
func anyMap(m map[string]any) map[string]any {
	if m == nil {
		return map[string]any{}
	}
	return m
}

// digest covers the canonical records of a split's file, whatever the file's layout. It also checks
// the problems, and their prompts unless p is nil.
func (s split) digest(c *config.Run, p *Prompter) (ident.Digest, error) {
	t, err := task.New(taskConfig(c))
	if err != nil {
		return ident.Digest{}, err
	}
	problems, _, err := s.read(t)
	if err != nil {
		return ident.Digest{}, err
	}
	if err := s.check(c, p, problems); err != nil {
		return ident.Digest{}, err
	}
	records := ident.NewRecords()
	for i := range problems {
		b, err := json.Marshal(&problems[i])
		if err != nil {
			return ident.Digest{}, err
		}
		if err := records.Add(b); err != nil {
			return ident.Digest{}, err
		}
	}
	return records.Digest(), nil
}

// check finds the problems of a split that a run cannot use.
func (s split) check(c *config.Run, p *Prompter, problems []rollout.Problem) (err error) {
	left := ""
	if p != nil {
		all := len(problems)
		if problems, err = p.fitting(problems); err == nil {
			err = p.check(problems)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", s.conf.Files(), err)
		}
		own, lost := p.withoutTools(problems)
		p.ownTools, p.lostTools = p.ownTools+own, p.lostTools+lost
		if n := all - len(problems); n > 0 {
			left = fmt.Sprintf(" (of %d; data.filter_overlong leaves %d out)", all, n)
		}
	}
	for _, need := range s.needs(c) {
		if need.n > len(problems) {
			return fmt.Errorf("%s has %s%s, %s asks for %d", s.conf.Files(),
				quantity.Plural(len(problems), "problem"), left, need.key, need.n)
		}
	}
	if s.name != task.Train || c.SFT.Steps == 0 || c.SFT.OnConversations() {
		return nil
	}
	for i := range problems {
		if problems[i].Target == "" {
			return fmt.Errorf("%s: problem %s has no target for sft to learn from: give the rows a field "+
				"target, a right completion, or set sft.steps: 0", s.conf.Files(), problems[i].ID)
		}
	}
	return nil
}

// need is the number of different problems that a key requires of a split.
type need struct {
	key string
	n   int
}

func (s split) needs(c *config.Run) []need {
	switch {
	case s.name == task.Train && c.SFT.Steps > 0 && !c.SFT.OnConversations():
		return []need{{"train.prompts_per_step", c.Train.PromptsPerStep},
			{"sft.problems_per_step", c.SFT.ProblemsPerStep}}
	case s.name == task.Train:
		return []need{{"train.prompts_per_step", c.Train.PromptsPerStep}}
	case s.name == task.Val && c.Eval.Online.EverySteps > 0:
		return []need{{"eval.online.problems", c.Eval.Online.Problems}}
	}
	return nil
}

// weightsDigest returns the digest of the weights in a folder. It trusts the cache for unchanged
// files, unless reread.
func weightsDigest(dir string, reread bool) (d ident.Digest, err error) {
	t, err := checkpoint.OpenFolder(dir)
	if err != nil {
		return d, err
	}
	defer t.Close()
	return tensorsDigest(t, reread)
}

// tensorsDigest returns the digest of the tensors of files.
func tensorsDigest(t *checkpoint.Tensors, reread bool) (d ident.Digest, err error) {
	cache := digestCache()
	if reread {
		cache = nil
	}
	sums, err := t.Digests(cache)
	if err != nil {
		return d, err
	}
	_ = cache.Save() // the next run reads the files again
	list := make([]ident.Tensor, len(sums))
	for i, s := range sums {
		list[i] = ident.Tensor{Name: s.Name, DType: string(s.DType), Shape: s.Shape, Data: ident.Digest(s.SHA256)}
	}
	return ident.Weights(list)
}

// digestCache returns the user's cache of digests; nil if the user has no cache folder.
func digestCache() *checkpoint.DigestCache {
	dir, err := os.UserCacheDir()
	if err != nil {
		return nil
	}
	return checkpoint.OpenDigestCache(filepath.Join(dir, "exp", "weights.json"))
}

// conversationsDigest is the digest of the conversations, whatever form their file has. Unless p is nil, it also
// checks them and reports problems to bad.
func conversationsDigest(c *config.Run, p *Prompter, bad func(key, code, message, help string)) ident.Digest {
	records := ident.NewRecords()
	list, err := readConversations(c)
	for i := 0; i < len(list) && err == nil; i++ {
		var b []byte
		if b, err = json.Marshal(&list[i]); err == nil {
			err = records.Add(b)
		}
	}
	if err == nil && p != nil {
		err = p.checkConversations(c, list)
	}
	if err == nil {
		return records.Digest()
	}
	key := "sft.source"
	var long *longError
	if errors.As(err, &long) {
		key = "sft.max_tokens"
	}
	bad(key, config.CodeData, err.Error(), "")
	return ident.Digest{}
}

// checkConversations finds conversations that the run cannot learn from, and notes what the others hold.
func (p *Prompter) checkConversations(c *config.Run, list []layout.Conversation) error {
	examples, plan, err := p.conversations(context.Background(), list)
	if err != nil {
		return err
	}
	if i := slices.IndexFunc(examples, func(x *conversation) bool { return x != nil }); i >= 0 {
		plan.First = p.parts(examples[i])
	}
	p.learns = &plan
	if n := c.SFT.ProblemsPerStep; plan.Conversations < n {
		return fmt.Errorf("%s has %d conversations to learn from, sft.problems_per_step asks for %d", c.SFT.Source,
			plan.Conversations, n)
	}
	arch := model.Config{}
	if c.Model.Init == "pretrained" {
		if arch, err = ReadArchitecture(c); err != nil {
			return nil // the model is at fault, and another check says so
		}
	} else {
		arch = ModelConfig(c, p.Tokenizer.VocabSize())
	}
	for i, x := range examples {
		if x == nil {
			continue
		}
		if n := len(x.prompt) + len(x.Tokens); n > arch.MaxPositions {
			return &longError{fmt.Errorf("%s: the conversation has %d tokens, the model has %d positions; "+
				"sft.max_tokens: %d cuts it", list[i].Where, n, arch.MaxPositions, arch.MaxPositions)}
		}
	}
	return nil
}
