package config

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"exp/train/rl"
)

// Run is a resolved configuration with one field per key of the table, named by its
// tag. The table explains the keys (exp config schema KEY); comments here only say when
// a field is set. Fields of keys without effect are zero.
type Run struct {
	Version     int            `key:"version"`
	Name        string         `key:"name"`
	Seed        int64          `key:"seed"`
	Task        Task           `key:"task"`
	Data        Data           `key:"data"`
	Model       Model          `key:"model"`
	Tokenizer   Tokenizer      `key:"tokenizer"`
	SFT         FineTuning     `key:"sft"`
	RewardModel RewardTraining `key:"reward_model"`
	Prefer      Preferring     `key:"prefer"`
	Algo        Algo           `key:"algo"`
	Rollout     Rollout        `key:"rollout"`
	Reward      Reward         `key:"reward"`
	Train       Training       `key:"train"`
	Merge       Merging        `key:"merge"`
	Checkpoint  Checkpoint     `key:"checkpoint"`
	Eval        Eval           `key:"eval"`
	Compare     Compare        `key:"compare"`
	Store       Store          `key:"store"`
	Sandbox     Sandbox        `key:"sandbox"`
	Verify      Verify         `key:"verify"`
	Control     Control        `key:"run"`
	Notify      Notify         `key:"notify"`
	Compute     Compute        `key:"compute"`
	Cluster     Cluster        `key:"cluster"`
}

// Data says where problems come from.
type Data struct {
	Train           Split     `key:"train"`
	Val             Split     `key:"val"`
	Test            Split     `key:"test"`
	Seed            int64     `key:"seed"`       // a split is generated, or rows are drawn
	PromptKey       string    `key:"prompt_key"` // Auto or a column; Task.Kind is "math", "code" or PromptsTask
	Keep            []string  `key:"keep"`       // Task.Kind is "math" or PromptsTask, a split a file
	Select          string    `key:"select"`     // "random" or "first"; a split has MaxSamples
	MaxPromptTokens int       `key:"max_prompt_tokens"`
	Truncate        string    `key:"truncate"`
	FilterOverlong  bool      `key:"filter_overlong"`
	Order           string    `key:"order"`
	PassRate        PassRates `key:"pass_rate"`
	Chat            string    `key:"chat"`
	// Settings of the chat template.
	Tools         string         `key:"tools"` // None, a path, or a JSON list
	System        string         `key:"system"`
	TemplateVars  map[string]any `key:"template_vars"`
	TemplateDate  string         `key:"template_date"`
	EscapeSpecial bool           `key:"escape_special"` // for every prompt, chat or not
	ImageKey      string         `key:"image_key"`      // None or a column; Task.Kind reads files
	// Sizes that images are brought to; 0: as the model's folder says.
	ImageMinPixels int    `key:"image_min_pixels"`
	ImageMaxPixels int    `key:"image_max_pixels"`
	VideoKey       string `key:"video_key"` // None or a column; Task.Kind reads files
	// How videos are read; 0: as the model's folder says.
	VideoFPS       float64 `key:"video_fps"`
	VideoMaxFrames int     `key:"video_max_frames"`
	VideoMaxPixels int     `key:"video_max_pixels"`
}

func (d *Data) split(name string) Split {
	return map[string]Split{"train": d.Train, "val": d.Val, "test": d.Test}[name]
}

// PassRates choose training problems by the share of their completions that are right. Fields are zero where they have
// no effect.
type PassRates struct {
	Samples int     `key:"samples"`
	Column  string  `key:"column"` // of the rows of Train, or None
	Min     float64 `key:"min"`
	Max     float64 `key:"max"`
	Seed    int64   `key:"seed"` // Samples is positive
}

// Recorded reports whether the pass rates are in the rows.
func (p PassRates) Recorded() bool { return p.Column != "" && p.Column != None }

// Selects reports whether the pass rates choose the training problems.
func (p PassRates) Selects() bool { return p.Samples > 0 || p.Recorded() }

// Split is one part of the data. Source is Generated, None or a path.
type Split struct {
	Source     string   `key:"source"`
	More       []string `key:"more"` // Source is a file
	Size       int      `key:"size"`
	Digest     string   `key:"digest"`      // Source is a file
	MaxSamples int      `key:"max_samples"` // Source is a file; 0: all rows
}

// Files names the files of a split, for people.
func (s Split) Files() string {
	switch n := len(s.More); n {
	case 0:
		return s.Source
	case 1:
		return s.Source + " and " + s.More[0]
	default:
		return fmt.Sprintf("%s and %d more files", s.Source, n)
	}
}

// Model is the policy's architecture and start.
type Model struct {
	Init    string `key:"init"`
	Base    string `key:"base"`    // Init is "pretrained"
	Repo    string `key:"-"`       // of a Base that comes from a hub; empty: Base is the user's folder
	Part    string `key:"part"`    // Init is "pretrained"
	Vision  string `key:"vision"`  // Init is "pretrained"
	Adapter string `key:"adapter"` // Init is "pretrained"; a path, or None
	Digest  string `key:"digest"`  // Init is "pretrained"
	DType   string `key:"dtype"`
	Seed    int64  `key:"seed"` // Init is "random"
	Arch    Arch   `key:"arch"` // Init is "random"
}

// TrainsTower reports whether the vision tower learns with the language model.
func (m *Model) TrainsTower() bool { return m.Vision == VisionTrained }

// HasAdapter reports whether the run starts with adapters on the weights of Base.
func (m *Model) HasAdapter() bool { return m.Adapter != "" && m.Adapter != None }

// Arch is the shape of a decoder with random initial weights. The tokenizer sets the
// vocabulary.
type Arch struct {
	Layers        int     `key:"layers"`
	Width         int     `key:"width"`
	Heads         int     `key:"heads"`
	KVHeads       int     `key:"kv_heads"`
	HeadSize      int     `key:"head_size"`
	FFN           int     `key:"ffn"`
	RopeTheta     float64 `key:"rope_theta"`
	NormEps       float64 `key:"norm_eps"`
	QKVBias       bool    `key:"qkv_bias"`
	QKNorm        bool    `key:"qk_norm"`
	TieEmbeddings bool    `key:"tie_embeddings"`
	InitStd       float64 `key:"init_std"`
	MaxPositions  int     `key:"max_positions"`
}

// Tokenizer selects how text becomes tokens.
type Tokenizer struct {
	Kind string `key:"kind"`
	Path string `key:"path"` // Kind is "file"
}

// FineTuning is the supervised stage. Steps 0 skips it; the other fields are then zero.
type FineTuning struct {
	Steps           int      `key:"steps"`
	Source          string   `key:"source"`
	MaxTokens       int      `key:"max_tokens"`
	Mask            []string `key:"mask"`
	ProblemsPerStep int      `key:"problems_per_step"`
	DataSize        int      `key:"data_size"`
	Seed            int64    `key:"seed"`
	Optim           Optim    `key:"optim"`
}

// OnConversations reports whether the stage learns from conversations instead of the problems' targets.
func (f *FineTuning) OnConversations() bool { return f.Steps > 0 && f.Source != "" && f.Source != None }

// Preferring is the stage that learns from preferences. Steps 0 skips it; the other fields are then zero.
type Preferring struct {
	Steps          int     `key:"steps"`
	Source         string  `key:"source"`
	MaxTokens      int     `key:"max_tokens"`
	PairsPerStep   int     `key:"pairs_per_step"`   // unless Unpaired
	AnswersPerStep int     `key:"answers_per_step"` // Unpaired
	Loss           string  `key:"loss"`
	Beta           float64 `key:"beta"`
	Reference      string  `key:"reference"`       // unless Unpaired or Loss is "orpo"
	PerToken       bool    `key:"per_token"`       // the same
	Smoothing      float64 `key:"smoothing"`       // Loss is "sigmoid", "robust" or "exo_pair"
	TargetMargin   float64 `key:"target_margin"`   // Loss is "sigmoid"
	ChosenWeight   float64 `key:"chosen_weight"`   // Unpaired
	RejectedWeight float64 `key:"rejected_weight"` // Unpaired
	SFTWeight      float64 `key:"sft_weight"`      // unless Unpaired
	Seed           int64   `key:"seed"`
	LoRA           LoRA    `key:"lora"`
	Optim          Optim   `key:"optim"`
}

// Unpaired reports whether the loss is one of single answers.
func (p *Preferring) Unpaired() bool { return slices.Contains(rl.UnpairedLosses(), p.Loss) }

// RewardTraining is the stage that trains a reward model. Steps 0 skips it; the other fields are then zero.
type RewardTraining struct {
	Steps          int     `key:"steps"`
	Kind           string  `key:"kind"` // RewardOfPairs or RewardOfSteps
	Source         string  `key:"source"`
	Val            string  `key:"val"`       // a path, or None
	ValEvery       int     `key:"val_every"` // Val is a path
	MaxTokens      int     `key:"max_tokens"`
	PairsPerStep   int     `key:"pairs_per_step"`   // of pairs
	Center         float64 `key:"center"`           // of pairs
	AnswersPerStep int     `key:"answers_per_step"` // of steps
	Separator      string  `key:"separator"`        // of steps
	LastStepOnly   bool    `key:"last_step_only"`   // of steps
	Seed           int64   `key:"seed"`
	LoRA           LoRA    `key:"lora"`
	Optim          Optim   `key:"optim"`
}

// OfSteps reports whether it learns from labelled steps of answers.
func (r *RewardTraining) OfSteps() bool { return r.Steps > 0 && r.Kind == RewardOfSteps }

// Validates reports whether the reward model is validated on held-out pairs.
func (r *RewardTraining) Validates() bool { return r.Steps > 0 && r.Val != "" && r.Val != None }

// Tunes reports whether a stage learns from examples before reinforcement learning, so that the run's own weights
// follow its start.
func (r *Run) Tunes() bool { return r.SFT.Steps > 0 || r.Prefer.Steps > 0 }

// TunesFiles reports whether such a stage needs no training problems.
func (r *Run) TunesFiles() bool { return r.SFT.OnConversations() || r.Prefer.Steps > 0 }

// LearnsFirst reports whether a stage learns before reinforcement learning: one of those, or a reward model.
func (r *Run) LearnsFirst() bool { return r.Tunes() || r.RewardModel.Steps > 0 }

// MakesPolicy reports whether a stage learns the policy.
func (r *Run) MakesPolicy() bool { return r.Data.Train.Source != None || r.TunesFiles() }

// Optim configures one optimizer and its schedule.
type Optim struct {
	Kind        string  `key:"kind"`
	Momentum    float64 `key:"momentum"` // Kind is not "adamw"
	LR          float64 `key:"lr"`
	Beta1       float64 `key:"beta1"`
	Beta2       float64 `key:"beta2"`
	Eps         float64 `key:"eps"`
	WeightDecay float64 `key:"weight_decay"`
	GradClip    float64 `key:"grad_clip"`
	WarmupSteps int     `key:"warmup_steps"`
	Schedule    string  `key:"schedule"`
	MinLRRatio  float64 `key:"min_lr_ratio"` // Schedule is not "constant"
}

// Rollout configures sampling in training.
type Rollout struct {
	Source       string   `key:"source"`
	Recorded     string   `key:"recorded"` // Source is "recorded"
	N            int      `key:"n"`
	Temperature  float64  `key:"temperature"`
	TopK         int      `key:"top_k"`
	TopP         float64  `key:"top_p"`
	MinP         float64  `key:"min_p"`
	Repetition   float64  `key:"repetition_penalty"`
	Presence     float64  `key:"presence_penalty"`
	Frequency    float64  `key:"frequency_penalty"`
	MaxNewTokens int      `key:"max_new_tokens"`
	Stop         []string `key:"stop"`
	StopIDs      []int    `key:"stop_ids"`
	Staleness    int      `key:"staleness"`
	MaxSequences int      `key:"max_sequences"`
	CacheTokens  int      `key:"cache_tokens"`
	PageTokens   int      `key:"page_tokens"`
	Speculate    bool     `key:"speculate"`
	Form         Form     `key:"form"`
	Tools        Tools    `key:"tools"`
}

// Form restricts the texts of completions; fields are zero where they have no effect.
type Form struct {
	Kind    string   `key:"kind"`    // None, or "json_object", or what a field below says
	Regex   string   `key:"regex"`   // Kind is "regex"
	Choice  []string `key:"choice"`  // Kind is "choice"
	Schema  string   `key:"schema"`  // Kind is "json_schema"
	Grammar string   `key:"grammar"` // Kind is "grammar"
	Tags    string   `key:"tags"`    // Kind is "structural_tag"
}

// Tools answer the policy's calls within completions; fields are zero where they have no effect.
type Tools struct {
	Kind      string        `key:"kind"` // None, "python", "command" or "agent"
	Format    string        `key:"format"`
	Call      []string      `key:"call"`   // Format is "tags"
	Answer    []string      `key:"answer"` // Format is "tags"
	MaxTurns  int           `key:"max_turns"`
	MaxCalls  int           `key:"max_calls"` // Format is "hermes"
	MaxOutput int           `key:"max_output"`
	Keep      string        `key:"keep"`
	CPULimit  time.Duration `key:"cpu_limit"` // Kind is "python"
	MemLimit  int64         `key:"mem_limit"` // Kind is "python"
	Command   []string      `key:"command"`   // of a program
	Files     []string      `key:"files"`     // of a program
	Workers   int           `key:"workers"`   // of a program
	Limit     time.Duration `key:"limit"`     // of a program
	Retries   int           `key:"retries"`   // of a program
	Episodes  int           `key:"episodes"`  // of an agent's process at once

	Conversations    string `key:"conversations"`     // Kind is "agent": "one", "last" or "all"
	MaxConversations int    `key:"max_conversations"` // Conversations is "all"
}

// Used reports whether completions have tools, or an agent.
func (t Tools) Used() bool { return t.Kind != None && t.Kind != "" }

// Program reports whether a program of the user's is asked, or asks.
func (t Tools) Program() bool { return t.Kind == "command" || t.Agent() }

// Most returns the most conversations of a completion.
func (t Tools) Most() int { return max(1, t.MaxConversations) }

// AtOnce returns how many episodes an agent's processes play at once.
func (t Tools) AtOnce() int { return t.Workers * max(1, t.Episodes) }

// Agent reports whether a program asks the policy.
func (t Tools) Agent() bool { return t.Kind == "agent" }

// Reward scores completions in training; zero if the task defines the reward
// (outcomes).
type Reward struct {
	Kind         string        `key:"kind"`
	Correct      float64       `key:"correct"` // Kind is "task" or Majority
	Wrong        float64       `key:"wrong"`   // Kind is "task", Majority or Likelihood
	Format       float64       `key:"format"`  // Kind is "task" or Majority
	Components   []string      `key:"components"`
	MaxNotGraded float64       `key:"max_not_graded"`
	Retries      int           `key:"retries"`     // Kind is "command" or "judge"
	Command      []string      `key:"command"`     // Kind is "command"
	Files        []string      `key:"files"`       // Kind is "command"
	Workers      int           `key:"workers"`     // Kind is "command"
	Batch        int           `key:"batch"`       // Kind is "command"
	RowLimit     time.Duration `key:"row_limit"`   // Kind is "command"
	BatchLimit   time.Duration `key:"batch_limit"` // Kind is "command"
	Restarts     int           `key:"restarts"`    // Kind is "command"
	Judge        Judge         `key:"judge"`       // Kind is "judge" or "genrm"
	Weights      string        `key:"weights"`     // Kind is "model" or "genrm"
	Text         string        `key:"text"`        // Kind is "model"
	Chat         string        `key:"chat"`        // Kind is "model"; Auto or None
	Begin        bool          `key:"begin"`       // Kind is "model"
	End          bool          `key:"end"`         // Kind is "model"
	Steps        string        `key:"steps"`       // Kind is "model", or of a run that trains on steps; None or how
	Split        string        `key:"split"`       // Steps is not None
	Separator    string        `key:"separator"`   // Kind is "model" and Steps is not None
	Credit       string        `key:"credit"`      // Steps is not None
	Layout       string        `key:"layout"`      // as Separator; of rollout.StepLayouts
	Label        int           `key:"label"`       // Kind is "model"
	Tokens       []string      `key:"tokens"`      // Kind is "model": none or two

	StepWrong       float64 `key:"step_wrong"` // Credit is not rl.CreditAnswer, as for the next ones
	StepRight       float64 `key:"step_right"`
	StepWeight      float64 `key:"step_weight"`
	StepTemperature float64 `key:"step_temperature"` // Credit is rl.CreditMin
	OutcomeWeight   float64 `key:"outcome_weight"`

	Likelihood Likely `key:"likelihood"` // Kind is Likelihood
}

// Likely says how the likelihood of reference answers rewards completions.
type Likely struct {
	Measure  string  `key:"measure"` // of rl.Likelihood
	Baseline bool    `key:"baseline"`
	Learn    float64 `key:"learn"`
}

// Judge is a language model that scores completions, behind a server or (Reward.Weights) on this engine.
type Judge struct {
	URL         string        `key:"url"`
	Model       string        `key:"model"`
	Template    string        `key:"template"`
	Pattern     string        `key:"pattern"`
	Field       string        `key:"field"`
	Low         *float64      `key:"low"`  // nil: no limit
	High        *float64      `key:"high"` // nil: no limit
	Temperature float64       `key:"temperature"`
	MaxTokens   int           `key:"max_tokens"`
	KeyEnv      string        `key:"key_env"`
	Concurrent  int           `key:"concurrent"`
	Rate        float64       `key:"rate"`
	Timeout     time.Duration `key:"timeout"`
	Cache       bool          `key:"cache"`

	Context      int            `key:"context"`       // Reward.Writes
	Sequences    int            `key:"sequences"`     // Reward.Writes
	TemplateVars map[string]any `key:"template_vars"` // Reward.Writes
}

// Training is the size of the reinforcement learning stage.
type Training struct {
	PromptsPerStep   int   `key:"prompts_per_step"`
	PromptsPerUpdate int   `key:"prompts_per_update"`
	Steps            int   `key:"steps"`
	Slices           int   `key:"slices"`
	Optim            Optim `key:"optim"`
	LoRA             LoRA  `key:"lora"`
}

// LoRA configures low-rank adapters. Rank 0 trains all weights; the other fields are then zero. Stages before
// reinforcement learning fold them into the weights.
type LoRA struct {
	Rank    int      `key:"rank"`
	Alpha   float64  `key:"alpha"`
	Targets []string `key:"targets"`
	Exclude []string `key:"exclude"`
	Dropout float64  `key:"dropout"`
	// RankStabilized divides Alpha by the root of the rank (rsLoRA).
	RankStabilized bool `key:"rank_stabilized"`
	// BRatio multiplies the learning rate for B (LoRA+).
	BRatio float64 `key:"b_lr_ratio"`
}

// Merging configures how trained weights are written.
type Merging struct {
	DType  string `key:"dtype"`  // "keep", "bf16" or "f32"
	Format string `key:"format"` // "hf", "megatron" or "fsdp"
	TP     int    `key:"tp"`     // Format is "megatron", as for the next three
	PP     int    `key:"pp"`
	VP     int    `key:"vp"`
	EP     int    `key:"ep"`
	Ranks  int    `key:"ranks"` // Format is "fsdp"
}

// Checkpoint says when training is saved.
type Checkpoint struct {
	EverySteps   int     `key:"every_steps"`
	EveryMinutes float64 `key:"every_minutes"`
	Keep         int     `key:"keep"`
}

// Eval configures evaluation during and after training.
type Eval struct {
	Online Online `key:"online"`
	Final  Final  `key:"final"`
}

// Online is the evaluation during training. EverySteps 0 turns it off; the other fields
// are then zero.
type Online struct {
	EverySteps  int     `key:"every_steps"`
	Problems    int     `key:"problems"`
	N           int     `key:"n"`
	Temperature float64 `key:"temperature"`
	TopK        int     `key:"top_k"`
	TopP        float64 `key:"top_p"`
	MinP        float64 `key:"min_p"`
	Repetition  float64 `key:"repetition_penalty"`
	Presence    float64 `key:"presence_penalty"`
	Frequency   float64 `key:"frequency_penalty"`

	MaxNotGraded float64 `key:"max_not_graded"`
	Best         string  `key:"best"`
}

// Chooses reports whether validations choose a run's weights. Then they are part of training's result.
func (o Online) Chooses() bool { return o.EverySteps > 0 && o.Best != None }

// BestMetric returns the metric of validations that chooses a run's weights, and whether its lowest value is best.
func (o Online) BestMetric() (name string, least bool) {
	name, least = strings.CutPrefix(o.Best, "min:")
	return name, least
}

// Final is the protocol for evaluating the trained model.
type Final struct {
	Suites       []string `key:"suites"`
	Graders      []string `key:"graders"`
	Prompt       string   `key:"prompt"`
	Truncate     string   `key:"truncate"`
	Likelihood   string   `key:"likelihood"`
	Shots        *int     `key:"shots"`       // nil: as the suite's definition says
	ShotsSuite   string   `key:"shots_suite"` // empty: likewise
	Description  string   `key:"description"` // empty: likewise
	Protocol     string   `key:"protocol"`
	N            int      `key:"n"`
	Temperature  float64  `key:"temperature"`
	TopK         int      `key:"top_k"`
	TopP         float64  `key:"top_p"`
	MinP         float64  `key:"min_p"`
	Repetition   float64  `key:"repetition_penalty"`
	Presence     float64  `key:"presence_penalty"`
	Frequency    float64  `key:"frequency_penalty"`
	MaxNewTokens int      `key:"max_new_tokens"`
	PassK        []int    `key:"pass_k"`
	Scorer       Scorer   `key:"scorer"`
	MaxNotGraded float64  `key:"max_not_graded"`
}

// Compare lists the keys that a comparison with this run may vary.
type Compare struct {
	Vary     []string `key:"vary"`
	MinSeeds int      `key:"min_seeds"`
}

// Store selects the data to keep.
type Store struct {
	Samples     Samples `key:"samples"`
	TensorBoard string  `key:"tensorboard"` // folder for events, or none
}

// Samples are the shares, 0 to 1, of completions whose text is kept.
type Samples struct {
	Train float64 `key:"train"`
	Eval  float64 `key:"eval"`
}

// Sandbox configures where programs written by the model run.
type Sandbox struct {
	Require string `key:"require"` // a sandbox.Level
	Compile int    `key:"compile"` // seconds
}

// Verify selects what a run checks about itself while training.
type Verify struct {
	LogProbRate float64 `key:"logprob_rate"`
	ParamEvery  int     `key:"param_every"`
}

// Control ends a run early.
type Control struct {
	StopIf []string `key:"stop_if"` // see StopConditions
}

// Notify says whom to tell that a run ended.
type Notify struct {
	Command []string `key:"command"`
	Webhook string   `key:"webhook"` // a URL, env:NAME or None
}

// Compute selects the device and how much of it to use.
type Compute struct {
	Device           string `key:"device"`
	Numerics         string `key:"numerics"`
	Threads          int    `key:"threads"`
	MicroBatchTokens int    `key:"micro_batch_tokens"`
	Recompute        bool   `key:"recompute"`
	Offload          string `key:"offload"`
	TensorParallel   int    `key:"tensor_parallel"`
	RolloutTensor    int    `key:"rollout_tensor_parallel"`
	RolloutRanks     int    `key:"rollout_ranks"`
}

// SampleTensor returns how many ranks share the products of sampling.
func (c Compute) SampleTensor() int {
	if c.RolloutTensor == 0 {
		return c.TensorParallel
	}
	return c.RolloutTensor
}

// Cluster says how a batch system executes runs.
type Cluster struct {
	Spool string `key:"spool"`
	Store string `key:"store"`
	Slurm Slurm  `key:"slurm"`

	Kubernetes Kubernetes `key:"kubernetes"`
	SSH        SSH        `key:"ssh"`
}

// SSH holds what hosts have that ssh reaches.
type SSH struct {
	Dir string `key:"dir"`
}

// Slurm holds the options of sbatch.
type Slurm struct {
	Partition    string   `key:"partition"`
	Account      string   `key:"account"`
	QOS          string   `key:"qos"`
	Time         string   `key:"time"`
	Gres         string   `key:"gres"`
	Mem          string   `key:"mem"`
	Exclude      string   `key:"exclude"`
	RanksPerNode int      `key:"ranks_per_node"`
	MPI          string   `key:"mpi"`
	CPUs         int      `key:"cpus"`
	SignalBefore int      `key:"signal_before"` // seconds
	MaxRestarts  int      `key:"max_restarts"`
	MaxParallel  int      `key:"max_parallel"`
	Extra        []string `key:"extra"`
	Prolog       []string `key:"prolog"`
}

// Kubernetes holds what the pods of runs have.
type Kubernetes struct {
	Image       string `key:"image"`
	Claim       string `key:"claim"`
	Mount       string `key:"mount"`
	Namespace   string `key:"namespace"`
	CPUs        int    `key:"cpus"`
	GPUs        int    `key:"gpus"`
	Memory      string `key:"memory"`
	MaxRestarts int    `key:"max_restarts"`
	MaxParallel int    `key:"max_parallel"`
}
