package ident

import (
	"encoding/binary"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"unicode/utf8"
)

// Type bytes of the canonical encoding. All counts and integers are big-endian.
const (
	ceNull  = 'n'
	ceTrue  = 't'
	ceFalse = 'f'
	ceInt   = 'i' // int64
	ceFloat = 'd' // IEEE-754 bits of a float64, never NaN, never -0
	ceText  = 's' // uint32 length, UTF-8
	ceBytes = 'b' // uint64 length, bytes
	ceList  = 'l' // uint32 count, items
	ceMap   = 'm' // uint32 count, (text key, value) in the order of the keys' bytes
)

// EncodeError names the part of a value without a canonical encoding.
type EncodeError struct {
	Path string // within the value: "train.optim.lr", "modes[2]"; empty: the whole value
	Msg  string
}

func (e *EncodeError) Error() string {
	if e.Path == "" {
		return "canonical encoding: " + e.Msg
	}
	return "canonical encoding of " + e.Path + ": " + e.Msg
}

// Encode returns the canonical encoding CE(v), bytes that no different value has. It
// takes nil, bool, integers, float32 and float64, string, []byte, Digest (as 32 bytes),
// and slices, arrays and maps with string keys of these, of any named type; nil slices
// and maps are empty ones. Integers and floats are different values (1 is not 1.0), -0 is
// +0.
//
// NaN, strings that are not UTF-8, integers over MaxInt64, structs, pointers and
// everything else are an *EncodeError.
func Encode(v any) ([]byte, error) { return Append(nil, v) }

// Append appends Encode(v) to dst.
func Append(dst []byte, v any) ([]byte, error) {
	switch v := v.(type) {
	case nil:
		return append(dst, ceNull), nil
	case bool:
		return appendBool(dst, v), nil
	case int:
		return appendInt(dst, int64(v)), nil
	case int64:
		return appendInt(dst, v), nil
	case float64:
		return appendFloat(dst, v)
	case string:
		return appendText(dst, v)
	case []byte:
		return appendBytes(dst, v), nil
	case Digest:
		return appendBytes(dst, v[:]), nil
	}
	return appendReflected(dst, reflect.ValueOf(v))
}

func appendReflected(dst []byte, v reflect.Value) ([]byte, error) {
	switch v.Kind() {
	case reflect.Interface:
		return Append(dst, v.Interface())
	case reflect.Bool:
		return appendBool(dst, v.Bool()), nil
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return appendInt(dst, v.Int()), nil
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		if v.Uint() > math.MaxInt64 {
			return nil, &EncodeError{Msg: strconv.FormatUint(v.Uint(), 10) + " does not fit 64 signed bits"}
		}
		return appendInt(dst, int64(v.Uint())), nil
	case reflect.Float32, reflect.Float64:
		return appendFloat(dst, v.Float())
	case reflect.String:
		return appendText(dst, v.String())
	case reflect.Slice, reflect.Array:
		return appendList(dst, v)
	case reflect.Map:
		return appendMap(dst, v)
	}
	return nil, &EncodeError{Msg: fmt.Sprintf("a %s has none", v.Type())}
}

func appendBool(dst []byte, v bool) []byte {
	if v {
		return append(dst, ceTrue)
	}
	return append(dst, ceFalse)
}

func appendInt(dst []byte, v int64) []byte {
	return binary.BigEndian.AppendUint64(append(dst, ceInt), uint64(v))
}

func appendFloat(dst []byte, v float64) ([]byte, error) {
	if math.IsNaN(v) {
		return nil, &EncodeError{Msg: "NaN has none"}
	}
	if v == 0 {
		v = 0 // -0 too
	}
	return binary.BigEndian.AppendUint64(append(dst, ceFloat), math.Float64bits(v)), nil
}

func appendText(dst []byte, s string) ([]byte, error) {
	if !utf8.ValidString(s) {
		return nil, &EncodeError{Msg: fmt.Sprintf("%q is not UTF-8", s)}
	}
	if len(s) > math.MaxUint32 {
		return nil, &EncodeError{Msg: "string of over 4 GiB"}
	}
	dst = binary.BigEndian.AppendUint32(append(dst, ceText), uint32(len(s)))
	return append(dst, s...), nil
}

func appendBytes(dst, b []byte) []byte {
	dst = binary.BigEndian.AppendUint64(append(dst, ceBytes), uint64(len(b)))
	return append(dst, b...)
}

func appendList(dst []byte, v reflect.Value) ([]byte, error) {
	if v.Type().Elem().Kind() == reflect.Uint8 {
		b := make([]byte, v.Len())
		reflect.Copy(reflect.ValueOf(b), v)
		return appendBytes(dst, b), nil
	}
	if v.Len() > math.MaxUint32 {
		return nil, &EncodeError{Msg: "list of over 2^32 items"}
	}
	dst = binary.BigEndian.AppendUint32(append(dst, ceList), uint32(v.Len()))
	for i := range v.Len() {
		var err error
		if dst, err = Append(dst, v.Index(i).Interface()); err != nil {
			return nil, inside(err, "["+strconv.Itoa(i)+"]")
		}
	}
	return dst, nil
}

func appendMap(dst []byte, v reflect.Value) ([]byte, error) {
	if v.Type().Key().Kind() != reflect.String {
		return nil, &EncodeError{Msg: fmt.Sprintf("a %s has none: keys must be strings", v.Type())}
	}
	if v.Len() > math.MaxUint32 {
		return nil, &EncodeError{Msg: "map of over 2^32 keys"}
	}
	keys := v.MapKeys()
	slices.SortFunc(keys, func(a, b reflect.Value) int {
		if a.String() < b.String() {
			return -1
		}
		return 1 // keys of a map differ
	})
	dst = binary.BigEndian.AppendUint32(append(dst, ceMap), uint32(len(keys)))
	for _, k := range keys {
		var err error
		if dst, err = appendText(dst, k.String()); err != nil {
			return nil, err
		}
		if dst, err = Append(dst, v.MapIndex(k).Interface()); err != nil {
			return nil, inside(err, k.String())
		}
	}
	return dst, nil
}

// inside prefixes the path of err with part.
func inside(err error, part string) error {
	e, ok := err.(*EncodeError)
	if !ok {
		return err
	}
	path := part
	switch {
	case e.Path == "":
	case e.Path[0] == '[':
		path += e.Path
	default:
		path += "." + e.Path
	}
	return &EncodeError{Path: path, Msg: e.Msg}
}
