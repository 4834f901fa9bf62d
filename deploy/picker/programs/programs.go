// Package programs has the versions of the programs that ../check builds, and of the definitions of resources that it installs.
package programs

import _ "sigs.k8s.io/gateway-api/apis/v1" // its module has definitions of resources
