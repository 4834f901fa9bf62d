module grove

go 1.26.0

require (
	github.com/alecthomas/kong v1.17.0 // indirect
	github.com/dlclark/regexp2/v2 v2.12.0 // indirect
	github.com/google/go-cmp v0.7.0 // indirect
	github.com/rogpeppe/go-internal v1.16.0 // indirect
	github.com/x448/float16 v0.8.4 // indirect
	golang.org/x/sys v0.49.0 // indirect
	golang.org/x/text v0.43.0 // indirect
	golang.org/x/tools v0.51.0 // indirect
	pgregory.net/rapid v1.3.0 // indirect
)
