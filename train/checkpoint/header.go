package checkpoint

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/bits"
	"slices"
	"unicode/utf8"
)

// A safetensors file (github.com/huggingface/safetensors, "Format") is
//
//	8 bytes   N, the length of the header, little-endian
//	N bytes   JSON: {"NAME": {"dtype", "shape", "data_offsets": [begin, end]}, …},
//	          optionally "__metadata__": {string: string}; padded with spaces
//	rest      elements, little-endian, row-major; offsets count from here, and the
//	          tensors cover it without a gap

// maxHeader is the longest header that the format's own library reads.
const maxHeader = 100_000_000

// metadataKey is the header key that is not a tensor.
const metadataKey = "__metadata__"

// entry is a tensor of a header and its bytes, counted from the end of the header.
type entry struct {
	Tensor
	begin, end int64
}

// parseHeader reads the JSON of a header in front of dataLen bytes. It returns the entries
// in byte order.
func parseHeader(path string, raw []byte, dataLen int64) ([]entry, error) {
	if !utf8.Valid(raw) {
		return nil, corrupt(path, "", "the header is not UTF-8")
	}
	if len(raw) == 0 || raw[0] != '{' {
		return nil, corrupt(path, "", "the header does not begin with {; is this a safetensors file?")
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	var entries []entry
	err := object(dec, func(name string) error {
		if name == metadataKey {
			return metadata(path, dec)
		}
		e, err := parseEntry(path, name, dec)
		entries = append(entries, e)
		return err
	})
	if err != nil {
		return nil, headerError(path, err)
	}
	if rest := bytes.TrimRight(raw[dec.InputOffset():], " "); len(rest) > 0 {
		return nil, corrupt(path, "", "%d bytes after the end of the header's JSON", len(rest))
	}
	return entries, tile(path, entries, dataLen)
}

// headerError turns an error about the JSON into an *Error and returns others unchanged.
func headerError(path string, err error) error {
	if done := (*Error)(nil); errors.As(err, &done) {
		return err
	}
	return corrupt(path, "", "the header is not the JSON of a safetensors file: %v", err)
}

// object reads a JSON object from dec and calls value for each key, to read the key's
// value. A repeated key is an error: readers disagree on its meaning.
func object(dec *json.Decoder, value func(key string) error) error {
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return fmt.Errorf("want an object, got %v (%w)", t, cmp.Or(err, errJSON))
	}
	seen := map[string]bool{}
	for dec.More() {
		t, err := dec.Token()
		if err != nil {
			return err
		}
		key, ok := t.(string)
		if !ok || seen[key] {
			return fmt.Errorf("repeated key %v (%w)", t, errJSON)
		}
		seen[key] = true
		if err := value(key); err != nil {
			return err
		}
	}
	_, err := dec.Token()
	return err
}

var errJSON = errors.New("malformed")

func metadata(path string, dec *json.Decoder) error {
	return object(dec, func(key string) error {
		var v *string
		if err := dec.Decode(&v); err != nil || v == nil {
			return corrupt(path, "", "%s: %q is not a string", metadataKey, key)
		}
		return nil
	})
}

// parseEntry reads a tensor's description and checks it in isolation.
func parseEntry(path, name string, dec *json.Decoder) (entry, error) {
	e := entry{Tensor: Tensor{Name: name}}
	var dtype *string
	var shape, offsets list
	err := object(dec, func(key string) error {
		switch key {
		case "dtype":
			return dec.Decode(&dtype)
		case "shape":
			return dec.Decode(&shape)
		case "data_offsets":
			return dec.Decode(&offsets)
		}
		return fmt.Errorf("unknown key %q", key)
	})
	if err != nil {
		return e, corrupt(path, name, "%v", err)
	}
	if dtype == nil || shape == nil || len(offsets) != 2 || slices.Contains(offsets, nil) {
		return e, corrupt(path, name, "needs dtype, shape and two data_offsets")
	}
	e.DType, e.Shape, e.begin, e.end = DType(*dtype), []int{}, *offsets[0], *offsets[1]
	if e.DType.bits() == 0 {
		return e, corrupt(path, name, "unknown dtype %q", *dtype)
	}
	size := uint64(e.DType.bits())
	for _, d := range shape {
		if d == nil || *d < 0 {
			return e, corrupt(path, name, "negative or missing dimension")
		}
		hi, lo := bits.Mul64(size, uint64(*d))
		if hi != 0 || lo > 1<<62 {
			return e, corrupt(path, name, "the shape is too large")
		}
		size = lo
		e.Shape = append(e.Shape, int(*d))
	}
	if size%8 != 0 {
		return e, corrupt(path, name, "%s is not a whole number of bytes", e.kind())
	}
	if e.begin < 0 || e.end < e.begin || uint64(e.end-e.begin) != size/8 {
		return e, corrupt(path, name, "%s takes %d bytes, but data_offsets are %d to %d", e.kind(), size/8,
			e.begin, e.end)
	}
	return e, nil
}

// list is a short JSON list of integers.
type list []*int64

// maxList is the longest list text that is read: more dimensions than any array has, and
// little memory.
const maxList = 1024

// UnmarshalJSON implements json.Unmarshaler.
func (l *list) UnmarshalJSON(raw []byte) error {
	if len(raw) > maxList {
		return fmt.Errorf("a list of %d bytes (%w)", len(raw), errJSON)
	}
	return json.Unmarshal(raw, (*[]*int64)(l))
}

// tile sorts entries by their bytes and checks that they cover dataLen bytes without gaps
// or overlaps.
func tile(path string, entries []entry, dataLen int64) error {
	slices.SortFunc(entries, func(a, b entry) int {
		return cmp.Or(cmp.Compare(a.begin, b.begin), cmp.Compare(a.end, b.end), cmp.Compare(a.Name, b.Name))
	})
	var at int64
	for _, e := range entries {
		if e.begin != at {
			return corrupt(path, e.Name, "begins at byte %d of the data, but the tensors before it end at %d",
				e.begin, at)
		}
		if at = e.end; at > dataLen {
			return corrupt(path, e.Name, "ends at byte %d of the data, but the file has only %d: it is truncated",
				at, dataLen)
		}
	}
	if at != dataLen {
		return corrupt(path, "", "the tensors end at byte %d of the data, but the file has %d", at, dataLen)
	}
	return nil
}

// WriteSafetensors writes a safetensors file. Equal tensors give equal bytes whatever their
// order in the slice: larger elements come first, so that all are aligned, then names
// ascend; the metadata is {"format":"pt"}, which Hugging Face's loaders require, with the number of heads if the order
// of rows depends on it. It returns
// errors of w and of the sources. It panics if two tensors have one name.
func WriteSafetensors(w io.Writer, tensors []Source) error {
	sorted := inFileOrder(tensors)
	if _, err := w.Write(header(sorted)); err != nil {
		return err
	}
	for _, s := range sorted {
		c := counter{w: w}
		if err := s.Raw(&c); err != nil {
			return err
		}
		if c.n != s.Bytes() {
			panic("checkpoint: source of " + s.Name + " wrote the wrong number of bytes")
		}
	}
	return nil
}

func inFileOrder(tensors []Source) []Source {
	sorted := slices.Clone(tensors)
	slices.SortFunc(sorted, func(a, b Source) int {
		return cmp.Or(-cmp.Compare(a.DType.bits(), b.DType.bits()), cmp.Compare(a.Name, b.Name))
	})
	return sorted
}

// header returns the length and the JSON of the header for tensors in this order.
func header(tensors []Source) []byte {
	b := []byte(`{"` + metadataKey + `":{"format":"pt"`)
	if i := slices.IndexFunc(tensors, func(s Source) bool { return s.heads > 0 }); i >= 0 {
		b = fmt.Appendf(b, `,"%s":"%d"`, headsKey, tensors[i].heads)
	}
	b = append(b, '}')
	seen := map[string]bool{metadataKey: true}
	var at int64
	for _, s := range tensors {
		if seen[s.Name] {
			panic("checkpoint: two tensors are named " + s.Name)
		}
		seen[s.Name] = true
		shape := s.Shape
		if shape == nil {
			shape = []int{}
		}
		b = append(b, ',')
		b = append(b, compact(s.Name)...)
		b = append(b, `:{"dtype":`...)
		b = append(b, compact(s.DType)...)
		b = append(b, `,"shape":`...)
		b = append(b, compact(shape)...)
		b = append(b, `,"data_offsets":`...)
		b = append(b, compact([]int64{at, at + s.Bytes()})...)
		b = append(b, '}')
		at += s.Bytes()
	}
	b = append(b, '}')
	for len(b)%8 != 0 {
		b = append(b, ' ')
	}
	return append(binary.LittleEndian.AppendUint64(nil, uint64(len(b))), b...)
}

// compact returns v as JSON without escapes for HTML.
func compact(v any) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		panic("checkpoint: JSON of a plain value: " + err.Error())
	}
	return bytes.TrimRight(b.Bytes(), "\n")
}

// counter counts the bytes written to w.
type counter struct {
	w io.Writer
	n int64
}

func (c *counter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.n += int64(n)
	return n, err
}
