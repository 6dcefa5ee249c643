package run

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"exp/eval/rows"
	"exp/eval/suite"
	"exp/eval/task"
	"exp/experiments/quantity"
	"exp/experiments/spelling"
	"exp/experiments/store"
	"exp/harness/config"
	"exp/harness/device"
	"exp/harness/forecast"
	"exp/harness/hub"
	"exp/harness/stage"
	"exp/train/published"
)

// RequireError says, before any work, why a run cannot execute with this program on
// this machine: the resources it would need if those are the reason, then the missing
// parts and the remedy, which stay in sight at the end.
type RequireError struct {
	Name     string
	Missing  []string // one sentence each
	Do       []string // what to do about them
	Estimate *forecast.Estimate
	Scarce   bool // memory or a GPU is missing: Error shows the whole estimate
	Code     int  // exit code; 0 means 7, a missing resource
}

func (e *RequireError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s cannot run here:", e.Name)
	switch {
	case e.Estimate != nil && e.Scarce:
		b.WriteString("\n" + e.Estimate.Text("  "))
	case e.Estimate != nil:
		fmt.Fprintf(&b, "\n  needs    %s of memory; --dry-run says for what", quantity.Bytes(e.Estimate.Most()))
	}
	for _, m := range e.Missing {
		fmt.Fprintf(&b, "\n  missing  %s", strings.ReplaceAll(m, "\n", "\n           "))
	}
	for _, d := range e.Do {
		fmt.Fprintf(&b, "\n  to do    %s", d)
	}
	return b.String()
}

// ExitCode is the code for a missing resource, or for an unusable sandbox if nothing
// else is missing.
func (e *RequireError) ExitCode() int {
	if e.Code != 0 {
		return e.Code
	}
	return 7
}

// lack adds a missing thing and what to do about it; either may be empty.
func (e *RequireError) lack(missing, do string) {
	if missing != "" {
		e.Missing = append(e.Missing, missing)
	}
	if do != "" {
		e.Do = append(e.Do, do)
	}
}

// Suites finds the suites in the store that a configuration names, the newest of each
// name. It returns a *RequireError if some are missing. db may be nil: an empty store.
func Suites(ctx context.Context, db *store.DB, r *config.Resolved) ([]stage.Suite, error) {
	names := stage.ForeignSuites(&r.Run)
	if len(names) == 0 {
		return nil, nil
	}
	var have []store.Suite
	if db != nil {
		var err error
		if have, err = db.Suites(ctx); err != nil {
			return nil, err
		}
	}
	var found []stage.Suite
	var lost []string
	for _, name := range names {
		s, err := suiteNamed(have, name)
		if err != nil {
			return nil, err
		}
		if s == nil {
			lost = append(lost, name)
			continue
		}
		if a := s.AskingOf(&r.Run); a.Shots > 0 {
			if a.ShotsSuite == "" {
				return nil, config.Errors{r.ErrorAt("eval.final.shots", config.CodeConflict, fmt.Sprintf(
					"suite %s: eval.final.shots is %d, but no suite has the examples", name, a.Shots),
					"eval.final.shots_suite: NAME, a suite of the store (exp suite ls)")}
			}
			if s.Examples, err = suiteNamed(have, a.ShotsSuite); err != nil {
				return nil, err
			}
			if s.Examples == nil && !slices.Contains(lost, a.ShotsSuite) {
				lost = append(lost, a.ShotsSuite)
			}
		}
		found = append(found, *s)
	}
	e := &RequireError{Name: r.Run.Name}
	switch len(lost) {
	case 0:
		return found, nil
	case 1:
		e.lack(fmt.Sprintf("the suite %s: it is not in the store", lost[0]), fmt.Sprintf("add its problems with "+
			"exp suite add %s FILE; exp suite known says where to get them", lost[0]))
	default:
		e.lack(fmt.Sprintf("the suites %s: they are not in the store", strings.Join(lost, ", ")), fmt.Sprintf("add "+
			"the problems of each, as with exp suite add %s FILE; exp suite known says where to get them", lost[0]))
	}
	return nil, e
}

// suiteNamed returns the newest of the suites with a name whose problems are in the store, or nil.
func suiteNamed(have []store.Suite, name string) (*stage.Suite, error) {
	for _, h := range slices.Backward(have) {
		if h.Name != name || h.Size == 0 {
			continue
		}
		asking, err := suite.ParseAsking(h.Asking)
		if err != nil {
			return nil, fmt.Errorf("suite %s: %w", name, err)
		}
		return &stage.Suite{Name: h.Name, Version: h.Version, Digest: h.Digest, Graders: strings.Split(h.Scorer, ","),
			Asking: asking}, nil
	}
	return nil, nil
}

// CheckInputs checks everything that a configuration names, as its plan and the run do, but executes nothing. It
// returns a *RequireError or a config.Errors.
func CheckInputs(ctx context.Context, db *store.DB, r *config.Resolved) error {
	suites, err := Suites(ctx, db, r)
	if err != nil {
		return err
	}
	x, err := stage.Externals(r)
	if err != nil {
		return err
	}
	return stage.CheckSuites(&stage.Env{Config: r, Blobs: db.Blobs, Suites: suites, Prompter: x.Prompter})
}

// Processes are the ranks that compute a run, or one process.
type Processes struct {
	Ranks int
	Here  int // on this machine
}

// Alone is a run of one process.
func Alone() Processes { return Processes{Ranks: 1, Here: 1} }

// RequireAll combines Require and Suites: it reports everything that is missing.
func RequireAll(ctx context.Context, db *store.DB, r *config.Resolved, on Processes) ([]stage.Suite, error) {
	var lack, without *RequireError
	if err := Require(r, on); err != nil && !errors.As(err, &lack) {
		return nil, err
	}
	suites, err := Suites(ctx, db, r)
	if err != nil && !errors.As(err, &without) {
		return nil, err
	}
	switch {
	case lack == nil && without == nil:
		return suites, nil
	case lack == nil:
		lack = without
		lack.Missing = append(lack.Missing, stage.Unreadable(&r.Run)...)
		if e, err := forecast.Of(r, on.Ranks).Estimate(); err == nil {
			lack.Estimate = &e
		}
	case without != nil:
		lack.Missing, lack.Do, lack.Code = append(lack.Missing, without.Missing...), append(lack.Do, without.Do...), 0
	}
	return nil, lack
}

// Require checks that these processes on this machine can execute a configuration, except
// for the suites that it names (see Suites). It returns a *RequireError. If something
// is missing, errors in files that exist are listed too; otherwise the plan reports
// those at their key.
func Require(r *config.Resolved, on Processes) error {
	c := &r.Run
	e := &RequireError{Name: c.Name}
	lack := e.lack
	choice, err := device.OfRun(c)
	var missing *device.Error
	if errors.As(err, &missing) {
		e.Scarce = true
		lack("a GPU: "+missing.Error(), missing.Hint())
		lack("", "the CPU recipes run on any machine: exp run configs/countdown_cpu_flowrl.yaml")
	}
	lackKernels(c, lack)
	if _, err := task.New(task.Config{Kind: c.Task.Kind}); errors.Is(err, task.ErrUnknownKind) {
		lack(fmt.Sprintf("the task %q: this build has %s", c.Task.Kind, strings.Join(task.Kinds(), ", ")), "")
	}
	remote := lackRemotes(r, lack)
	lackFiles(c, remote, lack)
	others := len(e.Missing)
	if task.RunsPrograms(c.Task.Kinds()...) || c.Rollout.Tools.Kind == "python" {
		if sandbox := sandboxLack(c); sandbox != nil {
			lack(sandbox.Error(), sandbox.Hint())
			if others == 0 {
				e.Code = sandbox.ExitCode()
			}
		}
	}
	if estimate, err := forecast.Of(r, on.Ranks).Estimate(); err == nil {
		e.Estimate = &estimate
		e.lackMemory(choice.GPU, device.Memory(c), device.HostMemory(), on)
	}
	if len(e.Missing) == 0 {
		return nil
	}
	for _, bad := range stage.Unreadable(c) {
		lack(bad, "")
	}
	return e
}

// lackMemory reports too little memory for the ranks here: of each rank's GPU, or of this machine,
// which they share. These have so many bytes; 0 is not known. For a GPU that is missing it takes the one
// that the plan assumes.
func (e *RequireError) lackMemory(gpu *device.GPU, have, host int64, on Processes) {
	p := e.Estimate
	needs, where, who, more := p.Resident(on.Here), "this machine has", "the run needs", ""
	switch {
	case on.Ranks == 1:
		more = " or train.slices: 1"
	case !p.OnGPU():
		more = ", or run fewer ranks on a machine"
	}
	if on.Here > 1 {
		who = fmt.Sprintf("%d ranks here need", on.Here)
	}
	if p.OnGPU() || gpu != nil {
		needs, who = p.Most(), "the run needs"
		more += "; or let GPUs share the model: more --ranks with compute.tensor_parallel"
		if on.Ranks > 1 {
			who = "each rank needs"
		}
	}
	switch {
	case gpu != nil:
		where = gpu.ID() + " has"
	case p.OnGPU():
		have, where = p.Usable(), "the planned GPU ("+p.Device+") has room for"
	}
	if have > 0 && needs > have {
		e.Code, e.Scarce = 0, true
		e.lack(fmt.Sprintf("memory: %s %s, %s %s", who, quantity.Bytes(needs), where, quantity.Bytes(have)),
			"make compute.micro_batch_tokens, rollout.max_sequences or the model smaller, or set "+
				"compute.recompute: true"+more)
	}
	pinned := int64(on.Here) * p.Pinned()
	if gpu != nil && host > 0 && pinned > host {
		e.Code, e.Scarce = 0, true
		who := "the run pins"
		if on.Here > 1 {
			who = fmt.Sprintf("%d ranks here pin", on.Here)
		}
		do := "use more --ranks, a smaller model or fewer compute.micro_batch_tokens"
		if on.Ranks == 1 {
			do += ", or set train.slices: 1"
		}
		e.lack(fmt.Sprintf("memory: %s %s of this machine's, which has %s", who, quantity.Bytes(pinned),
			quantity.Bytes(host)), do)
	}
}

// lackKernels reports a model that the kernels of the configuration's GPU cannot compute.
func lackKernels(c *config.Run, lack func(missing, do string)) {
	if !device.UsesGPU(c) {
		return
	}
	arch, err := forecast.Architecture(c)
	if err == nil && arch.Recurrent() && !device.DeltaFits(arch.Delta, c.Train.Steps > 0 || c.LearnsFirst()) {
		lack(fmt.Sprintf("kernels for linear attention with keys of %d and values of %d channels: a state of so many "+
			"does not fit into the shared memory of a GPU's multiprocessor", arch.Delta.KeyDim, arch.Delta.ValueDim),
			"compute on the CPU: compute.device: cpu")
	}
}

// RequireFiles checks that the weights, adapters and data of a configuration are here; other
// machines are to execute it. It returns a *RequireError.
func RequireFiles(r *config.Resolved) error {
	e := &RequireError{Name: r.Run.Name}
	lackFiles(&r.Run, lackRemotes(r, e.lack), e.lack)
	if len(e.Missing) == 0 {
		return nil
	}
	return e
}

// lackFiles reports the weights, adapters and data of this machine that are missing.
func lackFiles(c *config.Run, remote map[string]bool, lack func(missing, do string)) {
	if c.Model.Init == "pretrained" {
		lackModel(c, remote["model.base"], lack)
	}
	if c.Model.HasAdapter() && !remote["model.adapter"] {
		if _, err := os.Stat(c.Model.Adapter); err != nil {
			lack(fmt.Sprintf("the adapters of model.adapter: no folder %s", c.Model.Adapter),
				"name a folder in PEFT's layout (adapter_config.json, adapter_model.safetensors), or none: --set "+
					"model.adapter=PATH")
		}
	}
	if c.Algo.HasTeacher() && !remote["algo.reference"] {
		lackTeacher("algo.reference=PATH", c.Algo.Reference, lack)
	}
	if c.Algo.Prime.HasModel() && !remote["algo.prime.model"] {
		lackTeacher("algo.prime.model=PATH", c.Algo.Prime.Model, lack)
	}
	for _, folder := range c.Algo.Teachers {
		if !hub.IsRef(folder) { // others are reported with the references
			lackTeacher("algo.teachers=[PATH, …]", folder, lack)
		}
	}
	for _, d := range []struct {
		name string
		config.Split
	}{{"train", c.Data.Train}, {"val", c.Data.Val}, {"test", c.Data.Test}} {
		if d.Source == config.Generated || d.Source == config.None || d.Source == "" {
			continue
		}
		key, form := "data."+d.name+".source", "PATH"
		for i, path := range append([]string{d.Source}, d.More...) {
			if i > 0 {
				key, form = "data."+d.name+".more", "[PATH]"
			}
			lackData(key, path, form, remote, lack)
		}
	}
	if c.SFT.OnConversations() {
		lackData("sft.source", c.SFT.Source, "PATH", remote, lack)
	}
	if c.RewardModel.Steps > 0 {
		lackData("reward_model.source", c.RewardModel.Source, "PATH", remote, lack)
	}
	if c.RewardModel.Validates() {
		lackData("reward_model.val", c.RewardModel.Val, "PATH", remote, lack)
	}
	if c.Prefer.Steps > 0 {
		lackData("prefer.source", c.Prefer.Source, "PATH", remote, lack)
	}
}

// lackTeacher reports a missing model of algo.reference, algo.teachers or algo.prime.model; set is what names another.
func lackTeacher(set, folder string, lack func(missing, do string)) {
	if _, err := os.Stat(folder); err == nil {
		return
	}
	what := "the teacher"
	if strings.HasPrefix(set, "algo.prime") {
		what = "the process reward model"
	}
	lack(fmt.Sprintf("the weights of %s %s: no such folder", what, folder),
		"put its Hugging Face folder on this machine and name the folder: --set "+set)
	if _, known := published.Model(folder); known {
		lack("", "or fetch it from the hub: --set "+strings.Replace(set, "PATH", "hub:"+folder+"@main", 1)+" --get")
	}
}

// lackModel reports missing weights, and what a plan of memory and disk lacks. A remote model's weights
// have been reported.
func lackModel(c *config.Run, remote bool, lack func(missing, do string)) {
	_, known := published.Model(c.Model.Name())
	if !remote {
		if _, err := os.Stat(c.Model.Base); err == nil {
			return
		}
		lack(fmt.Sprintf("the weights of %s: no such folder", c.Model.Base),
			"put its Hugging Face folder (config.json, tokenizer.json, *.safetensors) on this machine and name "+
				"the folder: --set model.base=PATH")
		if known {
			lack("", "or fetch it from the hub: --set model.base=hub:"+c.Model.Base+"@main --get")
		}
	}
	if near := spelling.Nearest(c.Model.Name(), published.Names()); !known && near != "" {
		lack("", "is it "+near+"?")
	}
	if !known {
		lack("", "to see first what memory and disk it takes, put its config.json alone into a folder and name that: "+
			"--set model.base=PATH --dry-run")
	}
}

// lackData reports a file of data that is missing.
func lackData(key, path, form string, remote map[string]bool, lack func(missing, do string)) {
	if remote[key] && hub.IsRef(path) {
		return
	}
	if _, err := rows.Files(path); err != nil {
		lack(fmt.Sprintf("the data of %s: %s cannot be read", key, path),
			fmt.Sprintf("get the file, or name another%s: --set %s=%s", fromHere(path), key, form))
	}
}

// fromHere says from where a relative path counts; "" for an absolute one.
func fromHere(path string) string {
	dir, err := os.Getwd()
	if filepath.IsAbs(path) || err != nil {
		return ""
	}
	return " (a relative path counts from the current directory, " + dir + ", not from the configuration's)"
}
