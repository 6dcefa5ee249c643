package blob

import (
	"context"

	"exp/experiments/ident"
)

// Verify rehashes a blob and compares it with its digest and with size. If they differ,
// the error is an *Error that wraps ErrCorrupt.
func (d *Dir) Verify(digest ident.Digest, size int64) error {
	f, err := d.Open(digest)
	if err != nil {
		return err
	}
	defer f.Close()
	got, n, err := ident.SumReader(f)
	switch {
	case err != nil:
		return d.errorOf("verify", digest, err)
	case n != size:
		return d.errorOf("verify", digest, corrupt("%d bytes, recorded as %d", n, size))
	case got != digest:
		return d.errorOf("verify", digest, corrupt("its bytes have digest %s", got))
	}
	return nil
}

// Recorded is a blob with the size that its record gives, in bytes.
type Recorded struct {
	Digest ident.Digest
	Size   int64
}

// VerifyAll verifies several blobs on all cores and returns the error of each. Whenever one is done,
// VerifyAll calls progress, if not nil, with the number of blobs and bytes so far. When ctx ends,
// blobs that have not begun get its error.
func (d *Dir) VerifyAll(ctx context.Context, list []Recorded, progress func(blobs int, bytes int64)) []error {
	sizes := make([]int64, len(list))
	for i, b := range list {
		sizes[i] = b.Size
	}
	errs := make([]error, len(list))
	ended := make(chan int)
	go func() {
		ident.OnAllCores(sizes, func(i int) {
			if errs[i] = ctx.Err(); errs[i] == nil {
				errs[i] = d.Verify(list[i].Digest, list[i].Size)
				ended <- i
			}
		})
		close(ended)
	}()
	blobs, bytes := 0, int64(0)
	for i := range ended {
		blobs, bytes = blobs+1, bytes+list[i].Size
		if progress != nil {
			progress(blobs, bytes)
		}
	}
	return errs
}
