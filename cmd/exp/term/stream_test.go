package term

import (
	"bytes"
	"os"
	"testing"
)

func TestUseColor(t *testing.T) {
	// One row per rule of the order of precedence, and per neighbour of it.
	tests := []struct {
		name string
		mode ColorMode
		tty  bool
		env  []string
		want bool
	}{
		{"terminal", ColorAuto, true, nil, true},
		{"pipe", ColorAuto, false, nil, false},
		{"flag over NO_COLOR", ColorAlways, false, []string{"NO_COLOR", "1"}, true},
		{"flag over CLICOLOR_FORCE", ColorNever, true, []string{"CLICOLOR_FORCE", "1"}, false},
		{"NO_COLOR", ColorAuto, true, []string{"NO_COLOR", "1"}, false},
		{"NO_COLOR empty", ColorAuto, true, []string{"NO_COLOR", ""}, true},
		{"NO_COLOR over CLICOLOR_FORCE", ColorAuto, true, []string{"NO_COLOR", "1", "CLICOLOR_FORCE", "1"}, false},
		{"CLICOLOR_FORCE in a pipe", ColorAuto, false, []string{"CLICOLOR_FORCE", "1"}, true},
		{"CLICOLOR_FORCE=0", ColorAuto, false, []string{"CLICOLOR_FORCE", "0"}, false},
		{"CLICOLOR_FORCE over CLICOLOR=0", ColorAuto, false, []string{"CLICOLOR_FORCE", "1", "CLICOLOR", "0"}, true},
		{"CLICOLOR=0", ColorAuto, true, []string{"CLICOLOR", "0"}, false},
		{"CLICOLOR=1", ColorAuto, true, []string{"CLICOLOR", "1"}, true},
		{"CLICOLOR=1 in a pipe", ColorAuto, false, []string{"CLICOLOR", "1"}, false},
		{"dumb", ColorAuto, true, []string{"TERM", "dumb"}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := useColor(tt.mode, tt.tty, env(tt.env...)); got != tt.want {
				t.Errorf("useColor(%s, tty=%v, %v) = %v, want %v", tt.mode, tt.tty, tt.env, got, tt.want)
			}
		})
	}
}

func TestInspect(t *testing.T) {
	pipe, err := os.CreateTemp(t.TempDir(), "out")
	if err != nil {
		t.Fatal(err)
	}
	defer pipe.Close()

	s := Inspect(pipe, ColorAuto, env("COLUMNS", "40"))
	if s.TTY || s.Color {
		t.Errorf("a file is TTY=%v Color=%v, want neither", s.TTY, s.Color)
	}
	if s.Layout().Width != 0 {
		t.Errorf("layout width of a file = %d, want 0 (any)", s.Layout().Width)
	}

	forced := Inspect(&bytes.Buffer{}, ColorAuto, env("EXP_FORCE_TTY", "101"))
	if !forced.TTY || !forced.Color || forced.Width() != 101 || forced.Layout().Width != 101 {
		t.Errorf("EXP_FORCE_TTY=101: %+v, width %d", forced, forced.Width())
	}
	for _, bad := range []string{"0", "-3", "yes", ""} {
		if Inspect(pipe, ColorAuto, env("EXP_FORCE_TTY", bad)).TTY {
			t.Errorf("EXP_FORCE_TTY=%q makes a file a terminal", bad)
		}
	}
}

func TestDeviceSizeFallsBack(t *testing.T) {
	f, err := os.CreateTemp(t.TempDir(), "not a device")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	tests := []struct {
		columns string
		want    int
	}{{"132", 132}, {"", 80}, {"-1", 80}, {"wide", 80}}
	for _, tt := range tests {
		if w, h := deviceSize(f, env("COLUMNS", tt.columns)); w != tt.want || h != 24 {
			t.Errorf("COLUMNS=%q: %dx%d, want %dx24", tt.columns, w, h, tt.want)
		}
	}
}

func TestSpeaksUTF8(t *testing.T) {
	tests := []struct {
		env  []string
		want bool
	}{
		{nil, true},
		{[]string{"LANG", "en_US.UTF-8"}, true},
		{[]string{"LANG", "C.utf8"}, true},
		{[]string{"LANG", "C"}, false},
		{[]string{"LANG", "en_US.UTF-8", "LC_ALL", "POSIX"}, false},
		{[]string{"LANG", "C", "LC_CTYPE", "de_DE.UTF-8"}, true},
	}
	for _, tt := range tests {
		if got := speaksUTF8(env(tt.env...)); got != tt.want {
			t.Errorf("speaksUTF8(%v) = %v, want %v", tt.env, got, tt.want)
		}
	}
}

func TestPaint(t *testing.T) {
	if got := Bad.Paint("x", false); got != "x" {
		t.Errorf("without colour: %q", got)
	}
	if got := Bad.Paint("x", true); got != "\x1b[1;31mx\x1b[0m" {
		t.Errorf("with colour: %q", got)
	}
	if got := Plain.Paint("x", true) + Bad.Paint("", true); got != "x" {
		t.Errorf("plain and empty text get escapes: %q", got)
	}
}
