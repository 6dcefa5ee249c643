package checkpoint

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"syscall"
	"testing"
)

// The path that the system named wins, an *Error stays unchanged, and errors with a
// remedy have a hint.
func TestFileError(t *testing.T) {
	inner := corrupt("inner", "w", "cut")
	tests := []struct {
		name       string
		err        error
		want, hint string
	}{
		{"path", &os.PathError{Op: "open", Path: "b", Err: syscall.ENOENT}, "write b: no such file or directory", ""},
		{"rename", &os.LinkError{Op: "rename", Old: "a", New: "b", Err: syscall.EDQUOT}, "write b: disk quota exceeded", "free some space"},
		{"joined", errors.Join(&os.PathError{Op: "write", Path: "b", Err: syscall.ENOSPC}, fs.ErrClosed), "write b: no space left on device", "free some space"},
		{"plain", fs.ErrPermission, "write a: permission denied", "permission"},
		{"ours", fmt.Errorf("source: %w", inner), `source: read inner: tensor "w": corrupt file: cut`, "damaged"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			err := fileError("write", "a", tt.err)
			var e *Error
			if !errors.As(err, &e) || err.Error() != tt.want || !strings.Contains(e.Hint, tt.hint) {
				t.Errorf("got %q with hint %q; want %q with %q", err, e.Hint, tt.want, tt.hint)
			}
		})
	}
}

func TestProbeErrorText(t *testing.T) {
	e := &ProbeError{Path: "d", What: "logits", Row: 1, Column: 2, Got: 0x3f800000, Want: 0x3f800001}
	if got, want := e.Error(), "merge d: logits differ at row 1, column 2: bits are 0x3f800000 in the folder, 0x3f800001 in the model"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestMismatchErrorNamesTypes(t *testing.T) {
	e := &MismatchError{Path: "d", Misshaped: []Misshape{{Name: "a", Got: "F8_E4M3 [4]", Want: "F32 [4]"},
		{Name: "b", Got: "F8_E4M3 [3]", Want: "F32 [4]"}}}
	want := "read d: the tensors do not fit:" +
		"\n  type: a: the file has F8_E4M3; only F32, BF16, F16 and F64 can be read" +
		"\n  shape: b: the file has F8_E4M3 [3], wanted F32 [4]"
	if got := e.Error(); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
