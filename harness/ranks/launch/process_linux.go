package launch

import (
	"errors"
	"syscall"
)

// attributes put the launcher in a new process group, which the terminal's Ctrl-C does not
// reach, and end it with this process.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
}

// gone reports whether a process of this machine has ended.
func gone(pid int) bool { return errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) }
