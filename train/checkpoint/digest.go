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
	known := map[string][sha256.Size]byte{}
	for _, f := range t.files {
		for stored, sum := range cache.lookup(f) {
			known[f.Name()+"\x00"+stored] = sum
		}
	}
	list := make([]TensorDigest, 0, len(t.where))
	var open []int // indexes in list still to be read
	for _, tensor := range t.List() {
		p := t.where[tensor.Name]
		sum, ok := known[p.file.Name()+"\x00"+p.stored]
		if !ok {
			open = append(open, len(list))
		}
		list = append(list, TensorDigest{Tensor: tensor, SHA256: sum})
	}
	if err := t.hash(list, open); err != nil {
		return nil, err
	}
	sums := map[*os.File]map[string][sha256.Size]byte{}
	for _, d := range list {
		p := t.where[d.Name]
		if sums[p.file] == nil {
			sums[p.file] = map[string][sha256.Size]byte{}
		}
		sums[p.file][p.stored] = d.SHA256
	}
	for f, byName := range sums {
		cache.add(f, byName)
	}
	return list, nil
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
