package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"exp/cmd/exp/cli"
	"exp/cmd/exp/term"
	"exp/harness/bench"
	"exp/harness/device"
	"exp/harness/selftest"
)

func doctorCommand(a *app) *cli.Command {
	return &cli.Command{
		Name:     "doctor",
		Category: "set up",
		Usage:    "check machine, build, store, settings and determinism",
		Description: "Checks everything a run depends on and says how to fix each problem. The determinism " +
			"test trains a toy model with every CPU kernel that this machine supports, on one, two and all " +
			"threads, and on every GPU: all must give the same bits, equal to those built into the program, " +
			"and the sampler's log-probs must equal the trainer's. It changes nothing and creates no store. " +
			"Warnings do not change the exit code; a failed check does: 5 for different bits, 4 for damage, " +
			"7 for what the machine lacks, 2 for a bad setting.",
		UsageText: strings.Join([]string{
			"exp doctor # takes a second or two",
			"exp doctor --quick # fewer kernels, and no measurements",
			"exp doctor --json # for programs: exp.doctor/1",
		}, "\n"),
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "quick", Usage: "test only the best kernels, measure nothing, and do not read the " +
				"whole database"},
		},
		Action: cli.WithArgs(0, 0, func(c *cli.Context, _ []string) error {
			return a.examine(c.Context, c.Bool("quick"))
		}),
	}
}

// health is the outcome of a check.
type health string

const (
	healthy health = "ok"
	warning health = "warning" // works, but not as it should
	failing health = "fail"    // a run would fail, or could not be trusted
)

// finding is the result of one check.
type finding struct {
	Section string       `json:"section"`
	Name    string       `json:"name"`
	Health  health       `json:"status"`
	Text    string       `json:"text"`
	Help    string       `json:"help,omitempty"` // what to do
	Value   any          `json:"value,omitempty"`
	Code    cli.ExitCode `json:"-"` // of a failing one
}

// diagnosis is the schema exp.doctor/1.
type diagnosis struct {
	Status   health    `json:"status"` // the worst
	Findings []finding `json:"findings"`

	section string
}

func (d *diagnosis) add(f finding) {
	f.Section = d.section
	d.Findings = append(d.Findings, f)
}

func (d *diagnosis) ok(name, format string, args ...any) {
	d.add(finding{Name: name, Health: healthy, Text: fmt.Sprintf(format, args...)})
}

func (d *diagnosis) warn(name, help, format string, args ...any) {
	d.add(finding{Name: name, Health: warning, Help: help, Text: fmt.Sprintf(format, args...)})
}

func (d *diagnosis) fail(name string, code cli.ExitCode, help, format string, args ...any) {
	d.add(finding{Name: name, Health: failing, Code: code, Help: help, Text: fmt.Sprintf(format, args...)})
}

// failed adds an error, with the exit code and the advice a command would give.
func (d *diagnosis) failed(name string, err error) {
	f := describe(err, nil)
	d.fail(name, f.Code, f.Help, "%v", f.Err)
}

// examine runs all checks and prints the findings.
func (a *app) examine(ctx context.Context, quick bool) error {
	d := &diagnosis{Status: healthy}
	for _, part := range []struct {
		section string
		check   func()
	}{
		{"machine", func() { a.checkMachine(d) }},
		{"build", func() { checkBuild(d) }},
		{"GPU", func() { checkGPU(d) }},
		{"ranks", func() { a.checkRanks(d) }},
		{"configuration", func() { a.checkSettings(d) }},
		{"store", func() { a.checkStore(ctx, d, quick) }},
		{"sandbox", func() { checkSandbox(ctx, d) }},
		{"determinism", func() { a.checkDeterminism(ctx, d, quick) }},
		{"speed", func() { a.checkSpeed(ctx, d, quick) }},
	} {
		if err := ctx.Err(); err != nil {
			return err
		}
		d.section = part.section
		part.check()
	}
	bad := d.conclude()
	err := a.Out.PrintDocument(cli.Document{Schema: "exp.doctor/1", Data: d, Human: func(w io.Writer) error {
		return d.write(w, a.Out.Stream)
	}})
	if err != nil || len(bad) == 0 {
		return err
	}
	var names []string
	for _, f := range bad {
		names = append(names, f.Section+"/"+f.Name)
	}
	return cli.Failf(gravest(bad), "%d of %d checks failed: %s", len(bad), len(d.Findings), strings.Join(names, ", "))
}

// conclude sets the overall status and returns the failed findings.
func (d *diagnosis) conclude() (bad []finding) {
	for _, f := range d.Findings {
		switch {
		case f.Health == failing:
			d.Status = failing
			bad = append(bad, f)
		case f.Health == warning && d.Status == healthy:
			d.Status = warning
		}
	}
	return bad
}

// gravest picks the exit code of several failures: untrustworthy results come before
// missing ones.
func gravest(bad []finding) cli.ExitCode {
	for _, code := range []cli.ExitCode{cli.ExitDivergence, cli.ExitIntegrity, cli.ExitResource, cli.ExitUsage} {
		if slices.ContainsFunc(bad, func(f finding) bool { return f.Code == code }) {
			return code
		}
	}
	return cli.ExitFailure
}

// write prints the findings for people: a heading for each section, and below it a
// line for each finding with what to do under it.
func (d *diagnosis) write(w io.Writer, s term.Stream) error {
	const margin = 23 // "  " + status + " " + name + "  "
	width := 100
	if s.TTY {
		width = s.Width()
	}
	section := ""
	for _, f := range d.Findings {
		if f.Section != section {
			section = f.Section
			fmt.Fprintln(w, term.Strong.Paint(section, s.Color))
		}
		style := map[health]term.Style{healthy: term.Good, warning: term.Warn, failing: term.Bad}[f.Health]
		fmt.Fprintf(w, "  %s %s  ", style.Paint(term.Pad(string(f.Health), 7, false), s.Color),
			term.Pad(f.Name, 11, false))
		text := term.Wrap(term.CleanLines(f.Text), width-margin)
		if f.Help != "" {
			help := term.Wrap(term.CleanLines(f.Help), width-margin-6)
			for i := range help {
				help[i] = strings.Repeat(" ", 6) + help[i]
			}
			help[0] = term.Accent.Paint("help:", s.Color) + help[0][5:]
			text = append(text, help...)
		}
		if _, err := fmt.Fprintln(w, strings.Join(text, "\n"+strings.Repeat(" ", margin))); err != nil {
			return err
		}
	}
	return nil
}

// checkDeterminism trains a toy in every way this machine supports.
func (a *app) checkDeterminism(ctx context.Context, d *diagnosis, quick bool) {
	single, half, err := selftest.Run(ctx, quick)
	var mismatch *selftest.MismatchError
	switch {
	case errors.As(err, &mismatch):
		d.fail("sampler", cli.ExitDivergence, distrust, "%v", mismatch)
		return
	case err != nil:
		d.failed("training", err)
		return
	}
	d.ok("sampler", "its log-probs equal the trainer's, bit for bit")
	d.judge("", single)
	d.judge("bf16 ", half)
}

const distrust = "do not trust results from this machine: test its memory, and report this with exp doctor --json"

// judge compares the digests of trials with each other and with the expected one.
// prefix starts the names of the findings.
func (d *diagnosis) judge(prefix string, t selftest.Trials) {
	how := map[string][]string{} // by digest
	var order []string
	for _, one := range t.List {
		if how[one.Digest] == nil {
			order = append(order, one.Digest)
		}
		where := one.Level
		if one.Threads > 0 {
			where = fmt.Sprintf("%s on %d", one.Level, one.Threads)
		}
		how[one.Digest] = append(how[one.Digest], where)
	}
	if len(order) > 1 {
		var each []string
		for _, digest := range order {
			each = append(each, digest[:8]+" by "+strings.Join(how[digest], ", "))
		}
		d.add(finding{Name: prefix + "same bits", Health: failing, Code: cli.ExitDivergence, Help: distrust,
			Value: t.List,
			Text:  "the same training gave different bits: " + strings.Join(each, "; ")})
		return
	}
	d.add(finding{Name: prefix + "same bits", Health: healthy, Value: t.List,
		Text: fmt.Sprintf("%d trainings agree (kernels on threads: %s)", len(t.List),
			strings.Join(how[order[0]], ", "))})
	want, known := selftest.Want(t.Numerics)
	switch {
	case !known:
		d.warn(prefix+"digest", "results agree with machines of the same class",
			"%s; none is known for the class %s", order[0][:16], t.Numerics)
	case want != order[0]:
		d.fail(prefix+"digest", cli.ExitDivergence, distrust, "%s, but every machine of the class %s gives %s",
			order[0][:16], t.Numerics, want[:16])
	default:
		d.ok(prefix+"digest", "%s, as on every machine of the class %s", order[0][:16], t.Numerics)
	}
}

// measureTime is how long each speed is measured; enough for two digits.
const measureTime = 150 * time.Millisecond

// checkSpeed measures and never fails.
func (a *app) checkSpeed(ctx context.Context, d *diagnosis, quick bool) {
	if quick {
		return
	}
	be, err := device.OpenCPU(device.Options{}, a.Getenv)
	if err != nil {
		d.failed("measured", err)
		return
	}
	defer be.Close()
	s, err := bench.Measure(ctx, be, measureTime)
	if err != nil {
		d.failed("measured", err)
		return
	}
	d.add(finding{Name: "measured", Health: healthy, Value: s, Text: fmt.Sprintf(
		"%.0f GFLOP/s in a matmul of 512, %.0f tokens/s sampled from 0.8 M parameters; %s, %d threads, under "+
			"the current load",
		s.MatMul, s.Sample, be.Level(), be.Threads())})
}
