package program

import (
	"os/exec"
	"syscall"
)

// ownGroup puts the program and its children into a process group, and makes the system
// kill the program if we die first.
func ownGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// killGroup kills the program and its descendants, except ones that left the group.
func killGroup(cmd *exec.Cmd) {
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // an empty group is fine
}
