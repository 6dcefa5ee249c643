package inspect

import (
	"errors"
	"fmt"

	"exp/train/checkpoint"
)

// ErrTwoAdapters is returned by Find for a folder of adapters with other adapters.
var ErrTwoAdapters = errors.New("adapters on adapters")

// Find returns what a path names, with adapters (a folder; may be empty) and the part that
// text says: a model, adapters on a model, or adapters alone. Those are put on the model
// that they name, if its folder is here; Dir is empty where it is not.
func Find(path, adapter string, text bool) (Folder, error) {
	f := Folder{Dir: path, Adapter: adapter, Text: text}
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

// NoModelError says that the model of adapters is not here.
type NoModelError struct {
	Path string // of the adapters
	Base string // the model that they name; may be empty
}

func (e *NoModelError) Error() string {
	if e.Base == "" {
		return e.Path + " holds adapters (PEFT) and names no model"
	}
	return fmt.Sprintf("%s holds adapters (PEFT) for the model %s, and no folder of that name here has a config.json",
		e.Path, e.Base)
}

// NoModel is the error of adapters that Find found no model for: a *NoModelError, unless
// their settings cannot be read.
func NoModel(adapter string) error {
	base, _, err := checkpoint.AdapterBaseFolder(adapter)
	if err != nil {
		return err
	}
	return &NoModelError{Path: adapter, Base: base}
}
