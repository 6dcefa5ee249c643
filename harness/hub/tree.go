package hub

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
)

// entry is a file of a repository at a commit.
type entry struct {
	Path   string
	Size   int64  // -1: unknown so far
	Digest string // sha256 of a large file, git's sha1 of another; empty: unknown so far
}

// revision resolves a revision to its commit, and names the files.
func (c *Client) revision(ctx context.Context, ref Ref) (commit string, names []string, err error) {
	var info struct {
		SHA      string `json:"sha"`
		Siblings []struct {
			Name string `json:"rfilename"`
		} `json:"siblings"`
	}
	what := fmt.Sprintf("%s at %s", ref.Repo, ref.Revision)
	if _, err := c.ask(ctx, c.api(ref.Repo, "revision", url.PathEscape(ref.Revision)), what, &info); err != nil {
		return "", nil, err
	}
	if !commitForm.MatchString(info.SHA) {
		return "", nil, &Error{What: what, exit: exitResource,
			Err: fmt.Errorf("the hub gives %q as its commit", clip(info.SHA))}
	}
	for _, s := range info.Siblings {
		names = append(names, s.Name)
	}
	return info.SHA, names, nil
}

// clip shortens a text for an error.
func clip(s string) string {
	if len(s) > 80 {
		return s[:80] + "…"
	}
	return s
}

// mostPages bounds a tree: 1000 files a page.
const mostPages = 10000

// tree lists the files of a commit, page by page. A hub that lists no trees only gives names; sizes
// and digests then come with the files.
func (c *Client) tree(ctx context.Context, ref Ref, commit string, names []string) ([]entry, error) {
	what := fmt.Sprintf("the files of %s at %s", ref.Repo, ref.Revision)
	first := c.api(ref.Repo, "tree", commit)
	first.RawQuery = "recursive=true"
	var all []entry
	u := first
	for page := 0; u != nil; page++ {
		var part []struct {
			Type string `json:"type"`
			Path string `json:"path"`
			Size int64  `json:"size"`
			OID  string `json:"oid"`
			LFS  *struct {
				OID  string `json:"oid"`
				Size int64  `json:"size"`
			} `json:"lfs"`
		}
		link, err := c.ask(ctx, u, what, &part)
		switch {
		case page == 0 && errors.Is(err, ErrEntryNotFound) && len(names) > 0:
			for _, name := range names {
				all = append(all, entry{Path: name, Size: -1})
			}
			return checked(all, what)
		case err != nil:
			return nil, err
		case page == mostPages:
			return nil, &Error{What: what, Err: fmt.Errorf("more than %d pages", mostPages), exit: exitResource}
		}
		for _, p := range part {
			if p.Type != "file" {
				continue
			}
			e := entry{Path: p.Path, Size: p.Size, Digest: p.OID}
			if p.LFS != nil {
				e.Size, e.Digest = p.LFS.Size, strings.TrimPrefix(p.LFS.OID, "sha256:")
			}
			all = append(all, e)
		}
		if u, err = nextPage(link, u, first); err != nil {
			return nil, &Error{What: what, Err: err, exit: exitResource}
		}
	}
	return checked(all, what)
}

// nextPage finds the address of the next page in a header Link; nil if it has none. If a mirror
// names the host that it mirrors, the mirror is asked all the same.
func nextPage(link string, at, first *url.URL) (*url.URL, error) {
	for part := range strings.SplitSeq(link, ",") {
		address, params, _ := strings.Cut(strings.TrimSpace(part), ">")
		address, bracket := strings.CutPrefix(address, "<")
		if !bracket || !slices.ContainsFunc(strings.Split(params, ";"), func(p string) bool {
			return strings.ReplaceAll(strings.TrimSpace(p), `"`, "") == "rel=next"
		}) {
			continue
		}
		next, err := at.Parse(address)
		if err != nil {
			return nil, errors.New("the next page has no address")
		}
		if !sameHost(next, first) {
			own := *first
			own.RawQuery = next.RawQuery
			next = &own
		}
		if next.String() == at.String() {
			return nil, errors.New("the next page is the same page")
		}
		return next, nil
	}
	return nil, nil
}

// checked refuses names that lead out of a folder, and malformed digests: the cache's files are
// named after them.
func checked(all []entry, what string) ([]entry, error) {
	for _, e := range all {
		if !localPath(e.Path) {
			return nil, &Error{What: what, exit: exitIntegrity,
				Err:    fmt.Errorf("the hub names a file %q", clip(e.Path)),
				Advice: "do not use this hub: the name leads out of the cache"}
		}
		if e.Digest != "" && !digestForm.MatchString(e.Digest) || e.Size < -1 {
			return nil, &Error{What: what, exit: exitIntegrity,
				Err: fmt.Errorf("the hub gives %s the digest %q and %d bytes", e.Path, clip(e.Digest), e.Size)}
		}
	}
	slices.SortFunc(all, func(a, b entry) int { return strings.Compare(a.Path, b.Path) })
	return slices.CompactFunc(all, func(a, b entry) bool { return a.Path == b.Path }), nil
}
