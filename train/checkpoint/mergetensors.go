package checkpoint

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"reflect"

	"exp/kernels"
	"exp/train/model"
)

// Trained holds the weights of a finished training, in files.
type Trained struct {
	Config model.Config
	Heads  model.Heads // LM unless it is a reward model, the auxiliary heads, and any adapters
	// Weights hold the tensors of a plain model: the trained ones, or the base of adapters.
	Weights *Tensors
	// Learned holds adapters and auxiliary heads; it may be Weights.
	Learned *Tensors
}

// MergeTensors writes trained weights as Hugging Face folder dir, with adapters folded in
// as model.FoldAdapters does, and returns its files by name:
//
//	config.json, generation_config.json, the tokenizer's files
//	model.safetensors         what a plain language model has, without a tied head; or
//	                          model-00001-of-00002.safetensors, … and their index
//	proj_z.safetensors        the log Z head, if there is one
//	value_head.safetensors    the value head, if there is one
//
// Of a model of text and images model.safetensors holds the vision tower, too, the trained one or the source's bit for
// bit, all under the names that the source has, and the files of the source's processors of images are there.
//
// Weights are rounded to nearest, ties to even. It reads and writes tensors in pieces and
// builds no model, so memory is a few pieces at any size. On any error dir is unchanged.
//
// Before publishing the folder it reads it back: the configuration must equal x.Config, and
// every bit of its tensors must match x; otherwise it returns a *ProbeError.
func MergeTensors(be kernels.Backend, x Trained, dir string, o MergeOptions) ([]FileInfo, error) {
	if x.Config.Tower != nil {
		var err error
		if o.Origin, err = o.Origin.withTower(); err != nil {
			return nil, mergeError(dir, err)
		}
	}
	as, err := o.check(be, x.Config, x.Heads)
	if err != nil {
		return nil, mergeError(dir, err)
	}
	if err := x.check(); err != nil {
		return nil, err
	}
	tensors, _ := model.Layout(x.Config, model.Heads{LM: true})
	texts, err := mergeTexts(x.Config.WithoutTower(), tensors, dir, o, as)
	if err != nil {
		return nil, err
	}
	plain, heads := x.sources(be, tensors, as)
	fused := fuseExperts(plain, sourceTensor, fusedSource)
	published := publish(fused, sourceTensor, stackedSource, turnedSource, x.Config)
	var tower []Source
	if x.Config.ReadsImages() {
		var from *Tensors
		if published, tower, from, err = o.Origin.whole(published); err != nil {
			return nil, mergeError(dir, err)
		}
		if from != nil {
			defer from.Close()
		}
	}
	plain, _ = splitTower(plain)
	contents := weightContents(published, o.shardBytes())
	for name, list := range heads {
		contents[name] = func(w io.Writer) error { return WriteSafetensors(w, list) }
	}
	return system().mergeFolder(dir, o.Replace, contents, texts,
		func(tmp string) error { return errors.Join(x.prove(tmp, plain, heads), proveTower(tmp, tower)) })
}

// Folded returns the tensors of a plain model in float32, with adapters folded in as model.FoldAdapters does, and
// those of its auxiliary heads.
func (x Trained) Folded(be kernels.Backend) ([]Source, error) {
	if err := x.check(); err != nil {
		return nil, err
	}
	tensors, _ := model.Layout(x.Config, model.Heads{LM: x.Heads.LM})
	plain, heads := x.sources(be, tensors, func(model.Tensor) DType { return F32 })
	for _, name := range sortedKeys(heads) {
		plain = append(plain, heads[name]...)
	}
	return plain, nil
}

// learned returns the adapters and auxiliary heads.
func (x Trained) learned() []model.Tensor {
	list, _ := model.AdapterLayout(x.Config, x.Heads, x.Heads.Adapters)
	return list
}

// check verifies that every tensor is present and fits.
func (x Trained) check() error {
	if err := x.Weights.fits(x.Config, x.Heads.LM); err != nil {
		return cmp.Or(x.Weights.foreignNames(), err)
	}
	if err := x.Weights.consistent(x.Config); err != nil {
		return err
	}
	return x.Learned.match(unread(x.learned()), func(string) bool { return x.Learned == x.Weights })
}

// sources returns the tensors of the folder: the plain model's, and the auxiliary heads' by
// file.
func (x Trained) sources(be kernels.Backend, tensors []model.Tensor, as dtypes) (plain []Source,
	heads map[string][]Source) {
	adapted := map[string]model.AdaptedTensor{}
	for _, t := range x.Heads.Adapters.Tensors(x.Config) {
		adapted[t.Weight] = t
	}
	for _, t := range tensors {
		s := streamed{be: be, t: x.Weights, tensor: Tensor{Name: t.Name, DType: as(t), Shape: t.Shape}}
		if a, ok := adapted[t.Name]; ok {
			s.adapters, s.on, s.learned = x.Heads.Adapters, a, x.Learned
		}
		plain = append(plain, s.source())
	}
	heads = map[string][]Source{}
	for _, t := range x.learned() {
		if t.Auxiliary() {
			s := streamed{be: be, t: x.Learned, tensor: Tensor{Name: t.Name, DType: as(t), Shape: t.Shape}}
			name := headFiles()[headOf(t.Name)]
			heads[name] = append(heads[name], s.source())
		}
	}
	return plain, heads
}

// streamed is a tensor copied from one file to another.
type streamed struct {
	be     kernels.Backend
	t      *Tensors
	tensor Tensor // as written

	adapters *model.Adapters // nil: none on this tensor
	on       model.AdaptedTensor
	learned  *Tensors
}

func (s streamed) source() Source {
	return Source{Tensor: s.tensor, Raw: func(w io.Writer) error {
		if err := s.write(w); err != nil {
			return fmt.Errorf("%s: %w", s.tensor.Name, err)
		}
		return nil
	}}
}

func (s streamed) write(w io.Writer) error {
	if from, _ := s.t.Lookup(s.tensor.Name); s.adapters == nil && from.DType == s.tensor.DType {
		buf := make([]byte, max(1, min(1<<20, from.Bytes()))) // most tensors of small models have a few KiB
		_, err := io.CopyBuffer(w, onlyReader{s.t.raw(s.tensor.Name)}, buf)
		return err
	}
	width := max(1, s.tensor.Len())
	if len(s.tensor.Shape) > 1 {
		width = s.tensor.Len() / max(1, s.tensor.Shape[0])
	}
	rows := max(1, min(chunk, s.tensor.Len())/width)
	room, err := s.be.Alloc(s.be.Float(), rows*width)
	if err != nil {
		return err
	}
	defer s.be.Free(room)
	fold, err := s.fold(rows)
	if err != nil {
		return err
	}
	if fold != nil {
		defer fold.Close()
	}
	want := Want{Name: s.tensor.Name, As: s.be.Float(), Align: width}
	return s.t.Stream([]Want{want}, func(_ Want, piece kernels.Buffer, from int) error {
		for lo := 0; lo < piece.Len(); lo += room.Len() {
			part := room.Slice(0, min(room.Len(), piece.Len()-lo))
			s.be.Copy(part, piece.Slice(lo, lo+part.Len()))
			if fold != nil {
				fold.Add(part, (from+lo)/width)
			}
			if err := writeFloats(w, s.be, part, s.tensor.DType); err != nil {
				return err
			}
		}
		return nil
	})
}

// fold reads the adapter of the tensor, nil if none.
func (s streamed) fold(rows int) (*model.Fold, error) {
	if s.adapters == nil {
		return nil, nil
	}
	f, err := s.adapters.NewFold(s.be, s.on, rows)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(s.learned.Read(s.be, s.on.A, f.A), s.learned.Read(s.be, s.on.B, f.B)); err != nil {
		f.Close()
		return nil, err
	}
	f.Refresh()
	return f, nil
}

// prove reads back the folder written from sources.
func (x Trained) prove(dir string, plain []Source, heads map[string][]Source) error {
	raw, err := readSmall(filepath.Join(dir, configFile), maxConfig)
	if err != nil {
		return err
	}
	images := usual
	if x.Config.ReadsImages() {
		images = withImages
	}
	c, err := parseConfig(filepath.Join(dir, configFile), raw, images)
	if err != nil {
		return err
	}
	if !reflect.DeepEqual(c, x.Config.WithoutTower()) {
		return mergeError(dir, fmt.Errorf("%s describes another model: %+v, not %+v", configFile, c, x.Config))
	}
	t, err := OpenFolder(dir)
	if err != nil {
		return err
	}
	err = t.holds(plain)
	if err := errors.Join(err, t.Close()); err != nil {
		return err
	}
	for name, list := range heads {
		t, err := OpenFile(filepath.Join(dir, name))
		if err != nil {
			return err
		}
		err = t.holds(list)
		if err := errors.Join(err, t.Close()); err != nil {
			return err
		}
	}
	return nil
}

// proveTower compares the vision tower of the folder with its sources, if there are any.
func proveTower(dir string, tower []Source) error {
	if len(tower) == 0 {
		return nil
	}
	t, err := OpenTower(dir)
	if err != nil {
		return err
	}
	return errors.Join(t.holds(tower), t.Close())
}

// holds compares the contents of the files with sources, which may be in other files.
func (t *Tensors) holds(list []Source) error {
	if len(list) != len(t.where) {
		return corrupt(t.path, "", "holds %d tensors, not %d", len(t.where), len(list))
	}
	for _, s := range list {
		got, ok := t.Lookup(s.Name)
		if !ok || got.kind() != s.kind() {
			return corrupt(t.path, s.Name, "is %s, not %s", got.kind(), s.kind())
		}
		columns := 1
		if n := len(s.Shape); n > 0 {
			columns = max(1, s.Shape[n-1])
		}
		c := &comparer{path: t.path, name: s.Name, r: t.raw(s.Name), size: s.DType.bits() / 8, columns: columns}
		if err := s.Raw(c); err != nil {
			return err
		}
	}
	return nil
}

// comparer compares the bytes of a tensor with r's.
type comparer struct {
	path, name    string
	r             io.Reader
	size, columns int // bytes of an element, elements of a row
	done          int // equal bytes so far
	buf           []byte
}

// Write returns a *ProbeError for the first element that differs.
func (c *comparer) Write(want []byte) (int, error) {
	if len(c.buf) < len(want) {
		c.buf = make([]byte, len(want))
	}
	got := c.buf[:len(want)]
	if _, err := io.ReadFull(c.r, got); err != nil {
		return 0, err
	}
	if bytes.Equal(got, want) {
		c.done += len(want)
		return len(want), nil
	}
	i := 0
	for got[i] == want[i] {
		i++
	}
	element := (c.done + i) / c.size
	begin := max(0, element*c.size-c.done)
	number := func(b []byte) (n uint64) {
		for k := min(begin+c.size, len(b)) - 1; k >= begin; k-- {
			n = n<<8 | uint64(b[k])
		}
		return n
	}
	return 0, &ProbeError{Path: c.path, What: "elements of " + c.name, Row: element / c.columns,
		Column: element % c.columns, Got: number(got), Want: number(want)}
}
