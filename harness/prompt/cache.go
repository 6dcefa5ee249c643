package prompt

import (
	"crypto/sha256"
	"encoding/json"
	"slices"
	"sync"

	"exp/experiments/ident"
	"exp/train/rollout"
)

// promptCache holds the ids of prompts by the content of the prompts.
type promptCache struct {
	mu   sync.Mutex
	ids  map[ident.Digest][]int32
	held int // ids in it
}

// mostCached bounds the ids that are held: 256 MiB of them.
const mostCached = 64 << 20

func promptKey(q *rollout.Problem) (ident.Digest, error) {
	if len(q.Messages) == 0 && len(q.Tools) == 0 {
		return sha256.Sum256([]byte(q.Prompt)), nil
	}
	what := []any{q.Messages, q.Tools}
	for _, pic := range q.Images {
		if pic.Video() { // its length decides which texts stand between its parts
			what = append(what, pic.Digest)
		}
	}
	b, err := json.Marshal(what)
	return sha256.Sum256(append([]byte("messages "+q.Prompt+"\x00"), b...)), err
}

func (c *promptCache) get(key ident.Digest) ([]int32, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	ids, ok := c.ids[key]
	return ids, ok
}

func (c *promptCache) put(key ident.Digest, ids []int32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.held+len(ids) > mostCached {
		return
	}
	if c.ids == nil {
		c.ids = map[ident.Digest][]int32{}
	}
	c.ids[key], c.held = slices.Clip(ids), c.held+len(ids)
}

// fewestKept is the least number of prompts worth a file: fewer take less than 0.2 s to encode.
const fewestKept = 1000

// remember caches the ids of many prompts. It reads them from the folder or, the first time,
// encodes the prompts and writes the ids there. Errors are left to the later callers that ask for
// the ids.
func (p *Prompter) remember(problems []rollout.Problem) {
	if p.own || len(problems) < fewestKept {
		return
	}
	keys, all := make([]ident.Digest, len(problems)), true
	for i := range problems {
		var err error
		if keys[i], err = promptKey(&problems[i]); err != nil {
			return
		}
		_, known := p.cache.get(keys[i])
		all = all && known
	}
	if all {
		return
	}
	folder := p.folder()
	if folder == nil {
		return
	}
	name := folder.name(keys)
	lists, ok := folder.read(name, len(keys))
	if ok {
		for i, ids := range lists {
			p.cache.put(keys[i], ids)
		}
		return
	}
	lists = make([][]int32, len(problems))
	for i := range problems {
		var err error
		if lists[i], err = p.whole(&problems[i]); err != nil {
			return
		}
	}
	_ = folder.write(name, lists) // without the file the next run encodes them again
}
