package mpi

import (
	"errors"
	"strings"
	"testing"
)

// Load's errors name a missing library and what to install, and the missing function of a
// library without MPI.
func TestLoad(t *testing.T) {
	var none *NoLibraryError
	if _, err := Load("/none/libmpi.so"); !errors.As(err, &none) || !strings.Contains(err.Error(), "/none/libmpi.so") ||
		none.ExitCode() != 7 {
		t.Errorf("Load of a missing file = %v", err)
	}
	if _, err := Load("libc.so.6"); !errors.As(err, &none) || !strings.Contains(err.Error(), "libc.so.6 has no MPI_Init_thread") {
		t.Errorf("Load of the C library = %v", err)
	}
	l, err := Load("")
	if err != nil {
		t.Skip(err)
	}
	if l.File == "" || l.Kind == "" || l.Version == "" {
		t.Errorf("Load = %+v", l)
	}
}
