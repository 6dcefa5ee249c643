package cli

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// complete returns what the program proposes for the last word.
func complete(words ...string) string {
	got := call{}.run(append(words, CompletionFlag)...)
	if got.code != 0 || got.stderr != "" {
		return fmt.Sprintf("%+v", got)
	}
	return got.stdout
}

func TestComplete(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, name := range []string{"configs/x", "b", ".git"} {
		if err := os.MkdirAll(name, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"a.yaml", "a.txt", "configs/run one.yaml", ".hidden.yaml"} {
		if err := os.WriteFile(name, nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	runs := func(store string) string { return "xid:7c19ae02\tstore " + store + "\n5e8d10b4\tdone\n" }
	tests := []struct {
		name  string
		words []string
		want  string
	}{
		{"commands", []string{""}, "run\trun experiments\nshow\tshow one run\nconfig\tcheck and show configurations\n" +
			"version\tprint version, commit and build\ncompletion\tprint a shell completion script\nhelp\texplain a command or a topic\n"},
		{"part of a command", []string{"co"}, "config\tcheck and show configurations\ncompletion\tprint a shell completion script\n"},
		{"after a global flag", []string{"--store", "S", "sho"}, "show\tshow one run\n"},
		{"subcommands", []string{"config", ""}, "show\tprint a resolved configuration\ncheck\tcheck files\n"},
		{"hook", []string{"show", ""}, runs("")},
		{"hook sees the store", []string{"show", "--store", "S", ""}, runs("S")},
		{"hook sees the store before", []string{"--store", "S", "show", "xid:"}, "xid:7c19ae02\tstore S\n"},
		{"hook after an unknown flag", []string{"show", "--bogus", "5e"}, "5e8d10b4\tdone\n"},
		{"value of a flag", []string{"run", "--set", "algo.k"}, "algo.kind=\talgorithm\n"},
		{"value in one word", []string{"run", "--set=algo.k"}, "--set=algo.kind=\talgorithm\n"},
		{"value of a global flag", []string{"run", "a.yaml", "-o", "js"}, "json\njsonl\n"},
		{"its long form in one word", []string{"run", "--output=js"}, "--output=json\n--output=jsonl\n"},
		{"no proposals for a value", []string{"run", "--seeds", ""}, ""},
		{"flags", []string{"run", "--se"}, "--set\tset a key: K=V\n--seeds\tLIST of seeds\n"},
		{"flags after a dash", []string{"config", "show", "-C"}, "-C\twork as if started in DIR\n"},
		{"no flags after a double dash", []string{"run", "--", "-"}, ""},
		{"paths", []string{"run", ""}, "a.yaml\nb/\nconfigs/\n"},
		{"path with a space", []string{"run", "configs/r"}, "configs/run one.yaml\n"},
		{"hidden paths", []string{"run", "."}, ".git/\n.hidden.yaml\n"},
		{"no such directory", []string{"run", "nowhere/x"}, ""},
		{"directories", []string{"-C", ""}, "b/\nconfigs/\n"},
		{"relative to -C", []string{"-C", "configs", "run", ""}, "run one.yaml\nx/\n"},
		{"unknown command", []string{"nonsense", "x"}, ""},
		{"topics of help", []string{"help", "w"}, "words\texplain the words\n"},
		{"no topic within a command", []string{"help", "config", "w"}, ""},
		{"arguments of help", []string{"help", "config", "s"}, "show\tprint a resolved configuration\n"},
		{"shells", []string{"completion", "z"}, "zsh\n"},
		{"second shell", []string{"completion", "zsh", ""}, ""},
	}
	base, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Chdir(base) // -C moves the process
			if got := complete(tt.words...); got != tt.want {
				t.Errorf("exp %q: got  %q\nwant %q", tt.words, got, tt.want)
			}
		})
	}
}

// TestCompleteIsSilent: whatever goes wrong, nothing is printed.
func TestCompleteIsSilent(t *testing.T) {
	list := func(a *App) []*Command {
		return []*Command{{
			Name:         "x",
			BashComplete: a.Completes(func(*Context, Word) []Candidate { panic("no store") }),
			Action:       func(*Context) error { panic("must not run") },
		}}
	}
	for _, words := range [][]string{{"x", ""}, {"--color", "mauve", "x", ""}, {"-C", "/no/such/dir", "x", ""}} {
		got := call{list: list}.run(append(words, CompletionFlag)...)
		got.check(t, 0, "")
	}
}

func TestCompleteHookHasADeadline(t *testing.T) {
	var left time.Duration
	list := func(a *App) []*Command {
		return []*Command{{Name: "x", BashComplete: a.Completes(func(c *Context, _ Word) []Candidate {
			end, _ := c.Context.Deadline()
			left = time.Until(end)
			return nil
		})}}
	}
	call{list: list}.run("x", "", CompletionFlag)
	if left <= 0 || left > CompletionTime {
		t.Errorf("%v left of the hook's time, want up to %v", left, CompletionTime)
	}
}

// shell runs a script in a shell where "exp" is this program, and returns
// what it prints.
func shell(t *testing.T, name, script string, args ...string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Skipf("no %s on this machine", name)
	}
	dir := t.TempDir()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	// The race detector sleeps a second at exit unless told otherwise.
	wrapper := fmt.Sprintf("#!/bin/sh\nEXP_TEST_AS_PROGRAM=1 GORACE=atexit_sleep_ms=0 exec %q \"$@\"\n", program)
	if err := os.WriteFile(filepath.Join(dir, "exp"), []byte(wrapper), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{"completion.bash", "completion.zsh", "completion.fish"} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, file), text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "sub"), 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(path, append(args, script)...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"), "HOME="+dir)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", name, err, out)
	}
	return string(out)
}

func TestBashScript(t *testing.T) {
	got := shell(t, "bash", `
source completion.bash
ask() {
	COMP_LINE=$1 COMP_POINT=${#1}
	_exp
	printf '%s|' "$1" "${COMPREPLY[@]}"; echo
}
ask 'exp vers'
ask 'exp version -o js'
ask 'exp version --output=js'
ask 'exp completion '
ask 'exp -C su'
ask 'exp help nonsense '
mkdir -p ~/'a dir'
ask 'exp -C ~/a'
COMP_WORDBREAKS=' ' ; ask 'exp version --output=js'
`, "--norc", "-c")
	want := `exp vers|version|
exp version -o js|json|jsonl|
exp version --output=js|json|jsonl|
exp completion |bash|zsh|fish|
exp -C su|sub/|
exp help nonsense |
exp -C ~/a|~/a\ dir/|
exp version --output=js|--output=json|--output=jsonl|
`
	if got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}

func TestZshScript(t *testing.T) {
	got := shell(t, "zsh", `
_describe() { print -r -- "$1" "${(j:|:)${(@P)2}}" "${@[3,-1]}" }
source ./completion.zsh
words=(exp vers); CURRENT=2; _exp
words=(exp version -o js); CURRENT=4; _exp
words=(exp -C su); CURRENT=3; _exp
words=(exp version --output=js); CURRENT=3; _exp
`, "-f", "-c")
	want := `exp version:print version, commit and build
exp json|jsonl
exp sub/ -S ` + `
exp --output=json|--output=jsonl
`
	if got != want {
		t.Errorf("got:\n%q\nwant:\n%q", got, want)
	}
}

func TestFishScript(t *testing.T) {
	got := shell(t, "fish", `
source completion.fish
complete -C'exp vers'
complete -C'exp version -o js'
complete -C'exp -C su'
`, "--no-config", "-c")
	want := "version\tprint version, commit and build\njson\njsonl\nsub/\n"
	if got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}

func TestCompletionCommand(t *testing.T) {
	for _, name := range []string{"bash", "zsh", "fish"} {
		want, err := os.ReadFile("completion." + name)
		if err != nil {
			t.Fatal(err)
		}
		call{}.run("completion", name).check(t, 0, string(want))
		if !strings.Contains(string(want), CompletionFlag) {
			t.Errorf("the script for %s does not ask with %s", name, CompletionFlag)
		}
	}
	call{}.run("completion").check(t, 2, "", "error: exp completion needs bash|zsh|fish\nsee exp completion --help\n")
	call{}.run("completion", "tcsh").check(t, 2, "", `no completion for "tcsh"`)
}
