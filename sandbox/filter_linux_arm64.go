package sandbox

import "golang.org/x/sys/unix"

const auditArch = unix.AUDIT_ARCH_AARCH64

// abi: 64-bit ARM has one.
func (*program) abi() {}

// legacyAllowed are calls whose name is another on this architecture.
func legacyAllowed() []uintptr { return []uintptr{unix.SYS_FSTATAT, unix.SYS_RENAMEAT} }

// legacyRefusedAlone are those of them that a program of one process must not make.
func legacyRefusedAlone() []uintptr { return nil }
