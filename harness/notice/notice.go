// Package notice tells a program and a server that a run ended (the keys notify.*). It decides
// nothing and reads no record. Nothing is told of a process that is killed.
package notice

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Limit bounds how long a program or a server may take.
const Limit = 10 * time.Second

// Event says how a run ended.
type Event string

// The events.
const (
	Done     Event = "done"     // every stage is finished
	Failed   Event = "failed"   // with an error
	Stopped  Event = "stopped"  // by a signal or a condition; it can go on
	Diverged Event = "diverged" // repeated work gave other bits
)

// Notice is the message, in the schema exp.notice/1.
type Notice struct {
	Schema   string             `json:"schema"`
	Event    Event              `json:"event"`
	Reason   string             `json:"reason,omitempty"` // the error or the condition
	Run      string             `json:"run"`              // id
	Name     string             `json:"name"`
	Task     string             `json:"task"`
	Algo     string             `json:"algo"`
	Seed     int64              `json:"seed"`
	Steps    int64              `json:"steps"` // recorded
	Of       int64              `json:"steps_total"`
	WallS    float64            `json:"wall_s"`
	ExitCode int                `json:"exit_code"`
	Host     string             `json:"host"`
	Store    string             `json:"store"` // its folder
	Time     time.Time          `json:"time"`
	Results  map[string]float64 `json:"results"` // that lists show; Send leaves out NaN and infinities
}

// Sender tells. Its zero value tells nobody.
type Sender struct {
	Command []string
	Webhook string        // URL
	Limit   time.Duration // zero: Limit
}

// Send tells everyone at once and returns what went wrong, after Limit at the latest, and a second
// more for a program that cannot be ended at once.
func (s Sender) Send(ctx context.Context, n Notice) error {
	n.Schema = "exp.notice/1"
	finite := map[string]float64{}
	for name, v := range n.Results {
		if !math.IsNaN(v) && !math.IsInf(v, 0) { // JSON has none
			finite[name] = v
		}
	}
	n.Results = finite
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false) // conditions have > and <
	if err := e.Encode(n); err != nil {
		return err
	}
	limit := s.Limit
	if limit == 0 {
		limit = Limit
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	var wg sync.WaitGroup
	var errs [2]error
	if len(s.Command) > 0 {
		wg.Go(func() { errs[0] = s.start(ctx, text.Bytes(), limit) })
	}
	if s.Webhook != "" {
		wg.Go(func() { errs[1] = s.post(ctx, text.Bytes(), limit) })
	}
	wg.Wait()
	return errors.Join(errs[:]...)
}

// mostSaid is the most bytes of a program's output that an error quotes.
const mostSaid = 400

// start gives the notice to the program on stdin.
func (s Sender) start(ctx context.Context, text []byte, limit time.Duration) error {
	cmd := exec.CommandContext(ctx, s.Command[0], s.Command[1:]...)
	cmd.Stdin = bytes.NewReader(text)
	said := &tail{most: mostSaid}
	cmd.Stderr = said
	// The program may have started others: end them all.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
	err := cmd.Run()
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("notify.command: %s did not end within %v and was killed", s.Command[0], limit)
	case errors.Is(err, exec.ErrWaitDelay):
		return nil // it ended well and left a child behind
	case err != nil && len(said.text) > 0:
		return fmt.Errorf("notify.command: %s: %w: %s", s.Command[0], err, bytes.TrimSpace(said.text))
	case err != nil:
		return fmt.Errorf("notify.command: %w", err)
	}
	return nil
}

// tail keeps the last bytes that are written to it.
type tail struct {
	text []byte
	most int
}

func (t *tail) Write(p []byte) (int, error) {
	t.text = append(t.text, p...)
	t.text = t.text[max(0, len(t.text)-t.most):]
	return len(p), nil
}

// post sends the notice to the URL. Errors name only its host: the rest may be a secret.
func (s Sender) post(ctx context.Context, text []byte, limit time.Duration) error {
	u, err := url.Parse(s.Webhook)
	if err != nil || u.Host == "" || !strings.HasPrefix(u.Scheme, "http") {
		return errors.New("notify.webhook: it is not a URL with http or https")
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.Webhook, bytes.NewReader(text))
	if err != nil {
		return errors.New("notify.webhook: it is not a URL")
	}
	r.Header.Set("Content-Type", "application/json")
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse // it would carry the notice elsewhere
	}}
	defer client.CloseIdleConnections()
	answer, err := client.Do(r)
	var wrapped *url.Error // names the whole address
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("notify.webhook: %s did not answer within %v", u.Host, limit)
	case errors.As(err, &wrapped):
		return fmt.Errorf("notify.webhook: %s: %w", u.Host, wrapped.Err)
	case err != nil:
		return fmt.Errorf("notify.webhook: %s: %w", u.Host, err)
	}
	defer answer.Body.Close()
	if answer.StatusCode >= http.StatusMultipleChoices {
		said, _ := io.ReadAll(io.LimitReader(answer.Body, mostSaid)) // quoted only
		return fmt.Errorf("notify.webhook: %s answered %s: %s", u.Host, answer.Status, bytes.TrimSpace(said))
	}
	return nil
}
