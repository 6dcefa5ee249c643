package serve

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"exp/experiments/store"
)

// site is a server of a study and a client that has its cookie.
type site struct {
	*study
	server *Server
	http   *httptest.Server
}

func newSite(t testing.TB, s *study) *site {
	t.Helper()
	server, err := New(Options{DB: s.db, Token: "secret", Clock: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	out := &site{study: s, server: server, http: httptest.NewServer(server)}
	t.Cleanup(out.http.Close)
	return out
}

// do sends a request with the cookie and returns the answer with its body.
func (s *site) do(method, path string, head http.Header) (*http.Response, string) {
	s.t.Helper()
	r, err := http.NewRequest(method, s.http.URL+path, nil)
	s.must(err)
	for k, v := range head {
		r.Header[k] = v
	}
	if host := head.Get("Host"); host != "" {
		r.Host = host
	}
	if head.Get("Cookie") == "" {
		r.AddCookie(&http.Cookie{Name: s.server.guard.cookie, Value: "secret"})
	}
	answer, err := (&http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}).Do(r)
	s.must(err)
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	s.must(err)
	return answer, string(body)
}

// get returns a page that must be there.
func (s *site) get(path string) string {
	s.t.Helper()
	answer, body := s.do("GET", path, nil)
	if answer.StatusCode != http.StatusOK {
		s.t.Fatalf("%s: %s\n%s", path, answer.Status, body)
	}
	return body
}

// two is a store with two arms of two seeds, a running run and a failed one.
func two(t testing.TB) *study {
	s := newStudy(t)
	for seed := range int64(2) {
		s.run("flow", "flowrl", seed, 0.3)
		s.run("ppo&co", "ppo", seed, 0.2)
	}
	s.runOf("short", "ppo", 0, 0.2, 10)
	live, at, st := s.begin("live", "grpo", 0, 200)
	s.steps(live, at.ID, 1, 60, 0.25)
	s.completions(st, "train", 60, true)
	lock, err := s.db.LockRun(live.RID)
	s.must(err)
	t.Cleanup(func() { lock.Release() })
	failed, at, st := s.begin("broken", "grpo", 0, 200)
	s.steps(failed, at.ID, 1, 5, 0.25)
	s.must(s.db.FailStage(context.Background(), st.ID, "step 6: loss is not finite"))
	s.must(s.db.EndAttempt(context.Background(), at.ID, store.Failed, 1))
	return s
}

// idOf is the id of a run in addresses.
func (s *study) idOf(name string, seed int64) string {
	s.t.Helper()
	runs, err := s.db.Runs(context.Background(), store.RunQuery{Name: name})
	s.must(err)
	for _, r := range runs {
		if r.Seed == seed {
			return r.RID.String()[:selDigits]
		}
	}
	s.t.Fatalf("no run %s#%d", name, seed)
	return ""
}

// Every page has a title, and nothing in it, whatever the store holds, breaks a policy
// against inline scripts and styles.
func TestPages(t *testing.T) {
	s := newSite(t, two(t))
	flow, ppo, live, broken := s.idOf("flow", 0), s.idOf("ppo&co", 0), s.idOf("live", 0), s.idOf("broken", 0)
	inline := regexp.MustCompile(`(?i)<script[^>]*>[^<]|<style|\sstyle=|\son[a-z]+=|javascript:|<script>alert|<i>`)
	relative := regexp.MustCompile(`(?:href|src)="(?:[^/#?"d]|d[^a])[^"]*"`) // data: is the empty icon of a report
	for _, tt := range []struct {
		path string
		want []string
	}{
		{"/", []string{"1–7 of 7", ">flow</a>", "ppo&amp;co", "running", "failed", `value="60" max="200"`, ">sweep</a>", "0.420", "exp ls"}},
		{"/?F=algo+%3D+flowrl&sort=seed&cols=config.algo.kind,metric.actor/entropy.min", []string{"1–2 of 2", "algo.kind", "actor/entropy.min", `aria-sort="ascending"`,
			"exp ls -F &#39;algo = flowrl&#39; --sort seed --cols config.algo.kind,metric.actor/entropy.min"}},
		{"/?group=algo", []string{"grpo", "0.425 ±0.007", "1 running, 1 failed", "/curves?sel=algo"}},
		{"/?group=algo&cols=metric.actor/entropy.min,config.algo.kind", []string{">actor/entropy.min<", ">grpo<"}},
		{"/?group=seed", []string{"F=seed&#43;%3D&#43;0"}},
		{"/?group=xid", []string{"0-1", "sel", "xid:"}},
		{"/?F=algo+%3D", []string{"column 7: expected a value", "1–7 of 7"}},
		{"/?cols=metric.nosuch", []string{"No run has recorded nosuch"}},
		{"/?group=created", []string{"runs are grouped by"}},
		{"/run/" + flow, []string{"flow#0", `class="plot"`, "Sampling", "250.0 ms", "countdown/test", "[0.510, 0.590]", "an update was skipped &lt;b&gt;",
			"Testor 1", "1.00 GiB", "name: flow", "3m10s"}},
		{"/run/" + live, []string{"step 60 of 200", "30%", "about 2m02s left", "&lt;script&gt;alert", `\u001b[31m\u202e`}},
		{"/run/" + broken, []string{"loss is not finite", "failed"}},
		{"/run/" + flow + "?x=tokens&log=1&smooth=5&metric=actor/entropy&from=20&to=60", []string{"smoothed over 5 points", `data-log="true"`, "all steps"}},
		{"/run/" + flow + "?metric=nosuch", []string{"Not recorded."}},
		{"/run/" + flow + "/completions", []string{"versions of the grader disagree", "strict/1 says so", "3,4,5=15", "gold <code>(4-1)*5&lt;b&gt;</code>"}},
		{"/problems?sel=" + flow + "&item=3,4,5%3D15", []string{"Gold <code>(4-1)*5&lt;b&gt;</code>"}},
		{"/run/" + flow + "/completions?verdict=disputed&min_tokens=6", []string{"so the answer is 15"}},
		{"/run/" + flow + "/completions?suite=train&min_score=0.9", []string{"No completion matches"}},
		{"/run/" + flow + "/completions?step=x", []string{"step=x: it is a whole number"}},
		{"/run/" + flow + "/completions?grep=%5B", []string{"pattern: error parsing regexp"}},
		{"/run/" + flow + "/lineage", []string{"train", "tokenizer", "from outside", "weights"}},
		{"/run/" + digestOf("tokenizer").String()[:16] + "/lineage", []string{"tokenizer", "live#0"}},
		{"/curves", []string{"Choose runs"}},
		{"/curves?sel=flow&sel=ppo%26co", []string{"Lines: mean over seeds", "smallest to largest", `class="band c1 d0"`, "ppo&amp;co", "0-1"}},
		{"/curves?sel=task+%3D+countdown&by=algo&band=t&x=time", []string{"95 % t interval", ">grpo</a>", ">flowrl</a>"}},
		{"/compare", []string{"Name arms"}},
		{"/compare?sel=flow&sel=ppo%26co", []string{"Comparability", "countdown/test", "report with figures"}},
		{"/compare?sel=flow&sel=short", []string{"cannot be compared", "They differ in train.steps", "allow=train.steps", ">120</td>"}},
		{"/compare?sel=flow&sel=short&allow=train.steps", []string{"Comparability", "waived"}},
		{"/compare?sel=task+%3D+countdown&allow=train.steps", []string{"Comparability", "Left out.", "broken, which has no finished run: run ",
			"(seed 0) is failed at step 5 of 200"}},
		{"/report?sel=flow&sel=ppo%26co", []string{"Experiment report", `<a href="/">All runs</a>`, "<svg class=\"plot\""}},
		{"/report?sel=flow", []string{`Full configuration: <a href="/run/` + flow, "#config\">run "}},
		{"/compare?sel=flow", []string{`Full configuration: <a href="/run/` + flow}},
		{"/problems?sel=" + flow + "&sel=" + ppo, []string{"3 problems", "3,4,5=16", "difference",
			`<td class="begins" title="Make 16 from 3, 4 and 5.">Make 16 from 3, 4 and 5.</td>`}},
		{"/problems?sel=" + flow + "&sel=" + ppo + "&suite=test&item=3,4,5%3D16", []string{"Make 16 from 3, 4 and 5.", "ppo&amp;co#0", "1×"}},
		{"/benchmarks", []string{"countdown/test", "start", "final", "<b>0.550</b>"}},
		{"/benchmarks?sel=flow", []string{"step 120", "countdown/validation"}},
		{"/help", []string{"metric.NAME"}},
	} {
		body := s.get(tt.path)
		for _, want := range tt.want {
			if !strings.Contains(body, want) {
				t.Errorf("%s: no %q", tt.path, want)
			}
		}
		if found := relative.FindString(body); found != "" {
			t.Errorf("%s: a link to a file that the server lacks: %q", tt.path, found)
		}
		if strings.HasPrefix(tt.path, "/report") {
			continue // its style sheet is inside; TestGuard looks at its policy
		}
		if found := inline.FindString(body); found != "" {
			t.Errorf("%s: %q", tt.path, found)
		}
	}
}

// Settings have all their digits, so that arms do not look alike; metrics have about three.
func TestTextOf(t *testing.T) {
	setting, metric := store.Field{Kind: store.FieldConfig, Name: "train.optim.lr"}, store.Field{Kind: store.FieldMetric, Name: "actor/lr"}
	for v, want := range map[float64]string{1.431e-5: "1.431e-05, 1.4e-05", 0.0015: "0.0015, 0.002", 15: "15, 15"} {
		if got := textOf(setting, v) + ", " + textOf(metric, v); got != want {
			t.Errorf("%v: %s, want %s", v, got, want)
		}
	}
	if got := textOf(setting, []any{0.00012, "x"}); got != "0.00012, x" {
		t.Errorf("a list is %s", got)
	}
}

func TestErrors(t *testing.T) {
	s := newSite(t, two(t))
	for path, want := range map[string]string{
		"/nosuch":                             "404 This page does not exist",
		"/run/nosuch":                         "404 no run matches",
		"/run/..%2f..%2fexp.db":               "404 no run matches",
		"/assets/..%2fserver.go":              "404 This file does not exist",
		"/assets/page.tmpl":                   "404 This file does not exist",
		"/curves?sel=nosuch":                  "404 no run matches",
		"/curves?sel=seed+%3D+99":             "404 selects no runs",
		"/curves?sel=seed+%3D":                "400 column 7",
		"/curves?sel=flow&x=y":                "400 it is step, tokens or time",
		"/curves?sel=flow&by=nosuch":          "400 is neither a field of runs nor a key",
		"/points?sel=flow&metric=nosuch":      "404 nothing to draw",
		"/points?sel=flow&metric=a&from=-1":   "400 it is a step",
		"/report":                             "400 a report needs runs",
		"/compare?sel=broken&sel=flow":        "400 no complete run",
		"/run/" + s.idOf("flow", 0) + "/nope": "404 This page does not exist",
	} {
		answer, body := s.do("GET", path, nil)
		code, text, _ := strings.Cut(want, " ")
		if !strings.HasPrefix(answer.Status, code) || !strings.Contains(body, text) {
			t.Errorf("%s: %s, want %s:\n%s", path, answer.Status, want, body)
		}
	}
}

// A chart's data has the values of its picture.
func TestPoints(t *testing.T) {
	s := newSite(t, two(t))
	var data struct {
		X    string
		Arms []struct {
			Name     string
			Step, X  []float64
			Mean, Lo []float64
			N        []int
			Seeds    int
		}
	}
	s.must(json.Unmarshal([]byte(s.get("/points?sel=flow&metric=val/pass@1&x=tokens")), &data))
	if len(data.Arms) != 1 || data.X != "tokens sampled" {
		t.Fatalf("%+v", data)
	}
	a := data.Arms[0]
	// Step 10 had 10 steps of 4096 tokens; seeds 0 and 1 differ by 0.01.
	if len(a.X) != 12 || a.Step[0] != 10 || a.X[0] != 40960 || a.Seeds != 2 || a.N[0] != 2 || a.Mean[0]-a.Lo[0] < 0.0049 || a.Mean[0]-a.Lo[0] > 0.0051 {
		t.Errorf("%+v", a)
	}
}

// A browser asks again and again for what it has.
func TestUnchanged(t *testing.T) {
	s := newSite(t, two(t))
	answer, _ := s.do("GET", "/", nil)
	tag := answer.Header.Get("ETag")
	if again, body := s.do("GET", "/", http.Header{"If-None-Match": {tag}}); again.StatusCode != http.StatusNotModified || body != "" {
		t.Errorf("%s, %d bytes", again.Status, len(body))
	}
	if head, body := s.do("HEAD", "/", nil); head.StatusCode != http.StatusOK || body != "" {
		t.Errorf("HEAD: %s, %d bytes", head.Status, len(body))
	}
	style := regexp.MustCompile(`/assets/style\.css\?v=[0-9a-f]+`).FindString(s.get("/"))
	if answer, _ := s.do("GET", style, nil); !strings.Contains(answer.Header.Get("Cache-Control"), "immutable") || answer.Header.Get("Content-Type") != "text/css; charset=utf-8" {
		t.Errorf("style sheet: %v", answer.Header)
	}
}

// An open page hears of changes by other processes.
func TestChanges(t *testing.T) {
	s := two(t)
	reader, err := store.Open(s.db.Dir(), store.Options{ReadOnly: true})
	s.must(err)
	defer reader.Close()
	server, err := New(Options{DB: reader, Token: "secret"})
	s.must(err)
	l, err := Listen("", false)
	s.must(err)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(ctx, l) }()
	r, err := http.NewRequest("GET", "http://"+l.Addr().String()+"/changes?run="+s.idOf("live", 0), nil)
	s.must(err)
	r.AddCookie(&http.Cookie{Name: server.guard.cookie, Value: "secret"})
	answer, err := http.DefaultClient.Do(r)
	s.must(err)
	defer answer.Body.Close()
	next := func() string {
		buffer := make([]byte, 1000)
		n, err := answer.Body.Read(buffer)
		s.must(err)
		return string(buffer[:n])
	}
	r, err = http.NewRequest("GET", "http://"+l.Addr().String()+"/?F="+strings.Repeat("x", 1<<20), nil)
	s.must(err)
	if long, err := http.DefaultClient.Do(r); err == nil && long.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("a long address: %s", long.Status)
	}
	if got := next(); got != "event: open\ndata: {}\n\n" {
		t.Errorf("first %q", got)
	}
	time.Sleep(2 * watchEvery) // the watch has begun
	runs, err := s.db.Runs(ctx, store.RunQuery{Name: "flow"})
	s.must(err)
	s.must(s.db.AddNote(ctx, runs[0].ID, "seen?"))
	if got := next(); got != "event: change\ndata: {}\n\n" {
		t.Errorf("then %q", got)
	}
	live, err := s.db.Runs(ctx, store.RunQuery{Name: "live"})
	s.must(err)
	s.must(s.db.WriteActivity(live[0].RID, store.Activity{Stage: "train", Step: 61, Of: 200, Phase: "grade", Done: 12, Total: 64}))
	const told = "event: activity\ndata: {\"text\":\"train, step 61 of 200: scoring, 12 of 64 completions\",\"done\":12,\"total\":64}\n\n"
	if got := next(); got != told {
		t.Errorf("then %q", got)
	}
	cancel()
	select {
	case err := <-ended:
		s.must(err)
	case <-time.After(10 * time.Second):
		t.Fatal("the server does not end")
	}
}

func TestHref(t *testing.T) {
	q := url.Values{"F": {"a = b"}, "sel": {"x", "y"}}
	if got := href("/", q, "F", "", "sort", "-a"); got != "/?sel=x&sel=y&sort=-a" {
		t.Errorf("%s", got)
	}
	if len(q) != 2 {
		t.Errorf("changed %v", q)
	}
	if got := and("a = 1 or b = 2", "c = 3"); got != "(a = 1 or b = 2) and c = 3" {
		t.Errorf("%s", got)
	}
	if got := quoted("it's"); got != `'it'\''s'` {
		t.Errorf("%s", got)
	}
}

// A run that was evaluated in two ways is shown in the way that the other runs have, not with some numbers of
// each; alone, in the newest.
func TestEvaluationsThatCount(t *testing.T) {
	study := newStudy(t)
	study.run("flow", "flowrl", 0, 0.3)
	study.run("ppo", "ppo", 0, 0.2)
	s := newSite(t, study)
	run, err := s.db.Run(context.Background(), digestOf("rid"+fmt.Sprint("flow", 0)))
	s.must(err)
	at, err := s.db.BeginAttempt(context.Background(), store.Attempt{Run: run.ID, Kind: store.AttemptRun})
	s.must(err)
	s.n = 1
	s.score(run, at.ID, "test", digestOf("weights"), 0.7, 0)
	s.must(s.db.EndAttempt(context.Background(), at.ID, store.Done, 0))
	for _, tt := range []struct {
		path       string
		want, less string
	}{
		{"/benchmarks", "3 problems, 4 samples each", "0.950"},
		{"/benchmarks", "<b>0.550</b>", "1 sample"},
		{"/benchmarks?sel=flow", "3 problems, 1 sample each", "0.550"},
		{"/problems?sel=flow&sel=ppo", "1/4", "1/1"},
		{"/problems?sel=flow&sel=ppo&suite=test&item=3,4,5%3D16", "1 of 4 right", "of 1 right"},
		{"/problems?sel=flow", "1/1", "1/4"},
	} {
		page := s.get(tt.path)
		if !strings.Contains(page, tt.want) || strings.Contains(page, tt.less) {
			t.Errorf("%s: want %q (%v) and not %q (%v)", tt.path, tt.want, strings.Contains(page, tt.want), tt.less,
				strings.Contains(page, tt.less))
		}
	}
}
