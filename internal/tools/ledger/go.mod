module grove/internal/tools/ledger

go 1.26.0

require (
	github.com/google/go-cmp v0.7.0
	grove v0.0.0
)

require golang.org/x/sys v0.49.0 // indirect

replace grove => ../../..
