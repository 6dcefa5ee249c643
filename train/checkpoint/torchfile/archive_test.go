package torchfile

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"strings"
	"testing"
)

// Storages that are not where the directory says: found when a tensor is asked for.
func TestStorageErrors(t *testing.T) {
	pickle := pickled(tensor(storage("torch.FloatStorage", "0", 3), 0, []int{3}, []int{1}))
	good := packed(t, pickle, map[string][]byte{"0": floats(3)})
	directory := bytes.Index(good, []byte("PK\x01\x02"))
	entry := directory + bytes.Index(good[directory:], []byte("top/data/0")) - 46
	for _, tt := range []struct {
		name   string
		change func(b []byte)
		want   string
	}{
		{"longer than the file", func(b []byte) {
			binary.LittleEndian.PutUint32(b[entry+20:], 1<<30)
			binary.LittleEndian.PutUint32(b[entry+24:], 1<<30)
		}, "goes beyond the end"},
		{"elsewhere", func(b []byte) { binary.LittleEndian.PutUint32(b[entry+42:], 1<<30) }, "top/data/0"},
		{"not at an entry", func(b []byte) { b[entry+42]++ }, "top/data/0"},
		{"of another size", func(b []byte) { b[entry+24]++ }, "is compressed"},
		{"encrypted", func(b []byte) { b[entry+8] |= 1 }, "is compressed"},
		{"deflated", func(b []byte) { b[entry+10] = byte(zip.Deflate) }, "is compressed"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := bytes.Clone(good)
			tt.change(b)
			n, err := open(b)
			if err == nil {
				_, err = n.Tensor()
			}
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}

// An archive within a larger file, as torch's distributed checkpoints have them.
func TestSection(t *testing.T) {
	pickle := pickled(tensor(storage("torch.FloatStorage", "0", 3), 1, []int{2}, []int{1}))
	b := packed(t, pickle, map[string][]byte{"0": floats(3)})
	file := append(append(make([]byte, 1000), b...), make([]byte, 500)...)
	n, err := Open("x.distcp", bytes.NewReader(file), 1000, int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	x, err := n.Tensor()
	if err != nil {
		t.Fatal(err)
	}
	if got := elements(t, x, file); len(got) != 2 || got[0] != 1 || got[1] != 2 {
		t.Errorf("got %v", got)
	}
}
