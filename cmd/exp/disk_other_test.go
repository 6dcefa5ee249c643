//go:build !linux

package main

import (
	"errors"
	"syscall"
)

func ownNamespace() *syscall.SysProcAttr { return nil }

func mountDisk(string, int) error  { return errors.ErrUnsupported }
func unmountDisk(string) error     { return errors.ErrUnsupported }
func resizeDisk(string, int) error { return errors.ErrUnsupported }
