package main

import (
	"cmp"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"exp/cmd/exp/cli"
	"exp/cmd/exp/term"
	"exp/eval"
	"exp/experiments/quantity"
	"exp/experiments/recorded"
	"exp/experiments/store"
	"exp/harness/config"
	"exp/harness/hub"
	"exp/harness/metric"
)

// showPage writes a run for people.
type showPage struct {
	*cli.Page
	s    *recorded.Run
	now  time.Time
	here string // the working directory, for shorter paths
	from []hub.Provenance
}

// shownEvents is how many warnings the page shows; --json has all.
const shownEvents = 8

func (p *showPage) write() error {
	s := p.s
	switch {
	case s.Parts.Config && !s.Parts.Stages && !s.Parts.Env && !s.Parts.Lineage:
		p.Text("", s.Source) // usable as a configuration
		return nil
	case !s.Parts.Summary():
		p.title()
	default:
		p.title()
		p.identity()
	}
	for _, part := range []struct {
		on    bool
		write func() error
	}{
		{s.Parts.Summary(), p.hub},
		{s.Parts.Summary(), p.stages},
		{s.Parts.Stages, p.stagesWide},
		{s.Parts.Summary(), p.selection},
		{s.Parts.Summary(), p.results},
		{s.Parts.Summary(), p.metrics},
		{s.Parts.Summary(), p.checkpoints},
		{s.Parts.Summary(), p.files},
		{s.Parts.Summary(), p.events},
		{s.Parts.Config, p.config},
		{s.Parts.Env, p.attempts},
		{s.Parts.Lineage, p.lineage},
	} {
		if !part.on {
			continue
		}
		if err := part.write(); err != nil {
			return err
		}
	}
	return nil
}

// title is the first line, preceded by anything that casts doubt on the results.
func (p *showPage) title() {
	s, color := p.s, p.Layout.Color
	for _, d := range s.Divergences {
		fmt.Fprintf(p, "%s %s (%s)\n", term.Bad.Paint("diverged:", color), term.Clean(d.Text), p.Out.LocalTime(d.Time))
	}
	for _, d := range s.Damage {
		fmt.Fprintf(p, "%s %s\n", term.Bad.Paint("damaged:", color), term.Clean(d.String()))
	}
	name := term.Clean(s.Name) + "#" + strconv.FormatInt(s.Seed, 10)
	status := statusText(&s.Row)
	if !s.Deleted.IsZero() {
		status += ", deleted"
	}
	fmt.Fprintf(p, "%s  %s  %s\n", term.Strong.Paint(name, color), s.Run.Short(),
		statusStyle(status).Paint(status, color))
	if s.Status == store.Stopped { // the stages say why a run failed
		p.Paragraph("stopped by its condition: " + s.Reason)
	}
}

func (p *showPage) identity() {
	s := p.s
	parent := ""
	if !s.Parent.IsZero() {
		parent = s.Parent.Short()
	}
	var notes []string
	for _, n := range s.Notes {
		notes = append(notes, n.Text)
	}
	p.Facts(
		cli.Fact{Name: "what", Text: fmt.Sprintf("%s on %s, model %s, seed %d", p.made(), s.Task, s.Model, s.Seed)},
		cli.Fact{Name: "also named", Text: strings.Join(s.AlsoNamed, ", ")},
		cli.Fact{Name: "experiment", Text: "xid " + s.XID.Short()},
		cli.Fact{Name: "digests", Text: fmt.Sprintf("config %s  code %s  chain %s", s.Config.Short(), s.Code.Short(),
			cmp.Or(s.Chain.Short(), "none yet"))},
		cli.Fact{Name: "numerics", Text: s.Numerics + deviceText(s.Device)},
		cli.Fact{Name: "imported", Text: foreignText(s)},
		cli.Fact{Name: "steps", Text: p.s.StepsText()},
		cli.Fact{Name: "time", Text: p.timeText()},
		cli.Fact{Name: "machine", Text: p.machineText()},
		cli.Fact{Name: "tags", Text: strings.Join(s.Tags, ", ")},
		cli.Fact{Name: "notes", Text: strings.Join(notes, "; ")},
		cli.Fact{Name: "verified", Text: p.verificationText()},
		cli.Fact{Name: "continues", Text: parent},
	)
}

// foreignText says what an imported run lacks.
func foreignText(s *recorded.Run) string {
	if s.Foreign == "" {
		return ""
	}
	return "from files of " + s.Foreign + "; the run has no chain (digest of its steps) and cannot be re-executed"
}

func deviceText(device string) string {
	if device == "" {
		return ""
	}
	return " on " + device
}

func (p *showPage) timeText() string {
	s := p.s
	text := p.Out.LocalTime(s.Created) + " (" + quantity.Ago(p.now, s.Created) + " ago)"
	if d, known := s.Row.Took(p.now); known {
		text += ", took " + quantity.Duration(d)
	}
	if n := len(s.Attempts); n > 1 {
		text += fmt.Sprintf(" in %d attempts", n)
	}
	return text
}

func (p *showPage) machineText() string {
	if len(p.s.Attempts) == 0 {
		return ""
	}
	last := p.s.Attempts[len(p.s.Attempts)-1]
	env, _ := last.Env.(map[string]any)
	parts := []string{last.Host}
	for _, key := range []string{"cpu", "go"} {
		if v, ok := env[key].(string); ok && v != "" {
			parts = append(parts, v)
		}
	}
	if text := ranksText(env); text != "" {
		parts = append(parts, text)
	}
	return strings.Join(parts, ", ")
}

// ranksText says on which hosts the ranks of an attempt ran; empty if it had none.
func ranksText(env map[string]any) string {
	hosts, _ := env["rank_hosts"].([]any)
	if len(hosts) == 0 {
		return ""
	}
	var names []string
	for _, h := range hosts {
		names = append(names, fmt.Sprint(h))
	}
	slices.Sort(names)
	names = slices.Compact(names)
	const most = 4
	if more := len(names) - most; more > 0 {
		names = append(names[:most], fmt.Sprintf("%d more", more))
	}
	return fmt.Sprintf("%s on %s", quantity.Plural(len(hosts), "rank"), strings.Join(names, ", "))
}

// results compares the scores before and after training.
func (p *showPage) results() error {
	list := p.s.Results
	if len(list) == 0 {
		return nil
	}
	if p.Out.Format != cli.FormatWide {
		list = mainResults(list, false)
	}
	columns := []cli.Column{{Title: "score"}, {Title: "before"}, {Title: ""}, {Title: "after"}, {Title: ""},
		{Title: "change", Style: changeStyle}}
	for len(list) > 0 {
		suite := list[0].Suite
		p.Heading(fmt.Sprintf("results on %s (%s, %s each; 95 %% intervals)", suite,
			quantity.Plural(int(list[0].Items), "problem"), quantity.Plural(int(list[0].N), "sample")))
		var rows [][]any
		for len(list) > 0 && list[0].Suite == suite {
			r := list[0]
			before, beforeIn := scoreText(r.Metric, r.Before)
			after, afterIn := scoreText(r.Metric, r.After)
			rows = append(rows, []any{resultTitle(r.Metric), before, beforeIn, after, afterIn, changeText(r)})
			list = list[1:]
		}
		if err := p.Table(columns, rows); err != nil {
			return err
		}
		for _, r := range p.s.Earlier {
			if r.Suite == suite {
				p.Line("evaluated before with other settings: pass@1 %s, %s, %s each",
					quantity.Fixed(r.After.Value, 3), quantity.Plural(int(r.Items), "problem"),
					quantity.Plural(int(r.N), "sample"))
			}
		}
	}
	return nil
}

// resultTitle is a metric's name with spaces; a grader's name stays unchanged.
func resultTitle(name string) string {
	if strings.HasPrefix(name, eval.GraderPrefix) {
		return name
	}
	return strings.ReplaceAll(name, "_", " ")
}

func scoreText(name string, s *recorded.Score) (value, interval any) {
	if s == nil {
		return nil, nil
	}
	if s.Lo == nil || *s.Lo == *s.Hi {
		return quantity.Fixed(s.Value, 3), nil
	}
	lo, hi := metric.CutOf(name, *s.Lo, *s.Hi)
	return quantity.Fixed(s.Value, 3), "[" + quantity.Fixed(lo, 3) + ", " + quantity.Fixed(hi, 3) + "]"
}

func changeText(r recorded.Result) any {
	if r.Before == nil || r.After == nil {
		return nil
	}
	d := r.After.Value - r.Before.Value
	text := quantity.Fixed(d, 3)
	if d > 0 && text != "0.000" {
		return "+" + text
	}
	return text
}

func changeStyle(v any) term.Style {
	if text, _ := v.(string); text == "0.000" {
		return term.Faint
	}
	return term.Plain
}

// metrics shows the headline metrics as curves.
func (p *showPage) metrics() error {
	if len(p.s.Metrics) == 0 {
		return nil
	}
	p.Heading("metrics over the steps")
	course := cli.Column{Title: "course", Style: func(any) term.Style { return term.Accent }}
	columns := []cli.Column{{Title: "metric"}, {Title: "first"}, course, {Title: "last"}, {Title: "min"},
		{Title: "max"}, {Title: "unit", Rank: 1, Min: 4}}
	width := 40
	if w := p.Layout.Width; w > 0 {
		width = max(min(w-p.besideCourse(), 40), 8)
	}
	var rows [][]any
	for _, m := range p.s.Metrics {
		first := math.NaN()
		if len(m.Values) > 0 {
			first = m.Values[0]
		}
		spark := term.Spark(m.Values, width, p.Layout.Unicode)
		rows = append(rows, []any{m.Name, first, spark, m.Last, m.Min, m.Max, m.Unit})
	}
	return p.Table(columns, rows)
}

// besideCourse returns the width that the table of metrics needs without the curves, roughly.
func (p *showPage) besideCourse() int {
	const indent, gaps, numbers = 2, 6 * 2, 4 * 6
	name, unit := 0, 0
	for _, m := range p.s.Metrics {
		name, unit = max(name, term.Width(m.Name)), max(unit, term.Width(m.Unit))
	}
	return indent + name + unit + gaps + numbers
}

func (p *showPage) checkpoints() error {
	if len(p.s.Checkpoints) == 0 {
		return nil
	}
	p.Heading("checkpoints")
	var rows [][]any
	for _, c := range p.s.Checkpoints {
		where := "removed since"
		if c.Path != "" {
			where = p.path(c.Path)
		}
		rows = append(rows, []any{c.Step, quantity.Bytes(c.Bytes), c.Chain.Short(), where})
	}
	return p.Table([]cli.Column{{Title: "step"}, {Title: "size"}, {Title: "chain"}, {Title: "where"}}, rows)
}

func (p *showPage) files() error {
	if p.s.ModelDir == "" && len(p.s.Artifacts) == 0 {
		return nil
	}
	p.Heading("files")
	list := []cli.Fact{{Name: "model", Text: p.path(p.s.ModelDir)}}
	for _, f := range p.s.Artifacts {
		list = append(list, cli.Fact{Name: f.Name, Text: p.path(f.Path) + " (" + quantity.Bytes(f.Size) + ")"})
	}
	p.Facts(list...)
	return nil
}

// path is relative to the working directory if that is shorter.
func (p *showPage) path(path string) string {
	if p.here == "" || path == "" {
		return path
	}
	if rel, err := filepath.Rel(p.here, path); err == nil && len(rel) < len(path) {
		return rel
	}
	return path
}

// events shows the newest warnings and errors.
func (p *showPage) events() error {
	var list []recorded.Event
	for _, e := range p.s.Events {
		if e.Level == store.LevelWarn || e.Level == store.LevelError {
			list = append(list, e)
		}
	}
	if len(list) == 0 {
		return nil
	}
	p.Heading("warnings")
	if left := len(list) - shownEvents; left > 0 {
		p.Line("%s: exp show %s --json --fields events", quantity.Plural(left, "earlier warning"), p.s.Run.Short())
		list = list[left:]
	}
	var rows [][]any
	for _, e := range list {
		rows = append(rows, []any{p.Out.LocalTime(e.Time), e.Kind, recorded.EventText(e.Raw)})
	}
	return p.Table([]cli.Column{{Title: "time"}, {Title: "kind"}, {Title: "what", Rank: 1, Wrap: true, Min: 20}}, rows)
}

// made is the algorithm, or that the run only evaluates.
func (p *showPage) made() string {
	if p.s.Algo == config.None {
		return "evaluation"
	}
	return p.s.Algo
}

func (p *showPage) config() error {
	p.Heading("configuration")
	p.Text("  ", p.s.Source)
	return nil
}

func (p *showPage) attempts() error {
	for _, a := range p.s.Attempts {
		p.Heading(fmt.Sprintf("attempt %d", a.N))
		ended := "not ended"
		if !a.Ended.IsZero() {
			ended = fmt.Sprintf("%s, exit code %d", p.Out.LocalTime(a.Ended), a.ExitCode)
		}
		list := []cli.Fact{
			{Name: "what", Text: string(a.Kind) + ", " + string(a.Status)},
			{Name: "started", Text: p.Out.LocalTime(a.Started)}, {Name: "ended", Text: ended},
			{Name: "host", Text: a.Host + ", process " + strconv.Itoa(a.PID)}, {Name: "device", Text: a.Device},
			{Name: "build", Text: a.Build},
		}
		env, _ := cli.TreeOf(a.Env).(cli.Object)
		for _, m := range env {
			list = append(list, cli.Fact{Name: m.Key, Text: envText(m.Key, m.Value)})
		}
		p.Facts(list...)
	}
	return nil
}

// envText formats a value of an environment: memory with a unit, a command line as one
// types it.
func envText(key string, v any) string {
	switch v := v.(type) {
	case cli.Number:
		if n, err := strconv.ParseInt(string(v), 10, 64); err == nil && strings.HasSuffix(key, "_bytes") {
			return quantity.Bytes(n)
		}
	case []any:
		var words []string
		for _, w := range v {
			words = append(words, cli.MachineText(w))
		}
		return strings.Join(quoteAll(words), " ")
	}
	return cli.MachineText(v)
}
