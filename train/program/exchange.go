package program

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

// exchange is a process that is asked several things at once: requests have ids, which their answers repeat. The
// process ends, and with it the exchange, when it says something that answers no request.
type exchange struct {
	p    *Pool
	q    *Process
	stop chan time.Duration // of 1; ends the process after a grace
	done chan struct{}      // closed when it has ended and all requests know

	mu       sync.Mutex
	writes   sync.WaitGroup
	open     map[string]*asked
	answered map[string]bool // by id
	over     bool            // it takes no requests
	stray    error           // a line that came when no request was open; nil: none, or one was told
	why      error           // why it ended; nil: it runs, or was stopped for no fault
}

// asked is a request that waits for its answer.
type asked struct {
	name string
	told chan told // of 1
}

// told is an answer, or why none comes: a *Silence for a process that ended, errStopped for one that was stopped,
// another error for one that said something else.
type told struct {
	line Line
	err  error
}

// errStopped says that the process was stopped because of another request.
var errStopped = errors.New("the process was stopped")

// newExchange starts a process.
func newExchange(p *Pool) (*exchange, error) {
	q, err := Start(p.o.Argv)
	if err != nil {
		return nil, err
	}
	x := &exchange{p: p, q: q, stop: make(chan time.Duration, 1), done: make(chan struct{}), open: map[string]*asked{},
		answered: map[string]bool{}}
	go x.run()
	return x, nil
}

// ask sends a request; nil if the process takes none.
func (x *exchange) ask(r *Request, line []byte) <-chan told {
	a := &asked{name: r.Name, told: make(chan told, 1)}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.over {
		return nil
	}
	x.open[r.ID] = a
	x.writes.Go(func() { x.q.Write(line) })
	return a.told
}

// end ends the process and waits until it has ended.
func (x *exchange) end(grace time.Duration) {
	select {
	case x.stop <- grace:
	default: // it is stopped already
	}
	<-x.done
}

// gather is how long standard error is collected from its first line on: a traceback is one text.
const gather = 300 * time.Millisecond

// endGrace is how long a program may go on after the end of its output.
const endGrace = time.Second

// run passes on what the process says until it ends.
func (x *exchange) run() {
	defer close(x.done)
	var burst <-chan time.Time
	for {
		select {
		case l, ok := <-x.q.Lines():
			if !ok {
				x.finish(nil, endGrace)
				return
			}
			if err := x.hear(l); err != nil {
				x.finish(err, 0)
				return
			}
		case grace := <-x.stop:
			x.finish(errStopped, grace)
			return
		case <-x.q.Noted():
			if burst == nil {
				burst = time.After(gather)
			}
		case <-burst:
			burst = nil
			x.p.say(x.q)
		}
	}
}

// hear passes a line on to the request that it answers. The error says that it answers none.
func (x *exchange) hear(l Line) error {
	if l.Err != nil {
		return fmt.Errorf("line %d of its output: %w", l.Number, l.Err)
	}
	if len(l.Text) == 0 {
		return nil
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	var to struct {
		ID *string `json:"id"`
	}
	what, o := "", &x.p.o
	if err := json.Unmarshal(l.Text, &to); err != nil {
		what = "is not JSON such as " + o.Example + "; everything else belongs on standard error"
	} else if to.ID == nil {
		what = "has no id"
	} else if a := x.open[*to.ID]; a != nil {
		delete(x.open, *to.ID)
		x.answered[*to.ID] = true
		x.p.lives()
		a.told <- told{line: l}
		return nil
	} else if x.answered[*to.ID] {
		what = fmt.Sprintf("answers the %s with id %s again", o.Noun, *to.ID)
	} else {
		what = fmt.Sprintf("has another id, %q", *to.ID)
	}
	return fmt.Errorf("line %d of its output %s, while %s: %s", l.Number, what, x.waiting(), Excerpt(l.Text))
}

// waiting names the requests that are open.
func (x *exchange) waiting() string {
	const most = 5
	ids := slices.SortedFunc(maps.Keys(x.open), func(a, b string) int {
		if len(a) != len(b) {
			return len(a) - len(b) // numbers rise
		}
		return strings.Compare(a, b)
	})
	switch n, noun := len(ids), x.p.o.Noun; {
	case n == 0:
		return "no " + noun + " is open"
	case n == 1:
		return x.open[ids[0]].name + " is open"
	case n > most:
		return fmt.Sprintf("%d %ss are open, with ids %s and %d more", n, noun, strings.Join(ids[:most], ", "), n-most)
	default:
		return fmt.Sprintf("%d %ss are open, with ids %s", n, noun, strings.Join(ids, ", "))
	}
}

// finish ends the process and tells the open requests why; nil: it ended by itself, or closed its output.
func (x *exchange) finish(why error, grace time.Duration) {
	x.mu.Lock()
	x.over = true
	x.mu.Unlock()
	state := "it closed its output"
	if why == nil {
		select {
		case <-x.q.Ended():
			state = fmt.Sprintf("it ended (%s)", x.q.State())
		case <-time.After(grace):
		case <-x.stop:
		}
		grace = 0
	}
	x.q.Stop(grace)
	x.writes.Wait()
	said := x.q.Said() // also a line without an end
	x.p.say(x.q)

	x.mu.Lock()
	defer x.mu.Unlock()
	if n := len(x.open); why == nil && n > 0 {
		when := "before it answered"
		if n > 1 {
			when = fmt.Sprintf("while %d %ss were open", n, x.p.o.Noun)
		}
		why = &Silence{fmt.Sprintf("%s %s%s", state, when, said)}
		x.why = fmt.Errorf("%s %s", state, when) // the log has what it said
		id := ""
		if n == 1 {
			id = slices.Collect(maps.Keys(x.open))[0]
		}
		x.died(id, why)
	}
	if len(x.open) == 0 && why != errStopped {
		x.stray = why
	}
	if why == nil {
		x.why = fmt.Errorf("%s after its last answer", state)
	}
	for _, a := range x.open {
		a.told <- told{err: why}
	}
}

// ends notes why the process ends.
func (x *exchange) ends(why error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.why = why
}

// ended returns why the process ended; nil if for no fault.
func (x *exchange) ended() error {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.why
}

// died counts the end of a process for a request or, if id is empty, several. A process that has answered works: an
// accident that ends many of them is not the program's fault.
func (x *exchange) died(id string, why error) {
	if len(x.answered) == 0 {
		x.p.died(id, why)
	}
}

// isOver reports whether the process takes no requests.
func (x *exchange) isOver() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.over
}

// takeStray returns what the process said when nothing was open, once.
func (x *exchange) takeStray() error {
	x.mu.Lock()
	defer x.mu.Unlock()
	err := x.stray
	x.stray = nil
	return err
}
