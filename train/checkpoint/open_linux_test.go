package checkpoint

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"exp/train/checkpoint/fault"
)

// A pipe that nobody writes to, and a device without end, are refused before they are
// opened, under every name that a folder's files have.
func TestPipesAndDevicesAreRefused(t *testing.T) {
	for _, name := range []string{configFile, weightsFile, indexFile} {
		for kind, create := range map[string]func(path string) error{
			"pipe":   func(path string) error { return syscall.Mkfifo(path, 0o600) },
			"device": func(path string) error { return os.Symlink("/dev/zero", path) },
			"folder": func(path string) error { return os.Mkdir(path, 0o700) },
		} {
			dir := t.TempDir()
			writeFile(t, filepath.Join(dir, configFile), []byte(qwen25Published))
			os.Remove(filepath.Join(dir, name))
			if err := create(filepath.Join(dir, name)); err != nil {
				t.Fatal(err)
			}
			d, err := Describe(dir)
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(d.Reason, "\n"); d.Known || !strings.Contains(got, name+": "+fault.ErrNotRegular.Error()) {
				t.Errorf("%s is a %s: reasons %q", name, kind, got)
			}
		}
	}
	path := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := fileSHA256(path, nil); !errors.Is(err, fault.ErrNotRegular) {
		t.Errorf("the digest of a pipe: %v", err)
	}
}

// A pipe in the place of weights in any container is refused, not waited for.
func TestPipesInContainersAreRefused(t *testing.T) {
	for _, name := range []string{"pipe", "weights.bin", torchFile, torchIndexFile, "model_world_size_1_rank_0.pt",
		"mp_rank_00/model_optim_rng.pt", ".metadata"} {
		dir := t.TempDir()
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := syscall.Mkfifo(path, 0o600); err != nil {
			t.Fatal(err)
		}
		open := dir
		if name == "pipe" || name == "weights.bin" {
			open = path
		}
		if _, err := OpenFolder(open); !errors.Is(err, fault.ErrNotRegular) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
