package rl

// Estimator is an advantage estimator by name. What it reads beside the scores of a
// step's completions is said here, so that the loop can provide it and no other place
// knows names.
type Estimator struct {
	Name         string // verl's, where it has one
	Groups       bool   // compares the completions of a problem: one alone says nothing
	Values       bool   // reads Graded.Value: needs a critic
	Greedy       bool   // reads Graded.Baseline
	Components   bool   // reads Graded.Components
	SumPiSquared bool   // reads Graded.SumPiSquared
	Settings     []string
	// Estimate sets Adv and Ret of s. It may overwrite Score.
	Estimate func(s *Graded, c EstimatorSettings) error
}

// Graded are the completions of a step as estimators read them, B rows with N tokens.
type Graded struct {
	*Batch[float32]             // its LogProb is not read
	Group           []int       // [B] number of the problem
	Reward          []float32   // [N] token rewards
	Score           []float32   // [B] their sums by row
	Components      [][]float32 // [K][B] parts of the scores; nil unless read
	Baseline        []float32   // [B] scores of the problems' greedy completions; nil unless read
	Value           []float32   // [N] the critic's; nil unless read
	SumPiSquared    []float32   // [N] Σ_v π(v)² of the old policy; nil unless read
	Ret             []float32   // [N] set, as is Adv
}

// EstimatorSettings are all settings of estimators; Estimator.Settings says who reads
// which, by the names of the configuration under algo.
type EstimatorSettings struct {
	Gamma, Lambda    float64   // gamma, lambda
	ScaleStd         bool      // scale_std: divide by the group's standard deviation
	ComponentWeights []float64 // gdpo.weights: [K], or nil for 1 each
	KeepTail         bool      // token_baseline.keep_tail
}

// ofRows is the Estimate of an estimator that gives each row one advantage, set in
// place of its score.
func ofRows(advantage func(s *Graded, c EstimatorSettings) error) func(*Graded, EstimatorSettings) error {
	return func(s *Graded, c EstimatorSettings) error {
		if err := advantage(s, c); err != nil {
			return err
		}
		Spread(s.Adv, s.Score, s.Mask, s.Rows)
		copy(s.Ret, s.Adv)
		return nil
	}
}

// scoreEstimator is the reward itself, on every token.
func scoreEstimator() Estimator {
	return Estimator{Name: "score", Estimate: ofRows(func(*Graded, EstimatorSettings) error { return nil })}
}
