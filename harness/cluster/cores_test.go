package cluster

import (
	"context"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestDivide(t *testing.T) {
	node := func(n, list string) fstest.MapFS {
		return fstest.MapFS{"devices/system/node/node" + n + "/cpulist": {Data: []byte(list + "\n")}}
	}
	join := func(list ...fstest.MapFS) fs.FS {
		all := fstest.MapFS{}
		for _, m := range list {
			for k, v := range m {
				all[k] = v
			}
		}
		return all
	}
	eight := []int{0, 1, 2, 3, 4, 5, 6, 7}
	for _, tt := range []struct {
		name    string
		sys     fs.FS
		allowed []int
		n       int
		want    []Share
	}{
		{"one node", join(node("0", "0-7")), eight, 3, []Share{{nil, 2}, {nil, 2}, {nil, 2}}},
		{"no nodes known", fstest.MapFS{}, eight[:2], 4, []Share{{nil, 1}, {nil, 1}, {nil, 1}, {nil, 1}}},
		{"two nodes", join(node("0", "0-2,6"), node("1", "3-5,7")), eight, 3,
			[]Share{{[]int{0, 1, 2, 6}, 2}, {[]int{0, 1, 2, 6}, 2}, {[]int{3, 4, 5, 7}, 4}}},
		{"more nodes than processes", join(node("0", "0-1"), node("1", "2-3"), node("2", "4-7")), eight, 2,
			[]Share{{[]int{0, 1}, 2}, {[]int{2, 3, 4, 5, 6, 7}, 6}}},
		{"one node is not allowed, one has only memory", join(node("0", "0-3"), node("1", "4-7"), node("2", "")), eight[:4], 1,
			[]Share{{nil, 4}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, Divide(tt.sys, tt.allowed, tt.n)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	for _, bad := range []string{"x", "3-1", "1-", "0-99999999"} {
		if cpus, err := parseCPUs(bad); err == nil {
			t.Errorf("%q gives %v", bad, cpus)
		}
	}
}

// A child runs on the processors that it is given, and this process keeps its own.
func TestAffinity(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux keeps processes on processors")
	}
	before := Allowed()
	one := before[len(before)-1:]
	var log strings.Builder
	p := Process{Program: "/bin/sh", Args: []string{"-c", "grep Cpus_allowed_list /proc/self/status"}, CPUs: one,
		Heard: func(Event) {}, Log: &log}
	if end := p.Run(context.Background(), context.Background()); end.Code != 0 {
		t.Skipf("no /proc: %+v", end)
	}
	_, list, _ := strings.Cut(log.String(), ":")
	cpus, err := parseCPUs(strings.TrimSpace(list))
	if err != nil || !cmp.Equal(cpus, one) {
		t.Errorf("the child may use %v, want %v (%v)", cpus, one, err)
	}
	if after := Allowed(); !cmp.Equal(before, after) {
		t.Errorf("this process may use %v after, %v before", after, before)
	}
	if _, err := os.Stat("/sys/devices/system/node/node0"); err == nil {
		if got := Divide(os.DirFS("/sys"), before, 2); len(got) != 2 || got[0].Threads < 1 {
			t.Errorf("this machine is divided into %+v", got)
		}
	}
}

// A process that stays on a processor has all its threads there, and those that they start.
func TestStayOn(t *testing.T) {
	const variable = "EXP_CLUSTER_TEST_STAY"
	if runtime.GOOS != "linux" {
		t.Skip("only Linux keeps processes on processors")
	}
	if os.Getenv(variable) == "" { // this process keeps its processors
		cmd := exec.Command(os.Args[0], "-test.run=^TestStayOn$", "-test.v")
		cmd.Env = append(os.Environ(), variable+"=1")
		if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "threads stay") {
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	one := Allowed()[:1]
	var busy sync.WaitGroup
	done := make(chan bool)
	start := func() {
		for range 8 {
			busy.Go(func() {
				runtime.LockOSThread()
				<-done
			})
		}
	}
	start()
	if err := StayOn(one); err != nil {
		t.Fatal(err)
	}
	start()
	time.Sleep(10 * time.Millisecond)
	files, err := filepath.Glob("/proc/self/task/*/status")
	if err != nil || len(files) < 9 {
		t.Skipf("%d threads: %v", len(files), err)
	}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			continue // the thread has ended
		}
		_, list, _ := strings.Cut(string(text), "Cpus_allowed_list:\t")
		list, _, _ = strings.Cut(list, "\n")
		if cpus, err := parseCPUs(list); err != nil || !cmp.Equal(cpus, one) {
			t.Errorf("%s may use %q, want %v", f, list, one)
		}
	}
	t.Logf("%d threads stay", len(files))
	close(done)
	busy.Wait()
}
