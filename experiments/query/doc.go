// Package query says which runs a person means: by reference (an id prefix, a
// name, "@last", "tag:baseline") or by filter ("algo = flowrl and metric.reward >
// 0.5 and created < 2d").
//
// It holds the one grammar of conditions, Language: of filters and of the conditions of
// exp compare --fail-if. A filter is evaluated here too, on values that the store
// fetches in one statement (store.RunFields); so what "=" means does not depend on SQL.
// The package only reads.
package query
