package chat

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// smallDict is the largest number of entries for linear search; larger dicts have an index.
const smallDict = 8

// Dict is a map that keeps the order of its keys. The zero value is empty and
// ready for use.
type Dict struct {
	keys, vals []Value
	index      map[string]int // by hash key; nil up to smallDict entries
}

// Len returns the number of entries.
func (d *Dict) Len() int { return len(d.keys) }

// Key returns the text of key i, and false if the key is not text.
func (d *Dict) Key(i int) (string, bool) { return textOf(d.keys[i]) }

// At returns value i.
func (d *Dict) At(i int) Value { return d.vals[i] }

// Get returns the value of a text key.
func (d *Dict) Get(key string) (Value, bool) {
	if d.index == nil {
		for i, k := range d.keys {
			if s, ok := textOf(k); ok && s == key {
				return d.vals[i], true
			}
		}
		return nil, false
	}
	if i, ok := d.index["s"+key]; ok {
		return d.vals[i], true
	}
	return nil, false
}

// Set sets the value of a text key; a new key comes last. Do not call it on a dict in use
// by a rendering.
func (d *Dict) Set(key string, v Value) { d.put("s"+key, Str(key), v) }

// get returns the value of any key; it returns an error for unhashable keys.
func (d *Dict) get(key Value) (Value, bool, error) {
	if s, ok := textOf(key); ok {
		v, ok := d.Get(s)
		return v, ok, nil
	}
	h, err := hashKey(key, 0)
	if err != nil {
		return nil, false, err
	}
	if i := d.find(h); i >= 0 {
		return d.vals[i], true, nil
	}
	return nil, false, nil
}

func (d *Dict) set(key, v Value) error {
	h, err := hashKey(key, 0)
	if err != nil {
		return err
	}
	d.put(h, key, v)
	return nil
}

func (d *Dict) find(h string) int {
	if d.index != nil {
		if i, ok := d.index[h]; ok {
			return i
		}
		return -1
	}
	for i, k := range d.keys {
		if s, ok := textOf(k); ok {
			if h[0] == 's' && h[1:] == s {
				return i
			}
			continue
		}
		if kh, _ := hashKey(k, 0); kh == h {
			return i
		}
	}
	return -1
}

func (d *Dict) put(h string, key, v Value) {
	if i := d.find(h); i >= 0 {
		d.vals[i] = v
		return
	}
	d.keys, d.vals = append(d.keys, key), append(d.vals, v)
	if d.index != nil {
		d.index[h] = len(d.keys) - 1
		return
	}
	if len(d.keys) > smallDict {
		d.index = make(map[string]int, 2*len(d.keys))
		for i, k := range d.keys {
			kh, _ := hashKey(k, 0)
			d.index[kh] = i
		}
	}
}

func (d *Dict) copy() *Dict {
	c := &Dict{keys: slices.Clone(d.keys), vals: slices.Clone(d.vals)}
	c.index = maps.Clone(d.index)
	return c
}

// hashKey returns a text that is equal for equal keys: 1, 1.0 and True are one key. It
// returns an error for values that Python cannot hash.
func hashKey(v Value, depth int) (string, error) {
	switch v := v.(type) {
	case Str:
		return "s" + string(v), nil
	case markup:
		return "s" + string(v), nil
	case None:
		return "N", nil
	case *undefined:
		return "U", nil
	case Bool, Int, bigInt:
		i, _ := asBig(v)
		return "n" + i.Text(16), nil
	case Float:
		if math.IsNaN(v.F) || math.IsInf(v.F, 0) || v.F != math.Trunc(v.F) {
			return "f" + strconv.FormatFloat(v.F, 'g', -1, 64), nil
		}
		i, _ := new(big.Float).SetFloat64(v.F).Int(nil)
		return "n" + i.Text(16), nil
	case *tuple:
		if depth > maxValueDepth {
			return "", errDeep
		}
		var b strings.Builder
		for _, x := range v.items {
			h, err := hashKey(x, depth+1)
			if err != nil {
				return "", err
			}
			fmt.Fprintf(&b, "%d:%s", len(h), h)
		}
		return "t" + b.String(), nil
	case *rangeValue:
		return fmt.Sprintf("r%d %d %d", v.start, v.step, v.n), nil
	case *List, *Dict:
		return "", typeErr("unhashable type: '%s'", v.typeName())
	case *view:
		return "", typeErr("unhashable type: '%s'", v.typeName())
	}
	return fmt.Sprintf("p%p", v), nil
}

func fromGo(x any, depth int) (Value, error) {
	if depth > maxValueDepth {
		return nil, errDeep
	}
	switch x := x.(type) {
	case nil:
		return None{}, nil
	case Value:
		return x, nil
	case bool:
		return Bool(x), nil
	case int:
		return Int(x), nil
	case int64:
		return Int(x), nil
	case uint64:
		return fromBig(new(big.Int).SetUint64(x)), nil
	case float64:
		return newFloat(x), nil
	case json.Number:
		return DecodeJSON([]byte(x))
	case string:
		if !utf8.ValidString(x) {
			return nil, fmt.Errorf("chat: %.40q is not UTF-8", x)
		}
		return Str(x), nil
	case []string:
		l := &List{Items: make([]Value, len(x))}
		for i, s := range x {
			l.Items[i] = Str(s)
		}
		return l, nil
	case []any:
		l := &List{Items: make([]Value, len(x))}
		for i, e := range x {
			v, err := fromGo(e, depth+1)
			if err != nil {
				return nil, err
			}
			l.Items[i] = v
		}
		return l, nil
	case map[string]any:
		d := &Dict{}
		for _, k := range slices.Sorted(maps.Keys(x)) {
			v, err := fromGo(x[k], depth+1)
			if err != nil {
				return nil, err
			}
			d.Set(k, v)
		}
		return d, nil
	}
	return nil, fmt.Errorf("chat: a %T cannot be a value of a template; use text, numbers, lists and maps", x)
}
