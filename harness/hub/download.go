package hub

import (
	"bufio"
	"context"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"net/http"
	"net/url"
	"os"
	"path"
	"strconv"
	"strings"
)

// download brings one file of a commit into the cache.
type download struct {
	c      *Client
	repo   Repo
	commit string
	entry
	count func(n int64) // bytes received, less those discarded
	again bool          // a complete body was already wrong once
}

// what names the file in errors.
func (d *download) what() string { return d.Path + " of " + d.repo.String() }

// url returns the address of the file.
func (d *download) url() *url.URL {
	parts := []string{d.repo.Name, "resolve", d.commit}
	if d.repo.Kind == DataSet {
		parts = append([]string{d.repo.plural()}, parts...)
	}
	for part := range strings.SplitSeq(d.Path, "/") {
		parts = append(parts, url.PathEscape(part))
	}
	return d.c.base.JoinPath(parts...)
}

// run fetches the file unless the cache has it. fetched counts the bytes received.
func (d *download) run(ctx context.Context) (fetched int64, err error) {
	info, err := os.Stat(d.c.Cache.pointer(d.repo, d.commit, d.Path))
	if err == nil && (d.Size < 0 || info.Size() == d.Size) {
		d.Size = info.Size()
		d.count(d.Size)
		return 0, nil
	}
	if !d.stored() {
		if err := d.head(ctx); err != nil {
			return 0, err
		}
	}
	l, err := d.c.lock(ctx, d.repo, d.Digest, d.Path)
	if err != nil {
		return 0, err
	}
	defer l.release()
	if d.stored() { // another process fetched it, or another commit has it
		d.count(d.Size)
	} else if fetched, err = d.fill(ctx, l); err != nil {
		return fetched, err
	}
	return fetched, d.c.keep(d.repo, d.commit, d.Path, d.Digest)
}

// stored reports whether the blobs include the contents.
func (d *download) stored() bool {
	if d.Digest == "" || d.Size < 0 {
		return false
	}
	info, err := os.Stat(d.c.Cache.blob(d.repo, d.Digest))
	return err == nil && info.Mode().IsRegular() && info.Size() == d.Size
}

// head asks for size and digest and compares them with the tree's.
func (d *download) head(ctx context.Context) error {
	return d.c.retry(ctx, func() error {
		linked := func(r *http.Response) bool {
			next, err := r.Location()
			return r.Header.Get("X-Linked-Etag") != "" || r.Header.Get("X-Linked-Size") != "" ||
				err != nil || !sameHost(next, d.c.base)
		}
		resp, err := d.c.send(ctx, http.MethodHead, d.url(), identity(), linked)
		if err != nil {
			return err
		}
		if resp.StatusCode != http.StatusOK && !redirects(resp) {
			return d.c.failure(resp, d.what())
		}
		resp.Body.Close()
		return d.announced(resp)
	})
}

// identity returns the headers of a request for an uncompressed file.
func identity() http.Header { return http.Header{"Accept-Encoding": {"identity"}} }

// announced takes size and digest from the headers of a file.
func (d *download) announced(resp *http.Response) error {
	differs := func(name, got, want string) error {
		return &Error{What: d.what(), exit: exitIntegrity,
			Err:    fmt.Errorf("%w: the hub gives it the %s %s and %s", ErrContent, name, clip(got), want),
			Advice: "try again; if it stays, this hub or mirror contradicts itself: set another HF_ENDPOINT"}
	}
	if got := resp.Header.Get("X-Repo-Commit"); got != "" && got != d.commit {
		return differs("commit", got, d.commit)
	}
	etag, size := resp.Header.Get("X-Linked-Etag"), resp.Header.Get("X-Linked-Size")
	if etag == "" {
		etag = resp.Header.Get("ETag")
	}
	if size == "" && resp.StatusCode == http.StatusOK {
		size = resp.Header.Get("Content-Length")
	}
	etag = strings.Trim(strings.TrimPrefix(etag, "W/"), `"`)
	switch {
	case !digestForm.MatchString(etag): // some mirrors have other tags
	case d.Digest == "":
		d.Digest = etag
	case len(etag) == len(d.Digest) && etag != d.Digest:
		return differs("digest", etag, d.Digest)
	}
	if n, err := strconv.ParseInt(size, 10, 64); err == nil && n >= 0 {
		if d.Size >= 0 && n != d.Size {
			return differs("size", size, strconv.FormatInt(d.Size, 10))
		}
		d.Size = n
	}
	if d.Digest == "" || d.Size < 0 {
		return &Error{What: d.what(), Err: errors.New("the hub gives it no digest and size"), exit: exitResource,
			Advice: "this is not a hub or a mirror of one: check HF_ENDPOINT"}
	}
	return nil
}

// fill completes the blob: it adds the rest to the bytes of earlier tries, and checks the whole
// before naming it.
func (d *download) fill(ctx context.Context, l *lock) (fetched int64, err error) {
	blob := d.c.Cache.blob(d.repo, d.Digest)
	unfinished := blob + l.suffix
	f, err := os.OpenFile(unfinished, os.O_RDWR|os.O_CREATE, 0o666)
	if err != nil {
		return 0, err
	}
	t := transfer{download: d, file: f}
	err = d.c.retry(ctx, func() error { return t.try(ctx) })
	if err == nil {
		err = f.Sync()
	}
	if err := errors.Join(err, f.Close()); err != nil {
		if l.suffix != incomplete { // nobody can continue it
			os.Remove(unfinished)
		}
		return t.fetched, err
	}
	return t.fetched, os.Rename(unfinished, blob)
}

// transfer is the unfinished file of a download.
type transfer struct {
	*download
	file    *os.File
	counted int64 // bytes of the file that count was told of
	most    int64 // bytes that the file had when it was longest
	fetched int64
}

// partial is a connection that broke.
type partial struct {
	bytes int64 // how much longer the file is than it ever was
	err   error
}

func (p *partial) Error() string { return p.err.Error() }
func (p *partial) Unwrap() error { return p.err }

// try adds the missing bytes and checks the whole.
func (t *transfer) try(ctx context.Context) error {
	have, err := t.file.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	if have > t.Size {
		if have, err = 0, t.restart(); err != nil {
			return err
		}
	}
	t.told(have)
	t.most = max(t.most, have)
	if have < t.Size {
		if err := t.receive(ctx, have); err != nil {
			return err
		}
	}
	return t.check(ctx)
}

// told tells the watcher that the file has n bytes now.
func (t *transfer) told(n int64) {
	t.count(n - t.counted)
	t.counted = n
}

// restart empties the file.
func (t *transfer) restart() error {
	t.told(0)
	if err := t.file.Truncate(0); err != nil {
		return err
	}
	_, err := t.file.Seek(0, io.SeekStart)
	return err
}

// receive asks for the bytes from have onwards.
func (t *transfer) receive(ctx context.Context, have int64) error {
	header := identity()
	if have > 0 {
		header.Set("Range", fmt.Sprintf("bytes=%d-", have))
	}
	resp, err := t.c.send(ctx, http.MethodGet, t.url(), header, nil)
	if err != nil {
		return err
	}
	switch {
	case resp.StatusCode == http.StatusPartialContent && continues(resp.Header.Get("Content-Range"), have, t.Size):
	case resp.StatusCode == http.StatusOK:
		have, err = 0, t.restart()
	case resp.StatusCode == http.StatusPartialContent, resp.StatusCode == http.StatusRequestedRangeNotSatisfiable:
		resp.Body.Close()
		return errors.Join(t.restart(), &transient{err: &Error{What: t.what(), exit: exitResource,
			Err: fmt.Errorf("%w: it cannot continue after %d of %d bytes", ErrUnreachable, have, t.Size)}})
	default:
		return t.c.failure(resp, t.what())
	}
	defer resp.Body.Close()
	if err != nil {
		return err
	}
	body := bufio.NewReaderSize(resp.Body, 1<<20)
	if have == 0 && resp.ContentLength >= 0 && resp.ContentLength != t.Size {
		head, _ := body.Peek(256)
		return t.wrong(head, fmt.Errorf("%d bytes instead of %d", resp.ContentLength, t.Size))
	}
	n, err := io.Copy(counting{t}, io.LimitReader(body, t.Size-have))
	var local *os.PathError
	switch {
	case errors.As(err, &local): // the disk is full
		return err
	case err != nil || n < t.Size-have:
		if err == nil {
			err = io.ErrUnexpectedEOF
		}
		broken := &transient{err: t.c.broken(t.what(), have+n, t.Size, err)}
		more := have + n - t.most
		t.most += max(0, more)
		return &partial{bytes: more, err: broken}
	}
	if _, err := body.ReadByte(); err == nil {
		return t.wrong(nil, fmt.Errorf("more than %d bytes", t.Size))
	}
	return nil
}

// broken is the error of a body that ended early.
func (c *Client) broken(what string, have, size int64, err error) error {
	return &Error{What: what, exit: exitResource,
		Err: fmt.Errorf("%w: the connection broke after %d of %d bytes: %s", ErrUnreachable, have, size,
			c.hide(bare(err).Error())),
		Advice: "run the same command again: it continues where it stopped"}
}

// counting writes to the file of a transfer.
type counting struct{ t *transfer }

func (w counting) Write(b []byte) (int, error) {
	n, err := w.t.file.Write(b)
	w.t.fetched += int64(n)
	w.t.told(w.t.counted + int64(n))
	return n, err
}

// continues reports whether a Content-Range begins at have and ends with the file.
func continues(value string, have, size int64) bool {
	var from, to int64
	var total string
	if n, err := fmt.Sscanf(value, "bytes %d-%d/%s", &from, &to, &total); n != 3 || err != nil {
		return false
	}
	return from == have && to == size-1 && (total == "*" || total == strconv.FormatInt(size, 10))
}

// check compares the file with its digest.
func (t *transfer) check(ctx context.Context) error {
	if _, err := t.file.Seek(0, io.SeekStart); err != nil {
		return err
	}
	got, err := digestOf(ctx, t.file, t.Digest, t.Size)
	if err != nil {
		return err
	}
	ends := make([]byte, 256)
	n, err := t.file.ReadAt(ends, 0)
	if err != nil && err != io.EOF {
		return err
	}
	if got != t.Digest {
		return t.wrong(ends[:n], fmt.Errorf("the digest is %s, not %s", got, t.Digest))
	}
	if path.Ext(t.Path) != ".parquet" {
		return nil
	}
	last := make([]byte, 4)
	_, err = t.file.ReadAt(last, max(0, t.Size-4))
	if err != nil || !strings.HasPrefix(string(ends[:n]), magic) || string(last) != magic {
		return &Error{What: t.what(), exit: exitIntegrity,
			Err:    errors.New("has the digest that the hub announced, and is not a parquet file"),
			Advice: "the file in the repository itself is broken: tell its owner, or use another revision"}
	}
	return nil
}

// magic begins and ends a parquet file.
const magic = "PAR1"

// wrong is the error about a body that is not the file. The first time may be bad luck: the file is
// fetched again from its start.
func (t *transfer) wrong(head []byte, why error) error {
	if err := t.restart(); err != nil {
		return err
	}
	if looksLikePage(head) {
		return t.c.page(t.what())
	}
	err := &Error{What: t.what(), Err: fmt.Errorf("%w: %w", ErrContent, why), exit: exitIntegrity,
		Advice: "nothing of it was kept; try again, or another mirror: HF_ENDPOINT is " + t.c.Settings.Endpoint()}
	if t.again {
		return err
	}
	t.again = true
	return &transient{err: err}
}

// digestOf returns the digest of size bytes, of the same kind as want: sha256, or the sha1 that git
// gives a blob.
func digestOf(ctx context.Context, r io.Reader, want string, size int64) (string, error) {
	var h hash.Hash
	if len(want) == 2*sha256.Size {
		h = sha256.New()
	} else {
		h = sha1.New()
		fmt.Fprintf(h, "blob %d\x00", size)
	}
	buf := make([]byte, 1<<20)
	for {
		n, err := r.Read(buf)
		h.Write(buf[:n])
		switch {
		case err == io.EOF:
			return hex.EncodeToString(h.Sum(nil)), nil
		case err != nil:
			return "", err
		case ctx.Err() != nil:
			return "", ctx.Err()
		}
	}
}
