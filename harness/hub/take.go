package hub

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"exp/train/checkpoint"
)

// isPattern reports whether a path has wildcards.
func isPattern(path string) bool { return strings.ContainsAny(path, "*?") }

// matcher returns the test for a pattern as Python's tools read it: * stands for any text,
// with slashes too, and ? for one character. A folder, FOLDER/, means all in it.
func matcher(pattern string) func(string) bool {
	if strings.HasSuffix(pattern, "/") {
		pattern += "*"
	}
	text := regexp.QuoteMeta(pattern)
	text = strings.NewReplacer(`\*`, `.*`, `\?`, `.`).Replace(text)
	return regexp.MustCompile(`(?s)^` + text + `$`).MatchString
}

// tokenizerFiles are patterns of the files of a tokenizer and its chat template.
func tokenizerFiles() []string {
	return []string{"tokenizer*", "special_tokens_map.json", "added_tokens.json", "generation_config.json",
		"chat_template*", "additional_chat_templates/*", "vocab.json", "merges.txt"}
}

// modelFiles are patterns of the files that a run reads of a model, in the top folder.
func modelFiles() []string {
	return []string{"config.json", "generation_config.json", "tokenizer*", "special_tokens_map.json",
		"added_tokens.json", "chat_template*", "additional_chat_templates/*", "*.safetensors", indexes()[0],
		"adapter_config.json"}
}

// indexes returns the names of the files that list a model's shards: of safetensors, and of
// pickles.
func indexes() (list []string) {
	for _, form := range checkpoint.IndexForms() {
		list = append(list, form.Index)
	}
	return list
}

// dataFiles are patterns of the files that a run or a suite reads of a data set.
func dataFiles() []string {
	return []string{"*.parquet", "*.jsonl", "*.json", "*.csv", "*.tsv", "*.jsonl.gz", "*.json.gz",
		"*.jsonl.zst", "*.json.zst", "README.md"}
}

// never reports whether a file has a format or a folder that nothing here reads.
func never(name string) bool {
	return strings.HasSuffix(name, ".pth") || strings.HasSuffix(name, ".gguf") ||
		strings.HasPrefix(name, "original/") || strings.HasPrefix(path.Base(name), "consolidated")
}

// take selects the files of a repository to fetch: the ones that match the patterns in include or,
// without patterns, the ones that a run reads. Weights are *.safetensors, or *.bin in a
// repository without *.safetensors.
func take(kind Kind, all []entry, include []string) []entry {
	patterns, top := include, false
	switch {
	case len(include) > 0:
	case kind == DataSet:
		patterns = dataFiles()
	default:
		patterns, top = modelFiles(), true
		has := func(match func(string) bool) bool {
			return slices.ContainsFunc(all, func(e entry) bool { return atTop(e.Path) && match(e.Path) })
		}
		if !has(matcher("*.safetensors")) {
			patterns = append(patterns, "*.bin", indexes()[1])
		}
		if !has(matcher("tokenizer.json")) {
			patterns = append(patterns, "vocab.json", "merges.txt")
		}
	}
	var list []entry
	for _, e := range all {
		if len(include) == 0 && never(e.Path) {
			continue
		}
		if slices.ContainsFunc(patterns, func(p string) bool {
			return matcher(p)(e.Path) && (!top || strings.Count(p, "/") == strings.Count(e.Path, "/"))
		}) {
			list = append(list, e)
		}
	}
	return list
}

// plainNames returns the requested names without wildcards that a commit does not have.
func plainNames(kind Kind, all []entry, include []string) (absent []string) {
	if len(include) == 0 && kind == Model {
		include = modelFiles()
	}
	for _, name := range include {
		has := slices.ContainsFunc(all, func(e entry) bool { return e.Path == name })
		if !has && !isPattern(name) && localPath(name) {
			absent = append(absent, name)
		}
	}
	return absent
}

// shardForm is the end of the name of one of several files that belong together.
var shardForm = regexp.MustCompile(`^(.*)-(\d{5})-of-(\d{5})(\.[a-z]+)$`)

// mostShards is more than any data set has.
const mostShards = 10000

// lackingShards returns the files NAME-00003-of-00005.EXT that a list lacks although it has others
// of the five. They are counted from 0, or from 1 if there is a fifth.
func lackingShards(have []string) (lacks []string) {
	seen := map[string]bool{}
	for _, name := range have {
		m := shardForm.FindStringSubmatch(name)
		if m == nil || seen[m[1]+m[3]+m[4]] {
			continue
		}
		seen[m[1]+m[3]+m[4]] = true
		of, _ := strconv.Atoi(m[3]) // five digits
		shard := func(i int) string { return fmt.Sprintf("%s-%05d-of-%s%s", m[1], i, m[3], m[4]) }
		first := 0
		if slices.Contains(have, shard(of)) {
			first = 1
		}
		for i := first; i < first+min(of, mostShards); i++ {
			if !slices.Contains(have, shard(i)) {
				lacks = append(lacks, shard(i))
			}
		}
	}
	return lacks
}
