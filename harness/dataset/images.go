package dataset

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"

	"exp/eval/layout"
	"exp/harness/config"
	"exp/train/picture"
	"exp/train/rollout"
)

// Describe returns what a problem says of a file: an image, or a video (package picture).
func Describe(encoded []byte) (pic rollout.Picture, err error) {
	if picture.IsVideo(encoded) {
		return describeVideo(encoded)
	}
	if pic.Format = picture.Format(encoded); pic.Format == "" {
		return pic, errors.New("it is not an image file that exp reads (PNG, JPEG, WebP, GIF, BMP)")
	}
	pic.Digest = digestOf(encoded)
	pic.Width, pic.Height, err = picture.Size(encoded)
	return pic, err
}

func digestOf(encoded []byte) string {
	sum := sha256.Sum256(encoded)
	return hex.EncodeToString(sum[:])
}

func describeVideo(encoded []byte) (pic rollout.Picture, err error) {
	v, err := picture.OpenVideo(encoded)
	if err != nil {
		return pic, err
	}
	return rollout.Picture{Digest: digestOf(encoded), Width: v.Width, Height: v.Height, Format: rollout.VideoFormat,
		Frames: v.Frames, Rate: v.Rate, Sampled: v.Sampled}, nil
}

// ClipOf returns a video as its processor takes it.
func ClipOf(p rollout.Picture) picture.Clip {
	return picture.Clip{Width: p.Width, Height: p.Height, Frames: p.Frames, Rate: p.Rate, Sampled: p.Sampled}
}

// Films reads videos from a column.
func Films(column string) *layout.Films {
	if column == config.None {
		column = ""
	}
	return &layout.Films{Column: column, Frames: picture.PackFrames, GIF: picture.PackGIF}
}

// FilmPart returns a video file as a part of content that brings its frames.
func FilmPart(encoded []byte) (json.RawMessage, error) {
	v, err := picture.OpenVideo(encoded)
	if err != nil {
		return nil, err
	}
	files, gif := v.Unpack()
	urls := make([]string, len(files))
	for i, f := range files {
		urls[i] = "data:image/" + picture.Format(f) + ";base64," + base64.StdEncoding.EncodeToString(f)
	}
	return layout.FilmPart(urls, gif, v.Rate, v.Sampled), nil
}

// PictureFiles reads images and videos that paths and parts of messages name.
func PictureFiles() *layout.Images {
	return &layout.Images{Take: Carry, Begins: isPicture, Films: Films("")}
}

// Carry is Describe for problems that bring their images along.
func Carry(encoded []byte) (rollout.Picture, error) {
	pic, err := Describe(encoded)
	pic.Encoded = encoded
	return pic, err
}

// SuiteImages reads the images and videos of a suite's rows, in the columns images and videos, into its problems.
func SuiteImages() *layout.Images {
	return &layout.Images{Column: "images", Take: Carry, Begins: isPicture, Films: Films(videosColumn)}
}

// videosColumn is the default of data.video_key.
const videosColumn = "videos"

func isPicture(data []byte) bool { return picture.Format(data) != "" }

// TaughtImages says where rows of sft.source and prefer.source have images: where problems have them, or in the column
// images if the task's problems have none and data.image_key does not apply.
func TaughtImages(c *config.Run) *layout.Images {
	x := images(c)
	if c.Data.ImageKey == "" {
		x.Column = "images"
	}
	if c.Data.VideoKey == "" {
		x.Films.Column = videosColumn
	}
	return x
}

// images says where rows of problems have images.
func images(c *config.Run) *layout.Images {
	x := &layout.Images{Column: c.Data.ImageKey, Take: Describe, Begins: isPicture, Films: Films(c.Data.VideoKey)}
	if x.Column == config.None {
		x.Column = ""
	}
	return x
}
