// Package picture turns image files into pixel patches.
package picture

import "errors"

// Settings are those of preprocessor_config.json.
type Settings struct {
	Patch, Merge, Frames int
}

// ReadSettings returns those of a folder.
func ReadSettings(string) (Settings, error) { return Settings{}, errors.New("picture: not yet") }

// Tokens returns the rows and columns of an image's tokens.
func (s Settings) Tokens(width, height int) (rows, columns int, err error) {
	return height / (s.Patch * s.Merge), width / (s.Patch * s.Merge), nil
}

// Patches are an image's.
type Patches struct {
	Rows, Columns int
	Values        []float32
}

// Patches returns those of a file.
func (s Settings) Patches([]byte) (Patches, error) { return Patches{}, errors.New("picture: not yet") }
