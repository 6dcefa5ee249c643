package checkpoint

import (
	"fmt"
	"io"
)

// shardBytes is how large a file of weights may get: what Hugging Face's own writers
// and mirrors take.
const shardBytes = 5_000_000_000

// shard is a file of weights that is to be written.
type shard struct {
	name    string
	tensors []Source
}

// cutShards cuts tensors, in the order of files, into files of at most limit bytes of
// elements; a tensor is never cut. One file alone has the plain name.
func cutShards(tensors []Source, limit int64) []shard {
	var list []shard
	var size int64
	for _, t := range inFileOrder(tensors) {
		if len(list) == 0 || size+t.Bytes() > limit {
			list, size = append(list, shard{}), 0
		}
		last := &list[len(list)-1]
		last.tensors = append(last.tensors, t)
		size += t.Bytes()
	}
	for i := range list {
		list[i].name = fmt.Sprintf("model-%05d-of-%05d.safetensors", i+1, len(list))
	}
	if len(list) == 1 {
		list[0].name = weightsFile
	}
	return list
}

// weightContents are the files of a folder's weights by name, with their index if they
// are several.
func weightContents(tensors []Source, limit int64) map[string]func(w io.Writer) error {
	contents := map[string]func(w io.Writer) error{}
	list := cutShards(tensors, limit)
	where, total := map[string]string{}, int64(0)
	for _, s := range list {
		contents[s.name] = func(w io.Writer) error { return WriteSafetensors(w, s.tensors) }
		for _, t := range s.tensors {
			where[t.Name] = s.name
			total += t.Bytes()
		}
	}
	if len(list) > 1 {
		index := indented(map[string]any{"metadata": map[string]any{"total_size": total}, "weight_map": where})
		contents[indexFile] = func(w io.Writer) error {
			_, err := w.Write(index)
			return err
		}
	}
	return contents
}
