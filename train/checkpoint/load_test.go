package checkpoint

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"exp/kernels"
	"exp/kernels/cpu"
	"exp/train/model"
)

// loadFolder is the variable that names a folder for BenchmarkLoad. Without it a folder of
// random weights is made.
const loadFolder = "EXP_BENCH_MODEL"

// BenchmarkLoad reads the weights of a folder as an evaluation does, in turns with merely
// reading its files. cache=cold asks the system to forget the files before each
// time.
func BenchmarkLoad(b *testing.B) {
	dir := os.Getenv(loadFolder)
	if dir == "" {
		dir = b.TempDir()
		randomFolder(b, dir)
	}
	c, err := ReadConfig(dir)
	if err != nil {
		b.Fatal(err)
	}
	be, err := cpu.Open(cpu.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer be.Close()
	for _, bench := range []struct {
		name string
		op   func(*testing.B) error
	}{
		{"read", func(*testing.B) error { return readFolder(dir) }},
		{"backbone", func(b *testing.B) error { return loadOnce(b, be, c, dir) }},
	} {
		for _, cold := range []bool{false, true} {
			b.Run(fmt.Sprintf("op=%s/cache=%s", bench.name, map[bool]string{false: "warm", true: "cold"}[cold]), func(b *testing.B) {
				b.SetBytes(folderBytes(b, dir))
				for range b.N {
					if cold {
						b.StopTimer()
						forget(b, dir)
						b.StartTimer()
					}
					if err := bench.op(b); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

// loadOnce loads the weights and frees them; only the loading is timed.
func loadOnce(b *testing.B, be kernels.Backend, c model.Config, dir string) error {
	t, err := OpenFolder(dir)
	if err != nil {
		return err
	}
	defer t.Close()
	base, err := LoadBackbone(be, c, true, t.Frozen(), t)
	if err == nil {
		b.StopTimer()
		base.Close()
		b.StartTimer()
	}
	return err
}

// randomFolder writes a model of 0.2 GB in BF16.
func randomFolder(b *testing.B, dir string) {
	c := toyQwen2
	c.Vocab, c.Width, c.Layers, c.Heads, c.KVHeads, c.Head, c.FFN = 32000, 896, 8, 14, 2, 64, 2432
	tensors, _ := model.Layout(c, model.Heads{LM: true})
	var list []Source
	state := uint64(1)
	for _, t := range tensors {
		list = append(list, Source{Tensor: Tensor{Name: t.Name, DType: BF16, Shape: t.Shape}, Raw: func(w io.Writer) error {
			raw := make([]byte, 2*t.Len())
			for i := 0; i < len(raw); i += 2 {
				state = state*6364136223846793005 + 1442695040888963407
				binary.LittleEndian.PutUint16(raw[i:], uint16(state>>33)&0x807f|0x3c00) // ±[2⁻⁷, 2⁻⁶)
			}
			_, err := w.Write(raw)
			return err
		}})
	}
	f, err := os.Create(filepath.Join(dir, weightsFile))
	if err != nil {
		b.Fatal(err)
	}
	if err := WriteSafetensors(f, list); err != nil {
		b.Fatal(err)
	}
	if err := f.Close(); err != nil {
		b.Fatal(err)
	}
	raw, err := configJSON(c, BF16, nil)
	if err != nil {
		b.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, configFile), raw, 0o666); err != nil {
		b.Fatal(err)
	}
}

// eachFile opens the files of weights one after the other.
func eachFile(dir string, f func(*os.File) error) error {
	t, err := OpenFolder(dir)
	if err != nil {
		return err
	}
	defer t.Close()
	for _, file := range t.files {
		if err := f(file); err != nil {
			return err
		}
	}
	return nil
}

// readFolder reads the files of weights from one end to the other, as cat does.
func readFolder(dir string) error {
	buf := make([]byte, 1<<20)
	return eachFile(dir, func(f *os.File) error {
		if _, err := f.Seek(0, io.SeekStart); err != nil {
			return err
		}
		_, err := io.CopyBuffer(io.Discard, onlyReader{f}, buf)
		return err
	})
}

func folderBytes(b *testing.B, dir string) (n int64) {
	err := eachFile(dir, func(f *os.File) error {
		info, err := f.Stat()
		n += info.Size()
		return err
	})
	if err != nil {
		b.Fatal(err)
	}
	return n
}

// forget drops the files of weights from the page cache.
func forget(b *testing.B, dir string) {
	err := eachFile(dir, func(f *os.File) error {
		if err := f.Sync(); err != nil {
			return err
		}
		return unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED)
	})
	if err != nil {
		b.Fatal(err)
	}
}

// BenchmarkStreamQuantized reads a matrix in GPTQ, as loading does. It counts two bytes a value.
func BenchmarkStreamQuantized(b *testing.B) {
	const n, groups = 4096, 32
	dir := b.TempDir()
	of := func(name string, dtype DType, shape []int, raw string) Source {
		return Source{Tensor: Tensor{Name: name, DType: dtype, Shape: shape},
			Raw: func(w io.Writer) error { _, err := io.WriteString(w, raw); return err }}
	}
	var file bytes.Buffer
	if err := WriteSafetensors(&file, []Source{
		of("m.qweight", I32, []int{n / 8, n}, strings.Repeat("\x12\x34\x56\x78", n/8*n)),
		of("m.qzeros", I32, []int{groups, n / 8}, strings.Repeat("w", groups*n/2)),
		of("m.scales", F16, []int{groups, n}, strings.Repeat("\x12\x24", groups*n)),
	}); err != nil {
		b.Fatal(err)
	}
	config := `{"torch_dtype": "float16", "quantization_config": {"quant_method": "gptq", "bits": 4}}`
	for name, raw := range map[string][]byte{weightsFile: file.Bytes(), configFile: []byte(config)} {
		if err := os.WriteFile(filepath.Join(dir, name), raw, 0o666); err != nil {
			b.Fatal(err)
		}
	}
	t, err := OpenFolder(dir)
	if err != nil {
		b.Fatal(err)
	}
	defer t.Close()
	b.SetBytes(2 * n * n)
	for b.Loop() {
		err := t.Stream([]Want{{Name: "m.weight", As: kernels.F32}}, func(Want, kernels.Buffer, int) error { return nil })
		if err != nil {
			b.Fatal(err)
		}
	}
}
