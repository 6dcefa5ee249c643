package notice

import (
	"context"
	"encoding/json"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

var ended = Notice{Event: Stopped, Reason: "kl/ref_k3 > 1", Run: "abcd", Name: "demo", Seed: 3, Steps: 7, Of: 10,
	Results: map[string]float64{"pass@1": 0.5, "kl": math.Inf(1), "loss": math.NaN()}}

func check(t *testing.T, text []byte) {
	t.Helper()
	var got struct {
		Schema, Event, Reason, Run string
		Seed                       int64
		Total                      int64 `json:"steps_total"`
		Results                    map[string]float64
	}
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	if !strings.Contains(string(text), "kl/ref_k3 > 1") {
		t.Errorf("%s: the condition is hard to read", text)
	}
	if got.Schema != "exp.notice/1" || got.Event != "stopped" || got.Reason != "kl/ref_k3 > 1" || got.Run != "abcd" ||
		got.Seed != 3 || got.Total != 10 || len(got.Results) != 1 || got.Results["pass@1"] != 0.5 {
		t.Errorf("notice %s", text)
	}
}

func TestSend(t *testing.T) {
	var posted []byte
	var kind string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		posted, _ = io.ReadAll(r.Body)
		kind = r.Method + " " + r.Header.Get("Content-Type")
	}))
	defer server.Close()
	file := filepath.Join(t.TempDir(), "notice.json")
	s := Sender{Command: []string{"sh", "-c", `cat > "$0"`, file}, Webhook: server.URL}
	if err := s.Send(context.Background(), ended); err != nil {
		t.Fatal(err)
	}
	check(t, posted)
	if kind != "POST application/json" {
		t.Errorf("request: %s", kind)
	}
	read, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	check(t, read)
	if err := (Sender{}).Send(context.Background(), ended); err != nil {
		t.Errorf("nobody to tell: %v", err)
	}
}

// A program and a server that never answer cost the limit once.
func TestSendIsBounded(t *testing.T) {
	done := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-done }))
	defer server.Close()
	defer close(done)
	s := Sender{Command: []string{"sh", "-c", "sleep 60 & sleep 60"}, Webhook: server.URL, Limit: 200 * time.Millisecond}
	start := time.Now()
	err := s.Send(context.Background(), ended)
	if took := time.Since(start); took > 5*time.Second {
		t.Errorf("it took %v", took)
	}
	for _, part := range []string{"sh did not end within 200ms and was killed", "did not answer within 200ms"} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("error %v, want %q", err, part)
		}
	}
}

func TestSendErrors(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "no such channel", http.StatusNotFound)
	}))
	defer server.Close()
	closed := httptest.NewServer(nil)
	closed.Close()
	for _, tt := range []struct {
		s    Sender
		want string
	}{
		{Sender{Command: []string{"/no/such/program"}}, "/no/such/program"},
		{Sender{Command: []string{"sh", "-c", "echo broken >&2; exit 3"}}, "sh: exit status 3: broken"},
		{Sender{Webhook: server.URL + "/secret"}, "404 Not Found: no such channel"},
		{Sender{Webhook: closed.URL + "/secret"}, "connection refused"},
		{Sender{Webhook: "ftp://x/secret"}, "not a URL"},
	} {
		err := tt.s.Send(context.Background(), ended)
		if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%+v: %v, want %q and no secret", tt.s, err, tt.want)
		}
	}
	// Ending well without reading the notice, or with a child left behind, is fine.
	for _, script := range []string{"exec true", "sleep 30 >&2 & exit 0"} {
		if err := (Sender{Command: []string{"sh", "-c", script}}).Send(context.Background(), ended); err != nil {
			t.Errorf("%s: %v", script, err)
		}
	}
}
