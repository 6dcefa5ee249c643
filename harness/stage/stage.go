// Package stage does the work of each stage of a run: it alone connects configuration,
// engine, tasks and training. Package config has the table of stages with their inputs
// and outputs.
//
// A stage maps blobs to blobs, as a function of its inputs, the keys it reads and its
// seed; harness/run decides whether to execute it. This package uses no database and no
// terminal.
package stage

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"exp/experiments/blob"
	"exp/experiments/ident"
	"exp/harness/config"
	"exp/harness/prompt"
	"exp/kernels"
	"exp/train"
	"exp/train/model"
	"exp/train/ranks"
	"exp/train/rl"
	"exp/train/rollout"
)

// Roles of inputs and outputs. The files of a merged model have their names as roles.
const (
	RoleTrain         = config.RoleTrain
	RoleVal           = config.RoleVal
	RoleTest          = config.RoleTest
	RoleProblems      = config.RoleProblems
	RoleRollouts      = config.RoleRollouts
	RoleConversations = config.RoleConversations
	RolePairs         = config.RolePairs
	RoleImages        = config.RoleImages
	RoleRated         = config.RoleRated
	RoleRatedVal      = config.RoleRatedVal
	RoleScorer        = config.RoleScorer
	RoleWeights       = config.RoleWeights
	RoleReference     = config.RoleReference
	RoleBase          = config.RoleBase
	RoleCurve         = config.RoleCurve
	RolePassRates     = config.RolePassRates
	RoleCompletions   = config.RoleCompletions
	RolePolicy        = config.RolePolicy
	RoleVerdicts      = config.RoleVerdicts
	RoleScores        = config.RoleScores
	// Inputs from outside the store, which are not blobs.
	RoleTokenizer    = "tokenizer"
	RoleArchitecture = "architecture" // of model.base
	RoleAdapter      = "adapter"      // model.adapter
	RoleVision       = "vision"       // tower of model.base, and how it reads images
	RoleTeacher      = "teacher"      // algo.reference
	RoleTeachers     = "teachers"     // algo.teachers
	RoleProcess      = "process"      // algo.prime.model
	RoleTemplate     = "chat template"
	RoleTools        = "tools"           // data.tools
	RoleStops        = "stop ids"        // tokens that end a completion
	RolePrompts      = "prompt settings" // keys that prompts depend on
	RoleExamples     = config.RoleExamples
)

// StartSuffix ends the label of an evaluation of the weights that training starts from.
const StartSuffix = ident.StartSuffix

// Env is the environment of a stage.
type Env struct {
	Config  *config.Resolved
	Backend kernels.Backend
	Blobs   *blob.Dir
	Dir     string       // the run's directory, for checkpoints and the merged folder
	RID     ident.Digest // the trajectory chain begins with it
	SID     ident.Digest // of this stage
	Seed    int64        // the run's
	Suites  []Suite      // of the store, that eval.final.suites names
	Placement
	// Prompter is the run's; nil: a stage that needs one makes it.
	Prompter *prompt.Prompter
	Start    Start
	// Again says that the stage is executed only to be compared with the record: it saves no
	// checkpoints.
	Again bool
	// Ranks are the processes that execute a learning stage together; nil: this one alone.
	// The first of them records and saves; the others return no outcome.
	Ranks ranks.Group
	// Before is how many of these ranks come before this one on its machine.
	Before int
	// Sampling is Backend as those ranks share it that sample together, if not the ones that share it in
	// training; else nil.
	Sampling kernels.Backend
	// Wait is train.Parts.Wait; it may be nil.
	Wait    func(on bool)
	Hooks   Hooks
	Answers string // folder of the judge's answers; empty keeps none
	// Sampled is the output of eval.gen with another number of completions, all else being equal:
	// only the missing ones are sampled. It may be nil.
	Sampled *Sampled

	verified   map[ident.Digest]bool // blobs whose bytes were compared with their digests
	referenced *folderWeights        // the same for weights of model.base and adapters
	images     model.Images          // of the stage's problems; nil: they show none
	scorer     ident.Digest          // the reward model that this run trained, for a stage that scores with it
	scoring    bool                  // the reward of the configuration is the scorer of an evaluation
	rating     bool                  // the stage measures pass rates
}

// Placement says what a run keeps in the host's memory because its GPU has no room, and how much
// room the sampler's cache has. It changes no result. The zero value keeps everything on the device,
// with room for the longest course of all completions.
type Placement struct {
	train.Offload
	CacheTokens int // 0: as many as a sampling step could need
}

// Start selects the first step of a learning stage. The zero value selects the newest undamaged
// checkpoint, else the first step.
type Start struct {
	Fresh bool // at the first step, whatever checkpoints there are
	UpTo  int  // the latest step whose checkpoint may be used; 0: any
	// Checkpoints is where they lie; empty: in Env.Dir.
	Checkpoints string
	// Accept, if not nil, is asked before an undamaged checkpoint is used; on an error the
	// checkpoint is skipped.
	Accept func(Saved) error
	// Parent, if not nil, is the trajectory that the train stage continues if it has no checkpoint
	// itself.
	Parent *Parent
}

// Saved is a checkpoint of the train stage.
type Saved struct {
	Dir   string
	Step  int
	Chain ident.Digest // the trajectory's, after Step
}

// Parent is the train stage of another run whose steps, until it ended, are this run's too. Its
// checkpoints are used like this run's.
type Parent struct {
	Dir string       // its directory, as Env.Dir
	SID ident.Digest // of its stage
	// Accept is asked about a checkpoint; it returns this run's chain at that step, or an error to
	// skip the checkpoint.
	Accept func(Saved) (ident.Digest, error)
}

// Hooks connect a stage to the record and the user. Any may be nil.
type Hooks struct {
	// Progress receives the state of the stage with everything that the step measured.
	Progress func(done, total int, measured []rl.Metric)
	// Step receives each finished training step, in order.
	Step func(Step) error
	// Validated receives the scores of weights that Step did not have: of those that training starts from, before the
	// first step, as step 0, and of those after a step whose validation could not be graded when it was recorded.
	Validated func(step int, measured map[string]float64) error
	// Save is called before each checkpoint of training is written: the steps up to it must be in the
	// record, since training that continues from the checkpoint does not repeat them.
	Save func() error
	// Brought is called before each checkpoint of training, with the images that agents brought to completions that it
	// holds; the checkpoint names them, and needs their files.
	Brought func(list []rollout.Picture) error
	// Checkpoint is called for each checkpoint on disk.
	Checkpoint func(dir string, step int, chain ident.Digest) error
	// Resumed receives the step whose checkpoint training continues from. Without it people are
	// warned.
	Resumed func(Saved)
	// Pinned lists the checkpoints to keep although there are enough newer ones; nil: none.
	Pinned func(step int) bool
	// Warn receives messages for a person, also while a stage works on something else.
	Warn func(text string)
	// Event receives messages for the record that belong to no step.
	Event func(kind, text string)
	// Phase receives the phase of a step ("rollout", "policy") with its progress; total is 0 if that
	// is unknown.
	Phase func(step int, phase string, done, total int)
	// Stop, asked between steps, ends the stage early; it then returns ErrStopped.
	Stop func() bool
}

// ErrStopped is returned by a stage that ended early because Hooks.Stop asked for it.
// Its work is saved; running it again continues from there.
var ErrStopped = train.ErrStopped

// Step is a finished training step, ready for the record.
type Step struct {
	Det          ident.Det
	Chain        ident.Digest // after this step
	Measured     map[string]float64
	Tokens       int64 // sampled
	Trajectories []train.Trajectory
	Components   []string // names of the parts of the verdicts' rewards
	Events       []train.Event
}

// Output is a blob that a stage made.
type Output struct {
	Role   string
	Digest ident.Digest
	Size   int64
	Kind   string // of blob, for accounting: "problems", "weights", "samples", …
}

// Outcome is the result of a stage.
type Outcome struct {
	Outputs []Output
	// Summary is small: lists and reports show it.
	Summary any
	// Facts are for the line that ends the stage on a terminal.
	Facts []rl.Metric
	// Evaluation is set by eval stages.
	Evaluation *Evaluation
}

// Inputs are a stage's input blobs, by role.
type Inputs map[string]ident.Digest

// Run executes a stage. label is the suite of an evaluation.
func Run(ctx context.Context, e *Env, kind config.Stage, label string, in Inputs) (*Outcome, error) {
	switch kind {
	case config.Prepare:
		return prepare(e)
	case config.Init:
		return initialize(e)
	case config.SFT:
		return fineTune(ctx, e, in)
	case config.RewardModel:
		return trainRewardModel(ctx, e, in)
	case config.Prefer:
		return prefer(ctx, e, in)
	case config.PassRate:
		return rateProblems(ctx, e, in)
	case config.Select:
		return selectProblems(e, in)
	case config.Train:
		return reinforce(ctx, e, in)
	case config.Merge:
		return merge(ctx, e, in)
	case config.EvalGen:
		return generateSuite(ctx, e, label, in)
	case config.EvalScore:
		return scoreSuite(ctx, e, label, in)
	}
	return nil, fmt.Errorf("unknown stage %q", kind)
}

// seedFunc returns the labelled streams of a root.
func seedFunc(root int64) func(label string) uint64 {
	return func(label string) uint64 { return ident.Seed(root, label) }
}

func (e *Env) run() *config.Run { return &e.Config.Run }

func (e *Env) progress(done, total int, measured ...rl.Metric) {
	if e.Hooks.Progress != nil {
		e.Hooks.Progress(done, total, measured)
	}
}

func (e *Env) warn(format string, args ...any) {
	if e.Hooks.Warn != nil {
		e.Hooks.Warn(fmt.Sprintf(format, args...))
	}
}

// event is a warning that the record keeps.
func (e *Env) event(kind, format string, args ...any) {
	e.warn(format, args...)
	if e.Hooks.Event != nil {
		e.Hooks.Event(kind, fmt.Sprintf(format, args...))
	}
}

// leads reports whether this process records and saves what the stage does.
func (e *Env) leads() bool { return e.Ranks == nil || e.Ranks.Rank() == 0 }

// alone returns the device without the share of other ranks in it.
func (e *Env) alone() kernels.Backend {
	if b, ok := e.Backend.(interface{ Whole() kernels.Backend }); ok {
		return b.Whole()
	}
	return e.Backend
}

// uncut returns the device for weights that are whole on each rank, though ranks share products.
func (e *Env) uncut() kernels.Backend {
	if b, ok := e.Backend.(interface{ Uncut() kernels.Backend }); ok {
		return b.Uncut()
	}
	return e.Backend
}

// group returns the processes that execute the stage.
func (e *Env) group() ranks.Group {
	if e.Ranks == nil {
		return ranks.Alone{}
	}
	return e.Ranks
}

// put stores bytes as an output.
func (e *Env) put(role, kind string, b []byte) (Output, error) {
	d, err := e.Blobs.PutBytes(b)
	return Output{Role: role, Digest: d, Size: int64(len(b)), Kind: kind}, err
}

// putJSON stores a value as JSON, one line.
func (e *Env) putJSON(role, kind string, v any) (Output, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return Output{}, err
	}
	return e.put(role, kind, append(b, '\n'))
}

// input returns the blob of a role.
func (e *Env) input(in Inputs, role string) ([]byte, error) {
	d, ok := in[role]
	if !ok {
		return nil, fmt.Errorf("stage has no input %s", role)
	}
	return e.Blobs.Bytes(d)
}

// inputPath is input for a blob that is too large for memory: it returns a file whose bytes were
// compared with its digest.
func (e *Env) inputPath(in Inputs, role string) (string, error) {
	d, ok := in[role]
	if !ok {
		return "", fmt.Errorf("stage has no input %s", role)
	}
	size, err := e.Blobs.Stat(d)
	if err == nil {
		err = e.verify([]blob.Recorded{{Digest: d, Size: size}})
	}
	if err != nil {
		return "", err
	}
	return e.Blobs.Path(d), nil
}

// verify compares the bytes of blobs with their digests, once each in a stage.
func (e *Env) verify(list []blob.Recorded) error {
	list = slices.DeleteFunc(slices.Clone(list), func(b blob.Recorded) bool { return e.verified[b.Digest] })
	for _, err := range e.Blobs.VerifyAll(context.Background(), list, nil) {
		if err != nil {
			return err
		}
	}
	if e.verified == nil {
		e.verified = map[ident.Digest]bool{}
	}
	for _, b := range list {
		e.verified[b.Digest] = true
	}
	return nil
}
