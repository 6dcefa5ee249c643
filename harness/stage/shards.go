package stage

import (
	"path/filepath"
	"strings"

	"exp/experiments/blob"
	"exp/experiments/ident"
	"exp/train/checkpoint"
)

// MergedIndex is the role of the index of a merged folder with several files of weights.
const MergedIndex = "model.safetensors.index.json"

// shardedWeights is a blob that lists the blobs of weights in several files.
type shardedWeights struct {
	Kind  string  `json:"kind"`
	Files []shard `json:"files"`
}

type shard struct {
	Name   string       `json:"name"`
	SHA256 ident.Digest `json:"sha256"`
	Size   int64        `json:"size"`
}

const shardedWeightsKind = "exp/weights-in-shards/1"

// putShards stores the list of a merged folder's files of weights under the role that a single file
// would have.
func (e *Env) putShards(out *Outcome) error {
	w := shardedWeights{Kind: shardedWeightsKind}
	for _, o := range out.Outputs {
		if strings.HasPrefix(o.Role, "model-") && filepath.Ext(o.Role) == ".safetensors" {
			w.Files = append(w.Files, shard{o.Role, o.Digest, o.Size})
		}
	}
	if len(w.Files) == 0 {
		return nil
	}
	o, err := e.putJSON(MergedWeights, "reference", w)
	out.Outputs = append(out.Outputs, o)
	return err
}

// openShards opens the weights that a blob lists; ok is false if the blob is not such a list. It
// first compares every file with its digest.
func (e *Env) openShards(path string) (t *checkpoint.Tensors, ok bool, err error) {
	var w shardedWeights
	if ok, err := readStandIn(path, &w); err != nil || !ok || w.Kind != shardedWeightsKind {
		return nil, false, err
	}
	paths := make([]string, len(w.Files))
	list := make([]blob.Recorded, len(w.Files))
	for i, f := range w.Files {
		paths[i], list[i] = e.Blobs.Path(f.SHA256), blob.Recorded{Digest: f.SHA256, Size: f.Size}
	}
	if err := e.verify(list); err != nil {
		return nil, true, err
	}
	t, err = checkpoint.OpenFiles(paths)
	return t, true, err
}
