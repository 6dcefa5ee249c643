//go:build !linux

package blob

// newFile opens a new file in dir.
func newFile(dir string) (file, error) { return newNamed(dir) }
