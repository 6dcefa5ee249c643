package layout

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// unpickleText reads a Python pickle that holds one text and nothing else. Pickles can run programs, so it
// refuses every operation that a text does not need.
func unpickleText(data []byte) (text string, err error) {
	short := errors.New("truncated pickle")
	take := func(n uint64) (b []byte) {
		if n > uint64(len(data)) {
			err = short
			return nil
		}
		b, data = data[:n], data[n:]
		return b
	}
	uint := func(n int) uint64 {
		var full [8]byte
		copy(full[:], take(uint64(n)))
		return binary.LittleEndian.Uint64(full[:])
	}
	found := false
	for err == nil {
		op := take(1)
		if err != nil {
			break
		}
		switch op[0] {
		case 0x80: // PROTO
			take(1)
		case 0x95: // FRAME
			take(8)
		case 0x8c: // SHORT_BINUNICODE
			text, found = string(take(uint(1))), true
		case 'X': // BINUNICODE
			text, found = string(take(uint(4))), true
		case 0x8d: // BINUNICODE8
			text, found = string(take(uint(8))), true
		case 0x94: // MEMOIZE
		case 'q': // BINPUT
			take(1)
		case 'r': // LONG_BINPUT
			take(4)
		case '.': // STOP
			if !found {
				return "", errors.New("the pickle does not hold a text")
			}
			return text, nil
		default:
			return "", fmt.Errorf("unexpected operation %#x in the pickle of a text", op[0])
		}
	}
	return "", err
}
