package checkpoint

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
)

// TensorDigest is a tensor with the SHA-256 of its elements as stored, little-endian,
// row-major. The identity of a set of weights is computed from these, whatever the
// container.
type TensorDigest struct {
	Tensor
	SHA256 [sha256.Size]byte
}

// Digests returns the tensors by name with their digests. All cores compute them, each
// reading its own tensors. Digests of unchanged files come from cache, and new ones are
// added to it; a nil cache reads everything.
func (t *Tensors) Digests(cache *DigestCache) ([]TensorDigest, error) {
	sets := t.fileSets()
	list := make([]TensorDigest, 0, len(t.where))
	var open []int // indexes in list still to be read
	known := map[string]map[string][sha256.Size]byte{}
	for key, files := range sets {
		known[key] = cache.lookup(files)
	}
	for _, tensor := range t.List() {
		p := t.where[tensor.Name]
		sum, ok := known[cacheKey(p.files())][p.identity()]
		if !ok {
			open = append(open, len(list))
		}
		list = append(list, TensorDigest{Tensor: tensor, SHA256: sum})
	}
	if err := t.hash(list, open); err != nil {
		return nil, err
	}
	sums := map[string]map[string][sha256.Size]byte{}
	for _, d := range list {
		p := t.where[d.Name]
		key := cacheKey(p.files())
		if sums[key] == nil {
			sums[key] = map[string][sha256.Size]byte{}
		}
		sums[key][p.identity()] = d.SHA256
	}
	for key, byName := range sums {
		cache.add(sets[key], byName)
	}
	return list, nil
}

// fileSets returns the sets of files that hold tensors, by their keys.
func (t *Tensors) fileSets() map[string][]*os.File {
	sets := map[string][]*os.File{}
	for _, p := range t.where {
		files := p.files()
		sets[cacheKey(files)] = files
	}
	return sets
}

// hash fills in the digests of list[open…]. Large tensors come first, so that the cores
// finish at about the same time.
func (t *Tensors) hash(list []TensorDigest, open []int) error {
	slices.SortStableFunc(open, func(a, b int) int { return -cmp.Compare(list[a].Bytes(), list[b].Bytes()) })
	var next atomic.Int64
	var wg sync.WaitGroup
	errs := make([]error, min(runtime.GOMAXPROCS(0), len(open)))
	for w := range errs {
		wg.Go(func() {
			buf := make([]byte, 1<<20)
			for errs[w] == nil {
				i := int(next.Add(1) - 1)
				if i >= len(open) {
					return
				}
				d := &list[open[i]]
				if errs[w] = t.where[d.Name].agree(); errs[w] != nil {
					return
				}
				h := sha256.New()
				_, errs[w] = io.CopyBuffer(h, onlyReader{t.raw(d.Name)}, buf)
				d.SHA256 = [sha256.Size]byte(h.Sum(nil))
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// onlyReader hides everything but Read, so that io.CopyBuffer uses its buffer.
type onlyReader struct{ io.Reader }

// fileSHA256 returns the SHA-256 of a whole file in hexadecimal.
func fileSHA256(path string) (string, error) {
	f, err := openRegular(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.CopyBuffer(h, onlyReader{f}, make([]byte, 1<<20)); err != nil {
		return "", fileError("read", path, err)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
