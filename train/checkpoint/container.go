package checkpoint

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"exp/train/checkpoint/fsdp"
	"exp/train/checkpoint/megatron"
	"exp/train/model"
)

// Container is the weights of a model in files of some format.
type Container struct {
	Path string // of its file, or of the folder of its files
	Kind string // the format: "safetensors", "torch", "verl FSDP", "Megatron", "torch DCP"
	// Ranks is how many ranks wrote it; 0 if it is not of several.
	Ranks int
	// Texts is the folder with config.json and the tokenizer; empty without one.
	Texts string

	// Vocab is the number of tokens, for a checkpoint of Megatron without config.json whose
	// arguments do not say it; 0 if not known.
	Vocab int

	format format
}

// format is how the weights are stored.
type format int

const (
	safetensors format = iota
	torchFiles
	fsdpShards
	megatronRanks
	plainDistributed
)

// Names of verl's folders.
const (
	actorFolder = "actor"
	distFolder  = "dist_ckpt" // of its Megatron backend
	textsFolder = "huggingface"
	accelFolder = "pytorch_model_fsdp_0" // of accelerate, in a step of transformers' Trainer
	latestFile  = "latest_checkpointed_iteration.txt"
	stepPrefix  = "global_step_"
)

// FindContainer returns the weights at a path:
//
//   - a file of safetensors or of torch.save;
//   - a folder with model.safetensors, pytorch_model.bin, or shards of one with their index;
//   - a folder with verl's model_world_size_W_rank_R.pt, or a global_step_N with such a
//     folder named actor;
//   - a folder of Megatron's ranks or of torch_dist: iter_NNNNNNN, or verl's dist_ckpt, or a
//     folder with that one, with config.json in or next to it;
//   - a folder of torch.distributed.checkpoint (.metadata and .distcp) with Hugging Face's names, or one with such
//     a folder named pytorch_model_fsdp_0;
//   - a folder whose latest_checkpointed_iteration.txt names one of those.
//
// It reads no weights.
func FindContainer(path string) (*Container, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fileError("read", path, err)
	}
	if !info.IsDir() {
		c := &Container{Path: path, Kind: "safetensors", Texts: textsIn(filepath.Dir(path))}
		if looksTorch(path) {
			c.Kind, c.format = "torch", torchFiles
		}
		return c, nil
	}
	c := &Container{Path: path, Texts: textsIn(path)}
	has := func(name string) bool {
		_, err := os.Lstat(filepath.Join(path, name))
		return err == nil
	}
	switch {
	case has(weightsFile) || has(indexFile):
		c.Kind = "safetensors"
	case has(torchFile) || has(torchIndexFile):
		c.Kind, c.format = "torch", torchFiles
	case fsdp.Has(path):
		c.Kind, c.format, c.Ranks = "verl FSDP", fsdpShards, fsdp.Ranks(path)
	case fsdp.Has(filepath.Join(path, actorFolder)):
		return FindContainer(filepath.Join(path, actorFolder))
	case megatron.IsPlain(path):
		c.Kind, c.format = "torch DCP", plainDistributed
	case megatron.Has(path):
		c.megatron()
	case megatron.Has(filepath.Join(path, distFolder)):
		return FindContainer(filepath.Join(path, distFolder))
	case megatron.Has(filepath.Join(path, actorFolder, distFolder)):
		return FindContainer(filepath.Join(path, actorFolder, distFolder))
	case megatron.IsPlain(filepath.Join(path, accelFolder)):
		return c.inner(filepath.Join(path, accelFolder))
	case has(latestFile):
		next, err := latestIn(path)
		if err != nil {
			return nil, err
		}
		return c.inner(next)
	default:
		return nil, noWeights(path)
	}
	return c, nil
}

// inner returns the weights in a folder inside this one, whose config.json may describe them.
func (c *Container) inner(path string) (*Container, error) {
	found, err := FindContainer(path)
	if err == nil && found.Texts == "" {
		found.Texts = c.Texts
	}
	return found, err
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// textsIn returns the folder with the config.json of weights in a folder, or "".
func textsIn(dir string) string {
	for _, d := range []string{dir, filepath.Join(dir, textsFolder)} {
		if info, err := os.Stat(filepath.Join(d, configFile)); err == nil && info.Mode().IsRegular() {
			return d
		}
	}
	return ""
}

// latestIn returns the checkpoint that the file of the latest one names.
func latestIn(dir string) (string, error) {
	path := filepath.Join(dir, latestFile)
	raw, err := readSmall(path, 1<<10)
	if err != nil {
		return "", err
	}
	text := strings.TrimSpace(string(raw))
	if next := megatron.Latest(dir, text); megatron.Has(next) {
		return next, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		return "", corrupt(path, "", "%q is not the number of a step", text)
	}
	next := filepath.Join(dir, stepPrefix+strconv.Itoa(n))
	if _, err := os.Stat(next); errors.Is(err, fs.ErrNotExist) {
		return "", &Error{Op: "read", Path: next, Err: fs.ErrNotExist,
			Hint: path + " names it as the latest; fetch it, or name another checkpoint's folder"}
	}
	return next, nil
}

// TextsFolder returns the folder with the config.json and the tokenizer of a model at a
// path; the path itself if it is not known.
func TextsFolder(path string) string {
	if dir := textsIn(path); dir != "" {
		return dir
	}
	if c, err := FindContainer(path); err == nil && c.Texts != "" {
		return c.Texts
	}
	return path
}

// Open opens the weights.
func (c *Container) Open() (*Tensors, error) {
	switch c.format {
	case torchFiles:
		return openTorch(c.Path)
	case fsdpShards:
		files, list, err := fsdp.Open(c.Path, c.wanted())
		if err != nil {
			return nil, err
		}
		return newTensors(c.Path, files, list)
	case megatronRanks:
		return c.openMegatron()
	case plainDistributed:
		files, list, err := megatron.OpenPlain(c.Path)
		if err != nil {
			return nil, err
		}
		return newTensors(c.Path, files, list)
	}
	if info, err := os.Stat(c.Path); err == nil && !info.IsDir() {
		return OpenFile(c.Path)
	}
	return openSafetensors(c.Path)
}

// openWhole opens the weights and, in a Hugging Face folder, the auxiliary heads in their
// separate files.
func (c *Container) openWhole() (*Tensors, error) {
	t, err := c.Open()
	if err != nil || c.format != safetensors {
		return t, err
	}
	if info, err := os.Stat(c.Path); err != nil || !info.IsDir() {
		return t, nil
	}
	for _, name := range slices.Sorted(maps.Values(headFiles())) {
		path := filepath.Join(c.Path, name)
		if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err := t.add(path); err != nil {
			return nil, errors.Join(err, t.Close())
		}
	}
	return t, nil
}

// wanted returns the shapes that config.json gives tensors.
func (c *Container) wanted() func(name string) ([]int, bool) {
	shapes := map[string][]int{}
	var conf model.Config
	if c.Texts != "" {
		conf, _ = ReadConfig(c.Texts)
		if whole, err := ReadImageConfig(c.Texts); err == nil {
			conf = whole
		}
	}
	if conf.Layers > 0 {
		layout, _ := model.Layout(conf, model.Heads{LM: true})
		for _, t := range layout {
			shapes[t.Name] = t.Shape
		}
		if e, ok := shapes[embedding]; ok && conf.TieEmbeddings {
			shapes[lmHead] = e
		}
	}
	if conf.ReadsImages() {
		tower, _ := readTower(c.Texts) // ReadConfig or ReadImageConfig has read it
		for _, t := range tower.Tensors() {
			for _, name := range storedNames(t.Name) {
				shapes[name] = t.Shape
			}
		}
	}
	return func(name string) ([]int, bool) {
		s, ok := shapes[name]
		if plain, inner := textName(name, true); !ok && inner && conf.ReadsImages() {
			s, ok = shapes[plain]
		}
		return slices.Clone(s), ok
	}
}

// looksTorch reports whether a file is one of torch.save: a zip archive, or a pickle.
func looksTorch(path string) bool {
	switch strings.ToLower(filepath.Ext(path)) {
	case ".pt", ".pth", ".bin", ".ckpt":
		return true
	case ".safetensors":
		return false
	}
	f, err := openRegular(path)
	if err != nil {
		return false
	}
	defer f.Close()
	head := make([]byte, 4)
	_, err = f.ReadAt(head, 0)
	return err == nil && (bytes.Equal(head, []byte("PK\x03\x04")) || head[0] == 0x80 && head[2] == 0x8a)
}
