package rl

// PolicyLoss is a policy loss by name.
type PolicyLoss struct {
	Name string
	// Whole says that it stands alone: there is no entropy bonus and no KL loss beside
	// it, because it has its own or none.
	Whole bool
	// Bypass is its form on rollouts of another policy; 0 is none.
	Bypass BypassLoss
	// Reads says which models it needs beside the policy; nil is none.
	Reads    func(c LossSettings) (reference, logZ bool)
	Settings []string
	// Start begins a mini-batch.
	Start func(c LossSettings) LossRun
}

// LossSettings are all settings of policy losses; PolicyLoss.Settings says who reads
// which, by the names of the configuration under algo.
type LossSettings struct {
	// Clip holds the bounds of the losses that have some: of the ratio, in GMPO of
	// its logarithm, in DPPO of probabilities, with Dual for the greatest ratio.
	Clip           Clip          // clip.low, clip.high, clip.dual
	TauPos, TauNeg float64       // sapo.tau_pos, sapo.tau_neg
	ClipCov        ClipCovConfig // cov.ratio, cov.low, cov.high
	KLCovRatio     float64       // cov.ratio
	KLCovCoef      float64       // cov.kl_weight
	DROBeta        float64       // dro.beta
	Flow           FlowRLConfig  // flowrl
	EntropyCoef    float64       // entropy_coef: read by Megatron's alone, a term of its own beside others
	KLCoef         float64       // kl.loss_coef: the same
}

// LossRun is a policy loss over one mini-batch, whose micro-batches it sees in order.
type LossRun struct {
	// Pick sets picked [N] for the tokens of the whole mini-batch that the loss treats
	// apart, under the parameters before its first micro-batch. key draws a random
	// number for each token. Nil if the loss picks none.
	Pick func(picked []bool, mini *Batch[float32], key func() []uint64)
	// Add adds the gradient of a micro-batch.
	Add func(m *Micro)
	// Metrics are of all that was added.
	Metrics func() []Metric
}

// Micro is a micro-batch with what a loss sets.
type Micro struct {
	*Batch[float32]
	Of       int       // rows of the mini-batch, the nominal ones
	Picked   []bool    // [N] by LossRun.Pick
	LogZ     []float32 // [B]; nil unless read
	DLogProb []float32 // [N] added to
	DLogZ    []float32 // [B] added to
}

// tokenLoss is a loss whose statistics are PolicyStats and that picks nothing.
func tokenLoss(name string, settings []string, add func(m *Micro, c LossSettings, s *PolicyStats)) PolicyLoss {
	return PolicyLoss{Name: name, Settings: settings, Start: func(c LossSettings) LossRun {
		s := new(PolicyStats)
		return LossRun{Add: func(m *Micro) { add(m, c, s) }, Metrics: s.Metrics}
	}}
}
