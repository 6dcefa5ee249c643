package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"exp/train/checkpoint/extent"
	"exp/train/checkpoint/fsdp"
	"exp/train/checkpoint/megatron"
	"exp/train/model"
)

// ErrGrid means that a model cannot be cut over the ranks asked for.
var ErrGrid = errors.New("this model cannot be cut so")

// SpreadOptions say over which ranks Spread cuts a model. Exactly one of Megatron and FSDP
// is set.
type SpreadOptions struct {
	Megatron *megatron.Grid
	FSDP     int // ranks of verl's FSDP
	// Replace swaps out an existing target, which is otherwise an error.
	Replace bool
	// Prove reads the checkpoint back before it gets its name: an element that is not c's is
	// an *Error.
	Prove bool
	// Progress, if set, is called now and then with the bytes of files written so far.
	Progress func(done int64)
}

// Spread writes the language model c as another trainer's checkpoint in folder dir, bit for
// bit, with config.json and the tokenizer in its subfolder huggingface:
//
//	iter_0000001/mp_rank_TT[_PPP][_EEE]/model_optim_rng.pt   Megatron's ranks
//	latest_checkpointed_iteration.txt
//
//	model_world_size_W_rank_R.pt, fsdp_config.json           verl's ranks
//
// Elements go from files to files in pieces. On any error, and if ctx ends, dir is
// unchanged. Auxiliary heads are left out of Megatron's ranks, which have no place for them.
func Spread(ctx context.Context, c *Container, dir string, o SpreadOptions) (*Packed, error) {
	return system().spread(ctx, c, dir, o)
}

func (d disk) spread(ctx context.Context, c *Container, dir string, o SpreadOptions) (*Packed, error) {
	if _, err := os.Lstat(dir); err == nil && !o.Replace {
		return nil, taken("convert", dir)
	}
	conf, raw, err := c.architecture()
	if err != nil {
		return nil, err
	}
	t, err := c.openWhole()
	if err != nil {
		return nil, err
	}
	if raw == nil {
		raw, err = c.madeConfig(t)
	}
	if err == nil {
		err = errors.Join(t.Fits(conf), t.tied(conf), t.agree())
	}
	if err != nil {
		return nil, errors.Join(err, t.Close())
	}
	p := &packer{d: d, c: c, t: t, config: raw}
	p.out = Packed{Container: c.Kind, Source: c.Path, Ranks: c.Ranks, Class: classOf(raw)}
	err = p.spread(ctx, dir, conf, o)
	return &p.out, errors.Join(err, t.Close())
}

// architecture returns the model's configuration and the file that it stands in; nil if it
// comes from arguments.
func (c *Container) architecture() (model.Config, []byte, error) {
	if c.Texts == "" {
		if c.format == megatronRanks {
			conf, err := c.argsConfig()
			return conf, nil, err
		}
		return model.Config{}, nil, &Error{Op: "convert", Path: c.Path,
			Err:  errors.New("no config.json is with the weights"),
			Hint: "name a folder with the model's config.json and tokenizer: --hf-config DIR"}
	}
	raw, err := readSmall(filepath.Join(c.Texts, configFile), maxConfig)
	if err != nil {
		return model.Config{}, nil, err
	}
	conf, err := ParseConfig(filepath.Join(c.Texts, configFile), raw)
	return conf, raw, err
}

func (p *packer) spread(ctx context.Context, dir string, conf model.Config, o SpreadOptions) error {
	files, err := p.shardFiles(conf, o)
	if err != nil {
		return &Error{Op: "convert", Path: p.c.Path, Err: fmt.Errorf("%w: %s", ErrGrid,
			strings.ReplaceAll(err.Error(), "\n", "; "))}
	}
	s, err := p.d.stage("convert", dir)
	if err != nil {
		return err
	}
	defer s.discard()
	p.folder = textsFolder
	if err := p.texts(s, p.config, nil); err != nil {
		return err
	}
	w := &watched{ctx: ctx, progress: o.Progress}
	for _, name := range sortedKeys(files) {
		info, err := s.write(name, func(to io.Writer) error {
			w.to = to
			return files[name](w)
		})
		if err != nil {
			return err
		}
		p.out.Files = append(p.out.Files, DescribedFile{Name: info.Name, Bytes: info.Bytes})
	}
	if o.Prove {
		if err := p.prove(s.tmp, conf, o.Megatron == nil); err != nil {
			return err
		}
	}
	return s.publish(o.Replace)
}

// prove compares the tensors of the checkpoint in a folder with those it was written from.
func (p *packer) prove(dir string, conf model.Config, all bool) error {
	t, err := OpenFolder(dir)
	if err != nil {
		return err
	}
	err = p.equals(t, p.spreadTensors(conf, all))
	return errors.Join(err, t.Close())
}

func (p *packer) equals(t *Tensors, want []extent.Tensor) error {
	if len(t.where) != len(want) {
		return corrupt(t.path, "", "holds %d tensors, not %d", len(t.where), len(want))
	}
	for _, x := range want {
		got, ok := t.where[x.Name]
		if !ok || string(got.DType) != x.DType || !slices.Equal(got.Shape, x.Shape) {
			return corrupt(t.path, x.Name, "is %s, not %s %v", got.kind(), x.DType, x.Shape)
		}
		at, err := firstDifference(got.data, x.Data)
		if err != nil {
			return err
		}
		if at >= 0 {
			return corrupt(t.path, x.Name, "was written with another byte %d", at)
		}
	}
	return t.agree()
}

// shardFiles returns the files of the ranks by name.
func (p *packer) shardFiles(conf model.Config, o SpreadOptions) (map[string]func(w io.Writer) error, error) {
	tensors := p.spreadTensors(conf, o.Megatron == nil)
	p.out.Tensors = len(tensors)
	p.out.DType = DType(tensors[0].DType)
	if o.Megatron == nil {
		if o.FSDP < 1 || o.FSDP > maxRanks {
			return nil, fmt.Errorf("%d ranks: want 1 to %d", o.FSDP, maxRanks)
		}
		fused := fuseExperts(tensors, describedExtent, fusedExtent)
		published := publish(fused, describedExtent, stackedExtent, turnedExtent, conf)
		return fsdp.Files(moduleOlmoHybrid(published, describedExtent, stackedExtent), o.FSDP), nil
	}
	layout, err := megatron.Even(conf, *o.Megatron)
	if err != nil {
		return nil, err
	}
	left := 0
	for _, x := range p.t.List() {
		if isAuxiliary(x) {
			left++
		}
	}
	if left > 0 {
		p.note("%s of auxiliary heads: left out", count(left, "tensor"))
	}
	for _, text := range megatron.Unsaid(conf) {
		p.note("%s; huggingface/config.json does", text)
	}
	find := map[string]extent.Tensor{}
	for _, x := range tensors {
		find[x.Name] = x
	}
	return layout.Files(func(name string) extent.Tensor { return find[name] }), nil
}

// maxRanks bounds the files that a checkpoint is cut into.
const maxRanks = 1 << 14

// spreadTensors returns the model's tensors in the order of its modules, the tied output
// projection and auxiliary heads only with all.
func (p *packer) spreadTensors(conf model.Config, all bool) []extent.Tensor {
	layout, _ := model.Layout(conf, model.Heads{LM: true})
	var list []extent.Tensor
	take := func(name, as string) {
		from := p.t.where[name]
		list = append(list, extent.Tensor{Name: as, Stored: name, DType: string(from.DType), Shape: from.Shape,
			Data: from.data})
	}
	for _, x := range layout {
		take(x.Name, x.Name)
	}
	if all && conf.TieEmbeddings { // FSDP stores both names
		take(embedding, lmHead)
	}
	for _, x := range p.t.List() {
		if all && isAuxiliary(x) {
			take(x.Name, x.Name)
		}
	}
	return list
}

// isAuxiliary reports whether a tensor belongs to an auxiliary head. FSDP cuts no scalars.
func isAuxiliary(x Tensor) bool { return (model.Tensor{Name: x.Name}).Auxiliary() && len(x.Shape) > 0 }

// watched ends writing when its context does, and reports progress.
type watched struct {
	ctx      context.Context
	to       io.Writer
	done     int64
	progress func(done int64)
}

func (w *watched) Write(b []byte) (int, error) {
	if err := w.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := w.to.Write(b)
	if w.done += int64(n); w.progress != nil {
		w.progress(w.done)
	}
	return n, err
}
