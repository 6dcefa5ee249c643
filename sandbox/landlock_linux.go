//go:build linux && (amd64 || arm64)

package sandbox

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Level landlock, for machines that refuse namespaces. The zygote runs on the host's file system. A program
// is one process. Landlock alone guards its files; its filter refuses to create or reach another process
// and to change what Landlock does not cover: modes, owners, times.

// aloneSpec tells the zygote what it must know at this level.
type aloneSpec struct {
	Box    string   `json:"box"`    // folder with the program's files, readable
	Read   []string `json:"read"`   // what else is readable, recursively
	Marker uint32   `json:"marker"` // placeholder for the program's pid in the filter
}

// ownPID is a placeholder for the program's pid in the filter: the pid is known only after the fork.
const ownPID = 0x7e57ab1e

// folderPrefix starts the names of slot folders; the harness's pid follows.
const folderPrefix = "exp-sandbox-"

// isolateAlone gives a slot its own user id if the harness is root.
func (s *slot) isolateAlone(attr *syscall.SysProcAttr, number uint64) {
	if s.m.root {
		s.owner = ownBlock(number) + programUID
		attr.Credential = &syscall.Credential{Uid: uint32(s.owner), Gid: uint32(s.owner)}
	}
}

// instructAlone creates the slot's folder and sends what the process and its interpreter need.
func (s *slot) instructAlone(number uint64) error {
	binds, _, err := s.m.python.view()
	if err != nil {
		return err
	}
	if s.dir, err = os.MkdirTemp("", folderPrefix+strconv.Itoa(os.Getpid())+"-"); err != nil {
		return err
	}
	box, zygote := filepath.Join(s.dir, "box"), filepath.Join(s.dir, "zygote.py")
	if err := errors.Join(os.Mkdir(box, 0o700), os.WriteFile(zygote, []byte(zygoteSource), 0o400)); err != nil {
		return err
	}
	alone := aloneSpec{Box: box, Read: []string{box}, Marker: ownPID}
	var libraries []string // from the interpreter's own prefix
	for _, b := range binds {
		alone.Read = append(alone.Read, b.Source)
		if dir := filepath.Dir(b.Source); strings.HasPrefix(b.Target, "/python/lib/") &&
			b.Source != s.m.python.Stdlib && !slices.Contains(libraries, dir) {
			libraries = append(libraries, dir)
		}
	}
	spec := slotSpec{Alone: true, CPU: -1, Exe: s.m.python.Exe, NoFile: 1024, Args: []string{s.m.python.Exe, "-S",
		"-s", "-B", zygote},
		Env: environmentAt(filepath.Dir(s.m.python.Exe), box, strings.Join(libraries, ":"))}
	if len(s.m.cpus) > 0 {
		spec.CPU = s.m.cpus[number%uint64(len(s.m.cpus))]
	}
	if s.owner > 0 {
		for _, path := range []string{s.dir, box, zygote} {
			if err := os.Chown(path, s.owner, s.owner); err != nil {
				return err
			}
		}
	}
	message, err := json.Marshal(spec)
	if err != nil {
		return err
	}
	if err := send(s.sock, message); err != nil {
		return err
	}
	return s.instructZygote(filterAlone(), &alone)
}

// removeStaleFolders removes the folders of dead harnesses.
func removeStaleFolders() {
	found, _ := filepath.Glob(filepath.Join(os.TempDir(), folderPrefix+"*"))
	for _, path := range found {
		number, _, _ := strings.Cut(strings.TrimPrefix(filepath.Base(path), folderPrefix), "-")
		if pid, err := strconv.Atoi(number); err == nil && errors.Is(unix.Kill(pid, 0), unix.ESRCH) {
			_ = os.RemoveAll(path) // fails for another user's
		}
	}
}

// ownThreads counts the threads of this process's user: without user namespaces the kernel limits them
// together.
type ownThreads struct {
	mu   sync.Mutex
	at   time.Time
	last int
}

// count is cached for a tenth of a second: looking at all processes takes as long as running a program.
func (o *ownThreads) count() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	if now := time.Now(); now.Sub(o.at) > 100*time.Millisecond {
		o.at, o.last = now, threadsOf(os.Getuid())
	}
	return o.last
}

// threadsOf counts the threads of all processes whose real user id is uid.
func threadsOf(uid int) (n int) {
	list, _ := filepath.Glob("/proc/[0-9]*/status")
	real := fmt.Appendf(nil, "\nUid:\t%d\t", uid)
	for _, path := range list {
		text, err := os.ReadFile(path)
		if err != nil || !bytes.Contains(text, real) {
			continue
		}
		if _, rest, ok := bytes.Cut(text, []byte("\nThreads:\t")); ok {
			line, _, _ := bytes.Cut(rest, []byte("\n"))
			k, _ := strconv.Atoi(string(line))
			n += k
		}
	}
	return n
}

// refusedAlone lists calls of allowed that reach beyond the process or change what Landlock does not guard:
// they get EPERM.
func refusedAlone() []uintptr {
	return append([]uintptr{
		unix.SYS_EXECVE, unix.SYS_EXECVEAT, unix.SYS_TKILL, unix.SYS_PIDFD_OPEN, unix.SYS_PIDFD_SEND_SIGNAL,
		unix.SYS_GET_ROBUST_LIST, unix.SYS_FCHMOD, unix.SYS_FCHMODAT, unix.SYS_FCHOWN, unix.SYS_FCHOWNAT,
		unix.SYS_UTIMENSAT, unix.SYS_TRUNCATE, unix.SYS_INOTIFY_INIT1, unix.SYS_INOTIFY_ADD_WATCH, unix.SYS_MKNODAT,
	}, legacyRefusedAlone()...)
}

// filterAlone returns the filter of a single-process program, with ownPID in place of the program's pid.
func filterAlone() []byte {
	var p program
	p.start()
	// clone: only a thread.
	p.jump(unix.BPF_JEQ, unix.SYS_CLONE, 0, 6)
	p.load(dataArgs)
	p.jump(unix.BPF_JSET, newNamespaces, 0, 1)
	p.ret(actKill)
	p.jump(unix.BPF_JSET, unix.CLONE_THREAD, 0, 1)
	p.ret(actAllow)
	p.ret(actEPERM)
	// A signal only to itself, and not the filter's own.
	for _, c := range []struct{ nr, signal uint32 }{{unix.SYS_KILL, 1}, {unix.SYS_TGKILL, 2}} {
		p.jump(unix.BPF_JEQ, c.nr, 0, 7)
		p.load(dataArgs + 8*c.signal)
		p.jump(unix.BPF_JEQ, uint32(unix.SIGSYS), 0, 1)
		p.ret(actEPERM)
		p.load(dataArgs)
		p.jump(unix.BPF_JEQ, ownPID, 0, 1)
		p.ret(actAllow)
		p.ret(actEPERM)
	}
	const fioSetOwn, siocSetGroup = 0x8901, 0x8902 // asm-generic/sockios.h
	p.onArg(unix.SYS_IOCTL, 1, unix.BPF_JEQ, []uint32{unix.TIOCSTI, unix.TIOCLINUX, unix.TIOCSCTTY, fioSetOwn,
		siocSetGroup}, actEPERM, actAllow)
	p.onArg(unix.SYS_FCNTL, 1, unix.BPF_JEQ, []uint32{unix.F_SETOWN, unix.F_SETOWN_EX, unix.F_SETSIG, unix.F_SETLEASE,
		unix.F_NOTIFY}, actEPERM, actAllow)
	p.onArg(unix.SYS_SOCKETPAIR, 0, unix.BPF_JEQ, []uint32{unix.AF_UNIX}, actAllow, actEPERM)
	p.onArg(unix.SYS_PRLIMIT64, 0, unix.BPF_JEQ, []uint32{0}, actAllow, actEPERM)
	p.onArg(unix.SYS_PERSONALITY, 0, unix.BPF_JEQ, []uint32{0xffffffff}, actAllow, actEPERM)
	p.onArg(unix.SYS_PRCTL, 0, unix.BPF_JEQ, []uint32{unix.PR_SET_NAME, unix.PR_GET_NAME, unix.PR_GET_PDEATHSIG,
		unix.PR_GET_DUMPABLE,
		unix.PR_SET_VMA, unix.PR_SET_NO_NEW_PRIVS, unix.PR_GET_NO_NEW_PRIVS, unix.PR_GET_SECCOMP, unix.PR_CAPBSET_READ,
		unix.PR_SET_TIMERSLACK, unix.PR_GET_TIMERSLACK}, actAllow, actEPERM)
	for _, nr := range refusedAlone() {
		p.on(nr, actEPERM)
	}
	p.lists()
	return p.bytes()
}
