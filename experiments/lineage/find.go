package lineage

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"exp/experiments/ident"
	"exp/experiments/store"
)

// ErrFolder means that a reference names a folder.
var ErrFolder = errors.New("it is a folder")

// minDigits is the shortest prefix accepted as a digest; anything shorter is probably a
// file name.
const minDigits = 4

// AmbiguousError reports a prefix of several digests.
type AmbiguousError struct {
	Ref     string
	Digests []ident.Digest // the first few, in order
}

func (e *AmbiguousError) Error() string {
	var texts []string
	for _, d := range e.Digests {
		text := d.String()
		texts = append(texts, text[:min(len(text), len(e.Ref)+4)])
	}
	return fmt.Sprintf("%q matches several digests: %s", e.Ref, strings.Join(texts, ", "))
}

// Find returns the digest that ref names: the digest in the store with that prefix, else
// the SHA-256 of the file with that name, and then file is set. The error wraps
// store.ErrNotFound if neither exists, and ErrFolder if ref names a folder.
func Find(ctx context.Context, db *store.DB, ref string) (d ident.Digest, file bool, err error) {
	const few = 6 // digests of an AmbiguousError
	digits := strings.ToLower(ref)
	if len(ref) >= minDigits && len(ref) <= 64 && strings.Trim(digits, "0123456789abcdef") == "" {
		list, err := db.DigestsWith(ctx, digits, few)
		switch {
		case err != nil:
			return d, false, err
		case len(list) > 1:
			return d, false, &AmbiguousError{ref, list}
		case len(list) == 1:
			return list[0], false, nil
		}
	}
	f, err := os.Open(ref)
	if errors.Is(err, fs.ErrNotExist) {
		return d, false, store.ErrNotFound
	}
	if err != nil {
		return d, false, err
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && info.IsDir() {
		return d, false, fmt.Errorf("%s: %w", ref, ErrFolder)
	}
	d, _, err = ident.SumReader(f)
	return d, true, err
}
