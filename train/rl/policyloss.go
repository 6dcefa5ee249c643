package rl

// PolicyLoss is a named policy loss.
type PolicyLoss struct {
	Name string
	// Whole says that the loop adds no entropy bonus and no KL loss, because the loss has
	// its own or none.
	Whole bool
	// ByTokens says that its terms are tokens, which the batch's weights scale one by one.
	ByTokens bool
	// OwnMean says that it combines its terms itself, not by Coef.
	OwnMean bool
	// Bypass is its form on rollouts of another policy; 0 means none.
	Bypass   BypassLoss
	Settings []Setting // the settings it reads
	// Advantages returns the estimator that the loss brings, with its settings; no other
	// can be chosen. nil: the configured one applies.
	Advantages func(c Settings) (Estimator, Settings)
	// Reads says which models it needs in addition to the policy; nil means none.
	Reads func(c Settings) (reference, logZ bool)
	// Start begins a mini-batch.
	Start func(c Settings, o Others) LossRun
}

// Others are the coefficients of the terms that the loop adds to a policy loss. A whole
// loss may use them itself.
type Others struct {
	KL, Entropy float64
}

// LossRun is a policy loss over one mini-batch, whose micro-batches it receives in order.
type LossRun struct {
	// Pick sets picked [N] for the tokens of the whole mini-batch that the loss treats
	// differently, under the parameters before its first micro-batch. key draws a random
	// number for each token. Nil if the loss picks none.
	Pick func(picked []bool, mini *Batch[float32], key func() []uint64)
	// Constants returns what the loss takes for constant of each row and its group, under the parameters before
	// the mini-batch's first micro-batch. group [B] numbers the rows' problems. Nil if the loss needs none.
	Constants func(mini *Batch[float32], group []int) RowConstants
	// Add adds the gradient of a micro-batch.
	Add func(m *Micro)
	// Metrics returns the metrics of everything added.
	Metrics func() []Metric
}

// Micro is a micro-batch with the outputs of a loss.
type Micro struct {
	*Batch[float32]
	RowConstants           // set by LossRun.Constants
	Of           int       // nominal rows of the mini-batch
	Picked       []bool    // [N] set by LossRun.Pick
	LogZ         []float32 // [B]; nil unless read
	DLogProb     []float32 // [N] added to
	DLogZ        []float32 // [B] added to
}

// RowConstants are what a loss takes for constant of rows [B]. A loss sets those that it reads; others are nil.
type RowConstants struct {
	Means []GroupMean  // of GVPO and FlowRL
	Pairs []Preference // of DPO
}

// Part returns those of rows lo to hi.
func (x RowConstants) Part(lo, hi int) RowConstants {
	if x.Means != nil {
		x.Means = x.Means[lo:hi]
	}
	if x.Pairs != nil {
		x.Pairs = x.Pairs[lo:hi]
	}
	return x
}

// tokenLoss is a loss by tokens that picks nothing and whose statistics are PolicyStats.
func tokenLoss(name string, settings []Setting, add func(m *Micro, c Settings, s *PolicyStats)) PolicyLoss {
	return PolicyLoss{Name: name, ByTokens: true, Settings: settings, Start: func(c Settings, _ Others) LossRun {
		s := new(PolicyStats)
		return LossRun{Add: func(m *Micro) { add(m, c, s) }, Metrics: s.Metrics}
	}}
}
