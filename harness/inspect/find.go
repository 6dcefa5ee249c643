package inspect

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"exp/train/checkpoint"
)

// ErrTwoAdapters is returned by Find for adapters on a folder of adapters.
var ErrTwoAdapters = errors.New("adapters on adapters")

// Find resolves a path to a model, adapters on a model, or adapters alone, with further
// adapters (a folder; may be empty) and a part of the model's folder. Adapters alone are
// put on the model that they name, if its folder is here; otherwise Dir is empty.
func Find(path, adapter, part string) (Folder, error) {
	f := Folder{Dir: path, Adapter: adapter, Part: part}
	if !checkpoint.IsAdapterFolder(path) {
		return f, nil
	}
	if adapter != "" {
		return f, ErrTwoAdapters
	}
	base, here, err := checkpoint.AdapterBaseFolder(path)
	if err != nil {
		return f, err
	}
	if f.Dir, f.Adapter = base, path; !here {
		f.Dir = ""
	}
	return f, nil
}

// IsModel reports whether a path names a model's files: a folder, or one file of weights.
func IsModel(path string) bool {
	info, err := os.Stat(path)
	if err != nil {
		return false
	}
	return info.IsDir() || info.Mode().IsRegular() && slices.Contains(WeightExtensions(), filepath.Ext(path))
}

// WeightExtensions returns the extensions of single files of weights.
func WeightExtensions() []string { return []string{".safetensors", ".bin", ".pt", ".pth", ".ckpt"} }

// NoModelError says that the adapters' model is not here.
type NoModelError struct {
	Path string // the adapters' folder
	Base string // the model they name; may be empty
}

func (e *NoModelError) Error() string {
	if e.Base == "" {
		return e.Path + " holds adapters (PEFT) but names no model"
	}
	return fmt.Sprintf("%s holds adapters (PEFT) for the model %s, but no folder of that name here has a config.json",
		e.Path, e.Base)
}

// NoModel returns the error for adapters without a model: a *NoModelError, unless their
// settings cannot be read.
func NoModel(adapter string) error {
	base, _, err := checkpoint.AdapterBaseFolder(adapter)
	if err != nil {
		return err
	}
	return &NoModelError{Path: adapter, Base: base}
}
