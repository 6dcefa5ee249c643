package main

import (
	"context"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"exp/cmd/exp/term"
	harness "exp/harness/run"
	"exp/harness/storebench"
	"exp/reports/figure"
)

// suiteStore is the suite of the experiment store.
const suiteStore = "store"

// storeBenchmark is the schema exp.bench.store/1.
type storeBenchmark struct {
	CPU    string `json:"cpu"`
	Cores  int    `json:"cores"`
	System string `json:"system"`
	Build  build  `json:"build"`
	storebench.Report
}

// benchStore measures the store beside its goals. A goal that is missed is no error:
// the machine may be another one, or busy.
func (a *app) benchStore(c *cli.Context) error {
	for _, f := range c.Command.Flags {
		if name := f.Names()[0]; c.IsSet(name) && name != "suite" && name != "runs" && name != "repeat" {
			return usagef("--%s is not of the suite %s", name, suiteStore).see(a.line.command())
		}
	}
	o := storebench.DefaultOptions()
	o.Repeat = c.Int("repeat")
	if n := c.Int("runs"); c.IsSet("runs") {
		o.Runs, o.Arms, o.Long = n, max(1, n/200), 100*max(1, n)
	}
	if err := o.Validate(); err != nil {
		return usagef("%w", err)
	}
	program, err := os.Executable()
	if err != nil {
		return err
	}
	o.Exec = func(ctx context.Context, args ...string) (time.Duration, error) {
		cmd := exec.CommandContext(ctx, program, args...)
		var stderr strings.Builder
		cmd.Stderr = &stderr
		if err := cmd.Run(); err != nil {
			return 0, fmt.Errorf("exp %s: %w: %s", strings.Join(args, " "), err, stderr.String())
		}
		return cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(), nil
	}
	o.Draw = drawOne
	r, err := storebench.Run(c.Context, o, &storeWatcher{p: a.progressDisplay(), now: a.clock.Now})
	a.closeProgress()
	if err != nil {
		return err
	}
	m := harness.ThisMachine()
	b := &storeBenchmark{CPU: m.CPU, Cores: m.Cores, System: runtime.GOOS + "/" + runtime.GOARCH, Build: readBuild(), Report: *r}
	return a.out.printDocument(document{Schema: "exp.bench.store/1", Data: b, Human: func(w io.Writer) error { return writeStoreBench(a.out.newPage(w), b) }})
}

// drawOne draws the curves of two arms of three seeds over 1,000 steps.
func drawOne() error {
	c := figure.Curve{Head: figure.Head{Name: "curve", Title: "Two arms", About: "Made-up numbers"}, X: figure.Axis{Label: "training step"}, Y: figure.Axis{Label: "reward"}}
	for i, name := range []string{"FlowRL", "PPO"} {
		arm := figure.Arm{Name: name}
		for seed := range 3 {
			var s figure.Series
			for step := range 1000 {
				s.Step = append(s.Step, float64(step))
				s.Y = append(s.Y, math.Sin(float64(step*(seed+1))/300)+float64(i))
			}
			arm.Seeds = append(arm.Seeds, s)
		}
		c.Arms = append(c.Arms, arm)
	}
	_, err := c.Draw()
	return err
}

func writeStoreBench(p *page, b *storeBenchmark) error {
	p.heading("bench " + b.Suite)
	p.facts(
		fact{"processor", fmt.Sprintf("%s, %d cores", or(b.CPU, "unknown"), b.Cores)},
		fact{"program", b.Build.String()},
		fact{"store", fmt.Sprintf("%s runs, %s points, %s, made in %s", term.Count(int64(b.Runs)), term.Count(int64(b.Points)), term.Bytes(b.Bytes), term.Duration(time.Duration(b.MadeS*float64(time.Second))))},
		fact{"figures", "median and range by the clock, as the goals are; cpu: by processor time"},
	)
	p.heading("figures beside their goals")
	var rows [][]any
	missed := 0
	for _, f := range b.Figures {
		goal, verdict := "≤ ", "met"
		if f.AtLeast {
			goal = "≥ "
		}
		if !f.Met {
			verdict = "missed"
			missed++
		}
		rows = append(rows, []any{f.Item, f.Value, term.Short(f.Min) + "–" + term.Short(f.Max), positive(f.CPU), f.Unit, goal + term.Short(f.Goal), verdict})
	}
	err := p.table([]column{{Title: "what"}, {Title: "median"}, {Title: "range"}, {Title: "cpu"}, {Title: "unit"}, {Title: "goal"}, {Title: "", Style: goalStyle}}, rows)
	if err != nil {
		return err
	}
	p.line("%d of %d goals met; what a killed process loses is tested by go test ./experiments/store -run Kill", len(b.Figures)-missed, len(b.Figures))
	return p.close()
}

// positive is v, or nil where it is 0: not measured.
func positive(v float64) any {
	if v > 0 {
		return v
	}
	return nil
}

func goalStyle(v any) term.Style {
	if v == "missed" {
		return term.Warn
	}
	return term.Good
}

// storeWatcher shows on stderr how far the suite is.
type storeWatcher struct {
	p     term.Progress
	now   func() time.Time
	start time.Time
}

// Start shows what is measured now.
func (w *storeWatcher) Start(what string, total int) {
	w.start = w.now()
	w.p.StageStart(term.Stage{Kind: "bench", Label: what, Total: total, Unit: "repeat"})
}

// Done counts.
func (w *storeWatcher) Done(n int) { w.p.StageProgress(term.Step{Step: n}) }

// End shows the figure.
func (w *storeWatcher) End(value float64, unit, met string) {
	facts := []term.Fact{{Name: unit, Text: term.Short(value), Counts: true}}
	if met != "" {
		facts = append(facts, term.Fact{Name: "goal", Text: strings.TrimPrefix(met, "goal "), Counts: true})
	}
	w.p.StageDone(term.Result{Status: term.Done, Wall: w.now().Sub(w.start), Facts: facts})
}
