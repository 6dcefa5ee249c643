package rows

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
)

// headBytes is how many bytes foreign needs of a file.
const headBytes = 64

// foreign returns an error that says what a file of another kind is, and what to do; nil if its first bytes may be
// text. A web page and a pointer of Git LFS would be valid tables.
func foreign(path string, head []byte) error {
	for _, known := range []struct{ magic, what string }{
		{"version https://git-lfs.github.com/", "a pointer of Git LFS, not the data: git lfs pull fetches it"},
		{"PK\x03\x04", "a zip archive: unpack it"},
		{"ARROW1", "an Arrow file: write it with to_parquet or to_json"},
		{"\xff\xff\xff\xff", "an Arrow stream, as save_to_disk writes it: write it with to_parquet or to_json"},
		{"BZh91AY&SY", "compressed by bzip2: unpack it, or use gzip or zstd"},
		{"\xfd7zXZ\x00", "compressed by xz: unpack it, or use gzip or zstd"},
	} {
		if bytes.HasPrefix(head, []byte(known.magic)) {
			return errors.New(known.what)
		}
	}
	start := bytes.ToLower(bytes.TrimSpace(bytes.TrimPrefix(head, []byte("\ufeff"))))
	for _, page := range []string{"<!doctype html", "<html"} {
		if bytes.HasPrefix(start, []byte(page)) {
			return errors.New("a web page, not data: fetch the file itself")
		}
	}
	if strings.EqualFold(filepath.Ext(path), ".parquet") && len(start) > 0 && start[0] != '{' && start[0] != '[' {
		return errors.New("not parquet, which begins with PAR1: fetch or write it again, or name it after its format")
	}
	return nil
}

// unpacked reads a compressed file and says so if it was cut off.
type unpacked struct {
	io.Reader
	by string
}

func (u unpacked) Read(b []byte) (int, error) {
	n, err := u.Reader.Read(b)
	return n, u.cut(err)
}

// cut words the error of a file that ends within its compressed data.
func (u unpacked) cut(err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("the file is cut off, its %s data has no end (%w): fetch or write it again", u.by, err)
	}
	return err
}

// misread adds to the error of a file's first line what the line looks like.
func misread(err error, line []byte) error {
	if len(line) > 0 && !bytes.ContainsAny(line[:1], `{["`) && bytes.ContainsAny(line, ",\t") {
		return fmt.Errorf("%w; the name of a table ends in .csv or .tsv", err)
	}
	return err
}
