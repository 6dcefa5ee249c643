package megatron

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"exp/train/checkpoint/extent"
	"exp/train/checkpoint/fault"
	"exp/train/checkpoint/torchfile"
	"exp/train/model"
)

// Checkpoint is an open checkpoint. The caller closes its Files.
type Checkpoint struct {
	Files   []*os.File
	Tensors []extent.Tensor // under Hugging Face's names
	// Config is the architecture; Problems say why it is not known or not supported.
	Config   model.Config
	Problems []string
	Ranks    int // how many wrote it; 0 if the format does not say

	bytes int64 // of Files
}

// rankFolder matches the folder of a rank's file.
var rankFolder = regexp.MustCompile(`^mp_rank_([0-9]{2,4})(_[0-9]{3,4})?(_[0-9]{3,4})?$`)

// Has reports whether a folder holds the ranks of one training step, in either format.
func Has(dir string) bool {
	if _, err := os.Stat(filepath.Join(dir, metadataFile)); err == nil {
		return true
	}
	entries, err := os.ReadDir(dir)
	return err == nil && slices.ContainsFunc(entries, func(e fs.DirEntry) bool {
		return rankFolder.MatchString(e.Name())
	})
}

// stepFolder matches the folder of a step.
var stepFolder = regexp.MustCompile(`^(iter_[0-9]{7,}|release)$`)

// IsStep reports whether a name is a step folder's.
func IsStep(name string) bool { return stepFolder.MatchString(name) }

// Latest returns the folder of a step that the text of the file of the latest one names.
func Latest(dir, text string) string {
	if n, err := strconv.Atoi(text); err == nil {
		return filepath.Join(dir, fmt.Sprintf("iter_%07d", n))
	}
	return filepath.Join(dir, "release")
}

// Open opens the checkpoint in the folder of a step. known is the model's architecture; nil
// takes it from the checkpoint's arguments. vocab is the number of tokens, for arguments
// that do not say it; 0 if it is not known either.
func Open(dir string, known *model.Config, vocab int) (c *Checkpoint, err error) {
	c = &Checkpoint{}
	defer func() {
		if err != nil {
			c.close()
		}
	}()
	read := c.readRanks
	if _, err := os.Stat(filepath.Join(dir, metadataFile)); err == nil {
		read = c.readDistributed
	}
	r, err := read(dir)
	if err != nil {
		return c, err
	}
	placed := true
	if known != nil {
		c.Config = *known
	} else if c.Config, placed, c.Problems = r.config(vocab); !placed {
		return c, fault.Refuse(dir, "", "name a folder with the model's config.json: --hf-config DIR", "%s",
			strings.Join(c.Problems, "; "))
	}
	c.Tensors, err = r.assemble(c.Config)
	return c, err
}

// close closes the files.
func (c *Checkpoint) close() {
	for _, f := range c.Files {
		f.Close()
	}
}

// open opens a file for reading.
func (c *Checkpoint) open(path string) (*os.File, int64, error) {
	f, err := fault.OpenRegular(path)
	if err != nil {
		return nil, 0, err
	}
	c.Files = append(c.Files, f)
	info, err := f.Stat()
	if err != nil {
		return nil, 0, fault.File("read", path, err)
	}
	c.bytes += info.Size()
	return f, info.Size(), nil
}

const everyRank = "every rank's folder is needed; fetch it from the machine of that rank"

// readRanks reads the files of all ranks.
func (c *Checkpoint) readRanks(dir string) (*ranks, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fault.File("read", dir, err)
	}
	var folders []string
	for _, e := range entries {
		if rankFolder.MatchString(e.Name()) {
			folders = append(folders, e.Name())
		}
	}
	r := &ranks{path: dir, chunks: map[Rank][]map[string]extent.Tensor{}}
	roots := map[string]torchfile.Node{}
	files := map[string]*os.File{}
	for _, name := range folders {
		path := filepath.Join(dir, name, rankFile)
		f, size, err := c.open(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, &fault.Error{Op: "read", Path: path, Hint: everyRank,
				Err: fmt.Errorf("the file of a rank is missing: %w", fs.ErrNotExist)}
		}
		if err != nil {
			return nil, err
		}
		if roots[name], err = torchfile.Open(path, f, 0, size); err != nil {
			return nil, err
		}
		files[name] = f
	}
	r.args = readArgs(roots[folders[0]].Get("args"))
	r.grid = r.args.grid()
	if r.args == nil {
		r.grid = gridOf(folders)
	}
	if !r.grid.sane() {
		return nil, fault.Corrupt(filepath.Join(dir, folders[0]), "",
			"its arguments say TP %d, PP %d, VP %d, EP %d: more "+
				"ranks than any training has", r.grid.TP, r.grid.PP, r.grid.VP, r.grid.EP)
	}
	if r.args.expertsApart() {
		return nil, fault.Refuse(filepath.Join(dir, folders[0]), "", "save it with --ckpt-format torch_dist, whose "+
			"files do not depend on the ranks", "expert_tensor_parallel_size is %v, tensor_model_parallel_size %d: "+
			"experts must be cut like the other layers", r.args["expert_tensor_parallel_size"], r.grid.TP)
	}
	c.Ranks = len(folders)
	for _, rank := range r.grid.Ranks() {
		name := r.grid.Folder(rank)
		root, ok := roots[name]
		if !ok {
			return nil, &fault.Error{Op: "read", Path: filepath.Join(dir, name),
				Err: fmt.Errorf("the rank TP %d, PP %d, EP %d is missing: %w", rank.TP, rank.PP, rank.EP,
					fs.ErrNotExist),
				Hint: everyRank}
		}
		delete(roots, name)
		if err := r.addRank(rank, files[name], root); err != nil {
			return nil, err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(roots)) {
		return nil, fault.Corrupt(filepath.Join(dir, name), "", "is not a rank of TP %d, PP %d, EP %d, which the "+
			"arguments say", r.grid.TP, r.grid.PP, r.grid.EP)
	}
	r.count()
	return r, nil
}

// sane reports whether the ranks can be listed: arguments are not trusted.
func (g Grid) sane() bool {
	const most = 1 << 12
	return g.TP <= most && g.PP <= most && g.VP <= most && g.EP <= most && g.TP*g.PP*g.EP <= 1<<16
}

// gridOf returns the grid that the names of folders show, for a checkpoint without
// arguments.
func gridOf(folders []string) Grid {
	g := Grid{TP: 1, PP: 1, VP: 1, EP: 1}
	for _, name := range folders {
		m := rankFolder.FindStringSubmatch(name)
		for i, axis := range []*int{&g.TP, &g.PP, &g.EP} {
			n, _ := strconv.Atoi(strings.TrimPrefix(m[i+1], "_"))
			*axis = max(*axis, n+1)
		}
	}
	return g
}

// readArgs returns the plain fields of an argparse.Namespace; nil for any other node.
func readArgs(n torchfile.Node) Args {
	if n.Kind() != torchfile.Object {
		return nil
	}
	const most = 1 << 13 // Megatron has some 1000
	args := Args{}
	for k, v := range n.State().Pairs() {
		if len(args) == most {
			break
		}
		name, _ := k.Text()
		if b, ok := v.Bool(); ok {
			args[name] = b
		} else if i, ok := v.Int(); ok {
			args[name] = int(i)
		} else if f, ok := v.Float(); ok {
			args[name] = f
		} else if s, ok := v.Text(); ok {
			args[name] = s
		} else if list, ok := numbers(v); ok {
			args[name] = list
		}
	}
	return args
}

// numbers returns the items of a list or tuple of numbers.
func numbers(n torchfile.Node) (list []float64, ok bool) {
	const most = 1 << 12 // an item for each layer
	if k := n.Kind(); k != torchfile.List && k != torchfile.Tuple || n.Len() > most {
		return nil, false
	}
	for item := range n.Items() {
		v, ok := item.Float()
		if !ok {
			return nil, false
		}
		list = append(list, v)
	}
	return list, true
}

// addRank reads the tensors of a rank's file.
func (r *ranks) addRank(rank Rank, f *os.File, root torchfile.Node) error {
	for v := range r.grid.VP {
		key := r.grid.chunkKey(v)
		state := root.Get(key)
		if state.Kind() != torchfile.Dict {
			return fault.Refuse(f.Name(), "", "only megatron-core's GPTModel is supported, of checkpoint version 3",
				"has no dict %q", key)
		}
		chunk := map[string]extent.Tensor{}
		for k, n := range state.Pairs() {
			stored, _ := k.Text()
			if !n.IsTensor() || ignored(stored) {
				continue
			}
			t, err := n.Tensor()
			if err != nil {
				return named(stored, err)
			}
			if len(chunk) > root.MaxTensors() {
				return fault.Corrupt(f.Name(), "", "holds more than %d tensors", root.MaxTensors())
			}
			name := Canonical(stored)
			if _, twice := chunk[name]; twice {
				return fault.Corrupt(f.Name(), stored, "is there twice, under two names")
			}
			chunk[name] = extent.Tensor{Name: name, Stored: stored, DType: t.DType, Shape: t.Shape, Data: t.Extent(f)}
		}
		r.chunks[rank] = append(r.chunks[rank], chunk)
	}
	return nil
}

// ignored reports whether a tensor is not a weight: states of FP8, tables of positions.
func ignored(name string) bool {
	return strings.Contains(name, "_extra_state") || strings.HasSuffix(name, "rotary_pos_emb.inv_freq") ||
		strings.HasSuffix(name, "rotary_emb.inv_freq")
}

// named sets the tensor of an error that has none.
func named(name string, err error) error {
	if e := (*fault.Error)(nil); errors.As(err, &e) && e.Tensor == "" {
		e.Tensor = name
	}
	return err
}

// count finds how many layers each chunk has. Stages may differ.
func (r *ranks) count() {
	for v := range r.grid.VP {
		stages := make([]int, r.grid.PP)
		for p := range stages {
			for name := range r.chunks[Rank{PP: p}][v] {
				if layer, _, ok := cutLayer(name); ok {
					n, err := strconv.Atoi(strings.TrimSuffix(strings.TrimPrefix(layer, layersPrefix), "."))
					if err == nil && n < maxLayers {
						stages[p] = max(stages[p], n+1)
					}
				}
			}
		}
		r.layers = append(r.layers, stages)
	}
}

// maxLayers bounds the layers of a model.
const maxLayers = 1 << 12
