package term

import (
	"io"
	"os"
	"strconv"
	"strings"

	xterm "golang.org/x/term"
)

// ColorMode is the value of --color.
type ColorMode string

// The values of --color.
const (
	ColorAuto   ColorMode = "auto"
	ColorAlways ColorMode = "always"
	ColorNever  ColorMode = "never"
)

// The fallback size of a terminal: the VT100's.
const (
	fallbackWidth  = 80
	fallbackHeight = 24
)

// Stream describes one output stream. Its zero value is a pipe
// without colour. It is a value and never changes, except that Width and Height
// ask the device each time, because a window may be resized.
type Stream struct {
	TTY     bool // a person is looking at it
	Color   bool // colour escapes are wanted
	Unicode bool // bars, dots and arrows beyond ASCII may be used

	size func() (width, height int) // nil: the fallback size
}

// Inspect describes w, which is a terminal only if it is an *os.File.
// EXP_FORCE_TTY=N (columns) makes any writer a terminal N columns wide.
func Inspect(w io.Writer, mode ColorMode, getenv func(string) string) Stream {
	var s Stream
	if f, ok := w.(*os.File); ok && xterm.IsTerminal(int(f.Fd())) {
		s.TTY = true
		s.size = func() (int, int) { return deviceSize(f, getenv) }
	}
	if n, err := strconv.Atoi(getenv("EXP_FORCE_TTY")); err == nil && n > 0 {
		s.TTY = true
		s.size = func() (int, int) { return n, fallbackHeight }
	}
	s.Color = useColor(mode, s.TTY, getenv)
	s.Unicode = speaksUTF8(getenv)
	return s
}

// Sized returns s with the size function replaced; for callers that know the
// size by other means.
func (s Stream) Sized(size func() (width, height int)) Stream {
	s.size = size
	return s
}

// Width is the number of columns, at least 1.
func (s Stream) Width() int {
	w, _ := s.dims()
	return w
}

// Height is the number of lines, at least 1.
func (s Stream) Height() int {
	_, h := s.dims()
	return h
}

func (s Stream) dims() (width, height int) {
	width, height = fallbackWidth, fallbackHeight
	if s.size != nil {
		width, height = s.size()
	}
	return max(width, 1), max(height, 1)
}

// deviceSize asks the terminal driver; what it does not know (a serial line
// answers 0) comes from COLUMNS, then from the fallback.
func deviceSize(f *os.File, getenv func(string) string) (width, height int) {
	width, height, err := xterm.GetSize(int(f.Fd()))
	if err != nil || height <= 0 {
		height = fallbackHeight
	}
	if err == nil && width > 0 {
		return width, height
	}
	if n, err := strconv.Atoi(getenv("COLUMNS")); err == nil && n > 0 {
		return n, height
	}
	return fallbackWidth, height
}

// useColor decides by the first of these that is set: --color, NO_COLOR,
// CLICOLOR_FORCE, CLICOLOR=0, TERM=dumb, and whether the stream is a terminal.
func useColor(mode ColorMode, tty bool, getenv func(string) string) bool {
	force := getenv("CLICOLOR_FORCE")
	switch {
	case mode == ColorAlways:
		return true
	case mode == ColorNever:
		return false
	case getenv("NO_COLOR") != "":
		return false
	case force != "" && force != "0":
		return true
	case getenv("CLICOLOR") == "0":
		return false
	case getenv("TERM") == "dumb":
		return false
	}
	return tty
}

// speaksUTF8 reads the locale as C libraries do. No locale at all is the rule
// in containers, whose terminals speak UTF-8 nevertheless.
func speaksUTF8(getenv func(string) string) bool {
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if v := strings.ToLower(getenv(name)); v != "" {
			return strings.Contains(v, "utf-8") || strings.Contains(v, "utf8")
		}
	}
	return true
}
