package program

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// PoolOptions configure a Pool.
type PoolOptions struct {
	Argv     []string
	Workers  int           // processes, each with one request at a time
	Limit    time.Duration // longest time for an answer, or without a word
	LimitKey string        // of the configuration, for errors
	Retries  int           // of a request whose process ended or fell silent
	Log      func(line string)
}

// Pool keeps copies of a program running and asks each one thing at a time. A copy starts when it is needed. Safe
// for concurrent use.
type Pool struct {
	o    PoolOptions
	idle chan *Process // nil entries are started when they are needed
	mu   sync.Mutex    // of Log
}

// NewPool prepares a pool. Close it afterwards.
func NewPool(o PoolOptions) *Pool {
	if len(o.Argv) == 0 || o.Workers < 1 || o.Limit <= 0 {
		panic("program: pool without program, workers or limit")
	}
	p := &Pool{o: o, idle: make(chan *Process, o.Workers)}
	for range o.Workers {
		p.idle <- nil
	}
	return p
}

// Silence says that a process ended or gave no answer in time, in every try.
type Silence struct{ text string }

func (s *Silence) Error() string { return s.text }

// Try starts the program once and returns an error if it ends within a while: a program that works waits for
// requests, which name says what they are called.
func (p *Pool) Try(while time.Duration, name string) error {
	q, err := Start(p.o.Argv)
	if err != nil {
		return err
	}
	select {
	case <-q.Ended():
		err = fmt.Errorf("it ended (%s) before any %s%s", q.State(), name, q.Said())
	case <-time.After(while):
	}
	q.Stop(0)
	return err
}

// Request is something to ask a program.
type Request struct {
	Begin func() []byte      // returns the line to write, for every try
	Read  func(l Line) error // reads the answer
	// Idle returns for how long the program has not been heard of otherwise; nil: since it was asked.
	Idle func() time.Duration
}

// Ask writes a request to an idle process and reads its answer from the first line of output that is not empty. The
// error is ctx's, Read's, a *Silence, or says why the program does not start. After an error the process is ended.
func (p *Pool) Ask(ctx context.Context, r Request) error {
	var process *Process
	select {
	case process = <-p.idle:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { p.idle <- process }()
	for try := 0; ; try++ {
		if process == nil {
			var err error
			if process, err = Start(p.o.Argv); err != nil {
				process = nil
				return err
			}
		}
		err := p.exchange(ctx, process, r)
		p.say(process)
		if err == nil {
			return nil
		}
		process.Stop(0)
		process = nil
		var quiet *Silence
		if !errors.As(err, &quiet) || try == p.o.Retries {
			return err
		}
	}
}

// say passes on what a process wrote to standard error.
func (p *Pool) say(q *Process) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, line := range q.TakeLog() {
		if p.o.Log != nil {
			p.o.Log(line)
		}
	}
}

// exchange sends a request and waits for its answer.
func (p *Pool) exchange(ctx context.Context, q *Process, r Request) error {
	go q.Write(r.Begin())
	limit := time.NewTimer(p.o.Limit)
	defer limit.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-limit.C:
			if r.Idle != nil {
				if left := p.o.Limit - r.Idle(); left > 0 {
					limit.Reset(left)
					continue
				}
			}
			return &Silence{fmt.Sprintf("it gave no answer within %v (%s)%s", p.o.Limit, p.o.LimitKey, q.Said())}
		case l, ok := <-q.Lines():
			switch {
			case !ok:
				<-q.Ended()
				return &Silence{fmt.Sprintf("it ended (%s) before it answered%s", q.State(), q.Said())}
			case l.Err != nil:
				return fmt.Errorf("line %d of its output: %w", l.Number, l.Err)
			case len(l.Text) == 0:
				continue
			}
			return r.Read(l)
		}
	}
}

// closeGrace is how long a program may keep running after its input has ended.
const closeGrace = 5 * time.Second

// Close ends the processes. No request may be under way.
func (p *Pool) Close() error {
	for range p.o.Workers {
		if q := <-p.idle; q != nil {
			q.Stop(closeGrace)
			p.say(q)
		}
	}
	return nil
}
