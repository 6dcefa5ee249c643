package main

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"exp/cmd/exp/cli"
	"exp/cmd/exp/term"
)

// The command prints an address that opens the runs, and ends with Ctrl-C.
func TestServe(t *testing.T) {
	dir := fixtureStore(t)
	out, stdout := io.Pipe()
	signals, ended := make(chan os.Signal, 1), make(chan int, 1)
	go func() {
		ended <- cli.Run(cli.System{Args: []string{"exp", "serve", "--store", dir}, Stdin: strings.NewReader(""), Stdout: stdout,
			Stderr: io.Discard, Getenv: func(string) string { return "" }, Clock: term.SystemClock(), Signals: signals}, program(commands))
		stdout.Close()
	}()
	address, err := bufio.NewReader(out).ReadString('\n')
	if err != nil || !strings.HasPrefix(address, "http://127.0.0.1:") || !strings.Contains(address, "/?token=") {
		t.Fatalf("address %q, %v", address, err)
	}
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := (&http.Client{Jar: jar}).Get(strings.TrimSpace(address))
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(answer.Body)
	answer.Body.Close()
	if err != nil || answer.StatusCode != http.StatusOK || !strings.Contains(string(body), "flowrl-a") {
		t.Errorf("%s, %v:\n%s", answer.Status, err, body)
	}
	signals <- syscall.SIGINT
	select {
	case code := <-ended:
		if code != 0 {
			t.Errorf("exit code %d", code)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("it does not end")
	}
}

func TestServeRefuses(t *testing.T) {
	dir := fixtureStore(t)
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	for _, tt := range []struct {
		args []string
		code cli.ExitCode
		text string
	}{
		{[]string{"--addr", "0.0.0.0:0"}, cli.ExitUsage, "other machines could reach 0.0.0.0"},
		{[]string{"--addr", "127.0.0.1:x"}, cli.ExitUsage, "--addr"},
		{[]string{"--addr", taken.Addr().String()}, cli.ExitResource, "is in use"},
		{[]string{"more"}, cli.ExitUsage, "more"},
	} {
		e := call{}.run(append([]string{"serve", "--store", dir}, tt.args...)...)
		if e.code != int(tt.code) || !strings.Contains(e.stderr, tt.text) {
			t.Errorf("%q: code %d, %s", tt.args, e.code, e.stderr)
		}
	}
}
