package rows

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"

	"github.com/parquet-go/parquet-go"
)

// parquetRows is the number of rows held at a time. Rows of code benchmarks hold megabytes of tests.
const parquetRows = 64

// readParquet yields the rows of a parquet file. Lists and groups become lists and objects, byte arrays
// become texts.
func readParquet(f *os.File, path string, yield func(Row, error) bool) {
	stopped := false
	err := parquetEach(f, func(i int, fields map[string]any) bool {
		row := Row{Path: path, Where: parquetPlace(path, i), Index: i, Fields: fields}
		stopped = !yield(row, nil)
		return !stopped
	})
	if err != nil && !stopped {
		yield(Row{}, &Error{Where: path, Err: err})
	}
}

func parquetPlace(path string, i int) string { return fmt.Sprintf("%s: row %d", path, i+1) }

// parquetEach calls use for each row until it returns false. The library panics on some damaged files;
// parquetEach returns that as an error but lets a panic in use pass.
func parquetEach(f *os.File, use func(int, map[string]any) bool) (err error) {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	reading := true
	defer func() {
		if v := recover(); v != nil {
			if !reading {
				panic(v)
			}
			err = fmt.Errorf("damaged parquet: %v", v)
		}
	}()
	if err := checkFooter(f, info.Size()); err != nil {
		return err
	}
	file, err := parquet.OpenFile(f, info.Size(), parquet.SkipPageIndex(true), parquet.SkipBloomFilters(true))
	if err != nil {
		return fmt.Errorf("parquet: %w", err)
	}
	r := parquet.NewGenericReader[any](file)
	defer r.Close()
	rows := make([]any, parquetRows)
	for next := 0; ; {
		clear(rows)
		n, err := r.Read(rows)
		for _, v := range rows[:n] {
			fields, ok := plain(v).(map[string]any)
			if !ok {
				return fmt.Errorf("row %d is %s", next+1, kind(v))
			}
			reading = false
			if !use(next, fields) {
				return nil
			}
			reading = true
			next++
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("parquet, after row %d: %w", next, err)
		case n == 0:
			return fmt.Errorf("damaged parquet: cannot read past row %d", next)
		}
	}
}

// checkFooter checks the length of the metadata before the library allocates memory for it.
func checkFooter(f *os.File, size int64) error {
	const around = 12 // bytes of the magic at both ends and of the length
	var end [8]byte
	if size < around {
		return errors.New("parquet: truncated file")
	}
	if _, err := f.ReadAt(end[:], size-int64(len(end))); err != nil {
		return err
	}
	if string(end[4:]) != "PAR1" {
		return errors.New("parquet: bad end of file: truncated, or not parquet")
	}
	if n := int64(binary.LittleEndian.Uint32(end[:])); n > size-around {
		return fmt.Errorf("damaged parquet: metadata of %d bytes in a file of %d", n, size)
	}
	return nil
}

// plain converts the library's values to what JSON would give.
func plain(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k, x := range v {
			v[k] = plain(x)
		}
		return v
	case []any:
		for i, x := range v {
			v[i] = plain(x)
		}
		return v
	case []byte:
		return string(v)
	case int32:
		return json.Number(strconv.FormatInt(int64(v), 10))
	case int64:
		return json.Number(strconv.FormatInt(v, 10))
	case uint32:
		return json.Number(strconv.FormatUint(uint64(v), 10))
	case uint64:
		return json.Number(strconv.FormatUint(v, 10))
	case float32:
		return json.Number(strconv.FormatFloat(float64(v), 'g', -1, 32))
	case float64:
		return json.Number(strconv.FormatFloat(v, 'g', -1, 64))
	}
	return v // nil, bool, string; and types that none of our fields has
}

// WriteParquet writes rows (structs with parquet tags) with zstd compression.
func WriteParquet[T any](w io.Writer, list []T) error {
	return parquet.Write(w, list, parquet.Compression(&parquet.Zstd))
}
