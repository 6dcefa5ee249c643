package reports

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"exp/experiments/ident"
	"exp/experiments/quantity"
	"exp/experiments/store"
	"exp/reports/compare"
)

// Input holds the inputs of a report.
type Input struct {
	DB *store.DB
	// Arm is the only arm of a report without a Comparison, with its runs in any order.
	// Ignored if Comparison is set.
	Arm compare.Arm
	// Comparison holds the report's arms, at least two, in its order; nil: Arm.
	Comparison *compare.Result
	// SideBySide holds arms that cannot be compared, such as runs of other frameworks:
	// the report shows their curves together and judges nothing. Ignored if Comparison is
	// set.
	SideBySide []compare.Arm
	Left       []string  // arms that were left out, and why
	Title      string    // empty: built from the arms' names
	Contests   *Contests // for rating suites; nil: none is rated
	// Brief leaves out figures, samples and what the runs were made with: the summary,
	// what differs, and the tables of results remain.
	Brief bool
	// RunPage returns the address of a run's page, with its configuration at #config, on a server that shows the
	// report without its files; nil: the configurations are files of the report.
	RunPage func(store.Run) string
}

// Report is a report ready to be rendered. Rendering does not change it.
type Report struct {
	page   page
	drawn  drawn
	source *source
	costs  [][]stageCost
}

// source holds the data of the sections.
type source struct {
	db     *store.DB
	arms   []*arm
	result *compare.Result // nil: one arm
	left   []string        // as Input.Left
	title  string
	brief  bool
	page   func(store.Run) string // as Input.RunPage

	labelNote string // says how labels differ from names; may be empty

	contests *Contests // nil: none were given
	rated    []rated
}

// New reads the runs and draws the figures.
func New(ctx context.Context, in Input) (*Report, error) {
	s, err := read(ctx, in)
	if err != nil {
		return nil, err
	}
	r := &Report{source: s}
	var list []drawing
	if !in.Brief {
		list = s.drawings()
	}
	if r.drawn, err = drawAll(list); err != nil {
		return nil, err
	}
	if r.costs, err = s.stageCosts(ctx); err != nil {
		return nil, err
	}
	if r.page, err = r.layout(ctx); err != nil {
		return nil, err
	}
	return r, nil
}

func read(ctx context.Context, in Input) (*source, error) {
	s := &source{db: in.DB, title: in.Title, result: in.Comparison, left: in.Left, brief: in.Brief,
		page: in.RunPage}
	arms := []compare.Arm{in.Arm}
	if len(in.SideBySide) > 0 {
		arms = in.SideBySide
	}
	if in.Comparison != nil {
		var err error
		if arms, err = comparedArms(ctx, in.DB, in.Comparison); err != nil {
			return nil, err
		}
	}
	staged := stageRecords{in.DB, map[ident.Digest][]store.Curve{}}
	var runs []store.Run
	for _, a := range arms {
		runs = append(runs, a.Runs...)
	}
	counted, err := compare.Counted(ctx, in.DB, runs)
	if err != nil {
		return nil, fmt.Errorf("report: %w", err)
	}
	for i, a := range arms {
		if len(a.Runs) == 0 {
			return nil, fmt.Errorf("report: arm %q has no runs", a.Label)
		}
		out := &arm{Name: cmp.Or(a.Label, a.Runs[0].Name), Place: i}
		for _, r := range a.Runs {
			full, err := readRun(ctx, in.DB, r, counted[r.ID])
			if err == nil {
				err = staged.fill(full)
			}
			if err != nil {
				return nil, fmt.Errorf("report: %w", err)
			}
			out.Runs = append(out.Runs, full)
		}
		slices.SortFunc(out.Runs, func(a, b *run) int {
			return cmp.Or(cmp.Compare(a.Seed, b.Seed), cmp.Compare(a.RID.String(), b.RID.String()))
		})
		s.arms = append(s.arms, out)
		out.file = uniqueFile(s.arms)
	}
	s.labelNote = nameArms(s.arms)
	s.chooseFocus()
	if in.Contests != nil {
		var err error
		s.contests = in.Contests
		if s.rated, err = s.rate(in.Contests); err != nil {
			return nil, err
		}
	}
	if s.title == "" {
		s.title = joinVersus(armNames(s.arms))
	}
	return s, nil
}

// sideBySide reports whether several arms are shown without a comparison.
func (s *source) sideBySide() bool { return s.result == nil && len(s.arms) > 1 }

// uniqueFile gives the last arm's configuration file a unique name.
func uniqueFile(arms []*arm) string {
	last := arms[len(arms)-1]
	name := slug(last.Name)
	for _, a := range arms[:len(arms)-1] {
		if a.file == name {
			return fmt.Sprintf("%s-%d", name, len(arms))
		}
	}
	return name
}

// comparedArms reads the runs that count in a comparison.
func comparedArms(ctx context.Context, db *store.DB, c *compare.Result) ([]compare.Arm, error) {
	var arms []compare.Arm
	for _, a := range c.Arms {
		out := compare.Arm{Label: a.Label}
		for _, r := range a.Runs {
			full, err := db.RunByID(ctx, r.ID)
			if err != nil {
				return nil, fmt.Errorf("report: %w", err)
			}
			out.Runs = append(out.Runs, full)
		}
		arms = append(arms, out)
	}
	return arms, nil
}

func joinVersus(names []string) string {
	out := names[0]
	for i, n := range names[1:] {
		if i == len(names)-2 && len(names) > 2 {
			out += " and " + n
		} else if len(names) > 2 {
			out += ", " + n
		} else {
			out += " against " + n
		}
	}
	return out
}

// spread returns the smallest and the largest value over seeds; NaN without any.
func (a *arm) spread(value func(*run) float64) (lo, hi float64) {
	lo, hi = math.NaN(), math.NaN()
	for _, r := range a.Runs {
		v := value(r)
		if math.IsNaN(v) {
			continue
		}
		if math.IsNaN(lo) || v < lo {
			lo = v
		}
		if math.IsNaN(hi) || v > hi {
			hi = v
		}
	}
	return lo, hi
}

// drawings lists the figures that the report tries to draw, in section order, so that
// their numbers ascend.
func (s *source) drawings() []drawing {
	var list []drawing
	if !s.sideBySide() {
		list = append(optimumFigures(s.arms), s.resultFigures()...)
	}
	list = append(list, s.passRateFigures()...)
	list = append(list, curveDrawings(s.arms)...)
	list = append(list, try(groupCost, phases(s.arms)))
	groups := slices.Concat([]string{groupOptimum, groupResults}, curveGroups, []string{groupDiversity, groupCost})
	slices.SortStableFunc(list, func(a, b drawing) int {
		return slices.Index(groups, a.group) - slices.Index(groups,
			b.group)
	})
	return list
}

// layout assembles the sections in order.
func (r *Report) layout(ctx context.Context) (page, error) {
	s := r.source
	p := page{Title: s.title, Subtitle: s.subtitle(), Facts: s.facts()}
	if s.sideBySide() {
		p.Sections = append(p.Sections, s.summarySection(), s.figuresSection(r.drawn), s.curvesSection(r.drawn),
			s.identitySection(), s.environmentSection(), s.appendixSection(r.drawn.omitted))
		return p, nil
	}
	p.Sections = append(p.Sections, s.summarySection())
	if sec := s.figuresSection(r.drawn); len(sec.Blocks) > 0 {
		p.Sections = append(p.Sections, sec)
	}
	if s.result != nil {
		p.Sections = append(p.Sections, s.comparabilitySection())
	}
	if s.brief {
		p.Sections = append(p.Sections, s.configSection(), s.resultsSection(r.drawn))
		if sec := s.diversitySection(r.drawn); len(sec.Blocks) > 1 { // more than its introduction
			p.Sections = append(p.Sections, sec)
		}
		return p, nil
	}
	samples, err := s.samplesSection(ctx)
	if err != nil {
		return p, err
	}
	for _, sec := range []section{s.configSection(), s.resultsSection(r.drawn), s.curvesSection(r.drawn),
		s.diversitySection(r.drawn), samples,
		{ID: "cost", Title: "Cost", Blocks: []block{s.costGrid(r.costs), s.stageGrid(r.costs).orFolded()}},
		s.identitySection(), s.environmentSection(), s.appendixSection(r.drawn.omitted)} {
		switch sec.ID {
		case "cost":
			sec = withGallery(sec, r.drawn.groups[groupCost])
		case "samples", "identity", "environment":
			sec.Blocks = foldedBlocks(foldedTitles[sec.ID], sec.Blocks)
		}
		if len(sec.Blocks) > 0 {
			p.Sections = append(p.Sections, sec)
		}
	}
	return p, nil
}

// figuresSection shows the figures that most readers want.
func (s *source) figuresSection(d drawn) section {
	sec := section{ID: "figures", Title: "Figures"}
	if len(d.groups[groupFirst]) == 0 {
		return sec
	}
	sec.Blocks = append(sec.Blocks, d.groups[groupFirst])
	if s.labelNote != "" {
		sec.Blocks = append(sec.Blocks, paragraph{line{styled(muted, s.labelNote)}})
	}
	return sec
}

func (s *source) curvesSection(d drawn) section {
	sec := section{ID: "curves", Title: "Curves"}
	for _, g := range curveGroups {
		if len(d.groups[g]) > 0 {
			sec.Blocks = append(sec.Blocks, foldedFigures(d.groups[g], g+","))
		}
	}
	return sec
}

// foldedTitles are the summaries of sections that are shown on demand, by their ids: they
// would take most of the page.
var foldedTitles = map[string]string{
	"samples":     "Completions of the problems on which the arms differ most, by a fixed rule",
	"identity":    "Digests, attempts and verifications of every run",
	"environment": "Machines and programs",
}

func foldedBlocks(summary string, blocks []block) []block {
	if len(blocks) == 0 {
		return nil
	}
	return []block{folded{summary, blocks}}
}

func (s *source) samplesSection(ctx context.Context) (section, error) {
	sec := section{ID: "samples", Title: "Samples"}
	rule := "The two problems with the largest and the two with the smallest share of right completions"
	against := s.against()
	if len(s.arms) > 1 {
		rule = fmt.Sprintf("The two problems on which %s has the largest lead over %s in the share of right "+
			"completions (mean over seeds), and the two on which it is furthest behind",
			s.arms[0].Name, s.arms[against].Name)
	}
	for _, suite := range suites(s.arms) {
		list, err := s.problems(ctx, picks(s.arms, against, suite))
		if err != nil {
			return sec, fmt.Errorf("report: samples: %w", err)
		}
		if len(list) == 0 {
			sec.Blocks = append(sec.Blocks, paragraph{line{styled(strong, suite),
				{Text: ": the arms have the same share of right completions on every problem, so the rule picks " +
					"none."}}})
			continue
		}
		sec.Blocks = append(sec.Blocks, paragraph{line{styled(strong, suite), {Text: ". " + rule +
			"; ties are broken alphabetically. Completions come from the lowest seed, with equal texts grouped."}}})
		for _, p := range list {
			sec.Blocks = append(sec.Blocks, p)
		}
	}
	return sec, nil
}

// against returns the arm that the first one is compared with: the baseline, or the
// second.
func (s *source) against() int {
	switch {
	case s.result == nil:
		return 0
	case s.result.Baseline > 0:
		return s.result.Baseline
	}
	return 1
}

// subtitle names the settings that all arms share.
func (s *source) subtitle() string {
	r := s.arms[0].Runs[0]
	return fmt.Sprintf("%s, model %s, %s", r.Task, r.Model, s.seedText())
}

// facts returns the lines in the head of the page.
func (s *source) facts() []fact {
	var runs int
	var arms line
	for i, a := range s.arms {
		runs += len(a.Runs)
		switch {
		case i > 0 && len(s.arms) > mostArms: // a line each
			arms = arms.with(span{Text: " "})
		case i > 0:
			arms = arms.with(span{Text: ", "})
		}
		arms = arms.with(a.span())
	}
	list := []fact{{"arms", arms}, {"runs", text("%d", runs)}}
	if s.result != nil {
		for _, suite := range s.result.Suites {
			list = append(list, fact{suite.Name,
				text("%s × %s", quantity.Plural(suite.Items, "problem"), quantity.Plural(suite.Samples, "sample"))})
		}
	}
	var devices []string
	for _, a := range s.arms {
		if d := a.devices(); !slices.Contains(devices, d) {
			devices = append(devices, d)
		}
	}
	list = append(list, fact{"device (numerics)", text("%s", strings.Join(devices, ", "))})
	if _, last := s.period(); last != "" {
		list = append(list, fact{"last run ended", text("%s UTC", last)})
	}
	return list
}
