//go:build linux && (amd64 || arm64)

package sandbox

import (
	"encoding/binary"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

// runFilter interprets a filter as the kernel does (net/core/filter.c), for the instructions that ours use:
// data is struct seccomp_data.
func runFilter(t *testing.T, filter, data []byte) uint32 {
	t.Helper()
	var a uint32
	for pc := 0; 8*pc < len(filter); pc++ {
		i := filter[8*pc:]
		k := binary.NativeEndian.Uint32(i[4:])
		holds := false
		switch code := binary.NativeEndian.Uint16(i); code {
		case unix.BPF_LD | unix.BPF_W | unix.BPF_ABS:
			a = binary.NativeEndian.Uint32(data[k:])
			continue
		case unix.BPF_RET | unix.BPF_K:
			return k
		case unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K:
			holds = a == k
		case unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K:
			holds = a >= k
		case unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K:
			holds = a&k != 0
		default:
			t.Fatalf("instruction %d has code %#x", pc, code)
		}
		if holds {
			pc += int(i[2])
		} else {
			pc += int(i[3])
		}
	}
	t.Fatal("the filter ends without an answer")
	return 0
}

// TestFilterLists: each call gets the action of the first list that has it; a call on no list does not
// exist.
func TestFilterLists(t *testing.T) {
	byArgument := []uintptr{unix.SYS_CLONE, unix.SYS_IOCTL, unix.SYS_SOCKETPAIR, unix.SYS_PRLIMIT64, unix.SYS_PERSONALITY, unix.SYS_PRCTL,
		unix.SYS_KILL, unix.SYS_TKILL, unix.SYS_TGKILL, unix.SYS_PIDFD_SEND_SIGNAL, unix.SYS_FCNTL}
	type list struct {
		calls  []uintptr
		answer uint32
	}
	lists := []list{{allowed(), actAllow}, {denied(), actEPERM}, {deadly(), actKill}}
	for name, c := range map[string]struct {
		filter []byte
		lists  []list
	}{
		"with others": {filter(false), lists},
		"alone":       {filterAlone(), append([]list{{refusedAlone(), actEPERM}}, lists...)},
	} {
		numbers := []uint32{0x3fffffff}
		for nr := range uint32(1100) {
			numbers = append(numbers, nr)
		}
		for _, nr := range numbers {
			if slices.Contains(byArgument, uintptr(nr)) {
				continue
			}
			want := actNosys
			for _, l := range c.lists {
				if slices.Contains(l.calls, uintptr(nr)) {
					want = l.answer
					break
				}
			}
			data := make([]byte, 64)
			binary.NativeEndian.PutUint32(data[dataNr:], nr)
			binary.NativeEndian.PutUint32(data[dataArch:], auditArch)
			if got := runFilter(t, c.filter, data); got != want {
				t.Errorf("%s: call %d: answer %#x, want %#x", name, nr, got, want)
			}
			binary.NativeEndian.PutUint32(data[dataArch:], unix.AUDIT_ARCH_I386)
			if got := runFilter(t, c.filter, data); got != actKill {
				t.Errorf("%s: call %d of another architecture: answer %#x, want %#x", name, nr, got, uint32(actKill))
			}
		}
	}
}
