package llamacpp

import (
	"fmt"
	"net/http"
	"strconv"

	"grove/server/driver"
	"grove/server/wire"
)

// streamOf returns the stream that a request names.
func streamOf(x *driver.Request) (*driver.KeptStream, error) {
	name := x.R.URL.Query().Get("conv_id")
	if name == "" {
		return nil, wire.Refuse("conv_id", "conv_id is missing; it is the header X-Conversation-Id of the request that streams")
	}
	if k := x.Server.Kept.Find(x, name); k != nil {
		return k, nil
	}
	return nil, &wire.Error{
		Status: http.StatusNotFound, Type: wire.TypeInvalid, Param: "conv_id", Code: "stream_not_found",
		Message: fmt.Sprintf("there is no stream %q, or no longer", wire.Clip(name)),
	}
}

// resumeStream handles GET /v1/stream: the rest of a stream, behind the bytes that its client has.
func resumeStream(x *driver.Request) error {
	k, err := streamOf(x)
	if err != nil {
		return err
	}
	from := 0
	if text := x.R.URL.Query().Get("from"); text != "" {
		if from, err = strconv.Atoi(text); err != nil || from < 0 {
			return wire.Refuse("from", "from is %q; it must be a number of bytes, 0 or more", wire.Clip(text))
		}
	}
	return k.Resume(x, from)
}

// stopStream handles DELETE /v1/stream. A stream that is not there has been stopped.
func stopStream(x *driver.Request) error {
	k, err := streamOf(x)
	if api := wire.ErrorOf(err); err != nil && api.Status != http.StatusNotFound {
		return err
	}
	if k != nil {
		k.Stop()
	}
	x.W.WriteHeader(http.StatusNoContent)
	return nil
}

// lookupRequest is the body of POST /v1/streams/lookup.
type lookupRequest struct {
	Names []string `json:"conversation_ids" most:"1024" bytes:"256"`
}

// streamBody is a stream as llama.cpp describes it.
type streamBody struct {
	Name  string `json:"conversation_id"`
	Done  bool   `json:"is_done"`
	Bytes int    `json:"total_bytes"`
	Began int64  `json:"started_at"`
	Ended int64  `json:"completed_at"` // 0: it goes on
}

// lookupStreams handles POST /v1/streams/lookup: those of some names that are there.
func lookupStreams(x *driver.Request) error {
	var q lookupRequest
	if err := x.Read(&q); err != nil {
		return err
	}
	all := []streamBody{}
	for _, name := range q.Names {
		k := x.Server.Kept.Find(x, name)
		if k == nil {
			continue
		}
		bytes, ended := k.State()
		b := streamBody{Name: k.Name, Done: !ended.IsZero(), Bytes: bytes, Began: k.Began.Unix()}
		if b.Done {
			b.Ended = ended.Unix()
		}
		all = append(all, b)
	}
	return x.Reply(all)
}
