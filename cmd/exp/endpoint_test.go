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

	"github.com/google/go-cmp/cmp"

	"exp/cmd/exp/cli"
	"exp/cmd/exp/term"
	"exp/experiments/store"
	"exp/harness/config"
	"exp/kernels/cpu"
	"exp/train/checkpoint/checkpointtest"
)

// byteFolder writes a random model that reads bytes.
func byteFolder(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "bytes")
	writeByteModel(t, dir, 64, "")
	return dir
}

func writeByteModel(t *testing.T, dir string, positions int, template string) {
	t.Helper()
	be, err := cpu.Open(cpu.Options{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer be.Close()
	checkpointtest.WriteBytes(t, be, dir, positions, template)
}

// served is an endpoint that runs in a test.
type served struct {
	t       *testing.T
	base    string // URL
	signals chan os.Signal
	ended   chan int
	stderr  *strings.Builder
}

// serveEndpoint starts exp endpoint.
func serveEndpoint(t *testing.T, args ...string) *served {
	t.Helper()
	out, stdout := io.Pipe()
	s := &served{t: t, signals: make(chan os.Signal, 1), ended: make(chan int, 1), stderr: &strings.Builder{}}
	go func() {
		s.ended <- cli.Run(cli.System{Args: append([]string{"exp", "endpoint"}, args...), Stdin: strings.NewReader(""),
			Stdout: stdout, Stderr: s.stderr, Getenv: func(string) string { return "" }, Clock: term.SystemClock(),
			Signals: s.signals}, program(commands))
		stdout.Close()
	}()
	address, err := bufio.NewReader(out).ReadString('\n')
	if err != nil || !strings.HasPrefix(address, "http://127.0.0.1:") || !strings.HasSuffix(address, "/v1\n") {
		t.Fatalf("address %q, %v\n%s", address, err, s.stderr)
	}
	s.base = strings.TrimSpace(address)
	return s
}

// post returns the body of an answer.
func (s *served) post(path, body string) string {
	s.t.Helper()
	answer, err := http.Post(s.base+path, "application/json", strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		s.t.Fatalf("%s: %s, %v:\n%s", body, answer.Status, err, text)
	}
	return string(text)
}

// stop ends the endpoint with Ctrl-C and returns its stderr.
func (s *served) stop() string {
	s.t.Helper()
	s.signals <- syscall.SIGINT
	select {
	case code := <-s.ended:
		if code != 0 {
			s.t.Errorf("exit code %d\n%s", code, s.stderr)
		}
	case <-time.After(20 * time.Second):
		s.t.Fatal("it does not end")
	}
	return s.stderr.String()
}

// The command says what memory it takes, answers, and ends with Ctrl-C.
func TestEndpoint(t *testing.T) {
	s := serveEndpoint(t, byteFolder(t), "--requests", "--name", "mine")
	body := s.post("/completions", `{"model":"mine","prompt":"hi","max_tokens":3,"seed":1}`)
	if !strings.Contains(body, `"prompt_tokens":2`) || !strings.Contains(body, `"model":"mine"`) {
		t.Error(body)
	}
	if text := s.stop(); !strings.Contains(text, "mine takes up to ") || !strings.Contains(text, "/v1/completions: 2 prompt tokens") {
		t.Error(text)
	}
}

// The command says how it reads calls of tools, and which formats it knows.
func TestEndpointToolFormat(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "plain")
	writeByteModel(t, dir, 64, "{% for m in messages %}{{ m.content }}{% endfor %}")
	shows := filepath.Join(t.TempDir(), "shows")
	hides := filepath.Join(t.TempDir(), "hides")
	writeByteModel(t, shows, 64, `{{ tools or "" }}{% for m in messages %}{{ m.content }}{% endfor %}`+
		`{# <tool_call>{"name": …, "arguments": …}</tool_call> #}`)
	writeByteModel(t, hides, 64, `{% for m in messages %}{{ m.content }}{% endfor %}{# <tool_call>{"name": …, "arguments": …}</tool_call> #}`)
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{dir}, "requests with tools are refused"},
		{[]string{dir, "--tool-format", "mistral"}, "answers write calls as mistral, as --tool-format says"},
		{[]string{shows}, "answers write calls as hermes, which the chat template shows"},
		{[]string{hides}, "the chat template does not show them to the model; with --tool-format hermes messages may describe them"},
		{[]string{hides, "--tool-format", "hermes"}, "answers write calls as hermes, as --tool-format says"},
		{[]string{byteFolder(t)}, ""},
	} {
		s := serveEndpoint(t, tt.args...)
		if text := s.stop(); !strings.Contains(text, tt.want) || tt.want == "" && strings.Contains(text, "tools") {
			t.Errorf("%v: %s, want %q", tt.args, text, tt.want)
		}
	}
	var stderr strings.Builder
	code := cli.Run(cli.System{Args: []string{"exp", "endpoint", dir, "--tool-format", "kimi"},
		Stdin: strings.NewReader(""), Stdout: io.Discard,
		Stderr: &stderr, Getenv: func(string) string { return "" }, Clock: term.SystemClock()}, program(commands))
	if code != 2 || !strings.Contains(stderr.String(), "--tool-format kimi: want auto, or hermes, llama3, mistral, qwen3-coder") {
		t.Errorf("%d: %s", code, stderr.String())
	}
}

// An endpoint of a run has the settings that the run had for its own completions.
func TestEndpointOfRun(t *testing.T) {
	dir := t.TempDir()
	db, err := store.Open(dir, store.Options{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	b := builder{t: t, db: db}
	const settings = `"x":1},"rollout":{"stop":["!"],"stop_ids":[104]},"data":{"template_vars":{"loud":true},` +
		`"template_date":"2024-07-26","escape_special":false,"system":"be"},"more":{"y":1`
	run := b.run("mine", "grpo", 0, settings)
	plain := b.run("plain", "grpo", 0, `"x":1},"data":{"chat":"none"},"more":{"y":1`)
	for _, r := range []store.Run{run, plain} {
		writeByteModel(t, filepath.Join(db.RunDir(r.RID), "model"), 64, "{% for m in messages %}{{ m.content }}{% if loud %}!!!"+
			"{% endif %}{% endfor %}")
	}
	b.must(db.Close())
	s := serveEndpoint(t, "mine", "--store", dir)
	const ask = `{"messages":[{"role":"user","content":"hi"}],"max_tokens":20,"temperature":0`
	if text := s.post("/chat/completions", ask+`}`); !strings.Contains(text, `"prompt_tokens":5`) {
		t.Errorf("the run's template variable: %s", text)
	}
	if text := s.post("/chat/completions", ask+`,"chat_template_kwargs":{"loud":false}}`); !strings.Contains(text, `"prompt_tokens":2`) {
		t.Errorf("a request's own: %s", text)
	}
	s.stop()
	list := ownValues(t.Context(), reopened(t, dir), run)
	want := []config.Value{{Path: "rollout.stop", Value: []string{"!"}}, {Path: "rollout.stop_ids", Value: []string{"104"}},
		{Path: "data.system", Value: "be"}, {Path: "data.template_vars", Value: map[string]any{"loud": true}},
		{Path: "data.template_date", Value: "2024-07-26"}, {Path: "data.escape_special", Value: "false"}}
	if diff := cmp.Diff(want, list); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}

	for _, tt := range []struct {
		template string
		code     int
	}{{"", http.StatusBadRequest}, {"auto", http.StatusOK}} {
		args := []string{"plain", "--store", dir}
		if tt.template != "" {
			args = append(args, "--template", tt.template)
		}
		s := serveEndpoint(t, args...)
		r, err := http.Post(s.base+"/chat/completions", "application/json", strings.NewReader(ask+`}`))
		if err != nil {
			t.Fatal(err)
		}
		r.Body.Close()
		if r.StatusCode != tt.code {
			t.Errorf("a run without a template, --template %q: %s", tt.template, r.Status)
		}
		s.stop()
	}
}

// RUN@STEP has the weights that the run would have ended with after that step, also where it trains adapters.
func TestModelAtStep(t *testing.T) {
	if testing.Short() {
		t.Skip("trains models")
	}
	for _, adapters := range []string{"", "--set train.lora.rank=4 --set train.lora.targets=[all]"} {
		dir := t.TempDir()
		for _, more := range []string{"--set name=four", "--set name=two --set train.steps=2"} {
			args := strings.Fields("run ../../configs/smoke_cpu.yaml -q --store " + dir + " " + more + " " + adapters)
			(call{}).run(args...).succeeds(t)
		}
		said := map[string]string{}
		for _, ref := range []string{"four@2", "two", "two@2", "four", "four@4"} {
			s := serveEndpoint(t, ref, "--store", dir, "--name", "m")
			text := s.post("/completions", `{"prompt":"3,4=12:","seed":5,"max_tokens":8,"logprobs":3,"echo":true}`)
			said[ref], _, _ = strings.Cut(text, `"created"`) // the choices come before
			s.stop()
		}
		if two := said["two"]; said["four@2"] != two || said["two@2"] != two || said["four"] == two || said["four@4"] != said["four"] {
			t.Errorf("%s: %v", adapters, said)
		}
		e := call{}.run("endpoint", "four@3", "--store", dir)
		e.check(t, int(cli.ExitNotFound), "", "has no checkpoint of step 3", "the run has checkpoints of steps 2\n")
	}
}

func reopened(t *testing.T, dir string) *store.DB {
	t.Helper()
	db, err := store.Open(dir, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
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
		{[]string{dir, "--grace", "soon"}, cli.ExitUsage, "--grace soon"},
		{[]string{dir, "--grace", "-1s"}, cli.ExitUsage, "--grace -1s"},
		{[]string{dir + "/none"}, cli.ExitNotFound, "no"},
		{[]string{t.TempDir()}, cli.ExitNotFound, "config.json"},
	} {
		e := call{}.run(append([]string{"endpoint"}, tt.args...)...)
		if e.code != int(tt.code) || !strings.Contains(e.stderr, tt.text) {
			t.Errorf("%q: code %d, %s", tt.args, e.code, e.stderr)
		}
	}
}
