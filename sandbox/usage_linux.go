//go:build linux && (amd64 || arm64)

package sandbox

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// usage holds what the processes of a run hold and have used, according to /proc.
type usage struct {
	memoryKB int64         // now; after add the maximum
	cpu      time.Duration // of living processes and dead ones that were waited for; after add the maximum
}

func (u *usage) add(v usage) {
	u.memoryKB, u.cpu = max(u.memoryKB, v.memoryKB), max(u.cpu, v.cpu)
}

// pidOf returns the pid behind a pidfd, in our own pid namespace.
func pidOf(pidfd int) (int, error) {
	text, err := os.ReadFile("/proc/self/fdinfo/" + strconv.Itoa(pidfd))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, "Pid:"); ok {
			if pid, err := strconv.Atoi(strings.TrimSpace(value)); err == nil && pid > 0 {
				return pid, nil
			}
		}
	}
	return 0, errors.New("the run's process 1 is gone")
}

// treeUsage sums over the children of the zygote: the program, and all processes that descend from it or were
// orphaned to process 1 of the run, but not process 1 itself. parent 0 is the parent of init. sharedKB
// is subtracted from each process: the zygote's pages.
func treeUsage(parent, init int, sharedKB int64) usage {
	var u usage
	if parent == 0 {
		var err error
		if parent, err = parentOf(init); err != nil {
			return u
		}
	}
	todo := children(parent)
	for len(todo) > 0 {
		pid := todo[len(todo)-1]
		todo = append(todo[:len(todo)-1], children(pid)...)
		if pid == init {
			continue
		}
		u.cpu += cpuOf(pid)
		u.memoryKB += max(0, anonOf(pid)-sharedKB)
	}
	return u
}

// children returns the pids of a process's children, over all its threads.
func children(pid int) (list []int) {
	dir := fmt.Sprintf("/proc/%d/task", pid)
	tasks, _ := os.ReadDir(dir)
	for _, t := range tasks {
		text, _ := os.ReadFile(dir + "/" + t.Name() + "/children")
		for word := range strings.FieldsSeq(string(text)) {
			if n, err := strconv.Atoi(word); err == nil {
				list = append(list, n)
			}
		}
	}
	return list
}

// statFields returns the fields of /proc/PID/stat after the name, which may contain anything: the first is
// field 3 of proc(5).
func statFields(pid int) []string {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if i := bytes.LastIndexByte(text, ')'); i >= 0 {
		return strings.Fields(string(text[i+1:]))
	}
	return nil
}

func parentOf(pid int) (int, error) {
	f := statFields(pid)
	if len(f) < 2 {
		return 0, fmt.Errorf("no process %d", pid)
	}
	return strconv.Atoi(f[1])
}

// cpuOf returns the user and system time of a process and its dead children; the kernel counts ticks of 10
// ms.
func cpuOf(pid int) time.Duration {
	f := statFields(pid)
	if len(f) < 15 {
		return 0
	}
	var ticks int64
	for _, s := range f[11:15] {
		n, _ := strconv.ParseInt(s, 10, 64)
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond
}

// anonOf returns the memory of a process that no file backs.
func anonOf(pid int) (kb int64) {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	for line := range strings.Lines(string(text)) {
		key, value, _ := strings.Cut(line, ":")
		if key == "RssAnon" || key == "RssShmem" {
			n, _ := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64)
			kb += n
		}
	}
	return kb
}
