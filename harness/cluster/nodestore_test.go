package cluster

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// An attempt removes the stores of killed attempts, and leaves those of running ones and other
// directories.
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
