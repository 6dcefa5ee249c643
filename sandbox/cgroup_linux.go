//go:build linux && (amd64 || arm64)

package sandbox

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// groupPrefix starts the names of our groups. The harness's pid follows, so that groups of dead harnesses
// can be recognised and removed.
const groupPrefix = "exp-sandbox-"

// parents are the groups where slots create their own.
type parents struct {
	unified           string // version 2 with memory and pids; else empty, and version 1:
	memory, pids, cpu string
}

// group is the cgroup of one slot: one folder in version 2, one per controller in version 1.
type group struct {
	parents
	limit int64 // bytes, as set; 0: not yet set
	most  int64 // processes, as set

	open map[string]int // descriptors of its files, which are read several times per run
}

// findParents reads the process's own groups and the mounts of their hierarchies, in the formats of
// /proc/self/cgroup and /proc/self/mountinfo.
func findParents(cgroup, mountinfo string) (parents, error) {
	own := map[string]string{} // controller, "" for version 2
	for line := range strings.Lines(cgroup) {
		if part := strings.SplitN(strings.TrimSpace(line), ":", 3); len(part) == 3 {
			for c := range strings.SplitSeq(part[1], ",") {
				own[c] = part[2]
			}
		}
	}
	var p parents
	for line := range strings.Lines(mountinfo) {
		left, right, ok := strings.Cut(strings.TrimSpace(line), " - ")
		mount, kind := strings.Fields(left), strings.Fields(right)
		if !ok || len(mount) < 5 || len(kind) < 3 {
			continue
		}
		place := func(controller string) string {
			path, ok := own[controller]
			rel, err := filepath.Rel(mount[3], path)
			if !ok || err != nil || strings.HasPrefix(rel, "..") {
				return ""
			}
			return filepath.Join(mount[4], rel)
		}
		switch kind[0] {
		case "cgroup2":
			dir := place("")
			have, _ := os.ReadFile(filepath.Join(dir, "cgroup.controllers"))
			if words := strings.Fields(string(have)); dir != "" && slices.Contains(words, "memory") &&
				slices.Contains(words, "pids") {
				p.unified = dir
			}
		case "cgroup":
			for c := range strings.SplitSeq(kind[2], ",") {
				switch c {
				case "memory":
					p.memory = place(c)
				case "pids":
					p.pids = place(c)
				case "cpuacct":
					p.cpu = place(c)
				}
			}
		}
	}
	if p.unified == "" && (p.memory == "" || p.pids == "" || p.cpu == "") {
		return p, errors.New("no cgroup hierarchy with memory and pids controllers")
	}
	return p, nil
}

// dirs returns the folders of the group, without repetition.
func (p parents) dirs() []string {
	if p.unified != "" {
		return []string{p.unified}
	}
	list := []string{p.memory, p.pids, p.cpu}
	slices.Sort(list)
	return slices.Compact(list)
}

func (p parents) below(name string) parents {
	join := func(dir string) string {
		if dir == "" {
			return ""
		}
		return filepath.Join(dir, name)
	}
	return parents{join(p.unified), join(p.memory), join(p.pids), join(p.cpu)}
}

// delegate enables the controllers of version 2 below the parent. A group with processes cannot pass on
// controllers, so a harness that is alone in its group moves itself one level down.
func (p parents) delegate() error {
	if p.unified == "" {
		return nil
	}
	file := filepath.Join(p.unified, "cgroup.subtree_control")
	err := os.WriteFile(file, []byte("+memory +pids"), 0)
	if !errors.Is(err, syscall.EBUSY) {
		return err
	}
	members, readErr := os.ReadFile(filepath.Join(p.unified, "cgroup.procs"))
	if readErr != nil || strings.TrimSpace(string(members)) != strconv.Itoa(os.Getpid()) {
		return fmt.Errorf("%w: other processes are in the group", err)
	}
	leaf := filepath.Join(p.unified, groupPrefix+strconv.Itoa(os.Getpid())+"-harness")
	if err := os.Mkdir(leaf, 0o755); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	if err := os.WriteFile(filepath.Join(leaf, "cgroup.procs"), []byte("0"), 0); err != nil {
		return err
	}
	return os.WriteFile(file, []byte("+memory +pids"), 0)
}

// removeStale removes groups of dead harnesses.
func (p parents) removeStale() {
	for _, dir := range p.dirs() {
		found, _ := filepath.Glob(filepath.Join(dir, groupPrefix+"*"))
		for _, path := range found {
			number, _, _ := strings.Cut(strings.TrimPrefix(filepath.Base(path), groupPrefix), "-")
			if pid, err := strconv.Atoi(number); err == nil && errors.Is(unix.Kill(pid, 0), unix.ESRCH) {
				_ = os.Remove(path) // fails while a process is in it
			}
		}
	}
}

// newGroup creates a group below p.
func newGroup(p parents, slot uint64) (*group, error) {
	g := &group{parents: p.below(fmt.Sprintf("%s%d-%d", groupPrefix, os.Getpid(), slot)), open: map[string]int{}}
	for _, dir := range g.dirs() {
		if err := os.Mkdir(dir, 0o755); err != nil {
			g.remove()
			return nil, err
		}
	}
	return g, nil
}

// add moves a process into the group.
func (g *group) add(pid int) error {
	for _, dir := range g.dirs() {
		if err := os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte(strconv.Itoa(pid)), 0); err != nil {
			return err
		}
	}
	return nil
}

// bound sets the memory limit in bytes and the process limit for the next run.
func (g *group) bound(memory, processes int64) error {
	write := func(dir, file string, value int64) error {
		fd, err := g.file(dir, file)
		if err == nil {
			// Lowering the memory limit takes a while; a signal of the Go runtime may interrupt it.
			_, err = again(func() (int, error) { return unix.Pwrite(fd, strconv.AppendInt(nil, value, 10), 0) })
		}
		if err != nil {
			return fmt.Errorf("%s/%s: %w", dir, file, err)
		}
		return nil
	}
	bound := func(dir string) error {
		if processes == g.most {
			return nil
		}
		g.most = processes
		return write(dir, "pids.max", processes)
	}
	if g.unified != "" {
		if memory != g.limit {
			if err := errors.Join(write(g.unified, "memory.max", memory), write(g.unified, "memory.swap.max",
				0)); err != nil {
				return err
			}
			g.limit = memory
		}
		return bound(g.unified)
	}
	if memory != g.limit {
		swap := func() error { // no file if the kernel does not count swap
			err := write(g.memory, "memory.memsw.limit_in_bytes", memory)
			if errors.Is(err, os.ErrNotExist) {
				return nil
			}
			return err
		}
		main := func() error { return write(g.memory, "memory.limit_in_bytes", memory) }
		steps := []func() error{main, swap} // memory may not exceed memory plus swap
		if g.limit > 0 && memory > g.limit {
			steps = []func() error{swap, main}
		}
		for _, step := range steps {
			if err := step(); err != nil {
				return err
			}
		}
		g.limit = memory
	}
	_ = write(g.memory, "memory.max_usage_in_bytes", 0) // resets the peak
	return bound(g.pids)
}

// kills returns how often the kernel has killed for memory in the group.
func (g *group) kills() int64 {
	if g.unified != "" {
		return g.field(g.unified, "memory.events", "oom_kill")
	}
	return g.field(g.memory, "memory.oom_control", "oom_kill")
}

// peak returns the most bytes the group has held since bound.
func (g *group) peak() int64 {
	if g.unified != "" {
		return g.field(g.unified, "memory.peak", "")
	}
	return g.field(g.memory, "memory.max_usage_in_bytes", "")
}

// usage returns the bytes the group holds now.
func (g *group) usage() int64 {
	if g.unified != "" {
		return g.field(g.unified, "memory.current", "")
	}
	return g.field(g.memory, "memory.usage_in_bytes", "")
}

// cpuTime returns what all processes of the group have used since it was created.
func (g *group) cpuTime() time.Duration {
	if g.unified != "" {
		return time.Duration(g.field(g.unified, "cpu.stat", "usage_usec")) * time.Microsecond
	}
	return time.Duration(g.field(g.cpu, "cpuacct.usage", ""))
}

// remove removes the group once its processes are gone.
func (g *group) remove() {
	for path, fd := range g.open {
		_ = unix.Close(fd)
		delete(g.open, path)
	}
	for range 100 {
		left := false
		for _, dir := range g.dirs() {
			if err := os.Remove(dir); err != nil && !errors.Is(err, os.ErrNotExist) {
				left = true
			}
		}
		if !left {
			return
		}
		time.Sleep(5 * time.Millisecond) // a group stays busy briefly after its last process
	}
}

// number reads a file that holds one number; 0 if it cannot.
func number(path string) int64 {
	text, _ := os.ReadFile(path)
	n, _ := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	return n
}

// again repeats a system call until no signal interrupts it.
func again(call func() (int, error)) (int, error) {
	for {
		if n, err := call(); !errors.Is(err, unix.EINTR) {
			return n, err
		}
	}
}

// file returns a descriptor of a file of the group; it stays open.
func (g *group) file(dir, name string) (int, error) {
	path := dir + "/" + name
	if fd, ok := g.open[path]; ok {
		return fd, nil
	}
	opened := func(flags int) (int, error) {
		return again(func() (int, error) { return unix.Open(path, flags|unix.O_CLOEXEC, 0) })
	}
	fd, err := opened(unix.O_RDWR)
	if err != nil { // some are read-only
		fd, err = opened(unix.O_RDONLY)
	}
	if err == nil {
		g.open[path] = fd
	}
	return fd, err
}

// field reads the number after a name in a file of "name number" lines; without a name the file is just a
// number. It returns 0 without such a line.
func (g *group) field(dir, file, name string) int64 {
	fd, err := g.file(dir, file)
	if err != nil {
		return 0
	}
	var buf [2048]byte
	n, err := again(func() (int, error) { return unix.Pread(fd, buf[:], 0) })
	if err != nil {
		return 0
	}
	for line := range bytes.Lines(buf[:n]) {
		rest, ok := bytes.CutPrefix(line, []byte(name))
		if value, err := strconv.ParseInt(string(bytes.TrimSpace(rest)), 10, 64); ok && err == nil {
			return value
		}
	}
	return 0
}
