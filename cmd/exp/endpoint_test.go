package main

import (
	"bufio"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"exp/cmd/exp/cli"
	"exp/cmd/exp/term"
	"exp/kernels/cpu"
	"exp/train/checkpoint/checkpointtest"
)

// byteFolder writes a random model that reads bytes.
func byteFolder(t *testing.T) string {
	t.Helper()
	be, err := cpu.Open(cpu.Options{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer be.Close()
	dir := filepath.Join(t.TempDir(), "bytes")
	checkpointtest.WriteBytes(t, be, dir, 64, "")
	return dir
}

// The command says what memory it takes, answers, and ends with Ctrl-C.
func TestEndpoint(t *testing.T) {
	out, stdout := io.Pipe()
	var stderr strings.Builder
	signals, ended := make(chan os.Signal, 1), make(chan int, 1)
	args := []string{"exp", "endpoint", byteFolder(t), "--requests"}
	go func() {
		ended <- cli.Run(cli.System{Args: args, Stdin: strings.NewReader(""), Stdout: stdout, Stderr: &stderr,
			Getenv: func(string) string { return "" }, Clock: term.SystemClock(), Signals: signals}, program(commands))
		stdout.Close()
	}()
	address, err := bufio.NewReader(out).ReadString('\n')
	if err != nil || !strings.HasPrefix(address, "http://127.0.0.1:") || !strings.HasSuffix(address, "/v1\n") {
		t.Fatalf("address %q, %v", address, err)
	}
	answer, err := http.Post(strings.TrimSpace(address)+"/completions", "application/json",
		strings.NewReader(`{"model":"bytes","prompt":"hi","max_tokens":3,"seed":1}`))
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(answer.Body)
	answer.Body.Close()
	if err != nil || answer.StatusCode != http.StatusOK || !strings.Contains(string(body), `"prompt_tokens":2`) {
		t.Errorf("%s, %v:\n%s", answer.Status, err, body)
	}
	signals <- syscall.SIGINT
	select {
	case code := <-ended:
		if code != 0 || !strings.Contains(stderr.String(), "bytes takes up to ") ||
			!strings.Contains(stderr.String(), "/v1/completions: 2 prompt tokens") {
			t.Errorf("exit code %d\n%s", code, &stderr)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("it does not end")
	}
}

func TestEndpointRefuses(t *testing.T) {
	dir := byteFolder(t)
	for _, tt := range []struct {
		args []string
		code cli.ExitCode
		text string
	}{
		{[]string{dir, "--addr", "0.0.0.0:0"}, cli.ExitUsage, "other machines could reach 0.0.0.0"},
		{[]string{dir, "--api-key-env", "NO_KEY"}, cli.ExitUsage, "the environment has no such variable"},
		{[]string{dir, "--context", "65"}, cli.ExitUsage, "has 64 positions"},
		{[]string{dir, "--context", "1"}, cli.ExitUsage, "at least 2"},
		{[]string{dir, "--sequences", "0"}, cli.ExitUsage, "--sequences"},
		{[]string{dir + "/none"}, cli.ExitNotFound, "no"},
		{[]string{t.TempDir()}, cli.ExitNotFound, "config.json"},
	} {
		e := call{}.run(append([]string{"endpoint"}, tt.args...)...)
		if e.code != int(tt.code) || !strings.Contains(e.stderr, tt.text) {
			t.Errorf("%q: code %d, %s", tt.args, e.code, e.stderr)
		}
	}
}
