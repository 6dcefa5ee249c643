package reward

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"
)

// process is one running reward program.
type process struct {
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	stdout io.ReadCloser
	lines  chan outputLine // closed at the end of its output
	stderr *lineLog
	ended  chan struct{} // closed when it has ended
}

// outputLine is a line of the program's output, or the reason that the output ended.
type outputLine struct {
	number int // from 1
	text   []byte
	err    error
}

// maxAnswer is the longest line of output in bytes: an answer is a few numbers.
const maxAnswer = 1 << 20

// startProcess starts a program in its own process group.
func startProcess(argv []string) (*process, error) {
	cmd := exec.Command(argv[0], argv[1:]...)
	p := &process{cmd: cmd, stderr: &lineLog{}, lines: make(chan outputLine, 64), ended: make(chan struct{})}
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

// readLines passes on the lines of the output up to its end.
func (p *process) readLines() {
	defer close(p.lines)
	s := bufio.NewScanner(p.stdout)
	s.Buffer(nil, maxAnswer)
	s.Split(wholeLines)
	n := 0
	for s.Scan() {
		n++
		p.lines <- outputLine{number: n, text: bytes.TrimSpace(bytes.Clone(s.Bytes()))}
	}
	if errors.Is(s.Err(), bufio.ErrTooLong) {
		p.lines <- outputLine{number: n + 1, err: fmt.Errorf("longer than %d bytes", maxAnswer)}
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

// failure says why a process cannot answer: it ended or is silent. The rows may be retried.
type failure struct{ text string }

func (f *failure) Error() string { return f.text }

// answer is a line of output. ID is empty until a line arrives.
type answer struct {
	ID         string             `json:"id"`
	Score      *float64           `json:"score"`
	Components map[string]float64 `json:"components"`
	Error      string             `json:"error"`
}

// refusal begins the reason of a row that the program answered with an error.
const refusal = "the reward command: "

// Refused reports whether a completion has no score because the program said so, not because it
// failed.
func Refused(reason string) bool { return strings.HasPrefix(reason, refusal) }

func (a answer) score() Score {
	if a.Error != "" {
		return Score{Reason: refusal + a.Error}
	}
	return Score{Graded: true, Value: *a.Score, Parts: a.Components}
}

// exchange sends rows and waits for their answers, by index; rows without an answer have no
// ID. The error is a *failure, a *BrokenError or ctx's.
func (p *process) exchange(ctx context.Context, rows []row, o CommandOptions) ([]answer, error) {
	answers := make([]answer, len(rows))
	waiting := make(map[string]int, len(rows))
	var input bytes.Buffer
	enc := json.NewEncoder(&input)
	enc.SetEscapeHTML(false)
	for i, r := range rows {
		waiting[r.ID] = i
		if err := enc.Encode(r); err != nil {
			return answers, fmt.Errorf("problem %s: %w", r.Problem, err)
		}
	}
	written := make(chan struct{})
	go func() {
		defer close(written)
		_, _ = p.stdin.Write(input.Bytes()) // a broken pipe shows as the end of the output
	}()

	silence, whole := time.NewTimer(o.RowLimit), time.NewTimer(o.BatchLimit)
	defer silence.Stop()
	defer whole.Stop()
	fail := func(err error) ([]answer, error) {
		p.stop(0)
		<-written
		return answers, err
	}
	for len(waiting) > 0 {
		select {
		case <-ctx.Done():
			return fail(ctx.Err())
		case <-silence.C:
			return fail(&failure{fmt.Sprintf("the reward command gave no answer within %v (reward.row_limit)%s",
				o.RowLimit, p.stderr.said())})
		case <-whole.C:
			return fail(&failure{fmt.Sprintf("the reward command did not answer the batch within %v "+
				"(reward.batch_limit)%s", o.BatchLimit, p.stderr.said())})
		case l, ok := <-p.lines:
			if !ok {
				<-p.ended
				return fail(&failure{fmt.Sprintf("the reward command ended (%s) before it answered%s", p.state(),
					p.stderr.said())})
			}
			if len(l.text) == 0 && l.err == nil {
				continue
			}
			a, i, err := parseAnswer(l, waiting, rows, o)
			if err != nil {
				return fail(&BrokenError{What: "reward command " + o.Argv[0], Err: err,
					Help: "write answers to standard output, one per line, and everything else to standard error"})
			}
			answers[i] = a
			delete(waiting, a.ID)
			silence.Reset(o.RowLimit)
		}
	}
	<-written
	return answers, nil
}

// parseAnswer reads a line of output as the answer to a waiting row, and returns the row's
// index.
func parseAnswer(l outputLine, waiting map[string]int, rows []row, o CommandOptions) (answer, int, error) {
	bad := func(format string, args ...any) (answer, int, error) {
		return answer{}, 0, fmt.Errorf("line %d of its output: %s", l.number, fmt.Sprintf(format, args...))
	}
	if l.err != nil {
		return bad("%v", l.err)
	}
	var a answer
	if err := json.Unmarshal(l.text, &a); err != nil {
		first := firstWaiting(waiting, rows)
		return bad("not a JSON answer, while the row with id %s (problem %s) waits: %v: %s", first.ID, first.Problem,
			err, excerpt(l.text))
	}
	i, ok := waiting[a.ID]
	if !ok {
		return bad("%s", notWaiting(a.ID, rows, firstWaiting(waiting, rows)))
	}
	where := fmt.Sprintf("the row with id %s (problem %s)", a.ID, rows[i].Problem)
	switch {
	case a.Error != "":
		return a, i, nil
	case a.Score == nil:
		return bad(`%s has neither "score" nor "error": %s`, where, excerpt(l.text))
	}
	for _, name := range o.Parts {
		if _, ok := a.Components[name]; !ok {
			return bad("%s lacks the component %q of reward.components: %s", where, name, excerpt(l.text))
		}
	}
	return a, i, nil
}

// firstWaiting returns the first row without an answer.
func firstWaiting(waiting map[string]int, rows []row) row {
	for _, r := range rows {
		if _, ok := waiting[r.ID]; ok {
			return r
		}
	}
	return row{}
}

// notWaiting says why no row waits with this id.
func notWaiting(id string, rows []row, waits row) string {
	if id == "" {
		return fmt.Sprintf(`no "id" (a text), while the row with id %s waits`, waits.ID)
	}
	for _, r := range rows {
		if r.ID == id {
			return fmt.Sprintf("a second answer to the row with id %s (problem %s)", id, r.Problem)
		}
	}
	first, _ := strconv.ParseInt(rows[0].ID, 10, 64)
	if n, err := strconv.ParseInt(id, 10, 64); err == nil && n > 0 && n < first {
		return fmt.Sprintf("the id %s belongs to an earlier row, which has been answered", id)
	}
	return fmt.Sprintf("the id %q is unknown; the row with id %s waits", id, waits.ID)
}

// state says how the process ended.
func (p *process) state() string {
	if p.cmd.ProcessState == nil {
		return "unknown"
	}
	return p.cmd.ProcessState.String()
}

// stop ends the process: it closes its input, waits for grace, then kills the rest of its
// group. left is the first unexpected line of output, or nil. It may be called repeatedly.
func (p *process) stop(grace time.Duration) (left *outputLine) {
	_ = p.stdin.Close()
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		for l := range p.lines { // the reader may be blocked on sending a line
			if left == nil && (len(l.text) > 0 || l.err != nil) {
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

// excerpt returns the beginning of a line, for errors.
func excerpt(b []byte) string {
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
	return "; it said: " + excerpt([]byte(g.last))
}
