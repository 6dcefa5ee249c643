// Package ranks joins the processes that compute one run: each is a rank. It moves data
// between them and sums the gradients of a mini-batch's slices in an order that does not
// depend on the number of ranks. Package train computes with a Group and never asks which
// transport carries it.
//
// A Group does not survive a lost rank: every later Exchange may fail, and the run continues
// from its last checkpoint.
package ranks

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"exp/kernels"
)

// Group is the ranks of a run. All ranks make the same calls in the same order, from one
// goroutine at a time.
type Group interface {
	// Rank returns the number of this rank, from 0.
	Rank() int
	// Size returns the number of ranks.
	Size() int
	// Exchange sends and receives all parts at once and returns when all are done. Messages
	// of one tag between two ranks arrive in the order of their sending.
	Exchange(parts []Part) error
}

// Part is one message of an Exchange: memory that the host can read and write, or, with a Link,
// device memory.
type Part struct {
	Data kernels.Buffer
	Peer int
	Tag  int
	Send bool
}

// Link carries messages of device memory, after the work that the device has queued. Ranks call
// Exchange as they call a Group's.
type Link interface {
	Exchange(parts []Part) error
}

// Linked is a Group whose ranks compute on devices of their own: Link carries messages of
// device memory, the Group messages of host memory.
type Linked struct {
	Group
	Link Link
}

// Exchange implements Group.
func (l Linked) Exchange(parts []Part) error {
	var device, host []Part
	for _, p := range parts {
		if p.Data.IsHost() {
			host = append(host, p)
		} else {
			device = append(device, p)
		}
	}
	if len(device) > 0 {
		if err := l.Link.Exchange(device); err != nil {
			return err
		}
	}
	return l.Group.Exchange(host)
}

// Alone is the only rank of a run.
type Alone struct{}

// Rank implements Group.
func (Alone) Rank() int { return 0 }

// Size implements Group.
func (Alone) Size() int { return 1 }

// Exchange implements Group: a single rank has nobody to talk to.
func (Alone) Exchange(parts []Part) error {
	if len(parts) > 0 {
		panic("ranks: a rank alone exchanges nothing")
	}
	return nil
}

// LateError says that an exchange took longer than its transport allows.
type LateError struct {
	Peers []int // ranks whose messages are missing, or that do not take this rank's
	Limit time.Duration
}

func (e *LateError) Error() string {
	return fmt.Sprintf("waited %v for ranks %s", e.Limit, strings.Trim(fmt.Sprint(e.Peers), "[]"))
}

// Broken reports that the ranks cannot exchange anything again.
func (e *LateError) Broken() bool { return true }

// IsBroken reports whether an exchange failed, with an error of this package or another one with a method Broken:
// messages may be under way, so that the next exchange could take one for its own.
func IsBroken(err error) bool {
	var e interface{ Broken() bool }
	return errors.As(err, &e) && e.Broken()
}

// Error says that an exchange failed: another rank is lost, or the transport.
type Error struct{ Err error }

// Broken reports that the ranks cannot exchange anything again.
func (e *Error) Broken() bool { return true }

func (e *Error) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Must panics with an *Error if err is not nil. Code that computes between exchanges calls
// it, as a device's failure is a panic too; Recover turns the panic into an error.
func Must(err error) {
	if err != nil {
		panic(&Error{err})
	}
}

// Recover, deferred, sets err to the *Error that its function panicked with.
func Recover(err *error) {
	switch p := recover().(type) {
	case nil:
	case *Error:
		*err = p
	default:
		panic(p)
	}
}

// Share returns every rank's bytes, by rank.
func Share(g Group, mine []byte) ([][]byte, error) {
	all := make([][]byte, g.Size())
	all[g.Rank()] = mine
	if g.Size() == 1 {
		return all, nil
	}
	lengths := make([]int32, 2*g.Size()) // low and high words
	lengths[2*g.Rank()], lengths[2*g.Rank()+1] = int32(uint32(len(mine))), int32(len(mine)>>32)
	ends := make([]int, g.Size())
	for r := range ends {
		ends[r] = 2 * (r + 1)
	}
	if err := Gather(g, kernels.Host(lengths), ends); err != nil {
		return nil, err
	}
	var parts []Part
	packed := words(len(mine))
	copy(bytesOf(packed), mine)
	for r := range all {
		if r == g.Rank() {
			continue
		}
		if len(mine) > 0 {
			parts = append(parts, Part{Data: packed, Peer: r, Send: true})
		}
		n := int(uint32(lengths[2*r])) | int(lengths[2*r+1])<<32
		if n == 0 {
			continue
		}
		b := words(n)
		all[r] = bytesOf(b)[:n]
		parts = append(parts, Part{Data: b, Peer: r})
	}
	return all, g.Exchange(parts)
}

// words returns memory of the host for n bytes.
func words(n int) kernels.Buffer { return kernels.Host(make([]int32, (n+3)/4)) }

// Gather completes x on every rank: rank r has elements ends[r-1] to ends[r].
func Gather(g Group, x kernels.Buffer, ends []int) error {
	lo, hi := bounds(ends, g.Rank())
	var parts []Part
	for r := range g.Size() {
		if r == g.Rank() {
			continue
		}
		if lo < hi {
			parts = append(parts, Part{Data: x.Slice(lo, hi), Peer: r, Send: true})
		}
		if from, to := bounds(ends, r); from < to {
			parts = append(parts, Part{Data: x.Slice(from, to), Peer: r})
		}
	}
	return g.Exchange(parts)
}

// bounds returns the part of rank r.
func bounds(ends []int, r int) (lo, hi int) {
	if r > 0 {
		lo = ends[r-1]
	}
	return lo, ends[r]
}

// Shards cuts n elements for size ranks: it returns the end of each rank's shard. Shards
// are whole blocks of the norm's sum; the last ones may be empty.
func Shards(n, size int) []int {
	each := (n + size - 1) / size
	each = (each + kernels.SumBlock - 1) / kernels.SumBlock * kernels.SumBlock
	ends := make([]int, size)
	for r := range ends {
		ends[r] = min(n, (r+1)*each)
	}
	return ends
}

// RemoteError is the error of another rank, with the exit code and the advice that it has there.
type RemoteError struct {
	Rank int    `json:"-"`
	Text string `json:"text"`
	Code int    `json:"code,omitempty"`
	Help string `json:"help,omitempty"`
}

func (e *RemoteError) Error() string { return fmt.Sprintf("rank %d: %s", e.Rank, e.Text) }

// ExitCode is the other rank's, or 1 if its error has none.
func (e *RemoteError) ExitCode() int { return max(1, e.Code) }

// Hint is the other rank's advice.
func (e *RemoteError) Hint() string { return e.Help }

// remoteOf returns an error as other ranks get it.
func remoteOf(err error) RemoteError {
	e := RemoteError{Text: err.Error()}
	var coder interface{ ExitCode() int }
	if errors.As(err, &coder) {
		e.Code = coder.ExitCode()
	}
	var adviser interface{ Hint() string }
	if errors.As(err, &adviser) {
		e.Help = adviser.Hint()
	}
	return e
}

// Agree returns an error on every rank if any rank has one: its own, or a *RemoteError of the
// first rank that failed.
func Agree(g Group, mine error) error {
	if g.Size() == 1 {
		return mine
	}
	var failure []byte
	if mine != nil {
		var err error
		if failure, err = json.Marshal(remoteOf(mine)); err != nil {
			panic("ranks: " + err.Error()) // strings and an integer
		}
	}
	all, err := Share(g, failure)
	if mine != nil || err != nil {
		if mine != nil {
			return mine
		}
		return err
	}
	for r, b := range all {
		if len(b) > 0 {
			e := &RemoteError{Rank: r}
			if err := json.Unmarshal(b, e); err != nil {
				return fmt.Errorf("rank %d: %w", r, err)
			}
			return e
		}
	}
	return nil
}

// Any reports on every rank whether any rank says yes.
func Any(g Group, yes bool) (bool, error) {
	if g.Size() == 1 {
		return yes, nil
	}
	var mine []byte
	if yes {
		mine = []byte{1}
	}
	all, err := Share(g, mine)
	for _, x := range all {
		yes = yes || len(x) > 0
	}
	return yes, err
}
