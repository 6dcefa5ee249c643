package cli

import (
	"encoding"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"time"
)

// A tree is a result made of JSON types: nil, bool, string, int64, uint64, number, []any
// and object; objects keep the order of their members. All formats for programs are
// written from trees, so they agree on times, durations, ids and non-finite floats.

// Object is a JSON object.
type Object []Member

type Member struct {
	Key   string
	Value any
}

// Number is a finite float, already formatted: the shortest text that reads
// back as the same float.
type Number string

// MarshalJSON returns the text.
func (n Number) MarshalJSON() ([]byte, error) { return []byte(n), nil }

// TreeOf turns a value into a tree: times are RFC 3339 in UTC, durations are
// seconds, NaN and infinities are the strings NaN, +Inf and -Inf, byte slices
// and byte arrays are hexadecimal, struct fields have the name in their json tag
// ("-" and omitempty are honoured), map keys are sorted. It panics on
// anything else, such as a channel.
func TreeOf(v any) any {
	switch v := v.(type) {
	case nil, Object, Number:
		return v
	case []any:
		return listOf(reflect.ValueOf(v))
	case time.Time:
		if v.IsZero() {
			return nil
		}
		return v.UTC().Format(time.RFC3339Nano)
	case *time.Time:
		if v == nil {
			return nil
		}
		return TreeOf(*v)
	case time.Duration:
		return floatTree(v.Seconds(), 64)
	case encoding.TextMarshaler:
		if rv := reflect.ValueOf(v); rv.Kind() == reflect.Pointer && rv.IsNil() {
			return nil
		}

		text, err := v.MarshalText()
		if err != nil {
			panic(fmt.Sprintf("output: %T: %v", v, err))
		}
		return string(text)
	}
	return treeOfKind(reflect.ValueOf(v))
}

func treeOfKind(v reflect.Value) any {
	switch v.Kind() {
	case reflect.Bool:
		return v.Bool()
	case reflect.String:
		return v.String()
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return v.Int()
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return v.Uint()
	case reflect.Float32:
		return floatTree(v.Float(), 32)
	case reflect.Float64:
		return floatTree(v.Float(), 64)
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			return nil
		}
		return TreeOf(v.Elem().Interface())
	case reflect.Slice, reflect.Array:
		return listOf(v)
	case reflect.Map:
		return mapOf(v)
	case reflect.Struct:
		return structOf(v)
	}
	panic(fmt.Sprintf("output: a result cannot hold a %s", v.Type()))
}

func floatTree(f float64, bits int) any {
	switch {
	case math.IsNaN(f):
		return "NaN"
	case math.IsInf(f, 1):
		return "+Inf"
	case math.IsInf(f, -1):
		return "-Inf"
	}
	var text []byte
	if bits == 32 {
		text, _ = json.Marshal(float32(f)) // cannot fail on finite floats
	} else {
		text, _ = json.Marshal(f)
	}
	return Number(text)
}

func listOf(v reflect.Value) any {
	if v.Type().Elem().Kind() == reflect.Uint8 {
		raw := make([]byte, v.Len())
		reflect.Copy(reflect.ValueOf(raw), v)
		return hex.EncodeToString(raw)
	}
	list := make([]any, v.Len())
	for i := range list {
		list[i] = TreeOf(v.Index(i).Interface())
	}
	return list
}

func mapOf(v reflect.Value) any {
	members := make(Object, 0, v.Len())
	for it := v.MapRange(); it.Next(); {
		members = append(members, Member{it.Key().String(), TreeOf(it.Value().Interface())})
	}
	slices.SortFunc(members, func(a, b Member) int { return strings.Compare(a.Key, b.Key) })
	return members
}

func structOf(v reflect.Value) any {
	members := Object{}
	for i := range v.NumField() {
		f := v.Type().Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous && name == "" && f.Type.Kind() == reflect.Struct:
			members = append(members, structOf(v.Field(i)).(Object)...)
			continue
		case !f.IsExported() || name == "-":
			continue
		case name == "":
			panic(fmt.Sprintf("output: field %s.%s has no json tag", v.Type(), f.Name))
		case options == "omitempty" && v.Field(i).IsZero():
			continue
		}
		members = append(members, Member{name, TreeOf(v.Field(i).Interface())})
	}
	return members
}

// objects turns the rows of a table into one object each.
func objects(t Table) []any {
	list := make([]any, len(t.Rows))
	for r, row := range t.Rows {
		members := make(Object, len(row))
		for i, v := range row {
			members[i] = Member{t.Columns[i].Key, TreeOf(v)}
		}
		list[r] = members
	}
	return list
}
