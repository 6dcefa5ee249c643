// Package program runs a program of the user's beside this one and exchanges lines with it: it reads requests on
// its standard input and answers on its standard output.
package program

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"time"
)

// Process is one running program.
type Process struct {
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	stdout io.ReadCloser
	lines  chan Line // closed at the end of its output
	stderr *lineLog
	ended  chan struct{} // closed when it has ended
}

// Line is a line of a program's output, or the reason that the output ended.
type Line struct {
	Number int // from 1
	Text   []byte
	Err    error
}

// MaxLine is the longest line of output, in bytes.
const MaxLine = 1 << 20

// Start starts a program in its own process group.
func Start(argv []string) (*Process, error) {
	cmd := exec.Command(argv[0], argv[1:]...)
	p := &Process{cmd: cmd, stderr: &lineLog{noted: make(chan struct{}, 1)}, lines: make(chan Line, 64),
		ended: make(chan struct{})}
	var err error
	if p.stdin, err = cmd.StdinPipe(); err != nil {
		return nil, err
	}
	if p.stdout, err = cmd.StdoutPipe(); err != nil {
		return nil, err
	}
	cmd.Stderr = p.stderr
	cmd.WaitDelay = time.Second // a grandchild may hold standard error open
	ownGroup(cmd)
	started := make(chan error)
	go func() {
		// If we die, the system kills the program when the thread that started it ends.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		if err := cmd.Start(); err != nil {
			started <- err
			return
		}
		started <- nil
		p.readLines()
		_ = cmd.Wait()
		killGroup(cmd) // its remaining children
		close(p.ended)
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	return p, nil
}

// Write sends lines to the program. It may block until the program reads; a program that has ended takes nothing,
// which Lines tells.
func (p *Process) Write(lines []byte) { _, _ = p.stdin.Write(lines) }

// Lines returns the program's output, a channel that is closed at its end.
func (p *Process) Lines() <-chan Line { return p.lines }

// Ended returns a channel that is closed when the program has ended.
func (p *Process) Ended() <-chan struct{} { return p.ended }

// Noted returns a channel that gets something when there are new lines on standard error.
func (p *Process) Noted() <-chan struct{} { return p.stderr.noted }

// TakeLog returns what the program wrote to standard error since the last call, by lines.
func (p *Process) TakeLog() []string { return p.stderr.take() }

// Said phrases the last line on standard error for an error.
func (p *Process) Said() string { return p.stderr.said() }

// readLines passes on the lines of the output up to its end.
func (p *Process) readLines() {
	defer close(p.lines)
	s := bufio.NewScanner(p.stdout)
	s.Buffer(nil, MaxLine)
	s.Split(wholeLines)
	n := 0
	for s.Scan() {
		n++
		p.lines <- Line{Number: n, Text: bytes.TrimSpace(bytes.Clone(s.Bytes()))}
	}
	if errors.Is(s.Err(), bufio.ErrTooLong) {
		p.lines <- Line{Number: n + 1, Err: fmt.Errorf("longer than %d bytes", MaxLine)}
		killGroup(p.cmd)
	}
}

// wholeLines is bufio.ScanLines without an unterminated last line: the program died while
// writing it.
func wholeLines(data []byte, atEOF bool) (advance int, token []byte, err error) {
	if i := bytes.IndexByte(data, '\n'); i >= 0 {
		return i + 1, data[:i:i], nil // not nil, or a Scanner would wait for more
	}
	if atEOF {
		return len(data), nil, nil
	}
	return 0, nil, nil
}

// State says how the process ended.
func (p *Process) State() string {
	if p.cmd.ProcessState == nil {
		return "unknown"
	}
	return p.cmd.ProcessState.String()
}

// Stop ends the process: it closes its input, waits for grace, then kills the rest of its
// group. left is the first unexpected line of output, or nil. It may be called repeatedly.
func (p *Process) Stop(grace time.Duration) (left *Line) {
	_ = p.stdin.Close()
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		for l := range p.lines { // the reader may be blocked on sending a line
			if left == nil && (len(l.Text) > 0 || l.Err != nil) {
				left = &l
			}
		}
	}()
	select {
	case <-p.ended:
	case <-time.After(grace):
		killGroup(p.cmd)
	}
	select {
	case <-drained:
	case <-time.After(time.Second): // a child that left the group holds the other end
		_ = p.stdout.Close()
		<-drained
	}
	<-p.ended
	return left
}

// Excerpt returns the beginning of a line, for errors.
func Excerpt(b []byte) string {
	const most = 120
	s := strings.ToValidUTF8(string(b), "\uFFFD")
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + "…"
	}
	return s
}

// lineLog collects lines of standard error. In a flood it keeps the first ones and counts
// the rest. It is safe for concurrent use.
type lineLog struct {
	noted   chan struct{} // of 1; nil: nobody wants to know
	mu      sync.Mutex
	lines   []string
	dropped int
	partial []byte
	last    string
}

// maxLogLines bounds the lines kept between two calls of take, maxLogLine the bytes of a
// line.
const (
	maxLogLines = 100
	maxLogLine  = 4096
)

func (g *lineLog) Write(b []byte) (int, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	n := len(b)
	for len(b) > 0 {
		line, rest, whole := bytes.Cut(b, []byte("\n"))
		if room := maxLogLine - len(g.partial); room > 0 {
			g.partial = append(g.partial, line[:min(room, len(line))]...)
		}
		if whole {
			g.add()
		}
		b = rest
	}
	return n, nil
}

// add ends the current line.
func (g *lineLog) add() {
	text := strings.TrimRight(strings.ToValidUTF8(string(g.partial), "\uFFFD"), " \r")
	g.partial = g.partial[:0]
	switch {
	case text == "":
	case len(g.lines) < maxLogLines:
		g.lines = append(g.lines, text)
		g.last = text
	default:
		g.dropped++
		g.last = text
	}
	if text != "" {
		select {
		case g.noted <- struct{}{}:
		default:
		}
	}
}

// take returns the lines since the last call.
func (g *lineLog) take() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	out := g.lines
	if g.dropped > 0 {
		out = append(out, fmt.Sprintf("(%d more lines)", g.dropped))
	}
	g.lines, g.dropped = nil, 0
	return out
}

// said phrases the last line for an error.
func (g *lineLog) said() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.partial) > 0 {
		g.add()
	}
	if g.last == "" {
		return ""
	}
	return "; it said: " + Excerpt([]byte(g.last))
}
