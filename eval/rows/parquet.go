package rows

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"os"
	"strconv"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"
)

// parquetRows is the number of rows held at a time. Rows of code benchmarks hold megabytes of tests.
const parquetRows = 64

// readParquet yields the rows of a parquet file. Lists and groups become lists and objects, byte arrays
// become texts.
func readParquet(f *os.File, path string, take takeRow, yield func(Row, error) bool) {
	stopped := false
	err := parquetEach(f, take, func(place, index int, fields map[string]any, o *order) bool {
		row := Row{Path: path, Where: parquetPlace(path, place), Index: index, Fields: fields, order: o}
		stopped = !yield(row, nil)
		return !stopped
	})
	if err != nil && !stopped {
		yield(Row{}, &Error{Where: path, Err: err})
	}
}

func parquetPlace(path string, i int) string { return fmt.Sprintf("%s: row %d", path, i+1) }

// parquetEach calls use for each row to take until it returns false; place counts all rows of the file from
// 0. The library panics on some damaged files; parquetEach returns that as an error but lets a panic in use
// pass.
func parquetEach(f *os.File, take takeRow,
	use func(place, index int, fields map[string]any, o *order) bool) (err error) {
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
	place, names := 0, orderOf(file.Schema())
	each := func(row parquet.Row) (bool, error) {
		defer func() { place++ }()
		index, ok := take(func(to []byte) []byte { return appendValues(to, row) })
		if !ok {
			return true, nil
		}
		var v any
		if err := file.Schema().Reconstruct(&v, row); err != nil {
			return false, fmt.Errorf("parquet, row %d: %w", place+1, err)
		}
		fields, ok := plain(v, names).(map[string]any)
		if !ok {
			return false, fmt.Errorf("row %d is %s", place+1, kind(v))
		}
		reading = false
		more := use(place, index, fields, names)
		reading = true
		return more, nil
	}
	for _, group := range file.RowGroups() {
		if more, err := eachOfGroup(group, each); !more || err != nil {
			return err
		}
	}
	return nil
}

// eachOfGroup calls use for each row of a row group until it returns false or fails.
func eachOfGroup(group parquet.RowGroup, use func(parquet.Row) (bool, error)) (more bool, err error) {
	r := group.Rows()
	defer r.Close()
	rows := make([]parquet.Row, parquetRows)
	next := int64(0)
	for {
		n, err := r.ReadRows(rows)
		for _, row := range rows[:n] {
			if more, err := use(row); !more || err != nil {
				return false, err
			}
			next++
		}
		switch {
		case next == group.NumRows():
			return true, nil
		case err != nil && !errors.Is(err, io.EOF):
			return false, fmt.Errorf("parquet, after row %d of a row group: %w", next, err)
		case err != nil || n == 0:
			return false, fmt.Errorf("damaged parquet: a row group of %d rows ends at row %d", group.NumRows(), next)
		}
	}
}

// appendValues appends the values of a row to a buffer; different rows give different bytes.
func appendValues(to []byte, row parquet.Row) []byte {
	for _, v := range row {
		to = append(to, byte(v.Kind()), byte(v.RepetitionLevel()), byte(v.DefinitionLevel()))
		to = binary.AppendUvarint(to, uint64(v.Column()))
		at := len(to)
		to = append(to, 0, 0, 0, 0, 0, 0, 0, 0)
		to = v.AppendBytes(to)
		binary.LittleEndian.PutUint64(to[at:], uint64(len(to)-at-8))
	}
	return to
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

// numberOf returns the function that converts values of a logical type whose numbers the library gives as others:
// unsigned integers as signed ones, decimals in binary. nil for other types.
func numberOf(t *format.LogicalType) func(any) any {
	if t == nil {
		return nil
	}
	switch t := t.Value.(type) {
	case *format.IntType:
		if t.IsSigned {
			return nil
		}
		return func(v any) any {
			switch v := v.(type) {
			case int32:
				return uint32(v)
			case int64:
				return uint64(v)
			}
			return v
		}
	case *format.DecimalType:
		return func(v any) any {
			switch x := v.(type) {
			case *big.Float:
				return json.Number(x.Text('f', int(t.Scale)))
			case float64:
				return json.Number(strconv.FormatFloat(x, 'f', int(t.Scale), 64))
			}
			return v
		}
	}
	return nil
}

// plain converts the library's values of a column to what JSON would give.
func plain(v any, o *order) any {
	if o != nil && o.number != nil {
		if _, list := v.([]any); !list {
			v = o.number(v)
		}
	}
	switch v := v.(type) {
	case map[string]any:
		for k, x := range v {
			var field *order
			if o != nil {
				field = o.fields[k]
			}
			v[k] = plain(x, field)
		}
		return v
	case []any:
		item := o
		if o != nil && o.item != nil {
			item = o.item
		}
		for i, x := range v {
			v[i] = plain(x, item)
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
