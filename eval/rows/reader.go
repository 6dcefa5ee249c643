package rows

import (
	"bufio"
	"compress/gzip"
	"crypto/sha256"
	"iter"
	"os"

	"github.com/klauspost/compress/zstd"
)

// Reader reads the rows of files, or of all files that patterns match (see Files), and counts them. The
// zero value with Paths reads them all. Not safe for concurrent use; Rows may be called once.
type Reader struct {
	Paths []string
	// Wanted reports whether to yield the row at an index, from 0; nil: every row. A row that is not wanted
	// is not decoded.
	Wanted func(index int) bool
	// Distinct leaves out wanted rows that equal an earlier one in every value. Training files hold each
	// problem a hundred times; comparing values is much cheaper than decoding them.
	Distinct bool

	Total    int // rows of the files so far
	Repeated int // of them, left out by Distinct

	seen map[[sha256.Size]byte]bool
}

// takeRow counts a row and reports its index, and whether to yield it. content appends to a buffer what two
// equal rows have in common and no others.
type takeRow func(content func(to []byte) []byte) (index int, ok bool)

// Rows yields the rows as Read does. A row keeps its index when others are left out.
func (r *Reader) Rows() iter.Seq2[Row, error] {
	return func(yield func(Row, error) bool) {
		list, err := AllFiles(r.Paths)
		if err != nil {
			yield(Row{}, err)
			return
		}
		r.seen = map[[sha256.Size]byte]bool{}
		take := r.taking()
		for _, file := range list {
			for row, err := range readFile(file, take) {
				if !yield(row, err) || err != nil {
					return
				}
			}
		}
	}
}

func (r *Reader) taking() takeRow {
	var b []byte
	return func(content func([]byte) []byte) (int, bool) {
		i := r.Total
		r.Total++
		if r.Wanted != nil && !r.Wanted(i) {
			return i, false
		}
		if !r.Distinct {
			return i, true
		}
		b = content(b[:0])
		sum := sha256.Sum256(b)
		if r.seen[sum] {
			r.Repeated++
			return i, false
		}
		r.seen[sum] = true
		return i, true
	}
}

// Count returns the number of rows of files, or of all files that patterns match.
func Count(paths ...string) (int, error) {
	r := &Reader{Paths: paths, Wanted: func(int) bool { return false }}
	for _, err := range r.Rows() {
		if err != nil {
			return 0, err
		}
	}
	return r.Total, nil
}

// textOf returns the content of a row that is a text.
func textOf(text []byte) func([]byte) []byte {
	return func(to []byte) []byte { return append(to, text...) }
}

// readFile yields the selected rows of one file.
func readFile(path string, take takeRow) iter.Seq2[Row, error] {
	return func(yield func(Row, error) bool) {
		f, err := os.Open(path)
		if err != nil {
			yield(Row{}, err)
			return
		}
		defer f.Close() // read only: a failed close loses nothing
		r := bufio.NewReaderSize(f, 1<<16)
		head, _ := r.Peek(headBytes)
		magic := string(head[:min(4, len(head))])
		switch {
		case magic == "PAR1":
			readParquet(f, path, take, yield)
			return
		case len(head) > 1 && head[0] == 0x1f && head[1] == 0x8b:
			z, err := gzip.NewReader(r)
			if err != nil {
				yield(Row{}, &Error{Where: path, Err: unpacked{by: "gzip"}.cut(err)})
				return
			}
			r = bufio.NewReaderSize(unpacked{z, "gzip"}, 1<<16)
		case magic == "\x28\xb5\x2f\xfd":
			z, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1))
			if err != nil {
				yield(Row{}, &Error{Where: path, Err: err})
				return
			}
			defer z.Close()
			r = bufio.NewReaderSize(unpacked{z, "zstd"}, 1<<16)
		default:
			if err := foreign(path, head); err != nil {
				yield(Row{}, &Error{Where: path, Err: err})
				return
			}
		}
		if c := separator(path); c != 0 {
			readTable(r, c, path, take, yield)
			return
		}
		readJSON(r, path, take, yield)
	}
}
