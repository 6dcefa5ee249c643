package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"exp/cmd/exp/cli"
	"exp/cmd/exp/term"
	"exp/experiments/store"
	harness "exp/harness/run"
)

// verifiedKey names the column, and the field of filters.
const verifiedKey = "verified"

// verifiedMark is how a list for people shows it.
func verifiedMark(v string, unicode bool) string {
	yes, no := "✓", "✗"
	if !unicode {
		yes, no = "ok ", "no"
	}
	switch v {
	case "":
		return ""
	case store.VerifiedNo:
		return no
	}
	return yes + v
}

// verifiedColumn is a column of how far runs were proved; people see it where some run
// was verified, or if they asked.
func (a *app) verifiedColumn(all map[int64][]store.Verification, runs []store.Run, asked bool) runColumn {
	some := asked || slices.ContainsFunc(runs, func(r store.Run) bool { return len(all[r.ID]) > 0 })
	c := cli.Column{Key: verifiedKey, Wide: !some, Style: func(v any) term.Style {
		if v == store.VerifiedNo {
			return term.Bad
		}
		return term.Good
	}}
	if a.Out.ForPeople() {
		c.Text = func(v any) string { text, _ := v.(string); return verifiedMark(text, a.Out.Stream.Unicode) }
	}
	return runColumn{c, func(_ int, r *store.Run) any {
		if v := store.Verified(all[r.ID]); v != "" {
			return v
		}
		return nil
	}}
}

// verificationText says what the newest verification came to, and what all did.
func (p *showPage) verificationText() string {
	list := p.s.Verifications
	if len(list) == 0 {
		return ""
	}
	v := list[len(list)-1]
	text := v.Level + " ok"
	if !v.OK {
		text = v.Level + " FAILED"
	}
	if v.FromStep > 0 {
		text += fmt.Sprintf(", steps %d–%d executed again", v.FromStep, v.ToStep)
	}
	text += " (" + age(p.now, v.Time) + " ago)"
	var wrong []string
	var detail harness.Verification
	if json.Unmarshal(v.Raw, &detail) == nil {
		for _, f := range detail.Findings {
			wrong = append(wrong, f.Where)
		}
	}
	if len(wrong) > 0 {
		text += ": " + firstOf(wrong, 4)
	}
	if len(list) > 1 {
		text += fmt.Sprintf("; %d verifications", len(list))
	}
	return strings.TrimSpace(text)
}
