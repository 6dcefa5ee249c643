package checkpoint

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// pickleText returns the opcodes that push a string.
func pickleText(s string) string {
	return "X" + string(binary.LittleEndian.AppendUint32(nil, uint32(len(s)))) + s
}

// pickleTensor returns the opcodes that push a tensor of two float32 from an offset in a
// storage of four.
func pickleTensor(offset byte) string {
	return "ctorch._utils\n_rebuild_tensor_v2\n((" + pickleText("storage") + "ctorch\nFloatStorage\n" + pickleText("0") +
		pickleText("cpu") + "K\x04tQK" + string(offset) + "K\x02\x85K\x01\x85\x89NtR"
}

// torchArchive writes a file as torch.save does, with the storage abcd….
func torchArchive(t *testing.T, path, pickle string) string {
	t.Helper()
	return writeFile(t, path, torchBytes(t, pickle))
}

func torchBytes(t testing.TB, pickle string) []byte {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for name, content := range map[string]string{"data.pkl": "\x80\x02" + pickle + ".", "data/0": "abcdefghijklmnop"} {
		w, err := z.CreateHeader(&zip.FileHeader{Name: "x/" + name, Method: zip.Store})
		if err == nil {
			_, err = w.Write([]byte(content))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// Tensors are found wherever trainers put them, under the names of a model.
func TestStateDict(t *testing.T) {
	w, v := pickleTensor(0), pickleTensor(2)
	first, second := "F32 [2] abcdefgh", "F32 [2] ijklmnop"
	for _, tt := range []struct {
		name, pickle string
		want         map[string]string
	}{
		{"flat", "}(" + pickleText("a") + w + pickleText("b") + v + "u", map[string]string{"a": first, "b": second}},
		{"in state_dict", "}(" + pickleText("state_dict") + "}" + pickleText("a") + w + "s" + pickleText("optimizer") + "}" +
			pickleText("m") + v + "su", map[string]string{"a": first}},
		{"in model", "}" + pickleText("model") + "}" + pickleText("a.b") + v + "ss", map[string]string{"a.b": second}},
		{"nested", "}(" + pickleText("a") + "}(K\x03" + w + pickleText("l") + "](N" + v + "eu" + pickleText("n") + "K\x01u",
			map[string]string{"a.3": first, "a.l.1": second}},
		{"the later of two", "}(" + pickleText("a") + w + pickleText("a") + v + "u", map[string]string{"a": second}},
		{"a tensor, then none", "}(" + pickleText("a") + w + pickleText("b") + v + pickleText("a") + "Nu",
			map[string]string{"b": second}},
		{"a list of tensors", "](" + w + v + "e", map[string]string{"0": first, "1": second}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			x := opened(t, OpenFolder, torchArchive(t, filepath.Join(t.TempDir(), "x.pt"), tt.pickle))
			if diff := cmp.Diff(tt.want, bytesOf(t, x)); diff != "" {
				t.Errorf("tensors (-want +got):\n%s", diff)
			}
		})
	}
}

// Small files must not take much time or memory.
func TestHostileStateDict(t *testing.T) {
	var many strings.Builder
	many.WriteString(pickleTensor(0) + "q\x00" + "}(")
	for i := range 60_000 {
		fmt.Fprintf(&many, "\x8c\x05%05dh\x00", i)
	}
	for _, tt := range []struct{ name, pickle, want string }{
		{"one tensor under many names", many.String() + "u", "holds more than"},
		{"a list in itself", "]q\x00(" + strings.Repeat("h\x00", 9) + "e", "values hold each other too often"},
		{"dicts in each other", "}" + pickleText("a") + "Nsq\x00" + strings.Repeat("}("+pickleText("a")+"h\x00"+
			pickleText("b")+"h\x00uq\x00", 15) + "", "values hold each other too often"},
		{"nothing", "}", "holds no tensors"},
		{"a name that safetensors reserves", "}" + pickleText("__metadata__") + pickleTensor(0) + "s",
			"no tensor can have this name"},
		{"one name in two ways", "}(" + pickleText("a.b") + pickleTensor(0) + pickleText("a") + "}" + pickleText("b") +
			pickleTensor(0) + "su", `tensor "a.b": corrupt file: is also in`},
		{"a tensor of another type", "}" + pickleText("q") + strings.ReplaceAll(pickleTensor(0), "FloatStorage",
			"QInt8Storage") + "s", `tensor "q": its storage is torch.QInt8Storage`},
		{"a damaged tensor", "}" + pickleText("deep") + "}" + pickleText("w") + pickleTensor(3) + "ss",
			`tensor "deep.w": corrupt file`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := OpenFolder(torchArchive(t, filepath.Join(t.TempDir(), "x.pt"), tt.pickle))
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}

// FuzzOpenTorch changes files of torch.save: tensors that are found can be read.
func FuzzOpenTorch(f *testing.F) {
	for _, pickle := range []string{"}" + pickleText("a") + pickleTensor(1) + "s", "](" + pickleTensor(0) + pickleTensor(2) + "e"} {
		f.Add(torchBytes(f, pickle))
	}
	for _, name := range []string{"odd.pt", "nested.pt", "refuse_global.pt"} {
		if b, err := os.ReadFile(filepath.Join(othersDir, "pytorch", name)); err == nil {
			f.Add(b)
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		x, err := OpenFolder(writeFile(t, filepath.Join(t.TempDir(), "x.pt"), b))
		if err != nil {
			return
		}
		defer x.Close()
		for name, p := range x.where {
			part := make([]byte, min(p.Bytes(), 1000))
			if _, err := io.ReadFull(x.raw(name), part); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}

// Long names take no memory each time that they are met: one key of a small file can name
// many tensors.
func TestLongNames(t *testing.T) {
	long := pickleText(strings.Repeat("k", 1<<19)) + "q\x01"
	invalid := pickleText(strings.Repeat("\xff", 1<<19)) + "q\x01"
	tensor := pickleTensor(0) + "q\x02"
	for _, tt := range []struct{ name, pickle, want string }{
		{"one tensor many times", "](" + long + tensor + "e}(h\x01](" + strings.Repeat("h\x02", 16000) + "eu", "more than 1024 bytes"},
		{"one key many times", "](" + long + tensor + "e}(" + strings.Repeat("h\x01h\x02", 16000) + "u", "more than 1024 bytes"},
		{"not UTF-8", "](" + invalid + tensor + "e}(" + strings.Repeat("h\x01h\x02", 16000) + "u", ""},
		{"arguments", "](" + long + "e}(" + pickleText("args") + "cargparse\nNamespace\n)\x81}(" + strings.Repeat("h\x01h\x01", 16000) + "ubu", "no tensors"},
	} {
		path := torchArchive(t, filepath.Join(t.TempDir(), "a.pt"), tt.pickle)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		x, err := OpenFolder(path)
		runtime.ReadMemStats(&after)
		if n := after.TotalAlloc - before.TotalAlloc; n > 64<<20 {
			t.Errorf("%s: %d MB were allocated", tt.name, n>>20)
		}
		if err == nil {
			x.Close()
		}
		if tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%s: got %v, want %q", tt.name, err, tt.want)
		}
	}
}
