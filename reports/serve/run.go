package serve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"exp/experiments/quantity"
	"exp/experiments/recorded"
	"exp/experiments/store"
	"exp/harness/config"
	"exp/harness/metric"
	"exp/reports/compare"
)

const (
	// logShown is how many entries of the log a run's page has.
	logShown = 100
	// checkpointsShown is how many checkpoints it has.
	checkpointsShown = 10
	// phaseSteps is how many steps the page averages phases over.
	phaseSteps = 20
)

// runBody is the data of run.tmpl.
type runBody struct {
	Run      store.Run
	Sel      string
	Status   statusCell
	Running  bool
	Share    string // "45 %", of an unfinished run
	Left     string // time that the remaining steps take
	Now      activityShown
	Facts    []fact
	Trouble  []string // divergences, the condition that stopped the run, and damage
	Charts   []chart
	Choices  choices
	Phases   phases
	Results  []suiteResults
	Chosen   *recorded.Selection // training problems by pass rate; may be nil
	Stages   []stageRow
	Machine  []fact
	Log      []recorded.Entry
	LogMore  int
	Latest   []completionRow
	LatestAt string // address of all completions
	Config   string
	Checks   []checkpointRow // the newest
	// ChecksMore is how many older ones there are.
	ChecksMore int
	Others     []option
}

// fact is a line of a list of facts.
type fact struct{ Name, Text, Link string }

// suiteResults is the scores on a suite: the ones that lists and comparisons show, and the
// others.
type suiteResults struct {
	Suite      string
	About      string
	Rows, More []resultRow
}

type resultRow struct{ Name, Before, BeforeIn, After, AfterIn, Change, Title string }

type stageRow struct {
	Name, Status, Class, Took, CPU, Memory, Error string
	From, Link                                    string // of a cached stage, where it comes from
}

type checkpointRow struct {
	Step, Size, Where string
}

// oneRun returns the run that an address names, with its current status; a deleted run
// only if no other matches.
func (s *Server) oneRun(ctx context.Context, ref string) (store.Run, error) {
	f := s.finder()
	r, err := f.One(ctx, ref)
	if errors.Is(err, store.ErrNotFound) {
		f.Deleted = true
		if gone, e := f.One(ctx, ref); e == nil {
			return gone, nil
		}
	}
	return r, err
}

func (s *Server) runPage(ctx context.Context, r *http.Request) (page, error) {
	run, err := s.oneRun(ctx, r.PathValue("run"))
	if err != nil {
		return page{}, err
	}
	q := r.URL.Query()
	name := fmt.Sprintf("%s#%d", run.Name, run.Seed)
	p := page{Title: name, Section: "runs", Use: "run", Command: "exp show " + run.RID.Short()}
	body := runBody{Run: run, Sel: run.RID.String()[:selDigits], Status: statusOf(&run),
		Running: run.Status == store.Running}
	// Outputs of stages are checked; exp show looks for all other blobs too.
	rec, err := recorded.Read(ctx, s.db, run, recorded.Options{Unchecked: true})
	if err != nil {
		return p, err
	}
	how, err := readPlotted(q, 0)
	if err != nil {
		return p, err
	}
	arms := []arm{{Arm: compare.Arm{Label: name, Runs: []store.Run{run}}}}
	names, early, err := s.recorded(ctx, []store.Run{run}, arms)
	if err != nil {
		return p, err
	}
	chosen := chosenMetrics(q, names, early...)
	if body.Charts, err = s.charts(ctx, arms, chosen, how, q); err != nil {
		return p, err
	}
	body.Choices = choicesOf("/run/"+body.Sel, q, how, names, chosen)
	if body.Phases, err = s.phasesOf(ctx, run); err != nil {
		return p, err
	}
	s.progress(ctx, &body)
	if body.Running {
		body.Now = s.activityOf(run.RID)
	}
	if err := s.moreOfRun(ctx, &body, rec); err != nil {
		return p, err
	}
	p.Body = body
	return p, nil
}

// moreOfRun fills what a run's page has below the curves.
func (s *Server) moreOfRun(ctx context.Context, body *runBody, rec *recorded.Run) error {
	run := body.Run
	body.Facts, body.Machine = s.facts(rec), machineFacts(rec)
	if !run.Deleted.IsZero() {
		body.Trouble = append(body.Trouble, "deleted; until exp gc removes it, exp restore brings it back")
	}
	for _, d := range rec.Divergences {
		body.Trouble = append(body.Trouble, "diverged: "+d.Text)
	}
	if run.Status == store.Stopped {
		body.Trouble = append(body.Trouble, "stopped by its condition: "+rec.Reason)
	}
	for _, d := range rec.Damage {
		body.Trouble = append(body.Trouble, "damaged: "+d.String())
	}
	body.Results, body.Stages, body.Chosen = resultsOf(rec), stageRows(rec), rec.Selection
	body.ChecksMore = max(0, len(rec.Checkpoints)-checkpointsShown)
	for _, c := range rec.Checkpoints[:len(rec.Checkpoints)-body.ChecksMore] {
		where := "on disk"
		if c.Path == "" {
			where = "removed since"
		}
		body.Checks = append(body.Checks, checkpointRow{strconv.FormatInt(c.Step, 10), quantity.Bytes(c.Bytes), where})
	}
	log := recorded.Log{DB: s.db, Run: run, Level: store.LevelInfo}
	entries, err := log.Read(ctx)
	if err != nil {
		return err
	}
	slices.Reverse(entries)
	body.Log = entries[:min(len(entries), logShown)]
	body.LogMore = len(entries) - len(body.Log)
	c, err := s.db.Config(ctx, run.Config)
	if err != nil {
		return err
	}
	body.Config = c.Source
	if body.Latest, err = s.latest(ctx, run); err != nil {
		return err
	}
	base := "/run/" + body.Sel
	body.LatestAt = base + "/completions"
	body.Others = []option{{Text: "completions", Link: base + "/completions"},
		{Text: "lineage", Link: base + "/lineage"},
		{Text: "report", Link: "/report?sel=" + body.Sel}, {Text: "benchmarks", Link: "/benchmarks?sel=" + body.Sel},
		{Text: "all seeds", Link: "/curves?sel=xid:" + run.XID.String()[:selDigits]}}
	return nil
}

// progress says how far a run is, and how long the rest takes at the pace of its last
// steps.
func (s *Server) progress(ctx context.Context, body *runBody) {
	r := body.Run
	if body.Status.Of == 0 {
		return
	}
	body.Share = quantity.Percent(float64(r.Steps)/float64(r.StepsTotal), 0)
	if !body.Running || r.Steps == 0 {
		return
	}
	curves, err := s.db.Metrics(ctx, r.ID, "timing_s/step", r.Steps-phaseSteps+1, r.Steps)
	if err != nil || len(curves) == 0 || len(curves[0].Values) < 3 {
		return // too early to tell
	}
	values := slices.Sorted(slices.Values(curves[0].Values))
	seconds := values[len(values)/2] * float64(r.StepsTotal-r.Steps)
	body.Left = quantity.Remaining(quantity.Seconds(seconds))
}

func (s *Server) facts(rec *recorded.Run) []fact {
	run := rec.Row
	algo := run.Algo
	if algo == config.None { // it only evaluates
		algo = ""
	}
	list := []fact{
		{Name: "algorithm", Text: algo}, {Name: "task", Text: run.Task}, {Name: "model", Text: run.Model},
		{Name: "seed", Text: strconv.FormatInt(run.Seed, 10)}, {Name: "steps", Text: rec.StepsText()},
		{Name: "took", Text: tookText(s.clock(), &run)}, {Name: "made", Text: clockText(run.Created)},
		{Name: "experiment", Text: "xid " + run.XID.Short(), Link: "/?F=" + "xid+%3D+" + run.XID.String()},
		{Name: "numerics", Text: strings.TrimSuffix(run.Numerics+" on "+run.Device, " on ")},
		{Name: "chain", Text: cmp.Or(run.Chain.Short(), "none yet")},
		{Name: "tags", Text: strings.Join(rec.Tags, ", ")},
	}
	for _, n := range rec.Notes {
		list = append(list, fact{Name: "note", Text: n.Text})
	}
	for _, v := range rec.Verifications {
		text := v.Level + ": confirmed"
		if !v.OK {
			text = v.Level + ": refuted"
		}
		list = append(list, fact{Name: "verified", Text: text + ", " + clockText(v.Time)})
	}
	if !rec.Parent.IsZero() {
		list = append(list, fact{Name: "continues", Text: rec.Parent.Short(),
			Link: "/run/" + rec.Parent.String()[:selDigits]})
	}
	if !run.Deleted.IsZero() {
		list = append(list, fact{Name: "deleted", Text: clockText(run.Deleted)})
	}
	return slices.DeleteFunc(list, func(f fact) bool { return f.Text == "" })
}

// machineFacts lists the machine of the newest attempt and the cost of the run.
func machineFacts(rec *recorded.Run) (list []fact) {
	if n := len(rec.Attempts); n > 0 {
		a := rec.Attempts[n-1]
		env, _ := a.Env.(map[string]any)
		text := func(key string) string { v, _ := env[key].(string); return v }
		memory := ""
		if v, ok := env["memory_bytes"].(float64); ok {
			memory = quantity.Bytes(int64(v))
		}
		list = append(list, fact{Name: "host", Text: fmt.Sprintf("%s, process %d", a.Host, a.PID)},
			fact{Name: "device", Text: a.Device}, fact{Name: "processor", Text: text("cpu")},
			fact{Name: "memory", Text: memory}, fact{Name: "build", Text: a.Build},
			fact{Name: "attempts", Text: strconv.Itoa(n)})
	}
	var cpu float64
	var peak int64
	for i := range rec.Stages {
		cpu += rec.Stages[i].CPUS
		peak = max(peak, rec.Stages[i].PeakMem)
	}
	if cpu > 0 {
		list = append(list, fact{Name: "processor time", Text: quantity.Duration(quantity.Seconds(cpu))})
	}
	if peak > 0 {
		list = append(list, fact{Name: "most memory used", Text: quantity.Bytes(peak)})
	}
	return slices.DeleteFunc(list, func(f fact) bool { return f.Text == "" })
}

// resultsOf groups the scores by suite.
func resultsOf(rec *recorded.Run) (list []suiteResults) {
	for _, r := range rec.Results {
		if len(list) == 0 || list[len(list)-1].Suite != r.Suite {
			list = append(list, suiteResults{Suite: r.Suite, About: fmt.Sprintf("%s, %s each; 95 %% intervals",
				quantity.Plural(int(r.Items), "problem"), quantity.Plural(int(r.N), "sample"))})
		}
		m, _ := metric.Find(r.Metric)
		row := resultRow{Name: r.Metric, Title: m.Title}
		row.Before, row.BeforeIn = scoreText(r.Metric, r.Before)
		row.After, row.AfterIn = scoreText(r.Metric, r.After)
		if r.Before != nil && r.After != nil {
			row.Change = quantity.Typeset(quantity.Signed(r.After.Value-r.Before.Value, 3))
		}
		last := &list[len(list)-1]
		if m.Shown&(metric.InLists|metric.Tested|metric.Described) != 0 {
			last.Rows = append(last.Rows, row)
		} else {
			last.More = append(last.More, row)
		}
	}
	return list
}

func scoreText(name string, v *recorded.Score) (value, interval string) {
	switch {
	case v == nil:
		return "", ""
	case v.Lo == nil || *v.Lo == *v.Hi:
		return quantity.Typeset(quantity.Fixed(v.Value, 3)), ""
	}
	return quantity.Typeset(quantity.Fixed(v.Value, 3)), intervalText(name, *v.Lo, *v.Hi)
}

// intervalText is the interval of a metric's mean: "[0.125, 0.250]".
func intervalText(name string, lo, hi float64) string {
	lo, hi = metric.CutOf(name, lo, hi)
	return quantity.Typeset("[" + quantity.Fixed(lo, 3) + ", " + quantity.Fixed(hi, 3) + "]")
}

func stageRows(rec *recorded.Run) (list []stageRow) {
	for i := range rec.Stages {
		st := &rec.Stages[i]
		row := stageRow{Name: st.Name(), Status: string(st.Status), Class: string(st.Status), Error: st.Error}
		if st.WallS > 0 {
			row.Took = quantity.Duration(quantity.Seconds(st.WallS))
		}
		if st.CPUS > 0 {
			row.CPU = quantity.Duration(quantity.Seconds(st.CPUS))
		}
		if st.PeakMem > 0 {
			row.Memory = quantity.Bytes(st.PeakMem)
		}
		if st.Status == store.Cached && st.From != rec.Run && !st.From.IsZero() {
			row.From, row.Link = "from "+st.From.Short(), "/run/"+st.From.String()[:selDigits]
		}
		list = append(list, row)
	}
	return list
}
