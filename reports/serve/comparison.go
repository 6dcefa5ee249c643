package serve

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"exp/experiments/store"
	"exp/reports"
	"exp/reports/compare"
)

// refusedBody is the data of refused.tmpl.
type refusedBody struct {
	Text   string
	Arms   []string
	Rows   []differenceRow
	Left   []string // arms and runs that do not count, and why
	Curves string
}

// differenceRow is a setting that differs between arms.
type differenceRow struct {
	Key, Class string
	Values     []string
	Allow      string // address that waives the difference; empty: it may differ
}

// input compares the selected arms, as exp report does.
func (s *Server) input(ctx context.Context, q url.Values) (reports.Input, error) {
	in := reports.Input{DB: s.db, RunPage: func(r store.Run) string { return "/run/" + r.RID.String()[:selDigits] }}
	arms, err := s.selected(ctx, q)
	if err != nil {
		return in, err
	}
	var list []compare.Arm
	for _, a := range arms {
		list = append(list, a.Arm)
	}
	list, in.Left = selectionOf(q).Finished(list)
	foreign := slices.ContainsFunc(list, func(a compare.Arm) bool {
		return slices.ContainsFunc(a.Runs, func(r store.Run) bool { return r.Foreign() != "" })
	})
	switch {
	case len(list) == 1:
		in.Arm = list[0]
	case foreign:
		in.SideBySide = list
	default:
		vary := q["vary"]
		if by := q.Get("by"); by != "" && !slices.Contains([]string{"xid", "name", "algo", "model", "task"}, by) {
			vary = append(vary, strings.TrimPrefix(by, "config."))
		} else {
			for i := range list {
				list[i].Label = ""
			}
		}
		in.Comparison, err = compare.Compare(ctx, s.db, list, compare.Options{Vary: vary, Allow: q["allow"],
			Baseline: q.Get("vs") != ""})
	}
	return in, err
}

// comparePage shows a comparison with its verdicts; refused arms get a page that says why.
func (s *Server) comparePage(ctx context.Context, r *http.Request) (page, error) {
	q := r.URL.Query()
	if len(selectionOf(q).Runs) == 0 {
		return page{Title: "Compare", Section: "compare", Use: "choose", Body: chooseBody{Path: "/compare",
			What: "compare arms with statistics"}}, nil
	}
	p := page{Title: "Comparison", Section: "compare", Use: "comparison", Command: compareCommand(q)}
	in, err := s.input(ctx, q)
	var refused *compare.NotComparableError
	if errors.As(err, &refused) {
		p.Use, p.Body = "refused", refusal(refused, q, in.Left)
		return p, nil
	}
	if err != nil {
		return p, err
	}
	in.Brief = true
	report, err := reports.New(ctx, in)
	if err != nil {
		return p, err
	}
	body, err := report.Sections()
	if err != nil {
		return p, err
	}
	p.Body = comparisonBody{Sections: body, Report: href("/report", q),
		Curves: href("/curves", only(q, "sel", "by", "vs"))}
	return p, nil
}

// chooseBody is the data of choose.tmpl: a page that needs runs.
type chooseBody struct{ Path, What string }

// comparisonBody is the data of comparison.tmpl.
type comparisonBody struct {
	Sections       []reports.Section
	Report, Curves string
}

func compareCommand(q url.Values) string {
	line := "exp compare " + words(q["sel"])
	for _, flag := range []string{"vs", "by"} {
		if v := q.Get(flag); v != "" {
			line += " --" + flag + " " + quoted(v)
		}
	}
	for _, flag := range []string{"vary", "allow"} {
		for _, v := range q[flag] {
			line += " --" + flag + " " + quoted(v)
		}
	}
	return line
}

// refusal shows what differs between arms that cannot be compared, and which were left out.
func refusal(e *compare.NotComparableError, q url.Values, left []string) refusedBody {
	b := refusedBody{Left: slices.Clone(left), Curves: href("/curves", only(q, "sel", "by", "vs"))}
	for _, x := range e.Comparability.Excluded {
		b.Left = append(b.Left, fmt.Sprintf("run %.8s (%s, seed %d): %s", x.RID, e.Arms[x.Arm].Label, x.Seed,
			x.Reason))
	}
	for _, a := range e.Arms {
		b.Arms = append(b.Arms, a.Label)
	}
	var keys []string
	for i := range e.Comparability.Differences {
		d := &e.Comparability.Differences[i]
		if d.Refused() {
			keys = append(keys, d.Key)
		}
		row := differenceRow{Key: d.Key, Class: string(d.Class)}
		for k := range e.Arms {
			row.Values = append(row.Values, cmp.Or(d.Text(k), "–"))
		}
		if d.Refused() && !d.Within && !strings.HasPrefix(d.Key, "suite") {
			more := url.Values{}
			for k, v := range q {
				more[k] = v
			}
			more["allow"] = append(slices.Clone(q["allow"]), d.Key)
			row.Allow = href("/compare", more)
		}
		b.Rows = append(b.Rows, row)
	}
	b.Text = "They differ in " + strings.Join(keys, ", ")
	slices.SortStableFunc(b.Rows, func(x, y differenceRow) int { // what may not differ first
		return cmp.Compare(strings.Compare(y.Allow, ""), strings.Compare(x.Allow, ""))
	})
	return b
}

// sendReport sends the report about the selected runs: the page that exp report writes,
// with its style sheet named in the policy.
func (s *Server) sendReport(w http.ResponseWriter, r *http.Request) {
	content, style, err := s.report(r.Context(), r.URL.Query())
	var refused *compare.NotComparableError
	switch {
	case errors.As(err, &refused):
		s.answer(w, r, page{Title: "Report", Section: "compare", Use: "refused",
			Body: refusal(refused, r.URL.Query(), nil)})
		return
	case err != nil:
		s.answer(w, r, explain(r.Context(), err))
		return
	}
	sum := sha256.Sum256([]byte(style))
	hash := "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
	w.Header().Set("Content-Security-Policy", strings.Replace(policy, "style-src 'self'", "style-src "+hash, 1))
	send(w, r, http.StatusOK, "text/html; charset=utf-8", content)
}

func (s *Server) report(ctx context.Context, q url.Values) (content []byte, style string, err error) {
	if len(selectionOf(q).Runs) == 0 {
		return nil, "", badRequest("a report needs runs: choose some in the list")
	}
	select {
	case s.reporting <- struct{}{}:
		defer func() { <-s.reporting }()
	case <-ctx.Done():
		return nil, "", ctx.Err()
	}
	in, err := s.input(ctx, q)
	if err != nil {
		return nil, "", err
	}
	report, err := reports.New(ctx, in)
	if err != nil {
		return nil, "", err
	}
	content, err = report.Page("/")
	return content, reports.Style(), err
}
