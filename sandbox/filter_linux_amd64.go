package sandbox

import "golang.org/x/sys/unix"

const auditArch = unix.AUDIT_ARCH_X86_64

// abi rejects x32 calls, which share the architecture.
func (p *program) abi() {
	const x32Bit = 0x40000000
	p.jump(unix.BPF_JGE, x32Bit, 0, 1)
	p.ret(actKill)
}

// legacyAllowed lists calls that newer architectures lack.
func legacyAllowed() []uintptr {
	return []uintptr{
		unix.SYS_OPEN, unix.SYS_CREAT, unix.SYS_STAT, unix.SYS_LSTAT, unix.SYS_NEWFSTATAT, unix.SYS_ACCESS,
		unix.SYS_READLINK, unix.SYS_GETDENTS, unix.SYS_MKDIR, unix.SYS_RMDIR, unix.SYS_UNLINK, unix.SYS_RENAME,
		unix.SYS_RENAMEAT, unix.SYS_LINK, unix.SYS_SYMLINK, unix.SYS_CHMOD, unix.SYS_CHOWN, unix.SYS_LCHOWN,
		unix.SYS_UTIME, unix.SYS_UTIMES, unix.SYS_FUTIMESAT, unix.SYS_DUP2, unix.SYS_PIPE, unix.SYS_MKNOD,
		unix.SYS_SELECT, unix.SYS_POLL, unix.SYS_EPOLL_CREATE, unix.SYS_EPOLL_WAIT, unix.SYS_EVENTFD,
		unix.SYS_SIGNALFD, unix.SYS_INOTIFY_INIT, unix.SYS_FORK, unix.SYS_VFORK, unix.SYS_GETPGRP, unix.SYS_TIME,
		unix.SYS_ALARM, unix.SYS_PAUSE, unix.SYS_ARCH_PRCTL,
	}
}

// legacyRefusedAlone lists the calls that a single-process program must not make.
func legacyRefusedAlone() []uintptr {
	return []uintptr{unix.SYS_FORK, unix.SYS_VFORK, unix.SYS_CHMOD, unix.SYS_CHOWN, unix.SYS_LCHOWN, unix.SYS_UTIME,
		unix.SYS_UTIMES, unix.SYS_FUTIMESAT,
		unix.SYS_INOTIFY_INIT, unix.SYS_MKNOD}
}
