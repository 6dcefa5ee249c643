package term

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// manualClock is a clock that moves when told to and runs due timers on the
// way, in steps of 10 ms.
type manualClock struct {
	now    time.Time
	timers []*timer
}

type timer struct {
	every time.Duration
	next  time.Time
	f     func()
}

func newClock() *manualClock { return &manualClock{now: epoch} }

func (c *manualClock) clock() Clock {
	return Clock{
		Now: func() time.Time { return c.now },
		Every: func(d time.Duration, f func()) func() {
			t := &timer{d, c.now.Add(d), f}
			c.timers = append(c.timers, t)
			return func() { t.f = func() {} }
		},
	}
}

func (c *manualClock) advance(d time.Duration) {
	for end := c.now.Add(d); c.now.Before(end); {
		c.now = c.now.Add(10 * time.Millisecond)
		for _, t := range c.timers {
			if !c.now.Before(t.next) {
				t.next = c.now.Add(t.every)
				t.f()
			}
		}
	}
}

func terminal(width *int) Stream {
	return Stream{TTY: true, Unicode: true}.Sized(func() (int, int) { return *width, 24 })
}

func headlineAt(step int) []Metric {
	x := float64(step) / 100
	return []Metric{
		{"reward", 0.1 + 0.5*x}, {"entropy", 2 - 0.7*x}, {"len", 4 + x}, {"logZ", 0.48 * x},
	}
}

// trainSome plays a run of two stages into p.
func trainSome(c *manualClock, p Progress, each func(step int)) {
	p.RunStart(Run{ID: "5e8d10b4", Seed: 0, Index: 1, Of: 2})
	p.StageStart(Stage{Kind: "prepare"})
	p.StageDone(Result{Status: Cached, From: "91ac33f0"})
	p.StageStart(Stage{Kind: "train", Total: 100})
	for step := 1; step <= 100; step++ {
		c.advance(160 * time.Millisecond)
		p.StageProgress(Step{Step: step, Metrics: headlineAt(step)})
		each(step)
	}
	p.StageDone(Result{
		Status: Done, Wall: 16300 * time.Millisecond,
		Facts: []Fact{{"steps", "100", true}, {"chain", "0f9e44aa", false}},
	})
	p.StageStart(Stage{Kind: "eval.score", Label: "test"})
	p.StageDone(Result{
		Status: Done, Wall: 2 * time.Second,
		Facts: []Fact{{"pass@1", "0.641 ±0.041", false}, {"pass@16", "0.953 ±0.036", false}},
	})
	p.RunDone(Outcome{Status: Done, Wall: 18 * time.Second})
	p.Close()
}

// TestLiveScreens shows the terminal as a person sees it in the middle and at
// the end of a run, on terminals of several widths.
func TestLiveScreens(t *testing.T) {
	var out strings.Builder
	for _, width := range []int{140, 100, 80, 50, 30, 12} {
		c, s := newClock(), newScreen(t, width, 24, true)
		p := newLive(s, terminal(&width), c.clock())
		trainSome(c, p, func(step int) {
			if step == 2 || step == 81 {
				fmt.Fprintf(&out, "-- %d columns, step %d\n%s\n", width, step, s.text())
			}
		})
		if width == 140 || width == 50 {
			fmt.Fprintf(&out, "-- %d columns, end\n%s\n", width, s.text())
		}
	}
	golden(t, "live_screens", out.String())
}

// TestLiveEndsFit checks that no line of a run's end is wider than the terminal, where each of its facts has room, and
// that nothing gets lost.
func TestLiveEndsFit(t *testing.T) {
	facts := []Fact{{"", "test@start", false}, {"pass@16", "0.953 ±0.036", false}, {"steps", "100", true}}
	for width := 41; width < 120; width++ {
		st := Stage{Kind: "eval.score", Label: "math500@start"}
		r := Result{Status: Done, Wall: 2 * time.Second, From: "91ac33f0", Facts: facts}
		o := Outcome{Status: Failed, Wall: time.Minute, Facts: facts}
		for _, lines := range [][]line{resultLines(st, r, width), outcomeLines(o, width)} {
			var all strings.Builder
			for _, l := range lines {
				if l.width() > width-1 {
					t.Errorf("%d columns: a line of %d: %q", width, l.width(), l.paint(false))
				}
				all.WriteString(l.paint(false))
			}
			for _, want := range []string{"test@start", "pass@16 0.953 ±0.036", "100 steps"} {
				if !strings.Contains(all.String(), want) {
					t.Errorf("%d columns: no %q in %q", width, want, all.String())
				}
			}
			if last := lines[len(lines)-1]; last.width() != min(width-1, wallColumn) && last.width() < wallColumn {
				t.Errorf("%d columns: the wall time ends at %d", width, last.width())
			}
			if width > 104 && len(lines) > 1 {
				t.Errorf("%d columns: %d lines", width, len(lines))
			}
		}
	}
}

// TestLivePhases shows what long steps are at, on tall and on short terminals, and says nothing of short ones.
func TestLivePhases(t *testing.T) {
	var out strings.Builder
	for _, height := range []int{24, 5, 4, 3} {
		c, s := newClock(), newScreen(t, 80, 24, true)
		p := newLive(s, Stream{TTY: true, Unicode: true}.Sized(func() (int, int) { return 80, height }), c.clock())
		p.StageStart(Stage{Kind: "train", Total: 100})
		show := func(what string) { fmt.Fprintf(&out, "-- %d lines, %s\n%s\n", height, what, s.text()) }
		phase := func(after time.Duration, x Phase) {
			p.StagePhase(x)
			c.advance(after)
		}
		phase(time.Second, Phase{Work: "sampling", Done: 1, Total: 64, Unit: "completions"})
		show("after a second")
		phase(1500*time.Millisecond, Phase{Work: "sampling", Done: 3, Total: 64, Unit: "completions"})
		show("after two and a half")
		phase(time.Second, Phase{Work: "updating the policy"})
		show("in the next phase")
		p.StageProgress(Step{Step: 1, Metrics: append(headlineAt(1), headlineAt(2)...)})
		c.advance(time.Second)
		show("in the second step, before its first phase")
		phase(200*time.Millisecond, Phase{Work: "sampling", Done: 2, Total: 64, Unit: "completions"})
		show("in a step after a long one")
		for step := 2; step < 5; step++ {
			p.StageProgress(Step{Step: step, Metrics: headlineAt(step)})
			phase(500*time.Millisecond, Phase{Work: "sampling", Total: 64, Unit: "completions"})
		}
		show("when steps have become short")
		phase(time.Second, Phase{})
		p.Close()
	}
	golden(t, "live_phases", out.String())
}

// TestLiveBytes freezes the exact bytes of a short run.
func TestLiveBytes(t *testing.T) {
	width := 80
	c, buf := newClock(), &bytes.Buffer{}
	s := terminal(&width)
	s.Color = true
	p := newLive(buf, s, c.clock())
	p.RunStart(Run{ID: "5e8d10b4", Seed: 3})
	p.StageStart(Stage{Kind: "sft", Total: 4, From: 1})
	for step := 2; step <= 3; step++ {
		c.advance(time.Second)
		p.StageProgress(Step{Step: step, Metrics: []Metric{{"loss", math.NaN()}}})
	}
	p.Warn("loss is NaN at step 3")
	p.Note("saved a checkpoint")
	c.advance(200 * time.Millisecond)
	p.StageDone(Result{Status: Failed, Wall: 2200 * time.Millisecond})
	p.RunDone(Outcome{Status: Failed, Facts: []Fact{{"", "loss is not finite", false}}})
	p.Close()
	golden(t, "live_bytes", strings.ReplaceAll(strings.ReplaceAll(buf.String(), "\x1b", "␛"), "\r", "␍"))
}

const permanent = `[1/2] run 5e8d10b4 (seed 0)
  prepare     cached  (from 91ac33f0)                               0.0s
  train       done    100 steps  chain 0f9e44aa                    16.3s
  eval.score  done    test  pass@1 0.641 ±0.041  pass@16 0.953 ±0.036  2.0s`

// TestLiveSurvivesResize changes the width at random times, on a terminal that
// re-wraps its lines and on one that cuts them: exactly the permanent lines remain.
func TestLiveSurvivesResize(t *testing.T) {
	for seed := range uint64(50) {
		rng := rand.New(rand.NewPCG(seed, 0))
		c, width := newClock(), 100
		s := newScreen(t, width, 12, true)
		p := newLive(s, terminal(&width), c.clock())
		trainSome(c, p, func(step int) {
			if rng.IntN(10) == 0 {
				width = 20 + rng.IntN(120)
				s.resize(width)
			}
			if step == 100 {
				width = 100
				s.resize(width)
			}
		})
		if diff := cmp.Diff(permanent, s.text()); diff != "" {
			t.Fatalf("seed %d (-want +got):\n%s", seed, diff)
		}
	}
}

func TestLiveSurvivesCuttingTerminal(t *testing.T) {
	c, width := newClock(), 100
	s := newScreen(t, width, 12, false)
	p := newLive(s, terminal(&width), c.clock())
	trainSome(c, p, func(step int) {
		if step == 50 {
			width = 73 // the permanent lines up to here still fit
			s.resize(width)
		}
		if step == 70 {
			width = 100
			s.resize(width)
		}
	})
	if diff := cmp.Diff(permanent, s.text()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestLiveSharesTheTerminal lets another program write whole lines between the
// redraws: each of them stays whole, and nothing of the block is left.
func TestLiveSharesTheTerminal(t *testing.T) {
	c, width := newClock(), 100
	s := newScreen(t, width, 12, true)
	p := newLive(s, terminal(&width), c.clock())
	foreign := 0
	trainSome(c, p, func(step int) {
		if step%9 == 0 {
			foreign++
			fmt.Fprintf(s, "log %d\r\n", step)
		}
	})
	var kept []string
	logs := 0
	for line := range strings.SplitSeq(s.text(), "\n") {
		if strings.HasPrefix(line, "log ") {
			logs++
			continue
		}
		kept = append(kept, line)
	}
	if diff := cmp.Diff(permanent, strings.Join(kept, "\n")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if logs != foreign {
		t.Errorf("%d of %d foreign lines are left", logs, foreign)
	}
}

// TestLiveIsRareAndSmall counts what a burst of fast steps writes.
func TestLiveIsRareAndSmall(t *testing.T) {
	c, width := newClock(), 100
	w := &countingWriter{}
	p := newLive(w, terminal(&width), c.clock())
	p.StageStart(Stage{Kind: "train", Total: 3000})
	for step := range 3000 { // 300 steps a second for 10 s
		if step%3 == 0 {
			c.advance(10 * time.Millisecond)
		}
		p.StageProgress(Step{Step: step + 1, Metrics: headlineAt(step)})
	}
	p.Close()
	if w.writes > 10*10+2 { // 10 Hz, the first and the last
		t.Errorf("%d writes in 10 s, want at most 10 a second", w.writes)
	}
	if w.lines > maxBlock-1 {
		t.Errorf("a redraw of %d lines, want at most %d", w.lines, maxBlock-1)
	}
}

type countingWriter struct{ writes, lines int }

func (w *countingWriter) Write(p []byte) (int, error) {
	w.writes++
	w.lines = max(w.lines, bytes.Count(p, []byte("\n")))
	return len(p), nil
}

// TestLiveMovesWhileAStepIsLong: elapsed time and forecast go on without events.
func TestLiveMovesWhileAStepIsLong(t *testing.T) {
	c, width := newClock(), 80
	s := newScreen(t, width, 24, true)
	p := newLive(s, terminal(&width), c.clock())
	defer p.Close()
	p.StageStart(Stage{Kind: "train", Total: 10})
	for step := 1; step <= 4; step++ {
		c.advance(30 * time.Second)
		p.StageProgress(Step{Step: step})
	}
	if want := "eta 3m00s"; !strings.Contains(s.text(), want) { // 6 steps of 30 s
		t.Errorf("screen %q lacks %q", s.text(), want)
	}
	c.advance(10 * time.Second)
	if want := "eta 2m50s"; !strings.Contains(s.text(), want) {
		t.Errorf("10 s later: screen %q lacks %q", s.text(), want)
	}
}

// TestLiveConcurrently is for the race detector.
func TestLiveConcurrently(t *testing.T) {
	width := 80
	for _, kind := range []Kind{KindTTY, KindPlain, KindJSON, KindNone} {
		p := New(kind, io.Discard, terminal(&width), SystemClock(), env())
		p.RunStart(Run{ID: "5e8d10b4"})
		p.StageStart(Stage{Kind: "train", Total: 400})
		var wg sync.WaitGroup
		for g := range 4 {
			wg.Go(func() {
				for i := range 100 {
					p.StageProgress(Step{Step: 100*g + i, Metrics: headlineAt(i)})
					p.Note("x")
				}
			})
		}
		wg.Wait()
		p.Close()
		p.Close()
		p.Note("after the end")
	}
}

func TestNewChoosesKind(t *testing.T) {
	tests := []struct {
		name string
		kind Kind
		tty  bool
		env  []string
		want string
	}{
		{"terminal", KindAuto, true, nil, "*term.live"},
		{"unset is auto", "", true, nil, "*term.live"},
		{"pipe", KindAuto, false, nil, "*term.plain"},
		{"CI", KindAuto, true, []string{"CI", "true"}, "*term.plain"},
		{"dumb", KindAuto, true, []string{"TERM", "dumb"}, "*term.plain"},
		{"asked for", KindTTY, false, []string{"CI", "true"}, "*term.live"},
		{"json", KindJSON, true, nil, "*term.jsonLines"},
		{"none", KindNone, true, nil, "*term.warnings"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := New(tt.kind, io.Discard, Stream{TTY: tt.tty}, newClock().clock(), env(tt.env...))
			defer p.Close()
			if got := fmt.Sprintf("%T", p); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

// TestWarningsAlone: without progress there are still warnings.
func TestWarningsAlone(t *testing.T) {
	var out strings.Builder
	p := New(KindNone, &out, Stream{}, newClock().clock(), env())
	p.RunStart(Run{ID: "abc"})
	p.Note("a note")
	p.Warn("data.train: 1 row \x1b is left out")
	p.Close()
	if got := out.String(); strings.Count(got, "\n") != 1 || !strings.HasPrefix(got, "warning: data.train: 1 row ") {
		t.Errorf("%q", got)
	}
}

// TestLiveCached: cached stages that follow one another are one line, which comes
// with the next thing that happens.
func TestLiveCached(t *testing.T) {
	stages := func(l *live, from ...string) {
		for i, f := range from {
			l.StageCached(Stage{Kind: []string{"prepare", "init", "sft", "eval.gen", "eval.score"}[i], Label: []string{"", "", "", "test", "test"}[i]}, f)
		}
	}
	tests := []struct {
		name string
		show func(l *live)
		want string
	}{
		{"made by this run", func(l *live) { stages(l, "5e8d", "5e8d"); l.Note("next") }, "  cached      prepare, init\r\n  next\r\n"},
		{"by another", func(l *live) { stages(l, "91ac", "91ac"); l.Warn("next") }, "  cached      prepare, init (from 91ac)\r\n  warning: next\r\n"},
		{"by several", func(l *live) { stages(l, "91ac", "5e8d", "77f0", "91ac"); l.RunDone(Outcome{Status: Done}) }, "  cached      prepare, init, sft, eval.gen test (partly from 91ac, 77f0)\r\n"},
		{"all", func(l *live) { stages(l, "5e8d"); l.RunDone(Outcome{Status: Cached}) }, "  cached      prepare\r\n  done        nothing to execute\r\n"},
		{"then closed", func(l *live) { stages(l, "5e8d") }, "  cached      prepare\r\n"},
		{"wrapped", func(l *live) { stages(l, "5e8d", "5e8d", "5e8d", "5e8d", "5e8d"); l.Note("next") },
			"  cached      prepare, init, sft, eval.gen\r\n              test, eval.score test\r\n  next\r\n"},
		{"none", func(l *live) { l.Note("next") }, "  next\r\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c, buf := newClock(), &bytes.Buffer{}
			l := newLive(buf, Stream{TTY: true}.Sized(func() (int, int) { return map[bool]int{true: 44, false: 80}[tt.name == "wrapped"], 24 }), c.clock())
			l.RunStart(Run{ID: "5e8d"})
			start := buf.Len()
			tt.show(l)
			l.Close()
			if got := buf.String()[start:]; got != tt.want {
				t.Errorf("got  %q\nwant %q", got, tt.want)
			}
		})
	}
}

func TestWarningOfSeveralLines(t *testing.T) {
	const text = "agent a.py:\nTrace\x1bback\n  line 1"
	c, buf := newClock(), &bytes.Buffer{}
	l := newLive(buf, Stream{TTY: true}.Sized(func() (int, int) { return 80, 24 }), c.clock())
	l.Warn(text)
	l.Close()
	if got, want := buf.String(), "  warning: agent a.py:\r\n    Trace back\r\n      line 1\r\n"; got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	buf.Reset()
	(&warnings{w: buf}).Warn(text)
	if got, want := buf.String(), "warning: agent a.py:\n  Trace back\n    line 1\n"; got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}
