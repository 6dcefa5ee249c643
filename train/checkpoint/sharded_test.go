package checkpoint

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
)

// shards writes a folder of two shards, x and y in the first, z in the second,
// and an index with this map.
func shards(t *testing.T, weightMap map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	writeTensors(t, filepath.Join(dir, "1.safetensors"), source("x", "U8", []int{2}, "xx"), source("y", "U8", []int{1}, "y"))
	writeTensors(t, filepath.Join(dir, "2.safetensors"), source("z", "U8", []int{3}, "zzz"))
	index, err := json.Marshal(map[string]any{"metadata": map[string]any{"total_size": 6}, "weight_map": weightMap})
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(dir, indexFile), index)
	return dir
}

var rightMap = map[string]string{"z": "2.safetensors", "x": "1.safetensors", "y": "1.safetensors"}

// A sharded folder has the same tensors as a single file.
func TestOpenFolderSharded(t *testing.T) {
	sharded, err := OpenFolder(shards(t, rightMap))
	if err != nil {
		t.Fatal(err)
	}
	defer sharded.Close()
	var got, want bytes.Buffer
	if err := WriteSafetensors(&got, sharded.Sources()); err != nil {
		t.Fatal(err)
	}
	if err := WriteSafetensors(&want, []Source{source("x", "U8", []int{2}, "xx"), source("y", "U8", []int{1}, "y"), source("z", "U8", []int{3}, "zzz")}); err != nil {
		t.Fatal(err)
	}
	if got.String() != want.String() {
		t.Errorf("got %q, want %q", got.String(), want.String())
	}
}

func TestOpenFolderSingle(t *testing.T) {
	dir := shards(t, rightMap)
	writeTensors(t, filepath.Join(dir, weightsFile), source("only", "U8", []int{1}, "1"))
	x, err := OpenFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	if list := x.List(); len(list) != 1 || list[0].Name != "only" {
		t.Errorf("List = %v; model.safetensors comes first", list)
	}
}

func TestOpenFolderErrors(t *testing.T) {
	edit := func(name, file string) map[string]string {
		m := map[string]string{}
		for k, v := range rightMap {
			m[k] = v
		}
		if m[name] = file; file == "" {
			delete(m, name)
		}
		return m
	}
	pickled := t.TempDir()
	writeFile(t, filepath.Join(pickled, "pytorch_model-00001-of-00002.bin"), nil)
	broken := t.TempDir()
	writeFile(t, filepath.Join(broken, indexFile), []byte(`{"weight_map":`))
	truncated := shards(t, rightMap)
	path := filepath.Join(truncated, "2.safetensors")
	writeFile(t, path, readFile(t, path)[:20])
	tests := []struct {
		name, dir string
		is        error
		want      []string
	}{
		{"absent", filepath.Join(t.TempDir(), "none"), fs.ErrNotExist, []string{"none"}},
		{"empty", t.TempDir(), fs.ErrNotExist, []string{"neither model.safetensors nor"}},
		{"pickled", pickled, fs.ErrNotExist, []string{"neither"}},
		{"broken index", broken, ErrCorrupt, []string{indexFile, "unexpected end"}},
		{"empty map", shards(t, nil), ErrCorrupt, []string{"no weight_map"}},
		{"outside", shards(t, edit("x", "../1.safetensors")), ErrCorrupt, []string{`tensor "x"`, "not a file of this folder"}},
		{"folder", shards(t, edit("x", "..")), ErrCorrupt, []string{`tensor "x"`}},
		{"absent shard", shards(t, edit("x", "3.safetensors")), fs.ErrNotExist, []string{"3.safetensors"}},
		{"truncated shard", truncated, ErrCorrupt, []string{"2.safetensors", "truncated"}},
		{"wrong shard", shards(t, edit("x", "2.safetensors")), nil, []string{"missing: x (not in 2.safetensors)"}},
		{"unknown and unlisted", shards(t, map[string]string{"z": "2.safetensors", "x": "1.safetensors", "w": "1.safetensors"}), nil,
			[]string{"missing: w (not in 1.safetensors)", "unexpected: y (in a shard, not in the index)"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := OpenFolder(tt.dir)
			if err == nil || tt.is != nil && !errors.Is(err, tt.is) {
				t.Fatalf("got %v, want an error that is %v", err, tt.is)
			}
			for _, want := range tt.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error %q does not say %q", err, want)
				}
			}
		})
	}
	var e *Error
	if _, err := OpenFolder(pickled); !errors.As(err, &e) || !strings.Contains(e.Hint, torchIndexFile) {
		t.Errorf("pickled weights: hint %q does not name the missing part", e.Hint)
	}
	var m *MismatchError
	if _, err := OpenFolder(shards(t, edit("x", ""))); !errors.As(err, &m) || len(m.Unexpected) != 1 {
		t.Errorf("unlisted tensor: %v, want a *MismatchError", err)
	}
}

// One name in two shards.
func TestOpenFolderDuplicate(t *testing.T) {
	dir := shards(t, rightMap)
	writeTensors(t, filepath.Join(dir, "2.safetensors"), source("x", "U8", []int{1}, "x"), source("z", "U8", []int{1}, "z"))
	if _, err := OpenFolder(dir); !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), "is also in") {
		t.Errorf("got %v, want ErrCorrupt", err)
	}
}
