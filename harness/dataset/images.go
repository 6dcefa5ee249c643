package dataset

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"

	"exp/eval/layout"
	"exp/harness/config"
	"exp/train/picture"
	"exp/train/rollout"
)

// Describe returns what a problem says of an image file.
func Describe(encoded []byte) (pic rollout.Picture, err error) {
	if pic.Format = picture.Format(encoded); pic.Format == "" {
		return pic, errors.New("it is not an image file that exp reads (PNG, JPEG, WebP, GIF, BMP)")
	}
	sum := sha256.Sum256(encoded)
	pic.Digest = hex.EncodeToString(sum[:])
	pic.Width, pic.Height, err = picture.Size(encoded)
	return pic, err
}

// Carry is Describe for problems that bring their images along.
func Carry(encoded []byte) (rollout.Picture, error) {
	pic, err := Describe(encoded)
	pic.Encoded = encoded
	return pic, err
}

// SuiteImages reads the images of a suite's rows, in the column images, into its problems.
func SuiteImages() *layout.Images {
	return &layout.Images{Column: "images", Take: Carry, Begins: isPicture}
}

func isPicture(data []byte) bool { return picture.Format(data) != "" }

// TaughtImages says where rows of sft.source and prefer.source have images: where problems have them, or in the column
// images if the task's problems have none and data.image_key does not apply.
func TaughtImages(c *config.Run) *layout.Images {
	x := images(c)
	if c.Data.ImageKey == "" {
		x.Column = "images"
	}
	return x
}

// images says where rows of problems have images.
func images(c *config.Run) *layout.Images {
	x := &layout.Images{Column: c.Data.ImageKey, Take: Describe, Begins: isPicture}
	if x.Column == config.None {
		x.Column = ""
	}
	return x
}
