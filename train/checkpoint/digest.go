package checkpoint

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
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

// hash fills in the digests of list[open…].
func (t *Tensors) hash(list []TensorDigest, open []int) error {
	slices.SortStableFunc(open, func(a, b int) int { return -cmp.Compare(list[a].Bytes(), list[b].Bytes()) })
	return onAllCores(len(open), func(i int, buf []byte) (err error) {
		d := &list[open[i]]
		if err := t.where[d.Name].agree(); err != nil {
			return err
		}
		if grain := t.where[d.Name].data.Grain(); int64(len(buf)) < grain {
			buf = make([]byte, grain)
		}
		d.SHA256, err = sumOf(t.raw(d.Name), buf)
		return err
	})
}

// readRoom keeps buffers of onAllCores: small files take less time to read than a new buffer to clear.
var readRoom = sync.Pool{New: func() any { return new([1 << 20]byte) }}

// onAllCores calls f for 0 to n-1 in order, as many at once as there are processors, with a buffer
// for each. It begins no call after one failed, and returns the error of the lowest number. With
// the largest inputs first, the last calls end at about the same time.
func onAllCores(n int, f func(i int, buf []byte) error) error {
	var next atomic.Int64
	var failed atomic.Bool
	var calls sync.WaitGroup
	errs := make([]error, n)
	for range min(runtime.GOMAXPROCS(0), n) {
		calls.Go(func() {
			room := readRoom.Get().(*[1 << 20]byte)
			defer readRoom.Put(room)
			buf := room[:]
			for !failed.Load() { // before it takes a number: those below one that failed are called
				i := next.Add(1) - 1
				if i >= int64(n) {
					return
				}
				if errs[i] = f(int(i), buf); errs[i] != nil {
					failed.Store(true)
				}
			}
		})
	}
	calls.Wait()
	return cmp.Or(errs...)
}

// sumOf returns the SHA-256 of what is left of r.
func sumOf(r io.Reader, buf []byte) ([sha256.Size]byte, error) {
	h := sha256.New()
	_, err := io.CopyBuffer(h, onlyReader{r}, buf)
	return [sha256.Size]byte(h.Sum(nil)), err
}

// onlyReader hides everything but Read, so that io.CopyBuffer uses its buffer.
type onlyReader struct{ io.Reader }

// fileSHA256 returns the SHA-256 of a whole file in hexadecimal.
func fileSHA256(path string, buf []byte) (string, error) {
	f, err := openRegular(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	sum, err := sumOf(f, buf)
	if err != nil {
		return "", fileError("read", path, err)
	}
	return hex.EncodeToString(sum[:]), nil
}
