// Package tokenizer turns text into token ids and back.
//
// A Tokenizer is all that the rest of the program knows of a vocabulary. Char is one
// token per character, for small models on tasks with a small alphabet; Byte is one
// per byte, for any text; a Pipeline is what a published tokenizer.json says, with
// byte-pair encoding (byte level or SentencePiece's), a unigram model or whole words;
// Train makes a byte-level BPE from one's own text.
//
// A Pipeline gives the ids and the text that Hugging Face's library gives: a part of a
// file that it cannot compute is an error that names it, never something like it. The
// package renders no chat templates and reads no SentencePiece models.
package tokenizer

// Tokenizer maps between text and token ids. It is immutable and safe for
// concurrent use.
type Tokenizer interface {
	// Encode returns the ids of text. The zero Options are for text that nobody
	// vouches for: no special tokens are added, and text that spells one is text.
	Encode(text string, o Options) ([]int32, error)
	// Decode returns the text of ids. Special tokens and ids that the vocabulary
	// does not have are skipped (a model's output layer may be wider than its
	// vocabulary); bytes that are not UTF-8 come out as U+FFFD.
	Decode(ids []int32) string
	// DecodeAll is Decode with the special tokens spelled out.
	DecodeAll(ids []int32) string
	// Piece returns the bytes that id adds to a text that has begun: none for a
	// special token, possibly a part of a character for a byte-level vocabulary. The
	// caller must not change them.
	Piece(id int32) []byte
	// Token returns the text of id as tokenizer.json writes it, "" if it has none.
	Token(id int32) string
	// VocabSize is one more than the largest id.
	VocabSize() int
	// EndIDs are the ids that end a completion.
	EndIDs() []int32
	// SpecialTokens are the tokens that prompts and chat templates use by name.
	SpecialTokens() Special
	// TokenID returns the id of the added token or, if none is spelled so, of the
	// vocabulary's entry with that text, as tokenizer.json writes it.
	TokenID(text string) (int32, bool)
	// Description says in one canonical string what the tokenizer computes: two
	// tokenizers with equal descriptions give equal ids for every text. It is what
	// identity hashes.
	Description() string
	// Files are the files of a Hugging Face model folder that describe the
	// tokenizer, by name.
	Files() map[string][]byte
}

// Options say what Encode makes of special tokens.
type Options struct {
	Added   bool // text that spells an added token (<|im_end|>) becomes that token; else it is text
	Special bool // the post-processor's tokens (BOS, EOS) are put around the ids
}

// Special are the special tokens of a tokenizer by name; "" where it has none.
type Special struct {
	BOS, EOS, Pad, Unk string
	// Named has all of them under the names of Hugging Face's files: bos_token,
	// eos_token, pad_token, unk_token, sep_token, cls_token, mask_token and others.
	Named map[string]string
	// Additional are the additional_special_tokens, which have no names.
	Additional []string
}

// Continue returns the text that ids add to a text that has begun, such as a
// completion to its prompt: Decode, but for the space that SentencePiece's decoders
// drop at the start of a text.
func Continue(t Tokenizer, ids []int32) string {
	var out []byte
	for _, id := range ids {
		out = append(out, t.Piece(id)...)
	}
	return validText(out)
}
