package vision

import (
	"slices"

	"exp/train/model"
	"exp/train/picture"
)

// keeping bounds a gallery that is shown images without end. The zero value has no bounds.
type keeping struct {
	bounded   bool
	mostFiles int
	mostBytes int
	files     int      // that Hold brought
	bytes     int      // of these
	idle      []*shown // that nobody holds, the one let go last at the end
}

// Keep makes the gallery drop images that nobody holds (Hold), the one let go longest ago first, while Hold brought
// more than files, or they have more than bytes in all. The ids of a dropped image are not used again: when it is
// shown again, it gets others. Images that Add was told of stay.
func (g *Gallery) Keep(files, bytes int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.bounded, g.mostFiles, g.mostBytes = true, files, bytes
	g.drop()
}

// Hold is Add for an image that is needed until Release is called as often as Hold was. encoded is its file, which
// nobody changes.
func (g *Gallery) Hold(digest string, width, height int, encoded []byte) (model.Image, error) {
	read := func() ([]byte, error) { return encoded, nil }
	return g.hold(digest, encoded, func() (*shown, error) { return g.add(digest, width, height, read) })
}

// HoldVideo is Hold for a video.
func (g *Gallery) HoldVideo(digest string, c picture.Clip, encoded []byte) (model.Image, error) {
	read := func() ([]byte, error) { return encoded, nil }
	return g.hold(digest, encoded, func() (*shown, error) { return g.addVideo(digest, c, read) })
}

func (g *Gallery) hold(digest string, encoded []byte, add func() (*shown, error)) (model.Image, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	_, known := g.byDigest[digest]
	x, err := add()
	if err != nil {
		return model.Image{}, err
	}
	switch {
	case x.stays:
	case known:
		g.idle = slices.DeleteFunc(g.idle, func(y *shown) bool { return y == x })
	default:
		x.brought, x.size = true, len(encoded)
		g.files, g.bytes = g.files+1, g.bytes+x.size
	}
	x.users++
	g.drop()
	return x.Image, nil
}

// Release undoes a Hold: no sequence that shows the image for its holder is computed any more. It panics if nobody
// holds the image.
func (g *Gallery) Release(digest string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	x := g.byDigest[digest]
	if x == nil || x.users == 0 {
		panic("vision: nobody holds the image")
	}
	if x.users--; x.users == 0 && !x.stays {
		g.idle = append(g.idle, x)
		g.drop()
	}
}

// Knows reports whether the gallery has the image of a digest.
func (g *Gallery) Knows(digest string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.byDigest[digest] != nil
}

// stay makes an image one that is not dropped.
func (g *Gallery) stay(x *shown) {
	if x.brought && !x.stays {
		g.files, g.bytes = g.files-1, g.bytes-x.size
		g.idle = slices.DeleteFunc(g.idle, func(y *shown) bool { return y == x })
	}
	x.stays = true
}

// drop drops images that nobody holds while there are too many.
func (g *Gallery) drop() {
	for g.bounded && len(g.idle) > 0 && (g.files > g.mostFiles || g.bytes > g.mostBytes) {
		x := g.idle[0]
		g.idle = slices.Delete(g.idle, 0, 1)
		g.files, g.bytes = g.files-1, g.bytes-x.size
		delete(g.byDigest, x.digest)
		i := slices.Index(g.images, x)
		g.images = slices.Delete(g.images, i, i+1)
		g.own.forget(x)
		for _, v := range g.views {
			v.own.forget(x)
		}
	}
}
