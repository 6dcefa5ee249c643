package tokenizer

import "strings"

// memory is the working memory of one Encode. Its cache of pieces is bounded: it is cleared
// when full.
type memory struct {
	symbols []int32
	scratch mergeScratch
	cache   map[string]span
	arena   []int32 // ids of all cached pieces
	best    []bestPath
}

// span is a part of the arena.
type span struct{ from, to int32 }

const (
	cachePieces = 1 << 15
	cacheLength = 64 // longest cached piece in bytes
)

func newMemory() *memory { return &memory{cache: make(map[string]span)} }

// seen returns the ids of a cached piece. They are valid until the next keep.
func (w *memory) seen(piece string) ([]int32, bool) {
	s, ok := w.cache[piece]
	if !ok {
		return nil, false
	}
	return w.arena[s.from:s.to], true
}

// keep caches the ids of a piece.
func (w *memory) keep(piece string, ids []int32) {
	if len(piece) > cacheLength {
		return
	}
	if len(w.cache) >= cachePieces {
		clear(w.cache)
		w.arena = w.arena[:0]
	}
	from := int32(len(w.arena))
	w.arena = append(w.arena, ids...)
	// The key is a copy, because the piece shares the memory of a whole text.
	w.cache[strings.Clone(piece)] = span{from, int32(len(w.arena))}
}
