package sandbox

import "golang.org/x/sys/unix"

const auditArch = unix.AUDIT_ARCH_AARCH64

// abi does nothing: 64-bit ARM has only one.
func (*program) abi() {}

// legacyAllowed lists calls that have another name on this architecture.
func legacyAllowed() []uintptr { return []uintptr{unix.SYS_FSTATAT, unix.SYS_RENAMEAT} }

// legacyRefusedAlone lists the calls that a single-process program must not make.
func legacyRefusedAlone() []uintptr { return nil }
