package megatron

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"exp/train/checkpoint/extent"
	"exp/train/checkpoint/fault"
)

// embeddingName ends the name of the tensor that every Hugging Face model has once.
const embeddingName = "embed_tokens.weight"

// IsPlain reports whether a folder holds a checkpoint of torch.distributed.checkpoint that Megatron did not write:
// whose tensors have a model's own names. It is false for one that cannot be read.
func IsPlain(dir string) bool {
	if _, err := os.Stat(filepath.Join(dir, metadataFile)); err != nil {
		return false
	}
	if _, err := os.Stat(filepath.Join(dir, commonFile)); err == nil {
		return false
	}
	c := &Checkpoint{}
	defer c.close()
	root, _, err := c.metadata(dir)
	if err != nil {
		return false
	}
	for k := range root.Get("state_dict_metadata").Pairs() {
		if name, _ := k.Text(); isWeight(name) {
			return false
		}
	}
	return true
}

// OpenPlain opens such a checkpoint. Its tensors have Hugging Face's names below some prefix, such as app.model.,
// where trainers put a model next to its optimizer's states, which are left out. The caller closes the files.
func OpenPlain(dir string) (files []*os.File, list []extent.Tensor, err error) {
	c := &Checkpoint{}
	defer func() {
		if err != nil {
			c.close()
		}
	}()
	root, limit, err := c.metadata(dir)
	if err != nil {
		return nil, nil, err
	}
	var names []string
	for k := range root.Get("state_dict_metadata").Pairs() {
		if name, _ := k.Text(); !stateful(name) && len(name) <= maxName {
			names = append(names, name)
		}
	}
	prefix, err := modelPrefix(dir, names)
	if err != nil {
		return nil, nil, err
	}
	tensors, err := c.stacks(dir, filepath.Join(dir, metadataFile), root, limit, func(name string) bool {
		return !stateful(name) && strings.HasPrefix(unwrapped(name), prefix)
	})
	if err != nil {
		return nil, nil, err
	}
	all := map[string]extent.Tensor{}
	for _, name := range slices.Sorted(maps.Keys(tensors)) {
		t := tensors[name]
		err := t.flatten()
		shape := t.shape
		if err == nil {
			t.shape = t.flat()
			err = t.slice(strings.TrimPrefix(unwrapped(name), prefix), name, nil, all)
		}
		if err != nil {
			return nil, nil, fault.Corrupt(dir, name, "%v", err)
		}
		x := all[strings.TrimPrefix(unwrapped(name), prefix)]
		x.Shape = shape
		list = append(list, x)
	}
	return c.Files, list, nil
}

// flat returns the shape as a matrix of rows.
func (t *stacked) flat() []int {
	if len(t.shape) < 3 {
		return t.shape
	}
	columns := 1
	for _, n := range t.shape[1:] {
		columns *= n
	}
	return []int{t.shape[0], columns}
}

// flatten makes the chunks of a tensor of three or more axes rows of its matrix.
func (t *stacked) flatten() error {
	if len(t.shape) < 3 {
		return nil
	}
	columns := t.flat()[1]
	for i := range t.chunks {
		c := &t.chunks[i]
		if !slices.Equal(c.sizes[1:], t.shape[1:]) {
			return fmt.Errorf("has %d axes and is cut along another than the first", len(t.shape))
		}
		c.offsets, c.sizes = []int{c.offsets[0], 0}, []int{c.sizes[0], columns}
	}
	return nil
}

// unwrapped is a name without what wrappers of modules put into it.
func unwrapped(name string) string {
	return strings.NewReplacer("_fsdp_wrapped_module.", "", "_checkpoint_wrapped_module.", "", "_orig_mod.", "").
		Replace(name)
}

// stateful reports whether a tensor is an optimizer's.
func stateful(name string) bool {
	return strings.HasSuffix(name, ".exp_avg") || strings.HasSuffix(name, ".exp_avg_sq") ||
		slices.ContainsFunc(strings.Split(name, "."), func(s string) bool { return strings.HasPrefix(s, "optim") })
}

// modelPrefix returns what stands before the names of the only model among tensors.
func modelPrefix(dir string, names []string) (string, error) {
	found := map[string]bool{}
	for _, name := range names {
		head, ok := strings.CutSuffix(unwrapped(name), embeddingName)
		if !ok || head != "" && !strings.HasSuffix(head, ".") {
			continue
		}
		outer := map[string]bool{"model": true, "language_model": true, "text_model": true}
		parts := strings.Split(head, ".")
		parts = parts[:len(parts)-1]
		for len(parts) > 0 && outer[parts[len(parts)-1]] { // the model's own, each once
			delete(outer, parts[len(parts)-1])
			parts = parts[:len(parts)-1]
		}
		found[strings.Join(append(parts, ""), ".")] = true
	}
	switch list := slices.Sorted(maps.Keys(found)); len(list) {
	case 1:
		return list[0], nil
	case 0:
		slices.Sort(names)
		names = names[:min(len(names), 3)]
		for i := range names {
			names[i] = fault.ShortName(names[i])
		}
		const hint = "save the state_dict of a model of transformers, or write its folder with save_pretrained; " +
			"torchtitan does with last_save_in_hf"
		return "", fault.Refuse(dir, "", hint, "is a checkpoint of torch.distributed.checkpoint without Hugging "+
			"Face's names (model.embed_tokens.weight, …); it has %s", strings.Join(names, ", "))
	default:
		for i := range list {
			list[i] = fmt.Sprintf("%q", list[i])
		}
		return "", fault.Refuse(dir, "", "save the one to read by itself", "holds several models, below %s",
			strings.Join(list, " and "))
	}
}
