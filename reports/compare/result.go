package compare

// Result is a comparison. No number in it is NaN or infinite: what is not known is
// nil. Slices named for arms are in the order of Arms.
type Result struct {
	Arms          []ArmResult   `json:"arms"`
	Baseline      int           `json:"baseline"` // arm that the others are compared with; -1: all pairs
	Comparability Comparability `json:"comparability"`
	Suites        []Suite       `json:"suites"` // by name
	Across        *Across       `json:"across"` // nil: no suite has scores of problems
	Cost          []Cost        `json:"cost"`   // of arms
	Tests         int           `json:"tests"`  // p values that p_holm corrects for
	Alpha         float64       `json:"alpha"`  // of verdicts
	Level         float64       `json:"level"`  // coverage of intervals
	Draws         int           `json:"draws"`  // of the bootstrap of pass@k of arms with fewer than MinSeeds runs
	Notes         []string      `json:"notes"`  // what a reader must know to read the numbers rightly
}

// ArmResult is an arm as it was compared.
type ArmResult struct {
	Label string   `json:"label"` // unique in the comparison
	Name  string   `json:"name"`  // of its newest run
	Task  string   `json:"task"`
	Algo  string   `json:"algo"`
	Model string   `json:"model"`
	XIDs  []string `json:"xids"` // hexadecimal, newest first; one, unless differences within the arm were waived
	Runs  []Run    `json:"runs"` // that count, by seed
	// Treatment is the arm's value of each difference of class Treatment; empty
	// where the key has no effect in this arm.
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

// Comparability says whether the arms may be compared, and what differs.
type Comparability struct {
	OK          bool         `json:"ok"`          // nothing is Refused
	Differences []Difference `json:"differences"` // by class, then in the order of configurations
	Excluded    []Excluded   `json:"excluded"`
	Vary        []string     `json:"vary"`  // globs of the treatment
	Allow       []string     `json:"allow"` // waived keys, each of which differs
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

// Class says how a difference counts.
type Class string

// The classes, in the order of Comparability.Differences.
const (
	Protocol   Class = "protocol"   // how results are measured: must be equal
	Controlled Class = "controlled" // must be equal
	Flagged    Class = "flagged"    // may differ, and is said
	Treatment  Class = "treatment"  // what the comparison is about
)

// Difference is something in which arms, or the runs of an arm, differ. Keys are
// those of configurations (train.optim.lr) and
//
//	data.problems/train       digest of a split's problems, by its role
//	weights.start             digest of the weights that training starts from
//	code.train                digest of a kind of stage's sources
//	suite.countdown/test      digest of a suite's problems
//	numerics                  class of machines within which bits agree
type Difference struct {
	Key    string   `json:"key"`
	Class  Class    `json:"class"`
	Values []string `json:"values"` // of arms; several of one arm are joined by " | ", empty: the key has no effect
	Within bool     `json:"within"` // runs of one arm differ in it
	Waived bool     `json:"waived"` // by Options.Allow
}

// Refused reports whether the difference forbids comparing.
func (d *Difference) Refused() bool {
	return !d.Waived && (d.Class == Protocol || d.Class == Controlled || d.Class == Treatment && d.Within)
}

// Excluded is a run that does not count.
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
	// SeedVariance is true if every arm has at least MinSeeds runs, so that the
	// intervals hold for other training seeds too.
	SeedVariance bool     `json:"seed_variance"`
	Metrics      []Metric `json:"metrics"` // in the order of evaluations
	Curves       []Curve  `json:"curves"`  // pass@k against k, of arms
}

// Metric returns the metric of that name; nil if there is none.
func (s *Suite) Metric(name string) *Metric {
	for i := range s.Metrics {
		if s.Metrics[i].Name == name {
			return &s.Metrics[i]
		}
	}
	return nil
}

// Metric is the comparison by one metric.
type Metric struct {
	Name       string     `json:"metric"`     // "pass@1"
	Unit       string     `json:"unit"`       // "share", "tokens", …
	Direction  string     `json:"direction"`  // "up", "down", or "" for what is neither better nor worse
	Definition string     `json:"definition"` // the value of a problem, in one sentence
	Tested     bool       `json:"tested"`     // has p values and verdicts
	ByRun      bool       `json:"by_run"`     // has no scores of problems: n is runs
	Items      int        `json:"items"`      // problems that have a value in every run; 0 if ByRun
	Arms       []Estimate `json:"arms"`
	Pairs      []Pair     `json:"pairs"` // as in Result.Baseline
}

// Estimate is a metric of an arm.
type Estimate struct {
	Mean     *float64    `json:"mean"` // over problems and runs
	Interval *Interval   `json:"interval"`
	Seeds    []SeedValue `json:"seeds"` // of the arm's runs
	// Start is the mean before training under the same protocol, Gain is Mean - Start.
	Start         *float64  `json:"start"`
	StartInterval *Interval `json:"start_interval"` // over problems
	Gain          *float64  `json:"gain"`
}

// SeedValue is a metric of one run.
type SeedValue struct {
	Seed  int64    `json:"seed"`
	RID   string   `json:"run"`
	Value *float64 `json:"value"` // mean over the problems that have a value
}

// Interval is an interval at Result.Level.
type Interval struct {
	Lo     float64      `json:"lo"`
	Hi     float64      `json:"hi"`
	Kind   IntervalKind `json:"kind"`
	Method string       `json:"method"` // "t"; "bootstrap" for pass@k of an arm with few runs, "wilson" for right or wrong
}

// IntervalKind says what an interval took into account.
type IntervalKind string

// The kinds of intervals.
const (
	TwoLevel  IntervalKind = "seeds and problems" // both, crossed
	OverItems IntervalKind = "problems"           // clusters of problems: holds for these runs only
	OverSeeds IntervalKind = "seeds"              // over runs alone
)

// Pair is arm A minus arm B by one metric.
type Pair struct {
	A        int       `json:"a"` // positions in Result.Arms
	B        int       `json:"b"`
	Delta    *float64  `json:"delta"` // mean of A - mean of B
	Interval *Interval `json:"interval"`
	SE       *float64  `json:"se"`
	P        *float64  `json:"p"`      // nil unless tested
	Test     Test      `json:"test"`   // that P is of; "" without P
	Exact    bool      `json:"exact"`  // P counted all sign patterns
	PHolm    *float64  `json:"p_holm"` // nil unless tested
	MDE      *float64  `json:"mde"`    // nil also if there is no spread at all
	Margin   *float64  `json:"margin"` // smallest difference worth finding: 0.05 of a share, else a tenth of the larger mean
	Effect   *float64  `json:"effect"` // mean / standard deviation of the differences; nil without spread
	// PairedSeeds is true if both arms have runs of the same seeds.
	PairedSeeds bool    `json:"paired_seeds"`
	Verdict     Verdict `json:"verdict"` // "" unless tested
}

// Test names a test.
type Test string

// The tests.
const (
	TTest     Test = "t"          // of the interval: P is 1 - the level at which it just touches zero
	SignFlips Test = "sign flips" // of the problems' differences, where an arm has few runs
)

// Verdict is what a tested difference comes to. With α of the options and the margin
// of the metric (Pair.Margin):
//
//	better, worse        p Holm ≤ α and the interval leaves zero out: what arm A is;
//	                     which of the two follows from the metric's direction
//	higher, lower        the same, of a metric that has no direction
//	no difference shown  otherwise, if MDE ≤ margin and |Δ| ≤ margin: a difference
//	                     that matters would have been found 80 % of the time
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

// Point is pass@k with its interval and, where there is one, the value before
// training.
type Point struct {
	K        int       `json:"k"`
	Mean     *float64  `json:"mean"`
	Interval *Interval `json:"interval"`
	Start    *float64  `json:"start"`
}

// Cost is what an arm's runs took: means over its runs. Seconds are as measured,
// also for stages whose results a run took over from another one.
type Cost struct {
	Steps     float64 `json:"steps"`
	Tokens    float64 `json:"tokens"`     // sampled in training
	TrainS    float64 `json:"train_s"`    // seconds of the train stage
	UpstreamS float64 `json:"upstream_s"` // seconds of the stages before it, which arms may share
	EvalS     float64 `json:"eval_s"`     // seconds of the evaluations
	Machine   string  `json:"machine"`    // devices of the runs
}
