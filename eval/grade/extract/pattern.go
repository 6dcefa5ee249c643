package extract

import "exp/eval/grade/pattern"

// lazy returns the pattern of an expression. This package has hundreds, each compiled when first used.
func lazy(expr string) *pattern.Pattern { return pattern.New(expr) }
