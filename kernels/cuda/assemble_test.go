package cuda

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// assembler is a stand-in for ptxas that says of each kernel of a module what ptxas would.
const assembler = `#!/bin/sh
if [ "$1" = --version ]; then echo "Cuda compilation tools, release 13.5, V13.5.37"; exit; fi
sed -n 's/.*\.visible \.entry \([a-z0-9_]*\)(.*/\1/p' "$3" | while read kernel; do
	echo "ptxas info    : Compiling entry function '$kernel' for 'sm_90a'"
	echo "ptxas info    : Function properties for $kernel"
	echo "    $STACK bytes stack frame, $SPILLS bytes spill stores, 0 bytes spill loads"
	echo "ptxas info    : Used $REGISTERS registers, used 0 barriers, 4096 bytes smem, 400 bytes cmem[0]"
done
[ -z "$LOSS" ] || echo "ptxas info    : (C7510) Potential Performance Loss: wgmma.mma_async instructions are serialized"
[ -z "$BROKEN" ] || echo "ptxas add.ptx, line 9; error   : Unknown modifier" >&2
`

// `make assemble` fails on kernels that do not lie in registers, or take many more than before.
func TestAssemble(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ptxas, table := filepath.Join(dir, "ptxas"), filepath.Join(dir, "table.md")
	if err := os.WriteFile(ptxas, []byte(assembler), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ name, stack, spills, registers, variable, complaint string }{
		{"first", "0", "0", "100", "", ""},
		{"as before", "0", "0", "110", "", ""},
		{"stack", "8", "0", "100", "", "add on sm_80: 8 bytes of stack frame"},
		{"spills", "0", "12", "100", "", "add on sm_120: 12 bytes of spill stores"},
		{"registers", "0", "0", "122", "", "add on sm_100: 122 registers, 110 before"},
		{"error", "0", "0", "100", "BROKEN", "Unknown modifier"},
		{"products that wait", "0", "0", "100", "LOSS", "wgmma.mma_async instructions are serialized"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			before, _ := os.ReadFile(table)
			cmd := exec.Command("/bin/sh", "assemble.sh")
			cmd.Env = append(os.Environ(), "PTXAS="+ptxas, "TABLE="+table, "STACK="+tt.stack, "SPILLS="+tt.spills,
				"REGISTERS="+tt.registers, tt.variable+"=1")
			out, err := cmd.CombinedOutput()
			after, _ := os.ReadFile(table)
			if tt.complaint != "" {
				if err == nil || !strings.Contains(string(out), tt.complaint) || string(after) != string(before) {
					t.Errorf("%v, want %q and the old table:\n%s", err, tt.complaint, out)
				}
				return
			}
			want := "| add | add |" + strings.Repeat(" "+tt.registers+" |", 4) + " 4096 | 25 % |"
			alone := "| wgmma_matmul | wgmmamatmul | – | " + tt.registers + " | – | – | 4096 |"
			if err != nil || !strings.Contains(string(after), want) || !strings.Contains(string(after), alone) {
				t.Errorf("%v, %s\nthe table lacks %q or %q:\n%s", err, out, want, alone, after)
			}
		})
	}
}

// The table has the kernels of the modules.
func TestAssemblyTable(t *testing.T) {
	var want, got []string
	for _, source := range sources(t) {
		for line := range strings.Lines(read(t, strings.TrimSuffix(source, ".cu")+".ptx")) {
			if _, rest, ok := strings.Cut(line, ".visible .entry "); ok {
				name, _, _ := strings.Cut(rest, "(")
				want = append(want, name)
			}
		}
	}
	for line := range strings.Lines(read(t, "ASSEMBLY.md")) {
		if cells := strings.Split(line, " | "); len(cells) > 4 && !strings.HasPrefix(line, "| kernel") {
			got = append(got, strings.TrimPrefix(cells[0], "| "))
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("run make assemble: ASSEMBLY.md has %v, the modules have %v", got, want)
	}
}
