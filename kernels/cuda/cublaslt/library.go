//go:build cuda

package cublaslt

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

	"exp/kernels"
)

// Device gives cuBLASLt access to a GPU's backend.
type Device interface {
	// InContext calls f on a thread where the device is the current one, with the device's queue
	// of work, a cudaStream_t.
	InContext(f func(stream unsafe.Pointer))
}

// Library is a cuBLASLt library that is open on a device. It may be used by one goroutine at a time.
type Library struct {
	File    string // what was loaded
	Version int    // 10000·major + 100·minor + patch

	dev       Device
	workspace kernels.Buffer
	c         *C.struct_xlt
}

func (l *Library) String() string {
	return fmt.Sprintf("%s: cuBLASLt %d.%d.%d", l.File, l.Version/10000, l.Version/100%100, l.Version%100)
}

// LibraryError says that no fitting cuBLASLt library can be loaded.
type LibraryError struct{ Reason string }

func (e *LibraryError) Error() string {
	return "no cuBLASLt: " + e.Reason + "; install NVIDIA's libcublas 12 or 13, " +
		"or set EXP_CUBLASLT to the library's path"
}

// Error is a call of cuBLASLt that failed.
type Error struct {
	Function string // cublasLtMatmul
	Status   int    // a cublasStatus_t
	Name     string // of the status
}

func (e *Error) Error() string {
	return fmt.Sprintf("%s: %s (status %d)", e.Function, e.Name, e.Status)
}

// names are the libraries that Open tries, the newest first.
func names() []string { return []string{"libcublasLt.so.13", "libcublasLt.so.12"} }

// Open loads the library at path, or with an empty path the newest that the system knows, and opens it
// on a device. Its products use workspace, device memory as Alloc returns it, which the caller keeps
// until after Close. The error is a *LibraryError if there is no library that fits.
func Open(path string, dev Device, workspace kernels.Buffer) (*Library, error) {
	tries := names()
	if path != "" {
		tries = []string{path}
	}
	l := &Library{dev: dev, workspace: workspace}
	var why [512]C.char
	for _, l.File = range tries {
		file := C.CString(l.File)
		l.c = C.xlt_load(file, &why[0], C.size_t(len(why)))
		C.free(unsafe.Pointer(file))
		if l.c != nil {
			break
		}
	}
	if l.c == nil {
		return nil, &LibraryError{C.GoString(&why[0])}
	}
	l.Version = int(C.xlt_version(l.c))
	if err := l.call(func(_ unsafe.Pointer, f *C.struct_xlt_failure) { C.xlt_open(l.c, f) }); err != nil {
		l.Close()
		return nil, err
	}
	return l, nil
}

// Close lets go of the device, after the products are closed.
func (l *Library) Close() {
	l.dev.InContext(func(unsafe.Pointer) { C.xlt_close(l.c) })
	l.c = nil
}

// call calls f on the device and returns the failure that f notes.
func (l *Library) call(f func(stream unsafe.Pointer, failure *C.struct_xlt_failure)) error {
	var failure C.struct_xlt_failure
	l.dev.InContext(func(stream unsafe.Pointer) { f(stream, &failure) })
	if failure.status == 0 {
		return nil
	}
	return &Error{Function: C.GoString(failure.function), Status: int(failure.status),
		Name: C.GoString(C.xlt_meaning(l.c, failure.status))}
}
