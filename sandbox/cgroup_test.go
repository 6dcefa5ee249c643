//go:build linux && (amd64 || arm64)

package sandbox

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The group is found below the process's own one, even if only part of the hierarchy is mounted.
func TestFindParents(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "user/me"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "user/me/cgroup.controllers"), []byte("cpu memory pids\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	const v1 = `30 25 0:26 / /cg/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct
31 25 0:27 /docker/abc /cg/memory rw - cgroup cgroup rw,memory
32 25 0:28 / /cg/pids rw - cgroup cgroup rw,pids
`
	for _, c := range []struct {
		name, cgroup, mounts string
		want                 parents
		err                  bool
	}{
		{"unified", "0::/user/me\n", "29 25 0:25 / " + dir + " rw - cgroup2 cgroup2 rw\n", parents{unified: filepath.Join(dir, "user/me")}, false},
		{"unified without controllers", "0::/\n", "29 25 0:25 / " + dir + " rw - cgroup2 cgroup2 rw\n", parents{}, true},
		{"version 1", "3:cpu,cpuacct:/a\n2:memory:/docker/abc/b\n1:pids:/\n", v1, parents{memory: "/cg/memory/b", pids: "/cg/pids", cpu: "/cg/cpu,cpuacct/a"}, false},
		{"outside of the mount", "3:cpu,cpuacct:/a\n2:memory:/other\n1:pids:/\n", v1, parents{pids: "/cg/pids", cpu: "/cg/cpu,cpuacct/a"}, true},
		{"none", "", "", parents{}, true},
		{"nonsense", "a\n::\n", "x - y\n", parents{}, true},
	} {
		got, err := findParents(c.cgroup, c.mounts)
		if got != c.want || (err != nil) != c.err {
			t.Errorf("%s: %+v %v, want %+v", c.name, got, err, c.want)
		}
	}
}

// Groups of dead harnesses are removed, others stay.
func TestRemoveStale(t *testing.T) {
	dir := t.TempDir()
	const noProcess = "exp-sandbox-2147483647-1" // above the largest pid
	for _, name := range []string{noProcess, "exp-sandbox-1-1", "exp-sandbox-x", "other"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	parents{unified: dir}.removeStale()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var left []string
	for _, e := range entries {
		left = append(left, e.Name())
	}
	if got := strings.Join(left, " "); got != "exp-sandbox-1-1 exp-sandbox-x other" {
		t.Errorf("left: %s", got)
	}
}
