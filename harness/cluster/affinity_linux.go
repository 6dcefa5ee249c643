package cluster

import (
	"os/exec"
	"runtime"
	"syscall"
	"unsafe"
)

// cpuSet is the kernel's set of processors, a bit for each.
type cpuSet [1 << 16 / 64]uint64

// Allowed returns the processors that this process may use.
func Allowed() []int {
	set, err := affinity()
	if err != nil {
		return counted()
	}
	var cpus []int
	for c := range len(set) * 64 {
		if set[c/64]>>(c%64)&1 == 1 {
			cpus = append(cpus, c)
		}
	}
	return cpus
}

// startOn starts a command on some processors only; with none, on all. The child takes
// over the processors of the thread that starts it.
func startOn(cmd *exec.Cmd, cpus []int) error {
	if len(cpus) == 0 {
		return cmd.Start()
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	before, err := affinity()
	if err != nil {
		return err
	}
	var set cpuSet
	for _, c := range cpus {
		set[c/64] |= 1 << (c % 64)
	}
	if err := setAffinity(&set); err != nil {
		return err
	}
	err = cmd.Start()
	if e := setAffinity(before); e != nil && err == nil {
		err = e
	}
	return err
}

func affinity() (*cpuSet, error) {
	var set cpuSet
	_, _, errno := syscall.RawSyscall(syscall.SYS_SCHED_GETAFFINITY, 0, unsafe.Sizeof(set),
		uintptr(unsafe.Pointer(&set)))
	if errno != 0 {
		return nil, errno
	}
	return &set, nil
}

func setAffinity(set *cpuSet) error {
	_, _, errno := syscall.RawSyscall(syscall.SYS_SCHED_SETAFFINITY, 0, unsafe.Sizeof(*set),
		uintptr(unsafe.Pointer(set)))
	if errno != 0 {
		return errno
	}
	return nil
}
