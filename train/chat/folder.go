package chat

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Names of a model's files that may hold its template.
const (
	templateFile    = "chat_template.jinja"
	templateFolder  = "additional_chat_templates/"
	tokenizerConfig = "tokenizer_config.json"
	processorFile   = "chat_template.json" // of transformers 4's processors of text and images
	defaultTemplate = "default"
	toolsTemplate   = "tool_use"
	templateKey     = "chat_template"
)

// ErrNoTemplate means that a model has no chat template.
var ErrNoTemplate = errors.New("the model has no chat template")

// SelectTemplate returns a chat template of a model and its place. files are the files of
// the model's folder by path. It looks at chat_template.jinja and
// additional_chat_templates/NAME.jinja, then at chat_template in tokenizer_config.json, and
// then in chat_template.json; it ignores other files and missing ones.
//
// name chooses one of several; "" means the template "tool_use" if tools is set and the
// place has one, else "default". It returns ErrNoTemplate if the model has none at all;
// otherwise the error names the templates it has.
func SelectTemplate(files map[string][]byte, name string, tools bool) (source, from string, err error) {
	var known []string
	for _, place := range []func(map[string][]byte) (map[string]namedTemplate, error){templateFiles,
		configFile(tokenizerConfig), configFile(processorFile)} {
		all, err := place(files)
		if err != nil {
			return "", "", err
		}
		want := name
		if want == "" {
			want = defaultTemplate
			if _, ok := all[toolsTemplate]; ok && tools {
				want = toolsTemplate
			}
		}
		if t, ok := all[want]; ok {
			return t.source, t.from, nil
		}
		known = append(known, slices.Sorted(maps.Keys(all))...)
	}
	if len(known) == 0 {
		return "", "", ErrNoTemplate
	}
	if name == "" {
		name = defaultTemplate
	}
	return "", "", fmt.Errorf("the model has no chat template %q, but %s", name, strings.Join(known, ", "))
}

type namedTemplate struct{ source, from string }

// templateFiles returns the templates in separate files, by name.
func templateFiles(files map[string][]byte) (map[string]namedTemplate, error) {
	all := map[string]namedTemplate{}
	for path, data := range files {
		name, ok := strings.CutPrefix(path, templateFolder)
		name, jinja := strings.CutSuffix(name, ".jinja")
		if ok && jinja && !strings.Contains(name, "/") {
			all[name] = namedTemplate{string(data), path}
		}
	}
	if data, ok := files[templateFile]; ok {
		all[defaultTemplate] = namedTemplate{string(data), templateFile}
	}
	return all, nil
}

// configFile returns what finds the templates in a file of settings, by name.
func configFile(path string) func(files map[string][]byte) (map[string]namedTemplate, error) {
	return func(files map[string][]byte) (map[string]namedTemplate, error) {
		data, ok := files[path]
		if !ok {
			return nil, nil
		}
		named, err := configTemplates(data)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		all := map[string]namedTemplate{}
		for name, source := range named {
			all[name] = namedTemplate{source, path}
			if len(named) > 1 {
				all[name] = namedTemplate{source, path + " (" + name + ")"}
			}
		}
		return all, nil
	}
}

// configTemplates returns the templates of a config: a text, or a list of objects
// with name and template.
func configTemplates(data []byte) (map[string]string, error) {
	v, err := DecodeJSON(data)
	if err != nil {
		return nil, err
	}
	d, ok := v.(*Dict)
	if !ok {
		return nil, fmt.Errorf("an object is needed, not %s", v.typeName())
	}
	v, ok = d.Get(templateKey)
	if _, none := v.(None); !ok || none {
		return nil, nil
	}
	if s, ok := textOf(v); ok {
		return map[string]string{defaultTemplate: s}, nil
	}
	l, ok := v.(*List)
	if !ok {
		return nil, fmt.Errorf("%s must be text or a list, not %s", templateKey, v.typeName())
	}
	all := map[string]string{}
	for i, x := range l.Items {
		entry, _ := x.(*Dict)
		if entry == nil {
			return nil, fmt.Errorf("%s: element %d must be an object, not %s", templateKey, i, x.typeName())
		}
		name, _ := entry.Get("name")
		source, _ := entry.Get("template")
		n, okName := textOf(name)
		s, okSource := textOf(source)
		if !okName || !okSource {
			return nil, fmt.Errorf("%s: element %d needs name and template as text", templateKey, i)
		}
		all[n] = s
	}
	return all, nil
}
