package term

import (
	"io"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	redrawEvery = 100 * time.Millisecond // the block is drawn at most this often
	idleRedraw  = time.Second            // so that elapsed and eta go on during a long step
)

// Escape sequences of ECMA-48 that every terminal knows.
const (
	eraseLine  = "\x1b[K" // from the cursor to the end of the line
	eraseBelow = "\x1b[J" // from the cursor to the end of the screen
)

// live shows progress on a terminal: lines that stay, and below them a block of at most
// five lines that is redrawn.
//
// The first line of the block is empty and the cursor rests on it. So a
// terminal that re-wraps its lines on a resize takes the cursor along and the
// block is still what lies below it; and a line that another program writes
// lands on the empty line and moves the cursor under itself, where the block is
// drawn next. Nothing above the cursor is ever touched.
//
// Every change is one write.
type live struct {
	mu     sync.Mutex
	w      io.Writer
	s      Stream
	clock  Clock
	stop   func()
	closed bool

	active   bool // a stage runs
	shown    bool // the block is on the screen
	stale    bool // the block shows an old state
	drawn    time.Time
	stage    Stage
	step     Step
	phase    Phase
	started  time.Time
	progress pace
	history  trend

	run    string        // short id of the run
	cached []cachedStage // to be told in one line
}

// newLive returns a live display on w. Close it.
func newLive(w io.Writer, s Stream, c Clock) *live {
	l := &live{w: w, s: s, clock: c}
	l.stop = c.Every(redrawEvery, l.tick)
	return l
}

// RunStart prints a line that names the run.
func (l *live) RunStart(r Run) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.run = r.ID
	l.print(runLine(r))
}

// StageStart shows the block.
func (l *live) StageStart(st Stage) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tellCached()
	now := l.clock.Now()
	l.active, l.stage, l.started = true, st, now
	l.step, l.phase = Step{Step: st.From}, Phase{}
	l.history = trend{}
	l.progress.start(now, st.From)
	l.refresh(now)
}

// StageProgress brings the block up to date, at once or with the next redraw.
func (l *live) StageProgress(st Step) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.clock.Now()
	l.step, l.phase = st, Phase{}
	l.stage.learn(st)
	l.progress.observe(now, st.Step)
	if len(st.Metrics) > 0 {
		l.history.add(st.Metrics[0])
	}
	l.refresh(now)
}

// StagePhase shows what a long step is at, with the next redraw.
func (l *live) StagePhase(p Phase) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.phase = p
	l.stale = l.stale || l.progress.long(l.clock.Now())
}

// StageDone replaces the block by a line that stays.
func (l *live) StageDone(r Result) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.active = false
	for _, ln := range resultLines(l.stage, r, l.s.Width()) {
		l.print(ln)
	}
}

// StageCached remembers the stage: consecutive ones share one line, printed before the
// next line.
func (l *live) StageCached(st Stage, from string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cached = append(l.cached, cachedStage{st, from})
}

func (l *live) tellCached() {
	for _, ln := range cachedLines(l.cached, l.run, l.s.Width()) {
		l.print(ln)
	}
	l.cached = nil
}

// RunDone prints a line only if the stages have not said everything: unless the run is
// done and has no facts.
func (l *live) RunDone(o Outcome) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.active = false
	l.tellCached()
	if o.Status == Done && len(o.Facts) == 0 {
		l.erase()
		return
	}
	for _, ln := range outcomeLines(o, l.s.Width()) {
		l.print(ln)
	}
}

// Note prints a line above the block.
func (l *live) Note(text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tellCached()
	l.print(line{{indent + Clean(text), Plain}})
}

// Warn prints a warning above the block, its further lines indented.
func (l *live) Warn(text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tellCached()
	before := indent + "warning: "
	for s := range strings.SplitSeq(CleanLines(text), "\n") {
		l.print(line{{before + s, Warn}})
		before = indent + indent
	}
}

// Close takes the block off the screen.
func (l *live) Close() {
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return
	}
	l.active = false
	l.tellCached()
	l.erase()
	l.closed = true
	l.mu.Unlock()
	l.stop() // outside the lock, which a running tick may be waiting for
}

// tick runs every redrawEvery.
func (l *live) tick() {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.clock.Now()
	if l.active && (l.stale || now.Sub(l.drawn) >= idleRedraw) {
		l.refresh(now)
	}
}

// refresh draws the block unless it was drawn just now; then tick will.
func (l *live) refresh(now time.Time) {
	if !l.active || l.closed {
		return
	}
	if !l.drawn.IsZero() && now.Sub(l.drawn) < redrawEvery {
		l.stale = true
		return
	}
	l.drawn, l.stale, l.shown = now, false, true
	l.write(l.block(now))
}

// block returns what draws the block from the cursor's line down and brings the
// cursor back. Each line erases its own rest instead of all lines being erased
// first, which would flicker.
func (l *live) block(now time.Time) string {
	v := view{
		stage: l.stage, step: l.step, phase: l.phase, pace: &l.progress, trend: &l.history,
		elapsed: now.Sub(l.started), now: now,
	}
	width, height := l.s.dims()
	lines := v.lines(width, min(maxBlock-1, height-2), l.s)

	var out strings.Builder
	out.WriteString("\r")
	for _, text := range lines {
		out.WriteString(eraseLine + "\r\n" + text)
	}
	out.WriteString(eraseBelow)
	if n := len(lines); n > 0 {
		out.WriteString("\x1b[" + strconv.Itoa(n) + "A")
	}
	out.WriteString("\r")
	return out.String()
}

// print writes a line that stays where the block was; the block follows with
// the next redraw.
func (l *live) print(ln line) {
	if l.closed {
		return
	}
	prefix := ""
	if l.shown {
		prefix = "\r" + eraseBelow
		l.shown, l.stale = false, true
	}
	l.write(prefix + ln.paint(l.s.Color) + "\r\n")
	l.refresh(l.clock.Now())
}

func (l *live) erase() {
	if l.shown && !l.closed {
		l.write("\r" + eraseBelow)
	}
	l.shown, l.stale = false, false
}

// write ignores errors: the terminal may be gone; the run continues.
func (l *live) write(s string) {
	_, _ = io.WriteString(l.w, s)
}
