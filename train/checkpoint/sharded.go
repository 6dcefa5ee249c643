package checkpoint

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"exp/train/pyjson"
)

// Hugging Face's names of weight files in a folder, and of the index of shards.
const (
	weightsFile = "model.safetensors"
	indexFile   = "model.safetensors.index.json"
	torchFile   = "pytorch_model.bin"

	torchIndexFile = "pytorch_model.bin.index.json"
)

// IndexForm is a form of weights in shards: its index, and how the shards' names end.
type IndexForm struct{ Index, Suffix string }

// IndexForms returns the forms, the preferred one first.
func IndexForms() []IndexForm {
	return []IndexForm{{indexFile, ".safetensors"}, {torchIndexFile, ".bin"}}
}

// Shards returns the names of the files that an index lists.
func Shards(path string) ([]string, error) {
	index, err := readIndex(path)
	if err != nil {
		return nil, err
	}
	return slices.Compact(slices.Sorted(maps.Values(index))), nil
}

// OpenFolder opens the weights of a model in any container that FindContainer finds: most
// often a Hugging Face folder. Of a model of text and images that is read whole they are the
// language model's, under the names of a plain one; OpenTower opens the others.
func OpenFolder(path string) (*Tensors, error) {
	t, err := openContainer(path)
	if err != nil {
		return nil, err
	}
	raw, err := readSmall(filepath.Join(TextsFolder(path), configFile), maxConfig)
	if err != nil || !wholeClass(raw) {
		return t, nil
	}
	return t.textOf(path)
}

// openContainer opens all tensors.
func openContainer(path string) (*Tensors, error) {
	c, err := FindContainer(path)
	if err != nil {
		return nil, err
	}
	return c.Open()
}

// openSafetensors opens model.safetensors in a folder, or the shards listed in
// model.safetensors.index.json.
func openSafetensors(dir string) (*Tensors, error) {
	t, err := OpenFile(filepath.Join(dir, weightsFile))
	if !errors.Is(err, fs.ErrNotExist) {
		return t, err
	}
	return openShards(dir)
}

// noWeights returns the error for a folder without weights; it names what the folder holds instead.
func noWeights(dir string) error {
	if _, err := os.Stat(dir); err != nil {
		return fileError("read", dir, err)
	}
	e := &Error{Op: "read", Path: dir,
		Err: fmt.Errorf("neither %s nor %s: %w", weightsFile, indexFile, fs.ErrNotExist),
		Hint: "name a folder with a model's files in Hugging Face's layout, or a checkpoint of verl: global_step_N, " +
			"or the folder with its model_world_size_W_rank_R.pt; or of Megatron: iter_NNNNNNN"}
	if pickled, _ := fs.Glob(os.DirFS(dir), "pytorch_model*.bin"); len(pickled) > 0 {
		e.Hint = "it has shards of pytorch_model.bin, but not their index: fetch " + torchIndexFile
	}
	return e
}

// readIndex returns which file holds which tensor.
func readIndex(path string) (map[string]string, error) {
	raw, err := readSmall(path, maxHeader)
	if err != nil {
		return nil, err
	}
	var index struct {
		WeightMap map[string]string `json:"weight_map"`
	}
	if err := json.Unmarshal(raw, &index); err != nil {
		return nil, cmp.Or(standIn(path, raw), error(corrupt(path, "", "%s", jsonWords(err))))
	}
	if len(index.WeightMap) == 0 {
		return nil, corrupt(path, "", "has no weight_map")
	}
	return index.WeightMap, nil
}

// openShards opens the files of an index.
func openShards(dir string) (*Tensors, error) {
	index, err := readIndex(filepath.Join(dir, indexFile))
	if err != nil {
		return nil, err
	}
	t := &Tensors{path: dir, where: map[string]place{}}
	return t.filled(t.addShards(dir, indexFile, index, t.add))
}

// OpenFiles opens safetensors files that together hold one set of weights.
func OpenFiles(paths []string) (*Tensors, error) {
	t := &Tensors{path: strings.Join(paths, ", "), where: map[string]place{}}
	var err error
	for _, path := range paths {
		if err == nil {
			err = t.add(path)
		}
	}
	return t.filled(err)
}

// addShards adds the files of an index with add. Map and files must agree: each tensor is
// in the file that the index names, and no file holds others.
func (t *Tensors) addShards(dir, indexName string, weightMap map[string]string, add func(path string) error) error {
	path := filepath.Join(dir, indexName)
	names := slices.Sorted(maps.Keys(weightMap))
	opened := map[string]bool{}
	for _, name := range names {
		file := weightMap[name]
		if file != filepath.Base(file) || !filepath.IsLocal(file) {
			return corrupt(path, name, "%q is not a file of this folder", file)
		}
		if opened[file] {
			continue
		}
		opened[file] = true
		if err := add(filepath.Join(dir, file)); errors.Is(err, fs.ErrNotExist) {
			return &Error{Op: "read", Path: filepath.Join(dir, file), Err: fs.ErrNotExist, Hint: "a shard that " +
				indexName + " lists is missing; fetch it"}
		} else if err != nil {
			return err
		}
	}
	e := &MismatchError{Path: path}
	for _, name := range names {
		if p, ok := t.where[name]; !ok || filepath.Base(p.file.Name()) != weightMap[name] {
			e.Missing = append(e.Missing, fmt.Sprintf("%s (not in %s)", name, weightMap[name]))
		}
	}
	for _, tensor := range t.List() {
		if _, ok := weightMap[tensor.Name]; !ok {
			e.Unexpected = append(e.Unexpected, fmt.Sprintf("%s (in a shard, not in the index)", tensor.Name))
		}
	}
	return e.orNil()
}

// readSmall reads a whole small file; one over limit is corrupt.
func readSmall(path string, limit int64) ([]byte, error) {
	f, err := openRegular(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && info.Size() > limit {
		return nil, corrupt(path, "", "over %d bytes", limit)
	}
	b, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, fileError("read", path, err)
	}
	if int64(len(b)) > limit {
		return nil, corrupt(path, "", "over %d bytes", limit)
	}
	if filepath.Base(path) == configFile {
		b = pyjson.Plain(b)
	}
	return b, nil
}
