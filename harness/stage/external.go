package stage

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"exp/eval/task"
	"exp/experiments/ident"
	"exp/experiments/quantity"
	"exp/harness/config"
	"exp/harness/dataset"
	"exp/harness/prompt"
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
	Process      ident.Digest // the model that algo.prime.model names; zero for the start itself
	Tokenizer    ident.Digest
	Template     ident.Digest // of the chat template; zero for plain text
	Stops        ident.Digest // tokens that end a completion
	Tools        ident.Digest // definitions of data.tools; zero for none
	Settings     ident.Digest // the keys that prompts depend on
	Prompter     *prompt.Prompter
	Reward       map[string]ident.Digest // the program, template or model that scores in training, by use
	Scorer       map[string]ident.Digest // the reward model that scores evaluations, likewise
	Called       map[string]ident.Digest // what answers the policy's calls, by use
	Vision       ident.Digest            // of a model of text and images: the tower and how it reads images
	Images       bool                    // problems, conversations or preferences show images
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
	for _, s := range dataset.Splits(c) {
		if s.Config.Source == config.Generated || s.Config.Source == config.None {
			continue
		}
		d, err := splitDigest(s, c, prompter)
		var far *positionsError
		switch want := s.Config.Digest; {
		case errors.As(err, &far):
			bad(far.key, config.CodeConflict, far.message, far.help)
		case err != nil:
			bad(s.Key, config.CodeData, err.Error(), "")
		case want != "" && want != digestPrefix+d.String():
			bad(s.DigestKey(), config.CodeDigest, fmt.Sprintf("%s does not match %q", s.DigestKey(), s.Config.Files()),
				"found "+digestPrefix+d.String())
		}
		x.Data[string(s.Name)] = d
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
	if c.Prefer.Steps > 0 {
		x.Data[RolePairs] = pairsDigest(c, prompter, bad)
	}
	if c.RewardModel.Steps > 0 {
		x.Data[RoleRated] = ratedDigest(c, c.RewardModel.Source, false, prompter, bad)
	}
	if c.RewardModel.Validates() {
		x.Data[RoleRatedVal] = ratedDigest(c, c.RewardModel.Val, true, prompter, bad)
	}
	x.model(c, prompter, bad)
	x.images(c, prompter, bad)
	x.Reward = rewardDigests(c, prompter, bad)
	x.Scorer = scorerDigests(c, prompter, bad)
	x.Called = toolDigests(c, prompter, bad)
	if errs != nil {
		return x, errs
	}
	return x, x.prompts(prompter)
}

// model digests the model that training starts from and the one that teaches, and checks that the run can use
// them. p is nil if prompts are broken.
func (x *External) model(c *config.Run, p *prompt.Prompter, bad func(key, code, message, help string)) {
	if c.Model.Init != "pretrained" {
		checkAdapters(c, ModelConfig(c, 1), bad)
		checkFoldedAdapters(c, ModelConfig(c, 1), bad)
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
	checkRewardClass(c, bad)
	checkFoldedAdapters(c, arch, bad)
	checkSpread(c, arch, bad)
	x.Adapter = checkStartAdapter(c, arch, bad)
	if p != nil {
		x.teachers(c, arch, p, bad)
	}
}

// checkRewardClass tells bad that no class of classifiers belongs to model.base's class.
func checkRewardClass(c *config.Run, bad func(key, code, message, help string)) {
	if c.RewardModel.Steps == 0 || c.Model.Part == config.PartText {
		return
	}
	o, err := checkpoint.ReadOrigin(c.Model.Base)
	if err == nil {
		err = o.CheckClassifier()
	}
	if err != nil {
		bad("reward_model.steps", config.CodeConflict, err.Error(), "train a model of another class, or set it to 0")
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
	checkMaps(c, "train", c.Train.LoRA, h.Adapters, arch, bad)
}

// checkMaps tells bad why a model of architecture arch cannot have adapters that a key names.
func checkMaps(c *config.Run, block string, l config.LoRA, a *model.Adapters, arch model.Config,
	bad func(key, code, message, help string)) {
	possible, key := append(arch.AdapterTargets(), arch.TowerTargets()...), block+".lora.targets"
	for _, name := range l.Exclude {
		if !slices.Contains(possible, name) {
			bad(block+".lora.exclude", config.CodeConflict, fmt.Sprintf("the model has no linear layer %q that could "+
				"have an adapter; there are %s", name, strings.Join(possible, ", ")), "")
		}
	}
	if exclude := block + ".lora.exclude"; len(l.Exclude) > 0 && len(a.Targets)+len(a.Tower) == 0 {
		bad(exclude, config.CodeConflict, exclude+" lists every linear layer that "+
			"could have an adapter: "+strings.Join(possible, ", "), "leave some of them out")
	} else if err := a.Validate(arch); err != nil {
		bad(key, config.CodeConflict, strings.TrimPrefix(err.Error(), "model: "), "")
	} else if c.Model.TrainsTower() && arch.ReadsImages() && len(a.Tower) == 0 {
		bad(key, config.CodeConflict, "model.vision: trained puts adapters on the vision tower, too, and none of "+
			"these is a linear map of it; they are "+strings.Join(arch.TowerTargets(), ", "),
			"model.vision: frozen, or name some of them; all names all")
	}
}

// checkFoldedAdapters is checkAdapters for stages before training.
func checkFoldedAdapters(c *config.Run, arch model.Config, bad func(key, code, message, help string)) {
	for _, x := range []struct {
		block string
		lora  config.LoRA
		heads model.Heads
	}{
		{"reward_model", c.RewardModel.LoRA, RewardModelHeads(c, arch)},
		{"prefer", c.Prefer.LoRA, PreferHeads(c, arch)},
	} {
		if x.heads.Adapters != nil {
			checkMaps(c, x.block, x.lora, x.heads.Adapters, arch, bad)
		}
	}
}

// readPrompts is NewPrompter. It tells bad each problem, at its key, and then returns nil.
func readPrompts(c *config.Run, bad func(key, code, message, help string)) *prompt.Prompter {
	p, err := NewPrompter(c)
	if err == nil {
		return p
	}
	key := "tokenizer.kind"
	var chat *prompt.ChatError
	var stops *prompt.StopError
	var data *prompt.DataError
	var tools *prompt.ToolsError
	var images *prompt.ImagesError
	switch {
	case errors.As(err, &data):
		return nil // the split says it
	case errors.As(err, &tools):
		key = "data.tools"
	case errors.As(err, &images):
		key = images.Key
	case errors.As(err, &chat):
		key = "data.chat"
	case errors.As(err, &stops):
		key = "rollout.stop_ids"
	}
	bad(key, config.CodeData, err.Error(), "")
	return nil
}

// prompts digests everything that prompts depend on.
func (x *External) prompts(p *prompt.Prompter) (err error) {
	x.Prompter, x.Template = p, p.TemplateDigest()
	if x.Tokenizer, err = ident.Hash("exp/tokenizer/1", p.Tokenizer.Description()); err != nil {
		return err
	}
	if x.Stops, err = p.StopsDigest(); err != nil {
		return err
	}
	if x.Tools, err = p.ToolsDigest(); err != nil {
		return err
	}
	x.Settings, err = p.SettingsDigest()
	return err
}

// splitDigest covers the canonical records of a split's file, whatever the file's layout. It also checks
// the problems, and their prompts unless p is nil.
func splitDigest(s dataset.Split, c *config.Run, p *prompt.Prompter) (ident.Digest, error) {
	t, err := task.New(dataset.TaskConfig(c))
	if err != nil {
		return ident.Digest{}, err
	}
	problems, rates, _, err := s.ReadRated(t)
	if err != nil {
		return ident.Digest{}, err
	}
	if err := checkSplit(s, c, p, problems); err != nil {
		return ident.Digest{}, err
	}
	records := ident.NewRecords()
	for i := range problems {
		p := problems[i]
		if c := p.Choice; c != nil && strings.HasSuffix(p.Prompt, "\n\n"+c.Lines()) {
			p.Choice = nil // the prompt has it, and digests from before it was kept hold
		}
		b, err := json.Marshal(&p)
		if err != nil {
			return ident.Digest{}, err
		}
		if err := records.Add(b); err != nil {
			return ident.Digest{}, err
		}
	}
	for _, x := range rates {
		if err := records.Add([]byte(strconv.FormatFloat(x, 'g', -1, 64))); err != nil {
			return ident.Digest{}, err
		}
	}
	return records.Digest(), nil
}

// checkSplit finds the problems of a split that a run cannot use.
func checkSplit(s dataset.Split, c *config.Run, p *prompt.Prompter, problems []rollout.Problem) (err error) {
	left := ""
	if p != nil {
		all := len(problems)
		if problems, err = p.Fitting(problems); err == nil {
			err = p.Check(problems)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", s.Config.Files(), err)
		}
		key, most := longestAnswer(c, s)
		if n := positions(c, p.Tokenizer.VocabSize()); key != "" && n > 0 {
			if far := beyondPositions(p, "data."+string(s.Name), problems, key, most, n); far != nil {
				return far
			}
		}
		p.NoteTools(problems)
		p.NoteImages(problems)
		if n := all - len(problems); n > 0 {
			left = fmt.Sprintf(" (of %d; data.filter_overlong leaves %d out)", all, n)
		}
	}
	made := c.GeneratedProblems(string(s.Name))
	if made > 0 {
		left += fmt.Sprintf(" next to %d generated ones", made)
	}
	for _, need := range needsOf(s, c) {
		if need.n > len(problems)+made {
			return fmt.Errorf("%s has %s%s, %s asks for %d", s.Config.Files(),
				quantity.Plural(len(problems), "problem"), left, need.key, need.n)
		}
	}
	if s.Name != task.Train {
		return nil
	}
	return checkTargets(s, c, problems)
}

// checkTargets reports training problems without the targets that sft or demonstrations need.
func checkTargets(s dataset.Split, c *config.Run, problems []rollout.Problem) error {
	shown := func(p rollout.Problem) bool { return p.Target != "" }
	if c.Algo.Demonstrations.Weight > 0 && len(problems) > 0 && !slices.ContainsFunc(problems, shown) {
		return fmt.Errorf("%s: no problem has a target for algo.demonstrations: give the rows a field target, a "+
			"right completion, or set algo.demonstrations.weight: 0", s.Config.Files())
	}
	if c.SFT.Steps == 0 || c.SFT.OnConversations() {
		return nil
	}
	for i := range problems {
		if problems[i].Target == "" {
			return fmt.Errorf("%s: problem %s has no target for sft to learn from: give the rows a field "+
				"target, a right completion, or set sft.steps: 0", s.Config.Files(), problems[i].ID)
		}
	}
	return nil
}

// need is the number of different problems that a key requires of a split.
type need struct {
	key string
	n   int
}

func needsOf(s dataset.Split, c *config.Run) []need {
	switch {
	case s.Name == task.Train && c.SFT.Steps > 0 && !c.SFT.OnConversations():
		return []need{{"train.prompts_per_step", c.Train.PromptsPerStep},
			{"sft.problems_per_step", c.SFT.ProblemsPerStep}}
	case s.Name == task.Train:
		return []need{{"train.prompts_per_step", c.Train.PromptsPerStep}}
	case s.Name == task.Val && c.Eval.Online.EverySteps > 0:
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
func conversationsDigest(c *config.Run, p *prompt.Prompter, bad func(key, code, message, help string)) ident.Digest {
	list, err := dataset.Conversations(c, dataset.TaughtImages(c))
	var d ident.Digest
	if err == nil {
		d, err = recordsDigest(list)
	}
	if err == nil && p != nil {
		err = p.CheckConversations(list, positions(c, p.Tokenizer.VocabSize()))
	}
	tellExamples(err, "sft", bad)
	return d
}

// pairsDigest is conversationsDigest for prefer.source.
func pairsDigest(c *config.Run, p *prompt.Prompter, bad func(key, code, message, help string)) ident.Digest {
	if c.Prefer.Unpaired() {
		list, err := dataset.LabelledAnswers(c, dataset.TaughtImages(c))
		return preferredDigest(c, list, err, p, (*prompt.Prompter).CheckAnswers, bad)
	}
	list, err := dataset.Pairs(c, dataset.TaughtImages(c))
	return preferredDigest(c, list, err, p, (*prompt.Prompter).CheckPairs, bad)
}

// preferredDigest digests what was read from prefer.source with an error. Unless p is nil, check checks it.
func preferredDigest[T any](c *config.Run, list []T, err error, p *prompt.Prompter,
	check func(p *prompt.Prompter, list []T, positions int) error,
	bad func(key, code, message, help string)) ident.Digest {
	var d ident.Digest
	if err == nil {
		d, err = recordsDigest(list)
	}
	if err == nil && p != nil {
		err = check(p, list, positions(c, p.Tokenizer.VocabSize()))
	}
	tellExamples(err, "prefer", bad)
	return d
}

// ratedDigest is conversationsDigest for a file of pairs of a reward model; held says that they are held-out ones.
func ratedDigest(c *config.Run, file string, held bool, p *prompt.Prompter,
	bad func(key, code, message, help string)) ident.Digest {
	d, err := checkedRated(c, file, held, p)
	var long *prompt.LongError
	if held && err != nil && !errors.As(err, &long) {
		bad("reward_model.val", config.CodeData, err.Error(), "")
		return d
	}
	tellExamples(err, "reward_model", bad)
	return d
}

// checkedRated digests the rows of a file that a reward model learns from, and checks them unless p is nil.
func checkedRated(c *config.Run, file string, held bool, p *prompt.Prompter) (d ident.Digest, err error) {
	if c.RewardModel.OfSteps() {
		list, err := dataset.LabelledSteps(file)
		if err == nil {
			d, err = recordsDigest(list)
		}
		if err == nil && p != nil {
			err = p.CheckStepped(list, positions(c, p.Tokenizer.VocabSize()), held)
		}
		return d, err
	}
	list, err := dataset.RatedPairs(file)
	if err == nil {
		d, err = recordsDigest(list)
	}
	if err == nil && p != nil {
		err = p.CheckRated(list, positions(c, p.Tokenizer.VocabSize()), held)
	}
	return d, err
}

// recordsDigest digests values as JSON.
func recordsDigest[T any](list []T) (d ident.Digest, err error) {
	records := ident.NewRecords()
	for i := range list {
		b, err := json.Marshal(&list[i])
		if err != nil {
			return d, err
		}
		if err := records.Add(b); err != nil {
			return d, err
		}
	}
	return records.Digest(), nil
}

// tellExamples tells bad an error about the file of a block's source, if there is one.
func tellExamples(err error, block string, bad func(key, code, message, help string)) {
	if err == nil {
		return
	}
	key := block + ".source"
	var long *prompt.LongError
	if errors.As(err, &long) {
		key = block + ".max_tokens"
	}
	bad(key, config.CodeData, err.Error(), "")
}

// positions returns how long the model's texts may be; 0 if the model is at fault, which another check says.
func positions(c *config.Run, vocab int) int {
	if c.Model.Init != "pretrained" {
		return ModelConfig(c, vocab).MaxPositions
	}
	arch, err := ReadArchitecture(c)
	if err != nil {
		return 0
	}
	return arch.MaxPositions
}
