package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"exp/cmd/exp/cli"
	"exp/experiments/store"
	"exp/reports"
	"exp/reports/compare"
)

func reportCommand(a *app) *cli.Command {
	return &cli.Command{
		Name:      "report",
		Category:  "Results",
		Usage:     "write a report with figures about runs, or a comparison of arms",
		ArgsUsage: "SEL...",
		Description: "Writes one folder: index.html (self-contained), report.md, data.json, figures, the arms' " +
			"configurations and a manifest. Runs of one experiment with different seeds form one arm. With " +
			"several arms the report compares them like exp compare, and refuses arms that differ in more than " +
			"the treatment. The same runs give the same bytes.\n" +
			"--contests rates suites of contest problems, with ids that end like 1971A, by the standings in a " +
			"JSON file:\n" +
			"  {\"schema\": \"exp.contests/1\", \"users\": {\"1200\": 34},\n" +
			"   \"contests\": [{\"id\": \"1971\", \"problems\": {\"A\": 500}, \"rows\":\n" +
			"     [{\"points\": 500, \"penalty\": 0, \"old_rating\": 1900}]}]}",
		UsageText: strings.Join([]string{
			"exp report @last --out report # one run",
			"exp report countdown-flowrl --vs countdown-ppo --out report # two arms, all their seeds",
			"exp report countdown-flowrl countdown-grpo --vs countdown-ppo --out report # two arms against a third",
			"exp report 'task = countdown and status = done' --out report # every arm against every other",
			"exp report flowrl --vs ppo --figs pdf,svg,png --columns 2 --out report # with figures for a paper",
		}, "\n"),
		Flags: slices.Concat([]cli.Flag{
			&cli.StringFlag{Name: "out", Usage: "write the report to `DIR`; an unchanged report there is " +
				"replaced"}}, armFlags(), []cli.Flag{
			contestsFlag(),
			&cli.StringFlag{Name: "format", Usage: "pages to write: `LIST` of " + strings.Join(reports.PageFormats,
				", "), Value: strings.Join(reports.PageFormats, ",")},
			&cli.StringFlag{Name: "figs", Usage: "figure files to write: `LIST` of " +
				strings.Join(reports.FigureFormats, ", ") + ", or none",
				Value: strings.Join(reports.DefaultFigures, ",")}}, styleFlags(), []cli.Flag{
			&cli.StringFlag{Name: "title", Usage: "the report's `TITLE`", DefaultText: "the arms' names"},
			&cli.BoolFlag{Name: "force", Usage: "move DIR aside if it is anything but an unchanged report"},
		}),
		BashComplete: a.completesRuns(0, false, a.compareCandidates),
		Action:       a.writeReport,
	}
}

// contestsFlag names the standings for the figure "rating".
func contestsFlag() cli.Flag {
	return &cli.StringFlag{Name: "contests", Usage: "rate suites of contest problems by the standings in `FILE` " +
		"(exp help report shows its format)"}
}

// armFlags are the flags that form the arms of a report or a figure.
func armFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "vs", Usage: "compare the other arms with the arm `SEL`"},
		&cli.StringFlag{Name: "by", Usage: "one arm per value of `KEY`: xid (experiment id), name, algo, model, " +
			"task or a configuration key", DefaultText: "xid"},
		&cli.StringSliceFlag{Name: "vary", Usage: "make the keys that match `GLOB` part of the treatment"},
		&cli.StringSliceFlag{Name: "allow", Usage: "compare although the arms differ in `KEY`; the " +
			"report says so"},
	}
}

// writtenReport is the result of exp report.
type writtenReport struct {
	Dir      string   `json:"dir"`
	Arms     []string `json:"arms"`
	Runs     int      `json:"runs"`
	Files    int      `json:"files"`
	Figures  int      `json:"figures"`
	Omitted  int      `json:"figures_omitted"`
	Manifest string   `json:"manifest"` // digest of manifest.json, which lists every file's digest
	Aside    string   `json:"moved_aside,omitempty"`
}

func (a *app) writeReport(c *cli.Context) error {
	switch {
	case c.NArg() == 0:
		return a.Usagef("no runs given")
	case c.String("out") == "":
		return a.Usagef("--out DIR is missing: where should the report go?")
	}
	formats, err := reportFormats(c.String("format"), c.String("figs"))
	if err != nil {
		return err
	}
	if formats.Setting, err = figureSettings(c); err != nil {
		return err
	}
	return cli.With(a.OpenStore, func(db *store.DB) error {
		in, err := a.reportInput(c, db, c.Args().Slice())
		if err != nil {
			return err
		}
		r, err := reports.New(c.Context, in)
		if err != nil {
			return err
		}
		bundle, err := r.Bundle(formats)
		if err != nil {
			return err
		}
		aside, err := bundle.WriteTo(c.String("out"), c.Bool("force"))
		if err != nil {
			return err
		}
		return a.printReport(c.String("out"), aside, r, bundle)
	})
}

// reportInput forms the arms like exp compare, and compares them if there are several. As there, unfinished runs do
// not count next to finished ones of their arm; an arm alone keeps those that a selection names. Arms without a
// finished run are shown as far as they went, and not compared.
func (a *app) reportInput(c *cli.Context, db *store.DB, runs []string) (reports.Input, error) {
	in := reports.Input{DB: db, Title: c.String("title")}
	arms, left, err := a.arms(c, db, runs)
	if err != nil {
		return in, err
	}
	in.Left = left
	if path := c.String("contests"); path != "" {
		if in.Contests, err = reports.ReadContests(path); err != nil {
			code := cli.ExitUsage
			if errors.Is(err, fs.ErrNotExist) {
				code = cli.ExitNotFound
			}
			return in, &cli.Failure{Code: code, Err: err, Help: "exp help report shows the format of --contests"}
		}
	}
	if len(arms) == 1 {
		finished, err := a.finishedRuns(c, db, runs, arms)
		in.Arm = finished[0]
		return in, err
	}
	if anyForeign(arms) {
		a.Warn("arms of other frameworks are shown side by side and not compared: their configuration, data and " +
			"sources are not recorded; exp compare tests arms with completions of the same problems")
		in.SideBySide = arms
		return in, nil
	}
	in.Comparison, err = compare.Compare(c.Context, db, arms, compare.Options{Vary: varied(c),
		Allow: c.StringSlice("allow"), Baseline: c.IsSet("vs")})
	var refused *compare.NotComparableError
	if errors.As(err, &refused) {
		return in, errors.Join(a.printRefused(refused), a.refusal(refused))
	}
	var incomplete *compare.IncompleteArmError
	if errors.As(err, &incomplete) && incomplete.Unfinished() {
		a.Warn("%v; the arms are shown side by side as far as they went, and not compared", err)
		in.SideBySide, err = a.finishedRuns(c, db, runs, arms)
		return in, err
	}
	if err == nil {
		for _, x := range in.Comparison.Comparability.Excluded {
			a.Note("%s", notCountedText(in.Comparison.Arms, x))
		}
	}
	return in, err
}

// finishedRuns leaves out the unfinished runs of arms with finished ones, unless a selection names the run alone, and
// says so.
func (a *app) finishedRuns(c *cli.Context, db *store.DB, selections []string, arms []compare.Arm) ([]compare.Arm,
	error) {
	named := map[int64]bool{}
	for _, one := range append([]string{c.String("vs")}, selections...) {
		if one == "" || one == "-" { // stdin has been read
			continue
		}
		runs, err := a.finder(db).Select(c.Context, []string{one}, a.Stdin)
		if err != nil {
			return nil, err
		}
		if len(runs) == 1 {
			named[runs[0].ID] = true
		}
	}
	list := make([]compare.Arm, len(arms))
	for i := range arms {
		var left []store.Run
		list[i], left = compare.FinishedRuns(arms[i], func(r store.Run) bool { return named[r.ID] })
		for _, r := range left {
			a.Note("left out: run %s (%s, seed %d): %s; its id selects it", r.RID.Short(), r.Name, r.Seed,
				compare.Standing(r))
		}
	}
	return list, nil
}

// anyForeign reports whether an arm comes from another framework.
func anyForeign(arms []compare.Arm) bool { return slices.ContainsFunc(arms, foreignArm) }

func foreignArm(a compare.Arm) bool {
	return slices.ContainsFunc(a.Runs, func(r store.Run) bool { return r.Foreign() != "" })
}

// reportFormats reads the lists of --format and --figs.
func reportFormats(pages, figures string) (f reports.Formats, err error) {
	if f.Pages, err = someOf("--format", pages, reports.PageFormats); err != nil {
		return f, err
	}
	if figures == "none" {
		f.Figures = []string{}
		return f, nil
	}
	f.Figures, err = someOf("--figs", figures, reports.FigureFormats)
	return f, err
}

// someOf reads a list separated by commas, in the order of known.
func someOf(flag, list string, known []string) ([]string, error) {
	var given []string
	for _, word := range strings.Split(list, ",") {
		word, err := cli.OneOf(flag, strings.TrimSpace(word), known)
		if err != nil {
			return nil, err
		}
		given = append(given, word)
	}
	return slices.DeleteFunc(slices.Clone(known), func(k string) bool { return !slices.Contains(given, k) }), nil
}

func (a *app) printReport(dir, aside string, r *reports.Report, b reports.Bundle) error {
	w := writtenReport{Dir: dir, Arms: r.Arms(), Runs: r.Runs(), Files: len(b), Figures: r.Figures(),
		Omitted: r.Omitted(), Manifest: b.Digest().String(), Aside: aside}
	return a.Out.PrintDocument(cli.Document{Schema: "exp.report.written/1", Data: w, Human: func(out io.Writer) error {
		if aside != "" {
			a.Warn("what was in %s is now in %s", dir, aside)
		}
		omitted := ""
		if w.Omitted > 0 {
			omitted = fmt.Sprintf("; without data %d: see the appendix", w.Omitted)
		}
		_, err := fmt.Fprintf(out, "%s\n  arms     %s\n  runs     %d\n  figures  %d%s\n",
			filepath.Join(dir, "index.html"), strings.Join(w.Arms, ", "), w.Runs, w.Figures, omitted)
		return err
	}})
}
