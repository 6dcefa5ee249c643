// Package nccl moves device memory between the ranks of a run by NVIDIA's NCCL, which is loaded
// when ranks compute on GPUs; the program needs none to be built or to run otherwise. It takes
// messages from the library, never its sums, whose order is the library's.
package nccl

/*
#cgo CFLAGS: -O2 -Wall
#cgo LDFLAGS: -ldl
#include <stdlib.h>
#include "shim.h"
*/
import "C"

import (
	"fmt"
	"unsafe"
)

// Library is an NCCL library.
type Library struct {
	File    string // what was loaded
	Version int    // 10000·major + 100·minor + patch
}

func (l Library) String() string { return l.File + ": NCCL " + l.Release() }

// Release is the version as people write it: 2.27.3.
func (l Library) Release() string { return version(l.Version) }

// minVersion is the oldest version whose communicators never block, so that a lost rank does
// not keep the others waiting for ever.
const minVersion = 21400

func version(v int) string {
	if v < 10000 { // as versions before 2.9 count
		return fmt.Sprintf("%d.%d.%d", v/1000, v/100%10, v%100)
	}
	return fmt.Sprintf("%d.%d.%d", v/10000, v/100%100, v%100)
}

// LibraryError says that no fitting NCCL library can be loaded.
type LibraryError struct{ Reason string }

func (e *LibraryError) Error() string { return "ranks on GPUs need NCCL: " + e.Reason }

// Hint says what to install.
func (e *LibraryError) Hint() string {
	return "install NCCL 2.14 or newer (NVIDIA's package libnccl2), or name its file: EXP_NCCL=/path/libnccl.so.2"
}

// ExitCode is the code for something that this machine lacks.
func (e *LibraryError) ExitCode() int { return 7 }

// Load loads the library at path, or with an empty path the one that the system knows. It
// touches no GPU.
func Load(path string) (Library, error) {
	p := C.CString(path)
	defer C.free(unsafe.Pointer(p))
	var v C.int
	if C.xnccl_open(p, &v) != 0 {
		return Library{}, &LibraryError{C.GoString(C.xnccl_error())}
	}
	l := Library{File: C.GoString(C.xnccl_loaded()), Version: int(v)}
	if l.Version < minVersion {
		return l, &LibraryError{fmt.Sprintf("%s is version %s, and 2.14 or newer is needed", l.File,
			version(l.Version))}
	}
	if reason := C.GoString(C.xnccl_error()); reason != "" {
		return l, &LibraryError{reason}
	}
	return l, nil
}
