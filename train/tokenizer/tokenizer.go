// Package tokenizer turns text into token ids and back.
//
// A Tokenizer is all that the rest of the program knows of a vocabulary. Char is
// one token per character, for small models on tasks with a small alphabet; a
// byte-level BPE fits behind the same interface. Every tokenizer here decodes by
// concatenation: the text of a sequence is the bytes of its tokens one after
// another, which is what lets Stream decode while a completion is being sampled.
// Tokenizers that add or drop spaces depending on a neighbour (SentencePiece's
// dummy prefix) do not fit.
//
// The package renders no chat templates.
package tokenizer

// Tokenizer maps between text and token ids. It is immutable and safe for
// concurrent use.
type Tokenizer interface {
	// Encode returns the ids of text. It adds no special tokens, and text that
	// looks like a special token is text.
	Encode(text string) ([]int32, error)
	// Decode returns the text of ids. Special tokens and ids that the vocabulary
	// does not have are skipped (a model's output layer may be wider than its
	// vocabulary); bytes that are not UTF-8 come out as U+FFFD.
	Decode(ids []int32) string
	// Piece returns the bytes that id adds to a text: none for a special token,
	// possibly a part of a character for a byte-level vocabulary. The caller must
	// not change them.
	Piece(id int32) []byte
	// VocabSize is one more than the largest id.
	VocabSize() int
	// EndIDs are the ids that end a completion.
	EndIDs() []int32
	// Description says in one canonical string what the tokenizer computes: two
	// tokenizers with equal descriptions give equal ids for every text. It is what
	// identity hashes.
	Description() string
	// Files are the files of a Hugging Face model folder that describe the
	// tokenizer, by name.
	Files() map[string][]byte
}
