package trackers

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"strconv"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
)

// Fields of the messages of TensorBoard.
const (
	eventWallTime, eventStep, eventVersion, eventSummary = 1, 2, 3, 5
	summaryValue                                         = 1
	valueTag, valueSimple, valueTensor, valueMetadata    = 1, 2, 8, 9
	metadataDescription                                  = 3
	tensorType, tensorContent, tensorFloats, tensorReals = 1, 4, 5, 6
	typeFloat, typeDouble                                = 1, 2
)

// scalarsPlugin is the part of TensorBoard that shows scalars. Its Python reader warns of a tag with
// metadata that names none.
const scalarsPlugin = "scalars"

// eventsVersion is the version in the first event of a file.
const eventsVersion = "brain.Event:2"

// appendEvent appends the record of an event: the version of the file if tag is
// empty, else a scalar.
func appendEvent(dst []byte, wall time.Time, step int64, tag string, value float64) []byte {
	return appendDescribed(dst, wall, step, tag, value, "")
}

// appendDescribed is appendEvent with a description of the scalar in Markdown, which
// TensorBoard takes from the first event of a tag.
func appendDescribed(dst []byte, wall time.Time, step int64, tag string, value float64, about string) []byte {
	e := appendDouble(nil, eventWallTime, float64(wall.UnixMilli())/1000)
	if tag == "" {
		return appendRecord(dst, appendString(e, eventVersion, eventsVersion))
	}
	v := appendFloat(appendString(nil, valueTag, tag), valueSimple, float32(value))
	if about != "" {
		m := appendBytes(nil, metadataPlugin, appendString(nil, pluginName, scalarsPlugin))
		v = appendBytes(v, valueMetadata, appendString(m, metadataDescription, about))
	}
	e = appendVarint(e, eventStep, uint64(step))
	return appendRecord(dst, appendBytes(e, eventSummary, appendBytes(nil, summaryValue, v)))
}

// readEvents reads the scalars of an event file. whole is false if the last record is cut
// off; the records before it count.
func (p *points) readEvents(name string, r io.Reader) (whole bool, err error) {
	in := bufio.NewReaderSize(r, 1<<20)
	for n := 1; ; n++ {
		data, err := readRecord(in)
		switch {
		case err == io.EOF && n > 1:
			return true, nil
		case err == io.ErrUnexpectedEOF && n > 1:
			return false, nil
		case err == nil:
			err = p.event(data)
		}
		if errors.Is(err, errRecord) || errors.Is(err, errMessage) || err == io.EOF || err == io.ErrUnexpectedEOF {
			return false, &FormatError{Path: name, Msg: "record " + strconv.Itoa(n) +
				" is damaged or not a TensorBoard event",
				Help: "event files are named events.out.tfevents.*; copy the file again"}
		}
		if err != nil {
			return false, err
		}
	}
}

// event reads the scalars of an event.
func (p *points) event(data []byte) error {
	var step int64
	var wall float64
	var summaries [][]byte
	err := fields(data, func(f field) error {
		switch {
		case f.id == eventWallTime && f.wire == protowire.Fixed64Type:
			wall = math.Float64frombits(f.number)
		case f.id == eventStep && f.wire == protowire.VarintType:
			step = int64(f.number)
		case f.id == eventSummary && f.wire == protowire.BytesType:
			summaries = append(summaries, f.bytes)
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, s := range summaries {
		err := fields(s, func(f field) error {
			if f.id != summaryValue || f.wire != protowire.BytesType {
				return nil
			}
			return p.scalar(f.bytes, step)
		})
		if err != nil {
			return err
		}
	}
	// A file begins with an event that has a time and nothing else.
	if len(summaries) > 0 && wall > 0 && wall < 1e11 {
		p.at(time.UnixMilli(int64(wall * 1000)).UTC())
	}
	return nil
}

// scalar reads a summary value if it is a scalar, not an image or a text.
func (p *points) scalar(b []byte, step int64) error {
	tag, value, ok := "", 0.0, false
	err := fields(b, func(f field) (err error) {
		switch {
		case f.id == valueTag && f.wire == protowire.BytesType:
			tag = string(f.bytes)
		case f.id == valueSimple && f.wire == protowire.Fixed32Type:
			value, ok = float64(math.Float32frombits(uint32(f.number))), true
		case f.id == valueTensor && f.wire == protowire.BytesType:
			value, ok, err = tensorScalar(f.bytes)
		}
		return err
	})
	if err == nil && ok && tag != "" {
		p.add(tag, step, value)
	}
	return err
}

// tensorScalar returns the value of a tensor with one float or double, which newer
// writers use for scalars.
func tensorScalar(b []byte) (value float64, ok bool, err error) {
	kind, content, list := uint64(0), []byte(nil), []byte(nil)
	err = fields(b, func(f field) error {
		switch {
		case f.id == tensorType:
			kind = f.number
		case f.id == tensorContent:
			content = f.bytes
		case (f.id == tensorFloats || f.id == tensorReals) && f.wire == protowire.BytesType: // packed
			list = f.bytes
		case f.id == tensorFloats && f.wire == protowire.Fixed32Type:
			list = binary.LittleEndian.AppendUint32(nil, uint32(f.number))
		}
		return nil
	})
	if content == nil {
		content = list
	}
	switch {
	case kind == typeFloat && len(content) == 4:
		return float64(math.Float32frombits(binary.LittleEndian.Uint32(content))), true, err
	case kind == typeDouble && len(content) == 8:
		return math.Float64frombits(binary.LittleEndian.Uint64(content)), true, err
	}
	return 0, false, err
}
