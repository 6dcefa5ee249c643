package checkpoint

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"exp/train/checkpoint/extent"
	"exp/train/checkpoint/fault"
	"exp/train/checkpoint/torchfile"
)

// openTorch opens a file of torch.save, or a folder of pytorch_model.bin or its shards.
func openTorch(path string) (*Tensors, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fileError("read", path, err)
	}
	t := &Tensors{path: path, where: map[string]place{}}
	if !info.IsDir() {
		err = t.addTorch(path)
	} else if err = t.addTorch(filepath.Join(path, torchFile)); errors.Is(err, fs.ErrNotExist) {
		var index map[string]string
		if index, err = readIndex(filepath.Join(path, torchIndexFile)); err == nil {
			err = t.addShards(path, torchIndexFile, index, t.addTorch)
		}
	}
	return t.filled(err)
}

// addTorch adds the tensors of a file of torch.save to t.
func (t *Tensors) addTorch(path string) error {
	f, err := openRegular(path)
	if err != nil {
		return err
	}
	t.files = append(t.files, f)
	info, err := f.Stat()
	if err != nil {
		return fileError("read", path, err)
	}
	head := make([]byte, 64)
	n, _ := f.ReadAt(head, 0)
	if err := standIn(path, head[:n]); err != nil {
		return err
	}
	root, err := torchfile.Open(path, f, 0, info.Size())
	if err != nil {
		return err
	}
	found := 0
	all := visitor{limit: 8 * root.MaxTensors(), other: func(name string, n torchfile.Node) {
		if len(t.opaque) < listed {
			t.opaque = append(t.opaque, fmt.Sprintf("%s (%s)", fault.ShortName(name), fault.ShortName(n.Name())))
		}
	}, tensor: func(name string, n torchfile.Node) error {
		x, err := n.Tensor()
		if err != nil {
			return ofTensor(name, err)
		}
		if found++; found > root.MaxTensors() {
			return corrupt(path, "", "holds more than %d tensors", root.MaxTensors())
		}
		return t.put(path, placed(extent.Tensor{Name: name, DType: x.DType, Shape: x.Shape, Data: x.Extent(f)}, f))
	}}
	if err := all.visit(stateDict(root), "", 0); errors.Is(err, errTooMany) || errors.Is(err, errLongName) {
		return corrupt(path, "", "%v", err)
	} else if err != nil {
		return err
	}
	if found == 0 {
		return &Error{Op: "read", Path: path, Err: errors.New("holds no tensors"),
			Hint: "name a file with a model's state dict"}
	}
	return nil
}

// stateDict returns the part of a saved value that holds a model's tensors: the value
// itself, or what trainers nest it in.
func stateDict(root torchfile.Node) torchfile.Node {
	for _, key := range []string{"state_dict", "model", "model_state_dict", "module"} {
		if inner := root.Get(key); root.Kind() == torchfile.Dict && inner.Kind() == torchfile.Dict {
			return inner
		}
	}
	return root
}

// maxNested bounds how deep tensors may lie in dicts and lists, which can hold themselves;
// maxTensorName bounds the bytes of their keys together: a small file can name many.
const (
	maxNested     = 16
	maxTensorName = 1 << 10
)

// errLongName means that a visitor met a name over the limit.
var errLongName = fmt.Errorf("the name of a tensor has more than %d bytes", maxTensorName)

// errTooMany means that a visitor reached its limit.
var errTooMany = errors.New("values hold each other too often")

// visitor finds the tensors in dicts and lists.
type visitor struct {
	limit  int // nodes still to be visited
	tensor func(name string, n torchfile.Node) error
	other  func(name string, n torchfile.Node) // gets other objects
}

// visit calls tensor for the tensors in n, named by their keys, joined by dots. Everything
// else is left out. A tensor that comes a second time under one name replaces the first, as
// it does in Python.
func (v *visitor) visit(n torchfile.Node, name string, depth int) error {
	if v.limit--; v.limit < 0 {
		return errTooMany
	}
	if len(name) > maxTensorName {
		return errLongName
	}
	if n.IsTensor() {
		return v.tensor(name, n)
	}
	if n.Kind() == torchfile.Object {
		v.other(name, n)
	}
	if depth == maxNested {
		return nil
	}
	below := func(key string) string {
		if name == "" || len(key) > maxTensorName { // too long a key ends the visit
			return key
		}
		return name + "." + key
	}
	i := -1
	for item := range n.Items() {
		if i++; mayHold(item) {
			if err := v.visit(item, below(strconv.Itoa(i)), depth+1); err != nil {
				return err
			}
		}
	}
	return v.visitDict(n, below, depth)
}

// visitDict visits the values of a dict, each key once.
func (v *visitor) visitDict(n torchfile.Node, below func(key string) string, depth int) error {
	last := map[string]torchfile.Node{}
	var order []string
	for k, item := range n.Pairs() {
		key, ok := k.Text()
		if number, is := k.Int(); is {
			key, ok = strconv.FormatInt(number, 10), true
		}
		if _, twice := last[key]; !ok || !twice && !mayHold(item) {
			continue
		} else if !twice {
			order = append(order, key)
		}
		if last[key] = item; len(order) > v.limit {
			return errTooMany
		}
	}
	for _, key := range order {
		if err := v.visit(last[key], below(key), depth+1); err != nil {
			return err
		}
	}
	return nil
}

// mayHold reports whether a node is a tensor or may hold one.
func mayHold(n torchfile.Node) bool {
	switch n.Kind() {
	case torchfile.Object:
		return true
	case torchfile.Dict, torchfile.List, torchfile.Tuple:
		return n.Len() > 0
	}
	return false
}
