//go:build !linux

package cluster

import "os/exec"

// Allowed returns the processors that this process may use.
func Allowed() []int { return counted() }

// startOn starts a command. Only Linux keeps it on some processors.
func startOn(cmd *exec.Cmd, _ []int) error { return cmd.Start() }

// StayOn does nothing. Only Linux keeps a process on some processors.
func StayOn([]int) error { return nil }
