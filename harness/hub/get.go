package hub

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"exp/experiments/quantity"
)

// Request says what to fetch.
type Request struct {
	Ref     Ref
	Include []string // patterns of files; nil takes the files that a run reads
}

// Result is the outcome of a Get, the schema exp.hub.get/1.
type Result struct {
	Kind     Kind   `json:"kind"`
	Repo     string `json:"repo"`
	Endpoint string `json:"endpoint"`
	Revision string `json:"revision"` // as asked
	Commit   string `json:"commit"`
	Path     string `json:"path"`  // folder of the commit
	Files    []File `json:"files"` // as requested
	Bytes    int64  `json:"bytes"` // of all files
	Fetched  int64  `json:"fetched"`
}

// File is a file of a commit.
type File struct {
	Path   string `json:"path"`
	Bytes  int64  `json:"bytes"`
	Digest string `json:"digest"` // sha256 of a large file, or sha1 as git has it
}

// atOnce is the number of files fetched at a time.
const atOnce = 4

// Get fetches the missing files of a repository and checks them. It may run in several processes at
// once. Files fetched before an error stay.
func (c *Client) Get(ctx context.Context, r Request) (*Result, error) {
	commit, names, err := c.revision(ctx, r.Ref)
	if err != nil {
		return nil, err
	}
	all, err := c.tree(ctx, r.Ref, commit, names)
	if err != nil {
		return nil, err
	}
	wanted := take(r.Ref.Kind, all, r.Include)
	for _, name := range plainNames(r.Ref.Kind, all, r.Include) {
		c.Cache.markAbsent(r.Ref.Repo, commit, name)
		if len(r.Include) > 0 && len(wanted) > 0 {
			c.note("%s has no %s", r.Ref.Repo, name)
		}
	}
	if len(wanted) == 0 {
		return nil, nothing(r, all, strings.Join(r.Include, ", "))
	}
	res := &Result{Kind: r.Ref.Kind, Repo: r.Ref.Name, Endpoint: c.Settings.Endpoint(), Revision: r.Ref.Revision,
		Commit: commit, Path: c.Cache.snapshot(r.Ref.Repo, commit)}
	if err := c.fetch(ctx, r.Ref.Repo, commit, wanted, res); err != nil {
		return nil, err
	}
	return res, c.Cache.setRef(r.Ref.Repo, r.Ref.Revision, commit)
}

// nothing is the error of a request that matches no file.
func nothing(r Request, all []entry, asked string) error {
	e := &Error{What: fmt.Sprintf("%s at %s", r.Ref.Repo, r.Ref.Revision), exit: exitNotFound,
		Err: fmt.Errorf("%w: nothing in it is called %s", ErrEntryNotFound, asked)}
	if asked == "" {
		e.Err = fmt.Errorf("%w that a run reads", ErrEntryNotFound)
	}
	names := make([]string, len(all))
	for i := range all {
		names[i] = all[i].Path
	}
	e.Advice = "it has " + quantity.AtMost(names, 12) + "; name files with --include"
	if len(names) == 0 {
		e.Advice = "it is empty"
	}
	return e
}

// fetch downloads files, some at a time, and fills in the result.
func (c *Client) fetch(ctx context.Context, repo Repo, commit string, list []entry, res *Result) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	p := newMeter(c.Watch, list)
	jobs := make([]*download, len(list))
	for i, e := range list {
		jobs[i] = &download{c: c, repo: repo, commit: commit, entry: e, count: p.add}
	}
	var mu sync.Mutex
	var errs []error
	queue := make(chan *download)
	var wg sync.WaitGroup
	for range min(atOnce, len(jobs)) {
		wg.Go(func() {
			for d := range queue {
				n, err := d.run(ctx)
				mu.Lock()
				res.Fetched += n
				if err != nil {
					errs = append(errs, err)
					cancel()
				}
				mu.Unlock()
			}
		})
	}
	for _, d := range jobs {
		queue <- d
	}
	close(queue)
	wg.Wait()
	if i := slices.IndexFunc(errs, func(err error) bool { return !errors.Is(err, context.Canceled) }); i >= 0 {
		return errs[i] // the others were stopped because of it
	}
	if len(errs) > 0 {
		return errs[0]
	}
	for _, d := range jobs {
		res.Files = append(res.Files, File{Path: d.Path, Bytes: d.Size, Digest: d.Digest})
		res.Bytes += d.Size
	}
	return nil
}

// meter adds up the bytes of several downloads.
type meter struct {
	mu    sync.Mutex
	watch func(Progress)
	p     Progress
}

func newMeter(watch func(Progress), list []entry) *meter {
	m := &meter{watch: watch}
	for _, e := range list {
		m.p.Total += max(0, e.Size)
	}
	m.add(0)
	return m
}

func (m *meter) add(n int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.p.Done += n
	m.p.Total = max(m.p.Total, m.p.Done)
	if m.watch != nil {
		m.watch(m.p)
	}
}
