package rollout

import (
	"fmt"
	"slices"
)

// ShownImage is an image in the prompts and messages of an agent's episode that the agent brought: none of the
// problems'. Its tokens have the ids from First on.
//
// While a stage runs, its gallery chooses these ids, in the order in which images come. In records they do not depend
// on that: the images are numbered in the order in which the completion first shows them, and their tokens are
// negative, -n … -1 for a first image of n tokens, then the next ones below (Completion.Named).
type ShownImage struct {
	Picture
	First  int32 `json:"first"`
	Tokens int   `json:"tokens"`
}

// has reports whether a token is of the image.
func (x *ShownImage) has(id int32) bool {
	return id >= x.First && int64(id) < int64(x.First)+int64(x.Tokens)
}

// Brought returns the images that an agent brought to a completion.
func (c *Completion) Brought() []ShownImage {
	if c.Asked == nil {
		return nil
	}
	return c.Asked.Images
}

// each calls f for the tokens of all prompts and conversations, in order.
func (c *Completion) each(f func(ids []int32)) {
	if c.Asked == nil {
		return
	}
	for _, x := range c.Conversations(c.Asked.Tokens) {
		f(x.Prompt)
		f(c.Tokens[x.Start:x.End])
	}
}

// NoteImages sets the images that the agent brought, in the order in which the completion first shows them. of returns
// the image of a token; ok is false for tokens of text, and of images that nobody brought.
func (c *Completion) NoteImages(of func(id int32) (im ShownImage, ok bool)) {
	var list []ShownImage
	c.each(func(ids []int32) {
		for _, id := range ids {
			if n := len(list); n > 0 && list[n-1].has(id) {
				continue
			}
			im, ok := of(id)
			if ok && !slices.ContainsFunc(list, func(x ShownImage) bool { return x.First == im.First }) {
				list = append(list, im)
			}
		}
	})
	if len(list) > 0 {
		c.Asked.Images = list
	}
}

// Named returns the completion with the ids that records have for the tokens of images that an agent brought: c itself
// if the agent brought none, or if c has them. Both share everything else.
func (c *Completion) Named() *Completion {
	list := c.Brought()
	if len(list) == 0 || list[0].First < 0 {
		return c
	}
	named, below := slices.Clone(list), 0
	for i := range named {
		below += named[i].Tokens
		named[i].First = int32(-below)
	}
	out := *c
	out.renumber(named)
	return &out
}

// Show gives the tokens of images of a record the ids that show says, the first of each image. A completion without
// such images stays as it is.
func (c *Completion) Show(show func(im ShownImage) (first int32, err error)) error {
	list := slices.Clone(c.Brought())
	for i := range list {
		var err error
		if list[i].First, err = show(list[i]); err != nil {
			return fmt.Errorf("%v: %w", list[i].Picture, err)
		}
	}
	if len(list) > 0 {
		c.renumber(list)
	}
	return nil
}

// renumber gives the images that an agent brought the ids in list. It changes copies, which other completions do not
// share.
func (c *Completion) renumber(list []ShownImage) {
	had, asked := c.Asked.Images, *c.Asked
	lo, hi := had[0].First, had[0].First
	for i := range had {
		lo, hi = min(lo, had[i].First), max(hi, had[i].First+int32(had[i].Tokens-1))
	}
	moved := func(ids []int32) []int32 {
		out, at := slices.Clone(ids), 0
		for i, id := range out {
			if id < lo || id > hi {
				continue
			}
			if !had[at].has(id) {
				n := slices.IndexFunc(had, func(x ShownImage) bool { return x.has(id) })
				if n < 0 {
					continue // of another image
				}
				at = n
			}
			out[i] = list[at].First + id - had[at].First
		}
		return out
	}
	asked.Images, asked.Tokens, c.Tokens = list, moved(asked.Tokens), moved(c.Tokens)
	asked.Later = slices.Clone(asked.Later)
	for i := range asked.Later {
		asked.Later[i].Tokens = moved(asked.Later[i].Tokens)
	}
	c.Asked = &asked
}

// checkImages returns an error unless all tokens of images in a record are of images that it names.
func (c *Completion) checkImages() (err error) {
	list := c.Brought()
	for i := range list {
		if list[i].Tokens < 1 || len(list[i].Digest) != digestDigits {
			return fmt.Errorf("image %d that the agent brought has %d tokens and the digest %q", i+1, list[i].Tokens,
				list[i].Digest)
		}
	}
	c.each(func(ids []int32) {
		for _, id := range ids {
			if id < 0 && err == nil && !slices.ContainsFunc(list, func(x ShownImage) bool { return x.has(id) }) {
				err = fmt.Errorf("the token %d is of none of the %d images that the agent brought", id, len(list))
			}
		}
	})
	return err
}
