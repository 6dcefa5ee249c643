package checkpoint

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"exp/kernels"
	"exp/train/model"
)

// Filter selects tensors of a model.
type Filter func(model.Tensor) bool

// Plain selects the tensors of a language model: backbone and output projection.
func Plain(t model.Tensor) bool { return !t.Auxiliary() }

// headFiles maps the auxiliary heads, by the first part of their tensors' names, to
// MergeTensors's files for them.
func headFiles() map[string]string {
	return map[string]string{"proj_z": "proj_z.safetensors", "score": "value_head.safetensors"}
}

// headOf returns the first part of a tensor's name.
func headOf(name string) string {
	head, _, _ := strings.Cut(name, ".")
	return head
}

// Buffers returns the parameters of m that keep selects, in arena order, under their
// Hugging Face names: a group of a training checkpoint. Tensors that ranks hold in parts can only
// be set, each rank its part.
func Buffers(m *model.Model, keep Filter) []NamedBuffer {
	var list []NamedBuffer
	for _, t := range m.Tensors() {
		switch {
		case !keep(t):
		case m.IsCut(t):
			list = append(list, NamedBuffer{Name: t.Name, Shape: t.Shape, Cut: ownPart{m, t}})
		default:
			list = append(list, NamedBuffer{Name: t.Name, Shape: t.Shape, Data: m.View(t.Name)})
		}
	}
	return list
}

// ownPart is this rank's part of a tensor.
type ownPart struct {
	m *model.Model
	t model.Tensor
}

// Len implements Cut.
func (p ownPart) Len() int { return p.t.Len() }

// DType implements Cut.
func (p ownPart) DType() kernels.DType { return p.m.Params().DType() }

// Read implements Cut: a rank alone cannot.
func (p ownPart) Read(int, int) (kernels.Buffer, error) {
	return kernels.Buffer{}, fmt.Errorf("checkpoint: ranks hold parts of %s", p.t.Name)
}

// Write implements Cut.
func (p ownPart) Write(lo int, x kernels.Buffer) error {
	p.m.Set(p.t, lo, x)
	return nil
}

// Weights returns the parameters of m that keep selects, by name. They are copied from the
// device in chunks when a source is read. The digest of weights is computed from:
//
//	for _, s := range Weights(be, m, keep) { h := sha256.New(); s.Raw(h); … }
func Weights(be kernels.Backend, m *model.Model, keep Filter) []Source {
	return Sources(be, Buffers(m, keep))
}

// Sources returns tensors by name, as Weights does.
func Sources(be kernels.Backend, buffers []NamedBuffer) []Source {
	var list []Source
	for _, b := range buffers {
		list = append(list, b.source(be))
	}
	slices.SortFunc(list, func(a, b Source) int { return strings.Compare(a.Name, b.Name) })
	return list
}

// LoadWeights sets the parameters of m that want selects from a file or folder, and
// refreshes m. Other number types are converted, exactly if narrower. It changes nothing
// unless every tensor is present and fits; the error, a *MismatchError, lists all misfits.
// Three kinds of tensors may be present without being requested:
//
//   - auxiliary heads, as FlowRL's published models have them;
//   - lm_head.weight, for a model without output projection, or with a tied one if
//     it equals the embedding;
//   - rotary tables (….rotary_emb.inv_freq) of old Llama files.
func LoadWeights(be kernels.Backend, m *model.Model, t *Tensors, want Filter) error {
	wanted := Buffers(m, want)
	if err := t.match(wanted, ignorable(m.Config, m.Heads.LM)); err != nil {
		return cmp.Or(t.foreignNames(), err)
	}
	if err := t.consistent(m.Config); err != nil {
		return err
	}
	if err := t.fill(be, wanted); err != nil {
		return err
	}
	m.Refresh()
	return nil
}

// fill sets buffers to their tensors, in disk order.
func (t *Tensors) fill(be kernels.Backend, buffers []NamedBuffer) error {
	into := map[string]NamedBuffer{}
	wants := make([]Want, len(buffers))
	for i, b := range buffers {
		into[b.Name], wants[i] = b, Want{Name: b.Name, As: b.dtype()}
	}
	t.byPlace(wants)
	return t.Stream(wants, func(w Want, piece kernels.Buffer, from int) error {
		b := into[w.Name]
		if b.Cut != nil {
			return b.Cut.Write(from, piece)
		}
		be.Copy(b.Data.Slice(from, from+piece.Len()), piece)
		be.Sync()
		return nil
	})
}

const (
	embedding = "model.embed_tokens.weight"
	lmHead    = "lm_head.weight"
)

// ignorable returns the tensors of a file that a model can ignore.
func ignorable(c model.Config, lm bool) func(name string) bool {
	return func(name string) bool {
		return model.Tensor{Name: name}.Auxiliary() ||
			name == lmHead && (c.TieEmbeddings || !lm) ||
			strings.HasSuffix(name, ".rotary_emb.inv_freq") || furtherLayers(c, name) || unreadKeys(c, name)
	}
}

// match checks that t holds the wanted buffers and otherwise only ignorable tensors.
func (t *Tensors) match(wanted []NamedBuffer, ignore func(name string) bool) error {
	e := &MismatchError{Path: t.path}
	asked := map[string]bool{}
	for _, b := range wanted {
		asked[b.Name] = true
		want := b.tensor()
		got, ok := t.Lookup(b.Name)
		switch {
		case !ok:
			e.Missing = append(e.Missing, b.Name)
		case !slices.Equal(got.Shape, want.Shape) || !got.DType.fits(b.dtype()):
			e.Misshaped = append(e.Misshaped, Misshape{Name: b.Name, Got: got.kind(), Want: want.kind()})
		}
	}
	for _, got := range t.List() {
		if !asked[got.Name] && !ignore(got.Name) {
			e.Unexpected = append(e.Unexpected, got.Name)
		}
	}
	slices.Sort(e.Missing)
	slices.SortFunc(e.Misshaped, func(a, b Misshape) int { return strings.Compare(a.Name, b.Name) })
	return e.orNil()
}

// agree compares the copies of tensors that several files hold.
func (t *Tensors) agree() error {
	for _, tensor := range t.List() {
		if err := t.where[tensor.Name].agree(); err != nil {
			return err
		}
	}
	return nil
}

// consistent checks what the files hold twice: copies of a tensor, and an output projection
// equal to the embedding if the model ties them.
func (t *Tensors) consistent(c model.Config) error {
	if err := t.agree(); err != nil {
		return err
	}
	return t.tied(c)
}

func (t *Tensors) tied(c model.Config) error {
	_, head := t.Lookup(lmHead)
	_, embed := t.Lookup(embedding)
	if !c.TieEmbeddings || !head || !embed {
		return nil
	}
	same, err := t.equal(lmHead, embedding)
	if err != nil {
		return err
	}
	if !same {
		return &Error{Op: "read", Path: t.path, Tensor: lmHead,
			Err:  fmt.Errorf("differs from %s, but the configuration ties them", embedding),
			Hint: "set tie_word_embeddings to false in config.json if the model has its own output projection"}
	}
	return nil
}
