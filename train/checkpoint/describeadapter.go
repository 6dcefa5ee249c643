package checkpoint

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"exp/train/model"
)

// AdapterDescription is everything known of a folder of adapters without reading weights.
type AdapterDescription struct {
	Path       string
	Base       string   // its name or path for its model
	Words      []string // settings for people, one per line
	Rank       int      // the largest
	Alpha      float64
	Targets    []string // last parts of the maps' names
	Parameters int
	Known      bool // read for a known model
	Uniform    bool // one rank and scale on every targeted map: training can continue from them
	Tensors    []DescribedTensor
	Reason     []string // if unsupported: every reason
}

// DescribeAdapters reads settings and headers of a folder of adapters for a model of
// configuration c; nil means an unknown model. Adapters that cannot be computed are not an
// error: Reason says why. It returns an error if nothing is there.
func DescribeAdapters(dir string, c *model.Config) (*AdapterDescription, error) {
	set, err := readAdapterSettings(dir)
	if err != nil {
		return nil, err
	}
	d := &AdapterDescription{Path: dir, Base: set.base, Words: set.words(), Rank: set.rank, Alpha: set.alpha,
		Reason: set.problems}
	t, err := OpenAdapterFile(dir)
	if err != nil {
		var e *Error
		text := err.Error()
		if errors.As(err, &e) && e.Hint != "" {
			text += ": " + e.Hint
		}
		d.Reason = append(d.Reason, text)
		return d, nil
	}
	defer t.Close()
	described := Description{}
	described.tensors(t)
	d.Tensors = described.Tensors
	for _, x := range t.List() {
		d.Parameters += x.Len()
		if name, part := mapOf(x.Name); part == 0 && !slices.Contains(d.Targets, lastPart(name)) {
			d.Targets = append(d.Targets, lastPart(name))
		}
	}
	slices.Sort(d.Targets)
	if c == nil || len(d.Reason) > 0 {
		return d, nil
	}
	a, err := ReadAdapters(dir, *c)
	var config *ConfigError
	switch {
	case errors.As(err, &config):
		d.Reason = config.Problems
	case err != nil:
		d.Reason = []string{err.Error()}
	default:
		d.Rank, d.Alpha, d.Known, d.Uniform = a.Shape.Rank, a.Shape.Alpha, true, a.Uniform
	}
	return d, nil
}

// Facts describes the adapters for people, one fact per line.
func (d *AdapterDescription) Facts() []string {
	list := append(slices.Clone(d.Words), fmt.Sprintf("on %s: %d tensors, %d parameters",
		strings.Join(d.Targets, ", "), len(d.Tensors), d.Parameters))
	if d.Known && !d.Uniform {
		list = append(list, "mixed ranks or scales, or only some maps: usable for evaluation and merging, not "+
			"for further training")
	}
	return list
}

// AdapterBaseFolder returns the folder of the model that the adapters name, if it exists.
func AdapterBaseFolder(dir string) (base string, here bool, err error) {
	if base, err = AdapterBase(dir); err != nil || base == "" {
		return base, false, err
	}
	_, missing := os.Stat(base + string(os.PathSeparator) + configFile)
	return base, missing == nil, nil
}
