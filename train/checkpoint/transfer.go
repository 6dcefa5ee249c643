package checkpoint

import (
	"encoding/binary"
	"io"

	"exp/kernels"
)

// chunk is the number of elements on the host at a time: 4 MiB of float32, large enough
// that neither the bus nor the disk notices the seams.
const chunk = 1 << 20

// element is an element type of a Buffer.
type element interface{ float32 | float64 | int32 }

// writeBuffer writes the elements of b to w, little-endian.
func writeBuffer(w io.Writer, be kernels.Backend, b kernels.Buffer) error {
	switch b.DType() {
	case kernels.F32:
		return writeElements[float32](w, be, b)
	case kernels.F64:
		return writeElements[float64](w, be, b)
	case kernels.I32:
		return writeElements[int32](w, be, b)
	}
	panic("checkpoint: unknown dtype")
}

func writeElements[T element](w io.Writer, be kernels.Backend, b kernels.Buffer) error {
	size := b.DType().Size()
	host := make([]T, min(b.Len(), chunk))
	raw := make([]byte, len(host)*size)
	for lo := 0; lo < b.Len(); lo += len(host) {
		n := min(len(host), b.Len()-lo)
		be.Copy(kernels.Host(host[:n]), b.Slice(lo, lo+n))
		be.Sync()
		encode(raw, host[:n])
		if _, err := w.Write(raw[:n*size]); err != nil {
			return err
		}
	}
	return nil
}

// writeFloats writes the elements of b, a float buffer, rounded to type t.
func writeFloats(w io.Writer, be kernels.Backend, b kernels.Buffer, t DType) error {
	if t == dtypeOf(b.DType()) {
		return writeBuffer(w, be, b)
	}
	host := make([]float32, min(b.Len(), chunk))
	raw := make([]byte, len(host)*t.bits()/8)
	for lo := 0; lo < b.Len(); lo += len(host) {
		n := min(len(host), b.Len()-lo)
		be.Copy(kernels.Host(host[:n]), b.Slice(lo, lo+n))
		be.Sync()
		bytes := raw[:n*t.bits()/8]
		if err := t.encodeFloats(bytes, host[:n]); err != nil {
			return err
		}
		if _, err := w.Write(bytes); err != nil {
			return err
		}
	}
	return nil
}

// encode sets raw to the little-endian bytes of elems.
func encode[T element](raw []byte, elems []T) {
	if _, err := binary.Encode(raw, binary.LittleEndian, elems); err != nil {
		panic("checkpoint: " + err.Error())
	}
}

// decode is the inverse of encode.
func decode[T element | uint16](elems []T, raw []byte) {
	if _, err := binary.Decode(raw, binary.LittleEndian, elems); err != nil {
		panic("checkpoint: " + err.Error())
	}
}
