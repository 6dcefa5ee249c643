package blob

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/klauspost/compress/zstd"

	"exp/experiments/ident"
)

const (
	// packSize is the size of the records, in bytes, that closes a pack. Reading one
	// record decompresses its pack, a few milliseconds; smaller packs compress worse.
	packSize = 1 << 20
	// maxPack bounds the decompressed size of a pack; maxRecord is the largest record
	// that still fits into an almost full pack, with its line end.
	maxPack   = 64 << 20
	maxRecord = maxPack - packSize - 1
)

// Ref locates a record.
type Ref struct {
	Pack ident.Digest // the blob; a digest of the compressed bytes
	Off  int64        // first byte of the record in the decompressed pack
	Len  int64        // bytes
}

// Pack is a blob written by a PackWriter.
type Pack struct {
	Digest ident.Digest
	Size   int64 // bytes on disk
}

// PackWriter stores JSON records in packs: blobs of about 1 MiB of records
// before compression. A pack is one zstd frame, with its content size and
// checksum, of one record a line: `zstd -dc FILE` prints it.
//
// A pack's digest is of compressed bytes, which may change with the compressor's version.
// Use it to find a record, never as a result.
//
// Not safe for concurrent use. The caller must Close it.
type PackWriter struct {
	dir   *Dir
	zstd  *zstd.Encoder
	raw   bytes.Buffer // records of the open pack
	refs  []Ref        // of all records; Pack is set when the pack is stored
	open  int          // refs[open:] are in raw
	packs []Pack
}

// NewPackWriter returns a writer without records.
func (d *Dir) NewPackWriter() *PackWriter {
	// For completions with log-probs, the fastest level gives packs as small as the
	// default, in three quarters of the time. A window of a pack takes 1 MiB, the default one 8.
	enc, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedFastest),
		zstd.WithWindowSize(packSize), zstd.WithLowerEncoderMem(true))
	if err != nil {
		panic("blob: " + err.Error()) // only for options out of range
	}
	return &PackWriter{dir: d, zstd: enc}
}

// Add appends v as JSON. It returns a JSON error about v, or an *Error if a pack could not
// be stored; do not use the writer after an *Error.
func (w *PackWriter) Add(v any) error {
	start := w.raw.Len()
	enc := json.NewEncoder(&w.raw)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		w.raw.Truncate(start)
		return fmt.Errorf("record %d: %w", len(w.refs), err)
	}
	size := w.raw.Len() - start - 1 // Encode ends the line
	if size > maxRecord {
		w.raw.Truncate(start)
		return fmt.Errorf("record %d: %d bytes of JSON, more than %d", len(w.refs), size, maxRecord)
	}
	w.refs = append(w.refs, Ref{Off: int64(start), Len: int64(size)})
	if w.raw.Len() >= packSize {
		return w.flush()
	}
	return nil
}

// Stored returns the Refs of the records in stored packs, in the order of Add, and the
// packs.
func (w *PackWriter) Stored() ([]Ref, []Pack) { return w.refs[:w.open], w.packs }

// Close stores the remaining records and returns the Refs of all records, in the order of
// Add, and the packs.
func (w *PackWriter) Close() ([]Ref, []Pack, error) {
	if err := w.flush(); err != nil {
		return nil, nil, err
	}
	return w.refs, w.packs, w.zstd.Close()
}

func (w *PackWriter) flush() error {
	if w.open == len(w.refs) {
		return nil
	}
	b := w.zstd.EncodeAll(w.raw.Bytes(), nil)
	digest, err := w.dir.PutBytes(b)
	if err != nil {
		return err
	}
	for i := range w.refs[w.open:] {
		w.refs[w.open+i].Pack = digest
	}
	w.open = len(w.refs)
	w.packs = append(w.packs, Pack{Digest: digest, Size: int64(len(b))})
	w.raw.Reset()
	return nil
}

// PackReader reads records by Ref. It keeps the last pack, so reading in writing order
// decompresses each pack once. Not safe for concurrent use.
type PackReader struct {
	dir  *Dir
	zstd *zstd.Decoder
	pack ident.Digest
	raw  []byte
}

// NewPackReader returns a reader of packs in d; the caller closes it.
func (d *Dir) NewPackReader() *PackReader {
	dec, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxPack))
	if err != nil {
		panic("blob: " + err.Error()) // only for options out of range
	}
	return &PackReader{dir: d, zstd: dec}
}

// Read decodes the JSON record at ref into v. If the pack is damaged or lacks the record,
// the error is an *Error that wraps ErrCorrupt.
func (r *PackReader) Read(ref Ref, v any) error {
	if r.raw == nil || r.pack != ref.Pack {
		if err := r.load(ref.Pack); err != nil {
			return err
		}
	}
	n := int64(len(r.raw))
	if ref.Off < 0 || ref.Len < 0 || ref.Off > n || ref.Len > n-ref.Off {
		return r.dir.errorOf("read", ref.Pack, corrupt("no record at %d+%d of %d bytes", ref.Off, ref.Len, n))
	}
	if err := json.Unmarshal(r.raw[ref.Off:ref.Off+ref.Len], v); err != nil {
		return r.dir.errorOf("read", ref.Pack, corrupt("record at %d+%d: %v", ref.Off, ref.Len, err))
	}
	return nil
}

func (r *PackReader) load(pack ident.Digest) error {
	r.raw = nil
	b, err := r.dir.Bytes(pack)
	if err != nil {
		return err
	}
	raw, err := r.zstd.DecodeAll(b, []byte{})
	if err != nil {
		return r.dir.errorOf("read", pack, corrupt("%v", err))
	}
	r.pack, r.raw = pack, raw
	return nil
}

// Close frees the reader's memory.
func (r *PackReader) Close() { r.zstd.Close() }
