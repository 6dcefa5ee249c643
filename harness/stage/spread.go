package stage

import (
	"context"
	"errors"
	"path/filepath"
	"strings"

	"exp/harness/config"
	"exp/train/checkpoint"
	"exp/train/checkpoint/megatron"
	"exp/train/model"
)

// Folders of the trained weights, cut over the ranks of other trainers, within a run's directory;
// the roles of their files begin with these names.
const (
	MegatronDir = "megatron"
	FSDPDir     = "fsdp"
)

// spread writes the merged folder as merge.format asks for, reads it back to prove that it
// holds the same bits, and stores its files.
func (e *Env) spread(ctx context.Context, out *Outcome, merged string) error {
	o, name := spreadOptions(&e.run().Merge)
	if name == "" {
		return nil
	}
	c, err := checkpoint.FindContainer(merged)
	if err != nil {
		return err
	}
	o.Replace, o.Prove = true, true
	dir := filepath.Join(e.Dir, name)
	p, err := checkpoint.Spread(ctx, c, dir, o)
	if err != nil {
		return err
	}
	for _, text := range p.Notes {
		e.event("merge", "%s: %s", name, text)
	}
	files := make([]checkpoint.FileInfo, len(p.Files))
	for i, f := range p.Files {
		files[i] = checkpoint.FileInfo{Name: f.Name, Bytes: f.Bytes}
	}
	return e.putFolder(out, dir, name+"/", files)
}

// spreadOptions returns the ranks that merge.format asks for, and the folder for them; ""
// if it asks for none.
func spreadOptions(m *config.Merging) (o checkpoint.SpreadOptions, dir string) {
	switch m.Format {
	case "megatron":
		o.Megatron = &megatron.Grid{TP: m.TP, PP: m.PP, VP: m.VP, EP: m.EP}
		return o, MegatronDir
	case "fsdp":
		o.FSDP = m.Ranks
		return o, FSDPDir
	}
	return o, ""
}

// checkSpread tells bad why the model cannot be cut as merge.format asks.
func checkSpread(c *config.Run, arch model.Config, bad func(key, code, message, help string)) {
	o, dir := spreadOptions(&c.Merge)
	if dir != "" && arch.ReadsImages() {
		bad("merge.format", config.CodeConflict, "merge.format "+c.Merge.Format+" has no place for models of text "+
			"and images", "merge.format: hf")
		return
	}
	if o.Megatron == nil {
		return
	}
	_, err := megatron.Even(arch, *o.Megatron)
	for _, err := range parts(err) {
		key, help := "merge.format", "merge.format: hf or fsdp"
		if axis := (*megatron.AxisError)(nil); errors.As(err, &axis) {
			key, help = "merge."+strings.ToLower(axis.Axis), ""
		}
		bad(key, config.CodeConflict, err.Error(), help)
	}
}

// parts returns the errors that were joined into one.
func parts(err error) (list []error) {
	joined, ok := err.(interface{ Unwrap() []error })
	switch {
	case err == nil:
		return nil
	case !ok:
		return []error{err}
	}
	for _, err := range joined.Unwrap() {
		list = append(list, parts(err)...)
	}
	return list
}
