package checkpoint

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"syscall"
)

// DropProgramPages unmaps the pages of the program's file that its start touched: embedded
// sources that it hashed, tables, code that ran once. The kernel maps a page again from its
// cache when it is next used. Without /proc nothing is dropped.
func DropProgramPages() {
	for _, m := range programMappings() {
		// An error leaves the pages where they are.
		_, _, _ = syscall.Syscall(syscall.SYS_MADVISE, m[0], m[1]-m[0], syscall.MADV_DONTNEED)
	}
}

// programMappings reads once where the program's file is mapped: the linker and the loader have done their work, and
// the kernel takes long to list the mappings of a process that has many.
var programMappings = sync.OnceValue(func() [][2]uintptr {
	program, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return nil
	}
	smaps, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		return nil
	}
	return cleanMappings(bytes.NewReader(smaps), program)
})

// cleanMappings reads /proc/PID/smaps and returns start and end of the mappings of file that
// are read-only and equal the file. A page that relocation or a debugger changed counts as
// anonymous; dropping it would lose the change.
func cleanMappings(smaps io.Reader, file string) [][2]uintptr {
	var out [][2]uintptr
	var last [2]uintptr
	var fits bool
	for s := bufio.NewScanner(smaps); s.Scan(); {
		line := s.Text()
		var from, to uintptr
		var perm string
		if n, _ := fmt.Sscanf(line, "%x-%x %s", &from, &to, &perm); n == 3 {
			last = [2]uintptr{from, to}
			fits = strings.HasSuffix(line, " "+file) && !strings.Contains(perm, "w")
			continue
		}
		if kB, ok := strings.CutPrefix(line, "Anonymous:"); ok && fits && strings.TrimSpace(kB) == "0 kB" {
			out = append(out, last)
		}
	}
	return out
}
