//go:build amd64 && !emulate_amx

package amx

// Emulated is set in builds with the tag emulate_amx.
const Emulated = false
