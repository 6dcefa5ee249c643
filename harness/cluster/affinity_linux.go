package cluster

import (
	"os"
	"os/exec"
	"runtime"
	"strconv"
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
	if err := setAffinity(0, setOf(cpus)); err != nil {
		return err
	}
	err = cmd.Start()
	if e := setAffinity(0, before); e != nil && err == nil {
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

// setAffinity sets the processors of a thread; 0 is the caller.
func setAffinity(thread int, set *cpuSet) error {
	_, _, errno := syscall.RawSyscall(syscall.SYS_SCHED_SETAFFINITY, uintptr(thread), unsafe.Sizeof(*set),
		uintptr(unsafe.Pointer(set)))
	if errno != 0 {
		return errno
	}
	return nil
}

func setOf(cpus []int) *cpuSet {
	var set cpuSet
	for _, c := range cpus {
		set[c/64] |= 1 << (c % 64)
	}
	return &set
}

// StayOn keeps all threads of this process, present and future, on some processors; with none,
// it does nothing. A thread passes its processors on to those that it starts.
func StayOn(cpus []int) error {
	if len(cpus) == 0 {
		return nil
	}
	set, done := setOf(cpus), map[string]bool{}
	for found := true; found; { // threads that others start meanwhile
		found = false
		threads, err := os.ReadDir("/proc/self/task")
		if err != nil {
			return err
		}
		for _, t := range threads {
			id, err := strconv.Atoi(t.Name())
			if err != nil || done[t.Name()] {
				continue
			}
			if err := setAffinity(id, set); err != nil && err != syscall.ESRCH { // it has ended
				return err
			}
			found, done[t.Name()] = true, true
		}
	}
	return nil
}
