package launch

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// LostError says that a rank ended before its run did.
type LostError struct {
	Rank  int // -1: unknown
	Card  Card
	Cause string // "was killed by signal 9"
	Last  Card   // of the first rank
	Ranks int
}

func (e *LostError) Error() string {
	who := "a rank"
	if e.Rank >= 0 {
		who = e.Card.String()
	}
	text := who + " " + e.Cause
	if e.Rank >= 0 {
		text += e.Card.where()
	}
	if e.Card.Error != "" {
		text += ": " + e.Card.Error
	}
	return text + e.Last.kept()
}

// Hint says how to go on.
func (e *LostError) Hint() string {
	if e.Card.known() && e.Card.Help != "" {
		return e.Card.Help + "; then " + e.Last.again(e.Ranks)
	}
	return e.Last.again(e.Ranks)
}

// Broken reports that the ranks cannot exchange anything again.
func (e *LostError) Broken() bool { return true }

// exitLost is the exit code of a job that lost a rank. Batch systems start such a job again.
const exitLost = 10

// ExitCode returns the code of the rank's own error if it left one, else a lost rank's.
func (e *LostError) ExitCode() int {
	if e.Card.known() {
		return e.Card.Code
	}
	return exitLost
}

// known reports whether the rank's error has an exit code of its own.
func (c Card) known() bool { return c.Code > 1 && c.Code != exitLost }

// lost says what ended the job: a rank that a signal killed, as the launcher says, and that others may have
// failed for; a rank that wrote why; or the one that was missed first.
func (j Job) lost(missed int, status error, stderr string) error {
	e := &LostError{Rank: missed, Cause: "ended without a word", Ranks: j.Ranks}
	e.Last, _ = readCard(j.Dir, 0)
	var failed Card // others may fail because of a rank with an error of its own
	for r := range j.Ranks {
		if c, ok := readCard(j.Dir, r); ok && c.Error != "" && (failed.Error == "" || c.known() && !failed.known()) {
			e.Rank, e.Cause, failed = r, "failed", c
		}
	}
	rank, signal, killed := named(stderr)
	if c, ok := readCard(j.Dir, rank); killed && (failed.Error == "" || ok && c.Error == "") {
		if rank >= 0 {
			e.Rank = rank
		}
		e.Cause = fmt.Sprintf("was killed by signal %d", signal)
	}
	if e.Rank >= 0 {
		e.Card, _ = readCard(j.Dir, e.Rank)
	}
	if _, started := readCard(j.Dir, 0); !started && status != nil {
		return &StartError{Launcher: j.Launcher.Path, Text: status.Error()}
	}
	return e
}

// kept says which checkpoint a run keeps; c is the first rank's card.
func (c Card) kept() string {
	if c.Checkpoint == 0 {
		return ""
	}
	return fmt.Sprintf("; last checkpoint: step %d", c.Checkpoint)
}

// again says how to go on after a job of n ranks.
func (c Card) again(n int) string {
	if c.Run.IsZero() {
		return "run the command again"
	}
	return fmt.Sprintf("exp resume %s --ranks %d; its bits do not depend on the number of ranks", c.Run.Short(), n)
}

// HungError says that ranks did not answer in time.
type HungError struct {
	Hung    []Card
	Timeout time.Duration
	Last    Card // of the first rank
	Ranks   int
}

func newHungError(dir string, list []int, n int, timeout time.Duration) *HungError {
	e := &HungError{Timeout: timeout, Ranks: n}
	e.Last, _ = readCard(dir, 0)
	for _, r := range list {
		c, _ := readCard(dir, r)
		c.Rank = r
		e.Hung = append(e.Hung, c)
	}
	return e
}

// hungIn returns the error of a job whose ranks have waited too long. It names the awaited ranks
// that do not wait themselves, or all awaited ranks if every one waits.
func hungIn(dir string, n int, timeout time.Duration) *HungError {
	var awaited, idle []int
	for r := range n {
		c, _ := readCard(dir, r)
		awaited = append(awaited, c.WaitsFor...)
		if c.WaitsFor != nil {
			idle = append(idle, r)
		}
	}
	slices.Sort(awaited)
	awaited = slices.Compact(awaited)
	hung := slices.DeleteFunc(slices.Clone(awaited), func(r int) bool { return slices.Contains(idle, r) })
	if len(hung) == 0 {
		hung = awaited
	}
	return newHungError(dir, hung, n, timeout)
}

func (e *HungError) Error() string {
	var list []string
	for _, c := range e.Hung {
		list = append(list, c.String()+" hangs"+c.where())
	}
	return fmt.Sprintf("%s: no answer for %v%s", strings.Join(list, ", "), e.Timeout, e.Last.kept())
}

// Broken reports that the ranks cannot exchange anything again.
func (e *HungError) Broken() bool { return true }

// Hint says how to go on.
func (e *HungError) Hint() string {
	hint := e.Last.again(e.Ranks)
	if !e.Last.Run.IsZero() {
		hint += "; --rank-timeout 2h waits longer"
	}
	return hint
}

// ExitCode is the code of a lost rank.
func (e *HungError) ExitCode() int { return exitLost }
