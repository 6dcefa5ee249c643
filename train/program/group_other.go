//go:build !linux

package program

import "os/exec"

// Systems other than Linux get no process group: only the program itself is killed; its
// children see the end of their input.

func ownGroup(*exec.Cmd) {}

func killGroup(cmd *exec.Cmd) { _ = cmd.Process.Kill() }
