package config

import (
	"encoding/json"
	"strings"
)

// JSONSchema exports the table as a JSON Schema (draft 2020-12) for editors. Conditions
// and required keys appear only in descriptions, because a file may get them from its
// base or an overlay.
func JSONSchema() ([]byte, error) {
	root := schemaOf(schema().root)
	root["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	root["title"] = "exp configuration"
	root["properties"].(map[string]any)["extends"] = map[string]any{
		"type": "string", "description": "file that this one builds on, relative to this file",
	}
	return json.MarshalIndent(root, "", "  ")
}

func schemaOf(g *group) map[string]any {
	properties := map[string]any{}
	for name, child := range g.groups {
		properties[name] = schemaOf(child)
	}
	for name, k := range g.keys {
		properties[name] = k.jsonSchema()
	}
	return map[string]any{"type": "object", "additionalProperties": false, "properties": properties}
}

// jsonSchema returns the schema of a key's value.
func (k *Key) jsonSchema() map[string]any {
	s := k.jsonElement()
	if k.List {
		s = map[string]any{"type": "array", "items": s}
	}
	if k.Null {
		s = map[string]any{"anyOf": []any{s, map[string]any{"type": "null"}}}
	}
	s["description"] = k.jsonDescription()
	if k.Default.hasFixed {
		s["default"] = jsonValue(k, k.Default.fixed)
	}
	return s
}

// jsonElement returns the schema of the value, or of one list element.
func (k *Key) jsonElement() map[string]any {
	s := map[string]any{}
	switch k.Kind {
	case Int:
		s["type"] = "integer"
		k.Range.jsonBounds(s)
	case Float:
		s["type"] = "number"
		k.Range.jsonBounds(s)
		if k.Unit == "fraction" {
			percent := map[string]any{"type": "string", "pattern": `^[0-9.]+%$`}
			return map[string]any{"anyOf": []any{s, percent}}
		}
	case Bool:
		s["type"] = "boolean"
	case Enum:
		s["enum"] = k.Words
	case Values:
		s["type"] = "object"
		s["additionalProperties"] = map[string]any{"type": []string{"string", "number", "boolean", "null"}}
	case Objects:
		properties := map[string]any{}
		required := []string{}
		for i := range k.Fields {
			properties[k.Fields[i].Path] = k.Fields[i].jsonSchema()
			required = append(required, k.Fields[i].Path)
		}
		return map[string]any{"type": "object", "additionalProperties": false, "properties": properties,
			"required": required}
	default:
		s["type"] = "string"
		switch {
		case k.Pattern != nil:
			s["pattern"] = k.Pattern.expr.String()
		case k.Kind == Size:
			s["pattern"] = sizeText.String()
		case k.Kind == Share:
			s["pattern"] = "^(all|none|" + strings.Trim(shareText.String(), "^$") + ")$"
		}
		if k.JSON {
			return map[string]any{"anyOf": []any{s,
				map[string]any{"type": "array", "items": map[string]any{"type": "object"}}}}
		}
	}
	return s
}

func (r Range) jsonBounds(s map[string]any) {
	set := func(has, open bool, inclusive, exclusive string, bound float64) {
		switch {
		case has && open:
			s[exclusive] = bound
		case has:
			s[inclusive] = bound
		}
	}
	set(r.HasMin, r.OpenMin, "minimum", "exclusiveMinimum", r.Min)
	set(r.HasMax, r.OpenMax, "maximum", "exclusiveMaximum", r.Max)
}

func (k *Key) jsonDescription() string {
	s := k.Help
	if k.Unit != "" {
		s += " [" + k.Unit + "]"
	}
	if !k.Default.hasFixed {
		s += "; default: " + k.Default.text(k)
	}
	if e := k.effect(); e != "" {
		s += "; " + e
	}
	return s
}

// jsonValue returns a default in file notation, with units as text.
func jsonValue(k *Key, v any) any {
	switch k.Kind {
	case Duration, Size, Share:
		return Format(k, v)
	}
	return v
}
