package anthropic

import (
	"strconv"

	"grove/server/driver"
	"grove/server/wire"
)

// Paging is the part of a list that a request asks for.
type Paging struct {
	limit         int
	after, before string // ids
}

// ReadPage reads limit, after_id and before_id of a request's query.
func ReadPage(x *driver.Request) (p Paging, err error) {
	q := x.R.URL.Query()
	p = Paging{20, q.Get("after_id"), q.Get("before_id")}
	if text := q.Get("limit"); text != "" {
		if p.limit, err = strconv.Atoi(text); err != nil || p.limit < 1 || p.limit > 1000 {
			return p, wire.Refuse("limit", "limit is %q; it must be from 1 to 1000", wire.Clip(text))
		}
	}
	return p, nil
}

// Page returns the answer that has a part of a list: what stands behind after_id, or before before_id. id returns the id of an element.
func Page[T any](p Paging, all []T, id func(T) string) map[string]any {
	for i, one := range all {
		if p.after != "" && id(one) == p.after {
			all = all[i+1:]
			break
		}
		if p.before != "" && id(one) == p.before {
			all = all[:i]
			break
		}
	}
	more := len(all) > p.limit
	switch {
	case more && p.before != "":
		all = all[len(all)-p.limit:]
	case more:
		all = all[:p.limit]
	}
	page := map[string]any{"data": append([]T{}, all...), "has_more": more, "first_id": nil, "last_id": nil}
	if len(all) > 0 {
		page["first_id"], page["last_id"] = id(all[0]), id(all[len(all)-1])
	}
	return page
}
