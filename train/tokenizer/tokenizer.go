// Package tokenizer turns text into token ids and back.
//
// A Tokenizer is the rest of the program's whole view of a vocabulary. Char has one token
// per character, for small models on tasks with a small alphabet; Byte has one per byte,
// for any text; a Pipeline follows a published tokenizer.json, with byte-pair encoding
// (byte level or SentencePiece's), a unigram model or whole words, or SentencePiece's own
// file; Train makes a byte-level BPE from one's own text.
//
// A Pipeline gives the same ids and text as Hugging Face's library: an unsupported part of
// a file is an error that names it, never an approximation. The package renders no chat
// templates.
package tokenizer

// Tokenizer maps between text and token ids. It is immutable and safe for
// concurrent use.
type Tokenizer interface {
	// Encode returns the ids of text. The zero Options are for untrusted text: no special
	// tokens are added, and text that spells one stays text.
	Encode(text string, o Options) ([]int32, error)
	// Decode returns the text of ids. It skips special tokens and ids outside the
	// vocabulary (a model's output layer may be wider than its vocabulary); invalid UTF-8
	// becomes U+FFFD.
	Decode(ids []int32) string
	// DecodeAll is Decode with the special tokens written out.
	DecodeAll(ids []int32) string
	// Piece returns the bytes that id adds to a text that has begun: none for a special
	// token, possibly a part of a character for a byte-level vocabulary. The caller must
	// not change them.
	Piece(id int32) []byte
	// Token returns the text of id as written in tokenizer.json, "" if it has none.
	Token(id int32) string
	// VocabSize is one more than the largest id.
	VocabSize() int
	// EndIDs are the ids that end a completion.
	EndIDs() []int32
	// SpecialTokens are the tokens that prompts and chat templates use by name.
	SpecialTokens() Special
	// TokenID returns the id of the added token or, failing that, of the vocabulary's entry
	// with that text, as written in tokenizer.json.
	TokenID(text string) (int32, bool)
	// Description returns a canonical string of the tokenizer's behaviour: two tokenizers
	// with equal descriptions give equal ids for every text. Identity hashes it.
	Description() string
	// Files are the files of a Hugging Face model folder that describe the
	// tokenizer, by name.
	Files() map[string][]byte
}

// Options choose Encode's treatment of special tokens.
type Options struct {
	Added   bool // text that spells an added token (<|im_end|>) becomes that token instead of text
	Special bool // the post-processor's tokens (BOS, EOS) are put around the ids
}

// Special holds the special tokens of a tokenizer by name; "" if it has none.
type Special struct {
	BOS, EOS string
	// Named holds the special tokens by their names in Hugging Face's files: bos_token, eos_token,
	// pad_token, unk_token, sep_token, cls_token, mask_token and others.
	Named map[string]string
	// Additional are the additional_special_tokens, which have no names.
	Additional []string
}

// Continue returns the text that ids add to a text that has begun, such as a completion to
// its prompt: Decode, except that it keeps the space that SentencePiece's decoders drop at
// the start of a text.
func Continue(t Tokenizer, ids []int32) string {
	var out []byte
	for _, id := range ids {
		out = append(out, t.Piece(id)...)
	}
	return validText(out)
}
