package diversity

import (
	"context"
	"encoding/json"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// With 16 completions the bounds are the paper's.
func TestRubric(t *testing.T) {
	counts := regexp.MustCompile(`(?m)^(\d): [a-z ]+\. (.*) of the \d+ share`)
	for n, want := range map[int][]string{
		16: {"at least 14", "11 to 13", "7 to 10", "4 to 6", "at most 3"},
		8:  {"at least 7", "6", "4 to 5", "2 to 3", "at most 1"},
		5:  {"5", "4", "3", "2", "at most 1"},
	} {
		var got []string
		for i, m := range counts.FindAllStringSubmatch(rubric(n), -1) {
			if m[1] != string(rune('1'+i)) {
				t.Errorf("%d: score %s at %d", n, m[1], i)
			}
			got = append(got, m[2])
		}
		if !slices.Equal(got, want) {
			t.Errorf("%d completions: %q, want %q", n, got, want)
		}
	}
}

// The last number is the score, if it is one.
func TestScorePattern(t *testing.T) {
	for text, want := range map[string]string{
		"4": "4", "Score: 4.": "4", "**3**": "3", "4/5": "4", "2 out of 5": "2", "5.0": "5", "I count 13, so\n2\n": "2", "1.": "1",
		"4.5": "", "13": "", "0": "", "6": "", "between 3 and 16": "", "none": "", "1 2 3 4 5": "5",
	} {
		got := ""
		if all := score.FindAllStringSubmatch(text, -1); len(all) > 0 {
			got = all[len(all)-1][1]
		}
		if got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// server answers with the number of different responses; it keeps the messages.
func server(t *testing.T, answer func(message string) string) (url string, messages func() []string) {
	var mu sync.Mutex
	var list []string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body struct {
			Messages []struct{ Content string }
		}
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			t.Error(err)
		}
		mu.Lock()
		defer mu.Unlock()
		list = append(list, body.Messages[0].Content)
		answer, err := json.Marshal(answer(body.Messages[0].Content))
		if err != nil {
			t.Error(err)
		}
		io.WriteString(w, `{"choices": [{"message": {"content": `+string(answer)+`}, "finish_reason": "stop"}]}`)
	}))
	t.Cleanup(s.Close)
	return s.URL, func() []string { return list }
}

// The judge reads each problem once a pass, each time in another order. A failed judgement has no score.
func TestRate(t *testing.T) {
	url, messages := server(t, func(m string) string {
		if strings.Contains(m, "What is 2") {
			return "I cannot say"
		}
		return "3"
	})
	responses := []string{"alpha", "beta", "gamma", "delta", "epsilon and more"}
	o := Options{Template: Template, Passes: 3, Excerpt: 8, Seed: 1, Judge: Judge{URL: url, Model: "m", MaxTokens: 9,
		Concurrent: 1, Timeout: time.Minute, Flags: true}}
	var told []int
	got, err := Rate(context.Background(), []Problem{{"a", "What is 1?", responses}, {"b", "What is 2?", responses}}, o,
		func(n int) { told = append(told, n) })
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(got[0], []Pass{{3, ""}, {3, ""}, {3, ""}}) {
		t.Errorf("passes %v", got[0])
	}
	for _, p := range got[1] {
		if p.Score != 0 || !strings.Contains(p.Reason, "no score from 1 to 5 at the end") {
			t.Errorf("failed pass %+v", p)
		}
	}
	if !slices.Equal(told, []int{2, 4, 6}) {
		t.Errorf("told %v", told)
	}
	orders := map[string]bool{}
	for _, m := range messages() {
		if !strings.Contains(m, "[Problem]\nWhat is ") || !strings.Contains(m, "epsilon  […]") || strings.Contains(m, "and more") ||
			strings.Contains(m, "{") {
			t.Fatalf("message %s", m)
		}
		orders[m] = true
		for _, r := range responses[:4] {
			if strings.Count(m, "]\n"+r) != 1 {
				t.Errorf("%s is %d times in %s", r, strings.Count(m, "]\n"+r), m)
			}
		}
	}
	if len(orders) != 6 {
		t.Errorf("%d different messages, want 6", len(orders))
	}
	if m := o.Message(Problem{"a", "What is 1?", responses}); !orders[m] {
		t.Errorf("a dry run shows %s, which was not asked", m)
	}
}

func TestCheckTemplate(t *testing.T) {
	if err := CheckTemplate(Template); err != nil {
		t.Error(err)
	}
	if err := CheckTemplate("{prompt} {response}"); err == nil || !strings.Contains(err.Error(), "{responses}") {
		t.Errorf("got %v", err)
	}
}

// By hand: problem 2 has no judgement in one run and counts nowhere. Of the others arm a has (1+2)/2 = 1.5 and 4, arm b
// 3 and 5 in one run, 4 and 5 in the other.
func TestCompare(t *testing.T) {
	one := func(s ...float64) (p []Pass) {
		for _, x := range s {
			p = append(p, Pass{Score: x})
		}
		return p
	}
	a := [][]Pass{one(1, 2), one(5, 5), one(4, 0)}
	b := [][]Pass{one(3, 3), one(0, 0), one(5, 5)}
	c := [][]Pass{one(4, 4), one(1, 3), one(5, 5)}
	r := Compare([]string{"a", "b"}, [][]string{{"x"}, {"y", "z"}}, [][][][]Pass{{a}, {b, c}}, []string{"1", "2", "3"}, false)
	if !slices.Equal(r.Problems, []string{"1", "3"}) || r.LeftOut != 1 || r.Failed != 3 {
		t.Errorf("problems %v, %d left out, %d failed", r.Problems, r.LeftOut, r.Failed)
	}
	if r.Arms[0].Score != 2.75 || r.Arms[1].Score != 4.25 || r.Arms[0].Of != [6]int{1, 1, 1, 0, 1, 2} {
		t.Errorf("arms %+v", r.Arms)
	}
	p := r.Pairs[0]
	// Differences -2 and -1: each of four patterns of signs but two has a smaller sum.
	if len(r.Pairs) != 1 || p.Delta != -1.5 || p.P == nil || *p.P != 0.5 || *p.PHolm != 0.5 {
		t.Errorf("pairs %+v", r.Pairs)
	}
	// Pairs of passes: 1 2, 5 5, 3 3, 5 5, 4 4, 1 3, 5 5.
	if *r.Same != 5./7 || *r.WithinOne != 6./7 {
		t.Errorf("same %v, within one %v", *r.Same, *r.WithinOne)
	}
	if lo := r.Arms[0].Lo; lo == nil || *lo != 1 || math.IsNaN(*r.Arms[0].Hi) || *r.Arms[0].Hi != 5 {
		t.Errorf("interval %v", r.Arms[0])
	}
	if r := Compare([]string{"a"}, [][]string{{"x"}}, [][][][]Pass{{{one(0)}}}, []string{"1"}, false); len(r.Problems) != 0 || len(r.Pairs) != 0 {
		t.Errorf("without judgements: %+v", r)
	}
}

// Runs share problems a and c, and the first five and six completions of them; b has too few, d is missing in one.
func TestShared(t *testing.T) {
	run := func(n map[string]int) map[string]*Problem {
		list := map[string]*Problem{}
		for id, n := range n {
			list[id] = &Problem{ID: id, Responses: strings.Split("1234567"[:n], "")}
		}
		return list
	}
	runs := []map[string]*Problem{run(map[string]int{"a": 7, "b": 6, "c": 6, "d": 7}), run(map[string]int{"a": 5, "b": 4, "c": 6, "e": 7})}
	for _, right := range []bool{false, true} {
		g := shared(runs, Choice{Right: right})
		if !slices.Equal(g.IDs, []string{"a", "c"}) || g.Few != 1 {
			t.Fatalf("problems %v, %d with too few", g.IDs, g.Few)
		}
		for i, list := range g.Runs {
			if len(list) != 2 || strings.Join(list[0].Responses, "") != "12345" || strings.Join(list[1].Responses, "") != "123456" {
				t.Errorf("run %d: %v", i, list)
			}
		}
	}
	if g := shared(runs, Choice{Problems: 1, Seed: 3}); len(g.IDs) != 1 || len(g.Runs[1]) != 1 || g.Runs[1][0].ID != g.IDs[0] {
		t.Errorf("one problem: %+v", g)
	}
}
