package rows

import (
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"reflect"
	"strconv"
	"strings"

	"github.com/parquet-go/parquet-go/format"
)

// The values of a parquet file, as JSON would have them.

// numberOf returns the function that converts values of a logical type whose numbers the library gives as others:
// unsigned integers as signed ones, decimals in binary. nil for other types.
func numberOf(t *format.LogicalType) func(any) any {
	if t == nil {
		return nil
	}
	switch t := t.Value.(type) {
	case *format.IntType:
		if t.IsSigned {
			return nil
		}
		return func(v any) any {
			switch v := v.(type) {
			case int32:
				return uint32(v)
			case int64:
				return uint64(v)
			}
			return v
		}
	case *format.DecimalType:
		return func(v any) any {
			switch x := v.(type) {
			case *big.Float:
				return json.Number(x.Text('f', int(t.Scale)))
			case float64:
				return json.Number(strconv.FormatFloat(x, 'f', int(t.Scale), 64))
			}
			return v
		}
	}
	return nil
}

// plain converts the library's values of a column to what JSON would give.
func plain(v any, o *order) any {
	if o != nil && o.number != nil {
		if _, list := v.([]any); !list {
			v = o.number(v)
		}
	}
	switch v := v.(type) {
	case map[string]any:
		for k, x := range v {
			v[k] = plain(x, o.field(k))
		}
		return v
	case []any:
		item := o
		if o != nil && o.item != nil {
			item = o.item
		}
		for i, x := range v {
			v[i] = plain(x, item)
		}
		return v
	case []byte:
		return string(v)
	case int32:
		return json.Number(strconv.FormatInt(int64(v), 10))
	case int64:
		return json.Number(strconv.FormatInt(v, 10))
	case uint32:
		return json.Number(strconv.FormatUint(uint64(v), 10))
	case uint64:
		return json.Number(strconv.FormatUint(v, 10))
	case float32:
		return number(float64(v), 32)
	case float64:
		return number(v, 64)
	}
	return ofGo(reflect.ValueOf(v), o)
}

// number converts a float of so many bits. JSON has no NaN: it is null, which pandas writes as NaN where a column has
// numbers. An infinity is a text.
func number(v float64, bits int) any {
	text := strconv.FormatFloat(v, 'g', -1, bits)
	switch {
	case math.IsNaN(v):
		return nil
	case math.IsInf(v, 0):
		return text
	}
	return json.Number(text)
}

// ofGo converts the Go values that the library makes of the values of maps, whose fields are in tags.
func ofGo(v reflect.Value, o *order) any {
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			return nil
		}
		return plain(v.Elem().Interface(), o)
	case reflect.Slice:
		list := make([]any, v.Len())
		for i := range list {
			list[i] = v.Index(i).Interface()
		}
		return plain(list, o)
	case reflect.Struct:
		if rows, name := repeatedField(v); name == "list" {
			list := make([]any, rows.Len())
			for i := range list {
				list[i] = rows.Index(i).Field(0).Interface()
			}
			return plain(list, o)
		} else if name == "key_value" {
			object := map[string]any{}
			for i := range rows.Len() {
				object[fmt.Sprint(plain(rows.Index(i).Field(0).Interface(), nil))] = rows.Index(i).Field(1).Interface()
			}
			return plain(object, o)
		}
		object := map[string]any{}
		for i := range v.NumField() {
			object[fieldName(v.Type().Field(i))] = v.Field(i).Interface()
		}
		return plain(object, o)
	case reflect.Map:
		object := map[string]any{}
		for k, x := range v.Seq2() {
			object[fmt.Sprint(plain(k.Interface(), nil))] = x.Interface()
		}
		return plain(object, o)
	case reflect.Int8, reflect.Int16, reflect.Uint8, reflect.Uint16:
		return json.Number(fmt.Sprint(v))
	case reflect.Invalid:
		return nil
	}
	return v.Interface() // bool, string; and types that none of our fields has
}

// repeatedField returns the only field of a struct, a slice of structs, and its name: the library makes one of a list
// or map inside a map. The name is empty if v is another struct.
func repeatedField(v reflect.Value) (rows reflect.Value, name string) {
	if v.NumField() != 1 || v.Field(0).Kind() != reflect.Slice || v.Field(0).Type().Elem().Kind() != reflect.Struct {
		return v, ""
	}
	return v.Field(0), fieldName(v.Type().Field(0))
}

// fieldName returns the name of a field in the file.
func fieldName(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("parquet"), ",")
	return name
}
