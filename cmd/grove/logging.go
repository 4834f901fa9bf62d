package main

import (
	"fmt"
	"io"
	"log/slog"
)

// logging says what a server logs, and in which form.
type logging struct {
	Format      string `name:"log-format" placeholder:"FORMAT" enum:"text,json" default:"text" var:"GROVE_LOG_FORMAT" help:"Form of log lines: text or json. Default: ${default}."`
	Level       string `name:"log-level" placeholder:"LEVEL" enum:"debug,info,warn,error" default:"warn" var:"GROVE_LOG_LEVEL" help:"Least level of log lines: debug, info (a line for each request), warn or error. Default: ${default}."`
	Traces      string `name:"otlp-traces-endpoint" placeholder:"URL" var:"GROVE_OTLP_TRACES_ENDPOINT" help:"Send traces of requests to a collector of OpenTelemetry, such as http://localhost:4318. Without it, there are none."`
	LogRequests bool   `var:"GROVE_LOG_REQUESTS" help:"Write a line for each request to standard error: --log-level info."`
}

// JSON reports whether log lines are JSON objects.
func (l *logging) JSON() bool { return l.Format == "json" }

// logger returns the logger that the flags describe. It writes to w.
func (l *logging) logger(w io.Writer) *slog.Logger {
	level := map[string]slog.Level{"debug": slog.LevelDebug, "info": slog.LevelInfo, "warn": slog.LevelWarn, "error": slog.LevelError}[l.Level]
	if l.LogRequests {
		level = min(level, slog.LevelInfo)
	}
	return slog.New(l.handler(w, level))
}

// report writes an event of the server's life to w, whatever the level.
func (l *logging) report(w io.Writer, event string) {
	if l.JSON() {
		slog.New(l.handler(w, slog.LevelInfo)).Info(event)
		return
	}
	fmt.Fprintln(w, "grove:", event)
}

func (l *logging) handler(w io.Writer, level slog.Level) slog.Handler {
	o := &slog.HandlerOptions{Level: level}
	if l.JSON() {
		return slog.NewJSONHandler(w, o)
	}
	return slog.NewTextHandler(w, o)
}
