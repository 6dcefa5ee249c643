package trackers

import (
	"errors"
	"math"

	"google.golang.org/protobuf/encoding/protowire"
)

// TensorBoard's messages (tensorboard/compat/proto, event.proto and summary.proto). Only
// the fields for scalars are written and read.

func appendVarint(dst []byte, id protowire.Number, v uint64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(dst, id, protowire.VarintType), v)
}

func appendDouble(dst []byte, id protowire.Number, v float64) []byte {
	return protowire.AppendFixed64(protowire.AppendTag(dst, id, protowire.Fixed64Type), math.Float64bits(v))
}

func appendFloat(dst []byte, id protowire.Number, v float32) []byte {
	return protowire.AppendFixed32(protowire.AppendTag(dst, id, protowire.Fixed32Type), math.Float32bits(v))
}

func appendBytes(dst []byte, id protowire.Number, v []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(dst, id, protowire.BytesType), v)
}

func appendString(dst []byte, id protowire.Number, v string) []byte {
	return protowire.AppendString(protowire.AppendTag(dst, id, protowire.BytesType), v)
}

// field is one field of a message.
type field struct {
	id     protowire.Number
	wire   protowire.Type
	number uint64 // of a varint, fixed32 or fixed64
	bytes  []byte // of text, bytes or a message
}

var errMessage = errors.New("a message is damaged")

// fields calls f for each field of a message.
func fields(b []byte, f func(field) error) error {
	for len(b) > 0 {
		id, wire, n := protowire.ConsumeTag(b)
		if n < 0 {
			return errMessage
		}
		b = b[n:]
		v := field{id: id, wire: wire}
		switch wire {
		case protowire.VarintType:
			v.number, n = protowire.ConsumeVarint(b)
		case protowire.Fixed64Type:
			v.number, n = protowire.ConsumeFixed64(b)
		case protowire.Fixed32Type:
			var bits uint32
			bits, n = protowire.ConsumeFixed32(b)
			v.number = uint64(bits)
		case protowire.BytesType:
			v.bytes, n = protowire.ConsumeBytes(b)
		default:
			return errMessage
		}
		if n < 0 {
			return errMessage
		}
		b = b[n:]
		if err := f(v); err != nil {
			return err
		}
	}
	return nil
}
