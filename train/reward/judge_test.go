package reward

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"exp/train/rollout"
)

// fakeClock moves only when somebody sleeps.
type fakeClock struct {
	mu    sync.Mutex
	t     time.Time
	slept []time.Duration
}

func (c *fakeClock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.t
}

func (c *fakeClock) sleep(ctx context.Context, d time.Duration) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.t = c.t.Add(d)
	c.slept = append(c.slept, d)
	return ctx.Err()
}

// server answers the n-th request, from 1, by f.
func server(t *testing.T, f func(n int, w http.ResponseWriter, r *http.Request)) (url string) {
	t.Helper()
	var mu sync.Mutex
	n := 0
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		n++
		k := n
		mu.Unlock()
		f(k, w, r)
	}))
	t.Cleanup(s.Close)
	return s.URL + "/v1/"
}

func says(w http.ResponseWriter, content string) {
	_ = json.NewEncoder(w).Encode(map[string]any{"choices": []any{map[string]any{"message": map[string]any{"role": "assistant", "content": content}, "finish_reason": "stop"}}})
}

func judgeOf(url string) (JudgeOptions, *fakeClock) {
	c := &fakeClock{t: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	return JudgeOptions{URL: url, Model: "m", Template: "Q{prompt} A{response} G{gold}", Reading: Reading{Field: "score"}, MaxTokens: 64,
		Concurrent: 1, Timeout: 10 * time.Second, Retries: 3, Now: c.now, Sleep: c.sleep}, c
}

func TestJudgeAsksAndKeeps(t *testing.T) {
	var bodies, auth []string
	url := server(t, func(n int, w http.ResponseWriter, r *http.Request) {
		b := new(strings.Builder)
		var req chatRequest
		if err := json.NewDecoder(r.Body).Decode(&req); err != nil {
			t.Error(err)
		}
		fmt.Fprintf(b, "%s %s %v %d %s", r.URL.Path, req.Model, req.Temperature, req.MaxTokens, req.Messages[0].Content)
		bodies, auth = append(bodies, b.String()), append(auth, r.Header.Get("Authorization"))
		says(w, fmt.Sprintf("Well {1, 2}.\n```json\n{\"score\": %d, \"style\": 0.5}\n```", n))
	})
	o, _ := judgeOf(url)
	o.Key, o.Cache, o.Parts = "sk-secret", t.TempDir(), []string{"style"}
	list := items("a {gold}", "b", "b") // the last two share a request only if their golds and prompts are equal
	list[2].Problem = list[1].Problem
	for round, want := range []string{"1 2 2", "1 2 2"} {
		j := NewJudge(o)
		got, err := j.Score(context.Background(), list)
		if err != nil {
			t.Fatal(err)
		}
		if values(got) != want || got[0].Parts["style"] != 0.5 {
			t.Errorf("round %d: got %s, %v, want %s", round, values(got), got[0].Parts, want)
		}
		if asked, cached := 2*int64(1-round), 2*int64(round); j.Asked != asked || j.Cached != cached {
			t.Errorf("round %d: %d asked, %d from the cache, want %d and %d", round, j.Asked, j.Cached, asked, cached)
		}
	}
	if want := "/v1/chat/completions m 0 64 Qsay:  Aa {gold} Ggolda {gold}"; len(bodies) != 2 || bodies[0] != want || auth[0] != "Bearer sk-secret" {
		t.Errorf("requests: got %q, %q, want %q", bodies, auth, want)
	}
	files := 0
	err := filepath.WalkDir(o.Cache, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		files++
		b, err := os.ReadFile(path)
		if strings.Contains(string(b), "sk-secret") {
			t.Errorf("%s holds the key", path)
		}
		return err
	})
	if err != nil || files != 2 {
		t.Errorf("cache: %d files, %v, want 2", files, err)
	}
	o.Temperature = 1 // another request
	j := NewJudge(o)
	if got, err := j.Score(context.Background(), list[:1]); err != nil || values(got) != "3" || j.Asked != 1 {
		t.Errorf("another temperature: got %v, %v, %d asked", got, err, j.Asked)
	}
}

func TestJudgeRetries(t *testing.T) {
	url := server(t, func(n int, w http.ResponseWriter, r *http.Request) {
		switch n {
		case 1:
			w.Header().Set("Retry-After", "7")
			w.WriteHeader(http.StatusTooManyRequests)
		case 2:
			w.Header().Set("Retry-After", "Fri, 02 Jan 2026 03:04:42 GMT") // 30 s after the first wait
			w.WriteHeader(http.StatusServiceUnavailable)
		case 3:
			w.WriteHeader(http.StatusBadGateway)
		default:
			says(w, `{"score": 4}`)
		}
	})
	o, clock := judgeOf(url)
	j := NewJudge(o)
	got, err := j.Score(context.Background(), items("a"))
	if err != nil || values(got) != "4" || j.Asked != 4 {
		t.Errorf("got %v, %v, %d asked", got, err, j.Asked)
	}
	// 7 s, until the date, and 4 s as the third failure without a word from the server
	if want := "[7s 30s 4s]"; fmt.Sprint(clock.slept) != want {
		t.Errorf("waited %v, want %s", clock.slept, want)
	}
}

func TestJudgeGivesUp(t *testing.T) {
	url := server(t, func(n int, w http.ResponseWriter, r *http.Request) {
		http.Error(w, "overloaded sk-secret", http.StatusInternalServerError)
	})
	o, clock := judgeOf(url)
	o.Key = "sk-secret"
	var told []string
	o.Waits = func(why string) { told = append(told, why) }
	got, err := NewJudge(o).Score(context.Background(), items("a"))
	if len(told) != 1 || !strings.Contains(told[0], "500 Internal Server Error: overloaded [key]") {
		t.Errorf("told %q, want one reason in the first minute", told)
	}
	if err != nil || got[0].Graded || !strings.Contains(got[0].Reason, "asked 4 times; the last failure: ") || !strings.Contains(got[0].Reason, "500 Internal Server Error: overloaded [key]") {
		t.Errorf("got %+v, %v", got, err)
	}
	if want := "[1s 2s 4s]"; fmt.Sprint(clock.slept) != want {
		t.Errorf("waited %v, want %s", clock.slept, want)
	}

	url = server(t, func(n int, w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Retry-After", "3600")
		w.WriteHeader(http.StatusTooManyRequests)
	})
	o, clock = judgeOf(url)
	got, err = NewJudge(o).Score(context.Background(), items("a"))
	if err != nil || got[0].Graded || len(clock.slept) != 0 || !strings.Contains(got[0].Reason, "it asks to wait 1h0m0s") {
		t.Errorf("an hour: got %+v, %v, waited %v", got, err, clock.slept)
	}
}

func TestJudgeTimeout(t *testing.T) {
	release := make(chan struct{})
	url := server(t, func(n int, w http.ResponseWriter, r *http.Request) {
		if n == 1 {
			<-release
		}
		says(w, `{"score": 1}`)
	})
	defer close(release)
	o, _ := judgeOf(url)
	o.Timeout = 100 * time.Millisecond
	j := NewJudge(o)
	got, err := j.Score(context.Background(), items("a"))
	if err != nil || values(got) != "1" || j.Asked != 2 {
		t.Errorf("got %+v, %v, %d asked", got, err, j.Asked)
	}
}

// Whatever has no score in it is not graded, and is not asked again.
func TestJudgeGarbage(t *testing.T) {
	low, high := 0.0, 10.0
	for _, tt := range []struct{ body, content, pattern, want string }{
		{body: "<html>", want: "its answer is not a chat completion"},
		{body: "[1]", want: "its answer is not a chat completion: want an object, got a list: [1]"},
		{body: `"no"`, want: "want an object, got a text"},
		{body: "null", want: "its answer has no choices: null"},
		{body: `{"choices": {}}`, want: `"choices" must be a list, got an object`},
		{body: `{"choices": [1]}`, want: `"choices" must be an object, got a number`},
		{body: `{"choices": [{"message": {"content": [{"text": "5"}]}}]}`, want: `"choices.message.content" must be a text, got a list`},
		{body: `{"choices": [{"message": {"content": null, "reasoning": "five"}}]}`, want: `its answer has no content: {"choices"`},
		{body: "{}", want: "its answer has no choices: {}"},
		{body: `{"choices": [{"message": {"content": "{\"score\": 1}"}, "finish_reason": "length"}]}`, want: "its answer was cut at reward.judge.max_tokens"},
		{content: "ten out of ten", want: "no JSON object in its answer: ten out of ten"},
		{content: `{"grade": 1}`, want: `no field "score"`},
		{content: `{"score": "5"}`, want: `the field "score" is "5", not a number`},
		{content: `{"score": null}`, want: `the field "score" is null, not a number`},
		{content: `{"score": 11}`, want: "its score 11 is above reward.judge.high"},
		{content: `{"score": -1}`, want: "its score -1 is below reward.judge.low"},
		{content: "Score: ten", pattern: `Score: (\d+)`, want: "no match of reward.judge.pattern"},
		{content: "Score: inf", pattern: `Score: (\w+)`, want: "is not a number"},
		{content: "Score: a", pattern: `Score: (\w+)`, want: `found "a", which is not a number`},
	} {
		url := server(t, func(n int, w http.ResponseWriter, r *http.Request) {
			if tt.body != "" {
				fmt.Fprint(w, tt.body)
				return
			}
			says(w, tt.content)
		})
		o, _ := judgeOf(url)
		o.Low, o.High, o.Cache = &low, &high, t.TempDir()
		if tt.pattern != "" {
			o.Pattern = regexp.MustCompile(tt.pattern)
		}
		j := NewJudge(o)
		got, err := j.Score(context.Background(), items("a"))
		if err != nil || got[0].Graded || !strings.Contains(got[0].Reason, tt.want) || j.Asked != 1 {
			t.Errorf("%s%s: got %+v, %v, %d asked, want %q", tt.body, tt.content, got, err, j.Asked, tt.want)
		}
		if kept, _ := filepath.Glob(filepath.Join(o.Cache, "*", "*")); len(kept) != 0 {
			t.Errorf("%s%s: kept %v", tt.body, tt.content, kept)
		}
	}
}

func TestJudgePatternTakesTheLastMatch(t *testing.T) {
	url := server(t, func(n int, w http.ResponseWriter, r *http.Request) { says(w, "Score: 3? No.\nScore: 7.5") })
	o, _ := judgeOf(url)
	o.Pattern = regexp.MustCompile(`Score: ([0-9.]+)`)
	if got, err := NewJudge(o).Score(context.Background(), items("a")); err != nil || values(got) != "7.5" {
		t.Errorf("got %v, %v, want 7.5", got, err)
	}
}

func TestJudgeThatIsBroken(t *testing.T) {
	url := server(t, func(n int, w http.ResponseWriter, r *http.Request) {
		http.Error(w, "bad key sk-secret", http.StatusUnauthorized)
	})
	o, _ := judgeOf(url)
	o.Key, o.Concurrent = "sk-secret", 3
	_, err := NewJudge(o).Score(context.Background(), items("a", "b", "c", "d"))
	var broken *BrokenError
	if !errors.As(err, &broken) || broken.ExitCode() != 8 || !strings.Contains(err.Error(), "401 Unauthorized: bad key [key]") {
		t.Errorf("got %v", err)
	}
}

// Two requests a second: the fourth is sent a second and a half after the first.
func TestJudgeRate(t *testing.T) {
	url := server(t, func(n int, w http.ResponseWriter, r *http.Request) { says(w, `{"score": 1}`) })
	o, clock := judgeOf(url)
	o.Rate = 2
	start := clock.now()
	if _, err := NewJudge(o).Score(context.Background(), items("a", "b", "c", "d")); err != nil {
		t.Fatal(err)
	}
	if got := clock.now().Sub(start); got != 1500*time.Millisecond {
		t.Errorf("took %v, want 1.5s", got)
	}
}

func TestJudgeConcurrency(t *testing.T) {
	var mu sync.Mutex
	now, most := 0, 0
	url := server(t, func(n int, w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		now++
		most = max(most, now)
		mu.Unlock()
		time.Sleep(20 * time.Millisecond)
		mu.Lock()
		now--
		mu.Unlock()
		says(w, `{"score": 1}`)
	})
	o, _ := judgeOf(url)
	o.Concurrent = 3
	if _, err := NewJudge(o).Score(context.Background(), items("a", "b", "c", "d", "e", "f", "g", "h", "i")); err != nil {
		t.Fatal(err)
	}
	if most > 3 {
		t.Errorf("%d requests at a time, want at most 3", most)
	}
}

// An answer that cannot be kept leaves no file behind.
func TestJudgeKeepsNothingHalf(t *testing.T) {
	j := NewJudge(JudgeOptions{Concurrent: 1, Timeout: time.Second, Cache: t.TempDir()})
	body := []byte(`{"model":"m"}`)
	taken := j.cachePath(body)
	if err := os.MkdirAll(taken, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := j.keep(body, "4"); err == nil {
		t.Error("no error where a folder has the answer's name")
	}
	if list, _ := filepath.Glob(filepath.Join(filepath.Dir(taken), "*")); len(list) != 1 || list[0] != taken {
		t.Errorf("the folder holds %q", list)
	}
}

// trip answers requests without a server.
type trip func() string

func (f trip) RoundTrip(*http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	says(w, f())
	return w.Result(), nil
}

// Judges that share limits send requests when one judge alone would, in two calls, of which the second begins after a
// pause, and no more at a time.
func TestJudgesShareLimits(t *testing.T) {
	const requests = 12
	var texts []string
	for i := range requests {
		texts = append(texts, fmt.Sprint(i))
	}
	list := items(texts...)
	sent := func(of, concurrent int) (times []time.Duration, most int) {
		for place := range of {
			o, c := judgeOf("http://judge")
			begin := c.t
			o.Rate, o.Concurrent = 10, concurrent
			o.Client = &http.Client{Transport: trip(func() string {
				times = append(times, c.now().Sub(begin))
				return `{"score": 1}`
			})}
			o = o.Share(place, of)
			most += o.Concurrent
			o.Concurrent = 1 // the fake clock is of one request
			j := NewJudge(o)
			for call := range 2 {
				c.t = begin.Add(time.Duration(call) * time.Minute)
				var own []rollout.Item
				for i := place; i < requests; i += of {
					own = append(own, list[i])
				}
				if _, err := j.Score(t.Context(), own); err != nil {
					t.Fatal(err)
				}
			}
		}
		slices.Sort(times)
		return times, most
	}
	want, _ := sent(1, 4)
	if len(want) != 2*requests || want[1] != 100*time.Millisecond {
		t.Fatalf("one judge sends at %v", want)
	}
	for of, most := range map[int]int{1: 7, 2: 7, 3: 7, 4: 7, 12: 12} {
		got, n := sent(of, 7)
		if n != most || len(got) != len(want) {
			t.Errorf("%d judges have %d requests at a time, want %d", of, n, most)
		}
		for i := range got {
			if late := got[i] - want[i]; late < -time.Microsecond || late > time.Microsecond {
				t.Errorf("%d judges: request %d is sent at %v, want %v", of, i, got[i], want[i])
			}
		}
	}
}
