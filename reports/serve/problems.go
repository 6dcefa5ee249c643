package serve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"exp/experiments/quantity"
	"exp/experiments/recorded"
	"exp/experiments/store"
	"exp/harness/config"
	"exp/reports"
	"exp/reports/compare"
)

// problemsBody is the data of problems.tmpl.
type problemsBody struct {
	Sel    []string
	Suites []option
	Suite  string
	Item   string
	Runs   []problemRun
	Rows   []problemRow
	Sides  []problemSide
	Prompt string
	Images []shownImage // in Prompt
	Gold   string       // right answer, or one of many
	Note   string
	Back   string
	Counts string
	Asked  bool // some row has a prompt
	More   int  // rows left out
	Empty  bool
}

type problemRun struct {
	Name, Link, Class string
}

// problemRow is a problem with each run's share of right completions.
type problemRow struct {
	Item, Link string
	Prompt     string // its beginning
	Whole      string // more of it
	Cells      []cell
	Gap        string // between the first two runs
}

// problemSide is a run's completions of a problem.
type problemSide struct {
	Run  problemRun
	Note string
	Rows []completionRow
}

const (
	mostSides    = 6   // runs next to each other
	problemsMost = 100 // rows
)

// problemsPage compares runs problem by problem.
func (s *Server) problemsPage(ctx context.Context, r *http.Request) (page, error) {
	q := r.URL.Query()
	body := problemsBody{Sel: q["sel"], Suite: q.Get("suite"), Item: q.Get("item")}
	p := page{Title: "Problems", Section: "problems", Use: "problems"}
	if len(selectionOf(q).Runs) == 0 {
		body.Empty = true
		p.Body = body
		return p, nil
	}
	arms, err := s.selected(ctx, q)
	if err != nil {
		return p, err
	}
	var runs []store.Run
	for _, a := range arms {
		runs = append(runs, a.Runs...)
	}
	if len(runs) > mostSides {
		body.Note = "The first " + strconv.Itoa(mostSides) + " of " + strconv.Itoa(len(runs)) + " runs are shown."
		runs = runs[:mostSides]
	}
	for i, run := range runs {
		body.Runs = append(body.Runs, problemRun{run.Name + "#" + strconv.FormatInt(run.Seed, 10),
			"/run/" + run.RID.String()[:selDigits], arm{Place: i}.Class()})
	}
	if err := s.chooseSuite(ctx, &body, runs, q); err != nil {
		return p, err
	}
	if body.Item != "" {
		err = s.problemSides(ctx, &body, runs)
		body.Back = href("/problems", q, "item", "")
	} else {
		err = s.problemRows(ctx, &body, runs, q)
	}
	p.Body = body
	return p, err
}

// chooseSuite lists the suites that all runs have.
func (s *Server) chooseSuite(ctx context.Context, body *problemsBody, runs []store.Run, q url.Values) error {
	var shared []string
	for i, run := range runs {
		suites, err := recorded.Suites(ctx, s.db, run)
		if err != nil {
			return err
		}
		if i == 0 {
			shared = suites
			continue
		}
		shared = slices.DeleteFunc(shared, func(name string) bool { return !slices.Contains(suites, name) })
	}
	if body.Suite == "" && len(shared) > 0 {
		body.Suite = recorded.FirstTrained(shared)
	}
	for _, name := range shared {
		body.Suites = append(body.Suites,
			option{name, href("/problems", q, "suite", name, "item", ""), name == body.Suite})
	}
	return nil
}

// sampledBy returns, by run, the home of the evaluation of a suite that counts: one that the
// runs share, as in a comparison. Runs that have not been scored have none.
func (s *Server) sampledBy(ctx context.Context, runs []store.Run, suite string) (map[int64]int64, error) {
	homes := map[int64]int64{}
	counted, err := compare.Counted(ctx, s.db, runs)
	for run, list := range counted {
		for _, e := range list {
			if e.Scored.Label == suite {
				homes[run] = e.Sampled.Home
			}
		}
	}
	return homes, err
}

// problemRows counts each run's right completions by problem. Problems where the first two
// runs differ most come first, and others in the order of their ids, numbers by value.
func (s *Server) problemRows(ctx context.Context, body *problemsBody, runs []store.Run, q url.Values) error {
	if body.Suite == "" {
		body.Note = "No suite was evaluated for all of these runs."
		return nil
	}
	homes, err := s.sampledBy(ctx, runs, body.Suite)
	if err != nil {
		return err
	}
	items := map[string][]store.ItemCount{}
	var order []string
	for i, run := range runs {
		wanted, err := recorded.OfSuite(ctx, s.db, run, string(config.EvalGen), body.Suite,
			store.SampleQuery{Stage: homes[run.ID]})
		if err != nil {
			return err
		}
		counts, err := s.db.ItemCounts(ctx, run.ID, wanted)
		if err != nil {
			return err
		}
		for _, c := range counts {
			if items[c.Item] == nil {
				items[c.Item] = make([]store.ItemCount, len(runs))
				order = append(order, c.Item)
			}
			items[c.Item][i] = c
		}
	}
	gap := func(item string) float64 {
		if len(runs) < 2 {
			return share(items[item][0])
		}
		return share(items[item][0]) - share(items[item][1])
	}
	slices.SortFunc(order, func(a, b string) int {
		return cmp.Or(compareGaps(gap(a), gap(b), len(runs) > 1), compare.CompareLabels(a, b))
	})
	body.Counts = countsText(order, items, len(runs))
	body.More = max(0, len(order)-problemsMost)
	order = order[:len(order)-body.More]
	prompts, err := s.promptsOf(order, items)
	if err != nil {
		return err
	}
	skip := sharedBeginning(prompts)
	for i, item := range order {
		row := problemRow{Item: item, Link: href("/problems", q, "suite", body.Suite, "item", item)}
		row.Prompt, row.Whole = beginning(prompts[i], skip)
		body.Asked = body.Asked || row.Prompt != ""
		for _, c := range items[item] {
			text := ""
			if c.Graded > 0 {
				text = strconv.FormatInt(c.Right, 10) + "/" + strconv.FormatInt(c.Graded, 10)
			}
			row.Cells = append(row.Cells, cell{text, true})
		}
		if g := gap(item); len(runs) > 1 && !math.IsNaN(g) {
			row.Gap = quantity.Typeset(quantity.Signed(g, 2))
		}
		body.Rows = append(body.Rows, row)
	}
	return nil
}

// compareGaps orders by size, numbers before NaN.
func compareGaps(a, b float64, sized bool) int {
	if sized {
		a, b = math.Abs(a), math.Abs(b)
	}
	switch {
	case math.IsNaN(a) && math.IsNaN(b), a == b:
		return 0
	case math.IsNaN(b), a > b:
		return -1
	}
	return 1
}

func share(c store.ItemCount) float64 { return float64(c.Right) / float64(c.Graded) }

// countsText says how many problems only one of two runs solves.
func countsText(order []string, items map[string][]store.ItemCount, runs int) string {
	if runs < 2 {
		return quantity.Plural(len(order), "problem")
	}
	var first, second, both, neither int
	for _, item := range order {
		a, b := items[item][0].Right > 0, items[item][1].Right > 0
		switch {
		case a && b:
			both++
		case a:
			first++
		case b:
			second++
		default:
			neither++
		}
	}
	return fmt.Sprintf("%s: %d solved by both of the first two runs, %d by the first alone, %d by the second alone, "+
		"%d by neither", quantity.Plural(len(order), "problem"), both, first, second, neither)
}

// problemSides puts the runs' completions of one problem next to each other, equal texts
// once.
func (s *Server) problemSides(ctx context.Context, body *problemsBody, runs []store.Run) error {
	homes, err := s.sampledBy(ctx, runs, body.Suite)
	if err != nil {
		return err
	}
	for i, run := range runs {
		side := problemSide{Run: body.Runs[i]}
		wanted := store.SampleQuery{Item: body.Item, Stage: homes[run.ID]}
		list, _, err := s.completions(ctx, run, body.Suite, wanted, nil, 0)
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return err
		}
		if err := recorded.AddGolds(ctx, s.db, list); err != nil {
			return err
		}
		right, graded := 0, 0
		seen := map[[2]string]int{}
		for k := range list {
			c := &list[k]
			if c.Correct != nil {
				graded++
				if *c.Correct {
					right++
				}
			}
			body.Gold = cmp.Or(body.Gold, c.Gold)
			if body.Prompt == "" {
				body.Prompt, body.Images = reports.Visible(c.Prompt), imagesIn(run, c.Prompt)
			}
			key := [2]string{c.Verdict(), c.Text}
			at, ok := seen[key]
			if !ok {
				at = len(side.Rows)
				seen[key] = at
				side.Rows = append(side.Rows, rowOf(c))
				side.Rows[at].K = "0"
			}
			n, _ := strconv.Atoi(side.Rows[at].K)
			side.Rows[at].K = strconv.Itoa(n + 1)
		}
		slices.SortStableFunc(side.Rows, func(a, b completionRow) int {
			x, _ := strconv.Atoi(a.K)
			y, _ := strconv.Atoi(b.K)
			return y - x
		})
		side.Note = strconv.Itoa(right) + " of " + strconv.Itoa(graded) + " right"
		if len(list) == 0 {
			side.Note = "no completions were kept"
		}
		body.Sides = append(body.Sides, side)
	}
	markDifferences(body.Sides)
	return nil
}
