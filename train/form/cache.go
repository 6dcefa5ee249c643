package form

import (
	"fmt"
	"sync"
)

// Cache makes forms for the tokens of a model and keeps the last ones, so that what one request has found of a form
// serves the next. Safe for concurrent use.
type Cache struct {
	vocab func() *Vocabulary
	mu    sync.Mutex
	forms map[string]*Form
}

// mostForms bounds the forms of a Cache. A full one is emptied.
const mostForms = 32

// NewCache returns an empty cache. It reads the tokens when they are first needed.
func NewCache(of Tokens) *Cache {
	return &Cache{vocab: sync.OnceValue(func() *Vocabulary { return NewVocabulary(of) }), forms: map[string]*Form{}}
}

// Form is New, or what it returned before.
func (c *Cache) Form(s Spec) (*Form, error) {
	key := s.key()
	c.mu.Lock()
	f := c.forms[key]
	c.mu.Unlock()
	if f != nil {
		return f, nil
	}
	f, err := New(s, c.vocab())
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.forms) >= mostForms {
		clear(c.forms)
	}
	c.forms[key] = f
	return f, nil
}

// key tells specs apart.
func (s Spec) key() string {
	calls := s.Calls
	s.Calls = nil
	if calls == nil {
		return fmt.Sprintf("%#v", s)
	}
	return fmt.Sprintf("%#v %#v", s, *calls)
}
