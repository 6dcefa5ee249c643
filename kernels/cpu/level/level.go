// Package level holds the C of the kernels. Its headers have one kind of operation each,
// written once on vectors of 16 float32. Each package below compiles all of them for one
// instruction set and exports the tables of functions. None of these packages imports Go code
// of ours, so Go compiles C again only where C has changed.
package level

import "embed"

// Headers are what the packages below and kernels/cpu include. Go does not look at #include
// when it decides whether a compiled package is up to date; who includes a header imports
// this package, and so is compiled again when the header changes.
//
//go:embed *.h
var Headers embed.FS
