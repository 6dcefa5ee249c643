package code

import (
	"regexp"
	"slices"
	"strings"

	"exp/eval/grade/extract"
)

// Program is the program found in a response.
type Program struct {
	Text     string // empty: none found
	Language string // from the fence, in lower case: "python", "cpp"; empty: not given
	How      string // where it was found, or why not
}

// languages maps language names on fences to ours.
func languages() map[string]string {
	return map[string]string{
		"python": "python", "python3": "python", "py": "python", "py3": "python", "pypy": "python", "pypy3": "python",
		"c": "c", "cpp": "cpp", "c++": "cpp", "cc": "cpp", "cxx": "cpp", "c++17": "cpp", "c++20": "cpp",
		"go": "go", "golang": "go", "javascript": "javascript", "js": "javascript", "node": "javascript",
		"java": "java", "rust": "rust", "typescript": "typescript", "ts": "typescript",
	}
}

// Extract finds the program in a response as a reader would. It skips the reasoning, then takes the last
// fenced block marked as Python, else the last unmarked block, else the last one marked as another
// programming language. A block still open at the end counts as closed there. Without any fence it takes
// the response itself and cuts off prose around the code.
func Extract(response string) Program {
	response = strings.ReplaceAll(response, "\r\n", "\n")
	how := ""
	answer, ended := extract.AfterThought(response)
	switch {
	case !ended:
		return Program{How: "the reasoning does not end"}
	case len(answer) < len(response):
		response, how = answer, " after the reasoning"
	}
	blocks := fences(response)
	names := languages()
	for _, pass := range []struct {
		fits func(tag string) bool
		how  string
	}{
		{func(tag string) bool { return names[tag] == "python" }, "the last block of Python"},
		{func(tag string) bool { return tag == "" }, "the last block without a language"},
		{func(tag string) bool { return names[tag] != "" }, "the last block of code"},
	} {
		for _, b := range slices.Backward(blocks) {
			if strings.TrimSpace(b.text) != "" && pass.fits(b.tag) {
				if b.open {
					how += ", which is not closed"
				}
				return Program{b.text, names[b.tag], pass.how + how}
			}
		}
	}
	if len(blocks) > 0 {
		return Program{How: "no block of code is among the fenced ones"}
	}
	if text := unfenced(response); text != "" {
		return Program{Text: text, How: "the text itself" + how}
	}
	return Program{How: "no program in the text"}
}

// fence is a fenced block of Markdown.
type fence struct {
	tag  string // the language after the fence, in lower case
	text string
	open bool // the text ends inside the block
}

// fences lists the blocks between lines of three or more ` or ~ (CommonMark 0.31 §4.5, but with any
// indentation, as in lists, which is removed from each line). It also sees what models write and CommonMark
// does not: a block that begins after words on the line, one that ends with words after the fence or with
// the fence after the last line of code, and one that begins before the previous one was closed.
func fences(text string) (list []fence) {
	var mark string // of the open block, which is the last; empty: none is open
	var indent int
	var block strings.Builder // its text
	for line := range strings.Lines(text) {
		body := strings.TrimRight(line, "\n")
		trimmed := strings.TrimLeft(body, " \t")
		next, nested := opening(body)
		closes := mark != "" && leadingMarks(trimmed) >= len(mark) && trimmed[0] == mark[0]
		if closes && mark[0] == '~' && strings.Trim(trimmed, "~ \t") != "" {
			closes = false // may be code
		}
		b := len(list) - 1
		switch {
		case closes:
			list[b].text, list[b].open, mark = block.String(), false, ""
			if _, known := languages()[next.tag]; !nested || !known {
				continue
			}
		case mark != "":
			cut := 0
			for cut < indent && cut < len(line) && (line[cut] == ' ' || line[cut] == '\t') {
				cut++
			}
			block.WriteString(line[cut:])
			continue
		case !nested:
			continue
		}
		list = append(list, fence{tag: next.tag, open: true})
		mark, indent = next.mark, next.indent
		block.Reset()
	}
	if mark == "" {
		return list
	}
	b := &list[len(list)-1]
	b.text = block.String()
	if at := fenceAfterCode.FindStringIndex(b.text); at != nil && mark[0] == '`' {
		b.text, b.open = b.text[:at[0]]+"\n", false
	}
	return list
}

var (
	fenceAfterCode = regexp.MustCompile("(?m)```+[ \t]*$")
	listItem       = regexp.MustCompile(`^[ \t]*([-*+]|\d+[.)])[ \t]+$`)
)

// opener is a fence that begins a block.
type opener struct {
	mark, tag string
	indent    int // of the block's lines
}

// opening reports whether a line begins a block. After words the fence must end the line, with a language
// that we know or after the end of a sentence.
func opening(line string) (o opener, ok bool) {
	at := len(line) - len(strings.TrimLeft(line, " \t"))
	o.indent = at
	if leadingMarks(line[at:]) < 3 {
		if at = strings.Index(line, "```"); at < 0 || strings.Contains(line[:at], "`") {
			return o, false
		}
	}
	run := leadingMarks(line[at:])
	info := strings.TrimSpace(line[at+run:])
	if line[at] == '`' && strings.Contains(info, "`") {
		return o, false // inline code
	}
	o.mark, o.tag = line[at:at+run], languageTag(info)
	if listItem.MatchString(line[:at]) {
		o.indent = at
		return o, true
	}
	_, known := languages()[o.tag]
	if info == "" {
		before := strings.TrimRight(line[:at], " *")
		known = strings.TrimRight(before, ":.!?") != before
	}
	return o, at == o.indent || known && !strings.ContainsAny(info, " \t")
}

// languageTag returns the language that the text after a fence names: python for "python", "{.python #a}",
// "python:main.py" and "Python3.11".
func languageTag(info string) string {
	tag := strings.ToLower(strings.Trim(info, "{}. "))
	if i := strings.IndexAny(tag, " \t:,;{(["); i >= 0 {
		tag = tag[:i]
	}
	names := languages()
	if plain := strings.TrimRight(tag, "0123456789."); names[tag] == "" && names[plain] != "" {
		return plain
	}
	return tag
}

// leadingMarks counts the leading ` or ~ of s.
func leadingMarks(s string) int {
	if s == "" || s[0] != '`' && s[0] != '~' {
		return 0
	}
	return len(s) - len(strings.TrimLeft(s, s[:1]))
}

// Lines that start a program, and lines that are code if the previous line was.
var (
	beginsCode = regexp.MustCompile(
		`^(import [\w.]+|from [\w.]+ import |def \w+\s*\(|async def \w+|class \w+|@\w+|#!|if __name__|for \w[\w, ]* in .*:|while .*:|with .*:|try:\s*(#.*\s*)?$|print\(|[A-Za-z_]\w*(\.[A-Za-z_]\w*)+\(.*\)\s*(#.*\s*)?$|` +
			`\*?[A-Za-z_]\w*(\[[^\]]*\]|\.\w+)*(\s*,\s*\*?[A-Za-z_]\w*)*(\s*:\s*(int|str|float|bool|[Ll]ist|[Dd]ict|[Ss]et|[Tt]uple|Optional)\b[^=]*)?\s*[-+*/%&|^]?=[^=])`)
	goesOn = regexp.MustCompile(
		`^(\s|#|[)\]}]|(elif|else|try|except|finally|return|raise|pass|global|nonlocal|assert|del|if|for|while|with|yield|break|continue|async|await|match)\b.*|[A-Za-z_][\w.]*\(.*|"""|''')`)
)

// unfenced returns the code of a text without fences: from the first line that starts a program to the last
// before prose. A text that starts indented and is all code is the body of a function.
func unfenced(text string) string {
	lines := strings.SplitAfter(text, "\n")
	first := slices.IndexFunc(lines, func(l string) bool { return strings.TrimSpace(l) != "" })
	if first < 0 {
		return ""
	}
	if l := lines[first]; l[0] != ' ' && l[0] != '\t' {
		first = slices.IndexFunc(lines, beginsCode.MatchString)
		if first < 0 {
			return ""
		}
	}
	end, quote := first, ""
	for i := first; i < len(lines); i++ {
		l := lines[i]
		if quote == "" && strings.TrimSpace(l) != "" && !beginsCode.MatchString(l) && !goesOn.MatchString(l) {
			break
		}
		if strings.TrimSpace(l) != "" {
			end = i + 1
		}
		quote = insideQuotes(l, quote)
	}
	return strings.Join(lines[first:end], "")
}

// insideQuotes returns the triple quote open after a line, given the one open before it.
func insideQuotes(line, open string) string {
	for {
		if open != "" {
			i := strings.Index(line, open)
			if i < 0 {
				return open
			}
			line, open = line[i+3:], ""
			continue
		}
		i, j := strings.Index(line, `"""`), strings.Index(line, "'''")
		switch {
		case i < 0 && j < 0:
			return ""
		case j < 0 || i >= 0 && i < j:
			line, open = line[i+3:], `"""`
		default:
			line, open = line[j+3:], "'''"
		}
	}
}

// upstreamFence is the published pattern: three backticks, a tag of word characters or none, and a newline
// at once. An earlier fence that it does not match shifts the pairing.
var upstreamFence = regexp.MustCompile("(?s)```(?:[\\p{L}\\p{N}_]+)?\n(.*?)```")

// ExtractUpstream finds the program as rllm does (code_reward.py of the FlowRL release): the last match of
// three backticks, a tag and a newline, up to three backticks. ok is false without a match. The program may
// be empty.
func ExtractUpstream(response string) (program string, ok bool) {
	all := upstreamFence.FindAllStringSubmatch(response, -1)
	if len(all) == 0 {
		return "", false
	}
	return strings.TrimSpace(all[len(all)-1][1]), true
}

// withoutMain removes __main__ blocks as rllm does before it runs assertions on a program: from a line that
// starts with the condition, whatever its context, to the next line that is neither blank nor indented.
func withoutMain(program string) string {
	var kept []string
	skipping := false
	for line := range strings.SplitSeq(program, "\n") {
		text := pythonStrip(line)
		switch {
		case strings.HasPrefix(text, `if __name__ == "__main__"`) ||
			strings.HasPrefix(text, `if __name__ == '__main__'`):
			skipping = true
			continue
		case skipping && text != "" && line[0] != ' ' && line[0] != '\t':
			skipping = false
		}
		if !skipping {
			kept = append(kept, line)
		}
	}
	return strings.Join(kept, "\n")
}
