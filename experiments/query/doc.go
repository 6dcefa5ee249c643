// Package query selects runs by reference (an id prefix, a name, "@last", "tag:baseline")
// or by filter ("algo = flowrl and metric.reward > 0.5 and created < 2d").
//
// Language is the grammar of all conditions: of filters and of exp compare --fail-if.
// Filters are evaluated here, on values that the store fetches in one statement
// (store.RunFields), so "=" does not depend on SQL. The package only reads.
package query
