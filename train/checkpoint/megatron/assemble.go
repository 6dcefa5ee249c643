package megatron

import (
	"fmt"
	"slices"
	"strings"

	"exp/train/checkpoint/extent"
	"exp/train/checkpoint/fault"
	"exp/train/model"
)

// assemble returns the tensors of a Hugging Face model from the ranks' tensors.
func (r *ranks) assemble(c model.Config) ([]extent.Tensor, error) {
	l := &Layout{Config: c, Grid: r.grid, Padded: r.padded(), Chunks: r.layers}
	if err := r.check(c); err != nil {
		return nil, fault.Refuse(r.path, "", "", "%w", err)
	}
	pieces := map[string][]piece{}
	var wrong []string
	for _, rank := range r.grid.Ranks() {
		for v := range r.grid.VP {
			left := r.place(l, rank, v, pieces, &wrong)
			for _, name := range left {
				wrong = append(wrong, fmt.Sprintf("%s has %s, which the model has not", r.grid.Folder(rank), name))
			}
		}
	}
	if len(wrong) > 0 {
		const most = 12
		text := strings.Join(wrong[:min(most, len(wrong))], "\n  ")
		if n := len(wrong) - most; n > 0 {
			text += fmt.Sprintf("\n  and %d more", n)
		}
		return nil, fault.Refuse(r.path, "", "compare the configuration with the model that was trained",
			"the tensors do not fit:\n  %s", text)
	}
	shapes, _ := model.Layout(c, model.Heads{LM: true})
	var list []extent.Tensor
	for _, t := range shapes {
		x, err := join(t.Name, t.Shape, pieces[t.Name])
		if err != nil {
			return nil, fault.Corrupt(r.path, t.Name, "%v", err)
		}
		list = append(list, x)
	}
	return list, nil
}

// check verifies that the model can be spread as the checkpoint is.
func (r *ranks) check(c model.Config) error {
	if err := fits(c); err != nil {
		return err
	}
	whole := r.grid
	whole.PP, whole.VP = 1, 1 // stages may be uneven
	if err := whole.divides(c); err != nil {
		return err
	}
	n := 0
	for _, stages := range r.layers {
		for _, layers := range stages {
			n += layers
		}
	}
	if n != c.Layers {
		return fmt.Errorf("the configuration has %d layers, the ranks hold %d", c.Layers, n)
	}
	if padded := r.padded(); c.Vocab > padded {
		return fmt.Errorf("the configuration has %d tokens, the embedding %d rows", c.Vocab, padded)
	}
	return nil
}

// piece is a rectangle of a Hugging Face tensor on a rank.
type piece struct {
	Block
	from  matrix
	dtype string
}

// place adds the rectangles of a chunk's tensors, and problems to wrong. It returns the
// tensors that have no place, by name.
func (r *ranks) place(l *Layout, rank Rank, chunk int, pieces map[string][]piece, wrong *[]string) []string {
	have := r.chunks[rank][chunk]
	used := map[string]bool{}
	for _, t := range l.Chunk(rank, chunk) {
		name := Canonical(t.Name)
		got, ok := have[name]
		used[name] = true
		copied := t.Name == outputLayer && l.Config.TieEmbeddings
		switch {
		case !ok && copied: // some formats leave the copy out
			continue
		case !ok:
			*wrong = append(*wrong, fmt.Sprintf("%s lacks %s", r.grid.Folder(rank), t.Name))
			continue
		case !slices.Equal(got.Shape, t.Shape):
			*wrong = append(*wrong, fmt.Sprintf("%s: %s is %v, not %v", r.grid.Folder(rank), t.Name, got.Shape,
				t.Shape))
			continue
		}
		for _, b := range t.Blocks {
			if !b.Pad {
				pieces[b.Name] = append(pieces[b.Name], piece{b, newMatrix(got), got.DType})
			}
		}
	}
	var left []string
	for name, t := range have {
		if !used[name] {
			left = append(left, t.Stored)
		}
	}
	slices.Sort(left)
	return left
}

// join puts a tensor together from its rectangles. Copies of one become replicas.
func join(name string, shape []int, pieces []piece) (extent.Tensor, error) {
	type place struct{ row, col, rows, cols int }
	copies := map[place][]extent.Extent{}
	var tiles []tile
	most := 1
	out := extent.Tensor{Name: name, Shape: shape}
	for _, p := range pieces {
		if out.DType == "" {
			out.DType = p.dtype
		}
		if p.dtype != out.DType {
			return out, fmt.Errorf("is %s on some ranks and %s on others", out.DType, p.dtype)
		}
		at := place{p.Row, p.Col, p.Rows, p.Cols}
		data := p.from.cut(p.At, 0, p.Rows, p.Cols)
		if copies[at] == nil {
			tiles = append(tiles, tile{p.Row, p.Col, p.Rows, p.Cols, data})
		}
		copies[at] = append(copies[at], data)
		most = max(most, len(copies[at]))
	}
	rows, columns := sides(shape)
	for k := range most { // the k-th copies; the first where there are fewer
		for i, t := range tiles {
			list := copies[place{t.row, t.col, t.rows, t.cols}]
			tiles[i].data = list[min(k, len(list)-1)]
		}
		data, err := compose(rows, columns, tiles)
		if err != nil {
			return out, err
		}
		if k == 0 {
			out.Data = data
		} else {
			out.Replicas = append(out.Replicas, data)
		}
	}
	return out, nil
}
