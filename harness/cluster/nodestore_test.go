package cluster

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// An attempt removes the stores of killed attempts, and leaves the stores of running attempts and
// other directories.
func TestNodeStore(t *testing.T) {
	if parent := os.Getenv("CLUSTER_TEST_STORE"); parent != "" {
		dir, _, err := nodeStore(parent)
		if err != nil {
			t.Fatal(err)
		}
		os.Stdout.WriteString(dir + "\n")
		select {} // until it is killed
	}
	parent := t.TempDir()
	other := filepath.Join(parent, "exp-of-somebody")
	if err := os.Mkdir(other, 0o777); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0], "-test.run=TestNodeStore")
	cmd.Env = append(os.Environ(), "CLUSTER_TEST_STORE="+parent)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	if !lines.Scan() {
		t.Fatal("the other attempt has no store")
	}
	killed := lines.Text()
	first, release, err := nodeStore(parent)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(killed); err != nil {
		t.Errorf("the store of a running attempt is gone: %v", err)
	}
	cmd.Process.Kill()
	cmd.Wait()
	_, second, err := nodeStore(parent)
	if err != nil {
		t.Fatal(err)
	}
	defer second()
	if _, err := os.Stat(killed); !os.IsNotExist(err) {
		t.Errorf("the store of a killed attempt stays: %v", err)
	}
	for _, dir := range []string{first, other} {
		if _, err := os.Stat(dir); err != nil {
			t.Error(err)
		}
	}
	release()
	if _, err := os.Stat(first); !os.IsNotExist(err) {
		t.Errorf("release left its store: %v", err)
	}
}

// An attempt removes a store of its machine that was killed amid the making of its lock, and none of
// another machine, whose locks it may not see. The parent's name may have any letters.
func TestNodeStoreOfOthers(t *testing.T) {
	parent := filepath.Join(t.TempDir(), "a[b")
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		dir, lock, maker string
		stays            bool
	}{
		{"exp-1", lockFile, host, false},
		{"exp-2", lockFile + newLock, host, false},
		{"exp-3", lockFile, "other-" + host, true},
		{"exp-4", lockFile + newLock, "other-" + host, true},
		{"exp-5", lockFile + newLock, "", true}, // perhaps being made
		{"other", lockFile, host, true},
	} {
		dir := filepath.Join(parent, tt.dir)
		if err := os.MkdirAll(dir, 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, tt.lock), []byte(tt.maker), 0o666); err != nil {
			t.Fatal(err)
		}
		_, release, err := nodeStore(parent)
		if err != nil {
			t.Fatal(err)
		}
		release()
		if _, err := os.Stat(dir); (err == nil) != tt.stays {
			t.Errorf("%s of %q: stays %v, want %v", tt.lock, tt.maker, err == nil, tt.stays)
		}
	}
}
