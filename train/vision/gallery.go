package vision

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"

	"exp/kernels"
	"exp/train/model"
	"exp/train/picture"
)

// Gallery knows the images and videos of a run and gives a language model their features (model.Images), of a video
// those of each part on its own: no part attends to another. It computes them when they are asked for and keeps those
// used last. Models with towers of their own see it through a View each. Safe for concurrent use, each goroutine with
// a backend of its own.
type Gallery struct {
	settings picture.Settings
	videos   *picture.VideoSettings // nil: it has none
	vocab    int64
	tower    *Tower // nil: only ids are needed

	mu       sync.Mutex
	next     int64    // id of the next image's first token
	images   []*shown // by ids
	byDigest map[string]*shown
	own      features // of tower
	views    []*View
	keeping  // of images that are not needed for ever

	decoding sync.Mutex // of Check

	openMu sync.Mutex
	open   *shown // whose video is
	video  *picture.Video
}

// features are features of images that one tower has computed. A gallery's mu guards them.
type features struct {
	room    int     // bytes that are kept
	held    int     // bytes
	kept    []piece // whose features they are, the one used last at the end
	of      map[piece][]float32
	changes int // of the tower's weights
}

// piece is an image, or a part of a video.
type piece struct {
	*shown
	part int
}

// shown is an image or a video. Image is a video's first part.
type shown struct {
	model.Image
	digest  string
	scene   picture.Scene // of a video
	read    func() ([]byte, error)
	stays   bool // Add added it
	brought bool // by Hold
	size    int  // bytes of that file
	users   int  // who hold it

	mu sync.Mutex // of who computes features
}

// ReadVideos makes the gallery take videos. Call it before any other method.
func (g *Gallery) ReadVideos(s picture.VideoSettings) { g.videos = &s }

// NewGallery returns a gallery whose images have ids from vocab on. It keeps features of at most room bytes in host
// memory, and the features of the image used last in any case. t may be nil if nobody asks for features.
func NewGallery(vocab int, s picture.Settings, t *Tower, room int) *Gallery {
	return &Gallery{settings: s, vocab: int64(vocab), tower: t, next: int64(vocab), byDigest: map[string]*shown{},
		own: newFeatures(room)}
}

// Add returns the image of a digest as tokens; a known digest is the same image, whatever else is passed. width and
// height are pixels of the file that read returns; it is read when features are asked for. Ids are handed out in the
// order of calls. It returns an error if the size is not for the model or ids run out.
func (g *Gallery) Add(digest string, width, height int, read func() ([]byte, error)) (model.Image, error) {
	return g.adds(func() (*shown, error) { return g.add(digest, width, height, read) })
}

// AddVideo is Add for a video, a file that picture.OpenVideo opens. It returns the first part.
func (g *Gallery) AddVideo(digest string, c picture.Clip, read func() ([]byte, error)) (model.Image, error) {
	return g.adds(func() (*shown, error) { return g.addVideo(digest, c, read) })
}

func (g *Gallery) adds(add func() (*shown, error)) (model.Image, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	x, err := add()
	if err != nil {
		return model.Image{}, err
	}
	g.stay(x)
	return x.Image, nil
}

// add is Add while g is locked.
func (g *Gallery) add(digest string, width, height int, read func() ([]byte, error)) (*shown, error) {
	if x, ok := g.byDigest[digest]; ok {
		return x, nil
	}
	rows, columns, err := g.settings.Tokens(width, height)
	if err != nil {
		return nil, err
	}
	if rows < 1 || columns < 1 {
		return nil, fmt.Errorf("an image of %d×%d pixels has %d×%d tokens", width, height, rows, columns)
	}
	return g.number(&shown{Image: model.Image{Rows: rows, Columns: columns}, digest: digest, read: read})
}

// addVideo is AddVideo while g is locked.
func (g *Gallery) addVideo(digest string, c picture.Clip, read func() ([]byte, error)) (*shown, error) {
	if x, ok := g.byDigest[digest]; ok {
		return x, nil
	}
	if g.videos == nil {
		return nil, errors.New("the model reads images, and no videos")
	}
	s, err := g.videos.Scene(c)
	if err != nil {
		return nil, err
	}
	im := model.Image{Rows: s.Rows / g.videos.Merge, Columns: s.Columns / g.videos.Merge, Parts: s.Parts}
	return g.number(&shown{Image: im, digest: digest, scene: s, read: read})
}

// number gives an image or a video its ids.
func (g *Gallery) number(x *shown) (*shown, error) {
	n := int64(x.AllTokens())
	if g.next+n-1 > math.MaxInt32 {
		return nil, fmt.Errorf("images have more than %d tokens in all: no ids are left for one of %d; start again "+
			"to go on: ids then begin from the first",
			math.MaxInt32-g.vocab, n)
	}
	x.First = int32(g.next)
	g.next += n
	g.images, g.byDigest[x.digest] = append(g.images, x), x
	return x, nil
}

// Check returns an error if the file of an image or a video cannot be decoded for the model; digest is the file's. It
// decodes one at a time: a large image takes hundreds of megabytes. One that the gallery has is not decoded.
func (g *Gallery) Check(digest string, encoded []byte) error {
	if g.Knows(digest) {
		return nil
	}
	g.decoding.Lock()
	defer g.decoding.Unlock()
	if !picture.IsVideo(encoded) {
		_, err := g.settings.Patches(encoded)
		return err
	}
	if g.videos == nil {
		return errors.New("the model reads images, and no videos")
	}
	return g.videos.CheckFile(encoded)
}

// Of returns the image that a token belongs to, or the part of a video. It panics for other tokens.
func (g *Gallery) Of(id int32) model.Image {
	p := g.of(id)
	return p.image()
}

// of returns what Of returns.
func (g *Gallery) of(id int32) piece {
	g.mu.Lock()
	defer g.mu.Unlock()
	i, found := slices.BinarySearchFunc(g.images, id, func(x *shown, id int32) int { return int(x.First) - int(id) })
	if !found {
		i--
	}
	if i < 0 || int(id-g.images[i].First) >= g.images[i].AllTokens() {
		panic(fmt.Sprintf("vision: token %d belongs to no image", id))
	}
	x := g.images[i]
	return piece{x, int(id-x.First) / x.Tokens()}
}

// image returns the piece as a model reads it.
func (p piece) image() model.Image {
	im := p.Image
	if p.Parts > 0 {
		im.First += int32(p.part * p.Tokens())
		im.Part, im.Time = p.part, p.scene.Places[p.part]
	}
	return im
}

// Features returns the features of an image that Add returned, [1+Deep][T][Out]. Nobody may change them. It panics
// with a *model.ImageError if the image cannot be read, and as Encode does.
func (g *Gallery) Features(be kernels.Backend, im model.Image) []float32 {
	if g.tower == nil {
		panic("vision: a gallery without a tower has no features")
	}
	return g.features(be, im, g.tower, &g.own)
}

// features returns what a tower makes of an image.
func (g *Gallery) features(be kernels.Backend, im model.Image, t *Tower, own *features) []float32 {
	x := g.known(im)
	x.mu.Lock()
	defer x.mu.Unlock()
	f, changes := g.use(own, x)
	if f != nil {
		return f
	}
	f = t.Encode(be, g.patches(x))
	g.keep(own, x, f, changes)
	return f
}

// known returns an image of the gallery, or a part of a video; it panics for an unknown one.
func (g *Gallery) known(im model.Image) piece {
	x := g.of(im.First)
	if x.image() != im {
		panic("vision: no such image")
	}
	return x
}

// patches reads an image, or a part of a video. It panics with a *model.ImageError if it cannot.
func (g *Gallery) patches(x piece) picture.Patches {
	read := func() (picture.Patches, error) { return x.patches(g.settings) }
	if x.Parts > 0 {
		read = func() (picture.Patches, error) { return g.videoPatches(x) }
	}
	p, err := read()
	if err != nil {
		panic(&model.ImageError{Err: err})
	}
	return p
}

// videoPatches reads a part of a video. Its size must be the one that AddVideo was told. The video read last stays
// open.
func (g *Gallery) videoPatches(x piece) (p picture.Patches, err error) {
	g.openMu.Lock()
	defer g.openMu.Unlock()
	if g.open != x.shown {
		raw, err := x.read()
		if err != nil {
			return p, err
		}
		v, err := picture.OpenVideo(raw)
		if err != nil {
			return p, err
		}
		g.open, g.video = x.shown, v
	}
	if s, err := g.videos.Scene(g.video.Clip); err != nil || s.Parts != x.Parts || s.Rows != x.scene.Rows ||
		s.Columns != x.scene.Columns || !slices.Equal(s.Frames, x.scene.Frames) {
		g.open, g.video = nil, nil
		return p, errors.New("the file is not the video whose size was read before")
	}
	return g.videos.Patches(g.video, x.scene, x.part)
}

// patches reads the image. Its size must be the one that Add was told.
func (x *shown) patches(s picture.Settings) (picture.Patches, error) {
	raw, err := x.read()
	if err != nil {
		return picture.Patches{}, err
	}
	p, err := s.Patches(raw)
	if err != nil {
		return p, err
	}
	if p.Rows != x.Rows*s.Merge || p.Columns != x.Columns*s.Merge {
		return p, errors.New("the file is not the one whose size was read before: " +
			fmt.Sprintf("%d×%d patches, not %d×%d", p.Rows, p.Columns, x.Rows*s.Merge, x.Columns*s.Merge))
	}
	return p, nil
}

func newFeatures(room int) features { return features{room: room, of: map[piece][]float32{}} }

// use returns features that are kept, nil if they are not, and makes them the ones used last. changes tells the
// tower's weights apart.
func (g *Gallery) use(own *features, x piece) (f []float32, changes int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if f = own.of[x]; f != nil {
		i := slices.Index(own.kept, x)
		own.kept = append(slices.Delete(own.kept, i, i+1), x)
	}
	return f, own.changes
}

// keep keeps features of weights that have not changed since, and drops those used longest ago while all take too much
// room.
func (g *Gallery) keep(own *features, x piece, f []float32, changes int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if changes != own.changes {
		return
	}
	own.of[x] = f
	own.kept = append(own.kept, x)
	own.held += featureBytes(f)
	for len(own.kept) > 1 && own.held > own.room {
		own.drop(own.kept[0])
	}
}

// drop drops features that are kept.
func (own *features) drop(x piece) {
	if f := own.of[x]; f != nil {
		own.held -= featureBytes(f)
		delete(own.of, x)
		own.kept = slices.DeleteFunc(own.kept, func(y piece) bool { return y == x })
	}
}

// forget drops the features of an image or a video.
func (own *features) forget(x *shown) {
	for part := range max(1, x.Parts) {
		own.drop(piece{x, part})
	}
}

func featureBytes(f []float32) int { return 4 * len(f) }
