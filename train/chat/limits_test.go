package chat

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

func render(t testing.TB, source string, vars *Dict) (string, error) {
	t.Helper()
	tmpl, err := Parse(source)
	if err != nil {
		return "", err
	}
	return tmpl.RenderVars(context.Background(), vars, time.Time{})
}

// What a hostile template asks for is refused before memory or time is spent.
func TestLimits(t *testing.T) {
	deep := func(open, inner, end string, n int) string {
		return strings.Repeat(open, n) + inner + strings.Repeat(end, n)
	}
	for _, tt := range []struct{ name, source string }{
		{"source", strings.Repeat("x", maxSource+1)},
		{"power", "{{ 9 ** 9 ** 9 ** 9 ** 9 ** 9 }}"},
		{"large power", "{{ 9 ** (9 ** 9) }}"},
		{"products", "{% set ns = namespace(x=3) %}{% for i in range(100) %}{% set ns.x = ns.x * ns.x %}{% endfor %}"},
		{"repeat", "{{ 'a' * 10 ** 9 }}"},
		{"repeat more", "{{ 'ab' * 10 ** 30 }}"},
		{"repeat list", "{{ [1] * 10 ** 9 }}"},
		{"doubling", "{% set ns = namespace(x='a') %}{% for i in range(100) %}{% set ns.x = ns.x + ns.x %}{% endfor %}"},
		{"doubling list", "{% set ns = namespace(x=[1]) %}{% for i in range(100) %}{% set ns.x = ns.x + ns.x %}{% endfor %}"},
		{"shared list", "{% set ns = namespace(x=[1]) %}{% for i in range(100) %}{% set ns.x = [ns.x, ns.x] %}{% endfor %}{{ ns.x }}"},
		{"shared list compared", "{% set ns = namespace(x=[1], y=[1]) %}{% for i in range(99) %}{% set ns.x = [ns.x, ns.x] %}{% set ns.y = [ns.y, ns.y] %}{% endfor %}{{ ns.x == ns.y }}"},
		{"long list", "{% set ns = namespace(x=[]) %}{% for i in range(100000) %}{% set ns.x = [ns.x] %}{% endfor %}{{ ns.x }}"},
		{"namespace in itself", "{% set ns = namespace() %}{% set ns.x = ns %}{{ ns }}"},
		{"range", "{{ range(10 ** 9) }}"},
		{"loops", "{% for a in range(100000) %}{% for b in range(100000) %}{% endfor %}{% endfor %}"},
		{"output", "{% set x = 'a' * 100000 %}{% for a in range(1000) %}{{ x }}{% endfor %}"},
		{"replace", "{{ ('a' * 100000)|replace('a', 'b' * 100000) }}"},
		{"join", "{{ ('a' * 100000)|join('b' * 100000) }}"},
		{"pad", "{{ 'a'|center(10 ** 12) }}"},
		{"width", "{{ '%1000000000d' % 1 }}"},
		{"star", "{{ '%*d' % (10 ** 12, 1) }}"},
		{"precision", "{{ '%.1000000000f' % 1 }}"},
		{"format width", "{{ '{:1000000000}'.format(1) }}"},
		{"format grouping", "{{ '{:01000000000,}'.format(1) }}"},
		{"indent", "{{ ('a\n' * 100000)|indent(100000) }}"},
		{"tojson indent", "{{ [[[1]]]|tojson(indent=10 ** 12) }}"},
		{"expandtabs", "{{ '\\t\\t\\t'.expandtabs(10 ** 12) }}"},
		{"batch", "{{ [1]|batch(10 ** 12, 0)|list }}"},
		{"slice", "{{ [1]|slice(10 ** 12)|list }}"},
		{"macro", "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}"},
		{"caller", "{% macro m() %}{% call m() %}{% endcall %}{% endmacro %}{{ m() }}"},
		{"ifs", deep("{% if 1 %}", "x", "{% endif %}", 1000)},
		{"brackets", "{{ " + deep("[", "1", "]", 1000) + " }}"},
		{"parentheses", "{{ " + deep("(", "1", ")", 1000) + " }}"},
		{"calls", "{{ " + deep("x(", "1", ")", 1000) + " }}"},
		{"not", "{{ " + strings.Repeat("not ", 100000) + "1 }}"},
		{"minus", "{{ " + strings.Repeat("-", 100000) + "1 }}"},
		{"attributes", "{{ x" + strings.Repeat(".a", 100000) + " }}"},
		{"filters", "{{ x" + strings.Repeat("|e", 100000) + " }}"},
		{"tests", "{{ x" + strings.Repeat(" is none", 100000) + " }}"},
		{"inline ifs", "{{ x" + strings.Repeat(" if x else x", 100000) + " }}"},
		{"sort", "{% for i in range(1000) %}{% set x = range(100000)|sort %}{% endfor %}"},
		{"digits", "{{ 10 ** 5000 }}"},
		{"split", "{% for i in range(100000) %}{% set x = ('a ' * 100000).split() %}{% endfor %}"},
		{"search", "{% set x = 'é' * 1000000 %}{% for i in range(100000) %}{% set y = ('a' + x)[i] %}{% endfor %}"},
		{"keys", "{% set x = 'a' * 10 ** 7 %}{% for i in range(100000) %}{% set y = {x: 1, (x, x): 2} %}{% endfor %}"},
		{"lookups", "{% set x = 'a' * 10 ** 7 %}{% for i in range(100000) %}{% set y = 'b'[x] %}{% endfor %}"},
		{"strip", "{% set x = 'a' * 10 ** 6 %}{% set y = ('é' * 10 ** 6) ~ 'a' %}{% for i in range(100000) %}{% set z = x.strip(y) %}{% endfor %}"},
		{"range methods", "{% for i in range(100000) %}{% set z = range(100000).count(1) %}{% endfor %}"},
		{"remainders", "{% set x = 3 ** 80000 %}{% set y = 7 ** 20000 %}{% for i in range(100000) %}{% set z = x % y %}{% endfor %}"},
		{"quotients", "{% set x = 3 ** 80000 %}{% set y = 7 ** 40000 %}{% for i in range(100000) %}{% set z = x / y %}{% endfor %}"},
		{"digits read", "{% set x = '9' * 4000 %}{% for i in range(100000) %}{% set z = x|int %}{% endfor %}"},
		{"case", "{% set x = 'é' * 10 ** 6 %}{% for i in range(100000) %}{% set z = x|upper %}{% endfor %}"},
		{"many names", "{% for i in range(100000) %}" + strings.Repeat("{{ a }}{% set a = 1 %}", 10) + manyNames(10000) + "{% endfor %}"},
		{"many names of a macro", "{% macro m() %}" + manyNames(10000) + "{% endmacro %}{% for i in range(100000) %}{{ m() }}{% endfor %}"},
		{"elements", "{% set x = ('a' * 10000)|list %}{% for i in range(100000) %}{% set y = x + x %}{% endfor %}"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			start := time.Now()
			_, err := render(t, tt.source, nil)
			var e *Error
			if !errors.As(err, &e) {
				t.Fatalf("got %v, want an *Error", err)
			}
			if took := time.Since(start); took > 20*time.Second {
				t.Errorf("took %v", took)
			}
		})
	}
}

func manyNames(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "{%% if 0 %%}{%% set x%d = 1 %%}{%% endif %%}", i)
	}
	return b.String()
}

// Templates beyond small limits but far from the hostile ones work.
func TestWithinLimits(t *testing.T) {
	for _, tt := range []struct{ name, source, want string }{
		{"operands", "{{ 0" + strings.Repeat(" + 1", 10000) + " }}", "10000"},
		{"text operands", "{{ ('a'" + strings.Repeat(" ~ 'a'", 9999) + ")|length }}", "10000"},
		{"elifs", "{% if 0 %}" + strings.Repeat("{% elif 0 %}", 5000) + "{% else %}x{% endif %}", "x"},
		{"ifs", strings.Repeat("{% if 1 %}", 60) + "x" + strings.Repeat("{% endif %}", 60), "x"},
		{"macros", "{% macro m(n) %}{{ n }}{% if n %}{{ m(n - 1) }}{% endif %}{% endmacro %}{{ m(9) }}", "9876543210"},
		{"large text", "{{ ('ab' * 4000000)|replace('a', 'c')|length }}", "8000000"},
		{"many names", strings.Repeat("{% if 0 %}{% set x = 1 %}{% endif %}", 20000), ""},
		{"integers", "{{ (2 ** 10000) % 1000007 }}", fmt.Sprint(powerMod(2, 10000, 1000007))},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := render(t, tt.source, nil)
			if err != nil || got != tt.want {
				t.Errorf("got %.60q, %v, want %q", got, err, tt.want)
			}
		})
	}
}

func powerMod(base, exp, mod int) int {
	r := 1
	for range exp {
		r = r * base % mod
	}
	return r
}

// Names beyond number must not make the analysis of branches quadratic.
func TestManyBranches(t *testing.T) {
	if got, err := render(t, manyNames(20000), nil); err != nil || got != "" {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestContext(t *testing.T) {
	tmpl, err := Parse("{% for a in range(100000) %}{{ a }}{% endfor %}")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := tmpl.RenderVars(ctx, nil, time.Time{}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want context.Canceled", err)
	}
	late := &countdown{Context: context.Background(), left: 3}
	if _, err := tmpl.RenderVars(late, nil, time.Time{}); !errors.Is(err, context.Canceled) {
		t.Errorf("after a while: got %v, want context.Canceled", err)
	}
}

// countdown is a context that ends after it was asked left times.
type countdown struct {
	context.Context
	left int
}

func (c *countdown) Err() error {
	if c.left--; c.left < 0 {
		return context.Canceled
	}
	return nil
}

func TestErrors(t *testing.T) {
	for _, tt := range []struct{ source, want string }{
		{"a\n  {{ x|nope }}", "template line 2, column 8: no filter named 'nope'"},
		{"{% foo %}", "template line 1, column 4: unknown tag 'foo'"},
		{"{{ 1 is nope }}", "template line 1, column 6: no test named 'nope'"},
		{"é {{ raise_exception('no system role') }}", "template line 1, column 21: no system role"},
		{"{{ nope.x }}", "template line 1, column 8: 'nope' is undefined"},
		{"{{ ''.nope() }}", "template line 1, column 11: 'str object' has no attribute 'nope'"},
		{"{{ [].append(1) }}", "template line 1, column 13: access to attribute 'append' of 'list' object is unsafe"},
		{"{% include 'x' %}", "template line 1, column 4: the tag 'include' is not supported in chat templates"},
		{"{% block b required %}{% endblock %}", "template line 1, column 12: a required block needs a template that overrides it: not supported"},
		{"{% for x in [1] recursive %}{{ loop([1]) }}{% endfor %}", "template line 1, column 36: limit reached: recursive loops nested more than 64 deep"},
		{"{% if x %}", "template line 1, column 11: the template ends before 'elif'"},
		{"{{ 'a' + 1 }}", "template line 1, column 10: cannot add 'str' and 'int'"},
		{"{{ 1 / 0 }}", "template line 1, column 8: division by zero"},
		{"{{ 'a'|random }}", "template line 1, column 8: no filter named 'random'"},
		{"{{ [1]|map('string') }}", "template line 1, column 8: the result of the filter 'map' cannot be printed as it is: add |list or |join"},
	} {
		_, err := render(t, tt.source, nil)
		if err == nil || err.Error() != tt.want {
			t.Errorf("%s: got %v, want %s", tt.source, err, tt.want)
		}
		var e *Error
		if errors.As(err, &e) && e.Raised != strings.Contains(tt.source, "raise_exception") {
			t.Errorf("%s: got Raised %v", tt.source, e.Raised)
		}
	}
}

func FuzzTemplate(f *testing.F) {
	for _, seed := range []string{
		"{% for m in messages %}{{ m.role }}: {{ m.content|trim }}{% endfor %}", "{% macro m(a, b=1) %}{{ caller() }}{% endmacro %}{% call m(1) %}x{% endcall %}",
		"{% set ns = namespace(a=1) %}{% set ns.a = ns.a ** 2 %}{{ '%5.2f' % ns.a }}{{ '{:>{}}'.format(1, 9) }}", "{{ messages[::-1]|map(attribute='role')|join('-')|indent(2) }}",
		"{%- if not x is defined -%} {{ x|default('y')|upper ~ 1.5 // 2 }} {%- else +%}{% raw %}{{{% endraw %}{% endif %}", "{% filter upper %}{% generation %}a{% endgeneration %}{% endfilter %}{# c #}",
		"{{ messages|tojson(indent=2) }}{{ {'a': [1, (2,)]}|dictsort }}{{ 'a b'.split()|batch(2, 'x')|list }}", "{% with a, b = [1, 2] %}{{ a }}{% break %}{% endwith %}",
	} {
		f.Add(seed)
	}
	vars, err := DecodeJSON([]byte(`{"messages": [{"role": "user", "content": "Hé"}, {"role": "assistant", "content": null, "n": [1, 2.5, 1e30]}], "x": "a,b"}`))
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, source string) {
		tmpl, err := Parse(source)
		var e *Error
		if err != nil {
			if !errors.As(err, &e) || e.Line < 1 || e.Column < 1 {
				t.Fatalf("Parse: %v", err)
			}
			return
		}
		got, err := tmpl.RenderVars(context.Background(), vars.(*Dict), time.Time{})
		if err != nil && (!errors.As(err, &e) || e.Line < 1 || e.Column < 1) {
			t.Fatalf("RenderVars: %v", err)
		}
		if len(got) > maxOutput {
			t.Fatalf("%d bytes of output", len(got))
		}
		again, err2 := tmpl.RenderVars(context.Background(), vars.(*Dict), time.Time{})
		if got != again || (err == nil) != (err2 == nil) {
			t.Fatalf("two renderings differ: %q, %v and %q, %v", got, err, again, err2)
		}
	})
}

func FuzzDecodeJSON(f *testing.F) {
	f.Add([]byte(`{"role": "user", "content": [{"a": 1.50, "b": -0, "c": 12345678901234567890}], "x": null}`))
	f.Add([]byte(`[[[[]]]]`))
	f.Fuzz(func(t *testing.T, data []byte) {
		v, err := DecodeJSON(data)
		if err != nil {
			return
		}
		text, err := EncodeJSON(v)
		if err != nil {
			t.Fatalf("EncodeJSON: %v", err)
		}
		again, err := DecodeJSON(text)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if twice, _ := EncodeJSON(again); string(twice) != string(text) {
			t.Fatalf("got %s, want %s", twice, text)
		}
	})
}
