package config

import (
	"fmt"
	"reflect"
)

// fieldAt is a field of Run that holds a key.
type fieldAt struct {
	path  string
	index []int
	typ   reflect.Type
}

// fieldsOf lists the tagged fields of a struct type, including the fields of embedded
// structs and blocks, with the paths that their tags form. It skips fields tagged "-".
func fieldsOf(t reflect.Type, prefix string, index []int) []fieldAt {
	var fields []fieldAt
	for i := range t.NumField() {
		f := t.Field(i)
		if f.Tag.Get("key") == "-" {
			continue
		}
		at := append(append([]int(nil), index...), i)
		if f.Anonymous {
			fields = append(fields, fieldsOf(f.Type, prefix, at)...)
			continue
		}
		path := prefix + f.Tag.Get("key")
		if f.Type.Kind() == reflect.Struct {
			fields = append(fields, fieldsOf(f.Type, path+".", at)...)
			continue
		}
		fields = append(fields, fieldAt{path, at, f.Type})
	}
	return fields
}

// bind sets the fields of run from plain values by path. Keys without a value leave
// their field zero. It panics if the table and Run disagree; a test checks that they
// agree.
func bind(run *Run, values map[string]any) {
	v := reflect.ValueOf(run).Elem()
	for _, f := range fieldsOf(v.Type(), "", nil) {
		if x, ok := values[f.path]; ok {
			assign(v.FieldByIndex(f.index), x, f.path)
		}
	}
	run.Algo.Settings = settingsOf(values)
}

// assign stores a plain value in a field.
func assign(dst reflect.Value, x any, path string) {
	switch x := x.(type) {
	case nil:
		return
	case []any:
		list := reflect.MakeSlice(dst.Type(), len(x), len(x))
		for i := range x {
			assign(list.Index(i), x[i], path)
		}
		dst.Set(list)
		return
	case map[string]any:
		if dst.Kind() == reflect.Map {
			dst.Set(reflect.ValueOf(clone(x)))
			return
		}
		for _, f := range fieldsOf(dst.Type(), "", nil) {
			assign(dst.FieldByIndex(f.index), x[f.path], path)
		}
		return
	}
	if dst.Kind() == reflect.Pointer {
		dst.Set(reflect.New(dst.Type().Elem()))
		dst = dst.Elem()
	}
	src := reflect.ValueOf(x)
	if !sameKind(src.Kind(), dst.Kind()) || dst.Kind() == reflect.Int && int64(int(src.Int())) != src.Int() {
		panic(fmt.Sprintf("config: %s: a %T does not fit a field of type %s", path, x, dst.Type()))
	}
	dst.Set(src.Convert(dst.Type()))
}

// sameKind reports whether a plain value of kind src can fill a field of kind dst.
func sameKind(src, dst reflect.Kind) bool {
	return src == dst || src == reflect.Int64 && dst == reflect.Int
}
