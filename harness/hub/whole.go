package hub

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"exp/experiments/quantity"
	"exp/train/checkpoint"
)

// lackingWeights returns the files that a model's folder lacks to be loaded: its configuration, or
// shards of its weights.
func lackingWeights(dir string, have []string) (lacks []string, err error) {
	adapter := slices.Contains(have, "adapter_config.json")
	if !adapter && !slices.Contains(have, "config.json") {
		lacks = append(lacks, "config.json")
	}
	for _, form := range checkpoint.IndexForms() {
		if slices.Contains(have, form.Index) {
			shards, err := checkpoint.Shards(filepath.Join(dir, form.Index))
			if err != nil {
				return nil, err
			}
			for _, shard := range shards {
				if !slices.Contains(have, shard) {
					lacks = append(lacks, shard)
				}
			}
			return lacks, nil
		}
		if slices.ContainsFunc(have, func(name string) bool {
			return atTop(name) && strings.HasSuffix(name, form.Suffix)
		}) {
			return lacks, nil
		}
	}
	return append(lacks, "*.safetensors"), nil
}

// atTop reports whether a file lies in the repository's top folder.
func atTop(name string) bool { return !strings.Contains(name, "/") }

// lackingTokenizer returns the files that a folder lacks to hold a tokenizer.
func lackingTokenizer(have []string) []string {
	if slices.Contains(have, "tokenizer.json") ||
		slices.Contains(have, "vocab.json") && slices.Contains(have, "merges.txt") {
		return nil
	}
	return []string{"tokenizer.json"}
}

// wholeData picks the files of a whole data set: parquet and JSON lines, which keep the types of values, or tables
// of texts if it has neither.
func wholeData(have []string) (files []string) {
	for _, suffixes := range [][]string{{".parquet", ".jsonl"}, {".csv"}} {
		for _, name := range have {
			if slices.Contains(suffixes, filepath.Ext(name)) {
				files = append(files, name)
			}
		}
		if len(files) > 0 {
			break
		}
	}
	return files
}

// AmbiguousError reports that a data set has several data files, or none, and the reference names
// none of them.
type AmbiguousError struct {
	Ref   Ref
	Files []string
}

func (e *AmbiguousError) Error() string {
	if len(e.Files) == 0 {
		return fmt.Sprintf("%s: its part in the cache has no .parquet, .jsonl or .csv file", e.Ref)
	}
	return fmt.Sprintf("%s: the data set has %s: %s", e.Ref, quantity.Plural(len(e.Files), "file"),
		quantity.AtMost(e.Files, 6))
}

// Hint shows the form of a reference to one of them.
func (e *AmbiguousError) Hint() string {
	file := "FILE"
	if len(e.Files) > 0 {
		file = e.Files[0]
	}
	return fmt.Sprintf("name one: %s%s/%s@%s", Prefix, e.Ref.Name, file, e.Ref.Revision)
}

// ExitCode is the code for bad usage.
func (e *AmbiguousError) ExitCode() int { return exitUsage }

// literal escapes the characters of a path that have a meaning in patterns.
var literal = strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`)

// findData finds the file or files of a data set that a reference means.
func (c Cache) findData(f *Found, have []string, missing *MissingError) error {
	switch ref := f.Ref; {
	case ref.File == "":
		if f.Files = wholeData(have); len(f.Files) != 1 {
			return &AmbiguousError{Ref: ref, Files: f.Files}
		}
		f.Path = filepath.Join(f.Dir, filepath.FromSlash(f.Files[0]))
	case isPattern(ref.File):
		match := matcher(ref.File)
		for _, name := range have {
			if match(name) && strings.Count(name, "/") == strings.Count(ref.File, "/") {
				f.Files = append(f.Files, name)
			}
		}
		if missing.Lacks = lackingShards(f.Files); len(f.Files) == 0 {
			missing.Lacks = []string{ref.File}
		}
		f.Path = filepath.Join(literal.Replace(f.Dir), filepath.FromSlash(ref.File))
	default:
		f.Files, f.Path = []string{ref.File}, filepath.Join(f.Dir, filepath.FromSlash(ref.File))
		if !slices.Contains(have, ref.File) {
			missing.Lacks = f.Files
			_, err := os.Stat(c.noExist(ref.Repo, f.Commit, ref.File))
			missing.Never = err == nil
		}
	}
	if len(missing.Lacks) > 0 {
		return missing
	}
	return nil
}
