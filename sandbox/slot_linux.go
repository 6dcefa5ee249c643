//go:build linux && (amd64 || arm64)

package sandbox

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Ids of the program and the zygote inside the slot. An ordinary user has only one id to give, so there
// both have the program's.
const (
	programUID = 1000
	// If the harness is root, a slot's ids are a block of this size on the host, above the ids that
	// distributions and containers use (systemd.io/UIDS-GIDS).
	blockBase, blockSize, blocks = 0x70000000, 0x10000, 0x0fff
)

// machine is shared by all slots of a pool.
type machine struct {
	python   python
	level    Level
	parents  parents // under Full
	landlock int     // ABI; 0: none
	cpus     []int   // that this process may use
	root     bool
	threads  ownThreads
}

// slot is a set of namespaces with an interpreter waiting for a program.
type slot struct {
	m       *machine
	command *exec.Cmd
	exited  chan struct{} // closed once the process is reaped
	sock    int
	stderr  bytes.Buffer // the zygote's; read after exited
	piped   sync.WaitGroup
	held    []*os.File // our ends of its pipes
	group   *group
	owner   int            // the program's id on the host if it differs from the harness's; else 0
	isReady bool           // the zygote waits for a program
	dir     string         // level landlock: the slot's folder; else empty
	init    int            // pidfd of process 1 of the next run; -1: not ready
	anonKB  int64          // private memory of the zygote, shared by its children
	buf     [64 << 10]byte // for outputs in transit
	base    int64          // bytes that the group holds before a run
}

// newSlot starts a slot and returns while its zygote gets ready. number tells slots of this process apart;
// more is added to its root, apart from the interpreter.
func newSlot(m *machine, number uint64, more []bind) (s *slot, err error) {
	s = &slot{m: m, sock: -1, init: -1}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("sandbox: start a slot: %w", err), s.close())
			s = nil
		}
	}()
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return s, err
	}
	s.sock = pair[0]
	theirs := os.NewFile(uintptr(pair[1]), "slot")
	err = s.start(theirs, number)
	_ = theirs.Close() // else we would not notice its end
	if err != nil {
		return s, err
	}
	if m.level == Full {
		if s.group, err = newGroup(m.parents, number); err != nil {
			return s, err
		}
		if err := s.group.add(s.command.Process.Pid); err != nil {
			return s, err
		}
	}
	if m.level == Landlock {
		err = s.instructAlone(number)
	} else {
		err = s.instruct(number, more)
	}
	if err != nil {
		return s, err
	}
	return s, s.awaitReady(time.Minute)
}

// start executes this program as the slot's first process. Its standard streams are pipes: an interpreter
// remembers whether they can seek, and so do its children. The end of the first pipe tells process 1 of a
// run that the harness is gone.
func (s *slot) start(theirs *os.File, number uint64) error {
	stdin, stdinEnd, err := os.Pipe()
	if err != nil {
		return err
	}
	out, outEnd, err := os.Pipe()
	if err != nil {
		return errors.Join(err, stdin.Close(), stdinEnd.Close())
	}
	s.held = []*os.File{stdinEnd, out}
	cmd := exec.Command("/proc/self/exe")
	cmd.Args, cmd.Env, cmd.Dir = []string{slotName}, []string{"GOMAXPROCS=1"}, "/"
	cmd.Stdin, cmd.Stdout, cmd.Stderr = stdin, outEnd, outEnd
	cmd.ExtraFiles = []*os.File{theirs}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if s.m.level == Landlock {
		s.isolateAlone(cmd.SysProcAttr, number)
	} else {
		s.isolate(cmd.SysProcAttr, number)
	}
	err = cmd.Start()
	_, _ = stdin.Close(), outEnd.Close()
	if err != nil {
		return fmt.Errorf("create namespaces: %w", err)
	}
	s.command, s.exited = cmd, make(chan struct{})
	s.piped.Go(func() { _, _ = io.Copy(&s.stderr, io.LimitReader(out, 64<<10)) })
	go func() { _ = cmd.Wait(); close(s.exited) }()
	return nil
}

// isolate requests separate namespaces and ids for the slot.
func (s *slot) isolate(attr *syscall.SysProcAttr, number uint64) {
	attr.Cloneflags = syscall.CLONE_NEWUSER | syscall.CLONE_NEWPID | syscall.CLONE_NEWNS | syscall.CLONE_NEWNET |
		syscall.CLONE_NEWIPC | syscall.CLONE_NEWUTS
	if s.m.root {
		block := ownBlock(number)
		s.owner = block + programUID
		ids := []syscall.SysProcIDMap{{ContainerID: 0, HostID: block, Size: blockSize}}
		attr.UidMappings, attr.GidMappings = ids, ids
		attr.GidMappingsEnableSetgroups = true
		attr.Credential = &syscall.Credential{}
	} else {
		attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: programUID, HostID: os.Getuid(), Size: 1}}
		attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: programUID, HostID: os.Getgid(), Size: 1}}
		attr.AmbientCaps = []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_SETPCAP} // else lost at the next exec, without id 0
	}
}

// ownBlock returns the first id of a slot when the harness is root.
func ownBlock(number uint64) int {
	return blockBase + blockSize*int((uint64(os.Getpid())*61+number)%blocks)
}

// instruct sends what the process needs to build the root and what the interpreter needs to become the
// zygote.
func (s *slot) instruct(number uint64, more []bind) error {
	binds, links, err := s.m.python.view()
	if err != nil {
		return err
	}
	if len(more) > 0 {
		binds = outermost(append(binds, more...))
	}
	spec := slotSpec{Binds: binds, Links: links, CPU: -1, Exe: s.m.python.insideAs, NoFile: 1024, OwnTree: !s.m.root,
		Args: []string{s.m.python.insideAs, "-S", "-s", "-B", zygotePath}, Env: environment()}
	if len(s.m.cpus) > 0 {
		spec.CPU = s.m.cpus[number%uint64(len(s.m.cpus))]
	}
	var trees []int
	if s.m.root {
		// Root may enter folders that the slot's ids may not.
		if trees, err = openTrees(binds); err != nil {
			return err
		}
		defer closeAll(trees)
	}
	message, err := json.Marshal(spec)
	if err != nil {
		return err
	}
	if err := send(s.sock, message, trees...); err != nil {
		return err
	}
	return s.instructZygote(filter(s.m.level == Full), nil)
}

// instructZygote sends the zygote's settings; alone is for level landlock.
func (s *slot) instructZygote(filter []byte, alone *aloneSpec) error {
	zygote, err := json.Marshal(map[string]any{
		"filter": hex.EncodeToString(filter), "preload": preloaded(), "uid": programUID, "landlock": s.m.landlock,
		"drivers":     drivers(),
		"close_range": unix.SYS_CLOSE_RANGE, "capset": unix.SYS_CAPSET, "page_kb": os.Getpagesize() / 1024,
		"alone": alone,
	})
	if err != nil {
		return err
	}
	return send(s.sock, zygote)
}

// ready is the zygote's message that it can take a request; the run's process 1, if it has one, comes with
// it.
type ready struct {
	Ready  bool   `json:"ready"`
	AnonKB int64  `json:"anon_kb"`
	Broken string `json:"broken"`
}

func (s *slot) awaitReady(limit time.Duration) error {
	if err := readable(s.sock, limit); err != nil {
		return fmt.Errorf("interpreter: %w%s", err, s.lastWords())
	}
	message, fds, err := receive(s.sock, 4096)
	if err != nil {
		return fmt.Errorf("interpreter: %w%s", err, s.lastWords())
	}
	var r ready
	want := 1
	if s.m.level == Landlock {
		want = 0
	}
	if err := json.Unmarshal(message, &r); err != nil || !r.Ready || len(fds) != want {
		closeAll(fds)
		return fmt.Errorf("interpreter: %s%s", r.Broken, s.lastWords())
	}
	if want > 0 {
		s.init = fds[0]
	}
	s.isReady, s.anonKB = true, r.AnonKB
	if s.group != nil && s.base == 0 {
		s.base = s.group.usage()
	}
	return nil
}

// readable waits until there is something to receive.
func readable(fd int, limit time.Duration) error {
	until := time.Now().Add(limit)
	for {
		left := time.Until(until)
		if left <= 0 {
			return fmt.Errorf("no answer within %v", limit)
		}
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, int(left.Milliseconds())+1)
		if err != nil && !errors.Is(err, unix.EINTR) {
			return err
		}
		if n > 0 {
			return nil
		}
	}
}

// lastWords ends the slot's process and returns its last output.
func (s *slot) lastWords() string {
	s.kill()
	if text := bytes.TrimSpace(s.stderr.Bytes()); len(text) > 0 {
		return ": " + string(text)
	}
	return ""
}

// kill ends every process of the slot and waits until they are gone.
func (s *slot) kill() {
	if s.command == nil {
		return
	}
	_ = s.command.Process.Kill() // process 1 of the slot: the kernel ends all others
	<-s.exited
	for _, f := range s.held {
		if f != nil {
			_ = f.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
		}
	}
	s.piped.Wait()
}

// close ends the slot and frees its resources.
func (s *slot) close() error {
	s.kill()
	var list []error
	for _, f := range s.held {
		if f != nil {
			list = append(list, f.Close())
		}
	}
	s.held = nil
	if s.sock >= 0 {
		list = append(list, unix.Close(s.sock))
		s.sock = -1
	}
	if s.init >= 0 {
		list = append(list, unix.Close(s.init))
		s.init = -1
	}
	if s.group != nil {
		s.group.remove()
		s.group = nil
	}
	if s.dir != "" {
		list = append(list, os.RemoveAll(s.dir)) // programs could not write there
		s.dir = ""
	}
	return errors.Join(list...)
}
