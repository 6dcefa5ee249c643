package form

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// tagFormat is a part of a text in XGrammar's structural tags, which vLLM reads. Its type says which fields it has.
type tagFormat struct {
	Type       string            `json:"type"`
	Value      string            `json:"value"`
	Schema     json.RawMessage   `json:"json_schema"`
	Style      string            `json:"style"`
	Grammar    string            `json:"grammar"`
	Pattern    string            `json:"pattern"`
	Elements   []json.RawMessage `json:"elements"`
	Content    json.RawMessage   `json:"content"`
	Min        int               `json:"min"`
	Max        *int              `json:"max"`
	Excludes   []string          `json:"excludes"`
	MaxChars   *int              `json:"max_chars"`
	Begin      string            `json:"begin"`
	End        tagEnds           `json:"end"`
	Tags       []json.RawMessage `json:"tags"`
	Triggers   []string          `json:"triggers"`
	Separator  string            `json:"separator"`
	AtLeastOne bool              `json:"at_least_one"`
	StopAfter  bool              `json:"stop_after_first"`
}

// tagEnds are one text or several, each of which ends a tag.
type tagEnds []string

func (e *tagEnds) UnmarshalJSON(raw []byte) error {
	if raw[0] == '[' || string(raw) == "null" {
		return json.Unmarshal(raw, (*[]string)(e))
	}
	*e = []string{""}
	return json.Unmarshal(raw, &(*e)[0])
}

// structuralTag returns the texts of a structural tag: of its format, or in the older writing of structures and
// triggers, which stand for triggered tags of schemas.
func structuralTag(g *grammar, raw json.RawMessage) (expr, error) {
	var given struct {
		Type       string          `json:"type"`
		Format     json.RawMessage `json:"format"`
		Triggers   []string        `json:"triggers"`
		Structures []struct {
			Begin  string          `json:"begin"`
			Schema json.RawMessage `json:"schema"`
			End    string          `json:"end"`
		} `json:"structures"`
	}
	if err := readTag(raw, "the structural tag", &given); err != nil {
		return nil, err
	}
	x := tagReader{g: g}
	switch {
	case given.Type != "" && given.Type != "structural_tag":
		return nil, fmt.Errorf("the structural tag has the type %q, must be structural_tag", given.Type)
	case given.Format != nil && given.Structures == nil:
		return x.read(given.Format, "format", nil)
	case given.Format != nil || given.Structures == nil:
		return nil, errors.New(`the structural tag needs "format": {"type": …}, or structures with triggers`)
	}
	var tags []taggedExpr
	for i, s := range given.Structures {
		e, err := schema(g, s.Schema)
		if err != nil {
			return nil, fmt.Errorf("structures[%d].schema: %w", i, err)
		}
		tags = append(tags, taggedExpr{s.Begin, seq(text(s.Begin), e, text(s.End))})
	}
	return x.triggered(&tagFormat{Triggers: given.Triggers}, "structures", tags, nil)
}

// readTag reads the fields of an object, of which none is unknown.
func readTag(raw json.RawMessage, at string, into any) error {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	err := d.Decode(into)
	var e *json.UnmarshalTypeError
	switch {
	case errors.As(err, &e) && e.Field != "":
		return fmt.Errorf("%s: its %s may not be of the type %s", at, e.Field, e.Value)
	case e != nil:
		return fmt.Errorf("%s has a value of the type %s, which does not fit", at, e.Value)
	case err != nil:
		return fmt.Errorf("%s: %s", at, strings.TrimPrefix(err.Error(), "json: "))
	}
	return nil
}

// tagReader turns formats into texts.
type tagReader struct {
	g    *grammar
	deep int
}

// taggedExpr is a tag and how it begins.
type taggedExpr struct {
	begin string
	e     expr
}

// mostTags bounds how deep formats nest.
const mostTags = 100

// read returns the texts of a format. Free text in it has none of stops, which end the tag that it is in.
func (x *tagReader) read(raw json.RawMessage, at string, stops []string) (expr, error) {
	if x.deep++; x.deep > mostTags {
		return nil, fmt.Errorf("%.200s…: formats nest deeper than %d", at, mostTags)
	}
	defer func() { x.deep-- }()
	if raw == nil {
		return nil, fmt.Errorf(`%s is missing: it is an object with "type"`, at)
	}
	var f tagFormat
	if err := readTag(raw, at, &f); err != nil {
		return nil, err
	}
	switch f.Type {
	case "const_string":
		if f.Value == "" {
			return nil, fmt.Errorf("%s needs value, a text that is not empty", at)
		}
		return text(f.Value), nil
	case "any_text":
		if f.MaxChars != nil && *f.MaxChars < 0 {
			return nil, fmt.Errorf("%s has max_chars %d, must be 0 or more", at, *f.MaxChars)
		}
		return x.free(slices.Concat(f.Excludes, stops), f.MaxChars), nil
	case "json_schema", "grammar", "regex":
		e, err := x.held(&f)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", at, err)
		}
		return e, nil
	case "sequence", "or":
		return x.several(&f, at, stops)
	case "optional", "star", "plus", "repeat":
		e, err := x.read(f.Content, at+".content", stops)
		if err != nil {
			return nil, err
		}
		return f.times(e, at)
	case "tag":
		tag, err := x.tag(raw, at)
		return tag.e, err
	case "triggered_tags", "tags_with_separator":
		return x.tags(&f, at, stops)
	}
	return nil, fmt.Errorf("%s has the type %q, which is not supported: const_string, any_text, json_schema, "+
		"grammar, regex, sequence, or, optional, star, plus, repeat, tag, triggered_tags and tags_with_separator are",
		at, f.Type)
}

// held returns the texts of a format that another notation describes.
func (x *tagReader) held(f *tagFormat) (expr, error) {
	switch {
	case f.Type == "json_schema" && f.Schema == nil:
		return nil, errors.New("json_schema is missing")
	case f.Type == "json_schema" && f.Style != "" && f.Style != "json":
		return nil, fmt.Errorf("the style %q is not supported: json is", f.Style)
	case f.Type == "json_schema":
		return schema(x.g, f.Schema)
	case f.Type == "grammar":
		return grammarOf(x.g, f.Grammar)
	case f.Pattern == "":
		return nil, errors.New("pattern is missing")
	}
	return regex(f.Pattern)
}

// free returns any texts that have none of some texts, of so many characters at most.
func (x *tagReader) free(without []string, most *int) expr {
	any := star(char(0, utf8.MaxRune))
	var list []expr
	for _, s := range without {
		if s != "" {
			list = append(list, text(s))
		}
	}
	limits := []limit{{any, false}, {seq(any, alt(list...), any), true}}
	if most == nil {
		return meet(limits, nil)
	}
	return meet(limits, &measure{unit: char(0, utf8.MaxRune), most: *most})
}

// several returns the texts of formats one after another, or of any of them.
func (x *tagReader) several(f *tagFormat, at string, stops []string) (expr, error) {
	if len(f.Elements) == 0 {
		return nil, fmt.Errorf("%s needs elements", at)
	}
	var list []expr
	for i, raw := range f.Elements {
		e, err := x.read(raw, fmt.Sprintf("%s.elements[%d]", at, i), stops)
		if err != nil {
			return nil, err
		}
		list = append(list, e)
	}
	if f.Type == "or" {
		return alt(list...), nil
	}
	return seq(list...), nil
}

// times returns e as often as a format says.
func (f *tagFormat) times(e expr, at string) (expr, error) {
	switch {
	case f.Type == "optional":
		return optional(e), nil
	case f.Type == "star":
		return star(e), nil
	case f.Type == "plus":
		return plus(e), nil
	case f.Max == nil || f.Min < 0 || *f.Max >= 0 && *f.Max < f.Min:
		return nil, fmt.Errorf("%s needs min and max, from 0 on and in this order, or max -1 for any number", at)
	}
	return repeat(e, f.Min, *f.Max), nil
}

// tag reads a tag.
func (x *tagReader) tag(raw json.RawMessage, at string) (tag taggedExpr, err error) {
	var f tagFormat
	if err := readTag(raw, at, &f); err != nil {
		return tag, err
	}
	switch {
	case f.Type != "tag":
		return tag, fmt.Errorf("%s has the type %q, must be tag", at, f.Type)
	case len(f.End) == 0:
		return tag, fmt.Errorf("%s needs end, a text or several", at)
	}
	content, err := x.read(f.Content, at+".content", f.End)
	if err != nil {
		return tag, err
	}
	var ends []expr
	for _, end := range f.End {
		ends = append(ends, text(end))
	}
	return taggedExpr{f.Begin, seq(text(f.Begin), content, alt(ends...))}, nil
}

// tags returns tags within free text, or between separators.
func (x *tagReader) tags(f *tagFormat, at string, stops []string) (expr, error) {
	var list []taggedExpr
	for i, raw := range f.Tags {
		tag, err := x.tag(raw, fmt.Sprintf("%s.tags[%d]", at, i))
		if err != nil {
			return nil, err
		}
		list = append(list, tag)
	}
	if f.Type == "triggered_tags" {
		return x.triggered(f, at, list, stops)
	}
	one, err := x.one(at, list)
	if err != nil {
		return nil, err
	}
	all := one
	if !f.StopAfter {
		all = seq(one, star(seq(text(f.Separator), one)))
	}
	if !f.AtLeastOne {
		all = optional(all)
	}
	return all, nil
}

// one returns any tag of a list.
func (x *tagReader) one(at string, list []taggedExpr) (expr, error) {
	if len(list) == 0 {
		return nil, fmt.Errorf("%s needs at least one tag", at)
	}
	var all []expr
	for _, tag := range list {
		all = append(all, tag.e)
	}
	return x.g.shared("a tag", alt(all...)), nil
}

// triggered returns texts with tags: where one of the triggers comes, a tag that begins with it does.
func (x *tagReader) triggered(f *tagFormat, at string, list []taggedExpr, stops []string) (expr, error) {
	if len(f.Triggers) == 0 || slices.Contains(f.Triggers, "") {
		return nil, fmt.Errorf("%s needs triggers, none of them empty: tags begin with them", at)
	}
	for _, tag := range list {
		if !slices.ContainsFunc(f.Triggers, func(t string) bool { return strings.HasPrefix(tag.begin, t) }) {
			return nil, fmt.Errorf("%s has a tag that begins with %q, and so with none of its triggers", at, tag.begin)
		}
	}
	one, err := x.one(at, list)
	if err != nil {
		return nil, err
	}
	free := x.free(slices.Concat(f.Triggers, f.Excludes, stops), nil)
	more := star(seq(one, free))
	switch {
	case f.AtLeastOne && f.StopAfter:
		return one, nil
	case f.AtLeastOne:
		return seq(one, free, more), nil
	case f.StopAfter:
		return seq(free, optional(one)), nil
	}
	return seq(free, more), nil
}
