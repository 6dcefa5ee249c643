package trackers

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
)

// A TensorBoard file is a sequence of records (tensorflow/core/lib/io/record_writer.h):
//
//	uint64 length, uint32 masked CRC of length, bytes, uint32 masked CRC of bytes
//
// little-endian, with CRC-32C, rotated and shifted by a constant so that the CRC of
// bytes that contain a CRC is not special.

// maxRecord bounds a record; scalar records take a few dozen bytes.
const maxRecord = 256 << 20

var errRecord = errors.New("a record is damaged")

func maskedCRC(b []byte) uint32 {
	c := crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli))
	return (c>>15 | c<<17) + 0xa282ead8
}

// appendRecord appends a record.
func appendRecord(dst, data []byte) []byte {
	at := len(dst)
	dst = binary.LittleEndian.AppendUint64(dst, uint64(len(data)))
	dst = binary.LittleEndian.AppendUint32(dst, maskedCRC(dst[at:]))
	dst = append(dst, data...)
	return binary.LittleEndian.AppendUint32(dst, maskedCRC(data))
}

// readRecord returns the next record, or io.EOF at the end. A truncated record is
// io.ErrUnexpectedEOF: the writer was killed or is still writing.
func readRecord(r io.Reader) ([]byte, error) {
	var head [12]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, err
	}
	n := binary.LittleEndian.Uint64(head[:8])
	if binary.LittleEndian.Uint32(head[8:]) != maskedCRC(head[:8]) || n > maxRecord {
		return nil, errRecord
	}
	data := make([]byte, n+4)
	if _, err := io.ReadFull(r, data); err != nil {
		return nil, io.ErrUnexpectedEOF
	}
	body := data[:n]
	if binary.LittleEndian.Uint32(data[n:]) != maskedCRC(body) {
		return nil, errRecord
	}
	return body, nil
}
