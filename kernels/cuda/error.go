//go:build cuda

package cuda

import (
	"errors"
	"fmt"
	"reflect"
)

// ErrNoDriver is returned where the driver's library is missing: there is no GPU, or its
// driver is not installed.
var ErrNoDriver = errors.New("no CUDA driver")

// Error is a failure that the driver reported. Codes are those of CUresult.
type Error struct {
	Op   string // what failed: "copy to the device"
	Code int
	Text string // what the code says
	Help string // what to do
}

func (e *Error) Error() string { return fmt.Sprintf("cuda: %s: %s (code %d)", e.Op, e.Text, e.Code) }

// Hint says what to do.
func (e *Error) Hint() string { return e.Help }

// ExitCode is 7: the machine lacks something.
func (e *Error) ExitCode() int { return 7 }

// Lasting reports whether the device's context is lost: every later call fails too, and only
// another process can use the device.
func (e *Error) Lasting() bool { return e.Code >= 700 && e.Code <= 719 || e.Code == eccError }

// The codes that the package itself looks for.
const (
	outOfMemory  = 2
	noDevice     = 100
	eccError     = 214
	oldPTX       = 222
	notSupported = 801
)

const lost = "resume the run; if it happens again, report it with the output of exp doctor --json"

// meanings has the codes that a user can do something about.
func meanings() map[int]Error {
	return map[int]Error{
		outOfMemory: {Text: "the device is out of memory",
			Help: "exp run --dry-run shows what a run needs; nvidia-smi lists the other programs on the device"},
		46: {Text: "another process has the device for itself",
			Help: "stop that process, or set the device's compute mode to default"},
		noDevice: {Text: "the driver sees no device",
			Help: "check nvidia-smi and CUDA_VISIBLE_DEVICES; a container needs the devices passed on"},
		101: {Text: "no such device", Help: "exp doctor lists the devices"},
		209: {Text: "the kernels do not run on this device", Help: "compute capability 8.0 or newer is needed"},
		eccError: {Text: "the device's memory has an error that cannot be corrected",
			Help: "resume the run on another device, and have this one examined"},
		oldPTX: {Text: "the driver is too old", Help: "install driver 525 or newer"},
		221: {Text: "the driver's compiler is missing",
			Help: "install the driver's library libnvidia-ptxjitcompiler; a container needs it passed on"},
		304: {Text: "the system refused a call",
			Help: "check the rights on /dev/nvidia*, and the system's log"},
		700:          {Text: "a kernel used an illegal address", Help: lost},
		702:          {Text: "a kernel took too long", Help: "use a device that drives no screen"},
		714:          {Text: "a kernel's stack is damaged", Help: lost},
		715:          {Text: "a kernel met an illegal instruction", Help: lost},
		716:          {Text: "a kernel used a misaligned address", Help: lost},
		717:          {Text: "a kernel used the wrong kind of address", Help: lost},
		718:          {Text: "a kernel jumped to a wrong address", Help: lost},
		719:          {Text: "a kernel failed", Help: lost},
		notSupported: {Text: "the device does not support this", Help: "exp doctor lists the devices"},
		802:          {Text: "the system is not ready", Help: "start the service nvidia-fabricmanager"},
		803: {Text: "the driver's library and its kernel module differ",
			Help: "reboot, or load the kernel module of the installed driver"},
		999: {Text: "the driver failed", Help: "check nvidia-smi and the system's log; a reboot may help"},
	}
}

// errorOf returns the error for a code, nil for 0.
func errorOf(op string, code int) error {
	if code == 0 {
		return nil
	}
	e, ok := meanings()[code]
	if !ok {
		e = Error{Text: "the driver reports an error",
			Help: "look the code up under CUresult in the driver's documentation"}
	}
	e.Op, e.Code = op, code
	return &e
}

// wrap returns the error for one of package cu, whose type has no name outside it but is an
// integer.
func wrap(op string, err error) error {
	if err == nil {
		return nil
	}
	if v := reflect.ValueOf(err); v.Kind() == reflect.Int {
		return errorOf(op, int(v.Int()))
	}
	return fmt.Errorf("cuda: %s: %w", op, err)
}
