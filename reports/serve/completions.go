package serve

import (
	"context"
	"math"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"exp/experiments/quantity"
	"exp/experiments/recorded"
	"exp/experiments/store"
	"exp/harness/config"
	"exp/reports"
)

const (
	// completionsShown is how many completions a page has.
	completionsShown = 40
	// latestShown is how many of them the page of a run has.
	latestShown = 6
	// latestRead is how many are read for it: a step samples each problem several times.
	latestRead = 200
	// longestPattern bounds a regular expression, whose time grows with its length.
	longestPattern = 200
)

// completionsBody is the data of completions.tmpl.
type completionsBody struct {
	Run     store.Run
	Sel     string
	Suites  []option
	Suite   string
	Values  url.Values // of the form
	Rows    []completionRow
	Later   string
	None    string // why the page has none
	Problem string // of the form's values
}

// completionRow is a completion with its verdicts.
type completionRow struct {
	Step, Item, K  string
	Verdict, Class string
	Score, Tokens  string
	LogProb        string
	Finish         string
	Answer, Reason string
	Gold           string // right answer, or one of many
	Prompt, Text   string
	Images         []shownImage    // in Prompt, and in what an agent said
	Turns          []recorded.Part // Text where others wrote parts of it; nil: they did not
	Spans          []wordSpan      // of Text, with what another run's has not; nil: not compared
	Agent          bool            // an agent said those parts
	Kept           bool
	Parts          []fact   // of the reward
	Earned         string   // by the policy's turns
	Graders        []grader // if there are several
	Disputed       bool
	Here, Others   string // addresses: the problem in this run; in others
}

type grader struct{ Name, Verdict, Class, Score, Reason string }

// completionQuery reads the form's values.
func completionQuery(q url.Values) (c store.SampleQuery, match *regexp.Regexp, err error) {
	c.Item = q.Get("item")
	for name, to := range map[string]*int64{"step": &c.Step, "min_tokens": &c.MinTokens, "max_tokens": &c.MaxTokens,
		"after": &c.After} {
		if text := q.Get(name); text != "" {
			if *to, err = strconv.ParseInt(text, 10, 64); err != nil || *to < 0 {
				return c, nil, badRequest("%s=%s: it is a whole number", name, text)
			}
		}
	}
	for name, to := range map[string]**float64{"min_score": &c.MinReward, "max_score": &c.MaxReward} {
		if text := q.Get(name); text != "" {
			v, err := strconv.ParseFloat(text, 64)
			if err != nil || math.IsNaN(v) {
				return c, nil, badRequest("%s=%s: it is a number", name, text)
			}
			*to = &v
		}
	}
	switch verdict := q.Get("verdict"); verdict {
	case "right", "wrong":
		right := verdict == "right"
		c.Correct, c.Sampled = &right, true
	case "disputed":
		c.Disputed = true
	}
	if text := q.Get("grep"); text != "" {
		if len(text) > longestPattern {
			return c, nil, badRequest("the pattern is longer than %d characters", longestPattern)
		}
		if match, err = regexp.Compile(text); err != nil {
			return c, nil, badRequest("pattern: %v", err)
		}
	}
	return c, match, nil
}

func (s *Server) completionsPage(ctx context.Context, r *http.Request) (page, error) {
	run, err := s.oneRun(ctx, r.PathValue("run"))
	if err != nil {
		return page{}, err
	}
	q := r.URL.Query()
	body := completionsBody{Run: run, Sel: run.RID.String()[:selDigits], Suite: q.Get("suite"), Values: q}
	p := page{Title: "Completions of " + run.Name, Section: "runs", Use: "completions"}
	suites, err := recorded.Suites(ctx, s.db, run)
	if err != nil {
		return p, err
	}
	if body.Suite == "" {
		body.Suite = recorded.TrainSuite
		if len(suites) > 0 && q.Get("step") == "" {
			body.Suite = recorded.FirstTrained(suites)
		}
	}
	path := "/run/" + body.Sel + "/completions"
	for _, name := range append(suites, recorded.TrainSuite) {
		body.Suites = append(body.Suites, option{name, href(path, q, "suite", name, "after", ""), name == body.Suite})
	}
	p.Command = completionsCommand(run, body.Suite, q)
	wanted, match, err := completionQuery(q)
	if err != nil {
		body.Problem = problemText(err)
		p.Body = body
		return p, nil
	}
	list, more, err := s.completions(ctx, run, body.Suite, wanted, match, completionsShown)
	if err != nil {
		return p, err
	}
	if err := recorded.AddGolds(ctx, s.db, list); err != nil {
		return p, err
	}
	if body.Rows, err = s.completionRows(ctx, run, list); err != nil {
		return p, err
	}
	if more {
		body.Later = href(path, q, "after", strconv.FormatInt(list[len(list)-1].ID, 10))
	}
	if len(list) == 0 {
		body.None = noCompletions(run)
	}
	p.Body = body
	return p, nil
}

func noCompletions(run store.Run) string {
	if run.Status == store.Running {
		return "None yet: completions of training are written every 25 steps and at its end."
	}
	return "No completion matches, or none was kept (store.samples.train and store.samples.eval say which are)."
}

func completionsCommand(run store.Run, suite string, q url.Values) string {
	line := "exp samples " + run.RID.Short() + " --suite " + quoted(suite)
	for _, flag := range []string{"step", "item", "grep"} {
		if v := q.Get(flag); v != "" {
			line += " --" + flag + " " + quoted(v)
		}
	}
	if v := q.Get("verdict"); v == "right" || v == "wrong" {
		line += " --" + v
	}
	return line + " --text"
}

// completions reads completions of a suite, or of training.
func (s *Server) completions(ctx context.Context, run store.Run, suite string, q store.SampleQuery,
	match *regexp.Regexp, most int) ([]recorded.Completion, bool, error) {
	q, err := recorded.OfSuite(ctx, s.db, run, string(config.EvalGen), suite, q)
	if err != nil {
		return nil, false, err
	}
	return recorded.Completions{DB: s.db, Run: run, Suite: suite, Query: q, Match: match}.Read(ctx, most)
}

// latest reads the last completions that a run recorded: of its newest step, or of its
// evaluation.
func (s *Server) latest(ctx context.Context, run store.Run) ([]completionRow, error) {
	var list []recorded.Completion
	var err error
	for step := run.Steps; step > 0 && step > run.Steps-25 && len(list) == 0; step-- {
		list, _, err = s.completions(ctx, run, recorded.TrainSuite, store.SampleQuery{Step: step}, nil, latestRead)
		if err != nil {
			return nil, err
		}
	}
	return s.completionRows(ctx, run, oneEach(list, latestShown))
}

// oneEach returns the first completion of each problem, most at most.
func oneEach(list []recorded.Completion, most int) (out []recorded.Completion) {
	for _, c := range list {
		had := slices.ContainsFunc(out, func(o recorded.Completion) bool { return o.Item == c.Item })
		if !had && len(out) < most {
			out = append(out, c)
		}
	}
	return out
}

func (s *Server) completionRows(
	ctx context.Context, run store.Run, list []recorded.Completion,
) ([]completionRow, error) {
	ids := make([]int64, len(list))
	for i, c := range list {
		ids[i] = c.ID
	}
	verdicts, err := s.db.Verdicts(ctx, ids)
	if err != nil {
		return nil, err
	}
	base := "/run/" + run.RID.String()[:selDigits] + "/completions"
	rows := make([]completionRow, len(list))
	for i := range list {
		c := &list[i]
		row := rowOf(c)
		row.Images = imagesIn(run, c.Prompt+saidToPolicy(c))
		row.Here = href(base, url.Values{"suite": {c.Suite}, "item": {c.Item}})
		row.Others = href("/problems", url.Values{"sel": {run.RID.String()[:selDigits]}, "suite": {c.Suite},
			"item": {c.Item}})
		for _, v := range verdicts {
			if v.Sample == c.ID {
				row.Graders = append(row.Graders, graderOf(v))
			}
		}
		row.Disputed = disputed(row.Graders)
		if len(row.Graders) == 1 {
			row.Graders = nil
		}
		rows[i] = row
	}
	return rows, nil
}

func rowOf(c *recorded.Completion) completionRow {
	row := completionRow{Item: c.Item, K: strconv.Itoa(c.K), Verdict: c.Verdict(), Class: verdictClass(c.Verdict()),
		Score: finite(c.Reward, 2), Tokens: strconv.FormatInt(c.OutTokens, 10), LogProb: finite(c.LogProbSum, 2),
		Finish: c.Finish, Answer: c.Answer, Gold: c.Gold, Reason: c.Reason, Kept: c.Kept, Agent: c.Agent,
		Prompt: reports.Visible(c.Prompt), Text: reports.Visible(c.Text)}
	if len(c.Inserted)+len(c.Later) > 0 {
		for _, p := range c.Parts() {
			row.Turns = append(row.Turns, recorded.Part{Text: reports.Visible(p.Text), Tool: p.Tool, Prompt: p.Prompt})
		}
	}
	row.Earned = c.Earned()
	if c.Step > 0 {
		row.Step = strconv.FormatInt(c.Step, 10)
	}
	names := make([]string, 0, len(c.Components))
	for name := range c.Components {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		row.Parts = append(row.Parts, fact{Name: name, Text: quantity.Fixed(c.Components[name], 2)})
	}
	return row
}

// saidToPolicy returns what others than the policy wrote after the first prompt.
func saidToPolicy(c *recorded.Completion) string {
	var b strings.Builder
	for _, p := range c.Parts() {
		if p.Tool || p.Prompt {
			b.WriteString(p.Text)
		}
	}
	return b.String()
}

func verdictClass(verdict string) string {
	return strings.ReplaceAll(verdict, "not graded", "ungraded")
}

func graderOf(v store.Verdict) grader {
	g := grader{Name: v.Scorer.Name, Verdict: "not graded", Class: "ungraded",
		Score: finite(v.Reward, 2), Reason: v.Reason}
	switch {
	case v.Graded && v.Correct:
		g.Verdict, g.Class = "right", "right"
	case v.Graded:
		g.Verdict, g.Class = "wrong", "wrong"
	}
	return g
}

// disputed reports whether graders disagree.
func disputed(list []grader) bool {
	says := func(verdict string) bool {
		return slices.ContainsFunc(list, func(g grader) bool { return g.Verdict == verdict })
	}
	return says("right") && says("wrong")
}

// finite formats a number; "" for NaN.
func finite(v float64, digits int) string {
	if math.IsNaN(v) {
		return ""
	}
	return quantity.Typeset(quantity.Fixed(v, digits))
}
