package exchange

import (
	"encoding/binary"
	"errors"
	"math"
)

// The few messages of TensorBoard that hold scalars are written and read by hand
// (tensorboard/compat/proto, event.proto and summary.proto): a field is a varint
// number<<3|type, then its value.

const (
	wireVarint = 0
	wire64     = 1
	wireBytes  = 2
	wire32     = 5
)

func appendVarint(dst []byte, field int, v uint64) []byte {
	return binary.AppendUvarint(binary.AppendUvarint(dst, uint64(field<<3|wireVarint)), v)
}

func appendDouble(dst []byte, field int, v float64) []byte {
	return binary.LittleEndian.AppendUint64(binary.AppendUvarint(dst, uint64(field<<3|wire64)), math.Float64bits(v))
}

func appendBytes[T string | []byte](dst []byte, field int, v T) []byte {
	dst = binary.AppendUvarint(binary.AppendUvarint(dst, uint64(field<<3|wireBytes)), uint64(len(v)))
	return append(dst, v...)
}

// field is a field of a message: number is the value of the fixed and variable
// types, bytes that of the others.
type field struct {
	id     int
	wire   int
	number uint64
	bytes  []byte
}

var errMessage = errors.New("a message is damaged")

// fields calls f for each field of a message.
func fields(b []byte, f func(field) error) error {
	for len(b) > 0 {
		key, n := binary.Uvarint(b)
		if n <= 0 || key>>3 == 0 || key>>3 > math.MaxInt32 {
			return errMessage
		}
		b = b[n:]
		v := field{id: int(key >> 3), wire: int(key & 7)}
		size := 0
		switch v.wire {
		case wireVarint:
			if v.number, size = binary.Uvarint(b); size <= 0 {
				return errMessage
			}
		case wire64:
			if size = 8; len(b) >= size {
				v.number = binary.LittleEndian.Uint64(b)
			}
		case wire32:
			if size = 4; len(b) >= size {
				v.number = uint64(binary.LittleEndian.Uint32(b))
			}
		case wireBytes:
			length, n := binary.Uvarint(b)
			if n <= 0 || length > uint64(len(b)-n) {
				return errMessage
			}
			size = n + int(length)
			v.bytes = b[n:size]
		default:
			return errMessage
		}
		if len(b) < size {
			return errMessage
		}
		b = b[size:]
		if err := f(v); err != nil {
			return err
		}
	}
	return nil
}
