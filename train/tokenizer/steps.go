package tokenizer

// Steps appends to a prompt's ids the steps of an answer, each followed by a separator, and returns all ids and the
// place of the last one of each step. Every step and every separator is encoded by itself, as in TRL's PRMTrainer, so
// that the tokens of a step do not depend on the next. A separator that the tokenizer writes as nothing is an error of
// the caller: the step's own last id then ends it. A separator that spells an added token, <extra_0>, is that token;
// a step stays text.
func Steps(t Tokenizer, prompt []int32, steps []string, separator string) (ids []int32, ends []int, err error) {
	behind, err := t.Encode(separator, Options{Added: true})
	if err != nil {
		return nil, nil, err
	}
	ids = append(ids, prompt...)
	for _, s := range steps {
		own, err := t.Encode(s, Options{})
		if err != nil {
			return nil, nil, err
		}
		ids = append(append(ids, own...), behind...)
		ends = append(ends, len(ids)-1)
	}
	return ids, ends, nil
}
