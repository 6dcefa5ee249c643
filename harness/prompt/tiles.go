package prompt

import (
	"fmt"
	"slices"
	"strings"

	"exp/train/rollout"
	"exp/train/tokenizer"
)

// Marks are texts that an image processor writes among the tokens of an image.
type Marks interface {
	// Texts returns what stands before each part of an image's tokens, and behind the last one, from its size in
	// pixels. All parts have as many tokens.
	Texts(width, height int) ([]string, error)
}

// RowMarks are the texts that Pixtral's processor writes: Break behind each row of tokens, and End behind the last.
type RowMarks struct {
	Break, End string
	// Size returns the rows and columns of an image's tokens, from its size in pixels.
	Size interface {
		Tokens(width, height int) (rows, columns int, err error)
	} `json:"-"`
}

// Texts implements Marks.
func (m *RowMarks) Texts(width, height int) ([]string, error) {
	rows, _, err := m.Size.Tokens(width, height)
	if err != nil {
		return nil, err
	}
	list := slices.Repeat([]string{m.Break}, rows+1)
	list[0], list[rows] = "", m.End
	return list, nil
}

// TileMarks are the texts that the processors of Idefics3 and SmolVLM write around the tiles of an image. A tile in
// row r and column c has Around and <row_r_col_c> before it; a line end follows each row. The whole image has Around
// and Whole before it, behind an empty line unless it is the only tile, and Around follows it.
type TileMarks struct {
	Around, Whole string
	// Size returns the rows and columns of tiles, from an image's size in pixels; zeros if it is one tile.
	Size interface {
		Tiling(width, height int) (rows, columns int, err error)
	} `json:"-"`
}

// Texts implements Marks. The last part is the whole image.
func (m *TileMarks) Texts(width, height int) (list []string, err error) {
	rows, columns, err := m.Size.Tiling(width, height)
	if err != nil {
		return nil, err
	}
	before := ""
	for r := range rows {
		for c := range columns {
			list = append(list, fmt.Sprintf("%s%s<row_%d_col_%d>", before, m.Around, r+1, c+1))
			before = ""
		}
		before = "\n"
	}
	if rows > 0 {
		before = "\n\n"
	}
	return append(list, before+m.Around+m.Whole, m.Around), nil
}

// marks returns the tokens before each part of an image, and those behind the last one.
func (p *Prompter) marks(pic rollout.Picture) (list [][]int32, err error) {
	if p.images.Marks == nil {
		return [][]int32{p.images.Before, p.images.After}, nil
	}
	texts, err := p.images.Marks.Texts(pic.Width, pic.Height)
	if err != nil {
		return nil, err
	}
	for _, text := range texts {
		ids, err := p.Tokenizer.Encode(text, tokenizer.Options{Added: true})
		if err == nil {
			err = p.known(ids)
		}
		if err != nil {
			return nil, fmt.Errorf("%q among its tokens: %w", strings.TrimSpace(text), err)
		}
		list = append(list, ids)
	}
	return list, nil
}

// marked returns the tokens of an image with all that the processor writes among them.
func (p *Prompter) marked(pic rollout.Picture) (out []int32, err error) {
	marks, err := p.marks(pic)
	if err != nil {
		return nil, err
	}
	tokens, err := p.tokensOf(pic)
	if err != nil {
		return nil, err
	}
	last := len(marks) - 1
	each := len(tokens) / last
	for i, mark := range marks[:last] {
		out = append(append(out, mark...), tokens[i*each:(i+1)*each]...)
	}
	return append(out, marks[last]...), nil
}

// span returns how many tokens a prompt has from an image's first to its last.
func (p *Prompter) span(pic rollout.Picture) (n int, err error) {
	if pic.Video() {
		x, err := p.video(pic)
		if err != nil {
			return 0, err
		}
		n, err = p.between(x)
		return n + x.tokens(), err
	}
	rows, columns, err := p.images.Size.Tokens(pic.Width, pic.Height)
	if err != nil {
		return 0, err
	}
	marks, err := p.marks(pic)
	if err != nil {
		return 0, err
	}
	n = rows * columns
	for _, mark := range marks[1 : len(marks)-1] {
		n += len(mark)
	}
	return n, nil
}
