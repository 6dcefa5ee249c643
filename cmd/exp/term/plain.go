package term

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"time"

	"exp/experiments/quantity"
)

const (
	plainEvery     = 10 * time.Second // between two step lines
	plainShare     = 10               // and a tenth of the stage
	heartbeatAfter = 60 * time.Second // of silence
	plainTime      = "15:04:05"
)

// plain shows progress as lines for a log file: where a stage starts and ends,
// in between a line when both 10 s and a tenth of the stage have gone by, and
// after a minute of silence a sign of life. Lines are a time and key=value
// pairs; values with spaces are quoted. It writes no carriage returns.
type plain struct {
	mu     sync.Mutex
	w      io.Writer
	clock  Clock
	stop   func()
	closed bool

	run      string
	stage    Stage
	inStage  bool
	step     int
	shown    int       // step of the last step line
	shownAt  time.Time // when that was, or when the stage started
	lastLine time.Time // zero: nothing runs
	started  time.Time
	progress pace
}

// newPlain returns a plain display on w. Close it.
func newPlain(w io.Writer, c Clock) *plain {
	p := &plain{w: w, clock: c}
	p.stop = c.Every(time.Second, p.tick)
	return p
}

// RunStart prints which run starts.
func (p *plain) RunStart(r Run) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.run = r.ID
	fields := []string{"start", pair("seed", strconv.FormatInt(r.Seed, 10))}
	if r.Of > 0 {
		fields = append(fields, pair("n", fmt.Sprintf("%d/%d", r.Index, r.Of)))
	}
	p.print(fields...)
}

// StageStart prints which stage starts.
func (p *plain) StageStart(st Stage) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.clock.Now()
	p.stage, p.inStage, p.started = st, true, now
	p.step, p.shown, p.shownAt = st.From, st.From, now
	p.progress.start(now, st.From)
	fields := []string{"start"}
	if st.Total > 0 {
		fields = append(fields, pair(st.unit()+"s", strconv.Itoa(st.Total)))
	}
	if st.From > 0 {
		fields = append(fields, pair("from", strconv.Itoa(st.From)))
	}
	p.print(fields...)
}

// StagePhase prints nothing: a line is a finished step.
func (p *plain) StagePhase(Phase) {}

// StageProgress prints the step if it is time for a line.
func (p *plain) StageProgress(st Step) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.clock.Now()
	p.step = st.Step
	p.stage.learn(st)
	p.progress.observe(now, st.Step)
	if now.Sub(p.shownAt) < plainEvery || (st.Step-p.shown)*plainShare < p.stage.Total {
		return
	}
	p.shown, p.shownAt = st.Step, now
	fields := []string{p.position()}
	for _, m := range headline(st.Metrics) {
		fields = append(fields, pair(m.Name, quantity.Short(m.Value)))
	}
	p.print(append(fields, pair(p.stage.unit()+"_s", quantity.Short(p.progress.stepSeconds())))...)
}

// StageDone prints how the stage ended.
func (p *plain) StageDone(r Result) {
	p.mu.Lock()
	defer p.mu.Unlock()
	fields := []string{string(r.Status)}
	if r.From != "" {
		fields = append(fields, pair("from", r.From))
	}
	p.print(append(fields, ending(r.Facts, r.Wall)...)...)
	p.inStage = false
}

// StageCached prints a line.
func (p *plain) StageCached(st Stage, from string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stage, p.inStage = st, true
	p.print(string(Cached), pair("from", from))
	p.inStage = false
}

// RunDone prints how the run ended.
func (p *plain) RunDone(o Outcome) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.inStage = false
	p.print(append([]string{string(o.Status)}, ending(o.Facts, o.Wall)...)...)
	p.run, p.lastLine = "", time.Time{}
}

// Note prints a line.
func (p *plain) Note(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.print(pair("note", text))
}

// Warn prints a warning.
func (p *plain) Warn(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.print(pair("warning", text))
}

// Close ends the heartbeat.
func (p *plain) Close() {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return
	}
	p.closed = true
	p.mu.Unlock()
	p.stop()
}

// tick prints the sign of life.
func (p *plain) tick() {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.clock.Now()
	if p.lastLine.IsZero() || now.Sub(p.lastLine) < heartbeatAfter {
		return
	}
	fields := []string{"running"}
	if p.inStage {
		fields = append(fields, p.position(), pair("elapsed", quantity.Duration(now.Sub(p.started))))
	}
	p.print(fields...)
}

// position is "step=62/100", or "step=62" where the total is not known.
func (p *plain) position() string {
	at := strconv.Itoa(p.step)
	if p.stage.Total > 0 {
		at += "/" + strconv.Itoa(p.stage.Total)
	}
	return pair(p.stage.unit(), at)
}

// print writes one line: time, run, stage, fields.
func (p *plain) print(fields ...string) {
	if p.closed {
		return
	}
	now := p.clock.Now()
	parts := []string{now.Format(plainTime)}
	if p.run != "" {
		parts = append(parts, pair("run", p.run))
		p.lastLine = now
	}
	if p.inStage {
		parts = append(parts, pair("stage", p.stage.Kind))
		if p.stage.Label != "" {
			parts = append(parts, pair("label", p.stage.Label))
		}
	}
	_, _ = io.WriteString(p.w, strings.Join(append(parts, fields...), " ")+"\n")
}

func ending(facts []Fact, wall time.Duration) []string {
	var fields []string
	for _, f := range facts {
		name := f.Name
		if name == "" {
			name = "note"
		}
		fields = append(fields, pair(name, f.Text))
	}
	return append(fields, pair("wall", quantity.Duration(wall)))
}

// pair is key=value; a value that would break the line into other words is
// quoted as in Go.
func pair(key, value string) string {
	value = CleanLines(value)
	if value == "" || strings.ContainsAny(value, " \n\"=") {
		value = strconv.Quote(value)
	}
	return strings.ReplaceAll(Clean(key), " ", "_") + "=" + value
}
