package megatron

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"exp/train/checkpoint/extent"
)

// tile is a rectangle of a matrix.
type tile struct {
	row, col   int // its first element
	rows, cols int
	data       extent.Extent // its elements, row-major
}

// slice returns the elements of n rows from row of the matrix.
func (t tile) slice(row, n int) extent.Extent {
	width := t.data.Size() / int64(t.rows)
	return t.data.Slice(int64(row-t.row)*width, int64(n)*width)
}

// maxPieces limits the pieces of one tensor: more than any layout needs, and little memory.
const maxPieces = 1 << 20

// compose returns the elements of a matrix. It returns an error unless the tiles cover
// every element exactly once.
func compose(rows, columns int, tiles []tile) (extent.Extent, error) {
	tiles = slices.DeleteFunc(slices.Clone(tiles), func(t tile) bool { return t.rows == 0 || t.cols == 0 })
	slices.SortFunc(tiles, func(a, b tile) int { return cmp.Or(cmp.Compare(a.row, b.row), cmp.Compare(a.col, b.col)) })
	var bands []extent.Extent
	var open []tile // the tiles that cover row at
	pieces := 0
	for at := 0; at < rows && columns > 0; {
		for len(tiles) > 0 && tiles[0].row <= at {
			open, tiles = append(open, tiles[0]), tiles[1:]
		}
		slices.SortFunc(open, func(a, b tile) int { return cmp.Compare(a.col, b.col) })
		if err := spans(open, at, columns); err != nil {
			return extent.Extent{}, err
		}
		end := rows
		if len(tiles) > 0 {
			end = min(end, tiles[0].row)
		}
		for _, t := range open {
			end = min(end, t.row+t.rows)
		}
		var band []extent.Extent
		for _, t := range open {
			band = append(band, t.slice(at, end-at))
		}
		if pieces += len(band); pieces > maxPieces {
			return extent.Extent{}, errors.New("has too many parts")
		}
		bands = append(bands, extent.Interleave(end-at, band...))
		open = slices.DeleteFunc(open, func(t tile) bool { return t.row+t.rows <= end })
		at = end
	}
	if len(tiles)+len(open) > 0 {
		return extent.Extent{}, fmt.Errorf("has parts beyond its %d rows of %d columns", rows, columns)
	}
	return extent.Concat(bands...), nil
}

// spans checks that tiles, by column, cover a row exactly once.
func spans(tiles []tile, row, columns int) error {
	at := 0
	for _, t := range tiles {
		if t.row < 0 || t.col < at {
			return fmt.Errorf("has overlapping parts at row %d, column %d", row, t.col)
		}
		if t.col > at {
			break
		}
		at += t.cols
	}
	if at != columns {
		return fmt.Errorf("has no part at row %d, column %d", row, at)
	}
	return nil
}

// matrix is a tensor of at most two dimensions; a vector is one column.
type matrix struct {
	extent.Tensor
	width int64 // bytes of a row
	size  int64 // bytes of an element
}

// newMatrix returns a tensor that has elements as a matrix.
func newMatrix(t extent.Tensor) matrix {
	rows, columns := sides(t.Shape)
	m := matrix{Tensor: t}
	if rows*columns > 0 {
		m.width = t.Data.Size() / int64(rows)
		m.size = m.width / int64(columns)
	}
	return m
}

// sides returns the rows and columns of a shape.
func sides(shape []int) (rows, columns int) {
	rows, columns = 1, 1
	if len(shape) > 0 {
		rows = shape[0]
	}
	if len(shape) > 1 {
		columns = shape[1]
	}
	return rows, columns
}

// cut returns a rectangle of the matrix.
func (m matrix) cut(row, col, rows, cols int) extent.Extent {
	return extent.Strided(m.Data, int64(row)*m.width+int64(col)*m.size, int64(cols)*m.size,
		extent.Loop{N: int64(rows), Stride: m.width})
}

// repeat returns a row of the matrix n times.
func (m matrix) repeat(row, n int) extent.Extent {
	return extent.Strided(m.Data, int64(row)*m.width, m.width, extent.Loop{N: int64(n)})
}

// Compose returns the elements of a rank's tensor and their type. find returns a Hugging
// Face tensor.
func (t Tensor) Compose(find func(name string) extent.Tensor) (extent.Extent, string, error) {
	var tiles []tile
	dtype := ""
	for _, b := range t.Blocks {
		from := find(b.Name)
		if dtype != "" && from.DType != dtype {
			return extent.Extent{}, "", fmt.Errorf("joins tensors of types %s and %s", dtype, from.DType)
		}
		dtype = from.DType
		m := newMatrix(from)
		part := tile{row: b.At, rows: b.Rows, cols: b.Cols}
		if b.Pad {
			part.data = m.repeat(b.Row, b.Rows)
		} else {
			part.data = m.cut(b.Row, b.Col, b.Rows, b.Cols)
		}
		tiles = append(tiles, part)
	}
	rows, columns := sides(t.Shape)
	data, err := compose(rows, columns, tiles)
	return data, dtype, err
}
