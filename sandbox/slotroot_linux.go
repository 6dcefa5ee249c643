//go:build linux && (amd64 || arm64)

package sandbox

import (
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// slotName is argv[0] when this program is executed again to become a slot; slotSocket is the descriptor on
// which it then finds the harness.
const (
	slotName   = "exp-sandbox-slot"
	slotSocket = 3

	zygotePath = "/zygote.py" // inside the root
)

//go:embed zygote.py
var zygoteSource string

// slotSpec is the first message to a slot: the content of its root, and the interpreter to become.
// Descriptors of trees, if any, come with it in the order of Binds.
type slotSpec struct {
	Binds   []bind
	Links   map[string]string // symbolic links, by path
	CPU     int               // the one processor; -1: any
	Exe     string            // inside the root
	Args    []string
	Env     []string
	NoFile  uint64 // maximum number of descriptors
	OwnTree bool   // no descriptors come: the slot opens the sources itself
	Alone   bool   // no namespaces to build a root in
}

// bind is a file or folder of the host, visible read-only.
type bind struct {
	Source, Target string
	Device         bool // a device node: keep it usable as a device
}

// Enter must be the first call of main and TestMain. In a process that was started to become a slot it
// builds the slot and does not return unless that fails; then code is the exit status. In every other
// process it returns ok false.
func Enter() (code int, ok bool) {
	if len(os.Args) != 1 || os.Args[0] != slotName {
		return 0, false
	}
	if kind, err := unix.GetsockoptInt(slotSocket, unix.SOL_SOCKET, unix.SO_TYPE); err != nil ||
		kind != unix.SOCK_SEQPACKET {
		return 0, false
	}
	runtime.LockOSThread() // personality and affinity belong to the thread that becomes the interpreter
	err := becomeSlot()
	_ = unix.Send(slotSocket, fmt.Appendf(nil, `{"broken":%q}`, err.Error()), unix.MSG_NOSIGNAL)
	return 1, true
}

func becomeSlot() error {
	message, trees, err := receive(slotSocket, 1<<20)
	if err != nil {
		return err
	}
	var spec slotSpec
	if err := json.Unmarshal(message, &spec); err != nil {
		return err
	}
	if spec.Alone {
		return becomeInterpreter(spec)
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make mounts private: %w", err)
	}
	if spec.OwnTree {
		if trees, err = openTrees(spec.Binds); err != nil {
			return err
		}
	}
	if len(trees) != len(spec.Binds) {
		return fmt.Errorf("%d trees for %d binds", len(trees), len(spec.Binds))
	}
	if err := buildRoot(spec, trees); err != nil {
		return err
	}
	return becomeInterpreter(spec)
}

// openTrees opens a detached, read-only copy of each source.
func openTrees(binds []bind) (fds []int, err error) {
	defer func() {
		if err != nil {
			closeAll(fds)
		}
	}()
	for _, b := range binds {
		fd, err := unix.OpenTree(unix.AT_FDCWD, b.Source,
			unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE)
		if err != nil {
			return fds, fmt.Errorf("open_tree %s: %w", b.Source, err)
		}
		fds = append(fds, fd)
		attr := &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV}
		if b.Device {
			attr.Attr_set = unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NOEXEC
		}
		if err := unix.MountSetattr(fd, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, attr); err != nil {
			return fds, fmt.Errorf("mount_setattr %s: %w", b.Source, err)
		}
	}
	return fds, nil
}

func closeAll(fds []int) {
	for _, fd := range fds {
		_ = unix.Close(fd)
	}
}

// buildRoot builds a file system from the binds only and moves into it.
func buildRoot(spec slotSpec, trees []int) error {
	const at = "/tmp" // any existing folder; what it holds was opened before
	if err := unix.Mount("tmpfs", at, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV,
		"mode=755,size=1m,nr_inodes=1k"); err != nil {
		return fmt.Errorf("mount tmpfs: %w", err)
	}
	for i, b := range spec.Binds {
		target := filepath.Join(at, b.Target)
		var st unix.Stat_t
		if err := unix.Fstat(trees[i], &st); err != nil {
			return err
		}
		if err := makePlace(target, st.Mode&unix.S_IFMT == unix.S_IFDIR); err != nil {
			return err
		}
		if err := unix.MoveMount(trees[i], "", unix.AT_FDCWD, target, unix.MOVE_MOUNT_F_EMPTY_PATH); err != nil {
			return fmt.Errorf("move_mount %s: %w", b.Target, err)
		}
	}
	closeAll(trees)
	for _, dir := range []string{"proc", "box", "dev", "etc"} {
		if err := os.MkdirAll(filepath.Join(at, dir), 0o755); err != nil {
			return err
		}
	}
	for name, text := range madeUpFiles() {
		if err := os.WriteFile(filepath.Join(at, name), []byte(text), 0o444); err != nil {
			return err
		}
	}
	for name, to := range spec.Links {
		path := filepath.Join(at, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.Symlink(to, path); err != nil && !errors.Is(err, os.ErrExist) {
			return err
		}
	}
	if err := os.WriteFile(filepath.Join(at, "init"), initProgram(), 0o555); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(at, zygotePath), []byte(zygoteSource), 0o444); err != nil {
		return err
	}
	if err := unix.Mount("proc", filepath.Join(at, "proc"), "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC,
		"subset=pid"); err != nil {
		return fmt.Errorf("mount proc: %w", err)
	}
	if err := unix.Chdir(at); err != nil {
		return err
	}
	if err := unix.PivotRoot(".", "."); err != nil {
		return fmt.Errorf("pivot_root: %w", err)
	}
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return fmt.Errorf("detach the old root: %w", err)
	}
	if err := unix.Chdir("/"); err != nil {
		return err
	}
	if err := unix.Mount("", "/", "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY|unix.MS_NOSUID|unix.MS_NODEV,
		""); err != nil {
		return fmt.Errorf("make the root read-only: %w", err)
	}
	return nil
}

// makePlace creates a mount point.
func makePlace(path string, dir bool) error {
	if dir {
		return os.MkdirAll(path, 0o755)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o444)
	if err != nil {
		return err
	}
	return f.Close()
}

// madeUpFiles are files the C library looks for; they reveal nothing of the host.
func madeUpFiles() map[string]string {
	return map[string]string{
		"etc/passwd":        "root:x:0:0:root:/box:/bin/false\nuser:x:1000:1000:user:/box:/bin/false\n",
		"etc/group":         "root:x:0:\nuser:x:1000:\n",
		"etc/hostname":      "sandbox\n",
		"etc/hosts":         "127.0.0.1 localhost sandbox\n",
		"etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n",
	}
}

// becomeInterpreter replaces this process by the interpreter.
func becomeInterpreter(spec slotSpec) error {
	if err := unix.Sethostname([]byte("sandbox")); err != nil && !spec.Alone {
		return fmt.Errorf("sethostname: %w", err)
	}
	if spec.CPU >= 0 {
		var set unix.CPUSet
		set.Set(spec.CPU)
		if err := unix.SchedSetaffinity(0, &set); err != nil {
			return fmt.Errorf("sched_setaffinity: %w", err)
		}
	}
	// Without address randomisation id() and set order repeat from slot to slot.
	const noRandomize = 0x0040000
	if _, _, errno := unix.RawSyscall(unix.SYS_PERSONALITY, noRandomize, 0, 0); errno != 0 {
		return fmt.Errorf("personality: %w", errno)
	}
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: spec.NoFile, Max: spec.NoFile}); err != nil {
		return fmt.Errorf("setrlimit: %w", err)
	}
	_ = unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{})
	unix.Umask(0o022)
	// The harness may have inherited descriptors unknown to it.
	if err := unix.CloseRange(slotSocket+1, ^uint(0)>>32, unix.CLOSE_RANGE_CLOEXEC); err != nil {
		return fmt.Errorf("close_range: %w", err)
	}
	return fmt.Errorf("execute %s: %w", spec.Exe, syscall.Exec(spec.Exe, spec.Args, spec.Env))
}
