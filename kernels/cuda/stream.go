//go:build cuda

package cuda

/*
#include "device.h"
*/
import "C"

import (
	"encoding/hex"
	"runtime"
	"unsafe"

	"gorgonia.org/cu"
)

// InContext calls f on a thread where the device's context is the current one, with the stream
// of the backend's work, for libraries that queue work of their own there. A failure is kept.
func (b *Backend) InContext(f func(stream unsafe.Pointer)) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := cu.SetCurrentContext(b.context); err != nil && b.err == nil {
		b.err = wrap(b.name, "enter the device", err)
	}
	b.submit()
	f(unsafe.Pointer(b.queue()))
}

// Idle reports whether the queued work has ended. Work that failed has: Sync says how.
func (b *Backend) Idle() bool {
	b.submit()
	return b.err != nil || C.device_query(b.ctx(), b.queue()) != C.CUDA_ERROR_NOT_READY
}

// UUID identifies the device among all.
func (b *Backend) UUID() (string, error) {
	var id C.CUuuid
	if err := errorOf(b.name, "identify the device", int(C.cuDeviceGetUuid(&id, C.CUdevice(b.dev)))); err != nil {
		return "", err
	}
	return hex.EncodeToString(C.GoBytes(unsafe.Pointer(&id), C.int(unsafe.Sizeof(id)))), nil
}
