package prompt

import (
	"crypto/sha256"
	"encoding/binary"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"exp/experiments/ident"
	"exp/harness/sources"
)

// promptFolder keeps the ids of the prompts of data sets on disk, so that a plan does not encode a
// large one again. A file holds the ids of one list of prompts; its name is a digest of everything
// they depend on: the prompts, the tokenizer, the template with its settings, and the sources of
// this program. A damaged or truncated file counts as missing. The folder does not affect identity
// and may be deleted at any time.
//
// Files appear as a whole, so that processes may share the folder. The least recently used ones are
// removed when they take too much space; exp gc does not touch them, because several stores use
// them.
type promptFolder struct {
	dir   string
	least ident.Digest // what the ids of every prompt depend on
	most  int64        // bytes of all files
}

// mostKept bounds the folder. The training data of FlowRL takes 6 MB.
const mostKept = 256 << 20

// promptMagic begins a file.
const promptMagic = "exp prompt ids 1\n"

// openFolder returns the user's folder; nil if the user has no cache.
func (p *Prompter) openFolder() *promptFolder {
	dir, err := os.UserCacheDir()
	if err != nil {
		return nil
	}
	settings, err := p.idsDependOn()
	if err != nil {
		return nil
	}
	return &promptFolder{dir: filepath.Join(dir, "exp", "prompts"), least: settings, most: mostKept}
}

// idsDependOn digests what the ids of a prompt depend on, apart from the problem. The limit
// is not part of it: whole prompts are kept, and cut later.
func (p *Prompter) idsDependOn() (d ident.Digest, err error) {
	code, _, err := sources.Of([]string{"train/tokenizer", "train/chat"}) // turn problems into ids
	if err != nil {
		return d, err
	}
	tools, err := p.ToolsDigest()
	if err != nil {
		return d, err
	}
	named := map[string]any{}
	for name, text := range p.Tokenizer.SpecialTokens().Named {
		named[name] = text
	}
	before := make([]any, len(p.before))
	for i, id := range p.before {
		before[i] = int64(id)
	}
	return ident.Hash("exp/prompt-ids/1", map[string]any{"code": code, "tokenizer": p.Tokenizer.Description(),
		"special": named, "before": before, "bos": int64(p.bos), "once": p.startsOnce(), "vocab": int64(p.vocab),
		"template": p.TemplateDigest(), "tools": tools, "system": p.data.System,
		"vars": anyMap(p.data.TemplateVars), "date": p.data.TemplateDate, "escape": p.escaper != nil})
}

// name returns the file of a list of prompts.
func (f *promptFolder) name(keys []ident.Digest) ident.Digest {
	h := sha256.New()
	h.Write(f.least[:])
	for i := range keys {
		h.Write(keys[i][:])
	}
	return ident.Digest(h.Sum(nil))
}

func (f *promptFolder) path(name ident.Digest) string { return filepath.Join(f.dir, name.String()) }

// read returns the ids of n prompts; ok is false if the file is missing or damaged.
func (f *promptFolder) read(name ident.Digest, n int) (lists [][]int32, ok bool) {
	info, err := os.Stat(f.path(name))
	if err != nil || info.Size() > f.most {
		return nil, false
	}
	b, err := os.ReadFile(f.path(name))
	if err != nil {
		return nil, false
	}
	if lists, ok = decodeIDs(b, name, n); ok {
		now := time.Now()
		_ = os.Chtimes(f.path(name), now, now) // the folder drops the least recently used
	}
	return lists, ok
}

// write keeps the ids of prompts.
func (f *promptFolder) write(name ident.Digest, lists [][]int32) error {
	b := encodeIDs(name, lists)
	if int64(len(b)) > f.most {
		return nil
	}
	if err := os.MkdirAll(f.dir, 0o777); err != nil {
		return err
	}
	tmp, err := os.CreateTemp(f.dir, "new-*")
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name()) // unless it was renamed
	_, err = tmp.Write(b)
	if closed := tmp.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = os.Rename(tmp.Name(), f.path(name))
	}
	if err != nil {
		return err
	}
	return f.trim()
}

// abandoned is the age of a partial file whose process is gone.
const abandoned = time.Hour

// trim removes partial files and, while the others take too much space, the least
// recently used.
func (f *promptFolder) trim() error {
	entries, err := os.ReadDir(f.dir)
	if err != nil {
		return err
	}
	var files []fs.FileInfo
	total := int64(0)
	for _, e := range entries {
		info, err := e.Info()
		if err != nil { // another process removed it
			continue
		}
		if strings.HasPrefix(e.Name(), "new-") {
			if time.Since(info.ModTime()) > abandoned {
				_ = os.Remove(filepath.Join(f.dir, e.Name()))
			}
			continue
		}
		files, total = append(files, info), total+info.Size()
	}
	slices.SortFunc(files, func(a, b fs.FileInfo) int { return a.ModTime().Compare(b.ModTime()) })
	for _, info := range files {
		if total <= f.most {
			break
		}
		if err := os.Remove(filepath.Join(f.dir, info.Name())); err != nil {
			return err
		}
		total -= info.Size()
	}
	return nil
}

// encodeIDs writes lists of ids: the magic, the file's name, the number of lists, each as
// its length and its ids, all as varints, and the SHA-256 of everything before.
func encodeIDs(name ident.Digest, lists [][]int32) []byte {
	b := append([]byte(promptMagic), name[:]...)
	b = binary.AppendUvarint(b, uint64(len(lists)))
	for _, ids := range lists {
		b = binary.AppendUvarint(b, uint64(len(ids)))
		for _, id := range ids {
			b = binary.AppendUvarint(b, uint64(id))
		}
	}
	sum := sha256.Sum256(b)
	return append(b, sum[:]...)
}

// decodeIDs reads n lists that encodeIDs wrote under that name.
func decodeIDs(b []byte, name ident.Digest, n int) (lists [][]int32, ok bool) {
	head := promptMagic + string(name[:])
	body := len(b) - sha256.Size
	if body < len(head) || string(b[:len(head)]) != head || sha256.Sum256(b[:body]) != [sha256.Size]byte(b[body:]) {
		return nil, false
	}
	b = b[len(head):body]
	next := func() (x uint64) {
		x, size := binary.Uvarint(b)
		if ok = size > 0; ok {
			b = b[size:]
		}
		return x
	}
	if count := next(); !ok || count != uint64(n) {
		return nil, false
	}
	lists = make([][]int32, n)
	for i := range lists {
		length := next()
		if !ok || length > uint64(len(b)) { // an id takes a byte at least
			return nil, false
		}
		ids := make([]int32, length)
		for j := range ids {
			id := next()
			if !ok || id > math.MaxInt32 {
				return nil, false
			}
			ids[j] = int32(id)
		}
		lists[i] = ids
	}
	return lists, len(b) == 0
}

// anyMap is m, never nil.
func anyMap(m map[string]any) map[string]any {
	if m == nil {
		return map[string]any{}
	}
	return m
}
