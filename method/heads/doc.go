// Package heads has the methods that draft with trained heads or modules which read the model's states. A
// file is a method.
package heads
