package checkpoint

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// DigestCache remembers the tensor digests of unchanged files, so that a plan does not read
// 15 GB. A file is unchanged while its path, size, change times and inode are. The cache is
// a convenience, not a record: it enters no identity and may be deleted at any time; to be
// sure, read the files (Digests with nil). A nil cache is empty. Safe for concurrent use.
type DigestCache struct {
	path string

	mu    sync.Mutex
	files map[string]cachedFile
	dirty bool
}

// cachedFile is the cache entry of a file.
type cachedFile struct {
	Stamp   fileStamp         `json:"stamp"`
	Tensors map[string]string `json:"tensors"` // SHA-256 in hexadecimal, by name
}

// fileStamp distinguishes versions of a file.
type fileStamp struct {
	Size     int64  `json:"size"`
	Modified int64  `json:"modified_ns"`
	Changed  int64  `json:"changed_ns"` // of the inode, which programs cannot set
	Inode    uint64 `json:"inode"`
	Device   uint64 `json:"device"`
}

const (
	cacheVersion = 1
	// maxCache bounds the cache file; a larger one is ignored.
	maxCache = 64 << 20
	// restless is how long a file must be unchanged before it is cached: within the
	// resolution of the file system's clock it could change and keep its times.
	restless = 2 * time.Second
)

// OpenDigestCache returns the cache in a file; empty if the file is missing or unreadable.
func OpenDigestCache(path string) *DigestCache {
	c := &DigestCache{path: path, files: map[string]cachedFile{}}
	raw, err := readSmall(path, maxCache)
	if err != nil {
		return c
	}
	var v struct {
		Version int                   `json:"version"`
		Files   map[string]cachedFile `json:"files"`
	}
	if json.Unmarshal(raw, &v) == nil && v.Version == cacheVersion && v.Files != nil {
		c.files = v.Files
	}
	return c
}

// Save writes the cache, creating its folder, if it has new entries. It drops files that no
// longer exist.
func (c *DigestCache) Save() error {
	if c == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.dirty {
		return nil
	}
	for path := range c.files {
		if _, err := os.Stat(path); err != nil {
			delete(c.files, path)
		}
	}
	raw := compact(map[string]any{"version": cacheVersion, "files": c.files})
	if err := os.MkdirAll(filepath.Dir(c.path), 0o777); err != nil {
		return fileError("write", c.path, err)
	}
	tmp, err := os.CreateTemp(filepath.Dir(c.path), filepath.Base(c.path)+".*")
	if err != nil {
		return fileError("write", c.path, err)
	}
	defer os.Remove(tmp.Name())
	_, err = tmp.Write(raw)
	if closed := tmp.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = os.Rename(tmp.Name(), c.path)
	}
	if err != nil {
		return fileError("write", c.path, err)
	}
	c.dirty = false
	return nil
}

// lookup returns the digests of an open file's tensors, or nil.
func (c *DigestCache) lookup(f *os.File) map[string][sha256.Size]byte {
	path, stamp, ok := c.stampOf(f)
	if !ok {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	known, ok := c.files[path]
	if !ok || known.Stamp != stamp {
		return nil
	}
	sums := map[string][sha256.Size]byte{}
	for name, text := range known.Tensors {
		sum, err := hex.DecodeString(text)
		if err != nil || len(sum) != sha256.Size {
			return nil
		}
		sums[name] = [sha256.Size]byte(sum)
	}
	return sums
}

// add caches the digests of an open file's tensors, unless the file changed a moment ago.
func (c *DigestCache) add(f *os.File, sums map[string][sha256.Size]byte) {
	path, stamp, ok := c.stampOf(f)
	if !ok || time.Since(time.Unix(0, max(stamp.Modified, stamp.Changed))) < restless {
		return
	}
	file := cachedFile{Stamp: stamp, Tensors: map[string]string{}}
	for name, sum := range sums {
		file.Tensors[name] = hex.EncodeToString(sum[:])
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if old, ok := c.files[path]; ok && old.Stamp == stamp && len(old.Tensors) >= len(file.Tensors) {
		return
	}
	c.files[path], c.dirty = file, true
}

// stampOf returns the key of an open file.
func (c *DigestCache) stampOf(f *os.File) (path string, s fileStamp, ok bool) {
	if c == nil {
		return "", s, false
	}
	path, err := filepath.Abs(f.Name())
	if err != nil {
		return "", s, false
	}
	info, err := f.Stat()
	if err != nil {
		return "", s, false
	}
	s = fileStamp{Size: info.Size(), Modified: info.ModTime().UnixNano()}
	s.Changed, s.Inode, s.Device, ok = inodeOf(info)
	return path, s, ok
}
