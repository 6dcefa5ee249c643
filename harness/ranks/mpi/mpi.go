// Package mpi lets the ranks of a run talk through whatever MPI library is installed. The
// library is loaded when a job starts, so the program needs none to be built or to run
// alone. It takes launch and messages from the library, never its sums, whose order is the
// library's.
package mpi

/*
#cgo CFLAGS: -O2 -Wall
#cgo LDFLAGS: -ldl
#include <stdlib.h>
#include "shim.h"
*/
import "C"

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"time"
	"unsafe"

	"exp/kernels"
	"exp/train/ranks"
)

// World is all ranks of a job. It implements ranks.Group.
type World struct {
	// Limit is the longest time that an exchange may take; 0: no limit. After it the
	// exchange fails, and the error names the ranks that this one waits for.
	Limit time.Duration

	rank, size int
	library    Library
}

// OpenMPI is the kind of Open MPI's own ABI, whose ranks only its own launcher starts.
const OpenMPI = "Open MPI"

// Library is an MPI library.
type Library struct {
	File    string // what was loaded
	Kind    string // OpenMPI, "MPICH ABI" or "standard ABI"
	Version string // what it says of itself
}

func (l Library) String() string { return fmt.Sprintf("%s (%s): %s", l.File, l.Kind, l.Version) }

// NoLibraryError says that no MPI library can be loaded.
type NoLibraryError struct{ Reason string }

func (e *NoLibraryError) Error() string { return "no MPI library: " + e.Reason }

// Hint says what to install.
func (e *NoLibraryError) Hint() string {
	return "install one (Debian: apt install openmpi-bin), or name its file: EXP_MPI=/path/libmpi.so"
}

// ExitCode is the code for something that this machine lacks.
func (e *NoLibraryError) ExitCode() int { return 7 }

// Load loads the library at path, or with an empty path one that the system knows. It does
// not join a job.
func Load(path string) (Library, error) {
	p := C.CString(path)
	defer C.free(unsafe.Pointer(p))
	kind := C.xmpi_open(p)
	if kind == C.XMPI_NONE {
		return Library{}, &NoLibraryError{C.GoString(C.xmpi_error())}
	}
	text, n := (*C.char)(C.calloc(1, 8192)), C.int(0)
	defer C.free(unsafe.Pointer(text))
	C.xmpi_version(text, &n)
	version, _, _ := strings.Cut(C.GoString(text), "\n")
	name := map[C.int]string{C.XMPI_STANDARD: "standard ABI", C.XMPI_OPENMPI: OpenMPI, C.XMPI_MPICH: "MPICH ABI"}
	return Library{File: C.GoString(C.xmpi_loaded()), Kind: name[kind],
		Version: strings.Join(strings.Fields(version), " ")}, nil
}

// Open loads a library as Load does and joins the job that a launcher started.
func Open(path string) (*World, error) {
	l, err := Load(path)
	if err != nil {
		return nil, err
	}
	var rank, size, serialized C.int
	if err := check("Init_thread", C.xmpi_init(&rank, &size, &serialized)); err != nil {
		return nil, err
	}
	if serialized == 0 {
		return nil, fmt.Errorf("%s: does not allow calls from several threads in turn", l)
	}
	return &World{rank: int(rank), size: int(size), library: l}, nil
}

func check(what string, code C.int) error {
	if code == 0 {
		return nil
	}
	return fmt.Errorf("MPI_%s: error %d", what, code)
}

// Rank implements ranks.Group.
func (w *World) Rank() int { return w.rank }

// Size implements ranks.Group.
func (w *World) Size() int { return w.size }

// Library returns the library that carries the messages.
func (w *World) Library() Library { return w.library }

// Close leaves the job. All ranks call it.
func (w *World) Close() error { return check("Finalize", C.xmpi_finalize()) }

// Abort ends all ranks of the job.
func (w *World) Abort(code int) { C.xmpi_abort(C.int(code)) }

// most is the longest message, in words of 4 bytes: MPI counts in ints.
const most = 1 << 28

// Exchange implements ranks.Group. A message that is not a whole number of 4-byte words
// panics.
func (w *World) Exchange(parts []ranks.Part) error {
	if len(parts) == 0 {
		return nil
	}
	var pin runtime.Pinner // parts may be in Go's memory, which the library keeps for a while
	defer pin.Unpin()
	var list []C.xmpi_part
	for _, p := range parts {
		bytes := p.Data.Len() * p.Data.DType().Size()
		if bytes%4 != 0 {
			panic("mpi: a message is not whole words")
		}
		if p.Data.IsHost() && bytes > 0 {
			pin.Pin((*byte)(p.Data.Addr()))
		}
		send := C.int(0)
		if p.Send {
			send = 1
		}
		for at := 0; at < bytes/4; at += most {
			list = append(list, C.xmpi_part{data: unsafe.Add(p.Data.Addr(), 4*at), count: C.int(min(most, bytes/4-at)),
				peer: C.int(p.Peer), tag: C.int(p.Tag), send: send})
		}
	}
	room := C.malloc(C.size_t(len(list)) * C.sizeof_xmpi_part)
	defer C.free(room)
	copy(unsafe.Slice((*C.xmpi_part)(room), len(list)), list)
	var requests *C.xmpi_requests
	if err := check("Isend", C.xmpi_start((*C.xmpi_part)(room), C.int(len(list)), &requests)); err != nil {
		return err
	}
	return w.wait(requests, list)
}

// AllReduce leaves the sum of all ranks' floats in x on each of them, in the library's own
// order. It is for measurements: no run may use it.
func (w *World) AllReduce(x kernels.Buffer) error {
	if x.DType() != kernels.F32 || x.Len() > most {
		panic("mpi: cannot reduce this buffer")
	}
	return check("Allreduce", C.xmpi_allreduce(x.Addr(), C.int(x.Len())))
}

// wait tries until all messages have arrived, less and less often.
func (w *World) wait(requests *C.xmpi_requests, parts []C.xmpi_part) error {
	start, pause := time.Now(), time.Duration(0)
	for {
		var done C.int
		if err := check("Testall", C.xmpi_test(requests, &done)); err != nil || done == 1 {
			return err
		}
		if took := time.Since(start); w.Limit > 0 && took > w.Limit {
			return w.late(requests, parts)
		}
		if time.Since(start) > time.Millisecond {
			pause = min(pause+10*time.Microsecond, time.Millisecond)
			time.Sleep(pause)
		}
	}
}

// late is the error of an exchange that took too long. The library still owns the messages:
// the process must end.
func (w *World) late(requests *C.xmpi_requests, parts []C.xmpi_part) error {
	missing := make([]C.int, len(parts))
	n := C.xmpi_missing(requests, &missing[0])
	var from, to []int
	for _, k := range missing[:n] {
		if p := parts[k]; p.send == 0 {
			from = append(from, int(p.peer))
		} else {
			to = append(to, int(p.peer))
		}
	}
	if from == nil {
		from = to // its message is with the library, but nobody takes it
	}
	slices.Sort(from)
	return &ranks.LateError{Peers: slices.Compact(from), Limit: w.Limit}
}
