package hub

import (
	"fmt"
	"slices"
	"strings"
)

// Requests merges references into one request for each repository at a revision, with all
// their files.
func Requests(refs []Ref) (list []Request) {
	for _, ref := range refs {
		i := slices.IndexFunc(list, func(r Request) bool {
			return r.Ref.Repo == ref.Repo && r.Ref.Revision == ref.Revision
		})
		if i < 0 {
			plain := ref
			plain.File = ""
			list = append(list, Request{Ref: plain, Include: ref.Includes()})
			continue
		}
		r := &list[i]
		if len(r.Include) == 0 || len(ref.Includes()) == 0 { // the usual files hold the others
			r.Include = nil
			continue
		}
		for _, p := range ref.Includes() {
			if !slices.Contains(r.Include, p) {
				r.Include = append(r.Include, p)
			}
		}
	}
	return list
}

// Command returns the command line that fetches a reference.
func Command(ref Ref) string { return Requests([]Ref{ref})[0].Command() }

// Command returns the command line of a request.
func (r Request) Command() string {
	words := []string{"exp hub get " + r.Ref.Name + "@" + r.Ref.Revision}
	if r.Ref.Kind == DataSet {
		words = append(words, "--dataset")
	}
	for _, p := range r.Include {
		words = append(words, "--include "+quoted(p))
	}
	return strings.Join(words, " ")
}

// Carry says how to bring files that another machine fetched into a cache. If none is known, the commands expect
// HF_HUB_CACHE to name it.
func Carry(cache string, list []Request) []string {
	var folders []string
	for _, r := range list {
		if f := r.Ref.Folder(); !slices.Contains(folders, f) {
			folders = append(folders, f)
		}
	}
	const there = "~/.cache/huggingface/hub"
	here := quoted(cache)
	if cache == "" {
		here = `"$HF_HUB_CACHE"`
	}
	return []string{
		fmt.Sprintf("tar -C %s -cf hub.tar %s", there, strings.Join(folders, " ")),
		fmt.Sprintf("mkdir -p %[1]s && tar -C %[1]s -xf hub.tar", here),
	}
}

// quoted quotes a word for a shell if it needs it.
func quoted(word string) string {
	if strings.ContainsAny(word, " \t\n'\"\\$&|;<>()[]{}*?#`!~") {
		return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
	}
	return word
}
