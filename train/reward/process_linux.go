package reward

import (
	"os/exec"
	"syscall"
)

// ownGroup puts the program and its children into a process group, and has the system
// end the program if we die without doing so.
func ownGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// killGroup ends the program and what it started, but for children that left the group.
func killGroup(cmd *exec.Cmd) {
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // nothing left is fine
}
