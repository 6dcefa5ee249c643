package checkpoint

import (
	"cmp"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"exp/kernels"
	"exp/train/checkpoint/fault"
	"exp/train/model"
)

// Description is everything known of a model's files without reading weights.
type Description struct {
	Path      string
	Container string // "safetensors", "torch", …; "none" if there are no weights
	Files     []DescribedFile
	Tensors   []DescribedTensor // under the files' names, by name

	Class  string // of config.json; empty without one
	Config model.Config
	Known  bool // Config is supported
	// Backbone is the class of the language model that a reward model is made of; empty for other models.
	Backbone string
	Reason   []string // if not: every reason
	Notes    []string // notes for people on a supported model
}

// DescribedFile is a file of a model.
type DescribedFile struct {
	Name   string
	Bytes  int64
	SHA256 string // in hexadecimal, if it was asked for
}

// DescribedTensor is a tensor and the file that holds it.
type DescribedTensor struct {
	Tensor
	File string
}

// Describe reads the headers of a model in any container that FindContainer finds, or of a
// folder without weights. A model that cannot be computed is not an error: Reason says why.
// It returns an error if nothing is there.
func Describe(path string) (*Description, error) {
	if h, family, ok := scoreHeadOf(classIn(TextsFolder(path))); ok {
		return h.describe(path, family+causal)
	}
	return describe(path, ReadConfig, OpenFolder, (*Tensors).Fits)
}

// DescribeImages is Describe for a class whose images are read on request, with images.
func DescribeImages(path string) (*Description, error) {
	return describe(path, ReadImageConfig, OpenFolder, (*Tensors).Fits)
}

// DescribeText is Describe for the text model inside a model of text and images. It leaves
// out all other tensors.
func DescribeText(dir string) (*Description, error) {
	d, err := describe(dir, ReadTextConfig, OpenTextFolder, (*Tensors).Fits)
	if err == nil && d.Known {
		_, _, d.Class, _ = readText(dir)
		d.Notes = append(d.Notes, TextNote(dir))
	}
	return d, err
}

func describe(path string, read func(dir string) (model.Config, error), open func(dir string) (*Tensors, error),
	fits func(t *Tensors, c model.Config) error) (*Description, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fileError("read", path, err)
	}
	d := &Description{Path: path, Container: "none"}
	c, found := FindContainer(path)
	if !info.IsDir() {
		if found != nil {
			return nil, found
		}
		t, err := c.Open()
		if err != nil {
			return nil, err
		}
		d.Container = c.Kind
		d.Files = []DescribedFile{{Name: filepath.Base(path), Bytes: info.Size()}}
		d.tensors(t)
		return d, t.Close()
	}
	if found == nil {
		d.Path, d.Container = c.Path, c.Kind
		if c.Ranks > 0 {
			d.Notes = append(d.Notes, fmt.Sprintf("the tensors are put together from the files of %s; exp merge "+
				"writes them as a Hugging Face folder", count(c.Ranks, "rank")))
		}
	}
	if err := d.files(d.Path); err != nil {
		return nil, err
	}
	d.config(path, read)
	t, err := open(path)
	if err != nil {
		if other := d.otherContainer(); found != nil && other != "" {
			if d.Container = other; other != "torch" { // whose error says which file is missing
				err = fmt.Errorf("weights in %s format are not supported", other)
			}
		}
		d.stop(err)
		return d, nil
	}
	d.tensors(t)
	if d.Known {
		d.stop(fits(t, d.Config))
	}
	return d, t.Close()
}

// Digest fills in the SHA-256 of every file.
func (d *Description) Digest() error {
	return onAllCores(len(d.Files), func(i int, buf []byte) (err error) {
		path := d.Path
		if info, err := os.Stat(path); err == nil && info.IsDir() {
			path = filepath.Join(path, d.Files[i].Name)
		}
		d.Files[i].SHA256, err = fileSHA256(path, buf)
		return err
	})
}

// stop adds a reason.
func (d *Description) stop(err error) {
	var config *ConfigError
	switch {
	case err == nil:
		return
	case errors.As(err, &config):
		d.Reason = append(d.Reason, config.Problems...)
	default:
		text := err.Error()
		if e := (*Error)(nil); errors.As(err, &e) && e.Hint != "" {
			text += ": " + e.Hint
		}
		d.Reason = append(d.Reason, text)
	}
	d.Known = false
}

// List fills in the files of the folder.
func (d *Description) List() error { return d.files(d.Path) }

// files lists the contents of a folder and of its template folder.
func (d *Description) files(dir string) error {
	for _, folder := range []string{"", keptFolder} {
		entries, err := os.ReadDir(filepath.Join(dir, folder))
		if errors.Is(err, fs.ErrNotExist) && folder != "" {
			continue
		}
		if err != nil {
			return fileError("read", dir, err)
		}
		for _, e := range entries {
			info, err := os.Stat(filepath.Join(dir, folder, e.Name()))
			if err == nil && info.Mode().IsRegular() {
				d.Files = append(d.Files, DescribedFile{Name: filepath.Join(folder, e.Name()), Bytes: info.Size()})
			}
		}
	}
	return nil
}

// config reads config.json.
func (d *Description) config(dir string, read func(dir string) (model.Config, error)) {
	c, err := read(dir)
	dir = TextsFolder(dir)
	d.Config, d.Known, d.Class = c, err == nil, classIn(dir)
	d.stop(err)
	if d.Known {
		d.Notes = append(append(d.Notes, Notes(c)...), fileNotes(dir, c.ReadsImages())...)
		d.Notes = append(d.Notes, towerNotes(dir, c)...)
	}
}

// classIn returns the class named by a folder's config.json, or "".
func classIn(dir string) string {
	raw, err := readSmall(filepath.Join(dir, configFile), maxConfig)
	if err != nil {
		return ""
	}
	return classOf(raw)
}

// classOf returns the class named by a config.json, or "".
func classOf(raw []byte) string {
	r := settings{}
	if json.Unmarshal(raw, &r.values) != nil {
		return ""
	}
	class, kind := r.classNamed()
	return fault.ShortName(cmp.Or(class, kind))
}

// tensors adds the tensors of a file or folder.
func (d *Description) tensors(t *Tensors) {
	for _, p := range t.where {
		tensor := p.Tensor
		if !p.split {
			tensor.Name = p.stored
		}
		file := filepath.Base(p.file.Name())
		if n := len(p.files()); n > 1 {
			file = fmt.Sprintf("%s and %d more", file, n-1)
		}
		d.Tensors = append(d.Tensors, DescribedTensor{Tensor: tensor, File: file})
	}
	slices.SortFunc(d.Tensors, func(a, b DescribedTensor) int { return strings.Compare(a.Name, b.Name) })
	if len(t.opaque) > 0 {
		d.Notes = append(d.Notes, fmt.Sprintf("not tensors, so left out: %s", strings.Join(t.opaque, ", ")))
	}
	if d.count(F16) > 0 {
		d.Notes = append(d.Notes, "weights are F16: exact in F32, rounded when stored as BF16")
	}
}

// count returns the number of elements by type.
func (d *Description) count(t DType) (n int) {
	for _, x := range d.Tensors {
		if x.DType == t {
			n += x.Len()
		}
	}
	return n
}

// otherContainer names an unsupported container by its files.
func (d *Description) otherContainer() string {
	for _, f := range d.Files {
		switch name := f.Name; {
		case name == "latest_checkpointed_iteration.txt" || name == "model_optim_rng.pt":
			return "Megatron"
		case strings.HasSuffix(name, ".distcp"):
			return "torch distributed checkpoint"
		case strings.HasSuffix(name, ".gguf"):
			return "GGUF"
		case strings.HasPrefix(name, "pytorch_model") && strings.HasSuffix(name, ".bin"):
			return "torch"
		}
	}
	return ""
}

// Fits checks that the tensors make a language model of configuration c; the error
// lists all misfits. It reads no elements.
func (t *Tensors) Fits(c model.Config) error { return cmp.Or(t.foreignNames(), t.fits(c, true)) }

// fits checks that the tensors make a model of configuration c, with or without an
// output projection; the error lists all misfits.
func (t *Tensors) fits(c model.Config, lm bool) error {
	layout, _ := model.Layout(c, model.Heads{LM: lm})
	return t.match(unread(layout), ignorable(c, lm))
}

// unread are float32 tensors for match; nothing reads their elements.
func unread(tensors []model.Tensor) []NamedBuffer {
	list := make([]NamedBuffer, len(tensors))
	for i, x := range tensors {
		list[i] = NamedBuffer{Name: x.Name, Shape: x.Shape, Data: kernels.NewBuffer(nil, x.Len(), kernels.F32)}
	}
	return list
}

// Words describes an architecture for people: its family, then one feature per line.
func Words(c model.Config, class string) []string {
	a, _ := architectureNamed(strings.TrimSpace(class), class)
	var list []string
	add := func(on bool, format string, args ...any) {
		if on {
			list = append(list, fmt.Sprintf(format, args...))
		}
	}
	name := cmp.Or(a.words, class) // Megatron's arguments name none
	add(name != "", "%s", name)
	add(true, "%s of width %d, %d heads of %d, %d key/value heads, feed-forward %d, vocabulary %d",
		layerCount(c.Layers), c.Width, c.Heads, c.Head, c.KVHeads, c.FFN, c.Vocab)
	add(c.Global.Head > 0, "without a window, %d key/value heads of %d%s", c.Global.KVHeads, c.Global.Head,
		map[bool]string{true: ", which are values, too"}[c.Global.KeyValues])
	add(c.PerLayer > 0, "an embedding of %d channels of each token for each layer", c.PerLayer)
	add(c.SharedKV > 0, "the last %d layers read the keys and values of earlier ones%s", c.SharedKV,
		map[bool]string{true: ", and have feed-forward blocks twice as wide"}[c.WideFFN])
	none := countTrue(c.NoRope) == c.Layers
	add(none, "no rotary positions")
	add(!none, "rotary positions: %s", ropeWords(c))
	add(!none && c.NoRope != nil, "%d of %d layers have no rotary positions", countTrue(c.NoRope), c.Layers)
	add(c.Delta.Scan || c.Delta.Conv, "%s", hybridWords(c))
	add(c.Parallel, "%s", falconWords(c))
	add(c.NoFFN != nil, "%d layers have a feed-forward block alone", countTrue(c.NoMixer))
	add(c.Linear != nil && !c.Delta.Scan && !c.Delta.Conv, "%d of %d layers have linear attention: %d key and %d "+
		"value heads of %d and %d, convolution of width %d", countTrue(c.Linear), c.Layers, c.Delta.Keys,
		c.Delta.Values, c.Delta.KeyDim, c.Delta.ValueDim, c.Delta.Taps)
	add(c.DoubleWrites, "linear attention writes twice as much: a step may turn the sign of a state")
	add(c.Latent.Rank > 0, "latent attention: keys and values of rank %d%s; %d of %d channels rotated, values of %d",
		c.Latent.Rank, queryRankWords(c.Latent), c.Latent.Rope, c.Head, c.Latent.Value)
	add(c.Windowed != nil, "%d of %d layers see the last %d positions", countTrue(c.Windowed), c.Layers, c.Window)
	add(c.Sparse != nil, "%d of %d layers have %d experts of width %d, %d per token%s", countTrue(c.Sparse), c.Layers,
		c.Experts.Count, c.Experts.FFN, c.Experts.Top, sharedWords(c.Experts))
	add(c.OutBias, "biases on the attention output too")
	add(c.FFNBias, "biases in the feed-forward block")
	add(c.Gate == kernels.GELUTanh, "gate %s", gateName(c))
	add(c.Gate == kernels.ReLU2, "feed-forward blocks without gates, of squared ReLU")
	add(c.Gate == kernels.PlainGELU || c.Gate == kernels.PlainGELUTanh, "feed-forward blocks without gates, of %s",
		gateName(c))
	add(c.Gate == kernels.XIELU, "feed-forward blocks without gates, of xIELU, whose two numbers a layer are learned")
	add(c.OutputBias, "a bias on the output projection")
	add(c.HeadLayerNorm, "LayerNorm of each query and key head")
	add(c.ClipQKV > 0, "queries, keys and values are cut at %g", c.ClipQKV)
	add(c.Norm != model.RMSNorm, "%s", normWords(c))
	add(c.Branches != model.InTurn, "attention and feed-forward block side by side, after %s",
		map[model.Branches]string{model.TwoNorms: "a norm each", model.OneNorm: "one norm"}[c.Branches])
	add(c.Learned, "a learned vector for each position")
	add(c.Gate == kernels.Clamped, "gates and ups clamped at %d", kernels.GateLimit)
	add(c.GateMap, "a gate for each channel of the attention's output")
	add(c.Sinks, "an attention sink for each query head")
	add(c.ResidualScale > 0, "what a block adds is multiplied by %g", c.ResidualScale)
	add(c.LogitDivisor > 0, "logits divided by %g", c.LogitDivisor)
	add(c.ScoreCap > 0, "attention scores capped at %g", c.ScoreCap)
	add(c.LogitCap > 0, "logits capped at %g", c.LogitCap)
	add(c.TieEmbeddings, "the output projection is the token embedding")
	add(c.Images.Flat, "reads images, in positions of text")
	add(c.ReadsImages() && !c.Images.Flat, "reads images: %v rotary pairs turn by time, height and width%s",
		c.Images.Sections, map[bool]string{true: ", in turns"}[c.Images.Interleaved])
	add(c.Images.Block > 0, "tokens of an image see each other")
	add(c.Images.Deep > 0, "features of images are added after each of the first %d layers", c.Images.Deep)
	return list
}

// normWords describes norms that are no RMSNorm.
func normWords(c model.Config) string {
	switch c.Norm {
	case model.WeightLayerNorm:
		return "LayerNorm without biases"
	case model.OffsetLayerNorm:
		return "LayerNorm that multiplies by 1 + weight"
	case model.PlainLayerNorm:
		return "LayerNorm without weights and biases"
	}
	return "LayerNorm"
}

func layerCount(n int) string {
	if n == 1 {
		return "1 layer"
	}
	return fmt.Sprintf("%d layers", n)
}

func queryRankWords(x model.Latent) string {
	if x.QueryRank == 0 {
		return ""
	}
	return fmt.Sprintf(", queries of rank %d", x.QueryRank)
}

func sharedWords(e model.Experts) string {
	if e.Shared == 0 {
		return ""
	}
	return fmt.Sprintf(", and a shared one of width %d", e.Shared)
}

func countTrue(list []bool) (n int) {
	for _, v := range list {
		if v {
			n++
		}
	}
	return n
}

// Hex returns the digest in hexadecimal.
func (d TensorDigest) Hex() string { return hex.EncodeToString(d.SHA256[:]) }
