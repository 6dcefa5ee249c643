package recorded

import (
	"errors"
	"testing"

	"exp/experiments/ident"
	"exp/experiments/store"
)

// Of several selections the newest is shown. A failed one names its inputs and keeps no problem.
func TestRatedBlobs(t *testing.T) {
	d := func(text string) ident.Digest { return ident.Sum([]byte(text)) }
	in := func(rates string) []store.IO {
		return []store.IO{{Role: roleTrain, Digest: d("all")}, {Role: rolePassRates, Digest: d(rates)}}
	}
	out := func(text string) []store.IO { return []store.IO{{Role: roleTrain, Digest: d(text)}} }
	measured := store.Stage{Kind: stagePassRate, Inputs: out("all"),
		Outputs: []store.IO{{Role: rolePassRates, Digest: d("rates")}}}
	chosen := store.Stage{Kind: stageSelect, Inputs: in("rates"), Outputs: out("kept")}
	chosen.Result = []byte(`{"kept": 3}`)
	failed := store.Stage{Kind: stageSelect, Inputs: in("other")}
	for _, tt := range []struct {
		stages      []store.Stage
		rates, kept ident.Digest
		n           int // kept, as SelectionOf says
	}{
		{nil, ident.Digest{}, ident.Digest{}, 0},
		{[]store.Stage{{Kind: stagePassRate, Inputs: out("all")}}, ident.Digest{}, ident.Digest{}, 0},
		{[]store.Stage{measured}, d("rates"), ident.Digest{}, 0},
		{[]store.Stage{measured, chosen}, d("rates"), d("kept"), 3},
		{[]store.Stage{measured, chosen, failed}, d("other"), ident.Digest{}, 3},
	} {
		problems, rates, kept := ratedBlobs(tt.stages)
		if rates != tt.rates || kept != tt.kept || rates.IsZero() != problems.IsZero() {
			t.Errorf("%d stages: problems %s, rates %s, kept %s", len(tt.stages), problems.Short(), rates.Short(),
				kept.Short())
		}
		s, digest, ok := SelectionOf(tt.stages)
		if s.Kept != tt.n || ok != (tt.n > 0) || ok && digest != d("kept") {
			t.Errorf("%d stages: kept %d, %s, %t", len(tt.stages), s.Kept, digest.Short(), ok)
		}
	}
	if _, err := RatedProblems(nil, nil); !errors.Is(err, ErrNotRated) {
		t.Errorf("no stages: %v", err)
	}
}

// People see the words of a problem: of a chat, the user's last ones.
func TestProblemText(t *testing.T) {
	p := problemText{Prompt: "plain"}
	if got := p.text(); got != "plain" {
		t.Errorf("%q", got)
	}
	for i, role := range []string{"user", "assistant", "user"} {
		p.Messages = append(p.Messages, struct {
			Role    string `json:"role"`
			Content any    `json:"content"`
		}{role, []any{"first", "answer", "last"}[i]})
	}
	if got := p.text(); got != "last" {
		t.Errorf("%q", got)
	}
	p.Messages[2].Content = []any{"parts"}
	if got := p.text(); got != "first" {
		t.Errorf("%q", got)
	}
}
