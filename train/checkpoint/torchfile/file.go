package torchfile

import (
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"exp/train/checkpoint/fault"
)

// entry is a stored file of an archive: bytes of its reader.
type entry struct {
	zip *zip.File
	at  int64 // of the archive in its reader
	end int64
}

// Open decodes the torch.save archive in size bytes of r from at, and returns the value
// that was saved. name is for errors. It reads the directory and the pickle, no elements; r
// must stay open while nodes that refer to storages are in use. It refuses the format of
// torch before 1.6.
func Open(name string, r io.ReaderAt, at, size int64) (Node, error) {
	section := io.NewSectionReader(r, at, size)
	if err := recognize(name, section); err != nil {
		return Node{}, err
	}
	z, err := zip.NewReader(section, size)
	if err != nil && !errors.Is(err, zip.ErrInsecurePath) {
		return Node{}, fault.Corrupt(name, "", "%v; it is truncated, or not written by torch.save", err)
	}
	top, err := topFolder(name, z)
	if err != nil {
		return Node{}, err
	}
	a := &archive{r: r, entries: map[string]entry{}}
	small := map[string]entry{}
	for _, f := range z.File {
		rest, ok := strings.CutPrefix(f.Name, top+"/")
		if !ok {
			continue
		}
		e, list := entry{f, at, at + size}, small
		if key, ok := strings.CutPrefix(rest, "data/"); ok {
			rest, list = key, a.entries
		}
		if _, twice := list[rest]; twice {
			return Node{}, fault.Corrupt(name, "", "the archive has two entries %q", fault.ShortName(f.Name))
		}
		list[rest] = e
	}
	if e, ok := small["byteorder"]; ok {
		order, err := e.read(name, r, 16)
		if err != nil {
			return Node{}, err
		}
		if string(order) != "little" {
			return Node{}, fault.Refuse(name, "", "save it again on a little-endian machine",
				"its byte order is %q; only little-endian files are supported", order)
		}
	}
	pickle, err := small[pickleName].read(name, r, maxPickle)
	if err != nil {
		return Node{}, err
	}
	return decode(&data{name: name, raw: pickle, archive: a})
}

// pickleName is the pickle's name below the top folder.
const pickleName = "data.pkl"

// recognize refuses files that are not zip archives.
func recognize(name string, r io.ReaderAt) error {
	head := make([]byte, 16)
	n, err := r.ReadAt(head, 0)
	if err != nil && err != io.EOF {
		return fault.File("read", name, err)
	}
	head = head[:n]
	switch magic := []byte{0x6c, 0xfc, 0x9c, 0x46, 0xf9, 0x20, 0x6a, 0xa8, 0x50, 0x19}; {
	case bytes.HasPrefix(head, []byte("PK\x03\x04")):
		return nil
	case bytes.Contains(head, magic):
		return fault.Refuse(name, "", "load it and save it again once with torch 1.6 or newer: "+
			"torch.save(torch.load(old), new)", "is in the format of torch before 1.6, which is not supported")
	case n > 8 && head[8] == '{': // behind the length of the header
		return fault.Refuse(name, "", "save it again by torch.save, with torch.distributed.checkpoint by "+
			"SerializationFormat.TORCH_SAVE", "is in the format of safetensors, not of torch.save")
	}
	return fault.Corrupt(name, "", "is not an archive of torch.save: it begins with %q", head[:min(n, 8)])
}

// topFolder returns the only folder at the top of an archive with a pickle in it.
func topFolder(name string, z *zip.Reader) (string, error) {
	found := false
	top := ""
	for _, f := range z.File {
		folder, ok := strings.CutSuffix(f.Name, "/"+pickleName)
		if !ok || strings.Contains(folder, "/") {
			continue
		}
		if found {
			return "", fault.Corrupt(name, "", "the archive has two files %s", pickleName)
		}
		top, found = folder, true
	}
	if !found {
		return "", fault.Corrupt(name, "", "the archive has no %s: not written by torch.save", pickleName)
	}
	return top, nil
}

// locate returns the bytes of an entry in the archive's reader.
func (e entry) locate(name string) (at, size int64, err error) {
	f := e.zip
	if f.Method != zip.Store || f.CompressedSize64 != f.UncompressedSize64 || f.Flags&1 != 0 {
		return 0, 0, fault.Corrupt(name, "", "entry %q is compressed; torch.save stores entries uncompressed",
			fault.ShortName(f.Name))
	}
	at, err = f.DataOffset()
	if err != nil {
		return 0, 0, fault.Corrupt(name, "", "entry %q: %v", fault.ShortName(f.Name), err)
	}
	at += e.at
	if f.UncompressedSize64 > uint64(e.end) || at > e.end-int64(f.UncompressedSize64) {
		return 0, 0, fault.Corrupt(name, "", "entry %q of %d bytes goes beyond the end", fault.ShortName(f.Name),
			f.UncompressedSize64)
	}
	return at, int64(f.UncompressedSize64), nil
}

// read returns the contents of an entry of at most limit bytes.
func (e entry) read(name string, r io.ReaderAt, limit int64) ([]byte, error) {
	at, size, err := e.locate(name)
	if err != nil {
		return nil, err
	}
	if size > limit {
		return nil, fault.Corrupt(name, "", "entry %q has %d bytes, over the limit of %d", fault.ShortName(e.zip.Name),
			size, limit)
	}
	b := make([]byte, size)
	if _, err := r.ReadAt(b, at); err != nil && !(err == io.EOF && size == 0) {
		return nil, fault.File("read", name, fmt.Errorf("entry %q: %w", fault.ShortName(e.zip.Name), err))
	}
	return b, nil
}
