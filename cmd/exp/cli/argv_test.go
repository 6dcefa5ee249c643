package cli

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// quoteWords splits at spaces; ␣ stands for a space inside a word.
func quoteWords(s string) []string {
	list := strings.Fields(s)
	for i := range list {
		list[i] = strings.ReplaceAll(list[i], "␣", " ")
	}
	return list
}

func TestParseArgv(t *testing.T) {
	tests := []struct {
		name, in string
		want     string // of args(), after "exp"
	}{
		{"as it should be", "--json run --seeds=1 a", "--json run --seeds=1 -- a"},
		{"flag after positional", "run a --seeds 1", "run --seeds=1 -- a"},
		{"global after command", "run --json a", "--json run -- a"},
		{"global after positional", "run a --store S", "--store=S run -- a"},
		{"value with equals sign", "run a --set k=v=w", "run --set=k=v=w -- a"},
		{"value that looks like a flag", "run --seeds --json a", "run --seeds=--json -- a"},
		{"negative value", "run -n -3", "run --max-steps=-3 --"},
		{"empty value", "run --seeds=", "run --seeds= --"},
		{"order of repeated flags", "run --set a=1 x --set b=2", "run --set=a=1 --set=b=2 -- x"},
		{"short with value", "run -s 0-2 a", "run --seeds=0-2 -- a"},
		{"short joined", "run -s0-2 -n=7", "run --seeds=0-2 --max-steps=7 --"},
		{"bundle of both levels", "run -vqd a", "--verbose --quiet run --dry-run -- a"},
		{"bundle ending in a value", "run -dn5 a", "run --dry-run --max-steps=5 -- a"},
		{"bundle taking the next word", "run -dn 5 a", "run --dry-run --max-steps=5 -- a"},
		{"bundle with equals sign", "run -dn=5", "run --dry-run --max-steps=5 --"},
		{"single dash as Go has it", "run -seeds 1", "run --seeds=1 --"},
		{"not a bundle", "run -dzq a", "run -dzq -- a"},
		{"bool with value", "run --dry-run=false a", "run --dry-run=false -- a"},
		{"double dash", "run --dry-run -- --seeds 1", "run --dry-run -- --seeds 1"},
		{"second double dash", "run -- a -- b", "run -- a -- b"},
		{"dash is a positional", "show -", "show -- -"},
		{"unknown flag stays", "run a --bogus b", "run --bogus -- a b"},
		{"unknown before command", "--bogus run a", "--bogus run -- a"},
		{"subcommand", "config --json show f --origin", "--json config show --origin -- f"},
		{"name of a command as positional", "run show --seeds 1 run", "run --seeds=1 -- show run"},
		{"spaces inside words", "run --set a␣b=c␣d x␣y", "run --set=a␣b=c␣d -- x␣y"},
	}
	a := newApp(System{}, sampleProgram)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			v := parseArgv(a.cli, append([]string{"exp"}, quoteWords(tt.in)...))
			if v.err != nil {
				t.Fatal(v.err)
			}
			if got, want := v.args()[1:], quoteWords(tt.want); !slices.Equal(got, want) {
				t.Errorf("got  %q\nwant %q", got, want)
			}
		})
	}
}

func TestParseArgvHelpAndVersion(t *testing.T) {
	a := newApp(System{}, sampleProgram)
	for _, in := range []string{"--help", "-h run", "run --help", "run a -h --bogus", "config show --help", "run -vh", "rnu --help"} {
		v := parseArgv(a.cli, append([]string{"exp"}, strings.Fields(in)...))
		if want := in != "rnu --help"; v.help != want { // there is nothing to explain
			t.Errorf("%s: help = %v, want %v", in, v.help, want)
		}
	}
	for _, in := range []string{"run -- --help", "run --help=false", "run --seeds --help"} {
		if parseArgv(a.cli, append([]string{"exp"}, strings.Fields(in)...)).help {
			t.Errorf("%s: help", in)
		}
	}
	if v := parseArgv(a.cli, []string{"exp", "run", "--version"}); !v.version {
		t.Error("run --version: no version")
	}
}

// TestParseArgvAnyOrder shuffles flags and positionals: the parser sees the same
// flags, and the positionals in their order.
func TestParseArgvAnyOrder(t *testing.T) {
	const seed = 11
	rng := rand.New(rand.NewPCG(seed, 0))
	a := newApp(System{}, sampleProgram)
	flags := [][]string{
		{"--json"}, {"--store", "S"}, {"--store=T"}, {"-v"}, {"--seeds", "0-2"}, {"-n", "5"}, {"--dry-run"},
		{"--set", "a=1"}, {"--set=b=2"}, {"-qd"}, {"-Cdir"},
	}
	for range 300 {
		units := [][]string{{"p1"}, {"p2"}, {"p3"}}
		for _, f := range flags {
			if rng.IntN(2) == 0 {
				at := rng.IntN(len(units) + 1)
				units = slices.Insert(units, at, f)
			}
		}
		words := append([]string{"exp", "run"}, slices.Concat(units...)...)
		v := parseArgv(a.cli, words)
		if v.err != nil || len(v.unknown) > 0 {
			t.Fatalf("seed %d: %q: %v, unknown %q", seed, words, v.err, v.unknown)
		}
		if !slices.Equal(v.positionals, []string{"p1", "p2", "p3"}) {
			t.Fatalf("seed %d: %q: positionals %q", seed, words, v.positionals)
		}
		// Parsing what came out changes nothing.
		again := parseArgv(a.cli, v.args())
		if !slices.Equal(again.args(), v.args()) {
			t.Fatalf("seed %d: %q becomes %q", seed, v.args(), again.args())
		}
	}
}

func FuzzParseArgv(f *testing.F) {
	for _, s := range []string{"run a --seeds 1", "-vvo json config show f", "run -dn", "run -- -", "--=x -=y ---z run"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		a := newApp(System{}, sampleProgram)
		v := parseArgv(a.cli, append([]string{"exp"}, strings.Split(s, " ")...))
		if v.err != nil || len(v.unknown) > 0 {
			return
		}
		again := parseArgv(a.cli, v.args())
		if !slices.Equal(again.args(), v.args()) {
			t.Errorf("%q becomes %q", v.args(), again.args())
		}
	})
}
