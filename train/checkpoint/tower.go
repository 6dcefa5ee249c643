package checkpoint

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"exp/kernels"
	"exp/kernels/heap"
	"exp/train/model"
	"exp/train/vision"
)

// towerName returns the name of a tower's tensor in package vision: without the "model." of transformers 5, and
// without "visual." if the tower is there. Other towers have parts of other names.
func towerName(name string) (string, bool) {
	name = strings.TrimPrefix(name, backbonePrefix)
	if rest, ok := strings.CutPrefix(name, siglip); ok {
		name = "vision_tower." + rest
	}
	if rest, ok := strings.CutPrefix(name, visual); ok {
		return rest, true
	}
	return name, slices.ContainsFunc(towerParts(), func(part string) bool { return strings.HasPrefix(name, part) })
}

// siglip begins the names of Gemma 3's tower in published files, which later releases of transformers write without
// vision_model.
const siglip = "vision_tower.vision_model."

// visual begins the names of a tower's tensors where the tower is one module, as in Qwen's and GLM's models.
const visual = "visual."

// towerParts begin the names of the tensors of other towers.
func towerParts() []string {
	return []string{"vision_tower.", "multi_modal_projector.", "vision_model.", "connector."}
}

// storedNames returns the names that a tensor of package vision may have in files, first of transformers 5 and 4.
func storedNames(name string) []string {
	if _, ok := towerName(name); !ok {
		name = visual + name
	}
	list := []string{backbonePrefix + name, name}
	if rest, ok := strings.CutPrefix(name, "vision_tower."); ok {
		list = append(list, backbonePrefix+siglip+rest, siglip+rest)
	}
	return list
}

// OpenTower opens the weights of the vision tower of a model of text and images at a path, under the names of package
// vision. Its Digests cover the tower in a run's identity.
func OpenTower(path string) (*Tensors, error) {
	t, err := openContainer(path)
	if err != nil {
		return nil, err
	}
	if t.tower != nil {
		t.where = t.tower
	}
	err = t.rename(towerName)
	if err == nil && len(t.where) == 0 {
		err = &Error{Op: "read", Path: path, Err: errors.New("no tensor's name begins with visual, vision_tower or " +
			"vision_model: there is no vision tower"),
			Hint: "model.part: text reads the language model alone"}
	}
	return t.orClosed(err)
}

// fitsTower checks that the tensors make a tower; the error lists all misfits.
func (t *Tensors) fitsTower(c vision.Config) error {
	var wanted []NamedBuffer
	for _, x := range c.Tensors() {
		wanted = append(wanted, NamedBuffer{Name: x.Name, Shape: x.Shape,
			Data: kernels.NewBuffer(nil, x.Len(), kernels.F32)})
	}
	return t.match(wanted, func(name string) bool { return strings.HasSuffix(name, inverseFrequencies) })
}

// inverseFrequencies ends the name of a table in old files, which nothing reads.
const inverseFrequencies = "rotary_pos_emb.inv_freq"

// frozenTower returns the memory type of a tower's matrices: BF16 if all have it, else float32.
func (t *Tensors) frozenTower(c vision.Config) kernels.DType {
	for _, x := range c.Tensors() {
		if len(x.Shape) > 1 && t.where[x.Name].DType != BF16 {
			return kernels.F32
		}
	}
	return kernels.BF16
}

// LoadTower returns the vision tower of a model of text and images at a path. Its matrices are BF16 in memory if all
// are in the files, else float32.
func LoadTower(be kernels.Backend, path string) (*vision.Tower, error) {
	c, err := readTower(path)
	if err != nil {
		return nil, err
	}
	t, err := OpenTower(path)
	if err != nil {
		return nil, err
	}
	x, err := t.loadTower(be, c)
	if e := t.Close(); err == nil && e != nil {
		x.Close()
		err = e
	}
	if err != nil {
		return nil, err
	}
	heap.Release() // the host's copies make room for what comes next
	return x, nil
}

func (t *Tensors) loadTower(be kernels.Backend, c vision.Config) (*vision.Tower, error) {
	if err := errors.Join(t.fitsTower(c), t.agree()); err != nil {
		return nil, err
	}
	dtype := t.frozenTower(c)
	vectors := map[string]bool{}
	for _, x := range c.Tensors() {
		vectors[x.Name] = len(x.Shape) == 1
	}
	var wide []float32
	var half []uint16
	return vision.New(be, c, dtype, func(name string) (kernels.Buffer, error) {
		n := t.where[name].Len()
		as := dtype
		var to kernels.Buffer
		if vectors[name] {
			as = kernels.F32
		}
		if as == kernels.BF16 {
			half = slices.Grow(half[:0], n)[:n]
			to = kernels.HostBits(half)
		} else {
			wide = slices.Grow(wide[:0], n)[:n]
			to = kernels.Host(wide)
		}
		return to, t.Stream([]Want{{Name: name, As: as}}, func(_ Want, piece kernels.Buffer, from int) error {
			if as == kernels.BF16 {
				copy(half[from:], kernels.Bits(piece))
			} else {
				copy(wide[from:], kernels.Elems[float32](piece))
			}
			return nil
		})
	})
}

// towerNotes describes the vision tower of a folder whose model reads images.
func towerNotes(dir string, c model.Config) []string {
	if !c.ReadsImages() {
		return nil
	}
	x, err := readTower(dir)
	if err != nil {
		return []string{err.Error()}
	}
	tiles := ""
	if x.Kind == vision.Gemma3 {
		tiles = fmt.Sprintf(", and an image is %d·%d tokens", x.Side/x.Merge, x.Side/x.Merge)
	} else if x.Tiled() {
		tiles = fmt.Sprintf(", and an image is tiles of %d·%d tokens", x.Side/x.Merge, x.Side/x.Merge)
	}
	return []string{fmt.Sprintf("with a vision tower of %s of width %d, %d heads, feed-forward %d, %d parameters, "+
		"which is not listed: a token is %d·%d patches of %d·%d pixels%s", layerCount(x.Layers), x.Width, x.Heads,
		x.FFN, x.Params(), x.Merge, x.Merge, x.Patch, x.Patch, tiles)}
}

// processorFiles are files of a model of text and images that say how its inputs become tokens and patches, besides
// the tokenizer's.
func processorFiles() []string {
	return []string{"preprocessor_config.json", "video_preprocessor_config.json", processorFile}
}

// processorFile is of the whole processor.
const processorFile = "processor_config.json"

// readProcessor returns the processor's files of a folder.
func readProcessor(dir string) (map[string][]byte, error) {
	files := map[string][]byte{}
	for _, name := range processorFiles() {
		raw, err := readSmall(filepath.Join(dir, name), maxConfig)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		files[name] = raw
	}
	return files, nil
}

// errNoTower is returned for trained weights of a model of text and images without the folder that they began from.
var errNoTower = errors.New("a model of text and images is written only with the vision tower of the folder that it " +
	"was trained from")

// whole returns all tensors of the folder to write: a language model's, under the names in the source's files, and the
// vision tower: the one in the list if it was trained, else the source's. tower lists the tower alone, under the names
// of package vision. from has the source's files open; nil for a trained tower.
func (o *Origin) whole(list []Source) (named, tower []Source, from *Tensors, err error) {
	if o == nil || o.Path == "" {
		return nil, nil, nil, errNoTower
	}
	if named, err = o.named(list); err != nil {
		return nil, nil, nil, err
	}
	if _, tower = splitTower(list); tower != nil {
		return named, tower, nil, nil
	}
	if from, err = OpenTower(o.Path); err != nil {
		return nil, nil, nil, err
	}
	tower = from.Sources()
	for _, x := range tower {
		x.Name = from.where[x.Name].stored
		named = append(named, x)
	}
	return named, tower, from, nil
}

// named returns tensors of a language model under their names in the source's files, with all experts of a layer
// together where the source has them so.
func (o *Origin) named(list []Source) (out []Source, err error) {
	experts := map[string]map[int]Source{}
	for _, x := range list {
		name, ok := o.Names[x.Name]
		if !ok {
			return nil, fmt.Errorf("%s is not in the source: its name in a model of text and images is not known",
				x.Name)
		}
		if _, at, of := fusedName(x.Name); of && !strings.HasSuffix(name, ".weight") {
			if experts[name] == nil {
				experts[name] = map[int]Source{}
			}
			experts[name][at] = x
			continue
		}
		x.Name = name
		out = append(out, x)
	}
	for _, name := range sortedKeys(experts) {
		x, err := o.together(name, experts[name])
		if err != nil {
			return nil, err
		}
		out = append(out, x)
	}
	return out, nil
}

// together returns the tensor of all experts of a layer, gates before ups: [E,Out,In], or turned [E,In,Out].
func (o *Origin) together(name string, byPlace map[int]Source) (Source, error) {
	parts := make([]Source, len(byPlace))
	first := byPlace[0]
	for at, x := range byPlace {
		if at >= len(parts) || x.DType != first.DType || !slices.Equal(x.Shape, first.Shape) || len(x.Shape) != 2 {
			return Source{}, fmt.Errorf("%s is not of one kind with the other experts of its layer", x.Name)
		}
		parts[at] = x
	}
	n := 1 // tensors of an expert
	if strings.HasSuffix(name, "gate_up_proj") {
		n = 2
	}
	rows, in, size := n*first.Shape[0], first.Shape[1], first.DType.bits()/8
	shape := []int{len(parts) / n, rows, in}
	if o.Turned {
		shape[1], shape[2] = in, rows
	}
	return Source{Tensor: Tensor{Name: name, DType: first.DType, Shape: shape}, Raw: func(w io.Writer) error {
		for i := 0; i < len(parts); i += n {
			var expert sliceWriter
			for _, p := range parts[i : i+n] {
				if err := p.Raw(&expert); err != nil {
					return err
				}
			}
			var err error
			if o.Turned {
				err = writeTransposed(w, [][]byte{expert.bytes}, in, size)
			} else {
				_, err = w.Write(expert.bytes)
			}
			if err != nil {
				return err
			}
		}
		return nil
	}}, nil
}
