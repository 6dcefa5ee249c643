//go:build cuda

package cuda

import (
	"errors"
	"fmt"
	"reflect"

	"exp/kernels"
)

// ErrNoDriver means that the driver's library is missing: the machine has no GPU, or its
// driver is not installed.
var ErrNoDriver = errors.New("no CUDA driver")

// deviceName names device n as compute.device does.
func deviceName(n int) string { return fmt.Sprintf("cuda:%d", n) }

// The codes of CUresult that the package itself looks for.
const (
	outOfMemory  = 2
	noDevice     = 100
	eccError     = 214
	oldPTX       = 222
	notSupported = 801
)

// lasting reports whether a code means that the device's context is lost.
func lasting(code int) bool {
	return code >= 700 && code <= 719 && code != launchSize || code == eccError
}

// launchSize says that a kernel needs more registers than the device has. It loses nothing.
const launchSize = 701

// meaning explains an error code and suggests what to do.
type meaning struct{ text, help string }

const lost = "continue the run; if it happens again, report it with the output of exp doctor --json"

// meanings has the codes that a user can do something about.
func meanings() map[int]meaning {
	return map[int]meaning{
		outOfMemory: {"the device is out of memory",
			"exp run --dry-run shows what a run needs; nvidia-smi lists the other programs on the device"},
		46: {"another process has the device for itself",
			"stop that process, or set the device's compute mode to default"},
		noDevice: {"the driver sees no device",
			"check nvidia-smi and CUDA_VISIBLE_DEVICES; a container needs the devices passed on"},
		101: {"no such device", "exp doctor lists the devices"},
		209: {"the kernels do not run on this device", "compute capability 8.0 or newer is needed"},
		eccError: {"the device's memory has an error that cannot be corrected",
			"continue the run on another device, and have this one examined"},
		oldPTX: {"the driver is too old", "install driver 525 or newer"},
		221: {"the driver's compiler is missing",
			"install the driver's library libnvidia-ptxjitcompiler; a container needs it passed on"},
		304: {"the system refused a call", "check the rights on /dev/nvidia*, and the system's log"},
		700: {"a kernel used an illegal address", lost},
		launchSize: {"the device has too few registers for a kernel",
			"report it with the output of exp doctor --json"},
		702:          {"a kernel took too long", "use a device that drives no screen"},
		714:          {"a kernel's stack is damaged", lost},
		715:          {"a kernel met an illegal instruction", lost},
		716:          {"a kernel used a misaligned address", lost},
		717:          {"a kernel used the wrong kind of address", lost},
		718:          {"a kernel jumped to a wrong address", lost},
		719:          {"a kernel failed", lost},
		notSupported: {"the device does not support this", "exp doctor lists the devices"},
		802:          {"the system is not ready", "start the service nvidia-fabricmanager"},
		803: {"the driver's library and its kernel module differ",
			"reboot, or load the kernel module of the installed driver"},
		999: {"the driver failed", "check nvidia-smi and the system's log; a reboot may help"},
	}
}

// errorOf returns the error for a code, nil for 0. device is "cuda" where no device is open yet.
func errorOf(device, op string, code int) error {
	if code == 0 {
		return nil
	}
	m, ok := meanings()[code]
	if !ok {
		m = meaning{"the driver reports an error", "look the code up under CUresult in the driver's documentation"}
	}
	return &kernels.DeviceError{Device: device, Op: op, Code: code, Text: m.text, Help: m.help, Lasting: lasting(code)}
}

// wrap returns the error for one of package cu, whose type has no name outside it but is an
// integer.
func wrap(device, op string, err error) error {
	if err == nil {
		return nil
	}
	if v := reflect.ValueOf(err); v.Kind() == reflect.Int {
		return errorOf(device, op, int(v.Int()))
	}
	return fmt.Errorf("%s: %s: %w", device, op, err)
}
