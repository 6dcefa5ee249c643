package config

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// Limits on the input of the YAML parser, whose time grows with the square of both. A
// full recipe has about 500 tokens and 4 levels.
const (
	maxTokens = 20_000
	maxDepth  = 64
)

// nodeKind distinguishes the shapes of YAML values.
type nodeKind uint8

const (
	nullNode nodeKind = 1 + iota
	scalarNode
	listNode
	mapNode
	badNode // its error is noted already
)

// node is a YAML value with its place. The schema decides the type of a scalar, so a
// scalar is kept as written.
type node struct {
	kind   nodeKind
	text   string // of a scalar, without quotes
	quoted bool   // of a scalar: it was in quotes or a literal block
	items  []*node
	fields []field
	pos    pos
}

// field is an entry of a map node; entries keep the order of the file.
type field struct {
	name  string
	pos   pos
	value *node
}

// parseYAML reads one document. col is added to columns of the first line, for texts
// that start inside a line. An empty document is a nil node.
func parseYAML(src *source, text string, col int) (*node, Errors) {
	y := yamlReader{src: src, col: col}
	tokens := lexer.Tokenize(text)
	if e := y.limit(tokens); e != nil {
		return nil, Errors{e}
	}
	file, err := parser.Parse(tokens, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		return nil, Errors{y.syntax(err)}
	}
	var docs []ast.Node
	for _, d := range file.Docs {
		if dir, ok := d.Body.(*ast.DirectiveNode); ok {
			return nil, Errors{y.at(dir.GetToken()).fault(CodeFeature,
				"YAML directives are not used in configurations", "remove the line")}
		}
		docs = append(docs, d.Body)
	}
	if len(file.Docs) > 1 {
		return nil, Errors{y.secondDocument(file, docs)}
	}
	if len(docs) == 0 || docs[0] == nil {
		return nil, nil
	}
	root := y.convert(docs[0], 0)
	return root, y.errs
}

// yamlReader converts the library's tree into ours.
type yamlReader struct {
	src  *source
	col  int
	errs Errors
}

// limit refuses token streams that would take the parser seconds.
func (y *yamlReader) limit(tokens token.Tokens) *Error {
	if len(tokens) > maxTokens {
		return pos{src: y.src}.fault(CodeFile, fmt.Sprintf("has more than %d YAML tokens, the limit for a "+
			"configuration", maxTokens), "give a recipe (.yaml)")
	}
	depth, line, dashes := 0, 0, 0
	for _, t := range tokens {
		switch t.Type {
		case token.MappingStartType, token.SequenceStartType:
			depth++
		case token.MappingEndType, token.SequenceEndType:
			depth--
		case token.SequenceEntryType, token.MappingKeyType:
			if t.Position.Line != line {
				line, dashes = t.Position.Line, 0
			}
			dashes++
		}
		if depth > maxDepth || dashes > maxDepth {
			return y.at(t).fault(CodeSyntax, "values are nested too deeply", "")
		}
	}
	return nil
}

// syntax turns a parser error into ours.
func (y *yamlReader) syntax(err error) *Error {
	at := pos{src: y.src}
	message := err.Error()
	if e, ok := err.(interface {
		GetToken() *token.Token
		GetMessage() string
	}); ok {
		message = e.GetMessage()
		if t := e.GetToken(); t != nil {
			at = y.at(t)
			at.width = 1
		}
	}
	help := ""
	switch {
	case strings.Contains(message, `'	'`):
		message, help = "a tab cannot indent", "indent with spaces"
	case strings.Contains(message, "mapping value is not allowed"):
		help = "put text that holds ': ' in quotes, and check the indentation"
	case strings.Contains(message, "value is not allowed in this context"):
		help = "check the indentation: the keys of one block start in the same column"
	case strings.Contains(message, "is a reserved character"):
		help = "put the text in quotes"
	}
	return at.fault(CodeSyntax, strings.TrimSpace(firstLine(message)), help)
}

func firstLine(s string) string {
	s, _, _ = strings.Cut(s, "\n")
	return s
}

func (y *yamlReader) secondDocument(file *ast.File, docs []ast.Node) *Error {
	at := pos{src: y.src}
	for i, d := range file.Docs[1:] {
		if d.Start != nil {
			at = y.at(d.Start)
			break
		}
		if docs[i+1] != nil {
			at = y.at(docs[i+1].GetToken())
			break
		}
	}
	return at.fault(CodeDocuments, "a configuration is one YAML document",
		"remove what follows ---, or move it to its own file")
}

// at returns the place of a token.
func (y *yamlReader) at(t *token.Token) pos {
	p := pos{src: y.src, line: t.Position.Line, col: t.Position.Column}
	p.width = utf8.RuneCountInString(firstLine(strings.TrimSpace(t.Origin)))
	if p.line == 1 {
		p.col += y.col
	}
	return p
}

func (y *yamlReader) fail(p pos, code, message, help string) {
	y.errs = append(y.errs, p.fault(code, message, help))
}

// convert turns a parsed value into a node. Unsupported values become bad nodes, with
// the error noted.
func (y *yamlReader) convert(n ast.Node, depth int) *node {
	if depth > maxDepth {
		y.fail(y.at(n.GetToken()), CodeSyntax, "values are nested too deeply", "")
		return &node{kind: badNode, pos: y.at(n.GetToken())}
	}
	at := y.at(n.GetToken())
	switch n := n.(type) {
	case *ast.NullNode:
		return &node{kind: nullNode, pos: at}
	case *ast.MappingNode:
		if len(n.Values) > 0 && !n.IsFlowStyle {
			at = y.at(n.Values[0].Key.GetToken())
		}
		return y.convertMap(n.Values, at, depth)
	case *ast.MappingValueNode:
		return y.convertMap([]*ast.MappingValueNode{n}, y.at(n.Key.GetToken()), depth)
	case *ast.SequenceNode:
		list := &node{kind: listNode, pos: at}
		for _, v := range n.Values {
			list.items = append(list.items, y.convert(v, depth+1))
		}
		return list
	case *ast.StringNode:
		quoted := n.Token.Type == token.SingleQuoteType || n.Token.Type == token.DoubleQuoteType
		return &node{kind: scalarNode, text: n.Value, quoted: quoted, pos: at}
	case *ast.LiteralNode:
		return &node{kind: scalarNode, text: n.Value.Value, quoted: true, pos: at}
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.InfinityNode, *ast.NanNode:
		return &node{kind: scalarNode, text: n.GetToken().Value, pos: at}
	case *ast.AnchorNode, *ast.AliasNode:
		y.fail(at, CodeFeature, "anchors and aliases are not used in configurations",
			"repeat the value, or share a file with extends")
	case *ast.TagNode:
		y.fail(at, CodeFeature, "tags such as !!int are not used in configurations",
			"remove the tag: the key knows its type")
	default:
		y.fail(at, CodeFeature, "this kind of YAML value is not used in configurations", "")
	}
	return &node{kind: badNode, pos: at}
}

// convertMap turns entries into a map node. A duplicate name is an error; the first
// entry counts.
func (y *yamlReader) convertMap(values []*ast.MappingValueNode, at pos, depth int) *node {
	m := &node{kind: mapNode, pos: at}
	first := map[string]pos{}
	for _, v := range values {
		key := y.at(v.Key.GetToken())
		if _, ok := v.Key.(*ast.MergeKeyNode); ok {
			y.fail(key, CodeFeature, "merge keys (<<) are not used in configurations", "share a file with extends")
			continue
		}
		if _, ok := v.Key.(*ast.MappingKeyNode); ok {
			y.fail(key, CodeFeature, "keys are plain names", "write name: value")
			continue
		}
		name := v.Key.GetToken().Value
		if earlier, ok := first[name]; ok {
			y.fail(key, CodeDuplicate, fmt.Sprintf("%q is set twice in one block", name),
				fmt.Sprintf("the first is at %s; keep one", earlier))
			continue
		}
		first[name] = key
		value := &node{kind: nullNode, pos: key}
		if v.Value != nil {
			value = y.convert(v.Value, depth+1)
		}
		m.fields = append(m.fields, field{name: name, pos: key, value: value})
	}
	return m
}
