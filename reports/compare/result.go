package compare

import "slices"

// Result is a comparison. Its numbers are finite; unknown ones are nil. Slices named for
// arms follow the order of Arms.
type Result struct {
	Arms          []ArmResult   `json:"arms"`
	Baseline      int           `json:"baseline"` // the arm that others are compared with; -1: all pairs
	Comparability Comparability `json:"comparability"`
	Suites        []Suite       `json:"suites"` // by name
	Across        *Across       `json:"across"` // nil: no suite has per-problem scores
	Cost          []Cost        `json:"cost"`   // of arms
	Tests         int           `json:"tests"`  // p values that p_holm corrects for
	Alpha         float64       `json:"alpha"`  // of verdicts
	Level         float64       `json:"level"`  // coverage of intervals
	Draws         int           `json:"draws"`  // of the bootstrap of pass@k of arms with fewer than MinSeeds runs
	Notes         []string      `json:"notes"`  // needed to read the numbers correctly
}

// ArmResult describes a compared arm.
type ArmResult struct {
	Label string   `json:"label"` // unique in the comparison
	Name  string   `json:"name"`  // of its newest run
	Task  string   `json:"task"`
	Algo  string   `json:"algo"`
	Model string   `json:"model"`
	XIDs  []string `json:"xids"` // hexadecimal, newest first; one, unless differences within the arm were waived
	Runs  []Run    `json:"runs"` // that count, by seed
	// Treatment maps each difference of class Treatment to the arm's value, empty if the
	// key has no effect in this arm.
	Treatment map[string]string `json:"treatment"`
}

// Run names a run of an arm.
type Run struct {
	ID       int64  `json:"-"`   // row in the store
	RID      string `json:"run"` // hexadecimal
	Name     string `json:"name"`
	Seed     int64  `json:"seed"`
	Status   string `json:"status"`
	Numerics string `json:"numerics"`
	Steps    int64  `json:"steps"`
}

// Comparability reports whether the arms may be compared, and lists the differences.
type Comparability struct {
	OK          bool         `json:"ok"`          // nothing is Refused
	Differences []Difference `json:"differences"` // by class, then in the order of configurations
	Excluded    []Excluded   `json:"excluded"`
	Vary        []string     `json:"vary"`  // globs of the treatment
	Allow       []string     `json:"allow"` // waived keys; each differs
}

// Waived lists the keys that differ and were waived.
func (c *Comparability) Waived() []Difference {
	var list []Difference
	for _, d := range c.Differences {
		if d.Waived {
			list = append(list, d)
		}
	}
	return list
}

// Class determines how a difference counts.
type Class string

// The classes, in the order of Comparability.Differences.
const (
	Protocol   Class = "protocol"   // how results are measured; must be equal
	Controlled Class = "controlled" // must be equal
	Flagged    Class = "flagged"    // may differ, but is reported
	Treatment  Class = "treatment"  // intended difference
)

// Difference is a difference between arms, or between runs of an arm. Keys are
// configuration keys (train.optim.lr) and
//
//	data.problems/train       digest (SHA-256) of a split's problems, by role
//	weights.start             digest of the initial weights of training
//	code.train                digest of the sources of a kind of stage
//	suite.countdown/test      digest of a suite's problems
//	numerics                  class of machines that compute equal bits
type Difference struct {
	Key    string   `json:"key"`
	Class  Class    `json:"class"`
	Values []string `json:"values"` // of arms; several of one arm are joined by " | ", empty: the key has no effect
	Within bool     `json:"within"` // runs of one arm differ in it
	Waived bool     `json:"waived"` // by Options.Allow
}

// Refused reports whether the difference prevents the comparison.
func (d *Difference) Refused() bool {
	return !d.Waived && (d.Class == Protocol || d.Class == Controlled || d.Class == Treatment && d.Within)
}

// Excluded is a run left out of the comparison.
type Excluded struct {
	Run
	Arm    int    `json:"arm"`
	Reason string `json:"reason"` // "interrupted at step 12 of 40"
}

// Suite is the comparison on one set of problems.
type Suite struct {
	Name     string `json:"suite"`    // "countdown/test"
	Digest   string `json:"digest"`   // of the problems
	Protocol string `json:"protocol"` // digest of the evaluation's settings
	Samples  int    `json:"samples"`  // per problem
	Items    int    `json:"items"`    // problems
	Clusters int    `json:"clusters"`
	// SeedVariance is true if every arm has at least MinSeeds runs, so that intervals
	// cover other training seeds too.
	SeedVariance bool     `json:"seed_variance"`
	Metrics      []Metric `json:"metrics"` // in the order of evaluations
	Curves       []Curve  `json:"curves"`  // pass@k against k, of arms
}

// Metric returns the metric with that name, or nil.
func (s *Suite) Metric(name string) *Metric {
	for i := range s.Metrics {
		if s.Metrics[i].Name == name {
			return &s.Metrics[i]
		}
	}
	return nil
}

// Metric is the comparison on one metric.
type Metric struct {
	Name       string     `json:"metric"`     // "pass@1"
	Unit       string     `json:"unit"`       // "share", "tokens", …
	Direction  string     `json:"direction"`  // better: "up" or "down", "" if neither
	Definition string     `json:"definition"` // the value of a problem, in one sentence
	Tested     bool       `json:"tested"`     // has p values and verdicts
	ByRun      bool       `json:"by_run"`     // no per-problem scores: n counts runs
	Items      int        `json:"items"`      // problems with a value in every run; 0 if ByRun
	Arms       []Estimate `json:"arms"`
	Pairs      []Pair     `json:"pairs"` // as in Result.Baseline
}

// Kinds lists what the intervals of arms and pairs cover; several where only some arms have
// MinSeeds runs.
func (m *Metric) Kinds() (arms, pairs []IntervalKind) {
	for i := range m.Arms {
		arms = addKind(arms, m.Arms[i].Interval)
	}
	for i := range m.Pairs {
		pairs = addKind(pairs, m.Pairs[i].Interval)
	}
	return arms, pairs
}

func addKind(list []IntervalKind, iv *Interval) []IntervalKind {
	if iv == nil || slices.Contains(list, iv.Kind) {
		return list
	}
	return append(list, iv.Kind)
}

// Estimate is an arm's value of a metric.
type Estimate struct {
	Mean     *float64    `json:"mean"` // over problems and runs
	Interval *Interval   `json:"interval"`
	Seeds    []SeedValue `json:"seeds"` // of the arm's runs
	// Start is the mean before training under the same protocol; Gain = Mean - Start.
	Start         *float64  `json:"start"`
	StartInterval *Interval `json:"start_interval"` // over problems
	Gain          *float64  `json:"gain"`
}

// SeedValue is one run's value of a metric.
type SeedValue struct {
	Seed  int64    `json:"seed"`
	RID   string   `json:"run"`
	Value *float64 `json:"value"` // mean over the problems with a value
}

// Interval is an interval at Result.Level.
type Interval struct {
	Lo     float64      `json:"lo"`
	Hi     float64      `json:"hi"`
	Kind   IntervalKind `json:"kind"`
	Method string       `json:"method"` // "t"; "bootstrap" for pass@k of an arm with few runs, "wilson" for right or wrong
}

// Reach returns the distance from a mean to the farther end of its interval, so that mean ± reach
// covers all of it: an interval of a share is cut at 0 and 1, or lies askew.
func (iv *Interval) Reach(mean float64) float64 { return max(iv.Hi-mean, mean-iv.Lo) }

// IntervalKind names the sources of variation that an interval covers.
type IntervalKind string

// The kinds of intervals.
const (
	TwoLevel  IntervalKind = "seeds and problems" // both, crossed
	OverItems IntervalKind = "problems"           // clusters of problems, for these runs only
	OverSeeds IntervalKind = "seeds"              // over runs alone
)

// Pair is arm A minus arm B on one metric.
type Pair struct {
	A        int       `json:"a"` // positions in Result.Arms
	B        int       `json:"b"`
	Delta    *float64  `json:"delta"` // mean of A - mean of B
	Interval *Interval `json:"interval"`
	SE       *float64  `json:"se"`
	P        *float64  `json:"p"`      // nil unless tested
	Test     Test      `json:"test"`   // that gave P; "" without P
	Exact    bool      `json:"exact"`  // P enumerates all sign patterns
	PHolm    *float64  `json:"p_holm"` // nil unless tested
	MDE      *float64  `json:"mde"`    // minimum detectable effect; nil also without spread
	Margin   *float64  `json:"margin"` // smallest difference worth finding: 0.05 of a share, else a tenth of the larger mean
	Effect   *float64  `json:"effect"` // mean / standard deviation of the differences; nil without spread
	// PairedSeeds is true if both arms have the same seeds.
	PairedSeeds bool    `json:"paired_seeds"`
	Verdict     Verdict `json:"verdict"` // "" unless tested
}

// Test names a test.
type Test string

// The tests.
const (
	TTest     Test = "t"          // as in the interval: P = 1 - the level at which the interval touches zero
	SignFlips Test = "sign flips" // of the problems' differences, if an arm has few runs
)

// Verdict classifies a tested difference. With α from the options and the metric's margin
// (Pair.Margin):
//
//	better, worse        arm A's side, if p Holm ≤ α and the interval, if there is one,
//	                     excludes zero; the metric's direction decides which
//	higher, lower        the same for a metric without a direction
//	no difference shown  otherwise, if MDE ≤ margin and |Δ| ≤ margin: a difference
//	                     that matters would have given p ≤ 0.05, before Holm's
//	                     correction, 80 % of the time
//	underpowered         otherwise: there may be one
type Verdict string

// The verdicts.
const (
	Better       Verdict = "better"
	Worse        Verdict = "worse"
	Higher       Verdict = "higher"
	Lower        Verdict = "lower"
	NoDifference Verdict = "no difference shown"
	Underpowered Verdict = "underpowered"
)

// Curve is pass@k of an arm against k.
type Curve struct {
	Arm    int     `json:"arm"`
	Points []Point `json:"points"` // by ascending k
}

// Point is pass@k with its interval and the value before training, if known.
type Point struct {
	K        int       `json:"k"`
	Mean     *float64  `json:"mean"`
	Interval *Interval `json:"interval"`
	Start    *float64  `json:"start"`
}

// Cost holds an arm's costs, means over its runs. A reused stage counts with the seconds
// of its original execution.
type Cost struct {
	Steps     float64 `json:"steps"`
	Tokens    float64 `json:"tokens"`     // sampled in training
	TrainS    float64 `json:"train_s"`    // seconds of the train stage
	UpstreamS float64 `json:"upstream_s"` // seconds of earlier stages, which arms may share
	EvalS     float64 `json:"eval_s"`     // seconds of the evaluations
	Machine   string  `json:"machine"`    // devices of the runs
}
