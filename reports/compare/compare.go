package compare

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"exp/experiments/store"
)

// Options configures Compare. The zero value is a good default.
type Options struct {
	Vary     []string // globs of keys that belong to the treatment, in addition to the runs' compare.vary
	Allow    []string // keys whose difference is waived
	Suites   []string // names, with or without the task: "test", "countdown/test"; empty: all
	Metrics  []string // metrics to test; empty: defaultTests
	K        []int    // of pass@k; empty: the protocol's
	Alpha    float64  // 0 is 0.05
	Draws    int      // of the bootstrap of pass@k of arms with fewer than MinSeeds runs; 0 is DefaultDraws
	Baseline bool     // compare the others with the last arm; otherwise compare all pairs
}

const (
	// DefaultDraws is the number of resamples for an interval. Its ends are then accurate
	// to 3 % of its half width (one standard error of the 2.5 % quantile).
	DefaultDraws = 5_000
	// MinSeeds is the number of runs an arm needs for an interval over seeds.
	MinSeeds = 3
	// level is the coverage of intervals.
	level = 0.95
)

// comparison is the state of one call of Compare.
type comparison struct {
	*reader
	o      Options
	arms   []*side
	suites []*measured
	tables []*table // of suites
	result Result
}

// side is an arm with its records from the store.
type side struct {
	label    string
	runs     []*record // that count, by seed
	excluded []Excluded
}

// Compare compares two or more arms. The result keeps their order, which gives
// differences their sign; the order of an arm's runs does not matter. The error is a
// *NotComparableError, *IncompleteArmError, *PairingError or *OptionError, or comes from
// the store.
func Compare(ctx context.Context, db *store.DB, arms []Arm, o Options) (*Result, error) {
	c, err := begin(ctx, db, arms, o)
	if err != nil {
		return nil, err
	}
	if err := c.measure(); err != nil {
		return nil, err
	}
	c.judge()
	c.aggregate()
	if err := c.addCosts(ctx); err != nil {
		return nil, err
	}
	c.addNotes()
	return &c.result, c.noteSkipped(ctx)
}

// Check returns the error of Compare for arms that cannot be compared, and measures
// nothing.
func Check(ctx context.Context, db *store.DB, arms []Arm, o Options) error {
	_, err := begin(ctx, db, arms, o)
	return err
}

// begin reads the arms, chooses the suites and refuses arms that cannot be compared.
func begin(ctx context.Context, db *store.DB, arms []Arm, o Options) (*comparison, error) {
	c := &comparison{reader: newReader(db), o: o}
	c.o.Alpha, c.o.Draws = cmp.Or(o.Alpha, 0.05), cmp.Or(o.Draws, DefaultDraws)
	if err := c.check(arms); err != nil {
		return nil, err
	}
	if err := c.load(ctx, arms); err != nil {
		return nil, err
	}
	c.describe()
	if err := c.chooseSuites(); err != nil {
		return nil, err
	}
	return c, c.compareSettings()
}

// check refuses invalid options and too few arms.
func (c *comparison) check(arms []Arm) error {
	if len(arms) < 2 {
		e := &OptionError{Option: "arms:", Value: fmt.Sprint(len(arms)), Problem: "given, but a comparison needs two",
			Advice: "name two selections, or one whose runs have more than one experiment"}
		if len(arms) == 1 {
			e.Value, e.Problem = arms[0].shown(), "is the only one, but a comparison needs two"
		}
		return e
	}
	if c.o.Alpha <= 0 || c.o.Alpha >= 1 {
		return &OptionError{Option: "alpha", Value: fmt.Sprint(c.o.Alpha), Problem: "is not a significance level",
			Advice: "a number between 0 and 1, such as 0.05"}
	}
	if c.o.Draws < 100 {
		return &OptionError{Option: "boot", Value: fmt.Sprint(c.o.Draws), Problem: "is too few draws for an interval",
			Advice: "at least 100"}
	}
	for _, k := range c.o.K {
		if k < 1 {
			return &OptionError{Option: "k", Value: fmt.Sprint(k), Problem: "is not a number of samples",
				Advice: "k is at least 1"}
		}
	}
	return c.checkKeys()
}

// load reads the runs of all arms and decides which count.
func (c *comparison) load(ctx context.Context, arms []Arm) error {
	labels := Labels(arms)
	in := map[int64]int{}
	for i, a := range arms {
		s := &side{label: labels[i]}
		for _, r := range a.Runs {
			j, ok := in[r.ID]
			switch {
			case ok && j == i:
				continue
			case ok:
				return &OptionError{Option: "run", Value: r.RID.Short(),
					Problem: fmt.Sprintf("is in two arms, %s and %s", labels[j], labels[i]),
					Advice:  "a run cannot be compared with itself"}
			}
			in[r.ID] = i
			rec, err := c.record(ctx, r)
			if err != nil {
				return err
			}
			s.add(rec, i)
		}
		s.dropReplays(i)
		s.sort()
		if len(s.runs) == 0 {
			return &IncompleteArmError{Label: s.label, Excluded: s.excluded}
		}
		c.arms = append(c.arms, s)
	}
	return nil
}

// add counts a run or excludes it with a reason.
func (s *side) add(r *record, arm int) {
	switch {
	case r.run.Status != store.Done:
		s.exclude(r, arm, Standing(r.run))
	case !r.evaluated() && r.run.Foreign() != "":
		s.exclude(r, arm, "from another framework ("+r.run.Foreign()+"), without per-problem scores")
	case !r.evaluated():
		s.exclude(r, arm, notEvaluated)
	default:
		s.runs = append(s.runs, r)
	}
}

func (s *side) exclude(r *record, arm int, reason string) {
	s.excluded = append(s.excluded, Excluded{Run: runOf(r), Arm: arm, Reason: reason})
}

// dropReplays keeps the newest of runs that are one observation: runs of one experiment
// and seed on several numerics classes, and runs with the same trajectory, which sources
// with irrelevant differences reproduce.
func (s *side) dropReplays(arm int) {
	slices.SortFunc(s.runs, func(a, b *record) int { return cmp.Compare(b.run.ID, a.run.ID) })
	var kept []*record
	for _, r := range s.runs {
		i := slices.IndexFunc(kept, func(k *record) bool {
			return k.run.XID == r.run.XID && k.run.Seed == r.run.Seed || k.run.Chain == r.run.Chain &&
				!r.run.Chain.IsZero()
		})
		if i >= 0 {
			s.exclude(r, arm, "a replay of run "+kept[i].run.RID.Short())
			continue
		}
		kept = append(kept, r)
	}
	s.runs = kept
}

func (s *side) sort() {
	slices.SortFunc(s.runs, func(a, b *record) int {
		return cmp.Or(cmp.Compare(a.run.Seed, b.run.Seed), strings.Compare(a.run.RID.String(), b.run.RID.String()))
	})
	slices.SortFunc(s.excluded, func(a, b Excluded) int {
		return cmp.Or(cmp.Compare(a.Seed, b.Seed), strings.Compare(a.RID, b.RID))
	})
}

func runOf(r *record) Run {
	return Run{ID: r.run.ID, RID: r.run.RID.String(), Name: r.run.Name, Seed: r.run.Seed,
		Status:   string(r.run.Status),
		Numerics: r.run.Numerics, Steps: r.run.Steps}
}

// describe fills in the arms of the result.
func (c *comparison) describe() {
	r := &c.result
	r.Alpha, r.Level, r.Draws, r.Baseline = c.o.Alpha, level, c.o.Draws, -1
	if c.o.Baseline {
		r.Baseline = len(c.arms) - 1
	}
	r.Notes, r.Suites = []string{}, []Suite{}
	for _, s := range c.arms {
		a := ArmResult{Label: s.label, XIDs: []string{}, Treatment: map[string]string{}}
		for _, rec := range s.runs {
			a.Runs = append(a.Runs, runOf(rec))
		}
		newest := slices.SortedFunc(slices.Values(s.runs),
			func(a, b *record) int { return cmp.Compare(b.run.ID, a.run.ID) })
		for _, rec := range newest {
			if x := rec.run.XID.String(); !slices.Contains(a.XIDs, x) {
				a.XIDs = append(a.XIDs, x)
			}
		}
		first := newest[0].run
		a.Name, a.Task, a.Algo, a.Model = first.Name, first.Task, first.Algo, first.Model
		r.Arms = append(r.Arms, a)
	}
}

// pairs lists the pairs of arms to compare.
func (c *comparison) pairs() [][2]int {
	var list [][2]int
	last := len(c.arms) - 1
	for a := range c.arms {
		for b := a + 1; b < len(c.arms); b++ {
			if !c.o.Baseline || b == last {
				list = append(list, [2]int{a, b})
			}
		}
	}
	return list
}

// records calls f with each run that counts.
func (c *comparison) records(f func(arm int, r *record)) {
	for i, s := range c.arms {
		for _, r := range s.runs {
			f(i, r)
		}
	}
}

// allRecords lists the runs that count.
func (c *comparison) allRecords() (list []*record) {
	c.records(func(_ int, r *record) { list = append(list, r) })
	return list
}
