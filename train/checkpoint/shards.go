package checkpoint

import (
	"fmt"
	"io"
)

// shardBytes is the size limit of a weight file, as in Hugging Face's own writers and
// mirrors.
const shardBytes = 5_000_000_000

// shard is a weight file to be written.
type shard struct {
	name    string
	tensors []Source
}

// cutShards distributes tensors, in file order, over files of at most limit bytes of
// elements; it never splits a tensor. A single file has the plain name.
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

// weightContents returns a folder's weight files by name, with an index if there are
// several.
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
