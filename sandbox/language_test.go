//go:build linux && (amd64 || arm64)

package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

// needLanguage skips where the machine has no toolchain, with the reason.
func needLanguage(t *testing.T, name string) {
	t.Helper()
	for _, p := range Toolchains(context.Background()) {
		if p.Name == name && !p.OK {
			t.Skip(p.Name, ": ", p.Text)
		}
	}
	if testing.Short() && name == "go" {
		t.Skip("the first Go program compiles the standard library")
	}
}

// A program in every language reads, computes and writes; wrong, failing and uncompilable programs get their
// verdicts.
func TestLanguages(t *testing.T) {
	sources := map[string]map[Verdict]string{
		"c": {
			OK:           "#include <stdio.h>\n#include <math.h>\nint main(int n, char **v) { double x; scanf(\"%lf\", &x); printf(\"%g %s\\n\", sqrt(x), v[1]); }",
			RuntimeError: "#include <stdlib.h>\nint main() { abort(); }",
			CompileError: "int main() { return x; }",
			TimeLimit:    "int main() { for (volatile int i = 0;;) i++; }",
			MemoryLimit:  "#include <stdlib.h>\n#include <string.h>\nint main() { for (;;) memset(malloc(1 << 20), 1, 1 << 20); }",
		},
		"cpp": {
			OK:           "#include <cstdio>\n#include <cmath>\nint main(int, char **v) { double x; scanf(\"%lf\", &x); auto root = [&] { x = std::sqrt(x); }; root(); printf(\"%g %s\\n\", x, v[1]); }",
			RuntimeError: "int main() { throw 7; }",
			CompileError: "#include <none>\nint main() {}",
			TimeLimit:    "int main() { for (volatile int i = 0;;) i = i + 1; }",
			MemoryLimit:  "#include <vector>\nstd::vector<std::vector<int>> v;\nint main() { for (;;) v.push_back(std::vector<int>(1 << 18, 1)); }",
		},
		"go": {
			OK:           "package main\nimport (\"fmt\"; \"math\"; \"os\")\nfunc main() { var x float64; fmt.Scan(&x); c := make(chan float64); go func() { c <- math.Sqrt(x) }(); fmt.Println(<-c, os.Args[1]) }",
			RuntimeError: "package main\nfunc main() { var m map[int]int; m[0] = 1 }",
			CompileError: "package main\nfunc main() { x := 1 }",
			TimeLimit:    "package main\nfunc main() { for {} }",
			MemoryLimit:  "package main\nvar keep [][]byte\nfunc main() { for { b := make([]byte, 1<<20); for i := range b { b[i] = 1 }; keep = append(keep, b) } }",
		},
		"javascript": {
			OK:           "const x = require('fs').readFileSync(0, 'utf8'); console.log(Math.sqrt(+x) + ' ' + process.argv[2]);",
			RuntimeError: "JSON.parse('{');",
			CompileError: "let let = 1;",
			TimeLimit:    "for (;;);",
			MemoryLimit:  "const keep = []; for (;;) keep.push(Buffer.alloc(1 << 20, 1));",
		},
	}
	for _, level := range []Level{Full, Namespaces} {
		for _, l := range languages() {
			t.Run(string(level)+"/"+l.name, func(t *testing.T) {
				needLanguage(t, l.name)
				p := openAt(t, level, Config{Slots: 1})
				for want, source := range sources[l.name] {
					if level != Full && want != OK && want != MemoryLimit {
						continue // does not depend on the level
					}
					r := p.Run(context.Background(), Request{Language: l.name, Source: source, Args: []string{"end"}, Limits: Limits{CPUMS: 1000, MemoryMB: 128},
						Tests: []Test{{Stdin: "16\n", Stdout: "4 end\n"}, {Stdin: "2.25\n", Stdout: "1.5 end"}}})
					if r.Verdict != want {
						t.Errorf("%s, want %s: %+v\n%s%s", r.Verdict, want, r.Runs[0], r.Runs[0].Stdout, r.Runs[0].Stderr)
					}
					if want == OK && r.Passed != 2 || want == CompileError && (len(r.Runs) != 1 || len(r.Runs[0].Stderr) == 0) {
						t.Errorf("%s: %d passed, %d runs, %+v", want, r.Passed, len(r.Runs), r.Runs[0])
					}
				}
				if err := p.nothingLeft(); err != nil {
					t.Error(err)
				}
				if n, err := p.InfraErrors(); n != 0 {
					t.Error(n, err)
				}
			})
		}
	}
}

// Programs that use their runtime run as they do outside.
func TestHonestForeign(t *testing.T) {
	p := openAt(t, Namespaces, Config{Slots: 1})
	for _, c := range []struct{ language, source, want string }{
		{"c", "#include <stdio.h>\nint f(int n) { volatile char pad[1000]; pad[0] = n; return n ? 1 + f(n - 1) + (pad[0] & 0) : 0; }\nint main() { printf(\"%d\\n\", f(100000)); }", "100000\n"},
		{"c", "#include <stdio.h>\n#include <signal.h>\n#include <unistd.h>\nint main() { printf(\"%d %d\\n\", signal(SIGPIPE, SIG_DFL) == SIG_DFL, signal(SIGXFSZ, SIG_DFL) == SIG_DFL); }", "1 1\n"},
		{"c", "#include <stdio.h>\nint main() { FILE *f = fopen(\"x\", \"w+\"); fputs(\"kept\", f); rewind(f); char b[9]; fgets(b, 9, f); puts(b); }", "kept\n"},
		{"cpp", "#include <bits/stdc++.h>\nusing namespace std;\nint main() { __int128 x = 1; x <<= 100; map<string, int> m{{\"a\", 1}}; vector<int> v{3, 1, 2}; sort(v.begin(), v.end()); cout << (long)(x >> 98) << m[\"a\"] << v[0]; }", "411"},
		{"go", "package main\nimport (\"bufio\"; \"fmt\"; \"os\"; \"sort\"; \"strings\"; \"regexp\"; \"math/big\")\nfunc main() { s := bufio.NewScanner(os.Stdin); s.Scan(); w := strings.Fields(s.Text()); sort.Strings(w); fmt.Println(w, regexp.MustCompile(`b+`).FindString(\"abbc\"), new(big.Int).Exp(big.NewInt(2), big.NewInt(70), nil)) }", "[a b] bb 1180591620717411303424\n"},
		{"javascript", "const f = n => n ? 1 + f(n - 1) : 0; console.log(f(50000)); setTimeout(() => Promise.resolve(7n).then(x => console.log(x)), 1)", "50000\n7n\n"},
		{"python", "print(open('/dev/stdin').read().split())", "['b', 'a']\n"},
		{"javascript", "console.log(require('fs').readFileSync('/dev/stdin', 'utf8').trim().split(' ').length)", "2\n"},
		{"javascript", "require('readline').createInterface({input: process.stdin}).on('line', l => console.log(l.toUpperCase()))", "B A\n"},
	} {
		t.Run(c.language, func(t *testing.T) {
			needLanguage(t, c.language)
			if strings.Contains(c.source, "bits/stdc++.h") && os.Getenv("EXP_TEST_ALL") == "" {
				t.Skip("EXP_TEST_ALL=1 compiles the whole C++ library")
			}
			if r := p.Run(context.Background(), Request{Language: c.language, Source: c.source, Stdin: "b a\n"}); r.Verdict != OK || string(r.Runs[0].Stdout) != c.want {
				t.Errorf("%q\n%+v\n%s%s", c.source, r.Runs[0], r.Runs[0].Stdout, r.Runs[0].Stderr)
			}
		})
	}
}

// Go's standard library is compiled by the Makefile's flags, so it is not compiled again after `make build`.
func TestGoFlags(t *testing.T) {
	makefile, err := os.ReadFile("../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(makefile), "\nQUICK_GO := ")
	want, _, _ := strings.Cut(rest, "\n")
	if want == "" || !slices.Contains(goEnv(), "GOFLAGS="+want) {
		t.Errorf("the Makefile builds with %q, the sandbox's library with %q", want, goEnv())
	}
}

// A source is compiled once, however many ask at the same time.
func TestBuildOnce(t *testing.T) {
	needLanguage(t, "c")
	p := openAt(t, Namespaces, Config{Slots: 2})
	r := Request{Language: "c", Source: "int main() { return 0; }"}
	done := make(chan Verdict)
	for range 4 {
		go func() { done <- p.Run(context.Background(), r).Verdict }()
	}
	for range 4 {
		if v := <-done; v != OK {
			t.Error(v)
		}
	}
	if len(p.builds.order) != 1 {
		t.Errorf("compiled %d times", len(p.builds.order))
	}
	for i := range mostBuilds + 2 {
		p.builds.keep(&build{key: [32]byte{byte(i), byte(i >> 8), 1}})
	}
	if len(p.builds.order) != mostBuilds || len(p.builds.known) != 0 {
		t.Errorf("%d builds are kept", len(p.builds.order))
	}
	p.builds.keep(&build{binary: make([]byte, mostBuildBytes+1)})
	if len(p.builds.order) != 1 {
		t.Errorf("%d builds are kept next to a large one", len(p.builds.order))
	}
}

// A missing toolchain, an unknown language and an unsupported mode are reported.
func TestLanguageRefused(t *testing.T) {
	p := openAt(t, Namespaces, Config{Slots: 1})
	t.Setenv("PATH", t.TempDir())
	for _, c := range []struct {
		r    Request
		want string
	}{
		{Request{Language: "c"}, "language c: no toolchain: gcc is not installed"},
		{Request{Language: "cpp"}, "g++ is not installed"},
		{Request{Language: "go"}, "go is not installed"},
		{Request{Language: "javascript"}, "node is not installed"},
		{Request{Language: "cobol"}, `unknown language "cobol"; known: python, c, cpp, go, javascript`},
		{Request{Language: "c", Mode: "call", Entry: "f", Tests: []Test{{}}}, "only mode stdio"},
		{Request{Language: "c", Files: map[string][]byte{"main.c": nil}}, "plain name"},
	} {
		if r := p.Run(context.Background(), c.r); r.Verdict != InfraError || !strings.Contains(r.Runs[0].Detail, c.want) {
			t.Errorf("%+v: %s %q, want %q", c.r, r.Verdict, r.Runs[0].Detail, c.want)
		}
	}
	for _, probe := range Toolchains(context.Background()) {
		if probe.OK || probe.Help == "" {
			t.Errorf("%+v", probe)
		}
	}
	var missing *toolchainError
	if _, err := findToolchain(context.Background(), languages()[0], false); !errors.As(err, &missing) {
		t.Error(err)
	}
}

func TestLanguageOf(t *testing.T) {
	for file, want := range map[string]string{"a.py": "python", "a": "python", "dir.c/a.CC": "cpp", "a.c": "c", "a.go": "go", "a.js": "javascript"} {
		if got := LanguageOf(file); got != want {
			t.Errorf("%s: %s, want %s", file, got, want)
		}
	}
}

// Binds that another bind shows are left out; others stay.
func TestOutermost(t *testing.T) {
	b := func(source, target string) bind { return bind{Source: source, Target: target} }
	got := outermost([]bind{b("/u/lib/x", "/u/lib/x"), b("/u/lib", "/u/lib"), b("/u/lib", "/u/lib"), b("/other", "/u/lib/y"), b("/u/library", "/u/library")})
	if want := []bind{b("/u/lib", "/u/lib"), b("/other", "/u/lib/y"), b("/u/library", "/u/library")}; !slices.Equal(got, want) {
		t.Error(fmt.Sprint(got), want)
	}
}

// A compiler that needs more than its processor time rejects the program.
func TestCompileTime(t *testing.T) {
	needLanguage(t, "cpp")
	// 2^24 instantiations take seconds.
	source := `template<int n, int k> struct f { static const int v = f<n-1, 2*k>::v + f<n-1, 2*k+1>::v; };
template<int k> struct f<0, k> { static const int v = k; };
int main() { return f<24, 0>::v != 0; }`
	p := openAt(t, Namespaces, Config{Slots: 1, CompileMS: 1000})
	start := time.Now()
	r := p.Run(context.Background(), Request{Language: "cpp", Source: source})
	if r.Verdict != CompileError || !strings.Contains(r.Runs[0].Detail, "the compiler") {
		t.Errorf("%s: %+v", r.Verdict, r.Runs)
	}
	if d := time.Since(start); d > 12*time.Second {
		t.Errorf("compiled for %s with a second of processor time", d)
	}
}
