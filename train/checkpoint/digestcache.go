package checkpoint

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
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

// cachedFile is the cache entry of a file, or of several that hold tensors together.
type cachedFile struct {
	Stamp   fileStamp         `json:"stamp"`
	Others  []fileStamp       `json:"others,omitempty"` // of the files after the first
	Tensors map[string]string `json:"tensors"`          // SHA-256 in hexadecimal, by name
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
	for key := range c.files {
		for path := range strings.SplitSeq(key, keySeparator) {
			if _, err := os.Stat(path); err != nil {
				delete(c.files, key)
			}
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

// keySeparator separates the paths in the key of several files.
const keySeparator = "\x00"

// cacheKey is the key of files: their absolute paths; "" if there are none.
func cacheKey(files []*os.File) string {
	paths := make([]string, len(files))
	for i, f := range files {
		path, err := filepath.Abs(f.Name())
		if err != nil {
			return ""
		}
		paths[i] = path
	}
	return strings.Join(paths, keySeparator)
}

// lookup returns the digests of the tensors in open files, or nil.
func (c *DigestCache) lookup(files []*os.File) map[string][sha256.Size]byte {
	key, stamps, ok := c.stampsOf(files)
	if !ok {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	known, ok := c.files[key]
	if !ok || known.Stamp != stamps[0] || !slices.Equal(known.Others, stamps[1:]) {
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

// add caches the digests of the tensors in open files, unless one of them changed a moment
// ago.
func (c *DigestCache) add(files []*os.File, sums map[string][sha256.Size]byte) {
	key, stamps, ok := c.stampsOf(files)
	if !ok {
		return
	}
	for _, s := range stamps {
		if time.Since(time.Unix(0, max(s.Modified, s.Changed))) < restless {
			return
		}
	}
	entry := cachedFile{Stamp: stamps[0], Others: slices.Clone(stamps[1:]), Tensors: map[string]string{}}
	for name, sum := range sums {
		entry.Tensors[name] = hex.EncodeToString(sum[:])
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	old, ok := c.files[key]
	if ok && old.Stamp == entry.Stamp && slices.Equal(old.Others, entry.Others) &&
		len(old.Tensors) >= len(entry.Tensors) {
		return
	}
	c.files[key], c.dirty = entry, true
}

// stampsOf returns the key of open files and their stamps.
func (c *DigestCache) stampsOf(files []*os.File) (key string, stamps []fileStamp, ok bool) {
	if key = cacheKey(files); c == nil || key == "" {
		return "", nil, false
	}
	for _, f := range files {
		info, err := f.Stat()
		if err != nil {
			return "", nil, false
		}
		s := fileStamp{Size: info.Size(), Modified: info.ModTime().UnixNano()}
		if s.Changed, s.Inode, s.Device, ok = inodeOf(info); !ok {
			return "", nil, false
		}
		stamps = append(stamps, s)
	}
	return key, stamps, true
}
