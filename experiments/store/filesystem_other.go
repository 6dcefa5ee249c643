//go:build !linux

package store

// networkFS treats every file system as local, since this system does not tell.
func networkFS(dir string) (string, error) { return "", nil }

// Filesystem cannot describe the file system on this system.
func Filesystem(dir string) (FilesystemInfo, error) { return FilesystemInfo{Free: -1}, nil }

func mountedReadOnly(dir string) bool { return false }
