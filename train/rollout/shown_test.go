package rollout

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Records number the images that an agent brought in the order in which a completion shows them, below 0, and a process
// that reads a record gives them ids of its own.
func TestNamed(t *testing.T) {
	digest := func(letter string) string { return strings.Repeat(letter, digestDigits) }
	a := ShownImage{Picture{Digest: digest("a"), Width: 4, Height: 2, Format: "png"}, 500, 3}
	b := ShownImage{Picture{Digest: digest("b"), Width: 1, Height: 1, Format: "gif"}, 400, 2}
	// 300 to 309 are of problems' images. The first conversation shows a, then b; the second shows b, then a.
	c := Completion{Tokens: []int32{7, 500, 501, 502, 8, 400, 401, 9, 6, 500, 501, 502, 5}, Text: "", LogProbs: make([]float32, 13),
		Inserted: []Span{{Start: 1, End: 4}, {Start: 5, End: 7}, {Start: 9, End: 12}}}
	c.Asked = &Asked{Tokens: []int32{1, 301, 2}, Later: []Later{{Start: 8, Tokens: []int32{400, 401, 3}}}}
	c.NoteImages(func(id int32) (ShownImage, bool) {
		switch {
		case a.has(id):
			return a, true
		case b.has(id):
			return b, true
		}
		return ShownImage{Tokens: 1}, false
	})
	if diff := cmp.Diff([]ShownImage{a, b}, c.Brought()); diff != "" {
		t.Fatalf("(-want +got)\n%s", diff)
	}
	named := c.Named()
	for _, x := range []struct{ got, want []int32 }{
		{named.Tokens, []int32{7, -3, -2, -1, 8, -5, -4, 9, 6, -3, -2, -1, 5}},
		{named.Asked.Tokens, []int32{1, 301, 2}},
		{named.Asked.Later[0].Tokens, []int32{-5, -4, 3}},
		{[]int32{named.Asked.Images[0].First, named.Asked.Images[1].First}, []int32{-3, -5}},
		{c.Tokens[1:2], []int32{500}}, // it is a copy
		{c.Asked.Later[0].Tokens, []int32{400, 401, 3}},
	} {
		if !slices.Equal(x.got, x.want) {
			t.Errorf("%d, want %d", x.got, x.want)
		}
	}
	if named.Named() != named || named.Check() != nil {
		t.Errorf("named twice, or %v", named.Check())
	}
	read := *named
	err := read.Show(func(im ShownImage) (int32, error) { return map[int]int32{3: 310, 2: 600}[im.Tokens], nil })
	if want := []int32{7, 310, 311, 312, 8, 600, 601, 9, 6, 310, 311, 312, 5}; err != nil || !slices.Equal(read.Tokens, want) ||
		!slices.Equal(read.Asked.Later[0].Tokens, []int32{600, 601, 3}) {
		t.Errorf("%d, %d, %v", read.Tokens, read.Asked.Later[0].Tokens, err)
	}
	if diff := cmp.Diff(named, read.Named()); diff != "" {
		t.Errorf("read and written again (-want +got)\n%s", diff)
	}
	lost := *named
	if err := lost.Show(func(ShownImage) (int32, error) { return 0, errors.New("lost") }); err == nil || err.Error() != a.String()+": lost" {
		t.Error(err)
	}
	plain := Completion{Asked: &Asked{Tokens: []int32{1}}, Tokens: []int32{2}}
	if plain.NoteImages(func(int32) (ShownImage, bool) { return a, false }); plain.Asked.Images != nil || plain.Named() != &plain {
		t.Errorf("%+v", plain.Asked)
	}
	for want, change := range map[string]func(x *Asked){
		"the token -3 is of none of the 0 images":          func(x *Asked) { x.Images = nil },
		"image 1 that the agent brought has 3 tokens and":  func(x *Asked) { x.Images[0].Digest = "a" },
		"the token -1 is of none of the 2 images":          func(x *Asked) { x.Images[0].First = -4 },
		"image 2 that the agent brought has 0 tokens":      func(x *Asked) { x.Images[1].Tokens = 0 },
		"the token -5 is of none of the 1 images that the": func(x *Asked) { x.Images = x.Images[:1] },
	} {
		broken, asked := *named, *named.Asked
		asked.Images = slices.Clone(asked.Images)
		change(&asked)
		broken.Asked = &asked
		if err := broken.Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
