package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"exp/cmd/exp/term"
)

func TestEnvironment(t *testing.T) {
	store := func(args ...string) string {
		got := call{env: map[string]string{"EXP_STORE": "E"}}.run(args...)
		_, rest, _ := strings.Cut(got.stdout, "store=")
		return strings.Fields(rest)[0]
	}
	if got := store("run", "a"); got != "E" {
		t.Errorf("store %q, want EXP_STORE's", got)
	}
	if got := store("run", "a", "--store", "F"); got != "F" {
		t.Errorf("store %q, want the flag's", got)
	}
	call{env: map[string]string{"EXP_PROGRESS": "loud"}}.run("run").check(t, 2, "", `EXP_PROGRESS is "loud", but must be one of`)
	call{env: map[string]string{"EXP_LOG": "loud"}}.run("run").check(t, 2, "", `EXP_LOG is "loud"`)
}

func TestProgressKind(t *testing.T) {
	tests := []struct {
		name string
		env  map[string]string
		args []string
		want term.Kind
	}{
		{"default", nil, nil, term.KindAuto},
		{"environment", map[string]string{"EXP_PROGRESS": "json"}, nil, term.KindJSON},
		{"flag wins", map[string]string{"EXP_PROGRESS": "json"}, []string{"--progress", "plain"}, term.KindPlain},
		{"quiet", map[string]string{"EXP_PROGRESS": "json"}, []string{"-q"}, term.KindNone},
		{"asked for in spite of quiet", nil, []string{"-q", "--progress", "json"}, term.KindJSON},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var got term.Kind
			list := func(a *App) []*Command {
				return []*Command{{Name: "x", Action: func(*Context) error { got = a.progressKind; return nil }}}
			}
			call{list: list, env: tt.env}.run(append([]string{"x"}, tt.args...)...).check(t, 0, "")
			if got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestWarnings(t *testing.T) {
	list := func(a *App) []*Command {
		return []*Command{{Name: "x", Action: func(c *Context) error {
			a.Warn("only %d seed", 1)
			if c.Args().Present() {
				return errors.New("no result")
			}
			return a.Out.PrintTable(Table{Schema: "exp.x/1", Columns: []Column{{Key: "id"}}, Rows: [][]any{{"a"}}})
		}}}
	}
	call{list: list}.run("x").check(t, 0, "id\na\n", "warning: only 1 seed\n")
	call{list: list}.run("x", "-o", "jsonl").check(t, 0, "{\"id\":\"a\"}\n", "warning: only 1 seed\n")
	got := call{list: list}.run("x", "--json")
	if !strings.Contains(got.stdout, "\"warnings\": [\n    \"only 1 seed\"\n  ]") || got.stderr != "" {
		t.Errorf("JSON: %+v", got)
	}
	call{list: list}.run("x", "--json", "fail").check(t, 1, "", "warning: only 1 seed\n", `"message":"no result"`)
}

func TestWarningsKeepTheLiveBlock(t *testing.T) {
	list := func(a *App) []*Command {
		return []*Command{{Name: "x", Action: func(c *Context) error {
			a.Progress().RunStart(term.Run{ID: "5e8d10b4"})
			a.Warn("careful")
			return nil
		}}}
	}
	call{list: list}.run("x", "--progress", "plain").check(t, 0, "", "run=5e8d10b4 warning=careful\n")
	call{list: list}.run("x", "-q").check(t, 0, "", "warning: careful\n")
}

// Lines of JSON stay lines of JSON after the display has closed.
func TestNotesAsJSON(t *testing.T) {
	list := func(a *App) []*Command {
		return []*Command{{Name: "x", Action: func(c *Context) error {
			a.Progress().RunStart(term.Run{ID: "5e8d10b4"})
			a.CloseProgress()
			a.Note("next:\n  exp show")
			return nil
		}}}
	}
	got := call{list: list}.run("x", "--progress", "json")
	lines := strings.Split(strings.TrimSpace(got.stderr), "\n")
	if len(lines) != 2 || !strings.HasSuffix(lines[1], `"event":"note","text":"next:\n  exp show"}`) {
		t.Errorf("stderr %q", got.stderr)
	}
}

func TestLogLevels(t *testing.T) {
	list := func(a *App) []*Command {
		return []*Command{{Name: "x", Action: func(*Context) error {
			a.Log.Debug("details")
			a.Log.Info("what happens")
			a.Log.Warn("odd")
			a.Log.Error("bad")
			return nil
		}}}
	}
	tests := []struct {
		args string
		env  string
		want int // lines
	}{{"x", "", 2}, {"x -v", "", 3}, {"x -vv", "", 4}, {"-v x -v", "", 4}, {"x -q", "", 1}, {"x", "debug", 4}, {"x -v", "error", 3}}
	for _, tt := range tests {
		got := call{list: list, env: map[string]string{"EXP_LOG": tt.env}}.run(strings.Fields(tt.args)...)
		if n := strings.Count(got.stderr, "\n"); n != tt.want || got.code != 0 {
			t.Errorf("%s, EXP_LOG=%s: %d lines, want %d:\n%s", tt.args, tt.env, n, tt.want, got.stderr)
		}
	}
	got := call{list: list}.run("x", "--log-format", "json")
	for line := range strings.Lines(got.stderr) {
		if !json.Valid([]byte(line)) {
			t.Errorf("not JSON: %s", line)
		}
	}
}

func TestDirectory(t *testing.T) {
	t.Chdir(t.TempDir()) // restores the directory that -C leaves behind
	if err := os.Mkdir("sub", 0o755); err != nil {
		t.Fatal(err)
	}
	list := func(a *App) []*Command {
		return []*Command{{Name: "x", Action: func(*Context) error {
			dir, err := os.Getwd()
			fmt.Fprintln(a.Stdout, filepath.Base(dir))
			return err
		}}}
	}
	call{list: list}.run("x", "-C", "sub").check(t, 0, "sub\n")
}
