package stage

import "exp/train"

// Placement says what a run keeps in the host's memory because its GPU has no room, and how much
// room the sampler's cache has. It changes no result. The zero value keeps everything on the device,
// with room for the longest course of all completions.
type Placement struct {
	train.Offload
	CacheTokens int // 0: as many as a sampling step could need
}
