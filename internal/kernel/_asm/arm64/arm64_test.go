package arm64

import (
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// written is a vector instruction in the assembly: its word, and how the comment reads.
var written = regexp.MustCompile(`(?m)^\tWORD \$0x([0-9a-f]{8}) // (.*)$`)

// disassembled is a line of objdump: the word, the instruction, and perhaps a remark.
var disassembled = regexp.MustCompile(`(?m)^\s+[0-9a-f]+:\t([0-9a-f]{8}) \t([^/\n]*)`)

// TestInstructions: a disassembler reads in each word what its comment says, for every instruction and arrangement, with
// registers and constants at both ends of their ranges.
func TestInstructions(t *testing.T) {
	objdump, err := exec.LookPath("aarch64-linux-gnu-objdump")
	if err != nil {
		t.Skip("no aarch64-linux-gnu-objdump (Debian: binutils-aarch64-linux-gnu)")
	}
	begin(t)
	for _, e := range encoders {
		before := fn.words
		sample(e)
		if fn.words == before {
			t.Errorf("%s: no sample", e.name)
		}
	}
	for i := range 16 {
		EXT(V(i), 30, 31, i)
	}
	for _, v := range []float32{1, -1, 0.125, 31, -0.5, 2, 1.9375} {
		FMOV(17, v)
	}
	var words []byte
	lines := written.FindAllStringSubmatch(code.String(), -1)
	for _, l := range lines {
		w, _ := strconv.ParseUint(l[1], 16, 32)
		words = binary.LittleEndian.AppendUint32(words, uint32(w))
	}
	path := filepath.Join(t.TempDir(), "words")
	if err := os.WriteFile(path, words, 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(objdump, "-D", "-z", "-b", "binary", "-m", "aarch64", "-M", "no-aliases", path).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	read := disassembled.FindAllStringSubmatch(string(out), -1)
	if len(read) != len(lines) || len(lines) < 2000 {
		t.Fatalf("%d instructions written, %d read", len(lines), len(read))
	}
	for i, r := range read {
		got := strings.Join(strings.Fields(r[2]), " ")
		if want := lines[i][2]; got != want || r[1] != lines[i][1] {
			t.Errorf("%s is %q, its comment says %q", lines[i][1], got, want)
		}
	}
}

// begin starts a function in which every register is in use.
func begin(t *testing.T) {
	code.Reset()
	Begin("f", "func()", 0, "f is a test.")
	for i := range fn.v {
		fn.v[i], fn.r[i] = true, true
	}
	t.Cleanup(func() {
		code.Reset()
		stubs.Reset()
		data.Reset()
		fn = nil
	})
}

// sample writes an instruction with many operands.
func sample(e encoder) {
	arrs := e.arrs
	if arrs == nil {
		arrs = []Arr{S4}
	}
	for _, a := range arrs {
		for _, v := range [][3]V{{0, 1, 2}, {31, 30, 29}, {16, 8, 4}, {5, 21, 10}} {
			sampleOf(e, a, v)
		}
	}
}

func sampleOf(e encoder, a Arr, v [3]V) {
	d, n, m := v[0], v[1], v[2]
	lanes := 128 / a.bits()
	r, x := R(n)%28, R(m)%28
	switch emit := e.emit.(type) {
	case func(Arr, V, V, V):
		emit(a, d, n, m)
	case func(Arr, V, V):
		emit(a, d, n)
	case Dot:
		emit(d, n, m)
	case DotElem:
		for i := range 4 {
			emit(d, n, m, i)
		}
	case Elem:
		for i := range lanes {
			emit(a, d, n, m, i)
		}
	case Shift:
		for i := range a.bits() {
			if strings.Contains(e.name, "shl") || strings.Contains(e.name, "sli") {
				emit(a, d, n, i)
			} else {
				emit(a, d, n, i+1)
			}
		}
	case Table:
		for i := range min(4, 32-int(n)) {
			emit(d, []V{n, n + 1, n + 2, n + 3}[:i+1], m)
		}
	case lane:
		for i := range lanes {
			emit(a, d, n, i)
		}
	case fromReg:
		emit(a, d, r)
	case laneToLane:
		for i := range lanes {
			emit(a, d, i, n, lanes-1-i)
		}
	case regToLane:
		for i := range lanes {
			emit(a, d, i, r)
		}
	case laneToReg:
		for i := range lanes {
			emit(a, r, n, i)
		}
	case constant:
		for shift := 0; shift < a.bits(); shift += 8 {
			for _, c := range []uint32{0, 1, 0x5a, 0xff} {
				emit(a, d, c, shift)
			}
		}
	case memory:
		scale := map[byte]int{'q': 16, 'd': 8, 's': 4, 'h': 2}[e.name[len(e.name)-1]]
		disps := []int{0, scale, 4095 * scale}
		if strings.HasSuffix(e.name, "ur") {
			disps = []int{1, -1, 255, -256}
		}
		for _, disp := range disps {
			emit(d, r, disp)
		}
	case memoryReg:
		emit(d, r, x)
	case memoryPair:
		for _, disp := range []int{0, 16, -16, 1008, -1024} {
			emit(d, m, r, disp)
		}
	default:
		sampleList(e, a, d, r, x)
	}
}

func sampleList(e encoder, a Arr, d V, r, x R) {
	lists2 := func(emit func(v []V)) {
		for n := 1; n <= min(4, 32-int(d)); n++ {
			if e.name[2] == '1' || int(e.name[2]-'0') == n {
				emit([]V{d, d + 1, d + 2, d + 3}[:n])
			}
		}
	}
	switch emit := e.emit.(type) {
	case lists:
		lists2(func(v []V) { emit(a, v, r) })
	case listsPost:
		lists2(func(v []V) { emit(a, v, r, x) })
	case one:
		emit(a, d, r)
	case onePost:
		emit(a, d, r, x)
	case laneMemory:
		for i := range 128 / a.bits() {
			emit(a, d, i, r)
		}
	default:
		panic(fmt.Sprintf("%s: the test knows no %T", e.name, emit))
	}
}

// TestLayout: arguments lie where Go's assembly calls expect them.
func TestLayout(t *testing.T) {
	values, size := layout("func(dst []float32, scale float32, n int32, p *byte, m int) (sum uint64, last float32)")
	want := map[string]value{
		"dst_base": {at: 0, load: "MOVD"}, "dst_len": {at: 8, load: "MOVD"}, "dst_cap": {at: 16, load: "MOVD"},
		"scale": {at: 24, load: "FMOVS"}, "n": {at: 28, load: "MOVW"}, "p": {at: 32, load: "MOVD"}, "m": {at: 40, load: "MOVD"},
		"sum": {at: 48, load: "MOVD"}, "last": {at: 56, load: "FMOVS"},
	}
	for name, v := range want {
		if values[name] != v {
			t.Errorf("%s is %v, want %v", name, values[name], v)
		}
	}
	if len(values) != len(want) || size != 60 {
		t.Errorf("%d values in %d bytes, want %d in 60", len(values), size, len(want))
	}
}

// TestRegisters: no register is handed out twice, and none that is not ours.
func TestRegisters(t *testing.T) {
	begin(t)
	FreeAll()
	v := Vecs(3)
	if w := Vec(); w != 3 {
		t.Errorf("a fourth register is %v", w)
	}
	Free(v[1])
	if w := Vecs(2)[0]; w != 4 {
		t.Errorf("two registers begin at %v, want v4", w)
	}
	if w := Vec(); w != v[1] {
		t.Errorf("the free register is %v, not %v", w, v[1])
	}
	for range 25 {
		if r := Reg(); r == 18 || r > 25 {
			t.Errorf("register %v is not ours", r)
		}
	}
	defer func() {
		if recover() == nil {
			t.Error("a 26th register was found")
		}
	}()
	Reg()
}
