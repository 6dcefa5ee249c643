package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

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
	c := column{Key: verifiedKey, Wide: !some, Style: func(v any) term.Style {
		if v == store.VerifiedNo {
			return term.Bad
		}
		return term.Good
	}}
	if a.out.forPeople() {
		c.Text = func(v any) string { text, _ := v.(string); return verifiedMark(text, a.out.stream.Unicode) }
	}
	return runColumn{c, func(_ int, r *store.Run) any {
		if v := store.Verified(all[r.ID]); v != "" {
			return v
		}
		return nil
	}}
}

type shownVerification struct {
	Time     time.Time `json:"time"`
	Level    string    `json:"level"`
	OK       bool      `json:"ok"`
	FromStep int64     `json:"from_step"`
	ToStep   int64     `json:"to_step"`
	Detail   any       `json:"detail"`

	found []harness.Finding
}

func (r runReader) verifications() error {
	list, err := r.db.Verifications(r.ctx, r.run.ID)
	for _, v := range list {
		shown := shownVerification{Time: v.Time, Level: v.Level, OK: v.OK, FromStep: v.FromStep, ToStep: v.ToStep, Detail: jsonTree(v.Detail)}
		var detail harness.Verification
		if json.Unmarshal(v.Detail, &detail) == nil {
			shown.found = detail.Findings
		}
		r.s.Verifications = append(r.s.Verifications, shown)
	}
	return err
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
	for _, f := range v.found {
		wrong = append(wrong, f.Where)
	}
	if len(wrong) > 0 {
		text += ": " + firstOf(wrong, 4)
	}
	if len(list) > 1 {
		text += fmt.Sprintf("; %d verifications", len(list))
	}
	return strings.TrimSpace(text)
}
