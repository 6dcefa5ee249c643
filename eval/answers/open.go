package answers

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"os"

	"exp/eval/rows"
)

// Open opens a file of rows for Grade, in any form that package rows reads: Grade itself reads lines of JSON alone.
// Errors of reading other forms, of rows or of the system, name the file and the place.
func Open(path string) (io.ReadCloser, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	lines, err := ofLines(f)
	if err != nil || lines {
		return f, err
	}
	if err := f.Close(); err != nil {
		return nil, err
	}
	r, w := io.Pipe()
	go func() { _ = w.CloseWithError(write(w, path)) }() // until the reader has all, or is closed
	return r, nil
}

// ofLines reports whether a file begins with an object, or has nothing in it; something other than a plain file, such
// as a pipe, is not looked into.
func ofLines(f *os.File) (bool, error) {
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return true, err
	}
	head, err := bufio.NewReaderSize(f, 1<<10).Peek(1 << 10)
	if err != nil && err != io.EOF {
		return false, err
	}
	head = bytes.TrimSpace(bytes.TrimPrefix(head, []byte("\ufeff")))
	_, err = f.Seek(0, io.SeekStart)
	return len(head) == 0 || head[0] == '{', err
}

// write writes the rows of a file as lines of JSON.
func write(w io.Writer, path string) error {
	for row, err := range rows.Read(path) {
		if err != nil {
			return err
		}
		text, err := row.JSON()
		if err != nil {
			return err
		}
		if bytes.ContainsAny(text, "\r\n") { // an item of an array may span lines
			var b bytes.Buffer
			if err := json.Compact(&b, text); err != nil {
				return err
			}
			text = b.Bytes()
		}
		if _, err := w.Write(append(text[:len(text):len(text)], '\n')); err != nil {
			return err
		}
	}
	return nil
}
