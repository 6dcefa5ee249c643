package main

import (
	"fmt"
	"os"
	"syscall"
)

// ownNamespace makes a process root of a namespace where it may mount.
func ownNamespace() *syscall.SysProcAttr {
	root := func(id int) []syscall.SysProcIDMap {
		return []syscall.SysProcIDMap{{ContainerID: 0, HostID: id, Size: 1}}
	}
	return &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS, UidMappings: root(os.Getuid()), GidMappings: root(os.Getgid())}
}

// mountDisk mounts an empty disk of that many bytes, in memory, over a folder.
func mountDisk(dir string, bytes int) error {
	return syscall.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=%d", bytes))
}

// resizeDisk gives a disk of mountDisk another size.
func resizeDisk(dir string, bytes int) error {
	return syscall.Mount("tmpfs", dir, "tmpfs", syscall.MS_REMOUNT, fmt.Sprintf("size=%d", bytes))
}

func unmountDisk(dir string) error { return syscall.Unmount(dir, syscall.MNT_DETACH) }
