package program

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"
)

// PoolOptions configure a Pool.
type PoolOptions struct {
	Argv     []string
	Workers  int           // processes
	Each     int           // requests of a process at once
	Limit    time.Duration // longest time for an answer, or without a word
	LimitKey string        // of the configuration, for errors
	Retries  int           // of a request whose process ended or fell silent
	// Deaths is how often processes that never answered may end or fall silent while no request is answered. Further
	// tries of a request count only with others in the same process. Then the program does not work, and all requests
	// fail. 0: any number.
	Deaths  int
	Noun    string // what a request is called, for errors: "call"
	Example string // of an answer, for errors
	// Log receives lines on standard error that came together, and how often processes were started again, and why.
	Log func(text string)
}

// Pool keeps copies of a program running and asks each one up to Each things at a time. A copy starts when it is
// needed. Safe for concurrent use.
type Pool struct {
	o     PoolOptions
	slots slots

	mu     sync.Mutex      // also of Log
	again  int             // processes that were started instead of one that ended or fell silent
	deaths int             // with several requests, since the last answer
	fatal  map[string]bool // by id, requests in which a process died, since the last answer
	broken error           // too many of both; nil
}

// NewPool prepares a pool. Close it afterwards.
func NewPool(o PoolOptions) *Pool {
	if len(o.Argv) == 0 || o.Workers < 1 || o.Each < 1 || o.Limit <= 0 {
		panic("program: pool without program, workers, requests or limit")
	}
	p := &Pool{o: o, slots: slots{each: o.Each}, fatal: map[string]bool{}}
	for range o.Workers {
		p.slots.all = append(p.slots.all, &slot{})
	}
	return p
}

// Silence says that a process ended or gave no answer in time, in every try.
type Silence struct{ text string }

func (s *Silence) Error() string { return s.text }

// Try starts the program once and returns an error if it ends within a while: a program that works waits for
// requests.
func (p *Pool) Try(while time.Duration) error {
	q, err := Start(p.o.Argv)
	if err != nil {
		return err
	}
	select {
	case <-q.Ended():
		err = fmt.Errorf("it ended (%s) before any %s%s", q.State(), p.o.Noun, q.Said())
	case <-time.After(while):
	}
	q.Stop(0)
	return err
}

// Request is something to ask a program.
type Request struct {
	ID    string                 // that the answer repeats; no two requests of a pool have the same
	Name  string                 // for errors: "the call with id 7"
	Begin func() ([]byte, error) // returns the line to write, for every try
	Read  func(l Line) error     // reads the answer
	// Idle returns for how long the program has not been heard of otherwise; nil: since it was asked.
	Idle func() time.Duration
}

// Ask sends a request to a process and reads its answer. The error is ctx's, Begin's, Read's, a *Silence, or says
// why the program does not start or what else it said.
//
// A process that ends takes all its requests with it, and each has used up a try, since nobody knows which one did
// it. The last try has a process for itself, unless it is the first: then a fatal request harms no others. A process
// is also ended when a request is over its limit or its ctx ends, which costs the others no try.
func (p *Pool) Ask(ctx context.Context, r Request) error {
	for try := 0; ; {
		err := p.once(ctx, &r, try > 0 && try == p.o.Retries)
		var quiet *Silence
		switch {
		case errors.Is(err, errStopped):
		case !errors.As(err, &quiet):
			return err
		case try == p.o.Retries:
			return cmp.Or(p.fault(), err)
		default:
			try++
		}
	}
}

// once asks once. It returns errStopped if the process was stopped because of another request.
func (p *Pool) once(ctx context.Context, r *Request, alone bool) error {
	s, err := p.slots.take(ctx, alone)
	if err != nil {
		return err
	}
	defer p.slots.give(s)
	x, err := p.running(s)
	if err != nil {
		return err
	}
	line, err := r.Begin()
	if err != nil {
		return err
	}
	answer := x.ask(r, line)
	if answer == nil {
		return errStopped
	}
	limit := time.NewTimer(p.o.Limit)
	defer limit.Stop()
	for {
		select {
		case <-ctx.Done():
			x.end(0)
			return ctx.Err()
		case <-limit.C:
			if r.Idle != nil {
				if left := p.o.Limit - r.Idle(); left > 0 {
					limit.Reset(left)
					continue
				}
			}
			x.end(0)
			why := fmt.Errorf("it gave no answer within %v (%s)", p.o.Limit, p.o.LimitKey)
			x.ends(why)
			quiet := &Silence{why.Error() + x.q.Said()}
			x.died(r.ID, quiet)
			return quiet
		case t := <-answer:
			if t.err != nil {
				return t.err
			}
			return r.Read(t.line)
		}
	}
}

// running returns the process of a slot, a fresh one if none runs.
func (p *Pool) running(s *slot) (*exchange, error) {
	if err := p.fault(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.x != nil && !s.x.isOver() {
		return s.x, nil
	}
	if s.x != nil {
		<-s.x.done
		if err := s.x.takeStray(); err != nil {
			return nil, err
		}
	}
	x, err := newExchange(p)
	if err != nil {
		return nil, err
	}
	if s.x != nil {
		p.restarted(s.x.ended())
	}
	s.x = x
	return x, nil
}

// Times returns "once", "twice", "3 times".
func Times(n int) string {
	switch n {
	case 1:
		return "once"
	case 2:
		return "twice"
	}
	return fmt.Sprintf("%d times", n)
}

// restarted counts a process that was started instead of another, and tells it for the 1st, 2nd, 4th, 8th … one. why
// is nil if nothing was wrong with that one.
func (p *Pool) restarted(why error) {
	if why == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.again++
	if n := p.again; n&(n-1) == 0 && p.o.Log != nil {
		p.o.Log(fmt.Sprintf("started again %s; the last time %v", Times(n), why))
	}
}

// died counts a process that ended or fell silent in the request with an id, or in several if it is empty.
func (p *Pool) died(id string, why error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if id == "" {
		p.deaths++
	} else {
		p.fatal[id] = true
	}
	if n := p.deaths + len(p.fatal); p.o.Deaths > 0 && n >= p.o.Deaths && p.broken == nil {
		p.broken = fmt.Errorf("it died or fell silent %d times, further tries not counted, and no %s ended in "+
			"between; the last time %v", n, p.o.Noun, why)
	}
}

// lives notes an answer.
func (p *Pool) lives() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.deaths = 0
	clear(p.fatal)
}

// fault returns why no request can be answered; nil if they can.
func (p *Pool) fault() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.broken
}

// say passes on what a process wrote to standard error.
func (p *Pool) say(q *Process) {
	lines := q.TakeLog()
	if len(lines) == 0 || p.o.Log == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.o.Log(text(lines))
}

// maxText bounds the bytes of a text of standard error.
const maxText = 4000

// text joins lines and leaves out the middle of many.
func text(lines []string) string {
	s := strings.Join(lines, "\n")
	if len(s) <= maxText {
		return s
	}
	head, tail := s[:maxText/4], s[len(s)-3*maxText/4:] // a traceback ends with its error
	return strings.ToValidUTF8(head, "") + " … " + strings.ToValidUTF8(tail, "")
}

// closeGrace is how long a program may keep running after its input or output has ended.
const closeGrace = 5 * time.Second

// Close ends the processes. No request may be under way.
func (p *Pool) Close() error {
	var all sync.WaitGroup
	for _, s := range p.slots.all {
		if s.x != nil {
			all.Go(func() { s.x.end(closeGrace) })
		}
	}
	all.Wait()
	return nil
}
