// Package fsdp reads the checkpoints that verl writes of models under PyTorch's fully
// sharded data parallelism: a file model_world_size_W_rank_R.pt for each rank, with that
// rank's part of every tensor. FSDP1, FSDP2 and HSDP write the same files and differ in the
// mesh of ranks that each tensor carries. Optimizer states (optim_…) are not read.
package fsdp

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"

	"exp/train/checkpoint/extent"
	"exp/train/checkpoint/fault"
	"exp/train/checkpoint/torchfile"
)

// rankFile matches the file of a rank.
var rankFile = regexp.MustCompile(`^model_world_size_([1-9][0-9]{0,5})_rank_([0-9]{1,6})\.pt$`)

// configFile says how many ranks there are; verl writes it since 0.5.
const configFile = "fsdp_config.json"

// Ranks returns the number of ranks of the checkpoint in a folder; 0 without one, or if its
// files do not say.
func Ranks(dir string) int {
	n, err := worldSize(dir)
	if err != nil {
		return 0
	}
	return n
}

// Has reports whether a folder holds the file of any rank.
func Has(dir string) bool {
	sizes, err := worldSizes(dir)
	return err == nil && len(sizes) > 0
}

// worldSizes returns the numbers of ranks in the names of a folder's files, ascending.
func worldSizes(dir string) ([]int, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fault.File("read", dir, err)
	}
	var sizes []int
	for _, e := range entries {
		if m := rankFile.FindStringSubmatch(e.Name()); m != nil {
			if n, err := strconv.Atoi(m[1]); err == nil && !slices.Contains(sizes, n) {
				sizes = append(sizes, n)
			}
		}
	}
	slices.Sort(sizes)
	return sizes, nil
}

// worldSize returns the number of ranks.
func worldSize(dir string) (int, error) {
	sizes, err := worldSizes(dir)
	if err != nil {
		return 0, err
	}
	switch len(sizes) {
	case 0:
		return 0, &fault.Error{Op: "read", Path: dir, Err: fmt.Errorf("no model_world_size_W_rank_R.pt: %w",
			fs.ErrNotExist)}
	case 1:
		return sizes[0], nil
	}
	var config struct {
		WorldSize int `json:"world_size"`
	}
	f, err := fault.OpenRegular(filepath.Join(dir, configFile))
	if err == nil {
		var raw []byte
		raw, err = io.ReadAll(io.LimitReader(f, 1<<20))
		err = errors.Join(err, f.Close(), json.Unmarshal(raw, &config))
	}
	if err == nil && slices.Contains(sizes, config.WorldSize) {
		return config.WorldSize, nil
	}
	return 0, fault.Refuse(dir, "", "move the files of the other trainings away",
		"holds checkpoints of %v ranks, and %s does not say which to read", sizes, configFile)
}

// Wanted returns the shape that a model's configuration gives a tensor; ok is false if it
// does not know the tensor.
type Wanted func(name string) (shape []int, ok bool)

// rank is the file of a rank and its tensors.
type rank struct {
	file    *os.File
	tensors map[string]torchfile.Node
}

// bad returns an error about a tensor in the file of a rank.
func (r rank) bad(name, format string, args ...any) error {
	return fault.Corrupt(r.file.Name(), name, format, args...)
}

// Open opens the files of all ranks in a folder and returns their tensors put together. The
// caller closes the files. wanted decides about plain tensors whether ranks hold copies or
// pieces.
func Open(dir string, wanted Wanted) (files []*os.File, tensors []extent.Tensor, err error) {
	defer func() {
		if err != nil {
			for _, f := range files {
				f.Close()
			}
			files = nil
		}
	}()
	n, err := worldSize(dir)
	if err != nil {
		return nil, nil, err
	}
	var ranks []rank
	var names []string
	for i := range n {
		path := filepath.Join(dir, fmt.Sprintf("model_world_size_%d_rank_%d.pt", n, i))
		f, err := fault.OpenRegular(path)
		if errors.Is(err, fs.ErrNotExist) {
			return files, nil, &fault.Error{Op: "read", Path: path,
				Err:  fmt.Errorf("rank %d of %d (counted from 0) is missing: %w", i, n, fs.ErrNotExist),
				Hint: "every rank's file is needed; fetch it from the machine of that rank"}
		}
		if err != nil {
			return files, nil, err
		}
		files = append(files, f)
		r, list, err := readRank(f)
		if err != nil {
			return files, nil, err
		}
		if i == 0 {
			names = list
		} else if err := sameNames(path, names, r); err != nil {
			return files, nil, err
		}
		ranks = append(ranks, r)
	}
	for _, name := range names {
		x, err := assemble(name, ranks, wanted)
		if err != nil {
			return files, nil, named(name, err)
		}
		tensors = append(tensors, x)
	}
	return files, tensors, nil
}

// named sets the tensor of an error that has none.
func named(name string, err error) error {
	if e := (*fault.Error)(nil); errors.As(err, &e) && e.Tensor == "" {
		e.Tensor = name
	}
	return err
}

// readRank decodes the file of a rank and returns the names of its tensors in order.
func readRank(f *os.File) (r rank, names []string, err error) {
	info, err := f.Stat()
	if err != nil {
		return r, nil, fault.File("read", f.Name(), err)
	}
	root, err := torchfile.Open(f.Name(), f, 0, info.Size())
	if err != nil {
		return r, nil, err
	}
	if root.Kind() != torchfile.Dict {
		return r, nil, fault.Corrupt(f.Name(), "", "holds %v, not a dict of tensors", root.Kind())
	}
	r = rank{f, map[string]torchfile.Node{}}
	for k, v := range root.Pairs() {
		name, ok := k.Text()
		if !ok || v.Kind() != torchfile.Object {
			continue // a plain value next to the tensors
		}
		if !v.IsTensor() {
			return r, nil, fault.Refuse(f.Name(), name, "save the checkpoint with a newer verl, which uses DTensor",
				"is %s, not a tensor", v.Name())
		}
		if _, twice := r.tensors[name]; !twice {
			names = append(names, name)
		}
		if len(names) > root.MaxTensors() {
			return r, nil, fault.Corrupt(f.Name(), "", "holds more than %d tensors", root.MaxTensors())
		}
		r.tensors[name] = v
	}
	if len(names) == 0 {
		return r, nil, fault.Corrupt(f.Name(), "", "holds no tensors")
	}
	return r, names, nil
}

// sameNames checks that a rank has the tensors of the first.
func sameNames(path string, names []string, r rank) error {
	for _, name := range names {
		if _, ok := r.tensors[name]; !ok {
			return fault.Corrupt(path, name, "is missing, but rank 0 has it")
		}
	}
	if len(r.tensors) != len(names) {
		for name := range r.tensors {
			if !slices.Contains(names, name) {
				return fault.Corrupt(path, name, "is not in the file of rank 0")
			}
		}
	}
	return nil
}
