module grove/internal/rename

go 1.26.0
