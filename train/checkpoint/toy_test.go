package checkpoint

import (
	"bytes"
	"hash/fnv"
	"io"
	"os"
	"path/filepath"
	"testing"

	"exp/kernels"
	"exp/kernels/ref"
	"exp/train/model"
)

// The three architectures, small. In the last, width is not a multiple of the heads.
var (
	toyLlama = model.Config{Vocab: 11, Layers: 2, Width: 12, Heads: 4, KVHeads: 2, Head: 4, FFN: 10,
		RopeTheta: 1e4, NormEps: 1e-5, MaxPositions: 32, InitStd: 0.02}
	toyQwen2 = model.Config{Vocab: 11, Layers: 2, Width: 8, Heads: 2, KVHeads: 1, Head: 4, FFN: 10,
		RopeTheta: 1e6, NormEps: 1e-6, QKVBias: true, TieEmbeddings: true, MaxPositions: 32, InitStd: 0.02}
	toyQwen3 = model.Config{Vocab: 11, Layers: 1, Width: 10, Heads: 4, KVHeads: 2, Head: 6, FFN: 10,
		RopeTheta: 1e6, NormEps: 1e-6, QKNorm: true, MaxPositions: 32, InitStd: 0.02}
)

var policyHeads = model.Heads{LM: true, LogZ: &model.LogZConfig{Layers: 3, Dropout: 0.1}}

func toySeed(label string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(label))
	return h.Sum64()
}

// newModel returns a model whose parameters are all random: norms and biases too.
func newModel(t *testing.T, be kernels.Backend, c model.Config, h model.Heads, trainable bool) *model.Model {
	t.Helper()
	m, err := model.New(be, c, h, trainable)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Close)
	m.Init(toySeed)
	x := make([]float32, m.Params().Len())
	be.Copy(kernels.Host(x), m.Params())
	be.Sync()
	key := kernels.PhiloxKey(1)
	for i := range x {
		w := kernels.Philox(key, [4]uint32{uint32(i)})
		x[i] += float32(int32(w[0])) / (1 << 33) // ±1/4
	}
	be.Copy(m.Params(), kernels.Host(x))
	be.Sync()
	m.Refresh()
	return m
}

// emptyModel returns a model of zeros.
func emptyModel(t *testing.T, be kernels.Backend, c model.Config, h model.Heads) *model.Model {
	t.Helper()
	m, err := model.New(be, c, h, false)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Close)
	return m
}

// bufferBytes returns the elements of a buffer, little-endian.
func bufferBytes(be kernels.Backend, b kernels.Buffer) []byte {
	var raw bytes.Buffer
	if err := writeBuffer(&raw, be, b); err != nil {
		panic(err)
	}
	return raw.Bytes()
}

// source returns a tensor of the given bytes.
func source(name string, dtype DType, shape []int, raw string) Source {
	return Source{Tensor: Tensor{Name: name, DType: dtype, Shape: shape}, Raw: func(w io.Writer) error {
		_, err := io.WriteString(w, raw)
		return err
	}}
}

// writeTensors writes a safetensors file and returns its path.
func writeTensors(t *testing.T, path string, tensors ...Source) string {
	t.Helper()
	var b bytes.Buffer
	if err := WriteSafetensors(&b, tensors); err != nil {
		t.Fatal(err)
	}
	return writeFile(t, path, b.Bytes())
}

func writeFile(t *testing.T, path string, content []byte) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, content, 0o666); err != nil {
		t.Fatal(err)
	}
	return path
}

func readFile(t testing.TB, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// tree returns the files below dir with their contents, directories as "".
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		name, _ := filepath.Rel(dir, path)
		found[name] = ""
		if !d.IsDir() {
			found[name] = string(readFile(t, path))
		}
		return nil
	})
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return found
}

// asModel is dtypes of a folder that keeps the model's own.
func asModel(be kernels.Backend) dtypes {
	return func(model.Tensor) DType { return dtypeOf(be.Float()) }
}

func refBackend() kernels.Backend { return ref.New[float32]() }
