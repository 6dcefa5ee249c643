package checkpoint

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestCleanMappings(t *testing.T) {
	const smaps = `00400000-00403000 r--p 00000000 fe:00 10839778                           /usr/bin/exp
Rss:                  12 kB
Anonymous:             0 kB
VmFlags: rd mr mw me sd
00403000-018f9000 r-xp 00003000 fe:00 10839778                           /usr/bin/exp
Anonymous:             0 kB
018f9000-031de000 r--p 014f9000 fe:00 10839778                           /usr/bin/exp
Anonymous:             4 kB
031de000-031e3000 rw-p 02dde000 fe:00 10839778                           /usr/bin/exp
Anonymous:             0 kB
7f02a1000000-7f02dbe28000 rw-p 00000000 00:00 0
Anonymous:             0 kB
7f02e0000000-7f02e0100000 r-xp 00000000 fe:00 42                         /usr/lib/libc.so.6
Anonymous:             0 kB
7f02e1000000-7f02e1100000 r--p 00000000 fe:00 42                         /opt/usr/bin/exp
Anonymous:             0 kB
`
	want := [][2]uintptr{{0x400000, 0x403000}, {0x403000, 0x18f9000}}
	if diff := cmp.Diff(want, cleanMappings(strings.NewReader(smaps), "/usr/bin/exp")); diff != "" {
		t.Error(diff)
	}
}

// The test drops its own program's pages; relocated tables must survive, or it crashes.
func TestDropProgramPages(t *testing.T) {
	smaps, err := os.Open("/proc/self/smaps")
	if err != nil {
		t.Skip("no /proc:", err)
	}
	defer smaps.Close()
	program, err := os.Readlink("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	if len(cleanMappings(smaps, program)) == 0 {
		t.Error("no mapping of the program equals its file; the code's should")
	}
	DropProgramPages()
	TestCleanMappings(t)
}
