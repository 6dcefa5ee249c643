package extent

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"testing"
)

func TestZerosBesideAFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x")
	if err := os.WriteFile(path, []byte("abcd"), 0o644); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	e := Interleave(2, Range(f, 0, 4), Zeros(6)) // two rows of two letters and three zeros
	got, want := make([]byte, e.Size()), []byte("ab\x00\x00\x00cd\x00\x00\x00")
	if _, err := e.ReadAt(got, 0); err != nil && err != io.EOF || !bytes.Equal(got, want) {
		t.Errorf("read %q, %v, want %q", got, err, want)
	}
	if _, err := e.ReadAt(got[:4], 3); err != nil || !bytes.Equal(got[:4], want[3:7]) {
		t.Errorf("read %q from byte 3, %v, want %q", got[:4], err, want[3:7])
	}
	if files := e.Files(); len(files) != 1 || e.Same(Interleave(2, Zeros(6), Range(f, 0, 4))) {
		t.Errorf("reads %d files, or is the same as in another order", len(files))
	}
}
