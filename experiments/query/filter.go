package query

import "exp/experiments/store"

// Filter is a condition on runs, in the grammar of Language. Its operands are the fields
// of ParseField.
//
// A test is either true or false: a value that is missing or has another type than the
// literal fails every test except "!=", and "a != b" is "not a = b". A literal that the
// field can never have is an error. A list (tag, a list
// in the config) passes if one of its elements does. Compared with a duration, a time
// stands for its age (created < 2d: in the last two days) and seconds for themselves
// (wall > 3h). "~" matches text: * is any characters, ? is one. Of an id the first digits are enough.
//
// Match takes values as store.RunFields returns them.
type Filter = Expr[store.Field]
