package anthropic

import (
	"encoding/json"
	"strings"

	"grove"
	"grove/internal/text/answer"
	"grove/server/driver"
	"grove/server/serving"
	"grove/server/wire"
)

// encoder writes the answer of /v1/messages: blocks, of which the last one may go on.
type encoder struct {
	*driver.Generation
	answer *driver.Answer
	blocks []*answerBlock
	hidden bool      // blocks of thoughts are empty
	edits  []applied // what was cleared of the conversation; nil: nothing was asked for
}

// management adds to an answer what was cleared of its conversation, where the request asks for that.
func (e *encoder) management(to map[string]any) map[string]any {
	if e.edits != nil {
		to["context_management"] = map[string]any{"applied_edits": e.edits}
	}
	return to
}

// answerBlock is a block of an answer.
type answerBlock struct {
	kind  string // text, thinking or tool_use
	text  strings.Builder
	id    string // of a call, as is the name; its input is the text
	name  string
	ended bool
}

// MarshalJSON writes the block whole.
func (b *answerBlock) MarshalJSON() ([]byte, error) { return wire.Marshal(b.form(b.text.String())) }

// form returns the block with a text of its own.
func (b *answerBlock) form(text string) map[string]any {
	switch b.kind {
	case "text":
		return map[string]any{"type": "text", "text": text}
	case "thinking":
		return map[string]any{"type": "thinking", "thinking": text, "signature": ""}
	}
	input := json.RawMessage("{}")
	if json.Valid([]byte(text)) { // else it is cut
		input = json.RawMessage(text)
	}
	return map[string]any{"type": "tool_use", "id": b.id, "name": b.name, "input": input}
}

// delta returns the event's form of further text.
func (b *answerBlock) delta(text string) map[string]any {
	switch b.kind {
	case "text":
		return map[string]any{"type": "text_delta", "text": text}
	case "thinking":
		return map[string]any{"type": "thinking_delta", "thinking": text}
	}
	return map[string]any{"type": "input_json_delta", "partial_json": text}
}

// usage counts tokens as this API does: those that were found in the cache are apart.
type usage struct {
	Input       int `json:"input_tokens"`
	CacheMade   int `json:"cache_creation_input_tokens"`
	CacheRead   int `json:"cache_read_input_tokens"`
	Output      int `json:"output_tokens"`
	OutputParts struct {
		Thinking int `json:"thinking_tokens"`
	} `json:"output_tokens_details"`
}

// body returns the answer as it stands.
func (e *encoder) body(reason, stop any, u usage) map[string]any {
	return map[string]any{
		"id": "msg_" + e.ID, "type": "message", "role": "assistant", "model": e.Model.Name, "content": append([]*answerBlock{}, e.blocks...),
		"stop_reason": reason, "stop_sequence": stop, "usage": u,
	}
}

// emit sends an event where the answer streams.
func (e *encoder) emit(kind string, fields map[string]any) error {
	if e.Out == nil {
		return nil
	}
	fields["type"] = kind
	return e.Out.Named(kind, fields)
}

// Begin implements [driver.Encoder].
func (e *encoder) Begin() error {
	return e.emit("message_start", map[string]any{"message": e.body(nil, nil, usage{Input: len(e.Job.Answers[0].Prompt())})})
}

// Token implements [driver.Encoder].
func (e *encoder) Token(_ int, t grove.Token, _ *serving.Timings) error {
	return e.add(e.answer.Add(t))
}

// End implements [driver.Encoder].
func (e *encoder) End(int) error {
	if err := e.add(e.answer.Close()); err != nil {
		return err
	}
	return e.endBlock()
}

// Finish implements [driver.Encoder].
func (e *encoder) Finish() error {
	reason, stop := e.why()
	spent, _ := e.Spent()
	u := usage{Input: spent.PromptTokens - spent.PromptDetails.Cached, CacheRead: spent.PromptDetails.Cached, Output: spent.CompletionTokens}
	u.OutputParts.Thinking = spent.Details.Reasoning
	if e.Out == nil {
		return e.Reply(e.management(e.body(reason, stop, u)))
	}
	if err := e.emit("message_delta", e.management(map[string]any{"delta": map[string]any{"stop_reason": reason, "stop_sequence": stop}, "usage": u})); err != nil {
		return err
	}
	return e.emit("message_stop", map[string]any{})
}

// Fail implements [driver.Encoder].
func (e *encoder) Fail(err *wire.Error) error { return e.Out.Named("error", ErrorBody(err)) }

// why returns why the answer ended, and the stop sequence that ended it.
func (e *encoder) why() (reason string, stop any) {
	stats := e.Job.Answers[0].Stats()
	switch {
	case stats.StopText != "":
		return "stop_sequence", stats.StopText
	case stats.Finish == grove.FinishContext:
		return "model_context_window_exceeded", nil
	case stats.Finish == grove.FinishLength:
		return "max_tokens", nil
	case len(e.answer.Calls) > 0:
		return "tool_use", nil
	}
	return "end_turn", nil
}

// add adds parts to the blocks.
func (e *encoder) add(parts []answer.Part) error {
	for _, p := range parts {
		kind, text := "text", p.Text
		switch p.Kind {
		case answer.CallBegin:
			if err := e.begin(&answerBlock{kind: "tool_use", id: "toolu_" + p.Call.ID, name: p.Call.Name}); err != nil {
				return err
			}
			continue
		case answer.CallText:
			kind = "tool_use"
		case answer.CallPart:
			continue
		case answer.Reasoning:
			kind = "thinking"
		}
		if err := e.say(kind, text); err != nil {
			return err
		}
	}
	return nil
}

// say adds text to the last block where that is of the kind, or begins a block.
func (e *encoder) say(kind, text string) error {
	if text == "" {
		return nil
	}
	if n := len(e.blocks); n == 0 || e.blocks[n-1].ended || e.blocks[n-1].kind != kind {
		if err := e.begin(&answerBlock{kind: kind}); err != nil {
			return err
		}
	}
	if kind == "thinking" && e.hidden {
		return nil
	}
	at := len(e.blocks) - 1
	e.blocks[at].text.WriteString(text)
	return e.emit("content_block_delta", map[string]any{"index": at, "delta": e.blocks[at].delta(text)})
}

// begin ends the last block and begins another.
func (e *encoder) begin(b *answerBlock) error {
	if err := e.endBlock(); err != nil {
		return err
	}
	e.blocks = append(e.blocks, b)
	return e.emit("content_block_start", map[string]any{"index": len(e.blocks) - 1, "content_block": b.form("")})
}

// endBlock ends the last block, if it goes on.
func (e *encoder) endBlock() error {
	at := len(e.blocks) - 1
	if at < 0 || e.blocks[at].ended {
		return nil
	}
	e.blocks[at].ended = true
	return e.emit("content_block_stop", map[string]any{"index": at})
}
