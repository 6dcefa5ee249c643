package term

import (
	"bytes"
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"
)

func TestPlainRun(t *testing.T) {
	c, buf := newClock(), &bytes.Buffer{}
	trainSome(c, newPlain(buf, c.clock()), func(int) {})
	if strings.ContainsAny(buf.String(), "\r\x1b") {
		t.Error("plain lines hold a carriage return or an escape")
	}
	golden(t, "plain_run", buf.String())
}

// TestPlainIsRare: whichever of 10 s and a tenth is rarer, and a sign of life
// after a minute without a line.
func TestPlainIsRare(t *testing.T) {
	tests := []struct {
		name  string
		total int
		step  time.Duration // per step
		steps int
		want  int // step lines
		alive int // heartbeats
	}{
		{"a tenth is rarer", 100, 20 * time.Second, 100, 10, 30},  // a line each 200 s: heartbeats at 60, 120, 180 s
		{"10 s is rarer", 100, 160 * time.Millisecond, 100, 1, 0}, // 16 s in all
		{"unknown total", 0, time.Second, 35, 3, 0},
		{"one long step", 1, 150 * time.Second, 1, 1, 2},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c, buf := newClock(), &bytes.Buffer{}
			p := newPlain(buf, c.clock())
			p.RunStart(Run{ID: "5e8d10b4"})
			p.StageStart(Stage{Kind: "train", Total: tt.total})
			for step := 1; step <= tt.steps; step++ {
				c.advance(tt.step)
				p.StageProgress(Step{Step: step})
			}
			if got := strings.Count(buf.String(), "step_s="); got != tt.want {
				t.Errorf("%d step lines, want %d:\n%s", got, tt.want, buf.String())
			}
			if got := strings.Count(buf.String(), " running "); got != tt.alive {
				t.Errorf("%d signs of life, want %d:\n%s", got, tt.alive, buf.String())
			}
			p.RunDone(Outcome{Status: Done})
			n := buf.Len()
			c.advance(5 * time.Minute)
			if buf.Len() != n {
				t.Errorf("a line after the end of the run: %s", buf.String()[n:])
			}
			p.Close()
		})
	}
}

func TestPlainQuotes(t *testing.T) {
	c, buf := newClock(), &bytes.Buffer{}
	p := newPlain(buf, c.clock())
	p.Warn("two\nlines and a \"quote\"")
	p.Note("x")
	p.Close()
	p.Note("after the end")
	want := "12:04:11 warning=\"two\\nlines and a \\\"quote\\\"\"\n12:04:11 note=x\n"
	if buf.String() != want {
		t.Errorf("got  %q\nwant %q", buf.String(), want)
	}
}

func TestJSONLinesRun(t *testing.T) {
	c, buf := newClock(), &bytes.Buffer{}
	p := newJSONLines(buf, c.clock())
	p.RunStart(Run{ID: "5e8d10b4", Seed: 0, Index: 1, Of: 2})
	p.StageStart(Stage{Kind: "train", Total: 100, From: 10})
	c.advance(1500 * time.Millisecond)
	p.StageProgress(Step{Step: 12, Metrics: []Metric{{"reward", 0.1}, {"actor/kl", math.NaN()}, {"loss", math.Inf(-1)}, {"lr", 1e-6}}})
	p.Warn("1 < 2 & \"so\"")
	p.StageDone(Result{Status: Stopped, Facts: []Fact{{"steps", "12", true}}, Wall: 1500 * time.Millisecond})
	p.StageStart(Stage{Kind: "eval.gen", Label: "test", Unit: "completion"})
	p.StageDone(Result{Status: Cached, From: "91ac33f0"})
	p.RunDone(Outcome{Status: Stopped, Wall: 2 * time.Second})
	p.Close()
	p.Note("after the end")
	golden(t, "json_run", buf.String())
	for line := range strings.Lines(buf.String()) {
		if !json.Valid([]byte(line)) {
			t.Errorf("not JSON: %s", line)
		}
	}
}

// TestLinesCached: one line for each stage, with its name.
func TestLinesCached(t *testing.T) {
	c, buf := newClock(), &bytes.Buffer{}
	p := newPlain(buf, c.clock())
	p.RunStart(Run{ID: "5e8d"})
	p.StageCached(Stage{Kind: "eval.gen", Label: "test"}, "91ac")
	p.Close()
	want := "12:04:11 run=5e8d start seed=0\n12:04:11 run=5e8d stage=eval.gen label=test cached from=91ac\n"
	if buf.String() != want {
		t.Errorf("got  %q\nwant %q", buf.String(), want)
	}
	buf.Reset()
	j := newJSONLines(buf, c.clock())
	j.RunStart(Run{ID: "5e8d"})
	start := buf.Len()
	j.StageCached(Stage{Kind: "sft"}, "91ac")
	j.Note("next")
	for _, text := range []string{`"stage":"sft"`, `"event":"stage_end"`, `"status":"cached"`, `"from_run":"91ac"`} {
		if line, _, _ := strings.Cut(buf.String()[start:], "\n"); !strings.Contains(line, text) {
			t.Errorf("%s lacks %s", line, text)
		}
	}
	if strings.Contains(buf.String()[strings.LastIndex(buf.String(), "note"):], "sft") {
		t.Errorf("the stage continues: %s", buf)
	}
}

// Paragraphs and entries are joined before they are wrapped; examples keep their lines.
func TestReflow(t *testing.T) {
	text := `key
  what it is, in a few words
  type     one of a, b
  default  a

  A paragraph that was broken
  for a width of thirty columns,
  not of forty.

  word     an entry that was broken
           for that width
  another  entry

    {"an": "example"}
    {"of": "two lines"}
      below: it
`
	want := `key
  what it is, in a few words
  type     one of a, b
  default  a

  A paragraph that was broken for a
  width of thirty columns, not of forty.

  word     an entry that was broken for
           that width
  another  entry

    {"an": "example"}
    {"of": "two lines"}
      below: it
`
	if got := strings.Join(Reflow(text, 40), "\n"); got != want {
		t.Errorf("got:\n%s", got)
	}
}

// A stage that finds out its number of steps while it runs shows it from then on; a number that it began with stays.
func TestTotalsFoundLate(t *testing.T) {
	for _, tt := range []struct {
		stage Stage
		of    int
		want  string
	}{
		{Stage{Kind: "eval.gen", Unit: "completion"}, 40, "completion=20/40"},
		{Stage{Kind: "eval.gen"}, 0, "step=20 "},
		{Stage{Kind: "train", Total: 100}, 7, "step=20/100"},
	} {
		c, buf := newClock(), &bytes.Buffer{}
		p := newPlain(buf, c.clock())
		p.StageStart(tt.stage)
		c.advance(20 * time.Second)
		p.StageProgress(Step{Step: 20, Of: tt.of})
		p.Close()
		if !strings.Contains(buf.String(), tt.want) {
			t.Errorf("%+v: %s, want %s", tt.stage, buf.String(), tt.want)
		}
	}
	buf := &bytes.Buffer{}
	j := newJSONLines(buf, newClock().clock())
	j.StageStart(Stage{Kind: "eval.gen"})
	j.StageProgress(Step{Step: 20, Of: 40})
	j.Close()
	if !strings.Contains(buf.String(), `"of":40`) {
		t.Errorf("JSON lines: %s", buf.String())
	}
	c, width := newClock(), 80
	s := newScreen(t, width, 24, true)
	l := newLive(s, terminal(&width), c.clock())
	defer l.Close()
	l.StageStart(Stage{Kind: "eval.gen"})
	for step := 1; step <= 4; step++ {
		c.advance(30 * time.Second)
		l.StageProgress(Step{Step: step, Of: 10})
	}
	if got := s.text(); !strings.Contains(got, " 4/10") || !strings.Contains(got, "eta 3m00s") { // 6 steps of 30 s
		t.Errorf("screen %q", got)
	}
}
