package code

import (
	"strings"
	"testing"
	"time"
)

func TestExtract(t *testing.T) {
	const fence = "```"
	for _, tt := range []struct{ name, response, want, language string }{
		{"one block", "Here:\n" + fence + "python\nprint(1)\n" + fence + "\nDone.", "print(1)\n", "python"},
		{"the last of two", fence + "python\na\n" + fence + "\nbetter:\n" + fence + "python\nb\n" + fence, "b\n", "python"},
		{"an example of output after the program", fence + "python\nprint(1)\n" + fence + "\nOutput:\n" + fence + "\n1\n" + fence, "print(1)\n", "python"},
		{"a shell command after the program", fence + "py\nprint(1)\n" + fence + "\n" + fence + "bash\npython x.py\n" + fence, "print(1)\n", "python"},
		{"no language", "so\n" + fence + "\nx = 1\n" + fence, "x = 1\n", ""},
		{"space and words after the language", fence + "python title=\"a.py\"  \nx = 1\n" + fence, "x = 1\n", "python"},
		{"Python 3", fence + "Python3\nx = 1\n" + fence, "x = 1\n", "python"},
		{"another language", fence + "c++\nint main() {}\n" + fence, "int main() {}\n", "cpp"},
		{"Python before another language", fence + "python\nx = 1\n" + fence + "\n" + fence + "cpp\nint x;\n" + fence, "x = 1\n", "python"},
		{"only text", fence + "text\nhello\n" + fence, "", ""},
		{"not closed", "so\n" + fence + "python\nx = 1\n", "x = 1\n", "python"},
		{"indented in a list", "1. so\n   " + fence + "python\n   def f():\n       return 1\n   " + fence, "def f():\n    return 1\n", "python"},
		{"longer fence holds a shorter", fence + "`python\nx = '''\n" + fence + "\n'''\n" + fence + "`", "x = '''\n" + fence + "\n'''\n", "python"},
		{"tildes", "~~~python\nx = 1\n~~~", "x = 1\n", "python"},
		{"a file after the language", fence + "python:main.py\nx = 1\n" + fence, "x = 1\n", "python"},
		{"a version", fence + "Python3.11\nx = 1\n" + fence, "x = 1\n", "python"},
		{"lines to highlight", fence + "python{1,3}\nx = 1\n" + fence, "x = 1\n", "python"},
		{"after words", "Here it is: " + fence + "python\nif x:\n    y = 1\n" + fence + "\nDone.", "if x:\n    y = 1\n", "python"},
		{"after words, without a language", "**The program:** " + fence + "\nx = 1\n" + fence + "\nIt ends with " + fence, "x = 1\n", ""},
		{"after a sentence", "Sure! " + fence + "\nx = 1\n" + fence, "x = 1\n", ""},
		{"words about a fence", "Write " + fence + "python before it.\n" + fence + "\nx = 1\n" + fence, "x = 1\n", ""},
		{"a tag that names no language, after words", "a " + fence + "b\n" + fence + "\nx = 1\n" + fence, "x = 1\n", ""},
		{"an item of a list", "1. " + fence + "python\n   def f():\n       return 1\n   " + fence, "def f():\n    return 1\n", "python"},
		{"words after the closing fence", fence + "python\nx = 1\n" + fence + " This is it.", "x = 1\n", "python"},
		{"the closing fence after code", fence + "python\nx = 1" + fence, "x = 1\n", "python"},
		{"the closing fence after code, then words", fence + "python\nx = 1" + fence + "\nThis is it.", "x = 1\n", "python"},
		{"begun again", fence + "python\nx = 1\n\nBetter:\n" + fence + "python\nx = 2\n" + fence, "x = 2\n", "python"},
		{"tildes that are code", "~~~python\n~~~x\n~~~", "~~~x\n", "python"},
		{"empty block", fence + "python\nx = 1\n" + fence + "\n" + fence + "python\n\n" + fence, "x = 1\n", "python"},
		{"carriage returns", fence + "python\r\nx = 1\r\n" + fence + "\r\n", "x = 1\n", "python"},
		{"after the reasoning", "<think>" + fence + "python\nbad\n" + fence + "</think>\n" + fence + "python\ngood\n" + fence, "good\n", "python"},
		{"reasoning without its beginning", fence + "python\nbad\n" + fence + "</think>\n" + fence + "\ngood = 1\n" + fence, "good = 1\n", ""},
		{"reasoning that does not end", "<think>" + fence + "python\nbad\n" + fence, "", ""},
		{"nothing after the reasoning", "<think>" + fence + "python\nbad\n" + fence + "</think>", "", ""},
		{"unfenced", "import sys\n\ndef f(x):\n    return x\n\nprint(f(1))\n", "import sys\n\ndef f(x):\n    return x\n\nprint(f(1))\n", ""},
		{"unfenced, the rest in a list", "Read it.\na, *b = input().split()\nprint(b)\n", "a, *b = input().split()\nprint(b)\n", ""},
		{"unfenced, a type", "n: int = int(input())\nx: list[int] = [n]\nprint(x)\n", "n: int = int(input())\nx: list[int] = [n]\nprint(x)\n", ""},
		{"unfenced, a method's call", "sys.setrecursionlimit(10**6)  # deep\nprint(f(1))\n", "sys.setrecursionlimit(10**6)  # deep\nprint(f(1))\n", ""},
		{"unfenced, try", "try:\n    n = int(input())\nexcept EOFError:\n    n = 0\nprint(n)\n", "try:\n    n = int(input())\nexcept EOFError:\n    n = 0\nprint(n)\n", ""},
		{"unfenced, words that are not code", "Note: n = 5 here.\nmath.sqrt(x) is a float.\nprint(1)\n", "print(1)\n", ""},
		{"unfenced with prose around", "Sure, here is my program.\n\nn = int(input())\nfor i in range(n):\n    print(i)\n\nThis prints them all.\n", "n = int(input())\nfor i in range(n):\n    print(i)\n", ""},
		{"unfenced, a text in quotes", "def f():\n    '''\nThis is no prose\n'''\n    return 1\n\nIt works.", "def f():\n    '''\nThis is no prose\n'''\n    return 1\n", ""},
		{"the body of a function", "    if x:\n        return 1\n    return 2\n", "    if x:\n        return 1\n    return 2\n", ""},
		{"prose alone", "I do not know how to solve it.", "", ""},
		{"nothing", "", "", ""},
	} {
		got := Extract(tt.response)
		if got.Text != tt.want || got.Language != tt.language {
			t.Errorf("%s: %q in %q (%s), want %q in %q", tt.name, got.Text, got.Language, got.How, tt.want, tt.language)
		}
		if got.How == "" {
			t.Errorf("%s: it is not said how", tt.name)
		}
	}
}

// TestExtractLong: the time grows with the length of the response, not with its square.
func TestExtractLong(t *testing.T) {
	for _, n := range []int{0, 1 << 20} {
		block := strings.Repeat("\n", n) + "x = 1\n"
		start := time.Now()
		if got := Extract("```python\n" + block + "```"); got.Text != block {
			t.Errorf("%d lines: another text of %d bytes", n, len(got.Text))
		}
		if took := time.Since(start); took > 20*time.Second {
			t.Errorf("%d lines took %v", n, took)
		}
	}
}

func FuzzExtract(f *testing.F) {
	f.Add("```python\nx\n```")
	f.Add("~~~\n````\n'''")
	f.Fuzz(func(t *testing.T, response string) {
		got := Extract(response)
		for line := range strings.Lines(got.Text) {
			if !strings.Contains(strings.ReplaceAll(response, "\r\n", "\n"), strings.TrimSpace(line)) {
				t.Errorf("the line %q is not in the response %q", line, response)
			}
		}
	})
}

func TestWithoutMain(t *testing.T) {
	for _, tt := range []struct{ program, want string }{
		{"def f(): pass", "def f(): pass"},
		{"a\nif __name__ == '__main__':\n  b\n\n\tc\nd", "a\nd"},
		{"a\nif __name__ == \"__main__\": b\nelse:\n  c", "a\nelse:\n  c"},              // as published: not a program any more
		{"def f():\n  if __name__ == '__main__':\n    b\n  return 1\nc", "def f():\nc"}, // as published: the rest of the function goes too
		{"if __name__=='__main__':\n  b", "if __name__=='__main__':\n  b"},              // as published: spaces are wanted
		{"", ""},
	} {
		if got := withoutMain(tt.program); got != tt.want {
			t.Errorf("%q: %q, want %q", tt.program, got, tt.want)
		}
	}
}
