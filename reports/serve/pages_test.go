package serve

import (
	"context"
	"encoding/json"
	"fmt"
	"html"
	"math"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"exp/experiments/ident"
	"exp/experiments/store"
	"exp/reports/compare"
)

// The pages of the list have all runs once, the newest first.
func TestPagesOfRuns(t *testing.T) {
	study := newStudy(t)
	for i := range runsShown + 3 {
		study.begin(fmt.Sprintf("run-%d", i), "ppo", 0, 9)
	}
	s := newSite(t, study)
	first := s.get("/")
	later := regexp.MustCompile(`href="(/\?from=[0-9]+)"`).FindStringSubmatch(first)
	if later == nil || !strings.Contains(first, "1–100 of 103") {
		t.Fatal("the first page does not lead to a second one")
	}
	second := s.get(later[1])
	for _, want := range []string{"101–103 of 103", ">run-2</a>", ">run-0</a>", `href="/?from=0"`} {
		if !strings.Contains(second, want) {
			t.Errorf("the second page lacks %q", want)
		}
	}
	if strings.Contains(second, ">run-3</a>") {
		t.Error("the second page repeats a run of the first")
	}
}

// The pages of completions have all of them once, and filters by length do what they say.
func TestPagesOfCompletions(t *testing.T) {
	study := newStudy(t)
	run, _, st := study.begin("many", "ppo", 0, 9)
	for step := range int64(5) { // 12 completions each
		study.completions(st, "train", step+1, true)
	}
	s := newSite(t, study)
	path := "/run/" + run.RID.String()[:selDigits] + "/completions?suite=train"
	count := func(page string) int { return strings.Count(page, "<article") }
	first := s.get(path)
	later := regexp.MustCompile(`href="([^"]*after=[0-9]+[^"]*)"`).FindStringSubmatch(first)
	if later == nil || count(first) != completionsShown {
		t.Fatalf("%d completions, and no next page", count(first))
	}
	if second := s.get(strings.ReplaceAll(later[1], "&amp;", "&")); count(second) != 60-completionsShown || strings.Contains(second, "after=") {
		t.Errorf("%d on the second page", count(second))
	}
	for filter, want := range map[string]int{"&max_tokens=6": 15, "&min_tokens=13": 30, "&min_tokens=12&max_tokens=12": 15, "&step=2": 12, "&step=2&verdict=right": 3} {
		if n := count(s.get(path + filter)); n != want {
			t.Errorf("%s: %d completions, want %d", filter, n, want)
		}
	}
	if page := s.get(path + "&step=2&verdict=wrong&grep=12"); !strings.Contains(page, "--suite train --step 2 --grep 12 --wrong --text") {
		t.Error("the page's command does not choose what the page does")
	}
}

// Problems are ordered by the size of the difference; with one run by its share.
func TestCompareGaps(t *testing.T) {
	nan := math.NaN()
	for _, tt := range []struct {
		sized bool
		want  []float64
	}{{true, []float64{-0.5, 0.3, 0.1, nan}}, {false, []float64{0.3, 0.1, -0.5, nan}}} {
		got := []float64{nan, 0.1, -0.5, 0.3}
		slices.SortStableFunc(got, func(a, b float64) int { return compareGaps(a, b, tt.sized) })
		if fmt.Sprint(got) != fmt.Sprint(tt.want) {
			t.Errorf("sized %t: %v, want %v", tt.sized, got, tt.want)
		}
	}
	right := func(counts ...int64) (list []store.ItemCount) {
		for _, n := range counts {
			list = append(list, store.ItemCount{Right: n, Graded: 2})
		}
		return list
	}
	items := map[string][]store.ItemCount{"a": right(1, 0), "b": right(0, 2), "c": right(0, 1), "d": right(2, 2), "e": right(0, 0), "f": right(0, 2)}
	const want = "6 problems: 1 solved by both of the first two runs, 1 by the first alone, 3 by the second alone, 1 by neither"
	if got := countsText([]string{"a", "b", "c", "d", "e", "f"}, items, 2); got != want {
		t.Errorf("%q", got)
	}
}

// TestBeginnings: a row has the part of a prompt that tells problems apart, cut and safe to show.
func TestBeginnings(t *testing.T) {
	const chat = "system: You solve problems with numbers.\nuser: "
	for _, tt := range []struct {
		prompts []string
		want    []string
	}{
		{[]string{chat + "Add 1\n and 2.", "", chat + "Add 12 and 3."}, []string{"… 1 and 2.", "", "… 12 and 3."}},
		{[]string{"Make 16 from 3.", "Make 17 from 3."}, []string{"Make 16 from 3.", "Make 17 from 3."}}, // too little to leave out
		{[]string{chat + "One.", chat + "One."}, []string{strings.Replace(chat, "\n", " ", 1) + "One.", strings.Replace(chat, "\n", " ", 1) + "One."}},
		{[]string{"a\u202eb " + strings.Repeat("é", 100)}, []string{`a\u202eb ` + strings.Repeat("é", 80) + "…"}},
		{nil, nil},
	} {
		skip := sharedBeginning(tt.prompts)
		var got []string
		for _, p := range tt.prompts {
			short, more := beginning(p, skip)
			got = append(got, short)
			if !strings.HasPrefix(more, strings.TrimSuffix(short, "…")) {
				t.Errorf("more of %q is %q", short, more)
			}
		}
		if fmt.Sprintf("%q", got) != fmt.Sprintf("%q", tt.want) {
			t.Errorf("got %q, want %q", got, tt.want)
		}
	}
}

// Links of a list keep its filter and turn the order of the column that it is sorted by.
func TestLinksOfRuns(t *testing.T) {
	s := newSite(t, two(t))
	query := func(page, prefix string) (list []string) {
		for _, m := range regexp.MustCompile(`href="(`+regexp.QuoteMeta(prefix)+`[^"]*)"`).FindAllStringSubmatch(page, -1) {
			text, err := url.QueryUnescape(html.UnescapeString(m[1]))
			if err != nil {
				t.Fatal(err)
			}
			list = append(list, text)
		}
		return list
	}
	grouped := s.get("/?F=seed+%3D+0+or+seed+%3D+1&group=algo")
	if got := query(grouped, "/curves?sel="); !slices.Contains(got, `/curves?sel=(seed = 0 or seed = 1) and algo = "flowrl"`) {
		t.Errorf("curves of a group: %q", got)
	}
	if got := query(s.get("/?sort=-seed"), "/?sort="); !slices.Contains(got, "/?sort=seed") || !slices.Contains(got, "/?sort=-steps") {
		t.Errorf("sorted by seed, the greatest first: %q", got)
	}
	if got := query(s.get("/?sort=seed"), "/?sort="); !slices.Contains(got, "/?sort=-seed") {
		t.Errorf("sorted by seed: %q", got)
	}
}

// Hours of a curve count from the start of the run, not from its making.
func TestPointsInHours(t *testing.T) {
	study := newStudy(t)
	run := study.run("flow", "flowrl", 0, 0.3)
	paces, err := study.db.Paces(context.Background(), run.ID, store.Grid{From: 10, To: 10, N: 1})
	study.must(err)
	var data struct{ Arms []struct{ Step, X []float64 } }
	study.must(json.Unmarshal([]byte(newSite(t, study).get("/points?sel=flow&metric=val/pass@1&x=time")), &data))
	want := paces[len(paces)-1].Time.Sub(run.Started).Hours()
	if a := data.Arms[0]; a.Step[0] != 10 || math.Abs(a.X[0]-want) > 1e-12 || run.Started.Equal(run.Created) {
		t.Errorf("step %v at %v hours, want %v", a.Step[0], a.X[0], want)
	}
}

// The newest entries of a log come first.
func TestLogOfRun(t *testing.T) {
	study := newStudy(t)
	run := study.run("flow", "flowrl", 0, 0.3)
	page := newSite(t, study).get("/run/" + run.RID.String()[:selDigits])
	begins, ends := strings.Index(page, "attempt 1 (run) begins"), strings.Index(page, "attempt 1 is done")
	if begins < 0 || ends < 0 || ends > begins {
		t.Errorf("the end is at %d, the beginning at %d", ends, begins)
	}
}

// A page that refuses arms offers to allow a difference beside those that are allowed.
func TestRefusal(t *testing.T) {
	e := &compare.NotComparableError{Arms: make([]compare.ArmResult, 2), Comparability: compare.Comparability{Differences: []compare.Difference{
		{Key: "train.steps", Class: compare.Controlled, Values: []string{"1", "2"}},
		{Key: "rollout.n", Class: compare.Controlled, Values: []string{"4", "8"}, Waived: true},
		{Key: "algo.kind", Class: compare.Treatment, Values: []string{"ppo", "grpo"}}},
		Excluded: []compare.Excluded{{Run: compare.Run{RID: "0123456789ab", Seed: 3}, Arm: 1, Reason: "stopped at step 1 of 2"}}}}
	e.Arms[1].Label = "grpo"
	b := refusal(e, url.Values{"sel": {"a", "b"}, "allow": {"rollout.n"}}, []string{"ppo, which has no finished run"})
	if want := []string{"ppo, which has no finished run", "run 01234567 (grpo, seed 3): stopped at step 1 of 2"}; !slices.Equal(b.Left, want) {
		t.Errorf("left out: %q", b.Left)
	}
	if len(b.Rows) != 3 || b.Rows[0].Key != "train.steps" || b.Rows[0].Allow != "/compare?allow=rollout.n&allow=train.steps&sel=a&sel=b" ||
		b.Rows[1].Allow != "" || b.Rows[2].Allow != "" || b.Text != "They differ in train.steps" {
		t.Errorf("%+v", b)
	}
}

// A request that takes too long, or finds no place, is told so; one that ends gives its place back.
func TestBounded(t *testing.T) {
	s := newSite(t, newStudy(t))
	for range 2 * mostPages {
		s.get("/help")
	}
	for end := time.Now().Add(10 * time.Second); len(s.server.making) > 0; time.Sleep(time.Millisecond) { // after the answer
		if time.Now().After(end) {
			t.Fatalf("%d places are taken when nothing is made", len(s.server.making))
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	slow := s.server.show(func(ctx context.Context, _ *http.Request) (page, error) { return page{}, ctx.Err() })
	w := httptest.NewRecorder()
	r := httptest.NewRequest("GET", "/", nil)
	for range mostPages {
		s.server.making <- struct{}{}
	}
	slow(w, r.WithContext(ctx))
	if w.Code != http.StatusServiceUnavailable || !strings.Contains(w.Body.String(), "busy") {
		t.Errorf("without a place: %d %s", w.Code, w.Body)
	}
	for range mostPages {
		<-s.server.making
	}
	if p := explain(ctx, fmt.Errorf("reading: %w", ctx.Err())); p.Status != http.StatusServiceUnavailable || !strings.Contains(p.Body.(notice).Text, "too long") {
		t.Errorf("too late: %+v", p)
	}
}

// Pages that were closed leave room for others.
func TestListeners(t *testing.T) {
	c := changes{listeners: map[chan struct{}]bool{}}
	var leaves []func()
	for i := range mostWatches {
		ch, leave := c.listen()
		if ch == nil {
			t.Fatalf("page %d finds no room", i)
		}
		leaves = append(leaves, leave)
	}
	if ch, _ := c.listen(); ch != nil {
		t.Error("one page too many is told of changes")
	}
	for _, leave := range leaves {
		leave()
	}
	if ch, _ := c.listen(); ch == nil {
		t.Error("no room after all have left")
	}
}

// Checkpoints stand in the order of training, in whatever order their scores are read.
func TestOrderOfCheckpoints(t *testing.T) {
	b, run := &benchmarksBody{}, store.Run{RID: digestOf("r"), Name: "r", Task: "t"}
	b.add(run, []store.Eval{{SuiteName: "s", Metric: "pass@1", Value: 0.5}, {SuiteName: "s" + ident.StartSuffix, Metric: "pass@1", Value: 0.25}})
	b.addValidation(run, []store.Curve{{Series: store.Series{Name: "val/pass@1"}, Steps: []int64{20, 10}, Values: []float64{0.4, 0.3}}})
	for i, want := range []string{"start final", "step 10 step 20"} {
		var got []string
		for _, r := range b.Suites[i].Rows {
			got = append(got, r.Checkpoint)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %q, want %s", b.Suites[i].Name, got, want)
		}
	}
}

// Graders disagree if one says right and one says wrong.
func TestDisputed(t *testing.T) {
	for verdicts, want := range map[string]bool{"right": false, "right right": false, "right wrong": true, "wrong wrong": false, "right not-graded": false, "": false} {
		var list []grader
		for _, v := range strings.Fields(verdicts) {
			list = append(list, grader{Verdict: strings.ReplaceAll(v, "-", " ")})
		}
		if got := disputed(list); got != want {
			t.Errorf("%q: %t", verdicts, got)
		}
	}
}
