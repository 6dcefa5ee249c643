package config

import (
	"strings"
	"sync"
)

// table is the schema with its indexes.
type table struct {
	keys   []*Key
	byPath map[string]*Key
	root   *group

	settings map[string]bool // paths of keys declared in package rl
}

// group is a block of keys: a node in the tree of paths.
type group struct {
	path   string
	names  []string // of keys and groups, in table order
	keys   map[string]*Key
	groups map[string]*group
}

// schema is the table of keys, in the order in which configurations are written.
var schema = sync.OnceValue(func() *table {
	t := &table{byPath: map[string]*Key{}, root: newGroup(""), settings: map[string]bool{}}
	for _, r := range append(lossReaders(), estimatorReaders()...) {
		for _, s := range r.settings {
			t.settings[algoPath(s.Key)] = true
		}
	}
	for _, block := range [][]Key{
		rootKeys(), taskKeys(), dataKeys(), modelKeys(), sftKeys(), rewardModelTrainingKeys(), preferKeys(),
		algoKeys(), rolloutKeys(), formKeys(), toolsKeys(), rewardKeys(), trainKeys(), mergeKeys(), checkpointKeys(),
		evalKeys(), compareKeys(), storeKeys(), sandboxKeys(), verifyKeys(), controlKeys(), noticeKeys(),
		computeKeys(), clusterKeys(),
	} {
		for i := range block {
			block[i].addRates()
			t.add(&block[i])
		}
	}
	return t
})

func newGroup(path string) *group {
	return &group{path: path, keys: map[string]*Key{}, groups: map[string]*group{}}
}

func (t *table) add(k *Key) {
	t.keys = append(t.keys, k)
	t.byPath[k.Path] = k
	g := t.root
	parts := strings.Split(k.Path, ".")
	for i, name := range parts[:len(parts)-1] {
		child := g.groups[name]
		if child == nil {
			child = newGroup(strings.Join(parts[:i+1], "."))
			g.groups[name] = child
			g.names = append(g.names, name)
		}
		g = child
	}
	g.keys[k.Name()] = k
	g.names = append(g.names, k.Name())
}

// group returns the block at a path, or nil.
func (t *table) group(path string) *group {
	g := t.root
	for _, name := range strings.Split(path, ".") {
		if g = g.groups[name]; g == nil {
			return nil
		}
	}
	return g
}

// lookup returns the key at path, or nil.
func lookup(path string) *Key { return schema().byPath[path] }

// Keys returns the table in order. Callers must not change the keys.
func Keys() []*Key { return schema().keys }

// Lookup returns the key at path and whether it exists.
func Lookup(path string) (*Key, bool) {
	k := lookup(path)
	return k, k != nil
}
