package tokenizer

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// A pipe that nobody writes to, and a device without end, are refused unread.
func TestReadFolderRefusesPipesAndDevices(t *testing.T) {
	for _, name := range append(tokenizerFiles(), "config.json", templateFolder+"/x.jinja") {
		for kind, create := range map[string]func(path string) error{
			"pipe":   func(path string) error { return syscall.Mkfifo(path, 0o600) },
			"device": func(path string) error { return os.Symlink("/dev/zero", path) },
		} {
			path := filepath.Join(t.TempDir(), filepath.FromSlash(name))
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := create(path); err != nil {
				t.Fatal(err)
			}
			if _, err := ReadFolder(strings.TrimSuffix(path, "/"+name)); err == nil || !strings.Contains(err.Error(), path+" is not a regular file") {
				t.Errorf("%s is a %s: got %v", name, kind, err)
			}
		}
	}
}
