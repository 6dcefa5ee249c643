package reward

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"exp/train/program"
	"exp/train/rollout"
)

// JudgeOptions configure a judge. URL, Model, Template, Concurrent and Timeout must be set.
type JudgeOptions struct {
	URL      string // base, such as http://127.0.0.1:8000/v1; /chat/completions is added
	Model    string
	Template string // of the message, with {prompt} (see Transcript), {response} and {gold}
	Reading
	Temperature float64
	MaxTokens   int
	Key         string // sent as bearer token; empty sends none. It is never stored or logged

	Concurrent int           // requests at a time
	Rate       float64       // total requests per second; 0 means no limit
	After      time.Duration // before the first request of a call: judges that share a rate take turns
	Timeout    time.Duration // of one request
	Retries    int           // of a request after a transient failure
	Cache      string        // folder of answers; empty keeps none
	Flags      bool          // errors name flags of a command, --max-tokens, not keys
	Block      string        // begins the names of keys in errors; empty: reward.judge.
	// Waits is told why a request is to be sent again, at most once a minute; it may be called
	// by several goroutines, though not at once. nil tells nobody.
	Waits func(why string)

	Client *http.Client // nil: a client without redirections, which would carry the key elsewhere
	// Now and Sleep replace the clock in tests; nil means the real one.
	Now   func() time.Time
	Sleep func(ctx context.Context, d time.Duration) error
}

// Share returns the options of judge number place of several that begin their calls together and that together keep
// the limits of o. Each may send one request at a time, whatever the limit.
func (o JudgeOptions) Share(place, of int) JudgeOptions {
	o.Concurrent = max(1, (o.Concurrent+of-1-place)/of)
	if o.Rate > 0 {
		o.After = time.Duration(float64(time.Second) * float64(place) / o.Rate)
		o.Rate /= float64(of)
	}
	return o
}

// Judge scores with a language model behind a server that speaks OpenAI's chat completions.
// Equal requests are sent once: answers are cached by the digest of URL and request, so a
// repeated run gets the same scores.
//
// Timeouts, dropped connections, 408, 429 and 5xx are retried, after Retry-After if the
// server sends it, else after 1, 2, 4 … seconds, at most a minute. Other failures are
// final; 401, 403 and 404 mean that no request can succeed and give a *BrokenError. A row
// without a score in the end is not graded.
type Judge struct {
	opt  JudgeOptions
	pace pace
	// Asked counts requests sent, Cached scores from the cache.
	Asked, Cached int64
	mu            sync.Mutex
	told          time.Time // when Waits was called last
}

// NewJudge prepares a judge.
func NewJudge(o JudgeOptions) *Judge {
	if o.Concurrent < 1 || o.Timeout <= 0 {
		panic("reward: judge without concurrency or timeout")
	}
	if o.Client == nil {
		o.Client = &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error {
			return http.ErrUseLastResponse
		}}
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Sleep == nil {
		o.Sleep = sleep
	}
	return &Judge{opt: o, pace: pace{now: o.Now, sleep: o.Sleep, rate: o.Rate}}
}

// Close implements Scorer.
func (j *Judge) Close() error {
	j.opt.Client.CloseIdleConnections()
	return nil
}

// Score implements Scorer. Items with the same message share one request.
func (j *Judge) Score(ctx context.Context, items []rollout.Item) ([]Score, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var bodies [][]byte
	of := make([]int, len(items)) // index of each item's body
	index := map[string]int{}
	for i, it := range items {
		body, err := j.body(it)
		if err != nil {
			return nil, fmt.Errorf("problem %s: %w", it.Problem.ID, err)
		}
		k, ok := index[string(body)]
		if !ok {
			k = len(bodies)
			index[string(body)] = k
			bodies = append(bodies, body)
		}
		of[i] = k
	}
	if j.opt.After > 0 {
		j.pace.pause(j.opt.After)
	}
	scores := make([]Score, len(bodies))
	errs := make([]error, len(bodies))
	next := make(chan int)
	var wg sync.WaitGroup
	for range min(j.opt.Concurrent, len(bodies)) {
		wg.Go(func() {
			for k := range next {
				if scores[k], errs[k] = j.judge(ctx, bodies[k]); errs[k] != nil {
					cancel()
				}
			}
		})
	}
	for k := range bodies {
		next <- k
	}
	close(next)
	wg.Wait()
	for _, err := range errs { // prefer a broken one over those cancelled because of it
		if broken := (*BrokenError)(nil); errors.As(err, &broken) {
			return nil, err
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	out := make([]Score, len(items))
	for i, k := range of {
		out[i] = scores[k]
	}
	return out, nil
}

// Message returns what a judge is asked about a completion: a template with {prompt} (see Transcript), {response} and
// {gold} filled in.
func Message(template string, it rollout.Item) string {
	return fill(template, Transcript(it.Problem), it)
}

// fill puts a completion into a template: {prompt}, {response} and {gold}. It does not
// search the inserted text for placeholders. prompt stands for the problem.
func fill(template, prompt string, it rollout.Item) string {
	return strings.NewReplacer("{prompt}", prompt, "{response}", it.Completion.Text, "{gold}",
		it.Problem.Answer).Replace(template)
}

// chatRequest is the body sent to a server.
type chatRequest struct {
	Model       string        `json:"model"`
	Messages    []chatMessage `json:"messages"`
	Temperature float64       `json:"temperature"`
	MaxTokens   int           `json:"max_tokens"`
}

type chatMessage struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

func (j *Judge) body(it rollout.Item) ([]byte, error) {
	return json.Marshal(chatRequest{Model: j.opt.Model, Temperature: j.opt.Temperature, MaxTokens: j.opt.MaxTokens,
		Messages: []chatMessage{{"user", Message(j.opt.Template, it)}}})
}

// judge scores one request, from the cache if possible. An error ends the call of Score.
func (j *Judge) judge(ctx context.Context, body []byte) (Score, error) {
	if content, ok := j.cached(body); ok {
		if s := j.opt.read(content); s.Graded {
			j.count(&j.Cached)
			return s, nil
		}
	}
	var why error
	for try := 0; try <= j.opt.Retries; try++ {
		if err := j.pace.wait(ctx); err != nil {
			return Score{}, err
		}
		j.count(&j.Asked)
		content, err := j.ask(ctx, body)
		if err == nil {
			s := j.opt.read(content)
			if s.Graded {
				return s, j.keep(body, content)
			}
			s.Reason = j.clean(s.Reason)
			return s, nil
		}
		var passing *passingError
		switch {
		case ctx.Err() != nil:
			return Score{}, ctx.Err()
		case !errors.As(err, &passing):
			var broken *BrokenError
			if errors.As(err, &broken) {
				return Score{}, err
			}
			return Score{Reason: "the judge: " + j.clean(err.Error())}, nil
		}
		why = err
		if passing.after > longestWait {
			return Score{Reason: fmt.Sprintf("the judge: %s; it asks to wait %v, longer than %v",
				j.clean(err.Error()),
				passing.after, longestWait)}, nil
		}
		if try == j.opt.Retries {
			break
		}
		j.tell(why)
		if passing.after > 0 {
			j.pace.pause(passing.after) // all requests: the server is busy, this request is fine
		} else if err := j.opt.Sleep(ctx, backoff(try)); err != nil {
			return Score{}, err
		}
	}
	return Score{Reason: fmt.Sprintf("the judge: asked %s; the last failure: %s", program.Times(j.opt.Retries+1),
		j.clean(why.Error()))}, nil
}

func (j *Judge) count(n *int64) {
	j.mu.Lock()
	*n++
	j.mu.Unlock()
}

// tell passes a reason to Waits.
func (j *Judge) tell(why error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	now := j.opt.Now()
	if j.opt.Waits == nil || !j.told.IsZero() && now.Sub(j.told) < time.Minute {
		return
	}
	j.told = now
	j.opt.Waits(j.clean(why.Error()))
}

// clean removes the key from a text that may repeat it.
func (j *Judge) clean(s string) string {
	if j.opt.Key == "" {
		return s
	}
	return strings.ReplaceAll(s, j.opt.Key, "[key]")
}

// longestWait is the longest wait a server may ask for before we give up on a row.
const longestWait = 5 * time.Minute

// backoff returns the wait after failure try, counted from 0.
func backoff(try int) time.Duration { return min(time.Second<<min(try, 6), time.Minute) }

// passingError is a transient failure.
type passingError struct {
	err   error
	after time.Duration // requested by the server; 0 if none
}

func (e *passingError) Error() string { return e.err.Error() }

// maxResponse is the longest server answer in bytes, maxContent the longest message that is
// searched for a score.
const (
	maxResponse = 4 << 20
	maxContent  = 64 << 10
)

// ask sends a request and returns the judge's text.
func (j *Judge) ask(ctx context.Context, body []byte) (string, error) {
	inTime, cancel := context.WithTimeout(ctx, j.opt.Timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(inTime, http.MethodPost,
		strings.TrimRight(j.opt.URL, "/")+"/chat/completions", bytes.NewReader(body))
	if err != nil {
		return "", err
	}
	req.Header.Set("Content-Type", "application/json")
	if j.opt.Key != "" {
		req.Header.Set("Authorization", "Bearer "+j.opt.Key)
	}
	resp, err := j.opt.Client.Do(req)
	if err != nil {
		return "", &passingError{err: err}
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(io.LimitReader(resp.Body, maxResponse+1))
	switch {
	case err != nil:
		return "", &passingError{err: err}
	case len(raw) > maxResponse:
		return "", fmt.Errorf("its answer is longer than %d bytes", maxResponse)
	case resp.StatusCode != http.StatusOK:
		return "", j.refused(resp, raw)
	}
	var got struct {
		Choices []struct {
			Message struct {
				Content string `json:"content"`
			} `json:"message"`
			Finish string `json:"finish_reason"`
		} `json:"choices"`
	}
	if err := json.Unmarshal(raw, &got); err != nil {
		why := cmp.Or(mismatch(err), err.Error())
		return "", fmt.Errorf("its answer is not a chat completion: %s: %s", why, program.Excerpt(raw))
	}
	if len(got.Choices) == 0 {
		return "", fmt.Errorf("its answer has no choices: %s", program.Excerpt(raw))
	}
	c := got.Choices[0]
	switch {
	case c.Finish == "length":
		return "", fmt.Errorf("its answer was cut at %s: %s", j.named("max_tokens"),
			program.Excerpt([]byte(c.Message.Content)))
	case strings.TrimSpace(c.Message.Content) == "":
		return "", fmt.Errorf("its answer has no content: %s", program.Excerpt(raw))
	case len(c.Message.Content) > maxContent:
		return "", fmt.Errorf("its answer has %d bytes, more than %d", len(c.Message.Content), maxContent)
	}
	return c.Message.Content, nil
}

// named returns what the user calls an option.
func (j *Judge) named(key string) string {
	if j.opt.Flags {
		return "--" + strings.ReplaceAll(key, "_", "-")
	}
	return cmp.Or(j.opt.Block, "reward.judge.") + key
}

// refused returns the error for a status other than 200.
func (j *Judge) refused(resp *http.Response, raw []byte) error {
	err := fmt.Errorf("%s answered %s: %s", j.opt.URL, resp.Status, program.Excerpt(bytes.TrimSpace(raw)))
	switch code := resp.StatusCode; {
	case code == http.StatusRequestTimeout || code == http.StatusTooManyRequests || code >= 500:
		return &passingError{err: err, after: retryAfter(resp.Header.Get("Retry-After"), j.opt.Now())}
	case code == http.StatusUnauthorized || code == http.StatusForbidden || code == http.StatusNotFound:
		return &BrokenError{What: "judge", Err: errors.New(j.clean(err.Error())),
			Help: fmt.Sprintf("check %s, %s, and the key in the variable named by %s", j.named("url"),
				j.named("model"), j.named("key_env"))}
	}
	return err
}

// retryAfter reads a Retry-After header, seconds or a date; 0 if there is none.
func retryAfter(header string, now time.Time) time.Duration {
	if s, err := strconv.ParseFloat(header, 64); err == nil && s > 0 && s < 1e9 {
		return time.Duration(math.Ceil(s*1000)) * time.Millisecond
	}
	if at, err := http.ParseTime(header); err == nil && at.After(now) {
		return at.Sub(now)
	}
	return 0
}
