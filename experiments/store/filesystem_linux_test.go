package store

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// A store on a file system that takes no writes can be read; whoever wants to write learns why not.
func TestOpenOnReadOnlyMount(t *testing.T) {
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=16m"); err != nil {
		t.Skipf("mounting: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	at := filepath.Join(dir, "store")
	db, err := Open(at, Options{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	db.Close()
	if err := unix.Mount("tmpfs", dir, "", unix.MS_REMOUNT|unix.MS_RDONLY, ""); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(at, Options{}); !errors.Is(err, ErrReadOnly) || !strings.Contains(hintOf(err), "exp export") {
		t.Errorf("Open: error %v, want ErrReadOnly and what to do", err)
	}
	db, err = Open(at, Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	db.Close()
}
