package rl

// Estimator is a named advantage estimator. It declares what it reads in addition to the
// scores of a step's completions, so the loop can provide that without knowing names.
type Estimator struct {
	Name         string // verl's, where it has one
	Groups       bool   // compares the completions of a problem: a single one is meaningless
	Values       bool   // reads Graded.Value: needs a critic
	Greedy       bool   // reads Graded.Baseline: the score of a greedy completion
	Tracks       bool   // reads Graded.Baseline: the tracked value of the problem; one completion each
	Components   bool   // reads Graded.Components
	SumPiSquared bool   // reads Graded.SumPiSquared
	Process      bool   // reads Graded.Process: needs an implicit process reward model and the reference
	Turns        bool   // reads Graded.Turns: needs an agent
	Steps        bool   // reads Graded.Steps and Outcome: needs rewards of steps
	Tokens       bool   // reads Graded.Reward: it counts at which token a reward stands
	Settings     []Setting
	// Estimate sets Adv and Ret of s. It may overwrite Score.
	Estimate func(s *Graded, c Settings) error
	// Redraw sets the weights [B] for resampling the rows with replacement, and reports
	// whether the loop resamples; nil: never.
	Redraw func(weight []float64, score []float32, c Settings) bool
}

// Graded are a step's completions in the form estimators read, B rows with N tokens.
type Graded struct {
	*Batch[float32]             // its LogProb is not read
	Group           []int       // [B] number of the problem
	Reward          []float32   // [N] token rewards
	Score           []float32   // [B] their sums by row, with what turns without tokens earned
	Components      [][]float32 // [K][B] parts of the scores; nil unless read
	Baseline        []float32   // [B] scores of greedy completions, or tracked values; nil unless read
	Value           []float32   // [N] the critic's; nil unless read
	SumPiSquared    []float32   // [N] Σ_v π(v)² of the old policy; nil unless read
	Process         []float32   // [N] ImplicitRewards; nil unless read
	Turns           *Turns      // nil unless read
	Steps           *Steps      // nil unless read
	Outcome         []float32   // [B] scores less what steps earned; nil unless read
	Longest         int         // tokens that a row may have at most
	Ret             []float32   // [N] an output, like Adv
}

// ofRows makes the Estimate of an estimator that gives each row one advantage, replacing
// its score.
func ofRows(advantage func(s *Graded, c Settings) error) func(*Graded, Settings) error {
	return func(s *Graded, c Settings) error {
		if err := advantage(s, c); err != nil {
			return err
		}
		Spread(s.Adv, s.Score, s.Mask, s.Rows)
		copy(s.Ret, s.Adv)
		return nil
	}
}

// scoreEstimator puts the reward itself on every token.
func scoreEstimator() Estimator {
	return Estimator{Name: "score", Estimate: ofRows(func(*Graded, Settings) error { return nil })}
}
