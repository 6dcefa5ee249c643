package serve

import (
	"context"
	"sync"

	"exp/experiments/ident"
	"exp/experiments/store"
)

// mostSpans bounds the curves that are kept: 500 spans of 64 bytes each, 64 MB.
const mostSpans = 2000

// spanCache keeps curves that were read. Points are only ever added, so a curve with as
// many points as before is the same; pages that follow one run of many read the others
// once.
type spanCache struct {
	mu   sync.Mutex
	kept map[spanKey][]store.Span
}

type spanKey struct {
	run    runKey
	name   string
	points int64
	grid   store.Grid
}

// runKey names a run for good: a row of the store may be given to another run once it is removed.
type runKey struct {
	rid     ident.Digest
	created int64 // in nanoseconds
}

// read returns the spans of some of a run's series, by name. names without points are
// absent.
func (c *spanCache) read(
	ctx context.Context, db *store.DB, run store.Run, names []string, g store.Grid,
) (map[string][]store.Span, error) {
	series, err := db.Series(ctx, run.ID, "")
	if err != nil {
		return nil, err
	}
	key := runKey{run.RID, run.Created.UnixNano()}
	points := map[string]int64{}
	for _, s := range series {
		points[s.Name] = s.N
	}
	found := map[string][]store.Span{}
	var missing []string
	c.mu.Lock()
	for _, name := range names {
		if spans, ok := c.kept[spanKey{key, name, points[name], g}]; ok {
			found[name] = spans
		} else if points[name] > 0 {
			missing = append(missing, name)
		}
	}
	c.mu.Unlock()
	if len(missing) == 0 {
		return found, nil
	}
	read, err := db.Spans(ctx, run.ID, missing, g)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.kept == nil || len(c.kept)+len(read) > mostSpans {
		c.kept = map[spanKey][]store.Span{}
	}
	for name, spans := range read {
		found[name] = spans
		c.kept[spanKey{key, name, points[name], g}] = spans
	}
	return found, nil
}
