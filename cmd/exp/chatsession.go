package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"

	"exp/cmd/exp/cli"
	"exp/cmd/exp/term"
	"exp/experiments/quantity"
	"exp/harness/endpoint"
)

// chatSession is a conversation at a terminal, or through a pipe. Answers and what commands show go to stdout, all
// else to stderr.
type chatSession struct {
	*app
	ctx      context.Context
	talk     *endpoint.Conversation
	model    askedModel
	images   []endpoint.Image // for the next question
	person   bool             // stdin is a terminal
	lines    <-chan string
	ctrlC    ctrlC
	problems *endpoint.Problems // nil: not read yet
	problem  int                // place of the one asked last, from 1
}

func newChatSession(a *app, ctx context.Context, x askedModel, talk *endpoint.Conversation) *chatSession {
	talk.Sampling.Scored, talk.Sampling.Top = true, topShown
	return &chatSession{app: a, ctx: ctx, talk: talk, model: x, person: a.Stream(asWriter(a.Stdin)).TTY,
		ctrlC: ctrlC{idle: make(chan struct{}, 1)}}
}

// ctrlC turns Ctrl-C into the end of the current answer. A second Ctrl-C ends the program unless the user has typed a
// line since the first.
type ctrlC struct {
	mu    sync.Mutex
	again bool          // the next one ends the program
	stop  func()        // of an answer; nil: none is going on
	idle  chan struct{} // told of one with nothing to stop
}

// take takes a signal, unless it ends the program.
func (c *ctrlC) take(sig os.Signal) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if sig != os.Interrupt || c.again {
		return false
	}
	c.again = true
	if c.stop != nil {
		c.stop()
		return true
	}
	select {
	case c.idle <- struct{}{}:
	default:
	}
	return true
}

// set sets what the next one stops.
func (c *ctrlC) set(stop func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stop = stop
}

// typed notes that a line has come.
func (c *ctrlC) typed() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.again = false
}

// errChatEnds ends a session.
var errChatEnds = errors.New("the conversation ends")

// run talks until the input or the user ends it.
func (s *chatSession) run() error {
	lines := make(chan string)
	go readLines(s.Stdin, lines)
	s.lines = lines
	s.OnSignal(s.ctrlC.take)
	defer s.OnSignal(nil)
	if s.model.Chats() {
		s.Note("%s, %d tokens of conversation; /help lists commands, Ctrl-D ends", s.model.name, s.model.Context())
	} else {
		s.Note("%s continues each line as a text by itself: it has no chat template, or its run used none. /help "+
			"lists commands, Ctrl-D ends", s.model.name)
	}
	for {
		text, err := s.message()
		if err == nil {
			err = s.say(text)
		}
		switch {
		case errors.Is(err, errChatEnds), s.ctx.Err() != nil:
			return nil
		case err != nil && !s.person:
			return err
		case err != nil:
			s.complain(err)
		}
	}
}

// readLines passes the lines of r on, and closes lines at the end.
func readLines(r io.Reader, lines chan<- string) {
	defer close(lines)
	in := bufio.NewReader(r)
	for {
		line, err := in.ReadString('\n')
		if line != "" {
			lines <- strings.TrimRight(line, "\r\n")
		}
		if err != nil {
			return // a terminal that is gone is an end too
		}
	}
}

// line asks for a line. again is true after Ctrl-C, which takes back what was typed before.
func (s *chatSession) line(prompt string) (text string, again bool, err error) {
	if s.person {
		fmt.Fprint(s.Stderr, prompt)
	}
	select {
	case text, ok := <-s.lines:
		if !ok {
			if s.person {
				fmt.Fprintln(s.Stderr)
			}
			return "", false, errChatEnds
		}
		s.ctrlC.typed()
		return text, false, nil
	case <-s.ctrlC.idle:
		if s.person {
			fmt.Fprintln(s.Stderr)
		}
		s.Note("Ctrl-C again ends, and so does Ctrl-D")
		return "", true, nil
	case <-s.ctx.Done():
		if s.person {
			fmt.Fprintln(s.Stderr)
		}
		return "", false, errChatEnds
	}
}

// Marks of the input.
const (
	blockMark = `"""`
	goesOn    = `\`
)

// message reads a message: a line, lines that end with a backslash and the one after them, or a block. It is empty if
// there is nothing to say.
func (s *chatSession) message() (string, error) {
	text, again, err := s.line("> ")
	if err != nil || again {
		return "", err
	}
	var parts []string
	if block, ok := strings.CutPrefix(text, blockMark); ok {
		for text = block; !strings.HasSuffix(text, blockMark); {
			parts = append(parts, text)
			if text, again, err = s.line(`" `); errors.Is(err, errChatEnds) && s.ctx.Err() == nil {
				return "", s.Usagef("the input ends within a text that begins with %s", blockMark)
			}
			if err != nil || again {
				return "", err
			}
		}
		parts = append(parts, strings.TrimSuffix(text, blockMark))
		return strings.Trim(strings.Join(parts, "\n"), "\n"), nil
	}
	for strings.HasSuffix(text, goesOn) {
		parts = append(parts, strings.TrimSuffix(text, goesOn))
		text, again, err = s.line(". ")
		if errors.Is(err, errChatEnds) && s.ctx.Err() == nil {
			break // the next call tells
		}
		if err != nil || again {
			return "", err
		}
	}
	return strings.Join(append(parts, text), "\n"), nil
}

// say executes a command or asks a question.
func (s *chatSession) say(text string) error {
	name, literal := strings.CutPrefix(text, "//")
	switch {
	case strings.TrimSpace(text) == "":
		return nil
	case literal:
		text = "/" + name
	case strings.HasPrefix(text, "/"):
		return s.command(text)
	}
	_, err := s.answer(func(ctx context.Context, show func(string) error) (endpoint.Answer, error) {
		a, err := s.talk.Ask(ctx, text, show, s.images...)
		if err == nil {
			s.images = nil
		}
		return a, err
	})
	return err
}

// asking brings an answer, and shows it while it comes.
type asking func(ctx context.Context, show func(text string) error) (endpoint.Answer, error)

// answer shows the answer that ask brings, until Ctrl-C; whole is true if it came to its end.
func (s *chatSession) answer(ask asking) (whole bool, err error) {
	begun := s.Clock.Now()
	text := s.newAnswerText()
	var answer endpoint.Answer
	err = s.untilStopped(func(ctx context.Context) (err error) {
		answer, err = ask(ctx, text.write)
		return err
	})
	if text.begun {
		err = errors.Join(err, text.end())
	}
	if errors.Is(err, context.Canceled) && s.ctx.Err() == nil {
		s.Note("stopped before the first token; Ctrl-C again ends")
		return false, nil
	}
	if err != nil {
		return false, chatFailure(err, s.model.Chats())
	}
	end := ""
	switch {
	case answer.Finish == endpoint.Interrupted:
		end = "stopped; Ctrl-C again ends. "
	case answer.Finish == "length":
		end = "cut at the limit. "
	case answer.Text == "":
		end = "an empty answer. "
	}
	rate := ""
	if t := s.Clock.Now().Sub(begun).Seconds(); t > leastTimed {
		rate = fmt.Sprintf(", %.1f tokens/s", float64(answer.New)/t)
	}
	s.Note("%s%s, seed %d%s", end, quantity.Plural(answer.New, "token"), answer.Seed, rate)
	return answer.Finish != endpoint.Interrupted, nil
}

// leastTimed is the shortest time in seconds from which a speed is told.
const leastTimed = 0.1

// untilStopped calls do with a context that Ctrl-C ends.
func (s *chatSession) untilStopped(do func(ctx context.Context) error) error {
	ctx, cancel := context.WithCancel(s.ctx)
	defer cancel()
	s.ctrlC.set(cancel)
	defer s.ctrlC.set(nil)
	return do(ctx)
}

// complain prints an error that does not end the session.
func (s *chatSession) complain(err error) {
	color := s.Stream(s.Stderr).Color
	fmt.Fprintf(s.Stderr, "%s %s\n", term.Bad.Paint("error:", color), term.CleanLines(err.Error()))
	var f *cli.Failure
	if errors.As(err, &f) && f.Help != "" {
		fmt.Fprintf(s.Stderr, "  %s\n", term.CleanLines(f.Help))
	}
}
