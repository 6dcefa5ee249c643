package stage

import (
	"encoding/json"
	"errors"
	"fmt"

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

// gallery gives models the images of a stage's problems.
type gallery struct {
	*vision.Gallery
	tower *vision.Tower
	album *blob.Album
}

func (g *gallery) close() {
	g.tower.Close()
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

// NewGallery loads the vision tower of a run's model, whose vocabulary has so many tokens, on a backend. The gallery
// has no images yet, and keeps features of so many bytes. The caller closes the tower when nobody needs it.
func NewGallery(c *config.Run, be kernels.Backend, vocab, room int) (*vision.Gallery, *vision.Tower, error) {
	settings, err := PictureSettings(c)
	if err != nil {
		return nil, nil, err
	}
	t, err := checkpoint.LoadTower(be, c.Model.Base)
	if err != nil {
		return nil, nil, err
	}
	return vision.NewGallery(vocab, settings, t, room), t, nil
}

// openGallery loads the vision tower, and opens the run's album if it has one. The caller closes the gallery.
func (e *Env) openGallery(in Inputs) (*gallery, error) {
	arch, err := e.architecture()
	if err != nil {
		return nil, err
	}
	g := &gallery{}
	if g.Gallery, g.tower, err = NewGallery(e.run(), e.alone(), arch.Vocab, ImageRoom); err != nil {
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

// add gives an image its tokens.
func (g *gallery) add(pic rollout.Picture) (model.Image, error) {
	return g.Add(pic.Digest, pic.Width, pic.Height, func() ([]byte, error) { return g.File(pic) })
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

// Describe is dataset.Describe.
func (g *gallery) Describe(encoded []byte) (rollout.Picture, error) { return dataset.Describe(encoded) }

// noImages are the images of a stage whose problems show none.
type noImages struct{}

func (noImages) Describe(encoded []byte) (rollout.Picture, error) { return dataset.Describe(encoded) }
func (noImages) Knows(string) bool                                { return false }
func (noImages) File(rollout.Picture) ([]byte, error) {
	return nil, errors.New("the stage has no images")
}

// askedImages returns the images that agents may show; nil if the model reads text alone.
func (e *Env) askedImages() agent.Images {
	if g, ok := e.images.(*gallery); ok {
		return g
	}
	if ReadsImages(e.run()) {
		return noImages{}
	}
	return nil
}

// TowerBytes returns the memory of the vision tower, which a stage loads if its data shows images: of its weights, and
// of the largest image, which has at most so many tokens. Both are 0 for a model of text alone, and for one that
// cannot be read, which the plan reports.
func TowerBytes(c *config.Run, tokens int) (weights, image int64) {
	if !ReadsImages(c) {
		return 0, 0
	}
	settings, err := PictureSettings(c)
	if err != nil {
		return 0, 0
	}
	tower, _, err := checkpoint.ReadVision(c.Model.Base)
	if err != nil {
		return 0, 0
	}
	t, err := checkpoint.OpenTower(c.Model.Base)
	if err != nil {
		return 0, 0
	}
	defer t.Close()
	patches := min(settings.MostPatches(), tokens*settings.Merge*settings.Merge)
	return tower.WeightBytes(t.Frozen()), tower.Bytes(kernels.F32, Operand(c), patches)
}

// shown gives a model the images of the stage's problems, if there are any.
func (e *Env) shown(m *model.Model) *model.Model {
	if e.images != nil {
		m.SetImages(e.images)
	}
	return m
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
	if settings.Tile == 0 {
		return x, nil
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

// visionDigest covers the vision tower of model.base and how its folder says to read images; zero for a model of text
// alone. It trusts the cache for unchanged files, unless reread.
func visionDigest(c *config.Run, reread bool) (d ident.Digest, err error) {
	if !ReadsImages(c) {
		return d, nil
	}
	tower, settings, err := checkpoint.ReadVision(c.Model.Base)
	if err != nil {
		return d, err
	}
	t, err := checkpoint.OpenTower(c.Model.Base)
	if err != nil {
		return d, err
	}
	defer t.Close()
	weights, err := tensorsDigest(t, reread)
	if err != nil {
		return d, err
	}
	of := map[string]any{"weights": weights}
	for name, v := range map[string]any{"tower": tower, "settings": settings} {
		text, err := json.Marshal(v)
		if err != nil {
			return d, err
		}
		of[name] = string(text)
	}
	return ident.Hash("exp/vision/1", of)
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
	if !p.HasImages() {
		return
	}
	refuse := func(key, what string) {
		bad(key, config.CodeConflict, what+" reads text alone, and problems show images", "data.image_key: none "+
			"leaves the images out")
	}
	switch {
	case c.Algo.HasTeacher():
		refuse("algo.reference", "a teacher")
	case len(c.Algo.Teachers) > 0:
		refuse("algo.teachers", "a teacher")
	case c.Algo.Prime.HasModel():
		refuse(processKey, "a process reward model of another folder")
	}
}

// validImage returns the function that reports images which the run's model cannot read.
func (e *Env) validImage() (func(encoded []byte) error, error) {
	if !ReadsImages(e.run()) {
		return func([]byte) error { return nil }, nil
	}
	settings, err := PictureSettings(e.run())
	return func(encoded []byte) error {
		_, err := settings.Patches(encoded)
		return err
	}, err
}
