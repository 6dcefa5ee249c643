package megatron

import (
	"fmt"
	"io"

	"exp/train/checkpoint/extent"
	"exp/train/checkpoint/torchsave"
)

// Names of the files of a checkpoint.
const (
	latestFile = "latest_checkpointed_iteration.txt"
	rankFile   = "model_optim_rng.pt"
	rankStem   = "model_optim_rng"
)

// iteration is the training step that a converted checkpoint claims, as Megatron's own
// converter has it.
const iteration = 1

// checkpointVersion is the version of Megatron's layout: 3.0 interleaves queries, keys and
// values by group.
const checkpointVersion = 3.0

// Files returns the files of a checkpoint by their paths, written from the tensors of a
// Hugging Face model.
func (l *Layout) Files(find func(name string) extent.Tensor) map[string]func(w io.Writer) error {
	step := fmt.Sprintf("iter_%07d", iteration)
	files := map[string]func(w io.Writer) error{latestFile: func(w io.Writer) error {
		_, err := fmt.Fprint(w, iteration)
		return err
	}}
	for _, r := range l.Grid.Ranks() {
		files[step+"/"+l.Grid.Folder(r)+"/"+rankFile] = func(w io.Writer) error { return l.write(w, r, find) }
	}
	return files
}

// write writes the file of a rank.
func (l *Layout) write(w io.Writer, r Rank, find func(name string) extent.Tensor) error {
	state := &torchsave.Dict{}
	state.Set("args", l.args(find(embedding).DType))
	state.Set("checkpoint_version", checkpointVersion)
	state.Set("iteration", iteration)
	for v := range l.Grid.VP {
		tensors := &torchsave.Dict{}
		for _, t := range l.Chunk(r, v) {
			part, err := t.stored(find)
			if err != nil {
				return fmt.Errorf("%s: %w", t.Name, err)
			}
			tensors.Set(t.Name, part)
		}
		state.Set(l.Grid.chunkKey(v), tensors)
	}
	return torchsave.Write(w, rankStem, state)
}

// chunkKey returns the key of a chunk in a rank's file.
func (g Grid) chunkKey(chunk int) string {
	if g.VP == 1 {
		return "model"
	}
	return fmt.Sprintf("model%d", chunk)
}

// stored returns the tensor with its elements, to be written.
func (t Tensor) stored(find func(name string) extent.Tensor) (*torchsave.View, error) {
	data, dtype, err := t.Compose(find)
	if err != nil {
		return nil, err
	}
	length := 1
	for _, d := range t.Shape {
		length *= d
	}
	content := &torchsave.Content{DType: dtype, Len: length, Raw: func(w io.Writer) error {
		_, err := io.Copy(w, io.NewSectionReader(data, 0, data.Size()))
		return err
	}}
	return &torchsave.View{Content: content, Shape: t.Shape}, nil
}
