package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"exp/experiments/spelling"
)

// maxFileBytes limits the size of a configuration file. Recipes have a few KiB; a
// larger file is refused before it is parsed.
const maxFileBytes = 128 << 10

// source is a text with configuration: a file or a --set expression.
type source struct {
	name  string   // as the user named it, or "--set #2"
	lines []string // without line ends
	order int      // of the layers; later ones override earlier ones
	set   bool     // a --set expression: positions are columns of one line
	flag  bool     // an expression that nobody wrote: it has no positions
}

// pos is a place in a source.
type pos struct {
	src       *source
	line, col int // from 1; 0 means the whole source
	width     int // runes to mark
}

func (p pos) String() string {
	switch {
	case p.line == 0 || p.src.set:
		return p.src.name
	}
	return fmt.Sprintf("%s:%d:%d", p.src.name, p.line, p.col)
}

// fault returns an error at the place.
func (p pos) fault(code, message, help string) *Error {
	e := &Error{Code: code, Source: p.src.name, Line: p.line, Col: p.col, Message: message, Help: help,
		width: p.width, src: p.src}
	switch {
	case p.src.flag:
		e.Line, e.Col = 0, 0
	case p.src.set:
		e.Line = 0
	case p.line > 0 && p.line <= len(p.src.lines):
		e.excerpt = p.src.lines[p.line-1]
	}
	return e
}

// newSource normalizes the text of a file: line ends become \n, a byte order mark is
// removed. It refuses binary data.
func newSource(name string, data []byte) (*source, string, *Error) {
	src := &source{name: name}
	whole := pos{src: src}
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	switch {
	case len(data) > maxFileBytes:
		return src, "", whole.fault(CodeFile, fmt.Sprintf("is larger than %s, the limit for a configuration",
			formatSize(maxFileBytes)), "give a recipe (.yaml)")
	case len(bytes.TrimSpace(data)) == 0:
		return src, "", whole.fault(CodeFile, "is empty",
			"a recipe starts with version: 1; see configs/ for examples")
	}
	if i := binaryAt(data); i >= 0 {
		return src, "", whole.fault(CodeFile, fmt.Sprintf("is not a text file: byte 0x%02x at offset %d", data[i], i),
			"give a recipe (.yaml) in UTF-8")
	}
	text := strings.ReplaceAll(string(data), "\r\n", "\n")
	src.lines = strings.Split(text, "\n")
	return src, text, nil
}

// binaryAt returns the offset of the first byte that cannot be in a text file, or -1.
func binaryAt(data []byte) int {
	for i := 0; i < len(data); {
		r, n := utf8.DecodeRune(data[i:])
		if r == utf8.RuneError && n == 1 || r < ' ' && r != '\n' && r != '\r' && r != '\t' || r == 0x7f {
			return i
		}
		i += n
	}
	return -1
}

// readFile reads at most one byte more than the limit of a configuration, so that a
// huge file or a device costs nothing.
func readFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		return nil, errIsDir
	}
	if !info.Mode().IsRegular() && info.Mode()&(fs.ModeNamedPipe|fs.ModeCharDevice) == 0 {
		return nil, errNotFile
	}
	return io.ReadAll(io.LimitReader(f, maxFileBytes+8))
}

var (
	errIsDir   = errors.New("is a directory")
	errNotFile = errors.New("is not a readable file")
)

// unreadable explains a failed read, without the path, and returns help that names
// nearby files.
func unreadable(path string, err error) (reason, help string) {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if key, value, ok := strings.Cut(path, "="); ok && !strings.ContainsAny(key, `/\`) {
			return "no such file", fmt.Sprintf("a setting follows --set: --set %s=%s", key, value)
		}
		return "no such file", nearbyFiles(path)
	case errors.Is(err, fs.ErrPermission):
		return "permission denied", "check the file's owner and mode"
	case errors.Is(err, errIsDir):
		return "is a directory", nearbyFiles(filepath.Join(path, "x"))
	}
	var pathErr *fs.PathError
	if errors.As(err, &pathErr) {
		err = pathErr.Err
	}
	return err.Error(), ""
}

// nearbyFiles suggests YAML files in the folder of path, most similar first.
func nearbyFiles(path string) string {
	dir := filepath.Dir(path)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return ""
	}
	var names []string
	for _, e := range entries {
		if ext := filepath.Ext(e.Name()); !e.IsDir() && (ext == ".yaml" || ext == ".yml") {
			names = append(names, e.Name())
		}
	}
	if len(names) == 0 {
		return ""
	}
	if near := spelling.Nearest(filepath.Base(path), names); near != "" {
		return fmt.Sprintf("did you mean %s?", filepath.Join(dir, near))
	}
	return fmt.Sprintf("files there: %s", enumerate(names, 8))
}
