//go:build linux && (amd64 || arm64)

package sandbox

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"time"

	"golang.org/x/sys/unix"
)

// Reports on a run to the harness: from the zygote at the end, and before that from the program's process
// on a separate pipe.

// ended is the zygote's report on a run, in the layout of its message.
type ended struct {
	Status int64 // as wait(2) returns it
	At     int64 // ns of the monotonic clock
	CPU    int64 // ns, the program's process with its set-up, and the children it waited for
	RSS    int64 // KB, the largest process
	Own    int64 // ns of CPU used by the zygote itself for the run
}

// begun is the report of the program's process before the program starts.
type begun struct {
	released bool
	at       int64         // ns of the monotonic clock, at the release
	setup    time.Duration // CPU used by then
	syntax   bool          // the source does not compile
	broken   string        // why it was not released
}

// parseBegun reads whatever is there of "R", two int64, then "S"; or "E" and a text.
func parseBegun(data []byte) (b begun) {
	if len(data) >= 17 && data[0] == 'R' {
		b.released = true
		b.at, b.setup = int64(binary.NativeEndian.Uint64(data[1:])),
			time.Duration(binary.NativeEndian.Uint64(data[9:]))
		data = data[17:]
	}
	if len(data) > 0 {
		b.syntax = data[0] == 'S'
		if data[0] == 'E' {
			b.broken = string(data[1:])
		}
	}
	return b
}

// hear receives the zygote's answer.
func (x *execution) hear() error {
	message, fds, err := receive(x.s.sock, 16<<10)
	closeAll(fds)
	if err != nil {
		if errors.Is(err, io.EOF) {
			err = errors.New("the interpreter ended")
		}
		return fmt.Errorf("%w%s", err, x.s.lastWords())
	}
	if n, err := binary.Decode(message, binary.NativeEndian, &x.answer); err != nil || n != len(message) {
		return fmt.Errorf("answer of the interpreter: %d bytes", len(message))
	}
	x.answered = true
	return nil
}

// hearBegun learns when the program began. It does not wake anyone: a run of a few ms is over before
// anything depends on it.
func (x *execution) hearBegun() {
	x.status.drain(x.s.buf[:])
	x.begun = parseBegun(x.status.data)
	if x.begun.released && x.deadline.IsZero() {
		var now unix.Timespec
		_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &now) // cannot fail
		since := time.Duration(now.Nano() - x.begun.at)
		x.deadline = time.Now().Add(time.Duration(x.limits.WallMS)*time.Millisecond - since)
	}
}
