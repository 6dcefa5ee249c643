//go:build linux && (amd64 || arm64)

package sandbox

import (
	"encoding/binary"
	"maps"
	"slices"

	"golang.org/x/sys/unix"
)

// The system-call filter, in classic BPF (linux/Documentation/userspace-api/seccomp_filter.rst). Calls on
// no list get ENOSYS, as on a kernel that lacks them.

// allowed lists the calls that CPython, glibc, V8, Go and libstdc++ make and that every architecture has.
// legacyAllowed has the rest.
func allowed() []uintptr {
	return append([]uintptr{
		unix.SYS_READ, unix.SYS_WRITE, unix.SYS_READV, unix.SYS_WRITEV, unix.SYS_PREAD64, unix.SYS_PWRITE64,
		unix.SYS_PREADV, unix.SYS_PWRITEV, unix.SYS_PREADV2, unix.SYS_PWRITEV2, unix.SYS_OPENAT, unix.SYS_OPENAT2,
		unix.SYS_CLOSE, unix.SYS_CLOSE_RANGE, unix.SYS_LSEEK, unix.SYS_FSTAT, unix.SYS_STATX, unix.SYS_FSTATFS,
		unix.SYS_STATFS, unix.SYS_FACCESSAT, unix.SYS_FACCESSAT2, unix.SYS_READLINKAT, unix.SYS_GETDENTS64,
		unix.SYS_GETCWD, unix.SYS_CHDIR, unix.SYS_FCHDIR, unix.SYS_MKDIRAT, unix.SYS_UNLINKAT, unix.SYS_RENAMEAT2,
		unix.SYS_LINKAT, unix.SYS_SYMLINKAT, unix.SYS_FCHMOD, unix.SYS_FCHMODAT, unix.SYS_FCHOWN, unix.SYS_FCHOWNAT,
		unix.SYS_UTIMENSAT, unix.SYS_FTRUNCATE, unix.SYS_TRUNCATE, unix.SYS_FALLOCATE, unix.SYS_FSYNC,
		unix.SYS_FDATASYNC, unix.SYS_SYNC_FILE_RANGE, unix.SYS_FADVISE64, unix.SYS_UMASK, unix.SYS_DUP, unix.SYS_DUP3,
		unix.SYS_PIPE2, unix.SYS_SENDFILE, unix.SYS_SPLICE, unix.SYS_TEE, unix.SYS_COPY_FILE_RANGE, unix.SYS_READAHEAD,
		unix.SYS_FCNTL, unix.SYS_MKNODAT, unix.SYS_PSELECT6, unix.SYS_PPOLL, unix.SYS_EPOLL_CREATE1,
		unix.SYS_EPOLL_CTL, unix.SYS_EPOLL_PWAIT, unix.SYS_EPOLL_PWAIT2, unix.SYS_EVENTFD2, unix.SYS_TIMERFD_CREATE,
		unix.SYS_TIMERFD_SETTIME, unix.SYS_TIMERFD_GETTIME, unix.SYS_SIGNALFD4, unix.SYS_INOTIFY_INIT1,
		unix.SYS_INOTIFY_ADD_WATCH, unix.SYS_INOTIFY_RM_WATCH, unix.SYS_MMAP, unix.SYS_MUNMAP, unix.SYS_MPROTECT,
		unix.SYS_MREMAP, unix.SYS_MADVISE, unix.SYS_MSYNC, unix.SYS_MINCORE, unix.SYS_BRK, unix.SYS_MLOCK,
		unix.SYS_MLOCK2, unix.SYS_MUNLOCK, unix.SYS_MEMBARRIER, unix.SYS_RSEQ, unix.SYS_PKEY_ALLOC, unix.SYS_PKEY_FREE,
		unix.SYS_PKEY_MPROTECT, unix.SYS_EXIT, unix.SYS_EXIT_GROUP, unix.SYS_WAIT4, unix.SYS_WAITID, unix.SYS_EXECVE,
		unix.SYS_EXECVEAT, unix.SYS_SET_TID_ADDRESS, unix.SYS_FUTEX, unix.SYS_SET_ROBUST_LIST,
		unix.SYS_GET_ROBUST_LIST, unix.SYS_GETPID, unix.SYS_GETPPID, unix.SYS_GETTID, unix.SYS_GETPGID,
		unix.SYS_SETPGID, unix.SYS_GETSID, unix.SYS_SETSID, unix.SYS_GETUID, unix.SYS_GETEUID, unix.SYS_GETGID,
		unix.SYS_GETEGID, unix.SYS_GETRESUID, unix.SYS_GETRESGID, unix.SYS_GETGROUPS, unix.SYS_CAPGET, unix.SYS_GETCPU,
		unix.SYS_GETRANDOM, unix.SYS_UNAME, unix.SYS_SYSINFO, unix.SYS_GETRUSAGE, unix.SYS_TIMES, unix.SYS_GETRLIMIT,
		unix.SYS_SETRLIMIT, unix.SYS_GETPRIORITY, unix.SYS_SCHED_YIELD, unix.SYS_SCHED_GETAFFINITY,
		unix.SYS_SCHED_GETPARAM, unix.SYS_SCHED_GETSCHEDULER, unix.SYS_SCHED_GET_PRIORITY_MAX,
		unix.SYS_SCHED_GET_PRIORITY_MIN, unix.SYS_SCHED_RR_GET_INTERVAL, unix.SYS_CLOCK_GETTIME, unix.SYS_CLOCK_GETRES,
		unix.SYS_CLOCK_NANOSLEEP, unix.SYS_NANOSLEEP, unix.SYS_GETTIMEOFDAY, unix.SYS_GETITIMER, unix.SYS_SETITIMER,
		unix.SYS_TIMER_CREATE, unix.SYS_TIMER_SETTIME, unix.SYS_TIMER_GETTIME, unix.SYS_TIMER_GETOVERRUN,
		unix.SYS_TIMER_DELETE, unix.SYS_RT_SIGACTION, unix.SYS_RT_SIGPROCMASK, unix.SYS_RT_SIGRETURN,
		unix.SYS_RT_SIGPENDING, unix.SYS_RT_SIGSUSPEND, unix.SYS_RT_SIGTIMEDWAIT, unix.SYS_SIGALTSTACK,
		unix.SYS_RESTART_SYSCALL, unix.SYS_PIDFD_OPEN, unix.SYS_SENDTO, unix.SYS_RECVFROM, unix.SYS_SENDMSG,
		unix.SYS_RECVMSG, unix.SYS_SENDMMSG, unix.SYS_RECVMMSG, unix.SYS_SHUTDOWN, unix.SYS_GETSOCKNAME,
		unix.SYS_GETPEERNAME, unix.SYS_SETSOCKOPT, unix.SYS_GETSOCKOPT,
	}, legacyAllowed()...)
}

// denied lists calls that honest programs make by accident, or that a library tries and can do without:
// they get EPERM.
func denied() []uintptr {
	return []uintptr{
		unix.SYS_SOCKET, unix.SYS_BIND, unix.SYS_CONNECT, unix.SYS_LISTEN, unix.SYS_ACCEPT, unix.SYS_ACCEPT4,
		unix.SYS_SETPRIORITY, unix.SYS_SCHED_SETAFFINITY, unix.SYS_SCHED_SETATTR, unix.SYS_SCHED_SETPARAM,
		unix.SYS_SCHED_SETSCHEDULER, unix.SYS_IOPRIO_SET, unix.SYS_SETUID, unix.SYS_SETGID, unix.SYS_SETREUID,
		unix.SYS_SETREGID, unix.SYS_SETRESUID, unix.SYS_SETRESGID, unix.SYS_SETGROUPS, unix.SYS_SETFSUID,
		unix.SYS_SETFSGID, unix.SYS_CAPSET, unix.SYS_FLOCK, unix.SYS_CHROOT, unix.SYS_SYNC, unix.SYS_SYSLOG,
		unix.SYS_VHANGUP, unix.SYS_MLOCKALL, unix.SYS_RT_SIGQUEUEINFO, unix.SYS_RT_TGSIGQUEUEINFO,
		unix.SYS_PERF_EVENT_OPEN, unix.SYS_CLOCK_SETTIME, unix.SYS_SETTIMEOFDAY, unix.SYS_CLOCK_ADJTIME,
		unix.SYS_ADJTIMEX, unix.SYS_SETHOSTNAME, unix.SYS_SETDOMAINNAME,
	}
}

// deadly lists calls that only an attack makes: they kill the process.
func deadly() []uintptr {
	return []uintptr{
		unix.SYS_PTRACE, unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV, unix.SYS_PIDFD_GETFD, unix.SYS_KCMP,
		unix.SYS_PROCESS_MADVISE, unix.SYS_MOVE_PAGES, unix.SYS_MIGRATE_PAGES, unix.SYS_MOUNT, unix.SYS_UMOUNT2,
		unix.SYS_PIVOT_ROOT, unix.SYS_UNSHARE, unix.SYS_SETNS, unix.SYS_OPEN_TREE, unix.SYS_MOVE_MOUNT,
		unix.SYS_FSOPEN, unix.SYS_FSCONFIG, unix.SYS_FSMOUNT, unix.SYS_FSPICK, unix.SYS_MOUNT_SETATTR, unix.SYS_KEYCTL,
		unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY, unix.SYS_BPF, unix.SYS_USERFAULTFD, unix.SYS_INIT_MODULE,
		unix.SYS_FINIT_MODULE, unix.SYS_DELETE_MODULE, unix.SYS_KEXEC_LOAD, unix.SYS_REBOOT,
		unix.SYS_NAME_TO_HANDLE_AT, unix.SYS_OPEN_BY_HANDLE_AT, unix.SYS_FANOTIFY_INIT, unix.SYS_FANOTIFY_MARK,
		unix.SYS_SWAPON, unix.SYS_SWAPOFF, unix.SYS_QUOTACTL, unix.SYS_ACCT, unix.SYS_LOOKUP_DCOOKIE,
		unix.SYS_NFSSERVCTL,
	}
}

// Actions of a filter and the offsets of struct seccomp_data {int nr; __u32 arch;
// __u64 ip; __u64 args[6]}.
const (
	actAllow = unix.SECCOMP_RET_ALLOW
	actKill  = unix.SECCOMP_RET_KILL_PROCESS
	actEPERM = unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)
	actNosys = unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)

	dataNr, dataArch, dataArgs = 0, 4, 16
)

// program is a filter under construction.
type program []unix.SockFilter

func (p *program) stmt(code uint16, k uint32) { *p = append(*p, unix.SockFilter{Code: code, K: k}) }

func (p *program) jump(test uint16, k uint32, yes, no uint8) {
	*p = append(*p, unix.SockFilter{Code: unix.BPF_JMP | test | unix.BPF_K, Jt: yes, Jf: no, K: k})
}

func (p *program) load(offset uint32) { p.stmt(unix.BPF_LD|unix.BPF_W|unix.BPF_ABS, offset) }
func (p *program) ret(action uint32)  { p.stmt(unix.BPF_RET|unix.BPF_K, action) }

// on applies an action to call nr, whose number is loaded.
func (p *program) on(nr uintptr, action uint32) {
	p.jump(unix.BPF_JEQ, uint32(nr), 0, 1)
	p.ret(action)
}

// onArg decides about call nr by the low 32 bits of an argument: then if the test holds for a value, else
// otherwise. The kernel takes ints from these arguments and so ignores the high half too.
func (p *program) onArg(nr uintptr, arg uint32, test uint16, values []uint32, then, otherwise uint32) {
	p.jump(unix.BPF_JEQ, uint32(nr), 0, uint8(2*len(values)+2))
	p.load(dataArgs + 8*arg) // little endian: the low half comes first
	for _, v := range values {
		p.jump(test, v, 0, 1)
		p.ret(then)
	}
	p.ret(otherwise)
}

// start rejects other binary interfaces and loads the call's number.
func (p *program) start() {
	p.load(dataArch)
	p.jump(unix.BPF_JEQ, auditArch, 1, 0)
	p.ret(actKill)
	p.load(dataNr)
	p.abi()
}

// lists applies the lists, and the default to calls on none: a binary search over ranges of numbers with
// the same action. The kernel translates the filter for every run and then tries it on every number;
// testing one by one took it a third of a millisecond.
func (p *program) lists() {
	answers := map[uint32]uint32{}
	for _, list := range []struct {
		calls  []uintptr
		action uint32
	}{{deadly(), actKill}, {denied(), actEPERM}, {allowed(), actAllow}} { // the last match wins
		for _, nr := range list.calls {
			answers[uint32(nr)] = list.action
		}
	}
	ranges := []numberRange{{0, actNosys}}
	add := func(from, action uint32) {
		switch last := &ranges[len(ranges)-1]; {
		case last.action == action:
		case last.from == from:
			last.action = action
		default:
			ranges = append(ranges, numberRange{from, action})
		}
	}
	for _, nr := range slices.Sorted(maps.Keys(answers)) {
		add(nr, answers[nr])
		if _, ok := answers[nr+1]; !ok {
			add(nr+1, actNosys)
		}
	}
	p.search(ranges)
}

// numberRange is the calls from a number up to the next range, and their action.
type numberRange struct{ from, action uint32 }

// search picks the action by the range of the loaded number: tests first, then one return per action. It is
// built from its end, because tests only jump forward.
func (p *program) search(ranges []numberRange) {
	var reversed program
	returns := map[uint32]int{} // position of the return from the end, by action
	for _, r := range ranges {
		if _, ok := returns[r.action]; !ok {
			returns[r.action] = len(reversed)
			reversed.ret(r.action)
		}
	}
	var decide func(ranges []numberRange) int // returns the position of the first test
	decide = func(ranges []numberRange) int {
		if len(ranges) == 1 {
			return returns[ranges[0].action]
		}
		middle := len(ranges) / 2
		yes, no := decide(ranges[middle:]), decide(ranges[:middle])
		here := len(reversed)
		if here-1-min(yes, no) > 255 {
			panic("sandbox: the filter's lists are longer than its tests can jump")
		}
		reversed.jump(unix.BPF_JGE, ranges[middle].from, uint8(here-1-yes), uint8(here-1-no))
		return here
	}
	decide(ranges)
	slices.Reverse(reversed)
	*p = append(*p, reversed...)
}

// bytes is p as the kernel reads it.
func (p program) bytes() (out []byte) {
	for _, i := range p {
		out = binary.NativeEndian.AppendUint16(out, i.Code)
		out = append(out, i.Jt, i.Jf)
		out = binary.NativeEndian.AppendUint32(out, i.K)
	}
	return out
}

// newNamespaces has every clone flag that creates a namespace.
const newNamespaces = unix.CLONE_NEWNS | unix.CLONE_NEWCGROUP | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC |
	unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNET

// filter returns the program's system-call filter in the kernel's format. memfd allows memory files: only a
// cgroup sees their pages.
func filter(memfd bool) []byte {
	var p program
	p.start()
	p.onArg(unix.SYS_CLONE, 0, unix.BPF_JSET, []uint32{newNamespaces}, actKill, actAllow)
	p.onArg(unix.SYS_IOCTL, 1, unix.BPF_JEQ, []uint32{unix.TIOCSTI, unix.TIOCLINUX, unix.TIOCSCTTY},
		actEPERM, actAllow)
	p.onArg(unix.SYS_SOCKETPAIR, 0, unix.BPF_JEQ, []uint32{unix.AF_UNIX}, actAllow, actEPERM)
	p.onArg(unix.SYS_PRLIMIT64, 0, unix.BPF_JEQ, []uint32{0}, actAllow, actEPERM)
	p.onArg(unix.SYS_PERSONALITY, 0, unix.BPF_JEQ, []uint32{0xffffffff}, actAllow, actEPERM)
	p.onArg(unix.SYS_PRCTL, 0, unix.BPF_JEQ, []uint32{unix.PR_SET_NAME, unix.PR_GET_NAME, unix.PR_SET_PDEATHSIG,
		unix.PR_GET_PDEATHSIG,
		unix.PR_GET_DUMPABLE, unix.PR_SET_DUMPABLE, unix.PR_SET_VMA, unix.PR_SET_NO_NEW_PRIVS,
		unix.PR_GET_NO_NEW_PRIVS, unix.PR_GET_SECCOMP,
		unix.PR_SET_CHILD_SUBREAPER, unix.PR_GET_CHILD_SUBREAPER, unix.PR_CAPBSET_READ, unix.PR_SET_TIMERSLACK,
		unix.PR_GET_TIMERSLACK}, actAllow, actEPERM)
	// Only the filter may cause a SIGSYS: nobody may send one.
	sigsys := []uint32{uint32(unix.SIGSYS)}
	p.onArg(unix.SYS_KILL, 1, unix.BPF_JEQ, sigsys, actEPERM, actAllow)
	p.onArg(unix.SYS_TKILL, 1, unix.BPF_JEQ, sigsys, actEPERM, actAllow)
	p.onArg(unix.SYS_PIDFD_SEND_SIGNAL, 1, unix.BPF_JEQ, sigsys, actEPERM, actAllow)
	p.onArg(unix.SYS_TGKILL, 2, unix.BPF_JEQ, sigsys, actEPERM, actAllow)
	if memfd {
		p.on(unix.SYS_MEMFD_CREATE, actAllow)
	}
	p.lists()
	return p.bytes()
}
