package paper

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"exp/reports/compare"
)

func at(v float64) *float64 { return &v }

func estimate(mean, half float64) compare.Estimate {
	return compare.Estimate{Mean: at(mean), Start: at(0.1),
		Interval: &compare.Interval{Lo: mean - half, Hi: mean + half, Kind: compare.TwoLevel}}
}

// example compares two arms with a baseline: the first is better, the second prints the same
// values as the baseline.
func example() *compare.Result {
	runs := make([]compare.Run, 3)
	return &compare.Result{
		Arms:     []compare.ArmResult{{Label: "flow_rl", Runs: runs}, {Label: "grpo", Runs: runs}, {Label: "ppo", Runs: runs}},
		Baseline: 2, Tests: 4, Alpha: 0.05, Level: 0.95, Notes: []string{"two\nlines"},
		Suites: []compare.Suite{{Name: "math500", Items: 500, Samples: 16, Metrics: []compare.Metric{
			{Name: "pass@1", Unit: "share", Direction: "up", Tested: true,
				Arms: []compare.Estimate{estimate(0.3001, 0.02), estimate(0.29999, 0.02), estimate(0.2, 0.01)},
				Pairs: []compare.Pair{{A: 0, B: 2, Verdict: compare.Better},
					{A: 1, B: 2, Verdict: compare.Underpowered}}},
			{Name: "not_tested", Unit: "share", Arms: make([]compare.Estimate, 3)},
			{Name: "response_length", Unit: "tokens", Tested: true,
				Arms: []compare.Estimate{estimate(120, 3), {Start: at(0.1)}, estimate(99, 2)}},
		}}},
	}
}

func TestWriteLaTeX(t *testing.T) {
	var out strings.Builder
	if err := WriteLaTeX(&out, example()); err != nil {
		t.Fatal(err)
	}
	want := `% needs \usepackage{booktabs}; table* spans two columns
% two lines

\begin{table}[t]
  \centering\small
  \caption{math500: 500 problems, 16 samples each. Means over 3 seeds. $\pm$ reaches to the farther end of a 95\,\% interval over seeds and problems. Bold: the best mean after training. $^{*}$: differs from ppo (Holm-corrected $p \le 0.05$ over 4 tests, and its interval excludes zero).}
  \label{tab:flow-rl-grpo-ppo-1}
  \begin{tabular}{lcc}
    \toprule
    & \multicolumn{2}{c}{math500} \\
    \cmidrule(lr){2-3}
    & pass@1 (\%) & response length \\
    \midrule
    before training & 10.0 & 0.1 \\
    \midrule
    flow\_rl & $\mathbf{30.0}^{*} \pm 2.0$ & $120.0 \pm 3.0$ \\
    grpo & $\mathbf{30.0} \pm 2.0$ & -- \\
    ppo & $20.0 \pm 1.0$ & $99.0 \pm 2.0$ \\
    \bottomrule
  \end{tabular}
\end{table}
`
	if d := cmp.Diff(want, out.String()); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// Without a baseline a star needs a difference from every other arm.
func TestStarsWithoutBaseline(t *testing.T) {
	r := example()
	r.Baseline = -1
	m := &r.Suites[0].Metrics[0]
	m.Arms[1] = estimate(0.25, 0.02)
	m.Pairs = []compare.Pair{{A: 0, B: 1, Verdict: compare.Better}, {A: 0, B: 2, Verdict: compare.Better},
		{A: 1, B: 2, Verdict: compare.Better}}
	stars := func() (n int) {
		var out strings.Builder
		if err := WriteLaTeX(&out, r); err != nil {
			t.Fatal(err)
		}
		_, body, _ := strings.Cut(out.String(), "midrule")
		return strings.Count(body, "^{*}")
	}
	if n := stars(); n != 1 {
		t.Errorf("%d stars, want 1: on the best arm", n)
	}
	m.Pairs[0].Verdict = compare.Underpowered
	if n := stars(); n != 0 {
		t.Errorf("%d stars where the best arm equals another, want 0", n)
	}
}

func TestEnds(t *testing.T) {
	r := example()
	m := &r.Suites[0].Metrics[0]
	m.Arms[2] = compare.Estimate{Mean: at(0), Interval: &compare.Interval{Hi: 0.194, Kind: compare.OverItems}}
	m.Arms[0] = compare.Estimate{Mean: at(1), Interval: &compare.Interval{Lo: 0.8, Hi: 1, Kind: compare.OverItems}}
	var out strings.Builder
	if err := WriteLaTeX(&out, r); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`$0.0\,(\le 19.4)$`, `$\mathbf{100.0}^{*}\,(\ge 80.0)$`, "its other end",
		"over problems or seeds and problems"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %s in\n%s", want, out.String())
		}
	}
}

func TestManyColumns(t *testing.T) {
	r := example()
	for _, name := range []string{"aime24", "aime25", "amc23"} {
		s := r.Suites[0]
		s.Name = name
		r.Suites = append(r.Suites, s)
	}
	var out strings.Builder
	if err := WriteLaTeX(&out, r); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(out.String(), `\begin{table}`); n != 2 {
		t.Errorf("8 columns in %d tables, want 2", n)
	}
	if err := WriteLaTeX(&out, &compare.Result{}); err == nil {
		t.Error("a comparison without suites gives no error")
	}
}

// Labels differ as the arms do, also where a long one is cut.
func TestLabels(t *testing.T) {
	label := func(arms ...string) string {
		r := &compare.Result{}
		for _, a := range arms {
			r.Arms = append(r.Arms, compare.ArmResult{Label: a})
		}
		return (&document{r: r}).label(2)
	}
	long := strings.Repeat("flowrl ", 8)
	first, second := label(long, "ppo"), label(long, "grpo")
	if first == second || len(first) > longestName+11 {
		t.Errorf("labels %s and %s", first, second)
	}
	if got := label("β"); got != "comparison-2" {
		t.Errorf("label %s", got)
	}
}
