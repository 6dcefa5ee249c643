package reports

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"regexp"
	"slices"

	"exp/eval/stat"
	"exp/experiments/ident"
	"exp/experiments/quantity"
	"exp/harness/config"
	"exp/reports/compare"
	"exp/reports/figure"
)

// Contests are the standings that a rating is computed from. As a file they are JSON:
//
//	{"schema": "exp.contests/1",
//	 "contests": [{"id": "1971", "problems": {"A": 500, …},
//	               "rows": [{"points": 4000, "penalty": 0, "old_rating": 2900}, …]}, …],
//	 "users": {"1200": 34, …}}
//
// rows holds the final standings of the contest's rated participants, best first;
// problems are worth 0 if the contest counts solved problems and penalties; users counts
// the users with each rating and may be left out.
type Contests struct {
	Schema   string          `json:"schema"`
	Contests []stat.Contest  `json:"contests"`
	Users    stat.Population `json:"users"`
	Digest   ident.Digest    `json:"-"` // of the file
	Path     string          `json:"-"`
}

const contestsSchema = "exp.contests/1"

// ReadContests reads a contests file. Errors name the file and the problem.
func ReadContests(path string) (*Contests, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	c := &Contests{Path: path, Digest: ident.Sum(b)}
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(c); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if c.Schema != contestsSchema {
		return nil, fmt.Errorf("%s: schema is %q, want %q", path, c.Schema, contestsSchema)
	}
	seen := map[string]bool{}
	for _, contest := range c.Contests {
		switch {
		case contest.ID == "" || seen[contest.ID]:
			return nil, fmt.Errorf("%s: contest %q appears twice or has no id", path, contest.ID)
		case len(contest.Problems) == 0:
			return nil, fmt.Errorf("%s: contest %s has no problems", path, contest.ID)
		}
		seen[contest.ID] = true
		for i, r := range contest.Rows[min(1, len(contest.Rows)):] {
			if above := contest.Rows[i]; r.Points > above.Points || r.Points == above.Points &&
				r.Penalty < above.Penalty {
				return nil, fmt.Errorf("%s: contest %s: row %d is better than the one above; rows are the standings, "+
					"best first", path, contest.ID, i+2)
			}
		}
	}
	for rating, n := range c.Users {
		if n < 0 {
			return nil, fmt.Errorf("%s: %d users have the rating %d", path, n, rating)
		}
	}
	return c, nil
}

// rated holds each arm's ratings on a suite.
type rated struct {
	suite    string
	contests []string          // that count, of each column
	skipped  []string          // that do not, and why
	ratings  []stat.Scores     // [arms][seeds][contests]
	mean     []figure.Estimate // of arms
	samples  int               // attempts at a problem
}

// contestProblem splits 1971A into contest and problem.
var contestProblem = regexp.MustCompile(`^(?:.*/)?([0-9]+)([A-Z][0-9]*)$`)

// rate computes the ratings on all suites with problems from the contests.
func (s *source) rate(c *Contests) ([]rated, error) {
	byID := map[string]*stat.Contest{}
	for i := range c.Contests {
		byID[c.Contests[i].ID] = &c.Contests[i]
	}
	var out []rated
	for _, suite := range suites(s.arms) {
		r := rated{suite: suite}
		if !s.findContests(&r, byID) {
			continue
		}
		if len(r.contests) == 0 {
			return nil, &compare.OptionError{Option: "contests", Value: c.Path, Problem: "rates nothing on " + suite +
				": " + listed(r.skipped),
				Advice: fmt.Sprintf("a contest needs all problems of the suite and more than %d rated participants",
					stat.MinParticipants)}
		}
		for _, a := range s.arms {
			var scores stat.Scores
			for _, run := range a.Runs {
				row, err := s.ratingsOf(run, &r, byID)
				if err != nil {
					return nil, fmt.Errorf("report: rating of run %s on %s: %w", run.RID.Short(), suite, err)
				}
				scores = append(scores, row)
			}
			r.add(scores)
		}
		out = append(out, r)
	}
	if len(out) == 0 {
		return nil, &compare.OptionError{Option: "contests", Value: c.Path,
			Problem: "rates none of these runs' suites: they hold no contest problems",
			Advice:  "ids of contest problems end like 1971A"}
	}
	return out, nil
}

// findContests sets which contests of a suite count; ok is false if the suite has
// problems from outside contests.
func (s *source) findContests(r *rated, byID map[string]*stat.Contest) (ok bool) {
	problems := map[string][]string{}
	for _, it := range s.arms[0].Runs[0].scores[r.suite] {
		m := contestProblem.FindStringSubmatch(it.Problem)
		if m == nil {
			return false
		}
		problems[m[1]] = append(problems[m[1]], m[2])
		r.samples = max(r.samples, it.Graded)
	}
	for _, id := range slices.Sorted(maps.Keys(problems)) {
		c := byID[id]
		switch {
		case c == nil:
			r.skipped = append(r.skipped, id+" is not in the file")
		case len(c.Rows) <= stat.MinParticipants:
			r.skipped = append(r.skipped, fmt.Sprintf("%s has %s", id,
				quantity.Plural(len(c.Rows), "rated participant")))
		case slices.ContainsFunc(problems[id], func(p string) bool { _, ok := c.Problems[p]; return !ok }):
			r.skipped = append(r.skipped, id+" lacks a problem of the suite")
		default:
			r.contests = append(r.contests, id)
		}
	}
	return len(problems) > 0
}

// ratingsOf returns a run's ratings in the contests that count, from the first right
// sample of each problem in sampling order.
func (s *source) ratingsOf(run *run, r *rated, byID map[string]*stat.Contest) ([]float64, error) {
	first, err := s.firstRight(run, r.suite)
	if err != nil {
		return nil, err
	}
	var row []float64
	for _, id := range r.contests {
		rating, err := byID[id].Rating(first[id])
		if err != nil {
			return nil, err
		}
		row = append(row, float64(rating))
	}
	return row, nil
}

// firstRight returns the index of the first right sample by contest and problem, without
// the unsolved ones.
func (s *source) firstRight(run *run, suite string) (map[string]map[string]int, error) {
	first := map[string]map[string]int{}
	for _, o := range run.counted[suite].Scored.Outputs {
		if o.Role != config.RoleVerdicts {
			continue
		}
		b, err := s.db.Blobs.Bytes(o.Digest)
		if err != nil {
			return nil, err
		}
		lines := bufio.NewScanner(bytes.NewReader(b))
		lines.Buffer(nil, len(b)+1)
		for lines.Scan() {
			var v struct {
				Problem string `json:"problem"`
				K       int    `json:"k"`
				Correct bool   `json:"correct"`
			}
			if err := json.Unmarshal(lines.Bytes(), &v); err != nil {
				return nil, fmt.Errorf("verdicts: %w", err)
			}
			m := contestProblem.FindStringSubmatch(v.Problem)
			if m == nil || !v.Correct {
				continue
			}
			if first[m[1]] == nil {
				first[m[1]] = map[string]int{}
			}
			if at, ok := first[m[1]][m[2]]; !ok || v.K < at {
				first[m[1]][m[2]] = v.K
			}
		}
		return first, lines.Err()
	}
	return nil, errors.New("it has no verdicts")
}

// add appends an arm: the mean over contests and seeds, with its interval over contests,
// and over seeds if there are enough.
func (r *rated) add(scores stat.Scores) {
	m := stat.ClusterMean(meanRow(scores), nil)
	if len(scores) >= compare.MinSeeds {
		m = stat.CrossedMean(scores, nil)
	}
	e := figure.Point(m.Value)
	if iv, ok := stat.TInterval(m, 0.95); ok {
		e.Lo, e.Hi = iv.Lo, iv.Hi
	}
	r.ratings, r.mean = append(r.ratings, scores), append(r.mean, e)
}

// meanRow returns the mean of each column.
func meanRow(rows stat.Scores) []float64 {
	out := make([]float64, len(rows[0]))
	for _, row := range rows {
		for i, x := range row {
			out[i] += x / float64(len(rows))
		}
	}
	return out
}

// ratingTitle avoids calling the number a rating: with public tests, it is only
// CodeElo-style.
const ratingTitle = "CodeElo-style rating"

// ratingFigure shows the arms' ratings.
func (s *source) ratingFigure() drawing {
	f := figure.Dots{Head: figure.Head{Name: "rating", Title: ratingTitle, Order: labels(s.arms),
		About: "Rating of a participant expected to rank where the first right samples rank among a contest's " +
			"participants, mean over contests (arXiv:2501.01257). It is only as good as the suite's tests"},
		X: figure.Axis{Label: "rating"}, Interval: "95\u202f%, Student's t over contests, and over seeds where an " +
			"arm has at least 3"}
	if len(s.rated) == 0 {
		return drawing{name: f.Name, title: f.Title,
			reason: errors.New("it needs a contests file (--contests) and a suite with problems from it")}
	}
	for i, a := range s.arms {
		arm := figure.ArmValues{Name: a.label, Seeds: len(a.Runs)}
		for _, r := range s.rated {
			arm.Values = append(arm.Values, r.mean[i])
		}
		f.Arms = append(f.Arms, arm)
	}
	for _, r := range s.rated {
		f.Groups = append(f.Groups, fmt.Sprintf("%s, %s", s.suiteName(r.suite),
			quantity.Plural(len(r.contests), "contest")))
	}
	return try(groupResults, f)
}

// ratingGrid shows each arm's rating and percentile; nil without contests.
func (s *source) ratingGrid() *grid {
	if len(s.rated) == 0 {
		return nil
	}
	g := &grid{Caption: ratingTitle, Columns: []column{left("suite"), left("arm"), right("rating"),
		right("percentile"), right("contests"), right("attempts")}}
	var skipped []string
	for _, r := range s.rated {
		for i, a := range s.arms {
			e := r.mean[i]
			cell := text("%s", fixed(e.Value, 0))
			if e.Lo < e.Hi {
				cell = cell.with(styled(muted, fmt.Sprintf(" [%s, %s]", fixed(e.Lo, 0), fixed(e.Hi, 0))))
			}
			percentile := math.NaN()
			if len(s.contests.Users) > 0 {
				percentile = s.contests.Users.Percentile(e.Value)
			}
			g.add(text("%s", s.suiteName(r.suite)), line{a.span()}, cell, text("%s", fixed(percentile, 1)),
				text("%d", len(r.contests)), text("%d", r.samples))
		}
		skipped = append(skipped, r.skipped...)
	}
	g.Note = text("Percentile: percentage of users with a lower rating. Only contests with more than %d rated "+
		"participants count. File %s.", stat.MinParticipants, s.contests.Digest.Short())
	if len(skipped) > 0 {
		g.Note = g.Note.with(span{Text: fmt.Sprintf(" Not counted: %s.", listed(skipped))})
	}
	return g
}
