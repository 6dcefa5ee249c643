package stage

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"exp/experiments/blob"
	"exp/experiments/ident"
	"exp/harness/agent"
	"exp/harness/config"
	"exp/harness/dataset"
	"exp/harness/prompt"
	"exp/kernels"
	"exp/train/checkpoint"
	"exp/train/model"
	"exp/train/picture"
	"exp/train/rollout"
	"exp/train/tokenizer"
	"exp/train/vision"
)

// ImageRoom is how many bytes of features a stage keeps in the host's memory. An image of 1000 tokens takes 8 MB for a
// model of width 2048; the others are computed again.
const ImageRoom = 2 << 30

// OwnTowers is how many models with towers of their own share ImageRoom: policy, reference, critic or process reward
// model, and a copy that samples.
const OwnTowers = 4

// gallery gives models the images of a stage's problems, and those that agents bring. Problems' images have their ids
// before any episode is played, so no agent changes them.
type gallery struct {
	films
	*vision.Gallery
	tower *vision.Tower  // of all models that have no adapters on it; nil: each has its own
	base  *vision.Tower  // of a run that trains the tower: as the stage found it, with which models share weights
	views []*vision.View // of models with towers, or adapters, of their own
	album *blob.Album
	blobs *blob.Dir // where images that agents bring are kept, each once
	vocab int32

	mu    sync.RWMutex
	shown map[int32]shownImage // by first tokens
}

// shownImage is an image of a gallery.
type shownImage struct {
	rollout.ShownImage
	brought bool // by an agent
}

func (g *gallery) close() {
	for _, v := range g.views {
		v.Close()
	}
	for _, t := range []*vision.Tower{g.tower, g.base} {
		if t != nil {
			t.Close()
		}
	}
	if g.album != nil {
		_ = g.album.Close() // only read
	}
}

// showImages prepares the images of problems for the models that the stage loads afterwards, and makes the stage's
// prompts show them. It adds the images in the order of the problems, so that all ranks give them the same tokens. It
// does nothing if there are none.
func (e *Env) showImages(in Inputs, owned *closers, lists ...[]rollout.Problem) error {
	if !haveImages(lists...) {
		return nil
	}
	return e.openImages(in, owned, lists...)
}

// showPlayed is showImages for a stage that samples: if an agent plays episodes with a model that reads images, it may
// bring some.
func (e *Env) showPlayed(in Inputs, owned *closers, lists ...[]rollout.Problem) error {
	if !haveImages(lists...) && !AgentsBring(e.run()) {
		return nil
	}
	return e.openImages(in, owned, lists...)
}

// AgentsBring reports whether agents of a run may bring images.
func AgentsBring(c *config.Run) bool {
	key, _ := readsText(c)
	return c.Rollout.Tools.Agent() && key == "" && ReadsImages(c)
}

// openImages is showImages, whether there are images or not.
func (e *Env) openImages(in Inputs, owned *closers, lists ...[]rollout.Problem) error {
	prompts, err := e.prompter()
	if err != nil {
		return err
	}
	g, err := e.openGallery(in)
	if err != nil {
		return fmt.Errorf("images: %w", err)
	}
	owned.add(g.close)
	for _, problems := range lists {
		for i := range problems {
			for k, pic := range problems[i].Images {
				if _, err := g.add(pic); err != nil {
					return fmt.Errorf("problem %s: image %d: %w", problems[i].ID, k+1, err)
				}
			}
		}
	}
	e.images, e.Prompter = g, prompts.Showing(g.add)
	return nil
}

func haveImages(lists ...[]rollout.Problem) bool {
	for _, problems := range lists {
		for i := range problems {
			if len(problems[i].Images) > 0 {
				return true
			}
		}
	}
	return false
}

// NewGallery loads the frozen vision tower of a run's model, whose vocabulary has so many tokens, on a backend. The
// gallery has no images yet, and keeps features of so many bytes. The caller closes the tower when nobody needs it.
func NewGallery(c *config.Run, be kernels.Backend, vocab, room int) (*vision.Gallery, *vision.Tower, error) {
	settings, err := PictureSettings(c)
	if err != nil {
		return nil, nil, err
	}
	t, err := checkpoint.LoadTower(be, c.Model.Base)
	if err != nil {
		return nil, nil, err
	}
	g := vision.NewGallery(vocab, settings, t, room)
	readVideos(c, g)
	return g, t, nil
}

// openGallery loads the vision tower if it is frozen, and opens the run's album if it has one. The caller closes the
// gallery.
func (e *Env) openGallery(in Inputs) (*gallery, error) {
	arch, err := e.architecture()
	if err != nil {
		return nil, err
	}
	g := &gallery{blobs: e.Blobs, vocab: int32(arch.Vocab), shown: map[int32]shownImage{}}
	if e.run().Model.TrainsTower() {
		var settings picture.Settings
		if settings, err = PictureSettings(e.run()); err == nil {
			g.Gallery = vision.NewGallery(arch.Vocab, settings, nil, 0)
			readVideos(e.run(), g.Gallery)
		}
	} else {
		g.Gallery, g.tower, err = NewGallery(e.run(), e.alone(), arch.Vocab, ImageRoom)
	}
	if err != nil {
		return nil, err
	}
	if _, ok := in[RoleImages]; !ok {
		return g, nil
	}
	path, err := e.inputPath(in, RoleImages)
	if err == nil {
		g.album, err = blob.OpenAlbum(path)
	}
	if err != nil {
		g.close()
		return nil, err
	}
	return g, nil
}

// add gives an image of a problem its tokens, or returns the tokens of one that an agent brought.
func (g *gallery) add(pic rollout.Picture) (model.Image, error) {
	return g.note(pic, false, func() ([]byte, error) { return g.File(pic) })
}

// bring gives an image that an agent brought its tokens. Its file is a blob.
func (g *gallery) bring(pic rollout.Picture) (model.Image, error) {
	return g.note(pic, true, func() ([]byte, error) {
		d, err := ident.ParseDigest(pic.Digest)
		if err != nil {
			return nil, err
		}
		return g.blobs.Bytes(d)
	})
}

// note gives an image tokens unless it has some, and notes which.
func (g *gallery) note(pic rollout.Picture, brought bool, read func() ([]byte, error)) (model.Image, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	add := func() (model.Image, error) { return g.Add(pic.Digest, pic.Width, pic.Height, read) }
	if pic.Video() {
		add = func() (model.Image, error) { return g.AddVideo(pic.Digest, dataset.ClipOf(pic), read) }
	}
	im, err := add()
	if err != nil {
		return im, err
	}
	if _, known := g.shown[im.First]; !known {
		pic.Encoded = nil
		x := rollout.ShownImage{Picture: pic, First: im.First, Tokens: im.AllTokens()}
		g.shown[im.First] = shownImage{x, brought}
	}
	return im, nil
}

// Take implements agent.Images. It keeps the file of an image that no problem shows.
func (g *gallery) Take(encoded []byte) (rollout.Picture, error) {
	pic, err := dataset.Describe(encoded)
	if err == nil {
		err = g.Check(pic.Digest, encoded)
	}
	if err != nil {
		return pic, &agent.ImageError{Err: err}
	}
	if g.Knows(pic.Digest) {
		return pic, nil
	}
	if _, err := g.blobs.PutBytes(encoded); err != nil {
		return pic, err
	}
	_, err = g.bring(pic)
	return pic, err
}

// Shown implements agent.Images.
func (g *gallery) Shown(id int32) (im rollout.ShownImage, brought, ok bool) {
	if id < g.vocab {
		return im, false, false
	}
	first := g.Of(id).First
	g.mu.RLock()
	defer g.mu.RUnlock()
	x, ok := g.shown[first]
	return x.ShownImage, x.brought, ok
}

// File returns the file of an image.
func (g *gallery) File(pic rollout.Picture) ([]byte, error) {
	switch {
	case len(pic.Encoded) > 0:
		return pic.Encoded, nil
	case g.album == nil:
		return nil, errors.New("the stage has no images (role " + RoleImages + ")")
	}
	return g.album.Bytes(pic.Digest)
}

// noImages are the images of a run in which another model than the policy reads prompts, and text alone.
type noImages struct {
	films
	key, what string
}

func (x noImages) Take([]byte) (pic rollout.Picture, err error) {
	return pic, &agent.ImageError{Err: fmt.Errorf("%s (%s) reads text alone", x.what, x.key)}
}

func (x noImages) File(pic rollout.Picture) ([]byte, error) {
	return nil, fmt.Errorf("the run has no image %v", pic)
}

func (x noImages) Shown(int32) (im rollout.ShownImage, brought, ok bool) { return im, false, false }

// askedImages returns the images that agents may show; nil if the model reads text alone.
func (e *Env) askedImages() agent.Images {
	if key, what := readsText(e.run()); key != "" && ReadsImages(e.run()) {
		return noImages{key: key, what: what}
	}
	if g, ok := e.images.(*gallery); ok {
		return g
	}
	return nil
}

// showsBrought returns the function that gives images that agents brought their tokens, in another process or before;
// nil if none can.
func (e *Env) showsBrought() func(rollout.Picture) (model.Image, error) {
	if g, ok := e.images.(*gallery); ok {
		return g.bring
	}
	return nil
}

// ReadsImages reports whether the run's model is one of text and images.
func ReadsImages(c *config.Run) bool {
	if c.Model.Init != "pretrained" {
		return false
	}
	arch, err := ReadArchitecture(c)
	return err == nil && arch.ReadsImages() // an error is told elsewhere
}

// PictureSettings returns how the run turns images into patches: as the model's folder says, within
// data.image_min_pixels and data.image_max_pixels. Its errors are *prompt.ImagesError.
func PictureSettings(c *config.Run) (picture.Settings, error) {
	_, s, err := checkpoint.ReadVision(c.Model.Base)
	if err != nil {
		return s, &prompt.ImagesError{Key: "model.base", Err: err}
	}
	key := ""
	if n := c.Data.ImageMinPixels; n > 0 {
		key, s.MinPixels = "data.image_min_pixels", n
	}
	if n := c.Data.ImageMaxPixels; n > 0 {
		key, s.MaxPixels = "data.image_max_pixels", n
	}
	if err := s.Check(); err != nil {
		return s, &prompt.ImagesError{Key: key, Err: err}
	}
	return s, nil
}

// imageReader says how prompts show images to a model with this tokenizer; nil if the model reads text alone.
func imageReader(c *config.Run, tok tokenizer.Tokenizer) (*prompt.ImageReader, error) {
	if !ReadsImages(c) {
		return nil, nil
	}
	settings, err := PictureSettings(c)
	if err != nil {
		return nil, err
	}
	pad, err := checkpoint.ImageToken(c.Model.Base)
	if err != nil {
		return nil, &prompt.ImagesError{Key: "model.base", Err: err}
	}
	x := &prompt.ImageReader{Pad: pad, Size: settings}
	x.Video = videoReader(c, tok)
	switch {
	case settings.LongSide:
		named := tok.SpecialTokens().Named
		m := &prompt.TileMarks{Around: cmp.Or(named["fake_image_token"], "<fake_token_around_image>"),
			Whole: cmp.Or(named["global_image_token"], "<global-img>"), Size: settings}
		x.Marks = m
		return x, hasTokens(tok, m.Around)
	case settings.Fit:
		m := &prompt.RowMarks{Break: "[IMG_BREAK]", End: "[IMG_END]", Size: settings}
		x.Marks = m
		return x, hasTokens(tok, m.Break, m.End)
	case settings.Tile == 0:
		return x, nil
	case settings.Square():
		named := tok.SpecialTokens().Named
		x.Place = cmp.Or(named["boi_token"], "<start_of_image>")
		end := cmp.Or(named["eoi_token"], "<end_of_image>")
		x.Written = "\n\n" + x.Place + tok.Token(pad) + end + "\n\n"
		return x, hasTokens(tok, x.Place, end)
	}
	for name, to := range map[string]*[]int32{"start_image_token": &x.Before, "end_image_token": &x.After} {
		text := tok.SpecialTokens().Named[name]
		id, ok := tok.TokenID(text)
		if text == "" || !ok {
			return nil, &prompt.ImagesError{Key: "model.base", Err: fmt.Errorf("tokenizer_config.json: %s is %q, "+
				"which is no token: the image processor writes it around an image", name, text)}
		}
		*to = []int32{id}
	}
	return x, nil
}

// hasTokens returns an error if a tokenizer lacks one of the tokens that an image processor writes.
func hasTokens(tok tokenizer.Tokenizer, list ...string) error {
	for _, text := range list {
		if _, ok := tok.TokenID(text); !ok {
			return &prompt.ImagesError{Key: "model.base", Err: fmt.Errorf("the tokenizer has no token %s, which the "+
				"image processor writes among the tokens of an image", text)}
		}
	}
	return nil
}

// images sets the digest of what reads images and whether there are some, and tells bad what a run whose problems show
// some cannot do. p is nil if prompts are broken.
func (x *External) images(c *config.Run, p *prompt.Prompter, bad func(key, code, message, help string)) {
	var err error
	if x.Vision, err = visionDigest(c, false); err != nil {
		bad("model.base", config.CodeData, oneLine(err), "")
	}
	if p == nil {
		return
	}
	x.Images = p.HasImages() || p.TeachesImages()
	if p.HasVideos() {
		if x.Vision, err = videosDigest(c, x.Vision); err != nil {
			bad("model.base", config.CodeData, oneLine(err), "")
		}
	}
	if c.Model.TrainsTower() {
		x.tower(c, bad)
	}
	if !p.HasImages() {
		return
	}
	if key, what := readsText(c); key != "" {
		bad(key, config.CodeConflict, what+" reads text alone, and problems show images", "data.image_key: none "+
			"leaves the images out")
	}
}

// readsText returns a model of the run other than the policy that has to read its prompts, and reads text alone, and
// the key that names it; empty: the run has none.
func readsText(c *config.Run) (key, what string) {
	switch {
	case c.Algo.HasTeacher():
		return "algo.reference", "a teacher"
	case len(c.Algo.Teachers) > 0:
		return "algo.teachers", "a teacher"
	case c.Algo.Prime.HasModel():
		return processKey, "a process reward model of another folder"
	}
	return "", ""
}

// validImage returns the function that reports images which the run's model cannot read.
func (e *Env) validImage() (func(encoded []byte) error, error) {
	if !ReadsImages(e.run()) {
		return func([]byte) error { return nil }, nil
	}
	settings, err := PictureSettings(e.run())
	if err != nil {
		return nil, err
	}
	videos, reads, broken := VideoSettings(e.run())
	return func(encoded []byte) error {
		if !picture.IsVideo(encoded) {
			_, err := settings.Patches(encoded)
			return err
		}
		switch {
		case broken != nil:
			return broken
		case !reads:
			return errors.New("the model reads no videos")
		}
		return videos.CheckFile(encoded)
	}, nil
}

// VideoSettings returns how the run reads videos: as the model's folder says, within data.video_fps,
// data.video_max_frames and data.video_max_pixels. ok is false if the model reads none. Its errors are
// *prompt.ImagesError.
func VideoSettings(c *config.Run) (s picture.VideoSettings, ok bool, err error) {
	s, _, ok, err = videoSettings(c)
	return s, ok, err
}

func videoSettings(c *config.Run) (s picture.VideoSettings, ids checkpoint.VideoTokens, ok bool, err error) {
	if s, ids, ok, err = checkpoint.ReadVideos(c.Model.Base); err != nil {
		return s, ids, ok, &prompt.ImagesError{Key: "model.base", Err: err}
	}
	if !ok {
		return s, ids, false, nil
	}
	key := ""
	if n := c.Data.VideoFPS; n > 0 {
		key, s.FPS = "data.video_fps", n
	}
	if n := c.Data.VideoMaxFrames; n > 0 {
		key, s.MaxFrames = "data.video_max_frames", n
		s.MinFrames = min(s.MinFrames, n)
	}
	if n := c.Data.VideoMaxPixels; n > 0 {
		key, s.MaxPixels = "data.video_max_pixels", n
		s.MinPixels = min(s.MinPixels, n)
	}
	if err := s.CheckVideos(); err != nil {
		return s, ids, true, &prompt.ImagesError{Key: key, Err: err}
	}
	return s, ids, true, nil
}

// readVideos makes a gallery take videos, if the run's model reads them. Settings that are wrong are reported where a
// prompt shows a video (videoSize): images are read without.
func readVideos(c *config.Run, g *vision.Gallery) {
	if s, ok, err := VideoSettings(c); ok && err == nil {
		g.ReadVideos(s)
	}
}

// videoReader says how prompts show videos to the run's model, with this tokenizer; nil if it reads none.
func videoReader(c *config.Run, tok tokenizer.Tokenizer) *prompt.VideoReader {
	s, ids, ok, err := videoSettings(c)
	if !ok {
		return nil
	}
	named := func(id int32, usual string) string {
		if id < 0 {
			return usual
		}
		return tok.Token(id)
	}
	return &prompt.VideoReader{Pad: ids.Pad, Timed: s.Whole, Start: named(ids.Start, "<|vision_start|>"),
		End: named(ids.End, "<|vision_end|>"), Size: videoSize{s, err}}
}

// videoSize says of what parts a video is.
type videoSize struct {
	picture.VideoSettings
	broken error // about the settings
}

// Parts implements prompt.VideoReader.
func (x videoSize) Parts(pic rollout.Picture) (p prompt.VideoParts, err error) {
	if x.broken != nil {
		return p, x.broken
	}
	s, err := x.Scene(dataset.ClipOf(pic))
	return prompt.VideoParts{Rows: s.Rows / x.Merge, Columns: s.Columns / x.Merge, Seconds: s.Seconds}, err
}

// videosDigest covers how the run's model reads videos, besides what its vision tower's digest covers.
func videosDigest(c *config.Run, tower ident.Digest) (d ident.Digest, err error) {
	s, _, err := VideoSettings(c)
	if err != nil {
		return d, err
	}
	text, err := json.Marshal(s)
	if err != nil {
		return d, err
	}
	return ident.Hash("exp/vision/videos/1", map[string]any{"tower": tower, "settings": string(text)})
}

// films are the methods of agent.Images for videos.
type films struct{}

// Film implements agent.Images.
func (films) Film(part json.RawMessage) ([]byte, error) { return dataset.PictureFiles().FilmOf(part) }

// FilmPart implements agent.Images.
func (films) FilmPart(encoded []byte) (json.RawMessage, error) { return dataset.FilmPart(encoded) }
