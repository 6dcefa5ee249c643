package store

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The views for other programs keep these columns; new ones come at the end.
func TestViewsKeepTheirColumns(t *testing.T) {
	db := open(t)
	for view, want := range map[string]string{
		"v_runs": "run xid name seed algo task model status steps steps_total tokens wall_s numerics device " +
			"created config",
		"v_metrics": "run name seed metric unit step value",
		"v_results": "run name seed suite evaluation metric value se lo hi samples problems infra_errors protocol",
		"v_samples": "run name seed scope evaluation step problem k prompt_tokens tokens finish reward logprob_sum " +
			"correct answer reason scorer protocol",
	} {
		rows, err := db.r.Query("SELECT * FROM " + view)
		if err != nil {
			t.Fatal(err)
		}
		columns, err := rows.Columns()
		rows.Close()
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(strings.Fields(want), columns[:min(len(columns), len(strings.Fields(want)))]); d != "" {
			t.Errorf("%s (-want +got):\n%s", view, d)
		}
		doc := documented(t, view)
		for _, c := range columns {
			if !slices.Contains(doc, c) {
				t.Errorf("docs/python.md does not name %s.%s", view, c)
			}
		}
	}
}

// documented returns what docs/python.md marks as code in the row of a view.
func documented(t *testing.T, view string) (words []string) {
	t.Helper()
	text := pythonPage(t)
	_, row, ok := strings.Cut(text, "\n| `"+view+"` |")
	if !ok {
		t.Fatalf("docs/python.md has no row for %s", view)
	}
	row, _, _ = strings.Cut(row, "\n")
	for _, m := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(row, -1) {
		words = append(words, m[1])
	}
	return words
}

func pythonPage(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../docs/python.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// A run that reuses a stage has its samples, once each, and of several scores under one protocol
// the newest count.
func TestViewsCountOnce(t *testing.T) {
	db := open(t)
	ctx := context.Background()
	run, gen := evalRun(t, db)
	samples, packs := pack(t, db, gen.Home, 4)
	if err := db.AddSamples(ctx, samples, packs); err != nil {
		t.Fatal(err)
	}
	for _, scorer := range []string{"old", "new"} {
		verdicts := []Verdict{{Sample: samples[0].ID, Graded: true, Correct: scorer == "new"}}
		if err := db.AddVerdicts(ctx, Scorer{digest("%s", scorer), scorer}, verdicts); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.FinishStage(ctx, gen.ID, nil, StageResult{}, nil); err != nil {
		t.Fatal(err)
	}
	reuser := ensure(t, db, newRun("x", 1))
	if _, err := db.ReuseStage(ctx, spec(reuser.ID, "eval.gen", "test", "gen"), hit(t, db, "gen")); err != nil {
		t.Fatal(err)
	}
	suite, err := db.EnsureSuite(ctx, Suite{Digest: digest("s"), Name: "test"})
	if err != nil {
		t.Fatal(err)
	}
	for i, value := range []float64{0.25, 0.75} {
		s := begin(t, db, run.ID, "eval.score", "test", fmt.Sprint("score", i))
		e := Eval{Suite: suite, Protocol: digest("p"), N: 4, Metric: "pass@1", Value: value}
		if err := db.FinishStage(ctx, s.ID, nil, StageResult{}, []Eval{e}); err != nil {
			t.Fatal(err)
		}
	}
	for text, want := range map[string]string{
		`SELECT group_concat(n) FROM (SELECT count(*) AS n FROM v_samples GROUP BY run)`:           "4,4",
		`SELECT group_concat(scorer || correct) FROM v_samples WHERE correct IS NOT NULL`:          "new1,new1",
		`SELECT group_concat(evaluation || ' ' || metric || ' ' || value) FROM v_results`:          "test pass@1 0.75",
		`SELECT count(*) || ' ' || min(length(run)) || ' ' || min(json_valid(config)) FROM v_runs`: "2 64 1",
	} {
		if got, err := queryOne(ctx, db.r, scanText, text); err != nil || got != want {
			t.Errorf("%s = %q, %v, want %q", text, got, err, want)
		}
	}
}
