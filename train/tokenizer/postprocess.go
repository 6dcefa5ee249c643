package tokenizer

import (
	"encoding/json"
	"fmt"
	"slices"
)

// template lists the parts that a post-processor outputs, in order: the ids of the text and
// tokens around them. A nil template is the text alone.
type template []templatePart

// templatePart is the text, or tokens of the template.
type templatePart struct {
	text bool
	ids  []int32
}

// apply puts the ids of a text into the template, with its tokens if special.
func (t template) apply(ids []int32, special bool) []int32 {
	if t == nil || len(t) == 1 && t[0].text {
		return ids
	}
	var out []int32
	for _, p := range t {
		switch {
		case p.text:
			out = append(out, ids...)
		case special:
			out = append(out, p.ids...)
		}
	}
	return out
}

// parsePost builds the post-processor of tokenizer.json. ByteLevel only changes offsets,
// which nothing here uses.
func parsePost(c component) (template, error) {
	switch c.Type {
	case "", "ByteLevel":
		return nil, nil
	case "Sequence":
		var all template
		err := c.each("processors", func(c component) error {
			t, err := parsePost(c)
			if t != nil && all != nil && err == nil {
				return fmt.Errorf("%s: a second template in a sequence is not supported", c.where)
			}
			if t != nil {
				all = t
			}
			return err
		})
		return all, err
	case "TemplateProcessing":
		return parseTemplate(c)
	case "RobertaProcessing", "BertProcessing":
		cls, err := c.named("cls")
		if err != nil {
			return nil, err
		}
		sep, err := c.named("sep")
		return template{{ids: []int32{cls}}, {text: true}, {ids: []int32{sep}}}, err
	}
	return nil, fmt.Errorf("%s: post-processor %q is not supported", c.where, c.Type)
}

// named reads a field ["text", id].
func (c component) named(name string) (int32, error) {
	var pair []json.RawMessage
	var id int32
	if json.Unmarshal(c.fields[name], &pair) != nil || len(pair) != 2 || json.Unmarshal(pair[1], &id) != nil ||
		id < 0 || id > mostID {
		return 0, fmt.Errorf("%s: %s.%s is not a text and an id", c.where, c.Type, name)
	}
	return id, nil
}

// mostTemplate bounds the parts of a template, which may contain the text repeatedly.
const mostTemplate = 256

func parseTemplate(c component) (template, error) {
	var single []struct {
		Sequence     *struct{ ID string }
		SpecialToken *struct{ ID string }
	}
	var tokens map[string]struct {
		IDs []int32
	}
	if err := json.Unmarshal(c.fields["single"], &single); err != nil {
		return nil, fmt.Errorf("%s: single is not a list of Sequence and SpecialToken: %w", c.where, err)
	}
	if !absent(c.fields["special_tokens"]) {
		if err := json.Unmarshal(c.fields["special_tokens"], &tokens); err != nil {
			return nil, fmt.Errorf("%s: special_tokens: %w", c.where, err)
		}
	}
	if len(single) > mostTemplate {
		return nil, fmt.Errorf("%s: single has %d parts, over the limit of %d", c.where, len(single), mostTemplate)
	}
	t := template{}
	for _, p := range single {
		switch {
		case p.Sequence != nil && p.Sequence.ID == "A":
			t = append(t, templatePart{text: true})
		case p.Sequence != nil:
			return nil, fmt.Errorf("%s: single uses sequence %q; only A exists", c.where, p.Sequence.ID)
		case p.SpecialToken != nil:
			s, ok := tokens[p.SpecialToken.ID]
			if !ok {
				return nil, fmt.Errorf("%s: special token %q is not in special_tokens", c.where, p.SpecialToken.ID)
			}
			if i := slices.IndexFunc(s.IDs, func(id int32) bool { return id < 0 || id > mostID }); i >= 0 {
				return nil, fmt.Errorf("%s: special token %q has id %d", c.where, p.SpecialToken.ID, s.IDs[i])
			}
			t = append(t, templatePart{ids: s.IDs})
		default:
			return nil, fmt.Errorf("%s: a part of single is neither Sequence nor SpecialToken", c.where)
		}
	}
	return t, nil
}
