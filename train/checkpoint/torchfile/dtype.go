package torchfile

import "strings"

// dtype is an element type under its names.
type dtype struct {
	name  string   // as safetensors spells it
	bytes int64    // of an element
	class string   // of typed storages: torch.FloatStorage is "Float"
	torch []string // below torch
}

func dtypes() []dtype {
	return []dtype{
		{"F32", 4, "Float", []string{"float32", "float"}},
		{"BF16", 2, "BFloat16", []string{"bfloat16"}},
		{"F16", 2, "Half", []string{"float16", "half"}},
		{"F64", 8, "Double", []string{"float64", "double"}},
		{"I64", 8, "Long", []string{"int64", "long"}},
		{"I32", 4, "Int", []string{"int32", "int"}},
		{"I16", 2, "Short", []string{"int16", "short"}},
		{"I8", 1, "Char", []string{"int8"}},
		{"U8", 1, "Byte", []string{"uint8"}},
		{"BOOL", 1, "Bool", []string{"bool"}},
		{"C64", 8, "ComplexFloat", []string{"complex64", "cfloat"}},
		{"U16", 2, "", []string{"uint16"}},
		{"U32", 4, "", []string{"uint32"}},
		{"U64", 8, "", []string{"uint64"}},
		{"F8_E4M3", 1, "", []string{"float8_e4m3fn"}},
		{"F8_E5M2", 1, "", []string{"float8_e5m2"}},
		{"F8_E8M0", 1, "", []string{"float8_e8m0fnu"}},
		{"F8_E4M3FNUZ", 1, "", []string{"float8_e4m3fnuz"}},
		{"F8_E5M2FNUZ", 1, "", []string{"float8_e5m2fnuz"}},
	}
}

// DType returns the element type, as safetensors spells it, that a global of torch means:
// "F32" for torch.float32; "" for other nodes.
func (n Node) DType() string {
	if n.Kind() != Global {
		return ""
	}
	return dtypeOf(n.Name()).name
}

// dtypeOf returns the type with a name such as torch.float32; zero for other names.
func dtypeOf(global string) dtype {
	short, ok := strings.CutPrefix(global, "torch.")
	for _, t := range dtypes() {
		for _, name := range t.torch {
			if ok && name == short {
				return t
			}
		}
	}
	return dtype{}
}

// untyped is the class of storages that have no element type.
const untyped = "UntypedStorage"

// storageType returns the element type of a class such as torch.FloatStorage; bytes without
// a name for an untyped one.
func storageType(global string) (t dtype, ok bool) {
	module, class := cutLast(global)
	if module != "torch" && module != "torch.storage" && module != "torch.cuda" {
		return t, false
	}
	if class == untyped {
		return dtype{bytes: 1}, true
	}
	short, ok := strings.CutSuffix(class, "Storage")
	for _, t := range dtypes() {
		if ok && short != "" && t.class == short {
			return t, true
		}
	}
	return t, false
}

// cutLast cuts a name at its last dot.
func cutLast(name string) (before, after string) {
	i := strings.LastIndexByte(name, '.')
	return name[:max(i, 0)], name[i+1:]
}
