package config

import "exp/train/rl"

// Algo is the learning algorithm. Kind is already expanded: the other fields hold what
// it sets.
type Algo struct {
	Kind      string `key:"kind"`
	Advantage string `key:"advantage"` // unless Loss computes its own
	Loss      string `key:"loss"`
	Epochs    int    `key:"epochs"`
	// Settings holds what the estimator and the loss read, declared in package rl; null
	// is +Inf.
	Settings          rl.Settings `key:"-"`
	VarianceProxies   bool        `key:"variance_proxies"`
	Critic            Critic      `key:"critic"`                     // Advantage has a critic
	Prime             Prime       `key:"prime"`                      // Advantage has a process reward model
	KL                KL          `key:"kl"`                         // Loss is not "flowrl"
	Distill           Distill     `key:"distill"`                    // Loss is not "flowrl"
	Reference         string      `key:"reference"`                  // something reads the reference policy
	Teachers          []string    `key:"teachers"`                   // the same
	TeacherSources    []string    `key:"teacher_sources"`            // Teachers is not empty
	TeacherKey        string      `key:"teacher_key"`                // the same
	ReferenceEvery    int         `key:"reference_every"`            // Reference is StartWeights
	ReferenceMix      float64     `key:"reference_mix"`              // ReferenceEvery > 0
	ReferenceResets   bool        `key:"reference_resets_optimizer"` // the same
	EntropyCoef       float64     `key:"entropy_coef"`               // Loss is not "flowrl"
	Aggregation       string      `key:"aggregation"`                // Loss is a sum over tokens
	LossScaleFactor   float64     `key:"loss_scale_factor"`          // Aggregation is "seq-mean-token-sum-norm"
	FilterGroups      Filter      `key:"filter_groups"`
	Overlong          Overlong    `key:"overlong"`
	MaskTruncated     bool        `key:"mask_truncated"`
	TopEntropy        float64     `key:"top_entropy"`
	OffPolicyBound    float64     `key:"off_policy_bound"`
	SFTWeight         float64     `key:"sft_weight"`
	RolloutCorrection Correction  `key:"rollout_correction"`

	Demonstrations Demonstrations `key:"demonstrations"`
}

// Demonstrations are targets of problems, among the completions that the policy learns from.
type Demonstrations struct {
	Weight  float64 `key:"weight"`
	Shaping float64 `key:"shaping"` // Weight > 0
}

// Filter selects the groups to train on.
type Filter struct {
	Metric     string  `key:"metric"`
	MaxBatches int     `key:"max_batches"` // Metric is not "none"
	Spread     float64 `key:"spread"`      // Metric is a reward
	Low        float64 `key:"low"`         // Metric is "acc"
	High       float64 `key:"high"`        // Metric is "acc"
	Complete   bool    `key:"complete"`    // Metric is not "none"
}

// Overlong is the penalty for completions near the length limit.
type Overlong struct {
	Buffer  float64 `key:"buffer"`
	Penalty float64 `key:"penalty"` // Buffer > 0
}

// Correction corrects rollouts of another policy. Preset is already expanded.
type Correction struct {
	Preset       string   `key:"preset"`
	Mode         string   `key:"mode"`
	Weights      string   `key:"weights"`
	WeightLow    float64  `key:"weight_low"`  // Weights is not "none"
	WeightHigh   float64  `key:"weight_high"` // Weights is not "none"
	Normalize    bool     `key:"normalize"`   // Weights is not "none"
	Reject       []string `key:"reject"`
	RejectBounds []string `key:"reject_bounds"` // Reject is not empty
}

// Critic configures how the value head learns.
type Critic struct {
	Optim Optim `key:"optim"`
}

// Prime configures how the process reward model learns.
type Prime struct {
	Model            string `key:"model"`
	PromptsPerUpdate int    `key:"prompts_per_update"`
	Optim            Optim  `key:"optim"`
}

// HasModel reports whether the process reward model starts from other weights than training.
func (p *Prime) HasModel() bool { return p.Model != "" && p.Model != StartWeights }

// KL is the penalty for leaving the reference, in the loss and in the reward.
type KL struct {
	LossCoef        float64 `key:"loss_coef"`
	LossEstimator   string  `key:"loss_estimator"` // LossCoef > 0
	LossWeighted    bool    `key:"loss_weighted"`  // LossCoef > 0
	RewardCoef      float64 `key:"reward_coef"`
	RewardEstimator string  `key:"reward_estimator"` // RewardCoef > 0
	Controller      string  `key:"controller"`       // RewardCoef > 0
	Target          float64 `key:"target"`           // Controller is "adaptive"
	Horizon         int     `key:"horizon"`          // Controller is "adaptive"
}

// Distill lets the reference policy teach.
type Distill struct {
	Coef  float64  `key:"coef"`
	TopK  int      `key:"top_k"` // Coef > 0
	Max   *float64 `key:"max"`   // Coef > 0; nil: no bound
	Floor *float64 `key:"floor"` // TopK > 0; nil: none
}

// IsTaught reports whether another model than the one that training starts from is the reference policy of some
// problems at least.
func (a *Algo) IsTaught() bool { return a.HasTeacher() || len(a.Teachers) > 0 }

// HasTeacher reports whether the reference policy is another model than the one that training starts from.
func (a *Algo) HasTeacher() bool { return a.Reference != "" && a.Reference != StartWeights }
