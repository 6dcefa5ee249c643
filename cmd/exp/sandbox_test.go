package main

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"exp/sandbox"
)

// needSandbox skips where programs cannot be run, with the reason.
func needSandbox(t *testing.T) {
	t.Helper()
	level, probes, err := sandbox.Check(context.Background(), sandbox.Config{})
	if err != nil || !level.AtLeast(sandbox.Namespaces) {
		t.Skip(err, probes)
	}
}

func TestSandboxExec(t *testing.T) {
	needSandbox(t)
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	good := write("good.py", "import sys\nprint(sys.argv[1:])\nprint('e', file=sys.stderr)")
	e := exp(t, "sandbox", "exec", good, "a", "b")
	if e.code != 0 || e.stdout != "['a', 'b']\n" || !strings.Contains(e.stderr, "e\n") || !strings.Contains(e.stderr, "ok: wall ") {
		t.Errorf("%+v", e)
	}
	e = exp(t, "sandbox", "exec", "--json", "--limits", "cpu_ms=200,memory_mb=64", write("spin.py", "while True: pass"))
	var got struct {
		Schema string
		Data   sandboxResult
	}
	if err := json.Unmarshal([]byte(e.stdout), &got); err != nil || got.Schema != "exp.sandbox.exec/1" || got.Data.Verdict != sandbox.TimeLimit || e.code != 1 {
		t.Errorf("%v %+v %+v", err, got, e)
	}
	e = exp(t, "sandbox", "exec", write("wrong.c", "int main() { return x; }"))
	if sandbox.Toolchains(context.Background())[0].OK {
		e.refuses(t, 1, "compile_error", "undeclared")
	} else {
		e.refuses(t, 8, "no toolchain")
	}
	requests := write("in.jsonl", `{"id":"a","source":"print(int(input())+1)","tests":[{"stdin":"1","stdout":"2"}]}`+"\nnonsense\n")
	out := filepath.Join(dir, "out.jsonl")
	exp(t, "sandbox", "exec", "--in", requests, "--out", out).succeeds(t)
	text, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	if len(lines) != 2 || !strings.Contains(lines[0], `"verdict":"ok"`) || !strings.Contains(lines[1], `"verdict":"infra_error"`) {
		t.Errorf("%s", text)
	}
}

func TestSandboxCheck(t *testing.T) {
	needSandbox(t)
	e := exp(t, "sandbox", "check", "--most", "namespaces")
	e.succeeds(t)
	if !strings.HasPrefix(e.stdout, "level namespaces\n") || !strings.Contains(e.stdout, "javascript") {
		t.Errorf("%s", e.stdout)
	}
	e = exp(t, "sandbox", "exec", "--most", "namespaces", "--require", "full", "../../source.go")
	e.refuses(t, 8, "level full is required", "gives namespaces", "cgroup")
}

// The figures are not tested: the rows are, and that each has some.
func TestSandboxBench(t *testing.T) {
	needSandbox(t)
	e := exp(t, "sandbox", "bench", "--seconds", "0.1", "--workers", "2", "--json")
	e.succeeds(t)
	var got struct {
		Schema string
		Data   []struct {
			Program, Way string
			PerSecond    float64 `json:"per_second"`
			P50          float64 `json:"p50_ms"`
			P99          float64 `json:"p99_ms"`
			CPU          float64 `json:"cpu_ms"`
			Runs         int64
		}
	}
	if err := json.Unmarshal([]byte(e.stdout), &got); err != nil || got.Schema != "exp.sandbox.bench/1" {
		t.Fatalf("%v: %s", err, e.stdout)
	}
	rows := ""
	for _, r := range got.Data {
		if r.Way != "bubblewrap" {
			rows += r.Program + " " + r.Way + "\n"
		}
		if r.Runs < 10 || r.PerSecond <= 0 || r.P50 <= 0 || r.P99 < r.P50 || r.CPU <= 0 {
			t.Errorf("%+v", r)
		}
	}
	if want := "pass bare\npass sandbox\nimports bare\nimports sandbox\ncall sandbox\nasserts sandbox\n"; rows != want {
		t.Errorf("rows\n%swant\n%s", rows, want)
	}
	exp(t, "sandbox", "bench", "--seconds", "0").refuses(t, 2, "--seconds 0")
}

func TestSandboxBadUsage(t *testing.T) {
	for _, c := range []struct {
		args string
		code int
		text string
	}{
		{"exec", 2, "needs FILE or --in"},
		{"exec nowhere.py", 3, "nowhere.py"},
		{"exec --in nowhere.jsonl", 3, "nowhere.jsonl"},
		{"exec --out x f.py", 2, "--in"},
		{"exec --limits cpu_ms f.py", 2, "NAME=NUMBER"},
		{"exec --limits cpu_s=1 f.py", 2, "cpu_s"},
		{"exec --limits cpu_ms=0 f.py", 2, "between 1 and"},
		{"exec --require none f.py", 2, "none"},
		{"exec --workers -1 f.py", 2, "--workers"},
		{"selftest extra", 2, "extra"},
		{"check extra", 2, "extra"},
	} {
		exp(t, append([]string{"sandbox"}, strings.Fields(c.args)...)...).refuses(t, c.code, c.text)
	}
}
