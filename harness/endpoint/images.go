package endpoint

import (
	"sync"

	"exp/harness/config"
	"exp/harness/dataset"
	"exp/harness/device"
	"exp/harness/forecast"
	"exp/harness/openai"
	"exp/harness/stage"
	"exp/kernels"
	"exp/train/generate"
	"exp/train/model"
	"exp/train/rollout"
	"exp/train/vision"
)

// Limits on what the endpoint keeps of images that no open request shows. The next turn of a conversation then finds
// its images, with their pages in the sampler's cache. An image of 1000 tokens has 8 MB of features for a model of
// width 2048.
const (
	featureRoom = 256 << 20 // bytes
	mostFiles   = 1024
	fileRoom    = 256 << 20 // bytes
)

// openImages loads what reads images, for a model of text and images.
func (x *Model) openImages(c *config.Run, be kernels.Backend) (err error) {
	if !x.m.Config.ReadsImages() {
		return nil
	}
	if x.pictures, err = stage.PictureSettings(c); err != nil {
		return err
	}
	if videos, reads, err := stage.VideoSettings(c); reads && err == nil {
		x.videos = &videos
	}
	if x.gallery, x.tower, err = stage.NewGallery(c, be, x.m.Config.Vocab, featureRoom); err != nil {
		return err
	}
	x.gallery.Keep(mostFiles, fileRoom)
	x.view, err = stage.ShowAdapted(x.m, x.gallery, x.tower, featureRoom)
	return err
}

// imageNeeds returns the parts of the memory that reading images takes.
func imageNeeds(c *config.Run, arch model.Config) (list []forecast.Part) {
	if !arch.ReadsImages() {
		return nil
	}
	list = forecast.TowerParts(c, arch)
	if !device.UsesGPU(c) {
		list = append(list, forecast.Part{Name: "images", Bytes: featureRoom + fileRoom})
	}
	return list
}

// ReadsImages reports whether questions may show images.
func (x *Model) ReadsImages() bool { return x.gallery != nil }

// bodyLimit bounds the bytes of a request.
func (x *Model) bodyLimit() int64 {
	if x.ReadsImages() {
		return openai.MostImageBody
	}
	return openai.MostBody
}

// images says which images a request may show; nil: none.
func (x *Model) images() *openai.Images {
	if !x.ReadsImages() {
		return nil
	}
	images := &openai.Images{Take: x.picture}
	if x.ReadsVideos() {
		images.Film = dataset.PictureFiles().FilmOf
	}
	return images
}

// picture returns the image of a file, or an error if it cannot be decoded.
func (x *Model) picture(encoded []byte) (rollout.Picture, error) {
	p, err := dataset.Carry(encoded)
	if err == nil {
		err = x.gallery.Check(p.Digest, encoded)
	}
	return p, err
}

// Image is an image or a video that a question shows.
type Image struct {
	Name    string // <image 448×336 sha256:ab12cd34>
	Tokens  int
	picture rollout.Picture // with its file
}

// Image returns the image of a file for questions. The model must read images.
func (x *Model) Image(encoded []byte) (im Image, err error) {
	if im.picture, err = x.picture(encoded); err != nil {
		return im, err
	}
	im.Name = im.picture.String()
	if im.picture.Video() {
		s, err := x.videos.Scene(dataset.ClipOf(im.picture))
		im.Tokens = s.Parts * s.Rows * s.Columns / (x.videos.Merge * x.videos.Merge)
		return im, err
	}
	rows, columns, err := x.pictures.Tokens(im.picture.Width, im.picture.Height)
	im.Tokens = rows * columns
	return im, err
}

// ReadsVideos reports whether questions may show videos.
func (x *Model) ReadsVideos() bool { return x.videos != nil }

// Video returns the video of a folder of frames or a GIF animation, for questions. The model must read videos.
func (x *Model) Video(path string) (Image, error) {
	encoded, err := dataset.PictureFiles().Film(path)
	if err != nil {
		return Image{}, err
	}
	return x.Image(encoded)
}

// holding are the images of a request that is not done. The zero value has none.
type holding struct {
	gallery *vision.Gallery
	digests []string
	once    sync.Once
}

// hold gives an image its tokens until the request is done.
func (h *holding) hold(p rollout.Picture) (model.Image, error) {
	hold := func() (model.Image, error) { return h.gallery.Hold(p.Digest, p.Width, p.Height, p.Encoded) }
	if p.Video() {
		hold = func() (model.Image, error) { return h.gallery.HoldVideo(p.Digest, dataset.ClipOf(p), p.Encoded) }
	}
	im, err := hold()
	if err == nil {
		h.digests = append(h.digests, p.Digest)
	}
	return im, err
}

// release lets the images go, once.
func (h *holding) release() {
	h.once.Do(func() {
		for _, digest := range h.digests {
			h.gallery.Release(digest)
		}
	})
}

// abandon lets go what requests hold that the engine never sees.
func abandon(asks []*generate.Ask) {
	for _, a := range asks {
		if a.Done != nil {
			a.Done()
		}
	}
}
