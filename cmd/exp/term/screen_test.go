package term

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
)

// screen is a small terminal: it prints, wraps at its width, scrolls, knows the
// escapes that Live uses, and fails the test on any other. Rows that have
// scrolled off stay readable. Characters are one column wide here.
type screen struct {
	t             *testing.T
	width, height int
	reflow        bool // re-wraps its rows when resized, as most terminals do
	rows          []row
	y, x          int // the cursor; y counts from the first row ever
}

type row struct {
	cells     []rune
	continued bool // wrapped from the row before
}

func newScreen(t *testing.T, width, height int, reflow bool) *screen {
	return &screen{t: t, width: width, height: height, reflow: reflow, rows: make([]row, 1)}
}

func (s *screen) Write(p []byte) (int, error) {
	text := []rune(string(p))
	for i := 0; i < len(text); i++ {
		switch r := text[i]; {
		case r == '\r':
			s.x = 0
		case r == '\n':
			s.down(false)
		case r == '\x1b':
			end := i + 2
			for end < len(text) && (text[end] == ';' || '0' <= text[end] && text[end] <= '9') {
				end++
			}
			s.escape(string(text[i+2:end]), text[end])
			i = end
		case r < ' ':
			s.t.Errorf("control character %q", r)
		default:
			s.put(r)
		}
	}
	return len(p), nil
}

func (s *screen) escape(arg string, kind rune) {
	switch kind {
	case 'm':
	case 'A':
		n, err := strconv.Atoi(arg)
		if err != nil || n < 1 {
			s.t.Errorf("cursor up by %q", arg)
		}
		s.y = max(s.y-n, s.top())
	case 'K':
		s.truncate()
	case 'J':
		s.truncate()
		s.rows = s.rows[:s.y+1]
	default:
		s.t.Errorf("unknown escape %q%c", arg, kind)
	}
}

// truncate erases the cursor's row from the cursor on.
func (s *screen) truncate() {
	if r := &s.rows[s.y]; len(r.cells) > s.x {
		r.cells = r.cells[:s.x]
	}
}

func (s *screen) put(r rune) {
	if s.x == s.width {
		s.x = 0
		s.down(true)
	}
	cells := &s.rows[s.y].cells
	for len(*cells) <= s.x {
		*cells = append(*cells, ' ')
	}
	(*cells)[s.x] = r
	s.x++
}

func (s *screen) down(continued bool) {
	s.y++
	if s.y == len(s.rows) {
		s.rows = append(s.rows, row{continued: continued})
	}
}

// top is the first row that is on the screen.
func (s *screen) top() int { return max(len(s.rows)-s.height, 0) }

// resize changes the width. Without reflow, rows are cut as xterm does.
func (s *screen) resize(width int) {
	s.width = width
	if !s.reflow {
		for i := range s.rows {
			s.rows[i].cells = s.rows[i].cells[:min(len(s.rows[i].cells), width)]
		}
		s.x = min(s.x, width)
		return
	}
	var rows []row
	var logical []rune
	flush := func(cursor int) {
		for first := true; first || len(logical) > 0; first = false {
			n := min(len(logical), width)
			if cursor >= 0 && (cursor < width || cursor <= n) {
				s.y, s.x = len(rows), cursor
				cursor = -1
			}
			cursor -= n
			rows = append(rows, row{logical[:n], !first})
			logical = logical[n:]
		}
	}
	cursor, oldY, oldX := -1, s.y, s.x
	for y, r := range s.rows {
		if y > 0 && !r.continued {
			flush(cursor)
			logical, cursor = nil, -1
		}
		if y == oldY {
			cursor = len(logical) + oldX
		}
		logical = append(append([]rune{}, logical...), r.cells...)
	}
	flush(cursor)
	s.rows = rows
}

// text is all that was ever printed and not erased, continued rows joined.
func (s *screen) text() string {
	var out strings.Builder
	for y, r := range s.rows {
		if y > 0 && !r.continued {
			out.WriteByte('\n')
		}
		out.WriteString(string(r.cells))
	}
	lines := strings.Split(out.String(), "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return strings.TrimRight(strings.Join(lines, "\n"), "\n")
}

func TestScreenModel(t *testing.T) {
	s := newScreen(t, 10, 3, true)
	fmt.Fprint(s, "one\r\n0123456789ABC\r\nlast")
	if got, want := s.text(), "one\n0123456789ABC\nlast"; got != want {
		t.Errorf("wrapped: %q, want %q", got, want)
	}
	s.resize(5) // one | 01234 56789 ABC | last: the cursor stays after "last"
	if len(s.rows) != 5 || s.y != 4 || s.x != 4 {
		t.Errorf("after the resize: %d rows, cursor %d,%d", len(s.rows), s.y, s.x)
	}
	fmt.Fprint(s, "\r\x1b[9A\x1b[J!") // up no further than the screen, 3 rows
	if got, want := s.text(), "one\n01234!"; got != want {
		t.Errorf("after erasing: %q, want %q", got, want)
	}
}
