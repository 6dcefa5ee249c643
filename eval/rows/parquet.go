package rows

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

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
	if err := checkColumns(file); err != nil {
		return err
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

// checkColumns refuses what the library reads wrongly: it loses pages in LZ4_RAW that do not shrink much, and reads
// run lengths of booleans as if they were of bytes.
func checkColumns(file *parquet.File) error {
	for _, group := range file.Metadata().RowGroups {
		for _, c := range group.Columns {
			m, name := c.MetaData, strings.Join(c.MetaData.PathInSchema, ".")
			switch {
			case m.Codec == format.Lz4Raw:
				return fmt.Errorf("parquet: column %q is compressed with LZ4_RAW, which is not supported: write the "+
					"file with zstd, snappy or gzip", name)
			case m.Type == format.Boolean && m.NumValues > 0 && hasRuns(m):
				return fmt.Errorf("parquet: the booleans of column %q are in run-length encoding, which is not "+
					"supported: write the file with data pages of version 1.0", name)
			}
		}
	}
	return nil
}

// hasRuns reports whether data pages of a column are in run-length encoding. Levels always are; a column without
// statistics has none in another encoding then.
func hasRuns(m format.ColumnMetaData) bool {
	if len(m.EncodingStats) == 0 {
		return !slices.Contains(m.Encoding, format.Plain)
	}
	return slices.ContainsFunc(m.EncodingStats, func(s format.PageEncodingStats) bool {
		return s.PageType != format.DictionaryPage && s.Encoding == format.RLE
	})
}

// WriteParquet writes rows (structs with parquet tags) with zstd compression.
func WriteParquet[T any](w io.Writer, list []T) error {
	return parquet.Write(w, list, parquet.Compression(&parquet.Zstd))
}
