package reward

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"exp/kernels"
	"exp/train/checkpoint"
	"exp/train/model"
	"exp/train/rollout"
	"exp/train/tokenizer"
)

// ModelOptions configure a reward model.
type ModelOptions struct {
	Text  string // of the sequence, with {prompt} (see Concatenation) and {response}
	Begin bool   // the tokenizer's token that begins texts (BOS) precedes Text
	End   bool   // the tokenizer's first end token follows Text
	// Choice makes the model a language model whose score is the log-odds of the first of two next tokens against the
	// second, named as in the vocabulary or by their texts; empty: it has a head that scores.
	Choice []string
	// Read returns the ids of a problem and a response, such as of a whole chat rendered by the model's own template;
	// nil: the model reads Text.
	Read func(p *rollout.Problem, response string) ([]int32, error)
	// Steps scores answers step by step; nil: the reward is the score at the end. ReadSteps is then in Read's place:
	// it returns the ids of a problem and steps, and the place of the last one of each.
	Steps     *Steps
	ReadSteps func(p *rollout.Problem, steps []string) (ids []int32, ends []int, err error)
	Label     int // row of score.weight that gives the reward; 0 if it has only one
	// BatchTokens bounds a forward pass; it changes no bit of a score.
	BatchTokens int
}

// Model scores with a sequence-classification model in Hugging Face's layout, computed by
// our engine: the reward is
//
//	r = score.weight[label] · h,    h the final hidden state at the last token
//
// as in Qwen2ForSequenceClassification and similar classes for a sequence without padding (checkpoint.LoadClassifier
// has the others), or the log-odds of two next tokens (ModelOptions.Choice); or, of a process reward model
// (ModelOptions.Steps), what the scores at the last tokens of the steps come to.
// The tokenizer of the model's own folder encodes texts, without special tokens.
type Model struct {
	opt   ModelOptions
	be    kernels.Backend
	model *model.Model
	tok   tokenizer.Tokenizer
	begin []int32 // before a text
	limit int     // tokens of a sequence
	ws    *model.Workspace
	room  model.Capacity
}

// OpenModel loads a reward model from a folder. Close it afterwards.
func OpenModel(be kernels.Backend, dir string, o ModelOptions) (*Model, error) {
	tok, err := tokenizer.ReadFolder(dir)
	if err != nil {
		return nil, err
	}
	m, err := loadScorer(be, dir, tok, o)
	if err != nil {
		return nil, err
	}
	if tok.VocabSize() > m.Config.Vocab {
		defer m.Close()
		return nil, fmt.Errorf("reward model %s: its tokenizer has %d tokens but its weights %d", dir,
			tok.VocabSize(),
			m.Config.Vocab)
	}
	if o.End && len(tok.EndIDs()) == 0 {
		defer m.Close()
		return nil, fmt.Errorf("reward model %s: its tokenizer has no end token, which reward.end asks for", dir)
	}
	r := NewModel(be, m, o)
	if r.tok = tok; o.Begin {
		if r.begin, err = beginToken(tok); err != nil {
			defer m.Close()
			return nil, fmt.Errorf("reward model %s: %w", dir, err)
		}
	}
	return r, nil
}

// loadScorer loads the model in a folder, whose tokenizer is tok.
func loadScorer(be kernels.Backend, dir string, tok tokenizer.Tokenizer, o ModelOptions) (*model.Model, error) {
	if len(o.Choice) == 0 {
		return checkpoint.LoadClassifier(be, dir, o.Label)
	}
	var ids [2]int32
	for i := range ids {
		var err error
		if ids[i], err = ChoiceToken(tok, o.Choice[i]); err != nil {
			return nil, fmt.Errorf("reward model %s: %w", dir, err)
		}
	}
	return checkpoint.LoadChoice(be, dir, ids[0], ids[1])
}

// ChoiceToken returns the id of the token that name is in a vocabulary or, failing that, that its text alone is.
func ChoiceToken(tok tokenizer.Tokenizer, name string) (int32, error) {
	if id, ok := tok.TokenID(name); ok {
		return id, nil
	}
	ids, err := tok.Encode(name, tokenizer.Options{Added: true})
	if err == nil && len(ids) != 1 {
		err = fmt.Errorf("it is %d tokens", len(ids))
	}
	if err != nil {
		return 0, fmt.Errorf("%q is not one token of its vocabulary: %w", name, err)
	}
	return ids[0], nil
}

// beginToken returns the token that begins texts.
func beginToken(tok tokenizer.Tokenizer) ([]int32, error) {
	if text := tok.SpecialTokens().BOS; text != "" {
		if id, ok := tok.TokenID(text); ok {
			return []int32{id}, nil
		}
	}
	return nil, errors.New("its tokenizer has no token that begins texts (bos_token), which reward.begin asks for")
}

// NewModel returns the reward model m, a classifier with its row of score.weight as value head. It reads what o.Read
// returns, and owns m.
func NewModel(be kernels.Backend, m *model.Model, o ModelOptions) *Model {
	if o.BatchTokens < 1 {
		panic("reward: batches without tokens")
	}
	return &Model{opt: o, be: be, model: m, limit: m.Config.MaxPositions - 1}
}

// Close frees the model.
func (r *Model) Close() error {
	if r.ws != nil {
		r.ws.Close()
	}
	r.model.Close()
	return nil
}

// Score implements Scorer. A completion is not graded if it is too long for the model or
// has characters unknown to the tokenizer.
func (r *Model) Score(ctx context.Context, items []rollout.Item) ([]Score, error) {
	scores := make([]Score, len(items))
	var seqs []text
	var of []int // item of each sequence
	var lengths []int
	for i, it := range items {
		x, err := r.encode(it)
		switch {
		case err != nil:
			scores[i].Reason = fmt.Sprintf("the reward model: %v", err)
			continue
		case len(x.ids) == 0:
			scores[i].Reason = "the reward model: no text"
			continue
		case len(x.ids) > r.limit:
			scores[i].Reason = fmt.Sprintf("the reward model: %d tokens exceed its limit of %d", len(x.ids), r.limit)
			continue
		}
		seqs, of, lengths = append(seqs, x), append(of, i), append(lengths, len(x.ids)+1)
	}
	start := 0
	for _, end := range rollout.MicroBatches(lengths, r.opt.BatchTokens) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		values, err := r.forward(seqs[start:end])
		if err != nil {
			return nil, err
		}
		for k, v := range values {
			i := of[start+k]
			if scores[i] = (Score{Graded: true, Value: float64(v[0])}); r.opt.Steps != nil {
				scores[i] = r.opt.Steps.scored(items[i].Completion, v)
			}
		}
		start = end
	}
	return scores, nil
}

// encode returns what the model reads of an item.
func (r *Model) encode(it rollout.Item) (x text, err error) {
	switch {
	case r.opt.Steps != nil:
		return r.encodeSteps(it)
	case r.opt.Read != nil:
		x.ids, err = r.opt.Read(it.Problem, it.Completion.Text)
	default:
		x.ids, err = r.encodeText(fill(r.opt.Text, Concatenation(it.Problem), it))
		if err == nil && r.opt.End {
			x.ids = append(x.ids, r.tok.EndIDs()[0])
		}
	}
	x.ends = []int{len(x.ids) - 1}
	return x, err
}

// encodeText returns the ids of a text, after the one that begins texts if Begin.
func (r *Model) encodeText(s string) ([]int32, error) {
	ids, err := r.tok.Encode(s, tokenizer.Options{})
	return append(slices.Clone(r.begin), ids...), err
}

// forward returns the scores of each sequence. The engine scores the position before each completion token, so every
// sequence gets an extra token, a target that is not computed; its prompt ends at the first scored token.
func (r *Model) forward(seqs []text) ([][]float32, error) {
	b := model.Batch{Offsets: []int32{0}}
	for _, s := range seqs {
		b.Tokens = append(append(b.Tokens, s.ids...), 0)
		b.Offsets = append(b.Offsets, int32(len(b.Tokens)))
		b.Prompt = append(b.Prompt, int32(s.ends[0]+1))
	}
	if err := r.reserve(len(b.Tokens), len(seqs)); err != nil {
		return nil, err
	}
	r.ws.Load(b)
	r.model.Forward(r.ws)
	r.model.Values(r.ws)
	values := make([]float32, r.ws.Rows())
	r.be.Copy(kernels.Host(values), r.ws.Value())
	r.be.Sync()
	out := make([][]float32, len(seqs))
	for i, s := range seqs {
		for _, end := range s.ends {
			out[i] = append(out[i], values[end-s.ends[0]])
		}
		values = values[len(s.ids)-s.ends[0]:]
	}
	return out, nil
}

// reserve makes room for a batch.
func (r *Model) reserve(tokens, sequences int) error {
	if r.ws != nil && tokens <= r.room.Tokens && sequences <= r.room.Sequences {
		return nil
	}
	if r.ws != nil {
		r.ws.Close()
		r.ws = nil
	}
	r.room = model.Capacity{Tokens: max(tokens, r.opt.BatchTokens, r.room.Tokens),
		Sequences: max(sequences, r.opt.BatchTokens/2+1, r.room.Sequences)}
	ws, err := model.NewWorkspace(r.be, r.model.Config, r.model.Heads, r.room, model.KeepNothing)
	if err != nil {
		return fmt.Errorf("reward model: %w", err)
	}
	r.ws = ws
	return nil
}
